/* 2D convolution for Helium, int8 NHWC, one output row a call, with weights that stay in registers for a row of
   pixels: three taps of a kernel row for sixteen input channels and two output channels. A column is read once for
   all windows that contain it. A window's partial sums, of other kernel rows and channels, are kept in scratch. One
   group, at most three neighbouring columns a window, stride 1.

   weights  [out_c / 2][kernel_h][ceil(in_c / 16)][2][3][16], zeros beyond the window and in_c
   channels [out_c][3] int32 as in tinyfuse_matmul_4x2_mve.h; out_c is even */
#ifndef TINYFUSE_CONV_WEIGHT_STATIONARY_MVE_H
#define TINYFUSE_CONV_WEIGHT_STATIONARY_MVE_H

#include "tinyfuse_conv_2x4_mve.h"
#include "tinyfuse_matmul_4x2_mve.h"

/* at most, of a window: columns; input channels at a time; pixels that are requantized together, the fewest of a row */
enum { TINYFUSE_WEIGHT_STATIONARY_TAPS = 3 };
enum { TINYFUSE_WEIGHT_STATIONARY_BLOCK = 16 };
enum { TINYFUSE_WEIGHT_STATIONARY_PIXELS = 4 };
/* columns of a loop iteration; bytes of code of a column, where sums begin and where they go on */
enum { TINYFUSE_WEIGHT_STATIONARY_ITERATION = 6 };
enum { TINYFUSE_WEIGHT_STATIONARY_FIRST_CODE = 32, TINYFUSE_WEIGHT_STATIONARY_MORE_CODE = 36 };
/* bytes of a pixel's sums in scratch, for two channels */
enum { TINYFUSE_WEIGHT_STATIONARY_SUMS_BYTES = 8 };

/* A row. The assembly loads the first five fields by one LDM, `back` to `quads` by another one, and pairs: iterations and
   skip_more, out and channels, act_min and act_max. */
typedef struct {
    const int8_t *columns; /* [passes][pixels + 2][16]; a pass is a kernel row's block of channels */
    int32_t *sums;         /* [1 + pixels][2]; before those of the first pixel is room for what isn't needed */
    int32_t passes;
    int32_t skip_first;    /* bytes of code that the first iteration leaves out, in the first pass */
    int32_t iterations;
    int32_t skip_more;     /* the same in the other passes */
    int8_t *out;           /* the first pixel's next two channels */
    const int32_t *channels;
    int32_t act_min, act_max;
    int32_t back;          /* pixels that the last four have in common with those before; 0: there are no last four */
    int32_t step;          /* bytes from four pixels to the next ones */
    int32_t out_zero_point;
    int32_t quads;         /* whole groups of four pixels */
    int32_t back_out;      /* bytes of the outputs of `back` pixels */
    uint16_t places[8];    /* offsets from `out` of both channels of the pixels 0, 2, 0, 2, 1, 3, 1, 3 */
    const int8_t *weights;
    const int32_t *channels_end;
    int32_t pixels;
} tinyfuse_weight_stationary;

#if TINYFUSE_MVE

/* A column, for the sums of three windows: its last, its second and its first one, which begins or goes on. */
#define TINYFUSE_WEIGHT_STATIONARY_STEP(last0, last1, second0, second1, first0, first1, load, begin)     \
    "vldrb.8 q0, [r1], #16\n\t" load                                                               \
    "vmladava.s8 " last0 ", q0, q4\n\t"                                                            \
    "vmladava.s8 " last1 ", q0, q7\n\t"                                                            \
    "vmladava.s8 " second0 ", q0, q3\n\t"                                                          \
    "vmladava.s8 " second1 ", q0, q6\n\t"                                                          \
    begin ".s8 " first0 ", q0, q2\n\t"                                                             \
    begin ".s8 " first1 ", q0, q5\n\t"                                                             \
    "strd " last0 ", " last1 ", [r3], #8\n\t"
#define TINYFUSE_WEIGHT_STATIONARY_BEGIN(last0, last1, second0, second1, first0, first1)                 \
    TINYFUSE_WEIGHT_STATIONARY_STEP(last0, last1, second0, second1, first0, first1, "", "vmladav")
#define TINYFUSE_WEIGHT_STATIONARY_GO_ON(last0, last1, second0, second1, first0, first1)                 \
    TINYFUSE_WEIGHT_STATIONARY_STEP(last0, last1, second0, second1, first0, first1,                      \
                       "ldrd " first0 ", " first1 ", [r3, #16]\n\t", "vmladava")

