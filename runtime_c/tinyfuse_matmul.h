/* The inner product of convolutions and fully connected layers: columns of int16 inputs times packed
   int8 weights, requantized in the bounded form (tinyfuse_requantize.h).

   A block computes 1, 2 or 3 output pixels, two output channels at a time, so that every weight is
   widened once for all pixels. Layouts:

   columns  [depth / 4][pixels][4] int16; the four inputs of a pixel in the order 0 2 1 3, which is
            what SXTB16 makes of four bytes. Aligned to 8.
   weights  [out_c / 2][depth / 4][2][4] int8, then [depth] for the last of an odd count of channels;
            zeros beyond the layer's own depth. Aligned to 4.
   channels out_c entries.
*/
#ifndef TINYFUSE_MATMUL_H
#define TINYFUSE_MATMUL_H

#include "tinyfuse_requantize.h"

/* `depth` is a multiple of 4; `rounding` is 2 * output zero point + 1. */
typedef struct {
    int32_t depth, out_c, rounding;
} tinyfuse_matmul;

/* Widens 4 * words bytes, words > 0: four int16 in the order 0 2 1 3 to each `step` bytes from `to`.
   Returns the next place. */
TINYFUSE_INLINE int16_t *tinyfuse_widen(const int8_t *from, int32_t words, int16_t *to, int32_t step)
{
#if TINYFUSE_DSP
    const int8_t *const end = from + 4 * words;
    uint32_t even, odd;
    __asm volatile("tst %[words], #1\n\t"
                   "bne 2f\n\t"
                   "1:\n\t"
                   "ldr %[odd], [%[from]], #4\n\t"
                   "sxtb16 %[even], %[odd]\n\t"
                   "sxtb16 %[odd], %[odd], ror #8\n\t"
                   "strd %[even], %[odd], [%[to]]\n\t"
                   "add %[to], %[step]\n\t"
                   "2:\n\t"
                   "ldr %[odd], [%[from]], #4\n\t"
                   "sxtb16 %[even], %[odd]\n\t"
                   "sxtb16 %[odd], %[odd], ror #8\n\t"
                   "strd %[even], %[odd], [%[to]]\n\t"
                   "add %[to], %[step]\n\t"
                   "cmp %[from], %[end]\n\t"
                   "bne 1b"
                   : [from] "+r"(from), [to] "+r"(to), [even] "=&r"(even), [odd] "=&r"(odd)
                   : [words] "r"(words), [step] "r"(step), [end] "r"(end)
                   : "cc", "memory");
    return to;
#else
    for (; words > 0; --words) {
        to[0] = from[0];
        to[1] = from[2];
        to[2] = from[1];
        to[3] = from[3];
        from += 4;
        to += step / 2;
    }
    return to;
#endif
}

/* One pair of channels after the other, for a constant count of pixels. The sums of the pixels' first
   channel are s0, s2, s4, those of the second s1, s3, s5. */
#if TINYFUSE_DSP

/* w: weights of two channels; e, f: their widened even halves; wa, wb become the odd halves. */
#define TINYFUSE_WEIGHTS                         \
    "ldrd %[wa], %[wb], [%[w]], #8\n\t"          \
    "sxtb16 %[e], %[wa]\n\t"                     \
    "sxtb16 %[f], %[wb]\n\t"                     \
    "sxtb16 %[wa], %[wa], ror #8\n\t"            \
    "sxtb16 %[wb], %[wb], ror #8\n\t"
#define TINYFUSE_PRODUCTS(even, odd, a, b)          \
    "smlad %[" a "], %[" even "], %[e], %[" a "]\n\t"  \
    "smlad %[" b "], %[" even "], %[f], %[" b "]\n\t"  \
    "smlad %[" a "], %[" odd "], %[wa], %[" a "]\n\t"  \
    "smlad %[" b "], %[" odd "], %[wb], %[" b "]\n\t"
#define TINYFUSE_PIXEL(a, b) "ldrd %[i], %[j], [%[x]], #8\n\t" TINYFUSE_PRODUCTS("i", "j", a, b)
#define TINYFUSE_STEP_3 \
    TINYFUSE_WEIGHTS TINYFUSE_PIXEL("s0", "s1") TINYFUSE_PIXEL("s2", "s3") TINYFUSE_PIXEL("s4", "s5")
