/* Elements of fused loops of float32 (tinyfuse_fused_loop.h): each operation is rounded, in the interpreter's
   order. Conditions are 0 and 1 in 32 bits. There are no Helium versions, because Helium flushes numbers below
   FLT_MIN to zero. */
#ifndef TINYFUSE_FUSED_LOOP_F32_H
#define TINYFUSE_FUSED_LOOP_F32_H

#include "tinyfuse_binary_f32.h"
#include "tinyfuse_fused_loop.h"

TINYFUSE_INLINE void tinyfuse_fused_loop_store_f32(float *out, float value)
{
    *out = value;
}

#define TINYFUSE_DEFINE_FUSED_LOOP_FUSED_F32(name, expression)                                              \
    TINYFUSE_INLINE float tinyfuse_fused_loop_##name##_f32(const tinyfuse_range_f32 *p, float x, float y)   \
    {                                                                                                   \
        return tinyfuse_clamp_f32(expression, p->low, p->high);                                         \
    }
#define TINYFUSE_DEFINE_FUSED_LOOP_F32(name, type, expression)                                              \
    TINYFUSE_INLINE type tinyfuse_fused_loop_##name##_f32(float x, float y)                                 \
    {                                                                                                   \
        return expression;                                                                              \
    }

TINYFUSE_DEFINE_FUSED_LOOP_FUSED_F32(add, tinyfuse_sum_f32(x, y))
TINYFUSE_DEFINE_FUSED_LOOP_FUSED_F32(sub, tinyfuse_sum_f32(x, -y))
TINYFUSE_DEFINE_FUSED_LOOP_FUSED_F32(mul, tinyfuse_product_f32(x, y))
TINYFUSE_DEFINE_FUSED_LOOP_FUSED_F32(div, tinyfuse_quotient_f32(x, y))
TINYFUSE_DEFINE_FUSED_LOOP_F32(squared_difference, float, tinyfuse_squared_difference_one_f32(x, y))
TINYFUSE_DEFINE_FUSED_LOOP_F32(prelu, float, x >= 0.0f ? x : tinyfuse_product_f32(x, y))
TINYFUSE_DEFINE_FUSED_LOOP_F32(maximum, float, tinyfuse_rounded(x) > y ? x : y)
TINYFUSE_DEFINE_FUSED_LOOP_F32(minimum, float, tinyfuse_rounded(x) < y ? x : y)
TINYFUSE_DEFINE_FUSED_LOOP_F32(is_equal, int32_t, x <= y && x >= y)
TINYFUSE_DEFINE_FUSED_LOOP_F32(is_not_equal, int32_t, !(x <= y && x >= y))
TINYFUSE_DEFINE_FUSED_LOOP_F32(is_greater, int32_t, x > y)
TINYFUSE_DEFINE_FUSED_LOOP_F32(is_greater_equal, int32_t, x >= y)
TINYFUSE_DEFINE_FUSED_LOOP_F32(is_less, int32_t, x < y)
TINYFUSE_DEFINE_FUSED_LOOP_F32(is_less_equal, int32_t, x <= y)

TINYFUSE_INLINE float tinyfuse_fused_loop_select_f32(int32_t condition, float x, float y)
{
    return condition != 0 ? x : y;
}

TINYFUSE_INLINE float tinyfuse_fused_loop_relu_f32(float x)
{
    return tinyfuse_greater_f32(x, 0.0f);
}

TINYFUSE_INLINE float tinyfuse_fused_loop_relu6_f32(float x)
{
    return tinyfuse_lesser_f32(tinyfuse_fused_loop_relu_f32(x), 6.0f);
}

#endif
