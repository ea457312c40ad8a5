/* Elementwise operators of two inputs with TensorFlow Lite Micro's arithmetic: SUB, SQUARED_DIFFERENCE, PRELU,
   MAXIMUM, MINIMUM, comparisons, logic, and int32 arithmetic. int8 ADD and MUL are in tinyfuse_elementwise.h. */
#ifndef TINYFUSE_BINARY_H
#define TINYFUSE_BINARY_H

#include "tinyfuse_elementwise.h"

/* Returns (operand << left) * multiplier / 2^31 / 2^right with two roundings; |operand| << left is below 2^30. */
TINYFUSE_INLINE int32_t tinyfuse_scaled_operand(int32_t value, int32_t left, int32_t multiplier,
                                                int32_t right)
{
    return tinyfuse_scale_down(tinyfuse_scale_high(value * (1 << left), multiplier), right);
}

TINYFUSE_INLINE int8_t tinyfuse_sub_one(const tinyfuse_binary *p, int32_t a, int32_t b)
{
    const int32_t difference = tinyfuse_add_operand(a - p->a_zero_point, p->a_multiplier, p->a_right) -
                               tinyfuse_add_operand(b - p->b_zero_point, p->b_multiplier, p->b_right);
    const int32_t high = tinyfuse_scale_high(difference, p->out_multiplier);
    const int32_t scaled = tinyfuse_scale_down(high, -p->out_shift);
    return (int8_t)tinyfuse_clamp_s8(scaled + p->out_zero_point, p->act_min, p->act_max);
}

TINYFUSE_INLINE int8_t tinyfuse_squared_difference_one(const tinyfuse_binary *p, int32_t a, int32_t b)
{
    /* operands are at most 255 * 2^7 / 2 after rescaling, so the square is below 2^30 */
    const int32_t difference =
        tinyfuse_scaled_operand(a - p->a_zero_point, 7, p->a_multiplier, p->a_right) -
        tinyfuse_scaled_operand(b - p->b_zero_point, 7, p->b_multiplier, p->b_right);
    const int32_t high = tinyfuse_scale_high(difference * difference, p->out_multiplier);
    const int32_t scaled = tinyfuse_scale_down(high, -p->out_shift);
    return (int8_t)tinyfuse_clamp_s8(scaled + p->out_zero_point, p->act_min, p->act_max);
}

/* Real multipliers for values from 0 on, and for negative ones times alpha; shifts are positive to the left. */
typedef struct {
    int32_t in_zero_point, alpha_zero_point, out_zero_point;
    int32_t multiplier, shift;
    int32_t alpha_multiplier, alpha_shift;
} tinyfuse_prelu;

TINYFUSE_INLINE int8_t tinyfuse_prelu_one(const tinyfuse_prelu *p, int32_t x, int32_t alpha)
{
    const int32_t value = x - p->in_zero_point;
    const int32_t scaled = value >= 0 ? tinyfuse_requantize(value, p->multiplier, p->shift)
                                      : tinyfuse_requantize(value * (alpha - p->alpha_zero_point),
                                                            p->alpha_multiplier, p->alpha_shift);
    return (int8_t)tinyfuse_clamp_s8(scaled + p->out_zero_point, -128, 127);
}

/* The operands' scales, below one. */
typedef struct {
    int32_t a_zero_point, a_multiplier, a_right;
    int32_t b_zero_point, b_multiplier, b_right;
} tinyfuse_comparison;

/* Real values of the operands in 256ths, rounded. */
#define TINYFUSE_REAL_X tinyfuse_scaled_operand(x - p->a_zero_point, 8, p->a_multiplier, p->a_right)
#define TINYFUSE_REAL_Y tinyfuse_scaled_operand(y - p->b_zero_point, 8, p->b_multiplier, p->b_right)

/* Results are 0 and 1. */
#define TINYFUSE_DEFINE_COMPARISON(name, sign)                                                      \
    TINYFUSE_DEFINE_BINARY(name, s8, tinyfuse_comparison, int8_t, uint8_t,                          \
                           TINYFUSE_REAL_X sign TINYFUSE_REAL_Y)                                    \
    TINYFUSE_DEFINE_PLAIN_BINARY(name, s32, int32_t, uint8_t, x sign y)

TINYFUSE_DEFINE_BINARY(sub, s8, tinyfuse_binary, int8_t, int8_t, tinyfuse_sub_one(p, x, y))
TINYFUSE_DEFINE_BINARY(squared_difference, s8, tinyfuse_binary, int8_t, int8_t,
                       tinyfuse_squared_difference_one(p, x, y))
TINYFUSE_DEFINE_BINARY(prelu, s8, tinyfuse_prelu, int8_t, int8_t, tinyfuse_prelu_one(p, x, y))
TINYFUSE_DEFINE_PLAIN_BINARY(maximum, s8, int8_t, int8_t, x > y ? x : y)
TINYFUSE_DEFINE_PLAIN_BINARY(minimum, s8, int8_t, int8_t, x < y ? x : y)
/* int32 wraps around */
TINYFUSE_DEFINE_PLAIN_BINARY(add, s32, int32_t, int32_t, (uint32_t)x + (uint32_t)y)
TINYFUSE_DEFINE_PLAIN_BINARY(sub, s32, int32_t, int32_t, (uint32_t)x - (uint32_t)y)
TINYFUSE_DEFINE_PLAIN_BINARY(mul, s32, int32_t, int32_t, (uint32_t)x * (uint32_t)y)
TINYFUSE_DEFINE_PLAIN_BINARY(maximum, s32, int32_t, int32_t, x > y ? x : y)
TINYFUSE_DEFINE_PLAIN_BINARY(minimum, s32, int32_t, int32_t, x < y ? x : y)
TINYFUSE_DEFINE_COMPARISON(equal, ==)
TINYFUSE_DEFINE_COMPARISON(not_equal, !=)
TINYFUSE_DEFINE_COMPARISON(greater, >)
TINYFUSE_DEFINE_COMPARISON(greater_equal, >=)
TINYFUSE_DEFINE_COMPARISON(less, <)
TINYFUSE_DEFINE_COMPARISON(less_equal, <=)
TINYFUSE_DEFINE_PLAIN_BINARY(logical_and, bool, uint8_t, uint8_t, x & y)
TINYFUSE_DEFINE_PLAIN_BINARY(logical_or, bool, uint8_t, uint8_t, x | y)

/* Goes forward: the output may be the input, or lie below it. */
TINYFUSE_INLINE void tinyfuse_logical_not_bool(const uint8_t *in, uint8_t *out, int32_t count)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        out[i] = (uint8_t)(1 - in[i]);
    }
}

#endif