#define TINYFUSE_STEP_2                          \
    TINYFUSE_WEIGHTS                             \
    "ldm %[x]!, {r8, r9, r10, r11}\n\t"          \
    TINYFUSE_PRODUCTS("i", "j", "s0", "s1") TINYFUSE_PRODUCTS("k", "l", "s2", "s3")
#define TINYFUSE_STEP_1 TINYFUSE_WEIGHTS TINYFUSE_PIXEL("s0", "s1")

/* tinyfuse_requantize_bounded: wa multiplier, wb shift, f rounding << shift. */
#define TINYFUSE_STORED_RAMP(s)                  \
    "add %[i], %[" s "], %[f]\n\t"               \
    "smmlar %[" s "], %[" s "], %[wa], %[i]\n\t" \
    "asr %[" s "], %[wb]\n\t"                    \
    "ssat %[" s "], #8, %[" s "], asr #1\n\t"
#define TINYFUSE_STORED_PLAIN(s)                 \
    "add %[i], %[" s "], %[f]\n\t"               \
    "add %[i], %[i], %[" s "], asr #31\n\t"      \
    "smmlar %[" s "], %[" s "], %[wa], %[i]\n\t" \
    "asr %[" s "], %[wb]\n\t"                    \
    "ssat %[" s "], #8, %[" s "], asr #1\n\t"

#define TINYFUSE_COPY_1 ""
#define TINYFUSE_COPY_2 "mov %[s2], %[s0]\n\tmov %[s3], %[s1]\n\t"
#define TINYFUSE_COPY_3 TINYFUSE_COPY_2 "mov %[s4], %[s0]\n\tmov %[s5], %[s1]\n\t"
#define TINYFUSE_EVERY_1(do_it, a, b, c) do_it(a)
#define TINYFUSE_EVERY_2(do_it, a, b, c) do_it(a) do_it(b)
#define TINYFUSE_EVERY_3(do_it, a, b, c) do_it(a) do_it(b) do_it(c)
#define TINYFUSE_PUT_1 "strb %[s0], [%[x]]\n\tstrb %[s1], [%[x], #1]\n\t"
#define TINYFUSE_PUT_2 \
    TINYFUSE_PUT_1 "add %[f], %[x], %[i]\n\tstrb %[s2], [%[f]]\n\tstrb %[s3], [%[f], #1]\n\t"
#define TINYFUSE_PUT_3 \
    TINYFUSE_PUT_2 "add %[f], %[i]\n\tstrb %[s4], [%[f]]\n\tstrb %[s5], [%[f], #1]\n\t"

/* `bytes` is 2 * depth, what a pair's weights take. The loop takes four steps; the first time it is
   entered so far from its end that whole loops remain: bit 3 of `bytes` goes to N, bit 4 to C. */
#define TINYFUSE_PAIRS(n, stored)                                                              \
    "6:\n\t"                                                                                   \
    "ldr %[i], %[channels]\n\t"                                                                \
    "ldr %[f], %[bytes]\n\t"                                                                   \
    "ldr %[s0], [%[i]]\n\t"                                                                    \
    "ldr %[s1], [%[i], #12]\n\t"                                                               \
    "ldr %[x], %[columns]\n\t"                                                                 \
    "add %[i], %[w], %[f]\n\t"                                                                 \
    "str %[i], %[end]\n\t" TINYFUSE_COPY_##n                                                   \
    "lsls %[f], %[f], #28\n\t"                                                                 \
    "bcc 5f\n\t"                                                                               \
    "bmi 2f\n\t"                                                                               \
    "b 3f\n\t"                                                                                 \
    "5:\n\t"                                                                                   \
    "bmi 4f\n\t"                                                                               \
    "1:\n\t" TINYFUSE_STEP_##n                                                                 \
    "2:\n\t" TINYFUSE_STEP_##n                                                                 \
    "3:\n\t" TINYFUSE_STEP_##n                                                                 \
    "4:\n\t" TINYFUSE_STEP_##n                                                                 \
    "ldr %[f], %[end]\n\t"                                                                     \
    "cmp %[w], %[f]\n\t"                                                                       \
    "bne 1b\n\t"                                                                               \
    "ldr %[x], %[channels]\n\t"                                                                \
    "ldr %[e], %[rounding]\n\t"                                                                \
    "ldrd %[wa], %[wb], [%[x], #4]\n\t"                                                        \
    "lsl %[f], %[e], %[wb]\n\t" TINYFUSE_EVERY_##n(stored, "s0", "s2", "s4")                   \
    "ldrd %[wa], %[wb], [%[x], #16]\n\t"                                                       \
    "lsl %[f], %[e], %[wb]\n\t" TINYFUSE_EVERY_##n(stored, "s1", "s3", "s5")                   \
    "add %[x], #24\n\t"                                                                        \
    "ldr %[i], %[last]\n\t"                                                                    \
    "str %[x], %[channels]\n\t"                                                                \
    "cmp %[x], %[i]\n\t" /* nothing below sets flags */                                        \
    "ldr %[x], %[out]\n\t"                                                                     \
    "ldr %[i], %[out_c]\n\t" TINYFUSE_PUT_##n                                                  \
    "add %[x], #2\n\t"                                                                         \
    "str %[x], %[out]\n\t"                                                                     \
    "bne 6b"
