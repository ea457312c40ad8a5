/* Depthwise convolution of int16 data, NHWC, one output row a call: depth multiplier 1, four channels at a time, where
   every sum, bias included, is proven to stay within int32. */
#ifndef TINYFUSE_DEPTHWISE_PACKED_S16_H
#define TINYFUSE_DEPTHWISE_PACKED_S16_H

#include "tinyfuse_depthwise_packed.h"
#include "tinyfuse_matmul_s16.h"

/* Computes quads of channels, `bytes` / 8 of them: tap t of the quad from channel c on lies at taps[t] + 2 * c.
   Weights are [quads][taps][4] int16, an even number of taps; channels are [quads][8]: four biases, four multipliers
   (of tinyfuse_scale_s16). Assembly knows the offsets. */
typedef struct {
    const int8_t *const *taps;
    const int8_t *const *end;
    const int16_t *weights;
    const int32_t *channels;
    int16_t *out;
    int32_t bytes;
} tinyfuse_depthwise_quads_job_s16;

#if TINYFUSE_DSP

typedef char tinyfuse_check_quads_job_s16[offsetof(tinyfuse_depthwise_quads_job_s16, bytes) == 20 ? 1 : -1];
/* r0 tinyfuse_depthwise_quads_job_s16; r1 taps; r2 weights; r3 channels, later multipliers; r4 to r7 sums; r8, r9 a tap's four
   inputs; r10, r11 its weights; r12 bytes that are done; lr end of the taps */
#define TINYFUSE_TAP_S16                  \
    "ldr r8, [r1], #4\n\t"                \
    "ldrd r10, r11, [r2], #8\n\t"         \
    "add r8, r8, r12\n\t"                 \
    "ldr r9, [r8, #4]\n\t"                \
    "ldr r8, [r8]\n\t"                    \
    "smlabb r4, r8, r10, r4\n\t"          \
    "smlatt r5, r8, r10, r5\n\t"          \
    "smlabb r6, r9, r11, r6\n\t"          \
    "smlatt r7, r9, r11, r7\n\t"
#define TINYFUSE_SIGNED_S16(s) "ssat " s ", #16, " s "\n\t"
#define TINYFUSE_POSITIVE_S16(s) "usat " s ", #15, " s "\n\t"
#define TINYFUSE_DEPTHWISE_QUADS_S16(saturate)                                     \
    __asm volatile(TINYFUSE_ASM_BEGIN                                              \
                   "ldrd r2, r3, [r0, #8]\n\t"                                     \
                   "mov r12, #0\n\t"                                               \
                   "1:\n\t"                                                        \
                   "ldrd r1, lr, [r0]\n\t"                                         \
                   "ldm r3!, {r4, r5, r6, r7}\n\t"                                 \
                   "2:\n\t" TINYFUSE_TAP_S16 TINYFUSE_TAP_S16                      \
                   "cmp r1, lr\n\t"                                                \
                   "bne 2b\n\t"                                                    \
                   "ldm r3!, {r8, r9, r10, r11}\n\t"                               \
                   "ldrd r1, lr, [r0, #16]\n\t"                                    \
                   "smmulr r4, r4, r8\n\t"                                         \
                   "smmulr r5, r5, r9\n\t"                                         \
                   "smmulr r6, r6, r10\n\t"                                        \
                   "smmulr r7, r7, r11\n\t" saturate("r4") saturate("r5")          \
                   saturate("r6") saturate("r7")                                   \
                   "pkhbt r4, r4, r5, lsl #16\n\t"                                 \
                   "pkhbt r6, r6, r7, lsl #16\n\t"                                 \
                   "add r1, r1, r12\n\t"                                           \
                   "add r12, r12, #8\n\t"                                          \
                   "cmp r12, lr\n\t"                                               \
                   "str r4, [r1]\n\t"                                              \
                   "str r6, [r1, #4]\n\t"                                          \
                   "bne 1b\n\t" TINYFUSE_ASM_END                                   \
                   :                                                               \
                   : "r"(arguments)                                                \
                   : TINYFUSE_ASM_CLOBBERS)

TINYFUSE_INLINE void tinyfuse_depthwise_quads_s16(const tinyfuse_depthwise_quads_job_s16 *p, int positive)
{
    TINYFUSE_ARGUMENT(const tinyfuse_depthwise_quads_job_s16 *, arguments, p);
    if (positive != 0) {
        TINYFUSE_DEPTHWISE_QUADS_S16(TINYFUSE_POSITIVE_S16);
    } else {
        TINYFUSE_DEPTHWISE_QUADS_S16(TINYFUSE_SIGNED_S16);
    }
}

#else

