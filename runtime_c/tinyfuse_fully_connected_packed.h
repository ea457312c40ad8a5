/* Fully connected layer, int8: four outputs at a time from packed weights without zero point,
   requantized in the bounded form. */
#ifndef TINYFUSE_FULLY_CONNECTED_PACKED_H
#define TINYFUSE_FULLY_CONNECTED_PACKED_H

#include "tinyfuse_matmul.h"

/* `ramp`: act_min is not below the output zero point. */
typedef struct {
    int32_t batches, in_c, out_c, out_zero_point, act_min, act_max, ramp;
} tinyfuse_dense;

#if TINYFUSE_DSP

#define TINYFUSE_DENSE_WIDE "ldrd %[i], %[j], [%[x]], #8\n\t"
#define TINYFUSE_DENSE_BYTES        \
    "ldr %[j], [%[x]], #4\n\t"      \
    "sxtb16 %[i], %[j]\n\t"         \
    "sxtb16 %[j], %[j], ror #8\n\t"
#define TINYFUSE_DENSE_OUTPUT(sum, weights)              \
    "sxtb16 %[e], " weights "\n\t"                       \
    "sxtb16 " weights ", " weights ", ror #8\n\t"        \
    "smlad %[" sum "], %[i], %[e], %[" sum "]\n\t"       \
    "smlad %[" sum "], %[j], " weights ", %[" sum "]\n\t"
#define TINYFUSE_DENSE_STEP(inputs)                     \
    inputs "ldm %[w]!, {r8, r9, r10, r11}\n\t"          \
    TINYFUSE_DENSE_OUTPUT("s0", "r8")                   \
    TINYFUSE_DENSE_OUTPUT("s1", "r9")                   \
    TINYFUSE_DENSE_OUTPUT("s2", "r10")                  \
    TINYFUSE_DENSE_OUTPUT("s3", "r11")
#define TINYFUSE_DENSE_LOOP(inputs)                                                           \
    __asm volatile("ldr %[e], %[depth]\n\t"                                                   \
                   "tst %[e], #4\n\t"                                                         \
                   "bne 2f\n\t"                                                               \
                   "1:\n\t" TINYFUSE_DENSE_STEP(inputs) "2:\n\t" TINYFUSE_DENSE_STEP(inputs)  \
                   "ldr %[i], %[end]\n\t"                                                     \
                   "cmp %[w], %[i]\n\t"                                                       \
                   "bne 1b"                                                                   \
                   : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [w] "+r"(w), \
                     [x] "+r"(x), [e] "=&r"(e), [i] "=&r"(i), [j] "=&r"(j)                    \
                   : [end] "m"(end), [depth] "m"(depth)                                       \
                   : "r8", "r9", "r10", "r11", "cc", "memory")

/* Adds to s[4] the products of four outputs with `depth` inputs: int16 in the order of
   tinyfuse_widen, or bytes. */
TINYFUSE_INLINE void tinyfuse_dense_dot(int32_t *s, const int8_t *w, const void *inputs,
                                        int32_t depth, int wide)
{
    const int8_t *const end = w + 4 * depth;
    const char *x = (const char *)inputs;
    int32_t s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
    uint32_t e, i, j;
    if (wide) {
        TINYFUSE_DENSE_LOOP(TINYFUSE_DENSE_WIDE);
    } else {
        TINYFUSE_DENSE_LOOP(TINYFUSE_DENSE_BYTES);
    }
    s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3;
}

#else

TINYFUSE_INLINE void tinyfuse_dense_dot(int32_t *s, const int8_t *w, const void *inputs,
                                        int32_t depth, int wide)
{
    const int16_t *columns = (const int16_t *)inputs;
    const int8_t *bytes = (const int8_t *)inputs;
    int32_t k, o;
    for (k = 0; k < depth; k += 4) {
        for (o = 0; o < 4; ++o) {
            if (wide) {
                s[o] += columns[0] * w[0] + columns[2] * w[1] + columns[1] * w[2] +
                        columns[3] * w[3];
            } else {
                s[o] += bytes[0] * w[0] + bytes[1] * w[1] + bytes[2] * w[2] + bytes[3] * w[3];
            }
            w += 4;
        }
        columns += 4;
        bytes += 4;
    }
}