#define TINYFUSE_PAIRS_ASM(n, stored, more_sums)                                           \
    __asm volatile(TINYFUSE_PAIRS(n, stored)                                               \
                   : [w] "+r"(w), [channels] "+m"(channels), [out] "+m"(out),              \
                     [end] "=m"(end), [s0] "=&r"(s0),                                      \
                     [s1] "=&r"(s1), [x] "=&r"(x), [wa] "=&r"(wa), [wb] "=&r"(wb),         \
                     [e] "=&r"(e), [f] "=&r"(f), [i] "=&r"(i), [j] "=&r"(j)more_sums       \
                   : [columns] "m"(columns), [bytes] "m"(bytes), [rounding] "m"(rounding), \
                     [out_c] "m"(out_c), [last] "m"(last)                                  \
                   : "cc", "memory")
#define TINYFUSE_SUMS_1
#define TINYFUSE_SUMS_2 , [s2] "=&r"(s2), [s3] "=&r"(s3)
#define TINYFUSE_SUMS_3 TINYFUSE_SUMS_2, [s4] "=&r"(s4), [s5] "=&r"(s5)

/* All channels but the last of an odd count, for `pixels` pixels; returns the weights behind. */
TINYFUSE_INLINE const int8_t *tinyfuse_matmul_pairs(const tinyfuse_matmul *p,
                                                    const int16_t *columns, const int8_t *w,
                                                    const tinyfuse_requant *channels, int8_t *out,
                                                    int pixels, int ramp)
{
    const int32_t bytes = 2 * p->depth, out_c = p->out_c, rounding = p->rounding;
    const int8_t *end;
    const tinyfuse_requant *const last = channels + (out_c & ~1);
    int32_t s0, s1, s2, s3, s4, s5;
    uint32_t x, wa, wb, e, f;
    if (out_c < 2) {
        return w;
    }
    if (pixels == 2) {
        register uint32_t i __asm("r8");
        register uint32_t j __asm("r9");
        register uint32_t k __asm("r10");
        register uint32_t l __asm("r11");
#define TINYFUSE_SUMS_AND_PAIR TINYFUSE_SUMS_2, [k] "=&r"(k), [l] "=&r"(l)
        if (ramp) {
            TINYFUSE_PAIRS_ASM(2, TINYFUSE_STORED_RAMP, TINYFUSE_SUMS_AND_PAIR);
        } else {
            TINYFUSE_PAIRS_ASM(2, TINYFUSE_STORED_PLAIN, TINYFUSE_SUMS_AND_PAIR);
        }
    } else {
        uint32_t i, j;
        if (pixels == 3 && ramp) {
            TINYFUSE_PAIRS_ASM(3, TINYFUSE_STORED_RAMP, TINYFUSE_SUMS_3);
        } else if (pixels == 3) {
            TINYFUSE_PAIRS_ASM(3, TINYFUSE_STORED_PLAIN, TINYFUSE_SUMS_3);
        } else if (ramp) {
            TINYFUSE_PAIRS_ASM(1, TINYFUSE_STORED_RAMP, TINYFUSE_SUMS_1);
        } else {
            TINYFUSE_PAIRS_ASM(1, TINYFUSE_STORED_PLAIN, TINYFUSE_SUMS_1);
        }
    }
    return w;
}

#else

