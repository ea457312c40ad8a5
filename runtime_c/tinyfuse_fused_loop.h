/* Fused loops of int8: one function for each elementwise operator, on operands in registers, with TensorFlow Lite
   Micro's arithmetic. All values are stored values in 32 bits (bool: 0 and 1). With Helium each function has a
   version for four elements, whose name ends in 4. */
#ifndef TINYFUSE_FUSED_LOOP_H
#define TINYFUSE_FUSED_LOOP_H

#include "tinyfuse_binary.h"
#include "tinyfuse_single_rounding_product.h"
#include "tinyfuse_single_rounding_sum.h"

TINYFUSE_INLINE void tinyfuse_fused_loop_store_s8(int8_t *out, int32_t value)
{
    *out = (int8_t)value;
}

TINYFUSE_INLINE void tinyfuse_fused_loop_store_bool(uint8_t *out, int32_t value)
{
    *out = (uint8_t)value;
}

/* Pragma before a loop over elements: unrolls it four times. */
#if defined(__clang__)
#define TINYFUSE_FUSED_LOOP_UNROLL _Pragma("clang loop unroll_count(4)")
#elif defined(__GNUC__)
#define TINYFUSE_FUSED_LOOP_UNROLL _Pragma("GCC unroll 4")
#else
#define TINYFUSE_FUSED_LOOP_UNROLL
#endif

/* Address of the result of 0 in a table of -128 to 127. An empty statement hides it from the compiler, which would
   otherwise add it to each index to get a shorter constant. */
TINYFUSE_INLINE const int8_t *tinyfuse_fused_loop_middle(const int8_t *table)
{
    const int8_t *middle = table + 128;
#if defined(__GNUC__)
    __asm("" : "+r"(middle));
#endif
    return middle;
}

/* `middle`: from tinyfuse_fused_loop_middle. */
TINYFUSE_INLINE int32_t tinyfuse_fused_loop_look_up(const int8_t *middle, int32_t value)
{
    return middle[value];
}

