/* POW and GELU of float32, computed in double. Both go forward, element by element: the output may be the input or
   lie below it. */
#ifndef TINYFUSE_POWER_H
#define TINYFUSE_POWER_H

#include "tinyfuse_broadcast.h"
#include "tinyfuse_double.h"

TINYFUSE_DEFINE_PLAIN_BINARY(pow, f32, float, float, tinyfuse_power(x, y))

/* 0.5 * x * share, where share is twice the normal distribution's probability of a value below x. */
TINYFUSE_INLINE float tinyfuse_half_of(float x, float share)
{
    return tinyfuse_product_f32(tinyfuse_product_f32(0.5f, x), share);
}

TINYFUSE_INLINE float tinyfuse_gelu_one_f32(float x)
{
    return tinyfuse_half_of(x, tinyfuse_erfc_f32(tinyfuse_product_f32(x, -0.707106769f)));
}

TINYFUSE_INLINE float tinyfuse_approximate_gelu_one_f32(float x)
{
    float cube = tinyfuse_product_f32(tinyfuse_product_f32(0.044715f, x), x);
    cube = tinyfuse_sum_f32(x, tinyfuse_product_f32(cube, x));
    return tinyfuse_half_of(x, tinyfuse_sum_f32(1.0f, tinyfuse_tanh_f32(tinyfuse_product_f32(0.797884583f, cube))));
}

TINYFUSE_INLINE void tinyfuse_gelu_f32(const float *in, float *out, int32_t count)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        out[i] = tinyfuse_gelu_one_f32(in[i]);
    }
}

TINYFUSE_INLINE void tinyfuse_approximate_gelu_f32(const float *in, float *out, int32_t count)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        out[i] = tinyfuse_approximate_gelu_one_f32(in[i]);
    }
}

#endif
