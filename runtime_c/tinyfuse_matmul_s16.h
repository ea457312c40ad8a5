/* The inner product of convolutions and fully connected layers of int16 data: columns of inputs times packed int8
   weights, where every sum, bias included, is proven to stay within int32.

   A block computes 1, 2 or 3 output pixels, two output channels at a time, so that every weight is converted once for
   all pixels.

   columns  [depth / 4][pixels][4] int16, aligned to 4; values beyond the layer's own depth may be anything.
   weights  [out_c / 2][depth / 4][2][4] int8, then [depth] for the last of an odd count of channels; each four in the
            order 0 2 1 3, of which SXTB16 makes 0 1 and 2 3; zeros beyond the layer's own depth. Aligned to 4.
   channels [out_c] tinyfuse_scale_s16 or tinyfuse_requant. */
#ifndef TINYFUSE_MATMUL_S16_H
#define TINYFUSE_MATMUL_S16_H

#include "tinyfuse_matmul.h"

/* Forms of requantization: one rounding, as of int64 sums, or two in the bounded form (tinyfuse_requantize.h);
   saturated to int16, or to its values that aren't negative. */
enum { TINYFUSE_ONCE, TINYFUSE_ONCE_POSITIVE, TINYFUSE_TWICE, TINYFUSE_TWICE_POSITIVE };

/* One output channel of the forms with one rounding: real multiplier * 2^32. The 16 bits of a multiplier, shifted
   left: so one rounding high multiplication is the whole of tinyfuse_requantize_s64. */
typedef struct {
    int32_t bias;
    int32_t multiplier;
} tinyfuse_scale_s16;

/* The job of a block; assembly knows the offsets. `before` and `last` are addresses of channels: of the one before
   the first, if there were one, and of the last pair's second. */
typedef struct {
    uintptr_t before;
    int16_t *out;
    int32_t stride; /* elements between the outputs of two pixels */
    uintptr_t last;
} tinyfuse_matmul_s16;

#if TINYFUSE_DSP
typedef char tinyfuse_check_matmul_s16[offsetof(tinyfuse_matmul_s16, last) == 12 ? 1 : -1];
#endif

/* Properties of a form, which is a constant. */
TINYFUSE_INLINE int tinyfuse_rounds_once(int form)
{
    return form == TINYFUSE_ONCE || form == TINYFUSE_ONCE_POSITIVE;
}

TINYFUSE_INLINE int tinyfuse_positive(int form)
{
    return form == TINYFUSE_ONCE_POSITIVE || form == TINYFUSE_TWICE_POSITIVE;
}

TINYFUSE_INLINE tinyfuse_matmul_s16 tinyfuse_matmul_s16_of(int32_t out_c, int16_t *out, int32_t stride,
                                                           const void *channels, int form)
{
    const uintptr_t size = tinyfuse_rounds_once(form) ? sizeof(tinyfuse_scale_s16) : sizeof(tinyfuse_requant);
    tinyfuse_matmul_s16 m;
    m.before = (uintptr_t)channels - size;
    m.out = out;
    m.stride = stride;
    m.last = m.before + (uintptr_t)(out_c & ~1) * size;
    return m;
}

/* Returns the channels from the `first` on. */
TINYFUSE_INLINE const void *tinyfuse_channels_from(const void *channels, int32_t first, int form)
{
    return tinyfuse_rounds_once(form) ? (const void *)((const tinyfuse_scale_s16 *)channels + first)
                                      : (const void *)((const tinyfuse_requant *)channels + first);
}

/* Returns the value that a channel's sum begins with. */
TINYFUSE_INLINE int32_t tinyfuse_bias_s16(const void *channels, int32_t channel, int form)
{
    return tinyfuse_rounds_once(form) ? ((const tinyfuse_scale_s16 *)channels)[channel].bias
                                      : ((const tinyfuse_requant *)channels)[channel].bias;
}

