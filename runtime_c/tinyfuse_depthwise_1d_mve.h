/* Depthwise convolution with depth multiplier 1 and stride 1 for Helium, int8, of a whole image of one column:
   [in_w][in_c] to [out_w][in_c]. The pixels of sixteen channels are copied to scratch in groups of four (quads), a
   channel's four in a word. Four words are a vector of sixteen pixels, which holds the windows of four outputs, at
   most thirteen pixels long: it is multiplied by the same weights, shifted by a byte from output to output. Eight
   outputs of a channel are computed at a time.

   weights  [in_c][16], zeros beyond the window
   channels [in_c][3] int32: bias with -zero point * sum of weights folded in, multiplier, shift (positive to
            the left) */
#ifndef TINYFUSE_DEPTHWISE_1D_MVE_H
#define TINYFUSE_DEPTHWISE_1D_MVE_H

#include "tinyfuse_conv_2x4_mve.h"
#include "tinyfuse_matmul_4x2_mve.h"

/* at most, of a window; at a time: outputs, channels; pixels in a word */
enum { TINYFUSE_1D_TAPS = 13 };
enum { TINYFUSE_1D_OUTPUTS = 8 };
enum { TINYFUSE_1D_CHANNELS = 16 };
enum { TINYFUSE_1D_WORD = 4 };

/* `pad_left` pixels of the input's zero point come before the line, and as many after it as windows need. */
typedef struct {
    int32_t in_w, in_c, out_w, kernel_w, pad_left, in_zero_point, out_zero_point, act_min, act_max;
} tinyfuse_1d;

/* Sixteen channels, or the last ones. The assembly loads from `quads` to `to` by one LDM, `out` to `channels` by another
   one, and act_min and act_max as a pair. */
typedef struct {
    int32_t lanes;              /* channels at hand */
    const int8_t *const *quads; /* the pixels' first channels, by quads */
    int32_t first;              /* of the channels */
    int32_t words;              /* quads of pixels */
    int8_t *to;                 /* their words, [words][16] */
    int8_t *out;                /* the first output's first channel */
    const int8_t *weights;
    const int32_t *channels;
    int32_t in_c, outputs, out_zero_point;
    int32_t act_min, act_max;
} tinyfuse_1d_job;

#if TINYFUSE_MVE

/* Four pixels. */
#define TINYFUSE_1D_FOUR                                                                           \
    "ldm r1!, {r5, r6, r7, r8}\n\t"                                                                \
    "add r5, r2\n\t"                                                                               \
    "add r6, r2\n\t"                                                                               \
    "add r7, r2\n\t"                                                                               \
    "add r8, r2\n\t"                                                                               \
    "vpstttt\n\t"                                                                                  \
    "vldrbt.8 q0, [r5]\n\t"                                                                        \
    "vldrbt.8 q1, [r6]\n\t"                                                                        \
    "vldrbt.8 q2, [r7]\n\t"                                                                        \
    "vldrbt.8 q3, [r8]\n\t"                                                                        \
    "vst40.8 {q0, q1, q2, q3}, [r4]\n\t"                                                           \
    "vst41.8 {q0, q1, q2, q3}, [r4]\n\t"                                                           \
    "vst42.8 {q0, q1, q2, q3}, [r4]\n\t"                                                           \
    "vst43.8 {q0, q1, q2, q3}, [r4]!\n\t"

/* Outputs 0 and 4, or those that are one, two or three further, of the pixels q0 and q1. */
#define TINYFUSE_1D_DOT(low, high)                                                                 \
    "vmladav.s8 " low ", q0, q2\n\t"                                                               \
    "vmladav.s8 " high ", q1, q2\n\t"
#define TINYFUSE_1D_SHIFT "vshlc q2, r1, #8\n\t"

#define TINYFUSE_1D_FIELD(field) [field] "i"(offsetof(tinyfuse_1d_job, field))

