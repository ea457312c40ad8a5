/* The inner product of convolutions and fully connected layers: columns of int16 inputs times packed
   int8 weights, requantized in the bounded form (tinyfuse_requantize.h).

   A block computes 1, 2 or 3 output pixels, two output channels at a time, so that every weight is
   widened once for all pixels. Layouts:

   columns  [depth / 4][pixels][4] int16; the four inputs of a pixel in the order 0 2 1 3, which is
            what SXTB16 makes of four bytes. Aligned to 8.
   weights  [ceil(out_c / 2)][depth / 4][2][4] int8, zeros beyond the layer's own depth and channels.
            Aligned to 4.
   channels ceil(out_c / 2) * 2 entries.
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

#if TINYFUSE_DSP

/* w: weights of two channels; e, f: their widened even halves; wa, wb become the odd halves. */
#define TINYFUSE_WEIGHTS_2                       \
    "ldrd %[wa], %[wb], [%[w]], #8\n\t"          \
    "sxtb16 %[e], %[wa]\n\t"                     \
    "sxtb16 %[f], %[wb]\n\t"                     \
    "sxtb16 %[wa], %[wa], ror #8\n\t"            \
    "sxtb16 %[wb], %[wb], ror #8\n\t"
#define TINYFUSE_PIXEL_2(a, b)                   \
    "ldrd %[i], %[j], [%[x]], #8\n\t"            \
    "smlad %[" a "], %[i], %[e], %[" a "]\n\t"   \
    "smlad %[" b "], %[i], %[f], %[" b "]\n\t"   \
    "smlad %[" a "], %[j], %[wa], %[" a "]\n\t"  \
    "smlad %[" b "], %[j], %[wb], %[" b "]\n\t"
/* A loop of four steps; the first time it is entered where depth / 4 is whole loops from its end. The
   shift puts bit 2 of the depth into N and bit 3 into C. */
#define TINYFUSE_LOOP(step)                      \
    "ldr %[f], %[depth]\n\t"                     \
    "lsls %[f], %[f], #29\n\t"                   \
    "bcc 5f\n\t"                                 \
    "bmi 2f\n\t"                                 \
    "b 3f\n\t"                                   \
    "5:\n\t"                                     \
    "bmi 4f\n\t"                                 \
    "1:\n\t" step                                \
    "2:\n\t" step                                \
    "3:\n\t" step                                \
    "4:\n\t" step                                \
    "ldr %[f], %[end]\n\t"                       \
    "cmp %[w], %[f]\n\t"                         \
    "bne 1b"

TINYFUSE_INLINE const int8_t *tinyfuse_dot_3(int32_t *s, const int8_t *w, const int16_t *x,
                                             int32_t depth)
{
    const int8_t *const end = w + 2 * depth;
    int32_t s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3], s4 = s[4], s5 = s[5];
    uint32_t wa, wb, e, f, i, j;
    __asm volatile(TINYFUSE_LOOP(TINYFUSE_WEIGHTS_2 TINYFUSE_PIXEL_2("s0", "s1")
                                     TINYFUSE_PIXEL_2("s2", "s3") TINYFUSE_PIXEL_2("s4", "s5"))
                   : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [s4] "+r"(s4),
                     [s5] "+r"(s5), [w] "+r"(w), [x] "+r"(x), [wa] "=&r"(wa), [wb] "=&r"(wb),
                     [e] "=&r"(e), [f] "=&r"(f), [i] "=&r"(i), [j] "=&r"(j)
                   : [end] "m"(end), [depth] "m"(depth)
                   : "cc", "memory");
    s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3, s[4] = s4, s[5] = s5;
    return w;
}

/* As TINYFUSE_WEIGHTS_2 and twice TINYFUSE_PIXEL_2, with one load for both pixels. */
#define TINYFUSE_STEP_2x2                        \
    TINYFUSE_WEIGHTS_2                           \
    "ldm %[x]!, {r8, r9, r10, r11}\n\t"          \
    "smlad %[s0], r8, %[e], %[s0]\n\t"           \
    "smlad %[s1], r8, %[f], %[s1]\n\t"           \
    "smlad %[s2], r10, %[e], %[s2]\n\t"          \
    "smlad %[s3], r10, %[f], %[s3]\n\t"          \
    "smlad %[s0], r9, %[wa], %[s0]\n\t"          \
    "smlad %[s1], r9, %[wb], %[s1]\n\t"          \
    "smlad %[s2], r11, %[wa], %[s2]\n\t"         \
    "smlad %[s3], r11, %[wb], %[s3]\n\t"