/* Looks up in a channel's own table, given by its middle; with Helium by that of the first of four consecutive tables. */
TINYFUSE_INLINE int32_t tinyfuse_fused_loop_look_up_channel(const int8_t *middle, int32_t value)
{
    return middle[value];
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_clamp(int32_t value, int32_t low, int32_t high)
{
    return tinyfuse_clamp(value, low, high);
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_single_rounding_sum(const tinyfuse_single_rounding_sum *p, int32_t a,
                                                                int32_t b)
{
    const int32_t result = tinyfuse_saturate_right(a * p->a_factor + p->offset + b * p->b_factor, p->shift);
    const int saturates = p->act_min == -128 && p->act_max == 127;
    return saturates ? result : tinyfuse_clamp(result, p->act_min, p->act_max);
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_single_rounding_product(const tinyfuse_single_rounding_product *p, int32_t a,
                                                                    int32_t b)
{
    return tinyfuse_single_rounding_product_of(p, a, b);
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_add(const tinyfuse_binary *p, int32_t a, int32_t b)
{
    return tinyfuse_add_one(p, a, b);
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_sub(const tinyfuse_binary *p, int32_t a, int32_t b)
{
    return tinyfuse_sub_one(p, a, b);
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_squared_difference(const tinyfuse_binary *p, int32_t a, int32_t b)
{
    return tinyfuse_squared_difference_one(p, a, b);
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_mul(const tinyfuse_binary *p, int32_t a, int32_t b)
{
    const int32_t right = -p->out_shift;
    if (right >= 1 && right <= 22) {
#if TINYFUSE_DSP
        return tinyfuse_mul_down(p, a, b, right);
#else
        /* as in tinyfuse_add_one, the zero point is added before the shift */
        const int32_t product = (a - p->a_zero_point) * (b - p->b_zero_point);
        const int32_t high = tinyfuse_scale_high(product, p->out_multiplier);
        const int32_t half = (int32_t)((uint32_t)1 << ((right - 1) & 31));
        const int32_t early = p->out_zero_point * (int32_t)((uint32_t)1 << (right & 31));
        return tinyfuse_clamp((high + (high >> 31) + (half + early)) >> right, p->act_min, p->act_max);
#endif
    }
    return tinyfuse_mul_one(p, a, b);
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_maximum(int32_t a, int32_t b)
{
    return tinyfuse_max(a, b);
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_minimum(int32_t a, int32_t b)
{
    return tinyfuse_min(a, b);
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_logical_and(int32_t a, int32_t b)
{
    return a & b;
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_logical_or(int32_t a, int32_t b)
{
    return a | b;
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_logical_not(int32_t value)
{
    return 1 - value;
}

TINYFUSE_INLINE int32_t tinyfuse_fused_loop_select(int32_t condition, int32_t x, int32_t y)
{
    return condition != 0 ? x : y;
}

#define TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON(name, sign)                                                              \
    TINYFUSE_INLINE int32_t tinyfuse_fused_loop_##name(const tinyfuse_comparison *p, int32_t x, int32_t y)             \
    {                                                                                                              \
        return TINYFUSE_REAL_X sign TINYFUSE_REAL_Y;                                                               \
    }

TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON(equal, ==)
TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON(not_equal, !=)
TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON(greater, >)
TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON(greater_equal, >=)
TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON(less, <)
TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON(less_equal, <=)

#if TINYFUSE_MVE

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_load4_s8(const int8_t *in)
{
    return vldrbq_s32(in);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_load4_bool(const uint8_t *in)
{
    return vreinterpretq_s32_u32(vldrbq_u32(in));
}

TINYFUSE_INLINE void tinyfuse_fused_loop_store4_s8(int8_t *out, int32x4_t value)
{
    vstrbq_s32(out, value);
}

TINYFUSE_INLINE void tinyfuse_fused_loop_store4_bool(uint8_t *out, int32x4_t value)
{
    vstrbq_u32(out, vreinterpretq_u32_s32(value));
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_look_up4(const int8_t *middle, int32x4_t value)
{
    return vldrbq_gather_offset_s32(middle - 128, vreinterpretq_u32_s32(vaddq_n_s32(value, 128)));
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_look_up_channel4(const int8_t *middle, int32x4_t value)
{
    const uint32x4_t starts = vshlq_n_u32(vidupq_n_u32(0, 1), 8);
    const uint32x4_t places = vreinterpretq_u32_s32(vaddq_n_s32(value, 128));
    return vldrbq_gather_offset_s32(middle - 128, vaddq_u32(places, starts));
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_clamp4(int32x4_t value, int32_t low, int32_t high)
{
    return vminq_s32(vmaxq_s32(value, vdupq_n_s32(low)), vdupq_n_s32(high));
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_single_rounding_sum4(const tinyfuse_single_rounding_sum *p, int32x4_t a,
                                                                   int32x4_t b)
{
    return tinyfuse_single_rounding_sum4(p, a, b);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_single_rounding_product4(const tinyfuse_single_rounding_product *p,
                                                                       int32x4_t a, int32x4_t b)
{
    return tinyfuse_single_rounding_product4(p, a, b);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_add4(const tinyfuse_binary *p, int32x4_t a, int32x4_t b)
{
    return tinyfuse_add4(p, a, b);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_sub4(const tinyfuse_binary *p, int32x4_t a, int32x4_t b)
{
    const int32x4_t difference =
        vsubq_s32(tinyfuse_add_operand4(vsubq_n_s32(a, p->a_zero_point), p->a_multiplier, p->a_right),
                  tinyfuse_add_operand4(vsubq_n_s32(b, p->b_zero_point), p->b_multiplier, p->b_right));
    const int32x4_t high = vqrdmulhq_n_s32(difference, p->out_multiplier);
    return tinyfuse_binary_stored4(tinyfuse_scale_down4(high, -p->out_shift), p);
}

/* tinyfuse_scaled_operand for four elements. */
TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_operand4(int32x4_t value, int32_t zero_point, int32_t left,
                                                       int32_t multiplier, int32_t right)
{
    const int32x4_t shifted = vshlq_r_s32(vsubq_n_s32(value, zero_point), left);
    return tinyfuse_scale_down4(vqrdmulhq_n_s32(shifted, multiplier), right);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_squared_difference4(const tinyfuse_binary *p, int32x4_t a, int32x4_t b)
{
    const int32x4_t difference =
        vsubq_s32(tinyfuse_fused_loop_operand4(a, p->a_zero_point, 7, p->a_multiplier, p->a_right),
                  tinyfuse_fused_loop_operand4(b, p->b_zero_point, 7, p->b_multiplier, p->b_right));
    const int32x4_t high = vqrdmulhq_n_s32(vmulq_s32(difference, difference), p->out_multiplier);
    return tinyfuse_binary_stored4(tinyfuse_scale_down4(high, -p->out_shift), p);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_mul4(const tinyfuse_binary *p, int32x4_t a, int32x4_t b)
{
    return tinyfuse_mul4(p, a, b);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_maximum4(int32x4_t a, int32x4_t b)
{
    return vmaxq_s32(a, b);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_minimum4(int32x4_t a, int32x4_t b)
{
    return vminq_s32(a, b);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_logical_and4(int32x4_t a, int32x4_t b)
{
    return vandq_s32(a, b);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_logical_or4(int32x4_t a, int32x4_t b)
{
    return vorrq_s32(a, b);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_logical_not4(int32x4_t value)
{
    return vsubq_s32(vdupq_n_s32(1), value);
}

TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_select4(int32x4_t condition, int32x4_t x, int32x4_t y)
{
    return vpselq_s32(x, y, vcmpgtq_n_s32(condition, 0)); /* a condition is 0 or 1; GCC 12 fails on vcmpneq with 0 */
}

#define TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON4(name, compare)                                                          \
    TINYFUSE_INLINE int32x4_t tinyfuse_fused_loop_##name##4(const tinyfuse_comparison *p, int32x4_t a, int32x4_t b)    \
    {                                                                                                              \
        const int32x4_t x = tinyfuse_fused_loop_operand4(a, p->a_zero_point, 8, p->a_multiplier, p->a_right);          \
        const int32x4_t y = tinyfuse_fused_loop_operand4(b, p->b_zero_point, 8, p->b_multiplier, p->b_right);          \
        return vpselq_s32(vdupq_n_s32(1), vdupq_n_s32(0), compare(x, y));                                          \
    }

TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON4(equal, vcmpeqq_s32)
TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON4(not_equal, vcmpneq_s32)
TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON4(greater, vcmpgtq_s32)
TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON4(greater_equal, vcmpgeq_s32)
TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON4(less, vcmpltq_s32)
TINYFUSE_DEFINE_FUSED_LOOP_COMPARISON4(less_equal, vcmpleq_s32)

#endif

#endif
