/* Functions of one float32 value, in the interpreter's order of operations, each rounded. All go forward, element
   by element: the output may be the input or lie below it. */
#ifndef TINYFUSE_UNARY_F32_H
#define TINYFUSE_UNARY_F32_H

#include "tinyfuse_math.h"
#include "tinyfuse_real.h"

/* Values below 0 become 0; -0 and NaN stay. */
TINYFUSE_INLINE float tinyfuse_relu_one_f32(float x)
{
    return tinyfuse_greater_f32(x, 0.0f);
}

TINYFUSE_INLINE float tinyfuse_relu6_one_f32(float x)
{
    return tinyfuse_lesser_f32(tinyfuse_relu_one_f32(x), 6.0f);
}

TINYFUSE_INLINE float tinyfuse_hard_swish_one_f32(float x)
{
    const float above = tinyfuse_greater_f32(0.0f, tinyfuse_sum_f32(x, 3.0f));
    return tinyfuse_quotient_f32(tinyfuse_product_f32(x, tinyfuse_lesser_f32(6.0f, above)), 6.0f);
}

TINYFUSE_INLINE float tinyfuse_logistic_one_f32(float x)
{
    if (x > 16.6190471f) {
        return 1.0f;
    }
    if (x < -9.0f) {
        return tinyfuse_exp_f32(x);
    }
    return tinyfuse_quotient_f32(1.0f, tinyfuse_sum_f32(1.0f, tinyfuse_exp_f32(-x)));
}

/* Rounds towards zero and keeps the sign, of zeros too. */
TINYFUSE_INLINE float tinyfuse_whole_f32(float x, float whole)
{
    return tinyfuse_f32_of_bits(tinyfuse_bits_of_f32(whole) |
                                (tinyfuse_bits_of_f32(x) & TINYFUSE_BITS_OF_SIGN));
}

/* Every float from 2^23 on is an integer; infinities and NaN must not be converted. */
TINYFUSE_INLINE int tinyfuse_is_whole_f32(float x)
{
    return (tinyfuse_bits_of_f32(x) & ~TINYFUSE_BITS_OF_SIGN) >= 0x4B000000u;
}

TINYFUSE_INLINE float tinyfuse_floor_one_f32(float x)
{
    float whole;
    if (tinyfuse_is_whole_f32(x) != 0) {
        return x;
    }
    whole = tinyfuse_rounded((float)(int32_t)x);
    return tinyfuse_whole_f32(x, whole > x ? whole - 1.0f : whole);
}

TINYFUSE_INLINE float tinyfuse_ceil_one_f32(float x)
{
    float whole;
    if (tinyfuse_is_whole_f32(x) != 0) {
        return x;
    }
    whole = tinyfuse_rounded((float)(int32_t)x);
    return tinyfuse_whole_f32(x, whole < x ? whole + 1.0f : whole);
}

/* Rounds halves to the even integer; -0.5 to 0 becomes +0. */
TINYFUSE_INLINE float tinyfuse_round_one_f32(float x)
{
    const float below = tinyfuse_floor_one_f32(x);
    const float rest = tinyfuse_sum_f32(x, -below);
    if (tinyfuse_is_whole_f32(x) || rest < 0.5f || (rest <= 0.5f && (int32_t)below % 2 == 0)) {
        return below;
    }
    return tinyfuse_sum_f32(below, 1.0f);
}

#define TINYFUSE_DEFINE_UNARY_F32(name, expression)                                                 \
    TINYFUSE_INLINE void tinyfuse_##name##_f32(const float *in, float *out, int32_t count)          \
    {                                                                                               \
        int32_t i;                                                                                  \
        for (i = 0; i < count; ++i) {                                                               \
            const float x = in[i];                                                                  \
            out[i] = expression;                                                                    \
        }                                                                                           \
    }

TINYFUSE_DEFINE_UNARY_F32(relu, tinyfuse_relu_one_f32(x))
TINYFUSE_DEFINE_UNARY_F32(relu6, tinyfuse_relu6_one_f32(x))
TINYFUSE_DEFINE_UNARY_F32(hard_swish, tinyfuse_hard_swish_one_f32(x))
TINYFUSE_DEFINE_UNARY_F32(elu, x < 0.0f ? tinyfuse_expm1_f32(x) : x)
TINYFUSE_DEFINE_UNARY_F32(logistic, tinyfuse_logistic_one_f32(x))
TINYFUSE_DEFINE_UNARY_F32(each_tanh, tinyfuse_tanh_f32(x))
TINYFUSE_DEFINE_UNARY_F32(each_exp, tinyfuse_exp_f32(x))
TINYFUSE_DEFINE_UNARY_F32(each_log, tinyfuse_log_f32(x))
TINYFUSE_DEFINE_UNARY_F32(each_sin, tinyfuse_sin_f32(x))
TINYFUSE_DEFINE_UNARY_F32(each_cos, tinyfuse_cos_f32(x))
TINYFUSE_DEFINE_UNARY_F32(each_sqrt, tinyfuse_sqrt_f32(x))
TINYFUSE_DEFINE_UNARY_F32(rsqrt, tinyfuse_quotient_f32(1.0f, tinyfuse_sqrt_f32(x)))
TINYFUSE_DEFINE_UNARY_F32(abs, tinyfuse_f32_of_bits(tinyfuse_bits_of_f32(x) & ~TINYFUSE_BITS_OF_SIGN))
TINYFUSE_DEFINE_UNARY_F32(neg, tinyfuse_f32_of_bits(tinyfuse_bits_of_f32(x) ^ TINYFUSE_BITS_OF_SIGN))
TINYFUSE_DEFINE_UNARY_F32(square, x *x)
TINYFUSE_DEFINE_UNARY_F32(floor, tinyfuse_floor_one_f32(x))
TINYFUSE_DEFINE_UNARY_F32(ceil, tinyfuse_ceil_one_f32(x))
TINYFUSE_DEFINE_UNARY_F32(round, tinyfuse_round_one_f32(x))

TINYFUSE_INLINE void tinyfuse_leaky_relu_f32(const float *in, float *out, int32_t count, float alpha)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        const float x = in[i];
        out[i] = x > 0.0f ? x : tinyfuse_product_f32(x, alpha);
    }
}

#endif