/* A pass over a row's columns at r1. r3: the sums; r5: weights; r9: what the first iteration leaves out; r12: iterations.
   q2 to q4: the first channel's weights; q5 to q7: the second one's. The first column begins the first window alone,
   wherever the iteration is entered; the last two columns end the last two windows. */
#define TINYFUSE_WEIGHT_STATIONARY_PASS(load, begin, step)                                               \
    "vldrb.8 q2, [r5], #96\n\t"                                                                    \
    "vldrb.8 q0, [r1], #16\n\t" load                                                               \
    "vldrb.8 q5, [r5, #-48]\n\t"                                                                   \
    begin ".s8 r0, q0, q2\n\t"                                                                     \
    "vldrb.8 q3, [r5, #-80]\n\t"                                                                   \
    begin ".s8 r2, q0, q5\n\t"                                                                     \
    "vldrb.8 q4, [r5, #-64]\n\t"                                                                   \
    "mov r4, r0\n\t"                                                                               \
    "mov r6, r2\n\t"                                                                               \
    "vldrb.8 q6, [r5, #-32]\n\t"                                                                   \
    "mov r8, r0\n\t"                                                                               \
    "mov r10, r2\n\t"                                                                              \
    "vldrb.8 q7, [r5, #-16]\n\t"                                                                   \
    "dls lr, r12\n\t"                                                                              \
    "add pc, r9\n\t"                                                                               \
    "nop\n\t"                                                                                      \
    "2:\n\t"                                                                                       \
    ".rept 2\n\t"                                                                                  \
    step("r0", "r2", "r4", "r6", "r8", "r10")                                                      \
    step("r4", "r6", "r8", "r10", "r0", "r2")                                                      \
    step("r8", "r10", "r0", "r2", "r4", "r6")                                                      \
    ".endr\n\t"                                                                                    \
    "le lr, 2b\n\t"                                                                                \
    "vldrb.8 q0, [r1], #16\n\t"                                                                    \
    "vmladava.s8 r0, q0, q4\n\t"                                                                   \
    "vmladava.s8 r2, q0, q7\n\t"                                                                   \
    "vldrb.8 q1, [r1], #16\n\t"                                                                    \
    "vmladava.s8 r4, q0, q3\n\t"                                                                   \
    "vmladava.s8 r6, q0, q6\n\t"                                                                   \
    "strd r0, r2, [r3], #8\n\t"                                                                    \
    "vmladava.s8 r4, q1, q4\n\t"                                                                   \
    "vmladava.s8 r6, q1, q7\n\t"                                                                   \
    "strd r4, r6, [r3], #8\n\t"

#define TINYFUSE_WEIGHT_STATIONARY_FIELD(field) [field] "i"(offsetof(tinyfuse_weight_stationary, field))

/* Computes all channels of a row. r11: the job, which is on the stack, too. Then r3: sums; r1: out; r7: channels; q2
   to q4: biases, multipliers and shifts of both channels by turns; q5: places; q7: the least output, r2: the
   greatest. */