/* Computes all outputs of a job's channels. Then r1: zero; r3: out; r5: weights, up to r9; r7: channels; r11: the
   zero point; q4: where eight outputs lie; q5 and q6: the clamp; q7: the first words, from the channel before. On the
   stack: the place of eight outputs, how many are left, the job. */
#define TINYFUSE_1D_ALL(begin, round, clamp)                                                       \
    __asm volatile(TINYFUSE_ASM_BEGIN                                                              \
                   "add r4, r0, %[quads]\n\t"                                                      \
                   "ldm r4, {r1, r2, r3, r4}\n\t"                                                  \
                   "ldr r9, [r0, %[lanes]]\n\t"                                                    \
                   "vctp.8 r9\n\t"                                                                 \
                   "dls lr, r3\n\t"                                                                \
                   "1:\n\t"                                                                        \
                   TINYFUSE_1D_FOUR                                                                \
                   "le lr, 1b\n\t"                                                                 \
                   "movs r2, #0\n\t"                                                               \
                   "vidup.u32 q7, r2, #8\n\t"                                                      \
                   "vshl.i32 q7, q7, #3\n\t"                                                       \
                   "ldr r2, [r0, %[to]]\n\t"                                                       \
                   "subs r2, #4\n\t"                                                               \
                   "vadd.i32 q7, q7, r2\n\t"                                                       \
                   "ldr r4, [r0, %[in_c]]\n\t"                                                     \
                   "movs r2, #0\n\t"                                                               \
                   "vidup.u16 q4, r2, #1\n\t"                                                      \
                   "vmul.i16 q4, q4, r4\n\t"                                                       \
                   "ldr r3, [r0, %[out]]\n\t"                                                      \
                   "ldr r2, [r0, %[outputs]]\n\t"                                                  \
                   "ldr r11, [r0, %[out_zero_point]]\n\t"                                          \
                   begin "movs r1, #0\n\t"                                                         \
                   "push {r2, r3}\n\t"                                                             \
                   "2:\n\t"                                                                        \
                   "ldrd r2, r3, [sp]\n\t"                                                         \
                   "ldr r0, [sp, #8]\n\t"                                                          \
                   "ldrd r5, r7, [r0, %[weights]]\n\t"                                             \
                   "ldr r9, [r0, %[lanes]]\n\t"                                                    \
                   "add r9, r5, r9, lsl #4\n\t"                                                    \
                   "vctp.16 r2\n\t"                                                                \
                   "3:\n\t"                                                                        \
                   "vldrw.u32 q0, [q7, #4]!\n\t"                                                   \
                   "vldrb.8 q2, [r5], #16\n\t"                                                     \
                   "vldrw.u32 q1, [q7, #64]\n\t"                                                   \
                   TINYFUSE_1D_DOT("r0", "r8") TINYFUSE_1D_SHIFT TINYFUSE_1D_DOT("r2", "r10")      \
                   TINYFUSE_1D_SHIFT TINYFUSE_1D_DOT("r4", "r12")                                  \
                   TINYFUSE_1D_SHIFT TINYFUSE_1D_DOT("r6", "lr")                                   \
                   "vmov q2[2], q2[0], r0, r8\n\t"                                                 \
                   "vmov q2[3], q2[1], r4, r12\n\t"                                                \
                   "vmov q3[2], q3[0], r2, r10\n\t"                                                \
                   "vmov q3[3], q3[1], r6, lr\n\t"                                                 \
                   "ldm r7!, {r0, r2, r4}\n\t"                                                     \
                   "vadd.i32 q2, q2, r0\n\t"                                                       \
                   "vadd.i32 q3, q3, r0\n\t" round                                                        \
                   "vqadd.s16 q2, q2, r11\n\t" clamp                                               \
                   "vpst\n\t"                                                                      \
                   "vstrbt.16 q2, [r3, q4]\n\t"                                                    \
                   "adds r3, #1\n\t"                                                               \
                   "cmp r5, r9\n\t"                                                                \
                   "bne 3b\n\t"                                                                    \
                   "ldr r0, [sp, #8]\n\t"                                                          \
                   "ldrd r2, r3, [sp]\n\t"                                                         \
                   "ldr r4, [r0, %[lanes]]\n\t"                                                    \
                   "ldr r6, [r0, %[in_c]]\n\t"                                                     \
                   "rsb r4, r4, #32\n\t"                                                           \
                   "lsls r4, r4, #2\n\t"                                                           \
                   "vadd.i32 q7, q7, r4\n\t"                                                       \
                   "add r3, r3, r6, lsl #3\n\t"                                                    \
                   "subs r2, #8\n\t"                                                               \
                   "strd r2, r3, [sp]\n\t"                                                         \
                   "bgt 2b\n\t"                                                                    \
                   "pop {r2, r3}\n\t"                                                              \
                   TINYFUSE_ASM_END                                                                \
                   :                                                                               \
                   : "r"(arguments), TINYFUSE_1D_FIELD(lanes), TINYFUSE_1D_FIELD(quads),           \
                     TINYFUSE_1D_FIELD(to), TINYFUSE_1D_FIELD(in_c), TINYFUSE_1D_FIELD(out),       \
                     TINYFUSE_1D_FIELD(outputs), TINYFUSE_1D_FIELD(out_zero_point),                \
                     TINYFUSE_1D_FIELD(weights), TINYFUSE_1D_FIELD(act_min)                        \
                   : TINYFUSE_ASM_CLOBBERS, TINYFUSE_CLOBBERS_P0 "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7")

