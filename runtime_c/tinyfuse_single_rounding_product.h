/* MUL of int8 with a single rounding: the product of both operands less their zero points is multiplied once, then shifted
   once. The generator has compared the results of all 65,536 pairs of operands with the operator's own arithmetic. */
#ifndef TINYFUSE_SINGLE_ROUNDING_PRODUCT_H
#define TINYFUSE_SINGLE_ROUNDING_PRODUCT_H

#include "tinyfuse_elementwise.h"

/* out = clamp((floor((a - a_zero_point) * (b - b_zero_point) * multiplier / 2^15) + offset) >> shift). The multiplier is
   positive and below 2^29, so that the floor stays below 2^30. */
typedef struct {
    int32_t a_zero_point, b_zero_point, multiplier, offset, shift;
    int32_t act_min, act_max;
} tinyfuse_single_rounding_product;

TINYFUSE_INLINE int32_t tinyfuse_single_rounding_product_of(const tinyfuse_single_rounding_product *p, int32_t a, int32_t b)
{
    const int saturates = p->act_min == -128 && p->act_max == 127;
    int32_t sum;
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
    /* Armv6-M multiplies to 32 bits: the multiplier's halves one by one */
    const int32_t product = (a - p->a_zero_point) * (b - p->b_zero_point);
    sum = product * (p->multiplier >> 15) + ((product * (p->multiplier & 0x7FFF)) >> 15) + p->offset;
#else
    /* at most 255 * 255 * 2^15, which is below 2^31 */
    const int32_t product = (a - p->a_zero_point) * (b * 32768 - p->b_zero_point * 32768);
#if TINYFUSE_DSP
    __asm("smmla %0, %1, %2, %3" : "=r"(sum) : "r"(product), "r"(4 * p->multiplier), "r"(p->offset));
#else
    sum = (int32_t)(((int64_t)product * (4 * p->multiplier)) >> 32) + p->offset;
#endif
#endif
    sum = tinyfuse_saturate_right(sum, p->shift);
    return saturates ? sum : tinyfuse_clamp(sum, p->act_min, p->act_max);
}

#if TINYFUSE_MVE

TINYFUSE_INLINE int32x4_t tinyfuse_single_rounding_product4(const tinyfuse_single_rounding_product *p, int32x4_t a,
                                                            int32x4_t b)
{
    const int32x4_t product = vmulq_s32(vsubq_n_s32(a, p->a_zero_point), vsubq_n_s32(vshlq_n_s32(b, 15), p->b_zero_point * 32768));
    const int32x4_t high = vmulhq_s32(product, vdupq_n_s32(4 * p->multiplier));
    const int32x4_t sum = vshlq_s32(vaddq_n_s32(high, p->offset), vdupq_n_s32(-p->shift));
    return vminq_s32(vmaxq_s32(sum, vdupq_n_s32(p->act_min)), vdupq_n_s32(p->act_max));
}

#endif

/* `count` elements of equal-shaped operands; `out` may be `a` or `b`, or lie below them. */
TINYFUSE_INLINE void tinyfuse_single_rounding_product_s8(const tinyfuse_single_rounding_product *p, const int8_t *a,
                                                         const int8_t *b, int8_t *out, int32_t count)
{
    int32_t i = 0;
#if TINYFUSE_MVE
    TINYFUSE_VECTOR_ELEMENTS(tinyfuse_single_rounding_product4)
#else
    for (; i + 4 <= count; i += 4) {
        out[i] = (int8_t)tinyfuse_single_rounding_product_of(p, a[i], b[i]);
        out[i + 1] = (int8_t)tinyfuse_single_rounding_product_of(p, a[i + 1], b[i + 1]);
        out[i + 2] = (int8_t)tinyfuse_single_rounding_product_of(p, a[i + 2], b[i + 2]);
        out[i + 3] = (int8_t)tinyfuse_single_rounding_product_of(p, a[i + 3], b[i + 3]);
    }
#endif
    for (; i < count; ++i) {
        out[i] = (int8_t)tinyfuse_single_rounding_product_of(p, a[i], b[i]);
    }
}

#endif