/* Returns the stored output of a channel's sum, without a clamp narrower than the form's. */
TINYFUSE_INLINE int16_t tinyfuse_output_s16(const void *channels, int32_t channel, int32_t sum, int form)
{
    int32_t scaled;
    if (tinyfuse_rounds_once(form) != 0) {
        const tinyfuse_scale_s16 *const c = (const tinyfuse_scale_s16 *)channels + channel;
        scaled = tinyfuse_high_multiply_add(0, sum, c->multiplier);
    } else {
        const tinyfuse_requant *const c = (const tinyfuse_requant *)channels + channel;
        const int32_t with_half = sum + (int32_t)((uint32_t)1 << c->shift) + (sum >> 31);
        scaled = (tinyfuse_high_multiply_add(with_half, sum, c->multiplier) >> c->shift) >> 1;
    }
    return (int16_t)tinyfuse_clamp(scaled, tinyfuse_positive(form) ? 0 : -32768, 32767);
}

/* Returns `sum` plus the products of four inputs of a column with four packed weights. Sums may wrap on their way. */
TINYFUSE_INLINE int32_t tinyfuse_products_of_four(int32_t sum, const int16_t *x, const int8_t *w)
{
    const uint32_t first = (uint32_t)(x[0] * w[0]) + (uint32_t)(x[1] * w[2]);
    const uint32_t second = (uint32_t)(x[2] * w[1]) + (uint32_t)(x[3] * w[3]);
    return (int32_t)((uint32_t)sum + first + second);
}

#if TINYFUSE_DSP

/* Computes pairs of channels for a constant count of pixels; the registers of a pair's loop are those of
   tinyfuse_matmul.h. On the stack, in words from the stack pointer: end of the columns, `before`,
   tinyfuse_matmul_s16, columns, depth.

   Initial sums of a pair, and their outputs: r0 is the tinyfuse_matmul_s16, r9 the channel before the pair; in the
   end r9 is its second channel, r10 out, r11 stride, r12 last. */
#define TINYFUSE_BIASES_ONCE "ldr r2, [r9, #8]\n\tldr r3, [r9, #16]\n\t"
#define TINYFUSE_ROUND_ONCE(s) "smmulr " s ", " s ", lr\n\tssat " s ", #16, " s "\n\t"
#define TINYFUSE_ROUND_ONCE_POSITIVE(s) "smmulr " s ", " s ", lr\n\tusat " s ", #15, " s "\n\t"
#define TINYFUSE_OUTPUT_ONCE(n, round)                           \
    "ldm r0, {r9, r10, r11, r12}\n\t"                            \
    "ldr lr, [r9, #12]\n\t" TINYFUSE_EVERY_##n(round, "r2", "r4", "r6") \
    "ldr lr, [r9, #20]\n\t" TINYFUSE_EVERY_##n(round, "r3", "r5", "r7") \
    "add r9, r9, #16\n\t"
/* r10 multiplier, r11 shift, r12 1 << shift */
#define TINYFUSE_BIASES_TWICE "ldr r2, [r9, #12]\n\tldr r3, [r9, #24]\n\t"
#define TINYFUSE_ROUNDS(s)                \
    "add lr, " s ", r12\n\t"              \
    "add lr, lr, " s ", asr #31\n\t"      \
    "smmlar " s ", " s ", r10, lr\n\t"    \
    "asr " s ", " s ", r11\n\t"
#define TINYFUSE_ROUND_TWICE(s) TINYFUSE_ROUNDS(s) "ssat " s ", #16, " s ", asr #1\n\t"
#define TINYFUSE_ROUND_TWICE_POSITIVE(s) TINYFUSE_ROUNDS(s) "usat " s ", #15, " s ", asr #1\n\t"
#define TINYFUSE_OUTPUT_TWICE(n, round)                                      \
    "ldr r9, [r0]\n\t"                                                       \
    "mov r8, #1\n\t"                                                         \
    "ldrd r10, r11, [r9, #16]\n\t"                                           \
    "lsl r12, r8, r11\n\t" TINYFUSE_EVERY_##n(round, "r2", "r4", "r6")       \
    "ldrd r10, r11, [r9, #28]\n\t"                                           \
    "lsl r12, r8, r11\n\t" TINYFUSE_EVERY_##n(round, "r3", "r5", "r7")       \
    "add r9, r9, #24\n\t"                                                    \
    "ldrd r10, r11, [r0, #4]\n\t"                                            \
    "ldr r12, [r0, #12]\n\t"