/* Sums q2 and q3 times r2, shifted by r4, to 16 bits in q2. VRSHL rounds halves up, so that a negative value is first
   lowered by one (tinyfuse_matmul_4x2_mve.h). */
#define TINYFUSE_1D_ROUND_UP                                                                       \
    "vqrdmulh.s32 q2, q2, r2\n\t"                                                                  \
    "vqrdmulh.s32 q3, q3, r2\n\t"                                                                  \
    "vrshl.s32 q2, r4\n\t"                                                                         \
    "vrshl.s32 q3, r4\n\t"                                                                         \
    "vqmovnb.s32 q2, q2\n\t"                                                                       \
    "vqmovnt.s32 q2, q3\n\t"
#define TINYFUSE_1D_ROUND_AWAY                                                                     \
    "vshr.s32 q0, q2, #31\n\t"                                                                     \
    "vqrdmlah.s32 q0, q2, r2\n\t"                                                                  \
    "vshr.s32 q2, q3, #31\n\t"                                                                     \
    "vqrdmlah.s32 q2, q3, r2\n\t"                                                                  \
    "vrshl.s32 q0, r4\n\t"                                                                         \
    "vrshl.s32 q2, r4\n\t"                                                                         \
    "vqmovnt.s32 q2, q2\n\t"                                                                       \
    "vqmovnb.s32 q2, q0\n\t"
/* Any clamp. */
TINYFUSE_ASM_FUNCTION(tinyfuse_1d_each, tinyfuse_1d_job,
                      TINYFUSE_1D_ALL("ldrd r2, r4, [r0, %[act_min]]\n\t"
                                      "vdup.16 q5, r2\n\t"
                                      "vdup.16 q6, r4\n\t"
                                      "ldr r2, [r0, %[outputs]]\n\t",
                                      TINYFUSE_1D_ROUND_AWAY,
                                      "vmax.s16 q2, q2, q5\n\t"
                                      "vmin.s16 q2, q2, q6\n\t"))
TINYFUSE_ASM_FUNCTION(tinyfuse_1d_saturated, tinyfuse_1d_job,
                      TINYFUSE_1D_ALL("", TINYFUSE_1D_ROUND_AWAY, "vqmovnb.s16 q2, q2\n\t"))
TINYFUSE_ASM_FUNCTION(tinyfuse_1d_rectified, tinyfuse_1d_job,
                      TINYFUSE_1D_ALL("", TINYFUSE_1D_ROUND_UP, "vqmovnb.s16 q2, q2\n\t"))