#endif

/* One batch of `inputs` (as tinyfuse_dense_dot takes them); `wide` and `ramp` are constants. */
TINYFUSE_INLINE void tinyfuse_dense_batch(const tinyfuse_dense *p, const void *inputs, int8_t *out,
                                          const int8_t *weights, const tinyfuse_requant *channels,
                                          int wide, int ramp)
{
    const int32_t depth = (p->in_c + 3) & ~3;
    const int32_t rounding = 2 * p->out_zero_point + 1;
    int32_t o, i;
    for (o = p->out_c; o > 0; o -= 4) {
        int32_t s[4];
        for (i = 0; i < 4; ++i) {
            s[i] = channels[i].bias;
        }
        tinyfuse_dense_dot(s, weights, inputs, depth, wide);
        weights += 4 * depth;
        for (i = 0; i < 4; ++i) {
            s[i] = tinyfuse_requantize_bounded(s[i], channels[i].multiplier, channels[i].shift,
                                               rounding, ramp);
        }
        if (o >= 4) {
            for (i = 0; i < 4; ++i) {
                out[i] = (int8_t)s[i];
            }
        } else {
            for (i = 0; i < o; ++i) {
                out[i] = (int8_t)s[i];
            }
        }
        out += 4;
        channels += 4;
    }
}

/* in [batches][in_c] to out [batches][out_c]. Weights: [ceil(out_c / 4)][depth / 4][4][4], zeros
   beyond the layer, with depth = in_c rounded up to a multiple of 4; `channels` has ceil(out_c / 4) *
   4 entries. scratch: `depth` int16, aligned to 8; out must not overlap in. */
TINYFUSE_SHARED void tinyfuse_dense_wide_s8(const tinyfuse_dense *p, const int8_t *in, int8_t *out,
                                            const int8_t *weights, const tinyfuse_requant *channels,
                                            void *scratch)
{
    const int32_t words = p->in_c / 4, rest = p->in_c & 3;
    int32_t b;
    for (b = 0; b < p->batches; ++b) {
        int16_t *to = (int16_t *)scratch;
        int8_t *const row = out + b * p->out_c;
        if (words > 0) {
            to = tinyfuse_widen(in, words, to, 8);
        }
        if (rest > 0) {
            int8_t tail[4] = {0, 0, 0, 0};
            memcpy(tail, in + 4 * words, (size_t)rest);
            (void)tinyfuse_widen(tail, 1, to, 8);
        }
        if (p->ramp) {
            tinyfuse_dense_batch(p, scratch, row, weights, channels, 1, 1);
        } else {
            tinyfuse_dense_batch(p, scratch, row, weights, channels, 1, 0);
        }
        in += p->in_c;
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(out, p->batches * p->out_c, p->act_min, p->act_max);
    }
}

/* The same without scratch; in_c is a multiple of 4. */
TINYFUSE_SHARED void tinyfuse_dense_s8(const tinyfuse_dense *p, const int8_t *in, int8_t *out,
                                       const int8_t *weights, const tinyfuse_requant *channels)
{
    int32_t b;
    for (b = 0; b < p->batches; ++b) {
        int8_t *const row = out + b * p->out_c;
        if (p->ramp) {
            tinyfuse_dense_batch(p, in, row, weights, channels, 0, 1);
        } else {
            tinyfuse_dense_batch(p, in, row, weights, channels, 0, 0);
        }
        in += p->in_c;
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(out, p->batches * p->out_c, p->act_min, p->act_max);
    }
}

#endif
