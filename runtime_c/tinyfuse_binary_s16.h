/* Elementwise operators of two int16 inputs with TensorFlow Lite Micro's arithmetic. Zero points are 0. */
#ifndef TINYFUSE_BINARY_S16_H
#define TINYFUSE_BINARY_S16_H

#include "tinyfuse_elementwise.h"

TINYFUSE_INLINE int32_t tinyfuse_clamp_to_s16(int32_t value, int32_t low, int32_t high)
{
#if TINYFUSE_DSP
    if (low == -32768 && high == 32767) {
        int32_t result;
        __asm("ssat %0, #16, %1" : "=r"(result) : "r"(value) : "cc");
        return result;
    }
#endif
    return tinyfuse_clamp(value, low, high);
}

/* Returns round(value * multiplier / 2^31); |value| may be 2^30 itself. */
TINYFUSE_INLINE int32_t tinyfuse_scale_product(int32_t value, int32_t multiplier)
{
    return (int32_t)(((int64_t)value * multiplier + ((int64_t)1 << 30)) >> 31);
}

/* Rescales an operand of ADD or SUB to the scale of the sum. The operand of the larger scale has a multiplier of
   one half, which is exact. Shifted left by 15, values are at least -2^30 and below 2^30. */
TINYFUSE_INLINE int32_t tinyfuse_add_operand_s16(int32_t value, int32_t multiplier, int32_t right)
{
    if (multiplier == 1 << 30 && right == 0) {
        return value * (1 << 14);
    }
    return tinyfuse_scale_down(tinyfuse_scale_high(value * (1 << 15), multiplier), right);
}

TINYFUSE_INLINE int32_t tinyfuse_sum_s16(const tinyfuse_binary *p, int32_t sum)
{
    const int32_t scaled = tinyfuse_scale_down(tinyfuse_scale_high(sum, p->out_multiplier), -p->out_shift);
    return tinyfuse_clamp_to_s16(scaled, p->act_min, p->act_max);
}

TINYFUSE_INLINE int32_t tinyfuse_product_s16(const tinyfuse_binary *p, int32_t product)
{
    const int32_t high = tinyfuse_scale_product(product, p->out_multiplier);
    return tinyfuse_clamp_to_s16(tinyfuse_scale_down(high, -p->out_shift), p->act_min, p->act_max);
}

TINYFUSE_INLINE int32_t tinyfuse_squared_difference_one_s16(const tinyfuse_binary *p, int32_t a, int32_t b)
{
    const int32_t x = tinyfuse_scale_down(tinyfuse_scale_high(a, p->a_multiplier), p->a_right);
    const int32_t y = tinyfuse_scale_down(tinyfuse_scale_high(b, p->b_multiplier), p->b_right);
    return tinyfuse_product_s16(p, (x - y) * (x - y));
}

/* Real multipliers for values from 0 on, and for negative ones times alpha (int8); shifts are positive to the left. */
typedef struct {
    int32_t alpha_zero_point;
    int32_t multiplier, shift;
    int32_t alpha_multiplier, alpha_shift;
} tinyfuse_prelu_wide;

TINYFUSE_INLINE int32_t tinyfuse_prelu_one_s16(const tinyfuse_prelu_wide *p, int32_t x, int32_t alpha)
{
    const int32_t scaled = x >= 0 ? tinyfuse_requantize(x, p->multiplier, p->shift)
                                  : tinyfuse_requantize(x * (alpha - p->alpha_zero_point),
                                                        p->alpha_multiplier, p->alpha_shift);
    return tinyfuse_clamp_to_s16(scaled, -32768, 32767);
}

/* Like TINYFUSE_DEFINE_BINARY, for operands of two types. */
TINYFUSE_INLINE void tinyfuse_prelu_s16(const tinyfuse_prelu_wide *p, const int16_t *a, const int8_t *b, int16_t *out,
                                        int32_t count)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        out[i] = (int16_t)tinyfuse_prelu_one_s16(p, a[i], b[i]);
    }
}

TINYFUSE_INLINE void tinyfuse_prelu_broadcast_s16(const tinyfuse_prelu_wide *p, const tinyfuse_broadcast *s,
                                                  const int16_t *a, const int8_t *b, int16_t *out)
{
    int32_t i, j, k, l;
    for (i = 0; i < s->dim[0]; ++i) {
        for (j = 0; j < s->dim[1]; ++j) {
            for (k = 0; k < s->dim[2]; ++k) {
                const int16_t *row_a = a + i * s->a_stride[0] + j * s->a_stride[1] + k * s->a_stride[2];
                const int8_t *row_b = b + i * s->b_stride[0] + j * s->b_stride[1] + k * s->b_stride[2];
                for (l = 0; l < s->dim[3]; ++l) {
                    *out++ = (int16_t)tinyfuse_prelu_one_s16(p, row_a[l * s->a_stride[3]],
                                                             row_b[l * s->b_stride[3]]);
                }
            }
        }
    }
}

#if TINYFUSE_MVE