/* Computes all outputs of a job's channels. */
TINYFUSE_INLINE void tinyfuse_1d_all(tinyfuse_1d_job *job, int form)
{
    TINYFUSE_4X2_MVE_OF(form, tinyfuse_1d)(job);
}

#else

TINYFUSE_SHARED void tinyfuse_1d_all(const tinyfuse_1d_job *job, int form)
{
    int32_t c, x, k;
    (void)form;
    for (c = 0; c < job->lanes; ++c) {
        const int32_t *const channel = job->channels + 3 * c;
        for (x = 0; x < job->outputs; ++x) {
            uint32_t sum = (uint32_t)channel[0]; /* wraps */
            for (k = 0; k < TINYFUSE_1D_TAPS; ++k) {
                if (x + k < TINYFUSE_1D_WORD * job->words) {
                    sum += (uint32_t)(job->quads[x + k][job->first + c] * job->weights[TINYFUSE_1D_CHANNELS * c + k]);
                }
            }
            job->out[x * job->in_c + c] =
                (int8_t)tinyfuse_clamp(tinyfuse_requantize((int32_t)sum, channel[1], channel[2]) + job->out_zero_point,
                                       job->act_min, job->act_max);
        }
    }
}

#endif

/* Computes the whole line. out must not overlap the input. `form` is a constant of tinyfuse_matmul_4x2_mve.h.
   scratch, aligned to 4: a pointer of 4 bytes for each of the out_w - 1 + kernel_w pixels that windows read, rounded
   up to a multiple of four; 64 bytes for each four pixels of the outputs, rounded up to eight outputs, and for three
   more quads; in_c bytes where windows read padding. */
TINYFUSE_SHARED void tinyfuse_depthwise_1d_mve_s8(const tinyfuse_1d *p, const int8_t *in, int8_t *out,
                                                  const int8_t *weights, const int32_t *channels, void *scratch,
                                                  int form)
{
    const int32_t pixels = p->out_w - 1 + p->kernel_w, words = (pixels + TINYFUSE_1D_WORD - 1) / TINYFUSE_1D_WORD;
    const int32_t listed = TINYFUSE_1D_WORD * words;
    const int32_t outputs = (p->out_w + TINYFUSE_1D_OUTPUTS - 1) / TINYFUSE_1D_OUTPUTS * TINYFUSE_1D_OUTPUTS;
    const int8_t **const list = (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)listed * sizeof *list);
    int8_t *const copies = (int8_t *)scratch + listed * TINYFUSE_POINTER_BYTES;
    int8_t *const padding = copies + (outputs / TINYFUSE_1D_WORD + 3) * TINYFUSE_1D_WORD * TINYFUSE_1D_CHANNELS;
    tinyfuse_1d_job job;
    int32_t x, c;
    if (p->pad_left > 0 || pixels - p->pad_left > p->in_w) {
        memset(padding, p->in_zero_point, (size_t)p->in_c);
    }
    for (x = 0; x < listed; ++x) {
        const int32_t pixel = tinyfuse_min(x, pixels - 1) - p->pad_left; /* the last one fills up */
        list[x] = pixel >= 0 && pixel < p->in_w ? in + pixel * p->in_c : padding;
    }
    job.quads = list;
    job.words = words;
    job.to = copies;
    job.in_c = p->in_c;
    job.outputs = p->out_w;
    job.out_zero_point = p->out_zero_point;
    job.act_min = p->act_min;
    job.act_max = p->act_max;
    for (c = 0; c < p->in_c; c += TINYFUSE_1D_CHANNELS) {
        job.lanes = tinyfuse_min(p->in_c - c, TINYFUSE_1D_CHANNELS);
        job.first = c;
        job.out = out + c;
        job.weights = weights + TINYFUSE_1D_CHANNELS * c;
        job.channels = channels + 3 * c;
        tinyfuse_1d_all(&job, form);
    }
}

#endif