#define TINYFUSE_WEIGHT_STATIONARY_ALL(round, bounds, clamp)                                             \
    __asm volatile(TINYFUSE_ASM_BEGIN                                                              \
                   "ldr r5, [r0, %[weights]]\n\t"                                                  \
                   "1:\n\t"                                                                        \
                   "ldr r11, [sp]\n\t"                                                             \
                   "ldm r11, {r1, r3, r7, r9, r12}\n\t"                                            \
                   TINYFUSE_WEIGHT_STATIONARY_PASS("", "vmladav", TINYFUSE_WEIGHT_STATIONARY_BEGIN)            \
                   "subs r7, #1\n\t"                                                               \
                   "beq 4f\n\t"                                                                    \
                   "3:\n\t"                                                                        \
                   "ldr r11, [sp]\n\t"                                                             \
                   "ldrd r12, r9, [r11, %[iterations]]\n\t"                                        \
                   "ldr r3, [r11, %[sums]]\n\t"                                                    \
                   TINYFUSE_WEIGHT_STATIONARY_PASS("ldrd r0, r2, [r3, #8]\n\t", "vmladava", TINYFUSE_WEIGHT_STATIONARY_GO_ON)\
                   "subs r7, #1\n\t"                                                               \
                   "bne 3b\n\t"                                                                    \
                   "4:\n\t"                                                                        \
                   "ldr r11, [sp]\n\t"                                                             \
                   "ldrd r1, r7, [r11, %[out]]\n\t"                                                \
                   "ldr r3, [r11, %[sums]]\n\t"                                                    \
                   "vldrw.u32 q5, [r11, %[places]]\n\t"                                            \
                   "ldm r7!, {r0, r2, r4, r6, r8, r10}\n\t"                                        \
                   "vmov q2[2], q2[0], r0, r0\n\t"                                                 \
                   "vmov q2[3], q2[1], r6, r6\n\t"                                                 \
                   "vmov q3[2], q3[0], r2, r2\n\t"                                                 \
                   "vmov q3[3], q3[1], r8, r8\n\t"                                                 \
                   "vmov q4[2], q4[0], r4, r4\n\t"                                                 \
                   "vmov q4[3], q4[1], r10, r10\n\t"                                               \
                   "adds r0, r1, #2\n\t"                                                           \
                   "strd r0, r7, [r11, %[out]]\n\t"                                                \
                   bounds                                                                          \
                   "add r0, r11, %[back]\n\t"                                                      \
                   "ldm r0, {r4, r6, r8, r10}\n\t"                                                 \
                   "adds r3, #8\n\t"                                                               \
                   "dls lr, r10\n\t"                                                               \
                   "5:\n\t"                                                                        \
                   "vldrw.u32 q0, [r3], #16\n\t"                                                   \
                   "vldrw.u32 q1, [r3], #16\n\t"                                                   \
                   "vadd.i32 q0, q0, q2\n\t"                                                       \
                   "vadd.i32 q1, q1, q2\n\t"                                                       \
                   "vqrdmulh.s32 q0, q0, q3\n\t"                                                   \
                   "vqrdmulh.s32 q1, q1, q3\n\t" round                                             \
                   "vrshl.s32 q0, q0, q4\n\t"                                                      \
                   "vrshl.s32 q1, q1, q4\n\t"                                                      \
                   "vqmovnb.s32 q0, q0\n\t"                                                        \
                   "vqmovnt.s32 q0, q1\n\t"                                                        \
                   "vqadd.s16 q0, q0, r8\n\t" clamp                                                \
                   "vstrb.16 q0, [r1, q5]\n\t"                                                     \
                   "add r1, r6\n\t"                                                                \
                   "le lr, 5b\n\t"                                                                 \
                   "cbz r4, 6f\n\t"                                                                \
                   "sub r3, r3, r4, lsl #3\n\t"                                                    \
                   "ldr r0, [r11, %[back_out]]\n\t"                                                \
                   "subs r1, r0\n\t"                                                               \
                   "movs r4, #0\n\t"                                                               \
                   "movs r0, #1\n\t"                                                               \
                   "dls lr, r0\n\t"                                                                \
                   "b 5b\n\t"                                                                      \
                   "6:\n\t"                                                                        \
                   "ldr r0, [r11, %[channels_end]]\n\t"                                            \
                   "cmp r7, r0\n\t"                                                                \
                   "bne 1b\n\t" TINYFUSE_ASM_END                                                   \
                   :                                                                               \
                   : "r"(arguments), TINYFUSE_WEIGHT_STATIONARY_FIELD(weights), TINYFUSE_WEIGHT_STATIONARY_FIELD(iterations), \
                     TINYFUSE_WEIGHT_STATIONARY_FIELD(sums), TINYFUSE_WEIGHT_STATIONARY_FIELD(out), TINYFUSE_WEIGHT_STATIONARY_FIELD(places), \
                     TINYFUSE_WEIGHT_STATIONARY_FIELD(act_min), TINYFUSE_WEIGHT_STATIONARY_FIELD(back),       \
                     TINYFUSE_WEIGHT_STATIONARY_FIELD(back_out), TINYFUSE_WEIGHT_STATIONARY_FIELD(channels_end) \
                   : TINYFUSE_ASM_CLOBBERS, TINYFUSE_CLOBBERS_P0 "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7")

/* VRSHL rounds halves up, so that a negative value is first lowered by one. */
#define TINYFUSE_WEIGHT_STATIONARY_ROUND_AWAY                                                            \
    "vshr.s32 q6, q0, #31\n\t"                                                                     \
    "vadd.i32 q0, q0, q6\n\t"                                                                      \
    "vshr.s32 q6, q1, #31\n\t"                                                                     \
    "vadd.i32 q1, q1, q6\n\t"