/* stores, which leave r10 at the pair after */
#define TINYFUSE_PUT_1_S16 "strh r2, [r10], #2\n\tstrh r3, [r10], #2\n\t"
#define TINYFUSE_PUT_2_S16 \
    TINYFUSE_PUT_1_S16 "add r12, r10, r11, lsl #1\n\tstrh r4, [r12, #-4]\n\tstrh r5, [r12, #-2]\n\t"
#define TINYFUSE_PUT_3_S16 \
    TINYFUSE_PUT_2_S16 "add r12, r12, r11, lsl #1\n\tstrh r6, [r12, #-4]\n\tstrh r7, [r12, #-2]\n\t"

/* A loop of four steps. It is entered in its middle, so that only whole iterations remain: the bits of depth that
   count single steps and pairs of them go to N and C. */
#define TINYFUSE_PAIRS_S16(n, roundings, round)                                              \
    {                                                                                        \
        register tinyfuse_matmul_s16 *r0 __asm("r0") = p;                                    \
        register const int8_t *r1 __asm("r1") = weights;                                     \
        register const int16_t *r2 __asm("r2") = columns;                                    \
        register int32_t r3 __asm("r3") = depth;                                             \
        __asm volatile("push {r0, r2-r11, lr}\n\t"                                           \
                       "ldr r9, [r0]\n\t" TINYFUSE_END_##n                                   \
                       "push {r4, r9}\n\t"                                                   \
                       "b 6f\n\t"                                                            \
                       "5:\n\t"                                                              \
                       "bmi 2f\n\t"                                                          \
                       "b 3f\n\t"                                                            \
                       "6:\n\t" TINYFUSE_BIASES_##roundings                                  \
                       "ldrd r0, r9, [sp, #12]\n\t" TINYFUSE_COPY_##n                        \
                       "lsls r9, r9, #29\n\t"                                                \
                       "bcs 5b\n\t"                                                          \
                       "bmi 4f\n\t"                                                          \
                       "1:\n\t" TINYFUSE_WEIGHTS_WIDE TINYFUSE_STEP_##n##_S16                \
                       "2:\n\t" TINYFUSE_WEIGHTS_WIDE TINYFUSE_STEP_##n##_S16                \
                       "3:\n\t" TINYFUSE_WEIGHTS_WIDE TINYFUSE_STEP_##n##_S16                \
                       "4:\n\t" TINYFUSE_WEIGHTS_WIDE TINYFUSE_STEP_##n##_S16                \
                       "ldr r12, [sp]\n\t"                                                   \
                       "cmp r0, r12\n\t"                                                     \
                       "bne 1b\n\t"                                                          \
                       "ldr r0, [sp, #8]\n\t" TINYFUSE_OUTPUT_##roundings(n, round)          \
                       "cmp r9, r12\n\t" /* nothing below sets flags */                      \
                       TINYFUSE_PUT_##n##_S16                                                \
                       "strd r9, r10, [r0]\n\t"                                              \
                       "bne 6b\n\t"                                                          \
                       "pop {r4, r9}\n\t"                                                    \
                       "str r9, [r0]\n\t"                                                    \
                       "pop {r0, r2-r11, lr}\n\t"                                            \
                       : "+r"(r1)                                                            \
                       : "r"(r0), "r"(r2), "r"(r3)                                           \
                       : "r12", "cc", "memory");                                             \
    }
#define TINYFUSE_STEP_1_S16 TINYFUSE_STEP_1
#define TINYFUSE_STEP_2_S16 TINYFUSE_STEP_2
#define TINYFUSE_STEP_3_S16 TINYFUSE_STEP_3
#define TINYFUSE_PAIRS_FORMS_S16(n)                                \
    if (form == TINYFUSE_ONCE) {                                   \
        TINYFUSE_PAIRS_S16(n, ONCE, TINYFUSE_ROUND_ONCE)           \
    } else if (form == TINYFUSE_ONCE_POSITIVE) {                   \
        TINYFUSE_PAIRS_S16(n, ONCE, TINYFUSE_ROUND_ONCE_POSITIVE)  \
    } else if (form == TINYFUSE_TWICE) {                           \
        TINYFUSE_PAIRS_S16(n, TWICE, TINYFUSE_ROUND_TWICE)         \
    } else {                                                       \
        TINYFUSE_PAIRS_S16(n, TWICE, TINYFUSE_ROUND_TWICE_POSITIVE) \
    }

