/* Convolutions and fully connected layers with weights of int4 for Helium, which stay two to a byte in flash: a variant
   of tinyfuse_matmul_2x4_mve.h and tinyfuse_conv_2x4_mve.h.

   A byte has the weights v and w of two channels for one input, as 16 * w + v. Multiplied as it is, it adds up to 16
   times the second channel's sum and the first one's; shifted left by four, to 16 times the first one's. So one
   instruction widens 16 pairs, and both sums are separated once, after the loop. 16 times a sum with its bias must fit
   32 bits, and 16 * w + v a byte; the compiler proves both.

   weights  [ceil(out_c / 4)] groups; a group is [depth / 16][2 pairs of channels][16] and then [2][depth % 16]; zeros
            for channels beyond out_c; 16 bytes more at the end, which are read but don't count.
   channels as tinyfuse_matmul_2x4_mve.h has them, each with its own scale; of a pair the biases are 16 * b and
            16 * c + b, where b and c are the channels' own. */
#ifndef TINYFUSE_CONV_S4_MVE_H
#define TINYFUSE_CONV_S4_MVE_H

#include "tinyfuse_conv_2x4_mve.h"

#if TINYFUSE_MVE

/* Separates the sums of a pair of channels. Before, the first register has 16 times the first channel's sum, the second
   one the first channel's plus 16 times the second channel's. */
#define TINYFUSE_S4_APART(first, second)          \
    "asr " first ", " first ", #4\n\t"            \
    "sub " second ", " second ", " first "\n\t"   \
    "asr " second ", " second ", #4\n\t"
#define TINYFUSE_S4_ALL_APART                                        \
    TINYFUSE_S4_APART("r0", "r2") TINYFUSE_S4_APART("r4", "r6")      \
    TINYFUSE_S4_APART("r8", "r10") TINYFUSE_S4_APART("r12", "lr")

/* The weights of a pair in q2 times the inputs of two pixels. */
#define TINYFUSE_S4_TWO(first, second, other_first, other_second) \
    "vmladava.s8 " second ", q0, q2\n\t"                          \
    "vshl.i8 q3, q2, #4\n\t"                                      \
    "vmladava.s8 " other_second ", q1, q2\n\t"                    \
    "vmladava.s8 " first ", q0, q3\n\t"                           \
    "vmladava.s8 " other_first ", q1, q3\n\t"
/* Sets q0 and q1 to four channels' sums of the inputs at r1 and at r3. r5: the weights, and afterwards their end; r9:
   number of blocks of 16 inputs. */
#define TINYFUSE_S4_DOT_TWO_PIXELS                               \
    "subs r9, #1\n\t"                                            \
    "bmi 3f\n\t"                                                 \
    "2:\n\t"                                                     \
    "vldrb.8 q2, [r5], #16\n\t"                                  \
    "vldrb.8 q0, [r1], #16\n\t"                                  \
    "vldrb.8 q1, [r3], #16\n\t"                                  \
    TINYFUSE_S4_TWO("r0", "r2", "r8", "r10")                     \
    "vldrb.8 q2, [r5], #16\n\t"                                  \
    "subs r9, #1\n\t"                                            \
    TINYFUSE_S4_TWO("r4", "r6", "r12", "lr")                     \
    "bpl 2b\n\t"                                                 \
    "3:\n\t"                                                     \
    "ldr r9, [r7, %[rest]]\n\t"                                  \
    "cmp r9, #0\n\t"                                             \
    "beq 4f\n\t"                                                 \
    "vctp.8 r9\n\t"                                              \
    "vpstt\n\t"                                                  \
    "vldrbt.8 q0, [r1]\n\t" /* zeros after the inputs */         \
    "vldrbt.8 q1, [r3]\n\t"                                      \
    "vldrb.8 q2, [r5]\n\t"                                       \
    "add r5, r9\n\t"                                             \
    TINYFUSE_S4_TWO("r0", "r2", "r8", "r10")                     \
    "vldrb.8 q2, [r5]\n\t"                                       \
    "add r5, r9\n\t"                                             \
    TINYFUSE_S4_TWO("r4", "r6", "r12", "lr")                     \
    "4:\n\t" TINYFUSE_S4_ALL_APART TINYFUSE_SUMS_TO_VECTORS

/* The next pair of weights at a pointer, which moves on by `step`, times the inputs of a pixel. */
#define TINYFUSE_S4_ONE(at, step, first, second) \
    "vldrb.8 q2, [" at "]" step                  \
    "vmladava.s8 " second ", q0, q2\n\t"         \
    "vshl.i8 q3, q2, #4\n\t"                     \
    "vmladava.s8 " first ", q0, q3\n\t"
