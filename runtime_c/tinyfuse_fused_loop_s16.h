/* Elements of fused loops of int16 (tinyfuse_fused_loop.h). Zero points are 0. */
#ifndef TINYFUSE_FUSED_LOOP_S16_H
#define TINYFUSE_FUSED_LOOP_S16_H

#include "tinyfuse_binary_s16.h"
#include "tinyfuse_fused_loop.h"

TINYFUSE_INLINE void tinyfuse_fused_loop_store_s16(int16_t *out, int32_t value)
{
    *out = (int16_t)value;
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_add_s16(const tinyfuse_binary *p, int32_t a, int32_t b)
{
    return tinyfuse_sum_s16(p, tinyfuse_add_operand_s16(a, p->a_multiplier, p->a_right) +
                                   tinyfuse_add_operand_s16(b, p->b_multiplier, p->b_right));
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_sub_s16(const tinyfuse_binary *p, int32_t a, int32_t b)
{
    return tinyfuse_sum_s16(p, tinyfuse_add_operand_s16(a, p->a_multiplier, p->a_right) -
                                   tinyfuse_add_operand_s16(b, p->b_multiplier, p->b_right));
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_mul_s16(const tinyfuse_binary *p, int32_t a, int32_t b)
{
    return tinyfuse_product_s16(p, a * b);
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_squared_difference_s16(const tinyfuse_binary *p, int32_t a, int32_t b)
{
    return tinyfuse_squared_difference_one_s16(p, a, b);
}

#if TINYFUSE_MVE

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_load4_s16(const int16_t *in)
{
    return vldrhq_s32(in);
}

TINYFUSE_INLINE void tinyfuse_fused_loop_store4_s16(int16_t *out, int32x4_t value)
{
    vstrhq_s32(out, value);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_add4_s16(const tinyfuse_binary *p, int32x4_t a, int32x4_t b)
{
    return tinyfuse_add4_s16(p, a, b);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_sub4_s16(const tinyfuse_binary *p, int32x4_t a, int32x4_t b)
{
    return tinyfuse_sub4_s16(p, a, b);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_mul4_s16(const tinyfuse_binary *p, int32x4_t a, int32x4_t b)
{
    return tinyfuse_mul4_s16(p, a, b);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_squared_difference4_s16(const tinyfuse_binary *p, int32x4_t a,
                                                                      int32x4_t b)
{
    const int32x4_t difference =
        vsubq_s32(tinyfuse_scale_down4(vqrdmulhq_n_s32(a, p->a_multiplier), p->a_right),
                  tinyfuse_scale_down4(vqrdmulhq_n_s32(b, p->b_multiplier), p->b_right));
    return tinyfuse_scaled4_s16(p, vmulq_s32(difference, difference));
}

#endif

#endif
