/* Elementwise operators of two float32 inputs, in the interpreter's order of operations, each rounded. */
#ifndef TINYFUSE_BINARY_F32_H
#define TINYFUSE_BINARY_F32_H

#include "tinyfuse_broadcast.h"
#include "tinyfuse_real.h"

/* Bounds of a fused activation. Without one they are -FLT_MAX and FLT_MAX, so that infinities become finite. */
typedef struct {
    float low, high;
} tinyfuse_range_f32;

TINYFUSE_INLINE float tinyfuse_squared_difference_one_f32(float a, float b)
{
    const float difference = tinyfuse_sum_f32(a, -b);
    return tinyfuse_product_f32(difference, difference);
}

#define TINYFUSE_DEFINE_FUSED_F32(name, expression)                        \
    TINYFUSE_DEFINE_BINARY(name, f32, tinyfuse_range_f32, float, float,    \
                           tinyfuse_clamp_f32(expression, p->low, p->high))

TINYFUSE_DEFINE_FUSED_F32(add, tinyfuse_sum_f32(x, y))
TINYFUSE_DEFINE_FUSED_F32(sub, tinyfuse_sum_f32(x, -y))
TINYFUSE_DEFINE_FUSED_F32(mul, tinyfuse_product_f32(x, y))
TINYFUSE_DEFINE_FUSED_F32(div, tinyfuse_quotient_f32(x, y))
TINYFUSE_DEFINE_PLAIN_BINARY(squared_difference, f32, float, float, tinyfuse_squared_difference_one_f32(x, y))
TINYFUSE_DEFINE_PLAIN_BINARY(prelu, f32, float, float, x >= 0.0f ? x : tinyfuse_product_f32(x, y))
/* the second one if both are equal */
TINYFUSE_DEFINE_PLAIN_BINARY(maximum, f32, float, float, tinyfuse_rounded(x) > y ? x : y)
TINYFUSE_DEFINE_PLAIN_BINARY(minimum, f32, float, float, tinyfuse_rounded(x) < y ? x : y)
/* results are 0 and 1 */
TINYFUSE_DEFINE_PLAIN_BINARY(is_equal, f32, float, uint8_t, x <= y && x >= y)
TINYFUSE_DEFINE_PLAIN_BINARY(is_not_equal, f32, float, uint8_t, !(x <= y && x >= y))
TINYFUSE_DEFINE_PLAIN_BINARY(is_greater, f32, float, uint8_t, x > y)
TINYFUSE_DEFINE_PLAIN_BINARY(is_greater_equal, f32, float, uint8_t, x >= y)
TINYFUSE_DEFINE_PLAIN_BINARY(is_less, f32, float, uint8_t, x < y)
TINYFUSE_DEFINE_PLAIN_BINARY(is_less_equal, f32, float, uint8_t, x <= y)

#endif