/* Computes four elements with Helium (tinyfuse_elementwise.h). */
TINYFUSE_INLINE int32x4_t tinyfuse_add_operand4_s16(int32x4_t value, int32_t multiplier, int32_t right)
{
    if (multiplier == 1 << 30 && right == 0) {
        return vshlq_n_s32(value, 14);
    }
    return tinyfuse_scale_down4(vqrdmulhq_n_s32(vshlq_n_s32(value, 15), multiplier), right);
}

TINYFUSE_INLINE int32x4_t tinyfuse_scaled4_s16(const tinyfuse_binary *p, int32x4_t value)
{
    const int32x4_t scaled = tinyfuse_scale_down4(vqrdmulhq_n_s32(value, p->out_multiplier), -p->out_shift);
    return vminq_s32(vmaxq_s32(scaled, vdupq_n_s32(p->act_min)), vdupq_n_s32(p->act_max));
}

TINYFUSE_INLINE int32x4_t tinyfuse_add4_s16(const tinyfuse_binary *p, int32x4_t a, int32x4_t b)
{
    return tinyfuse_scaled4_s16(p, vaddq_s32(tinyfuse_add_operand4_s16(a, p->a_multiplier, p->a_right),
                                             tinyfuse_add_operand4_s16(b, p->b_multiplier, p->b_right)));
}

TINYFUSE_INLINE int32x4_t tinyfuse_sub4_s16(const tinyfuse_binary *p, int32x4_t a, int32x4_t b)
{
    return tinyfuse_scaled4_s16(p, vsubq_s32(tinyfuse_add_operand4_s16(a, p->a_multiplier, p->a_right),
                                             tinyfuse_add_operand4_s16(b, p->b_multiplier, p->b_right)));
}

TINYFUSE_INLINE int32x4_t tinyfuse_mul4_s16(const tinyfuse_binary *p, int32x4_t a, int32x4_t b)
{
    return tinyfuse_scaled4_s16(p, vmulq_s32(a, b));
}

/* Computes `element` of a and b into out, eight at a time. */
#define TINYFUSE_VECTOR_ELEMENTS_S16(element)                                                       \
    for (i = 0; i < whole; i += 8) {                                                                \
        const int32x4_t first = element(p, vldrhq_s32(a + i), vldrhq_s32(b + i));                   \
        const int32x4_t second = element(p, vldrhq_s32(a + i + 4), vldrhq_s32(b + i + 4));          \
        vstrhq_s32(out + i, first);                                                                 \
        vstrhq_s32(out + i + 4, second);                                                            \
    }

#else
#define TINYFUSE_VECTOR_ELEMENTS_S16(element)
#endif

/* Like TINYFUSE_DEFINE_BINARY, but runs `vectors` first if there are any. */
#define TINYFUSE_DEFINE_S16_BY_VECTORS(name, vectors, expression)                                                \
    TINYFUSE_INLINE void tinyfuse_##name##_s16(const tinyfuse_binary *p, const int16_t *a, const int16_t *b,     \
                                               int16_t *out, int32_t count)                                      \
    {                                                                                                            \
        const int32_t whole = TINYFUSE_MVE ? count & ~7 : 0; /* elements that vectors have computed */                             \
        int32_t i;                                                                                               \
        TINYFUSE_VECTOR_ELEMENTS_S16(vectors)                                                                    \
        for (i = whole; i < count; ++i) {                                                                        \
            const int16_t x = a[i], y = b[i];                                                                    \
            out[i] = (int16_t)(expression);                                                                      \
        }                                                                                                        \
    }                                                                                                            \
    TINYFUSE_INLINE void tinyfuse_##name##_broadcast_s16(const tinyfuse_binary *p, const tinyfuse_broadcast *s,  \
                                                         const int16_t *a, const int16_t *b, int16_t *out)       \
    {                                                                                                            \
        TINYFUSE_EACH_BROADCAST(int16_t, int16_t, expression)                                                    \
    }
#define TINYFUSE_DEFINE_S16(name, expression) \
    TINYFUSE_DEFINE_BINARY(name, s16, tinyfuse_binary, int16_t, int16_t, expression)

TINYFUSE_DEFINE_S16_BY_VECTORS(add, tinyfuse_add4_s16,
                               tinyfuse_sum_s16(p, tinyfuse_add_operand_s16(x, p->a_multiplier, p->a_right) +
                                                       tinyfuse_add_operand_s16(y, p->b_multiplier, p->b_right)))
TINYFUSE_DEFINE_S16_BY_VECTORS(sub, tinyfuse_sub4_s16,
                               tinyfuse_sum_s16(p, tinyfuse_add_operand_s16(x, p->a_multiplier, p->a_right) -
                                                       tinyfuse_add_operand_s16(y, p->b_multiplier, p->b_right)))
TINYFUSE_DEFINE_S16_BY_VECTORS(mul, tinyfuse_mul4_s16, tinyfuse_product_s16(p, x *y))
TINYFUSE_DEFINE_S16(squared_difference, tinyfuse_squared_difference_one_s16(p, x, y))
TINYFUSE_DEFINE_PLAIN_BINARY(maximum, s16, int16_t, int16_t, x > y ? x : y)
TINYFUSE_DEFINE_PLAIN_BINARY(minimum, s16, int16_t, int16_t, x < y ? x : y)

#endif