TINYFUSE_INLINE const int8_t *tinyfuse_matmul_pairs(const tinyfuse_matmul *p,
                                                    const int16_t *columns, const int8_t *w,
                                                    const tinyfuse_requant *channels, int8_t *out,
                                                    int pixels, int ramp)
{
    int32_t o, k;
    int i, j;
    for (o = 0; o + 1 < p->out_c; o += 2) {
        const int16_t *x = columns;
        int32_t s[6];
        for (i = 0; i < pixels; ++i) {
            s[2 * i] = channels[0].bias;
            s[2 * i + 1] = channels[1].bias;
        }
        for (k = 0; k < p->depth; k += 4) {
            for (i = 0; i < pixels; ++i) {
                s[2 * i] += x[0] * w[0] + x[1] * w[2] + x[2] * w[1] + x[3] * w[3];
                s[2 * i + 1] += x[0] * w[4] + x[1] * w[6] + x[2] * w[5] + x[3] * w[7];
                x += 4;
            }
            w += 8;
        }
        for (i = 0; i < pixels; ++i) {
            for (j = 0; j < 2; ++j) {
                out[i * p->out_c + j] = (int8_t)tinyfuse_requantize_bounded(
                    s[2 * i + j], channels[j].multiplier, channels[j].shift, p->rounding, ramp);
            }
        }
        out += 2;
        channels += 2;
    }
    return w;
}

#endif

/* One block: all channels of `pixels` (a constant) pixels, to out[pixels][out_c]. */
TINYFUSE_INLINE void tinyfuse_matmul_block(const tinyfuse_matmul *p, const int16_t *columns,
                                           const int8_t *weights, const tinyfuse_requant *channels,
                                           int8_t *out, int pixels, int ramp)
{
    const int8_t *w = tinyfuse_matmul_pairs(p, columns, weights, channels, out, pixels, ramp);
    if (p->out_c & 1) {
        const int32_t last = p->out_c - 1;
        const tinyfuse_requant *const r = channels + last;
        int i;
        for (i = 0; i < pixels; ++i) {
            const int16_t *x = columns + 4 * i;
            int32_t k, sum = r->bias;
            for (k = 0; k < p->depth; k += 4) {
                sum += x[0] * w[k] + x[1] * w[k + 2] + x[2] * w[k + 1] + x[3] * w[k + 3];
                x += 4 * pixels;
            }
            out[i * p->out_c + last] = (int8_t)tinyfuse_requantize_bounded(
                sum, r->multiplier, r->shift, p->rounding, ramp);
        }
    }
}

#define TINYFUSE_MATMUL(name, pixels, ramp)                                                        \
    TINYFUSE_SHARED void name(const tinyfuse_matmul *p, const int16_t *columns,                    \
                              const int8_t *weights, const tinyfuse_requant *channels,             \
                              int8_t *out)                                                         \
    {                                                                                              \
        tinyfuse_matmul_block(p, columns, weights, channels, out, pixels, ramp);                   \
    }
TINYFUSE_MATMUL(tinyfuse_matmul_3_ramp, 3, 1)
TINYFUSE_MATMUL(tinyfuse_matmul_2_ramp, 2, 1)
TINYFUSE_MATMUL(tinyfuse_matmul_1_ramp, 1, 1)
TINYFUSE_MATMUL(tinyfuse_matmul_3, 3, 0)
TINYFUSE_MATMUL(tinyfuse_matmul_2, 2, 0)
TINYFUSE_MATMUL(tinyfuse_matmul_1, 1, 0)

/* The block size that leaves no single pixel at the end of a row of two or more. */
TINYFUSE_INLINE int32_t tinyfuse_block_pixels(int32_t left)
{
    return left == 4 ? 2 : (left < 3 ? left : 3);
}

/* `ramp` is a constant: whether no output is below the zero point. */
TINYFUSE_INLINE void tinyfuse_matmul_pixels(const tinyfuse_matmul *p, const int16_t *columns,
                                            const int8_t *weights,
                                            const tinyfuse_requant *channels, int8_t *out,
                                            int32_t pixels, int ramp)
{
    if (pixels == 3) {
        (ramp ? tinyfuse_matmul_3_ramp : tinyfuse_matmul_3)(p, columns, weights, channels, out);
    } else if (pixels == 2) {
        (ramp ? tinyfuse_matmul_2_ramp : tinyfuse_matmul_2)(p, columns, weights, channels, out);
    } else {
        (ramp ? tinyfuse_matmul_1_ramp : tinyfuse_matmul_1)(p, columns, weights, channels, out);
    }
}

#endif