/* Computes all channels but the last of an odd count, for `pixels` pixels; out_c > 1. */
TINYFUSE_INLINE void tinyfuse_matmul_pairs_s16(tinyfuse_matmul_s16 *p, const int8_t *weights, const int16_t *columns,
                                               int32_t depth, int32_t out_c, const void *channels, int pixels,
                                               int form)
{
    (void)out_c;
    (void)channels;
    if (pixels == 3) {
        TINYFUSE_PAIRS_FORMS_S16(3)
    } else if (pixels == 2) {
        TINYFUSE_PAIRS_FORMS_S16(2)
    } else {
        TINYFUSE_PAIRS_FORMS_S16(1)
    }
}

#else

/* C twin of the assembly above, with the same results. */
TINYFUSE_INLINE void tinyfuse_matmul_pairs_s16(const tinyfuse_matmul_s16 *p, const int8_t *w, const int16_t *columns,
                                               int32_t depth, int32_t out_c, const void *channels, int pixels,
                                               int form)
{
    int16_t *const out = p->out;
    int32_t o, k;
    for (o = 0; o + 1 < out_c; o += 2) {
        const int16_t *x = columns;
        int32_t s0 = tinyfuse_bias_s16(channels, o, form), s2 = s0, s4 = s0;
        int32_t s1 = tinyfuse_bias_s16(channels, o + 1, form), s3 = s1, s5 = s1;
        for (k = 0; k < depth; k += 4) {
            s0 = tinyfuse_products_of_four(s0, x, w);
            s1 = tinyfuse_products_of_four(s1, x, w + 4);
            if (pixels > 1) {
                s2 = tinyfuse_products_of_four(s2, x + 4, w);
                s3 = tinyfuse_products_of_four(s3, x + 4, w + 4);
            }
            if (pixels > 2) {
                s4 = tinyfuse_products_of_four(s4, x + 8, w);
                s5 = tinyfuse_products_of_four(s5, x + 8, w + 4);
            }
            x += 4 * pixels;
            w += 8;
        }
        out[o] = tinyfuse_output_s16(channels, o, s0, form);
        out[o + 1] = tinyfuse_output_s16(channels, o + 1, s1, form);
        if (pixels > 1) {
            out[p->stride + o] = tinyfuse_output_s16(channels, o, s2, form);
            out[p->stride + o + 1] = tinyfuse_output_s16(channels, o + 1, s3, form);
        }
        if (pixels > 2) {
            out[2 * p->stride + o] = tinyfuse_output_s16(channels, o, s4, form);
            out[2 * p->stride + o + 1] = tinyfuse_output_s16(channels, o + 1, s5, form);
        }
    }
}

#endif

/* Computes the last of an odd count of channels. */
TINYFUSE_INLINE void tinyfuse_matmul_odd_s16(int16_t *out, int32_t out_c, int32_t stride, const int8_t *weights,
                                             const int16_t *columns, int32_t depth, const void *channels,
                                             int32_t pixels, int form)
{
    const int32_t last = out_c - 1;
    const int8_t *const w = weights + depth * last;
    int32_t i, k;
    for (i = 0; i < pixels; ++i) {
        const int16_t *x = columns + 4 * i;
        int32_t sum = tinyfuse_bias_s16(channels, last, form);
        for (k = 0; k < depth; k += 4) {
            sum = tinyfuse_products_of_four(sum, x, w + k);
            x += 4 * pixels;
        }
        out[i * stride + last] = tinyfuse_output_s16(channels, last, sum, form);
    }
}

/* Computes one block: all out_c channels of 1 to 3 pixels, `stride` elements from a pixel to the next. `depth` is a
   multiple of 4 and more than 0, `form` a constant. */