#define TINYFUSE_WEIGHT_STATIONARY_FUNCTION(form, code)                                            \
    TINYFUSE_ASM_FUNCTION(tinyfuse_weight_stationary_##form, tinyfuse_weight_stationary, code)

TINYFUSE_WEIGHT_STATIONARY_FUNCTION(
    each, TINYFUSE_WEIGHT_STATIONARY_ALL(TINYFUSE_WEIGHT_STATIONARY_ROUND_AWAY,
                                         "ldrd r0, r2, [r11, %[act_min]]\n\t"
                                         "vdup.16 q7, r0\n\t",
                                         "vdup.16 q1, r2\n\t"
                                         "vmax.s16 q0, q0, q7\n\t"
                                         "vmin.s16 q0, q0, q1\n\t"))
TINYFUSE_WEIGHT_STATIONARY_FUNCTION(saturated, TINYFUSE_WEIGHT_STATIONARY_ALL(TINYFUSE_WEIGHT_STATIONARY_ROUND_AWAY, "",
                                                                              TINYFUSE_4X2_MVE_SATURATE))
TINYFUSE_WEIGHT_STATIONARY_FUNCTION(rectified, TINYFUSE_WEIGHT_STATIONARY_ALL("", "", TINYFUSE_4X2_MVE_SATURATE))

/* Computes all channels of a row. */
TINYFUSE_INLINE void tinyfuse_weight_stationary_all(tinyfuse_weight_stationary *job, int form)
{
    TINYFUSE_4X2_MVE_OF(form, tinyfuse_weight_stationary)(job);
}

/* Copies sixteen channels of `count` columns, `lanes` of which exist in the input. Returns the place after them. */
TINYFUSE_INLINE int8_t *tinyfuse_weight_stationary_copy(int8_t *to, const int8_t *from, int32_t count, int32_t step,
                                                        int32_t lanes)
{
    __asm volatile("vctp.8 %[lanes]\n\t"
                   "dls lr, %[count]\n\t"
                   "1:\n\t"
                   "vpst\n\t"
                   "vldrbt.8 q0, [%[from]]\n\t"
                   "add %[from], %[step]\n\t"
                   "vstrb.8 q0, [%[to]], #16\n\t"
                   "le lr, 1b\n\t"
                   : [to] "+l"(to), [from] "+l"(from)
                   : [count] "r"(count), [step] "r"(step), [lanes] "r"(lanes)
                   : "lr", "cc", "memory", TINYFUSE_CLOBBERS_P0 "q0");
    return to;
}

#else

TINYFUSE_SHARED void tinyfuse_weight_stationary_all(tinyfuse_weight_stationary *job, int form)
{
    const int32_t row_bytes = (job->pixels + TINYFUSE_WEIGHT_STATIONARY_TAPS - 1) * TINYFUSE_WEIGHT_STATIONARY_BLOCK;
    const int32_t filter = TINYFUSE_WEIGHT_STATIONARY_TAPS * TINYFUSE_WEIGHT_STATIONARY_BLOCK; /* neighbours in both */
    const int32_t out_c = job->places[4]; /* from a pixel to the next */
    int32_t x, i, k, pass;
    (void)form;
    for (; job->channels != job->channels_end; job->channels += 6) {
        for (x = 0; x < job->pixels; ++x) {
            for (i = 0; i < 2; ++i) {
                const int32_t *const channel = job->channels + 3 * i;
                uint32_t sum = (uint32_t)channel[0]; /* wraps */
                for (pass = 0; pass < job->passes; ++pass) {
                    const int8_t *const from = job->columns + pass * row_bytes + x * TINYFUSE_WEIGHT_STATIONARY_BLOCK;
                    const int8_t *const w = job->weights + (2 * pass + i) * filter;
                    for (k = 0; k < filter; ++k) {
                        sum += (uint32_t)(from[k] * w[k]);
                    }
                }
                job->out[x * out_c + i] = (int8_t)tinyfuse_clamp(
                    tinyfuse_requantize((int32_t)sum, channel[1], channel[2]) + job->out_zero_point, job->act_min,
                    job->act_max);
            }
        }
        job->weights += 2 * job->passes * filter;
        job->out += 2;
    }
}

TINYFUSE_INLINE int8_t *tinyfuse_weight_stationary_copy(int8_t *to, const int8_t *from, int32_t count, int32_t step,
                                                        int32_t lanes)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        memset(to, 0, TINYFUSE_WEIGHT_STATIONARY_BLOCK);
        memcpy(to, from + i * step, (size_t)lanes);
        to += TINYFUSE_WEIGHT_STATIONARY_BLOCK;
    }
    return to;
}

#endif