#define TINYFUSE_S4_NEXT ", #16\n\t"
#define TINYFUSE_S4_REST(at) "\n\tadd " at ", r9\n\t"
/* Does the same as TINYFUSE_DOT_TWO_GROUPS for pairs of int4 weights. */
#define TINYFUSE_S4_DOT_TWO_GROUPS                                                                               \
    "subs r9, #1\n\t"                                                                                            \
    "bmi 3f\n\t"                                                                                                 \
    "2:\n\t"                                                                                                     \
    "vldrb.8 q0, [r1], #16\n\t"                                                                                  \
    TINYFUSE_S4_ONE("r3", TINYFUSE_S4_NEXT, "r0", "r2") TINYFUSE_S4_ONE("r3", TINYFUSE_S4_NEXT, "r4", "r6")      \
    TINYFUSE_S4_ONE("r5", TINYFUSE_S4_NEXT, "r8", "r10") TINYFUSE_S4_ONE("r5", TINYFUSE_S4_NEXT, "r12", "lr")    \
    "subs r9, #1\n\t"                                                                                            \
    "bpl 2b\n\t"                                                                                                 \
    "3:\n\t"                                                                                                     \
    "ldr r9, [r7, %[rest]]\n\t"                                                                                  \
    "cmp r9, #0\n\t"                                                                                             \
    "beq 4f\n\t"                                                                                                 \
    "vctp.8 r9\n\t"                                                                                              \
    "vpst\n\t"                                                                                                   \
    "vldrbt.8 q0, [r1]\n\t"                                                                                      \
    TINYFUSE_S4_ONE("r3", TINYFUSE_S4_REST("r3"), "r0", "r2")                                                    \
    TINYFUSE_S4_ONE("r3", TINYFUSE_S4_REST("r3"), "r4", "r6")                                                    \
    TINYFUSE_S4_ONE("r5", TINYFUSE_S4_REST("r5"), "r8", "r10")                                                   \
    TINYFUSE_S4_ONE("r5", TINYFUSE_S4_REST("r5"), "r12", "lr")                                                   \
    "4:\n\t" TINYFUSE_S4_ALL_APART TINYFUSE_SUMS_TO_VECTORS

/* Computes all channels of two pixels: inputs x0 give out0, inputs x1 give out1. */
TINYFUSE_SHARED void tinyfuse_two_s4(tinyfuse_mve_job *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_mve_job *, arguments, job);
    __asm volatile(TINYFUSE_ASM_BEGIN
                   "mov r7, r0\n\t"
                   "ldr r5, [r7, %[weights]]\n\t"
                   "ldrd r0, r2, [r7, %[act_min]]\n\t"
                   "vdup.32 q4, r0\n\t"
                   "vdup.32 q5, r2\n\t"
                   "ldr r11, [r7, %[bias]]\n\t"
                   "1:\n\t"
                   "ldrd r1, r3, [r7, %[x0]]\n\t"
                   "ldr r9, [r7, %[blocks]]\n\t"
                   "ldm r11, {r0, r2, r4, r6}\n\t"
                   "ldm r11!, {r8, r10, r12, lr}\n\t"
                   TINYFUSE_S4_DOT_TWO_PIXELS
                   "ldm r7, {r0, r2, r4, r6}\n\t"
                   "vldrw.s32 q2, [r11], #16\n\t"
                   "vldrw.s32 q3, [r11], #16\n\t"
                   "vshr.s32 q6, q3, #31\n\t"
                   TINYFUSE_SCALE4("q0", "q2", "q6", "q0, q3") TINYFUSE_SCALE4("q1", "q2", "q6", "q1, q3")
                   "vadd.i32 q0, q0, r6\n\t"
                   "vadd.i32 q1, q1, r6\n\t"
                   "vmax.s32 q0, q0, q4\n\t"
                   "vmax.s32 q1, q1, q4\n\t"
                   "vmin.s32 q0, q0, q5\n\t"
                   "vmin.s32 q1, q1, q5\n\t"
                   "vctp.32 r4\n\t"
                   "vpstt\n\t"
                   "vstrbt.32 q0, [r0], #4\n\t"
                   "vstrbt.32 q1, [r2], #4\n\t"
                   "subs r4, #4\n\t"
                   "stm r7, {r0, r2, r4}\n\t"
                   "bgt 1b\n\t"
                   TINYFUSE_ASM_END
                   :
                   : TINYFUSE_MATMUL_OPERANDS);
}

TINYFUSE_MVE_FUNCTION(tinyfuse_one_s4, TINYFUSE_MATMUL_ONE(TINYFUSE_S4_DOT_TWO_GROUPS, "", ""))

#else