TINYFUSE_INLINE void tinyfuse_matmul_pixels_s16(const int8_t *weights, const int16_t *columns, int32_t depth,
                                                int16_t *out, int32_t out_c, int32_t stride, const void *channels,
                                                int32_t pixels, int form)
{
    if (out_c > 1) {
        tinyfuse_matmul_s16 m = tinyfuse_matmul_s16_of(out_c, out, stride, channels, form);
        if (pixels == 3) {
            tinyfuse_matmul_pairs_s16(&m, weights, columns, depth, out_c, channels, 3, form);
        } else if (pixels == 2) {
            tinyfuse_matmul_pairs_s16(&m, weights, columns, depth, out_c, channels, 2, form);
        } else {
            tinyfuse_matmul_pairs_s16(&m, weights, columns, depth, out_c, channels, 1, form);
        }
    }
    if ((out_c & 1) != 0) {
        tinyfuse_matmul_odd_s16(out, out_c, stride, weights, columns, depth, channels, pixels, form);
    }
}

#define TINYFUSE_MATMUL_S16(name, form)                                                                          \
    TINYFUSE_SHARED void name(const int8_t *weights, const int16_t *columns, int32_t depth, int16_t *out,        \
                              int32_t out_c, int32_t stride, const void *channels, int32_t pixels)               \
    {                                                                                                            \
        tinyfuse_matmul_pixels_s16(weights, columns, depth, out, out_c, stride, channels, pixels, form);         \
    }
TINYFUSE_MATMUL_S16(tinyfuse_matmul_once, TINYFUSE_ONCE)
TINYFUSE_MATMUL_S16(tinyfuse_matmul_once_positive, TINYFUSE_ONCE_POSITIVE)
TINYFUSE_MATMUL_S16(tinyfuse_matmul_twice, TINYFUSE_TWICE)
TINYFUSE_MATMUL_S16(tinyfuse_matmul_twice_positive, TINYFUSE_TWICE_POSITIVE)

/* Computes one block; the form is a constant. */
TINYFUSE_INLINE void tinyfuse_matmul_block_s16(const int8_t *weights, const int16_t *columns, int32_t depth,
                                               int16_t *out, int32_t out_c, int32_t stride, const void *channels,
                                               int32_t pixels, int form)
{
    if (form == TINYFUSE_ONCE) {
        tinyfuse_matmul_once(weights, columns, depth, out, out_c, stride, channels, pixels);
    } else if (form == TINYFUSE_ONCE_POSITIVE) {
        tinyfuse_matmul_once_positive(weights, columns, depth, out, out_c, stride, channels, pixels);
    } else if (form == TINYFUSE_TWICE) {
        tinyfuse_matmul_twice(weights, columns, depth, out, out_c, stride, channels, pixels);
    } else {
        tinyfuse_matmul_twice_positive(weights, columns, depth, out, out_c, stride, channels, pixels);
    }
}

/* Copies count int16, a multiple of 4, four to each `step` of them from `to`. Returns the next place. */
TINYFUSE_INLINE int16_t *tinyfuse_spread_s16(const int16_t *from, int32_t count, int16_t *to, int32_t step)
{
    const int16_t *const end = from + count;
#if TINYFUSE_DSP
    uint32_t a, b;
    const int32_t bytes = 2 * step;
    if (count > 0) {
        __asm volatile("1:\n\t"
                       "ldr %[a], [%[from]], #4\n\t"
                       "ldr %[b], [%[from]], #4\n\t"
                       "cmp %[from], %[end]\n\t"
                       "strd %[a], %[b], [%[to]]\n\t"
                       "add %[to], %[to], %[bytes]\n\t"
                       "bne 1b"
                       : [from] "+&r"(from), [to] "+&r"(to), [a] "=&r"(a), [b] "=&r"(b) /* & apart from `end` */
                       : [bytes] "r"(bytes), [end] "r"(end)
                       : "cc", "memory");
    }
#else
    for (; from != end; from += 4) {
        to[0] = from[0];
        to[1] = from[1];
        to[2] = from[2];
        to[3] = from[3];
        to += step;
    }
#endif
    return to;
}

/* Clamps `count` outputs in place: where the clamp is narrower than the form's. */
TINYFUSE_SHARED void tinyfuse_clamp_row_s16(int16_t *row, int32_t count, int32_t low, int32_t high)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        row[i] = (int16_t)tinyfuse_clamp(row[i], low, high);
    }
}

/* Returns whether a clamp is narrower than the form's. */
TINYFUSE_INLINE int tinyfuse_narrower_s16(int32_t low, int32_t high, int form)
{
    return high < 32767 || low > (tinyfuse_positive(form) ? 0 : -32768);
}

#endif