TINYFUSE_INLINE const int8_t *tinyfuse_dot_2(int32_t *s, const int8_t *w, const int16_t *x,
                                             int32_t depth)
{
    const int8_t *const end = w + 2 * depth;
    int32_t s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
    uint32_t wa, wb, e, f;
    __asm volatile(TINYFUSE_LOOP(TINYFUSE_STEP_2x2)
                   : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [w] "+r"(w),
                     [x] "+r"(x), [wa] "=&r"(wa), [wb] "=&r"(wb), [e] "=&r"(e), [f] "=&r"(f)
                   : [end] "m"(end), [depth] "m"(depth)
                   : "r8", "r9", "r10", "r11", "cc", "memory");
    s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3;
    return w;
}

TINYFUSE_INLINE const int8_t *tinyfuse_dot_1(int32_t *s, const int8_t *w, const int16_t *x,
                                             int32_t depth)
{
    const int8_t *const end = w + 2 * depth;
    int32_t s0 = s[0], s1 = s[1];
    uint32_t wa, wb, e, f, i, j;
    __asm volatile(TINYFUSE_LOOP(TINYFUSE_WEIGHTS_2 TINYFUSE_PIXEL_2("s0", "s1"))
                   : [s0] "+r"(s0), [s1] "+r"(s1), [w] "+r"(w), [x] "+r"(x), [wa] "=&r"(wa),
                     [wb] "=&r"(wb), [e] "=&r"(e), [f] "=&r"(f), [i] "=&r"(i), [j] "=&r"(j)
                   : [end] "m"(end), [depth] "m"(depth)
                   : "cc", "memory");
    s[0] = s0, s[1] = s1;
    return w;
}

#else

/* Adds to s[pixel][2] the products of two channels; returns the weights behind. */
TINYFUSE_INLINE const int8_t *tinyfuse_dot(int32_t *s, const int8_t *w, const int16_t *x,
                                           int32_t depth, int32_t pixels)
{
    int32_t k, i;
    for (k = 0; k < depth; k += 4) {
        for (i = 0; i < pixels; ++i) {
            s[2 * i] += x[0] * w[0] + x[1] * w[2] + x[2] * w[1] + x[3] * w[3];
            s[2 * i + 1] += x[0] * w[4] + x[1] * w[6] + x[2] * w[5] + x[3] * w[7];
            x += 4;
        }
        w += 8;
    }
    return w;
}

#define tinyfuse_dot_3(s, w, x, depth) tinyfuse_dot(s, w, x, depth, 3)
#define tinyfuse_dot_2(s, w, x, depth) tinyfuse_dot(s, w, x, depth, 2)
#define tinyfuse_dot_1(s, w, x, depth) tinyfuse_dot(s, w, x, depth, 1)

#endif

/* Requantizes one channel of `pixels` sums, every second of s, to out, out + stride, ... */
TINYFUSE_INLINE void tinyfuse_matmul_store(const int32_t *s, const tinyfuse_requant *channel,
                                           int32_t rounding, int8_t *out, int32_t stride,
                                           int pixels, int ramp)
{
    const int32_t multiplier = channel->multiplier, shift = channel->shift;
    int32_t value[3];
    int i;
    /* read everything before the first store: an int8_t may alias anything */
    for (i = 0; i < pixels; ++i) {
        value[i] = tinyfuse_requantize_bounded(s[2 * i], multiplier, shift, rounding, ramp);
    }
    for (i = 0; i < pixels; ++i) {
        out[i * stride] = (int8_t)value[i];
    }
}

/* One block: all channels of `pixels` (a constant) pixels, to out[pixels][out_c]. */
TINYFUSE_INLINE void tinyfuse_matmul_block(const tinyfuse_matmul *p, const int16_t *columns,
                                           const int8_t *weights, const tinyfuse_requant *channels,
                                           int8_t *out, int pixels, int ramp)
{
    const int32_t depth = p->depth, out_c = p->out_c, rounding = p->rounding;
    int32_t left = out_c;
    for (;;) {
        int32_t s[6];
        int i;
        for (i = 0; i < pixels; ++i) {
            s[2 * i] = channels[0].bias;
            s[2 * i + 1] = channels[1].bias;
        }
        if (pixels == 3) {
            weights = tinyfuse_dot_3(s, weights, columns, depth);
        } else if (pixels == 2) {
            weights = tinyfuse_dot_2(s, weights, columns, depth);
        } else {
            weights = tinyfuse_dot_1(s, weights, columns, depth);
        }
        tinyfuse_matmul_store(s, channels, rounding, out, out_c, pixels, ramp);
        left -= 2;
        if (left < 0) {
            return;
        }
        tinyfuse_matmul_store(s + 1, channels + 1, rounding, out + 1, out_c, pixels, ramp);
        if (left == 0) {
            return;
        }
        out += 2;
        channels += 2;
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
