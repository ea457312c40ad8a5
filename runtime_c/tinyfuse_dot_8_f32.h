/* Sums of float32 products for eight outputs at a time. Each output's products and sums are rounded, in its own
   order. Helium's vectors are not used: they flush numbers below FLT_MIN to zero. */
#ifndef TINYFUSE_DOT_8_F32_H
#define TINYFUSE_DOT_8_F32_H

#include "tinyfuse_real.h"

#if TINYFUSE_FPU

/* Sums are s0 to s7, weights s8 to s15, and become products. */
#define TINYFUSE_DOT_8_CLOBBERS                                                                                     \
    "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16",    \
        "s17", "s18", "s19", "s20", "s21", "s22", "s23", "cc", "memory"
#define TINYFUSE_DOT_8_SUMS               \
    "vadd.f32 s0, s0, s8\n\t"             \
    "vadd.f32 s1, s1, s9\n\t"             \
    "vadd.f32 s2, s2, s10\n\t"            \
    "vadd.f32 s3, s3, s11\n\t"            \
    "vadd.f32 s4, s4, s12\n\t"            \
    "vadd.f32 s5, s5, s13\n\t"            \
    "vadd.f32 s6, s6, s14\n\t"            \
    "vadd.f32 s7, s7, s15\n\t"

/* Multiplies inputs with rows of eight weights. `load` loads a row and goes on to the next one. */
#define TINYFUSE_DOT_8_LAYER(load, row)                                            \
    __asm volatile("vldm %[sums], {s0-s7}\n\t"                                     \
                   "1:\n\t"                                                        \
                   "vldmia %[in]!, {s16}\n\t" load                                 \
                   "vmul.f32 s8, s8, s16\n\t"                                      \
                   "vmul.f32 s9, s9, s16\n\t"                                      \
                   "vmul.f32 s10, s10, s16\n\t"                                    \
                   "vmul.f32 s11, s11, s16\n\t"                                    \
                   "vmul.f32 s12, s12, s16\n\t"                                    \
                   "vmul.f32 s13, s13, s16\n\t"                                    \
                   "vmul.f32 s14, s14, s16\n\t"                                    \
                   "vmul.f32 s15, s15, s16\n\t" TINYFUSE_DOT_8_SUMS                \
                   "cmp %[in], %[end]\n\t"                                         \
                   "bne 1b\n\t"                                                    \
                   "vstm %[sums], {s0-s7}"                                         \
                   : [in] "+&r"(in), [weights] "+&r"(weights)                      \
                   : [sums] "r"(sums), [end] "r"(end), [bytes] "rI"(row)           \
                   : TINYFUSE_DOT_8_CLOBBERS)

/* Adds in[i] * weights[i][k], i from 0 to count - 1, to sums[k] for eight k or the first `outputs`; count > 0. With
   fewer than eight outputs, the other sums are undefined, and 8 - outputs weights beyond the last are read. */
TINYFUSE_INLINE void tinyfuse_dot_8_layer_sums(float *sums, const float *in, const float *weights, int32_t count,
                                               int32_t outputs)
{
    const float *const end = in + count;
    if (outputs == 8) {
        TINYFUSE_DOT_8_LAYER("vldmia %[weights]!, {s8-s15}\n\t", 32);
    } else {
        TINYFUSE_DOT_8_LAYER("vldm %[weights], {s8-s15}\n\t"
                             "add %[weights], %[bytes]\n\t", 4 * outputs);
    }
}

/* Sets sums[k] to 0 + taps[i][k] * weights[i][k] for i from 0 to count - 1, for eight k. A tap lies `offset` bytes
   after its pointer. */
TINYFUSE_INLINE void tinyfuse_dot_8_tap_sums(float *sums, const int8_t *const *taps, int32_t count, int32_t offset,
                                             const float *weights)
{
    const int8_t *const *const end = taps + count;
    const int8_t *at;
    memset(sums, 0, 8 * sizeof *sums);
    __asm volatile("vldm %[sums], {s0-s7}\n\t"
                   "1:\n\t"
                   "ldr %[at], [%[taps]], #4\n\t"
                   "vldmia %[weights]!, {s8-s15}\n\t"
                   "add %[at], %[at], %[offset]\n\t"
                   "vldm %[at], {s16-s23}\n\t"
                   "vmul.f32 s8, s8, s16\n\t"
                   "vmul.f32 s9, s9, s17\n\t"
                   "vmul.f32 s10, s10, s18\n\t"
                   "vmul.f32 s11, s11, s19\n\t"
                   "vmul.f32 s12, s12, s20\n\t"
                   "vmul.f32 s13, s13, s21\n\t"
                   "vmul.f32 s14, s14, s22\n\t"
                   "vmul.f32 s15, s15, s23\n\t" TINYFUSE_DOT_8_SUMS
                   "cmp %[taps], %[end]\n\t"
                   "bne 1b\n\t"
                   "vstm %[sums], {s0-s7}"
                   : [taps] "+&r"(taps), [weights] "+&r"(weights), [at] "=&r"(at)
                   : [sums] "r"(sums), [end] "r"(end), [offset] "r"(offset)
                   : TINYFUSE_DOT_8_CLOBBERS);
}

#else

TINYFUSE_INLINE void tinyfuse_dot_8_layer_sums(float *sums, const float *in, const float *weights, int32_t count,
                                               int32_t outputs)
{
    int32_t i, k;
    for (i = 0; i < count; ++i) {
        for (k = 0; k < outputs; ++k) {
            sums[k] = tinyfuse_add_product_f32(sums[k], in[i], *weights++);
        }
    }
}

TINYFUSE_INLINE void tinyfuse_dot_8_tap_sums(float *sums, const int8_t *const *taps, int32_t count, int32_t offset,
                                             const float *weights)
{
    int32_t i, k;
    memset(sums, 0, 8 * sizeof *sums);
    for (i = 0; i < count; ++i) {
        const float *const x = (const float *)(const void *)(taps[i] + offset);
        for (k = 0; k < 8; ++k) {
            sums[k] = tinyfuse_add_product_f32(sums[k], x[k], weights[8 * i + k]);
        }
    }
}

#endif

/* Stores the first `count` of eight outputs: sums, biased and clamped. */
TINYFUSE_INLINE void tinyfuse_dot_8_outputs(const float *sums, const float *biases, float *out, int32_t count,
                                            float low, float high)
{
    int32_t k;
    for (k = 0; k < count; ++k) {
        out[k] = tinyfuse_clamp_f32(tinyfuse_sum_f32(sums[k], biases[k]), low, high);
    }
}

#endif