/* Computes all channels of a pixel's inputs x to out. */
TINYFUSE_INLINE void tinyfuse_mve_pixel_s4(const tinyfuse_mve_job *job, const int8_t *x, int8_t *out)
{
    const int32_t blocks = job->blocks, rest = job->rest, depth = 16 * blocks + rest;
    const int8_t *weights = job->weights;
    const int32_t *bias = job->bias;
    int32_t c, o, k;
    for (c = 0; c < job->channels_left; c += 4) {
        for (o = 0; o < 4 && c + o < job->channels_left; ++o) {
            const int32_t pair = o >> 1, first = o & ~1;
            int32_t both = bias[first + 1], sum = bias[first];
            for (k = 0; k < depth; ++k) {
                const int8_t w = weights[k < 16 * blocks ? (k >> 4) * 32 + pair * 16 + (k & 15)
                                                         : blocks * 32 + pair * rest + (k & 15)];
                both += x[k] * w;
                sum += x[k] * (int8_t)(uint8_t)((uint8_t)w << 4);
            }
            sum >>= 4;
            if ((o & 1) != 0) {
                sum = (both - sum) >> 4;
            }
            out[c + o] = (int8_t)tinyfuse_clamp(
                tinyfuse_requantize(sum, bias[4 + o], bias[8 + o]) + job->out_zero_point, job->act_min, job->act_max);
        }
        weights += 2 * depth;
        bias += 12;
    }
}

TINYFUSE_SHARED void tinyfuse_one_s4(tinyfuse_mve_job *job)
{
    tinyfuse_mve_pixel_s4(job, job->inputs.x0, job->out0);
}

TINYFUSE_SHARED void tinyfuse_two_s4(tinyfuse_mve_job *job)
{
    tinyfuse_mve_pixel_s4(job, job->inputs.x0, job->out0);
    tinyfuse_mve_pixel_s4(job, job->inputs.x1, job->out1);
}

#endif

/* Computes all channels of one or two pixels whose inputs and outputs lie side by side. */
TINYFUSE_INLINE void tinyfuse_mve_pixels_s4(tinyfuse_mve_job *job, const tinyfuse_matmul_2x4_mve *p, const int8_t *in,
                                            int32_t pixels, int8_t *out)
{
    job->inputs.x0 = in;
    job->out0 = out;
    job->channels_left = p->out_c;
    if (pixels > 1) {
        job->inputs.x1 = in + p->depth;
        job->out1 = out + p->out_c;
        tinyfuse_two_s4(job);
    } else {
        tinyfuse_one_s4(job);
    }
}

TINYFUSE_INLINE void tinyfuse_mve_start_s4(tinyfuse_mve_job *job, const tinyfuse_matmul_2x4_mve *p,
                                           const int8_t *weights, const int32_t *channels)
{
    tinyfuse_mve_start(job, p, weights, channels, TINYFUSE_MVE_EACH);
    job->group_bytes = 2 * p->depth;
}

/* Computes what tinyfuse_pointwise_2x4_mve_s8 does, from int4 weights and a scale per channel. */
TINYFUSE_SHARED void tinyfuse_pointwise_mve_s4(const tinyfuse_matmul_2x4_mve *p, const int8_t *in, int32_t pixels,
                                               int8_t *out, const int8_t *weights, const int32_t *channels)
{
    tinyfuse_mve_job job;
    tinyfuse_mve_start_s4(&job, p, weights, channels);
    for (; pixels > 0; pixels -= 2) {
        const int32_t some = tinyfuse_min(pixels, 2);
        job.bias = channels; /* one pixel uses it up */
        tinyfuse_mve_pixels_s4(&job, p, in, some, out);
        in += some * p->depth;
        out += some * p->out_c;
    }
}

/* Computes what tinyfuse_conv_2x4_mve_row_s8 does, from int4 weights. */
TINYFUSE_SHARED void tinyfuse_conv_mve_row_s4(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                              const int8_t *weights, const int32_t *channels, void *scratch)
{
    const int32_t depth = p->kernel_h * p->kernel_w * p->in_c;
    const tinyfuse_matmul_2x4_mve m = {depth, p->out_c, p->out_zero_point, p->act_min, p->act_max};
    const int8_t **const rows =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int8_t *const windows = (int8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES;
    tinyfuse_mve_job job;
    int32_t x;
    tinyfuse_window_rows_mve(p, in, y, rows);
    tinyfuse_mve_start_s4(&job, &m, weights, channels);
    for (x = 0; x + 1 < p->out_w; x += 2) {
        tinyfuse_window_mve(p, rows, x, windows);
        tinyfuse_window_mve(p, rows, x + 1, windows + depth);
        tinyfuse_mve_pixels_s4(&job, &m, windows, 2, out_row);
        out_row += 2 * p->out_c;
    }
    if (x < p->out_w) {
        tinyfuse_window_mve(p, rows, x, windows);
        tinyfuse_mve_pixels_s4(&job, &m, windows, 1, out_row);
    }
}

#endif