/* Writes the columns of all passes of output row y, padding included. */
TINYFUSE_SHARED void tinyfuse_weight_stationary_columns(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *to)
{
    const int32_t all = p->out_w + TINYFUSE_WEIGHT_STATIONARY_TAPS - 1;
    const int32_t first = tinyfuse_min(p->pad_left, all);
    const int32_t inside = tinyfuse_min(p->in_w, all - first), after = all - first - inside;
    int32_t ky, c;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        const int8_t *const row =
            iy >= 0 && iy < p->in_h ? tinyfuse_ring_row(in, iy, p->in_ring, p->in_w * p->in_c) : NULL;
        for (c = 0; c < p->in_c; c += TINYFUSE_WEIGHT_STATIONARY_BLOCK) {
            const int32_t lanes = tinyfuse_min(p->in_c - c, TINYFUSE_WEIGHT_STATIONARY_BLOCK);
            if (row == NULL || inside == 0) {
                to = tinyfuse_fill(to, p->in_zero_point, all * TINYFUSE_WEIGHT_STATIONARY_BLOCK);
                continue;
            }
            to = tinyfuse_fill(to, p->in_zero_point, first * TINYFUSE_WEIGHT_STATIONARY_BLOCK);
            to = p->in_c == TINYFUSE_WEIGHT_STATIONARY_BLOCK
                     ? tinyfuse_append_mve(to, row, inside * TINYFUSE_WEIGHT_STATIONARY_BLOCK)
                     : tinyfuse_weight_stationary_copy(to, row + c, inside, p->in_c, lanes);
            to = tinyfuse_fill(to, p->in_zero_point, after * TINYFUSE_WEIGHT_STATIONARY_BLOCK);
        }
    }
}

/* Computes output row y. Reads only the input rows of y's own window, writes only the out_w * out_c bytes of out_row;
   out_w is at least four. `form` is a constant of tinyfuse_matmul_4x2_mve.h. scratch, aligned to 4: (1 + out_w) * 8
   bytes of sums, then kernel_h * ceil(in_c / 16) * (out_w + 2) * 16 bytes of columns. */
TINYFUSE_SHARED void tinyfuse_conv_weight_stationary_mve_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                                int8_t *out_row, const int8_t *weights,
                                                                const int32_t *channels, void *scratch, int form)
{
    const int32_t pixels = p->out_w, steps = pixels - 1; /* the first pixel's column is in front of the loop */
    const int32_t rest = pixels % TINYFUSE_WEIGHT_STATIONARY_PIXELS;
    const int32_t skipped = (TINYFUSE_WEIGHT_STATIONARY_ITERATION - steps % TINYFUSE_WEIGHT_STATIONARY_ITERATION) %
                            TINYFUSE_WEIGHT_STATIONARY_ITERATION;
    int8_t *const columns = (int8_t *)scratch + (1 + pixels) * TINYFUSE_WEIGHT_STATIONARY_SUMS_BYTES;
    tinyfuse_weight_stationary job;
    int32_t i;
    tinyfuse_weight_stationary_columns(p, in, y, columns);
    job.columns = columns;
    job.sums = (int32_t *)scratch;
    job.passes = p->kernel_h * ((p->in_c + TINYFUSE_WEIGHT_STATIONARY_BLOCK - 1) / TINYFUSE_WEIGHT_STATIONARY_BLOCK);
    job.skip_first = skipped * TINYFUSE_WEIGHT_STATIONARY_FIRST_CODE;
    job.iterations = (steps + skipped) / TINYFUSE_WEIGHT_STATIONARY_ITERATION;
    job.skip_more = skipped * TINYFUSE_WEIGHT_STATIONARY_MORE_CODE;
    job.out = out_row;
    job.channels = channels;
    job.act_min = p->act_min;
    job.act_max = p->act_max;
    job.quads = pixels / TINYFUSE_WEIGHT_STATIONARY_PIXELS;
    job.step = TINYFUSE_WEIGHT_STATIONARY_PIXELS * p->out_c;
    job.out_zero_point = p->out_zero_point;
    job.back = rest > 0 ? TINYFUSE_WEIGHT_STATIONARY_PIXELS - rest : 0;
    job.back_out = job.back * p->out_c;
    for (i = 0; i < 8; ++i) {
        job.places[i] = (uint16_t)(((i & 1) * 2 + (i >> 2)) * p->out_c + (i >> 1 & 1));
    }
    job.weights = weights;
    job.channels_end = channels + 3 * p->out_c;
    job.pixels = pixels;
    tinyfuse_weight_stationary_all(&job, form);
}

#endif