TINYFUSE_INLINE void tinyfuse_depthwise_quads_s16(const tinyfuse_depthwise_quads_job_s16 *p, int positive)
{
    const int16_t *w = p->weights;
    const int32_t *channels = p->channels;
    const int8_t *const *tap;
    int32_t at, i;
    for (at = 0; at < p->bytes; at += 8) {
        int32_t sums[4];
        int16_t *const out = p->out + at / 2;
        memcpy(sums, channels, sizeof sums);
        for (tap = p->taps; tap != p->end; ++tap) {
            int16_t x[4];
            memcpy(x, *tap + at, sizeof x);
            for (i = 0; i < 4; ++i) {
                sums[i] += x[i] * w[i];
            }
            w += 4;
        }
        for (i = 0; i < 4; ++i) {
            const int32_t scaled = tinyfuse_high_multiply_add(0, sums[i], channels[4 + i]);
            out[i] = (int16_t)tinyfuse_clamp(scaled, positive ? 0 : -32768, 32767);
        }
        channels += 8;
    }
}

#endif

/* Computes one pixel of in_c channels; the last four, where their count is no multiple of 4, end at in_c. */
TINYFUSE_INLINE void tinyfuse_depthwise_pixel_s16(const int8_t *const *taps, int32_t pairs, int32_t in_c,
                                                  const int16_t *weights, const int32_t *channels, int16_t *out,
                                                  int positive)
{
    const int32_t quads = in_c / 4;
    tinyfuse_depthwise_quads_job_s16 p;
    p.taps = taps;
    p.end = taps + 2 * pairs;
    p.weights = weights;
    p.channels = channels;
    p.out = out;
    p.bytes = 8 * quads;
    tinyfuse_depthwise_quads_s16(&p, positive);
    if ((in_c & 3) != 0) {
        int32_t i;
        for (i = 0; i < 4; ++i) {
            const int32_t c = in_c - 4 + i;
            int32_t sum = channels[8 * quads + i], t;
            for (t = 0; t < 2 * pairs; ++t) {
                sum += ((const int16_t *)(const void *)taps[t])[c] * weights[(quads * 2 * pairs + t) * 4 + i];
            }
            sum = tinyfuse_high_multiply_add(0, sum, channels[8 * quads + 4 + i]);
            out[c] = (int16_t)tinyfuse_clamp(sum, positive ? 0 : -32768, 32767);
        }
    }
}

#define TINYFUSE_DEPTHWISE_PIXEL_S16(name, positive)                                                              \
    TINYFUSE_SHARED void name(const int8_t *const *taps, int32_t pairs, int32_t in_c, const int16_t *weights,     \
                              const int32_t *channels, int16_t *out)                                              \
    {                                                                                                             \
        tinyfuse_depthwise_pixel_s16(taps, pairs, in_c, weights, channels, out, positive);                        \
    }
TINYFUSE_DEPTHWISE_PIXEL_S16(tinyfuse_depthwise_pixel_signed_s16, 0)
TINYFUSE_DEPTHWISE_PIXEL_S16(tinyfuse_depthwise_pixel_positive_s16, 1)

/* Computes output row y. Reads only the input rows of y's own window, writes only out_row. Weights and channels as
   tinyfuse_depthwise_quads_job_s16 has them; `form`, a constant, is TINYFUSE_ONCE or TINYFUSE_ONCE_POSITIVE. scratch,
   aligned to 8: 2 * pairs pointers of 4 bytes, then in_c zeros where any window reaches into the padding. */
TINYFUSE_INLINE void tinyfuse_depthwise_packed_row_s16(const tinyfuse_conv *p, const int16_t *in, int32_t y,
                                                       int16_t *out_row, const int16_t *weights,
                                                       const int32_t *channels, void *scratch, int form)
{
    const int32_t pairs = (p->kernel_h * p->kernel_w + 1) / 2;
    const int8_t **const taps =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, 2 * (size_t)pairs * sizeof *taps);
    int8_t *const padding = (int8_t *)scratch + 2 * pairs * TINYFUSE_POINTER_BYTES;
    const int rows_inside = tinyfuse_depthwise_rows_inside(p, y);
    tinyfuse_conv halves = *p; /* tinyfuse_depthwise_taps counts in bytes */
    int16_t *out = out_row;
    int32_t x;
    halves.in_c = 2 * p->in_c;
    if (!rows_inside || !tinyfuse_depthwise_columns_inside(p)) {
        memset(padding, 0, (size_t)halves.in_c);
    }
    for (x = 0; x < p->out_w; ++x) {
        tinyfuse_depthwise_next_taps(&halves, (const int8_t *)in, y, x, padding, taps, rows_inside);
        if (tinyfuse_positive(form) != 0) {
            tinyfuse_depthwise_pixel_positive_s16(taps, pairs, p->in_c, weights, channels, out);
        } else {
            tinyfuse_depthwise_pixel_signed_s16(taps, pairs, p->in_c, weights, channels, out);
        }
        out += p->in_c;
    }
    if (tinyfuse_narrower_s16(p->act_min, p->act_max, form) != 0) {
        tinyfuse_clamp_row_s16(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
    }
}

#endif
