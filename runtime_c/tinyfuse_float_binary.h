/* ADD and MUL of int8 as onnxruntime computes them (QLinearAdd, QLinearMul): in float32, halves rounded to even.
   Operands of equal shape take a flat loop, others a strided one. */
#ifndef TINYFUSE_FLOAT_BINARY_H
#define TINYFUSE_FLOAT_BINARY_H

#include "tinyfuse_broadcast.h"
#include "tinyfuse_nearest_even.h"

/* a * b + c, rounded once. a is an integer of at most 17 bits; b and c must be such that the exact sum fits a
   double. */
TINYFUSE_INLINE float tinyfuse_fused_f32(float a, float b, float c)
{
#if defined(__GNUC__) && defined(__arm__) && defined(__ARM_FEATURE_FMA) && defined(__ARM_FP) && !defined(__SOFTFP__)
    __asm("vfma.f32 %0, %1, %2" : "+t"(c) : "t"(a), "t"(b));
    return c;
#else
    return (float)((double)a * (double)b + (double)c);
#endif
}

/* ADD: out = nearest((a + offset) * a_factor + ((b + offset) * b_factor + rest)) - offset. */
typedef struct {
    float a_factor, b_factor, rest;
    int32_t offset, act_min, act_max;
} tinyfuse_float_sum;

TINYFUSE_INLINE int8_t tinyfuse_float_sum_one(const tinyfuse_float_sum *p, int32_t a, int32_t b)
{
    const float inner = tinyfuse_fused_f32((float)(b + p->offset), p->b_factor, p->rest);
    const int32_t nearest = tinyfuse_nearest_even(tinyfuse_fused_f32((float)(a + p->offset), p->a_factor, inner));
    return (int8_t)tinyfuse_clamp(nearest - p->offset, p->act_min, p->act_max);
}

/* MUL: out = nearest((a - a_zero_point) * (b - b_zero_point) * factor + before) - offset. */
typedef struct {
    int32_t a_zero_point, b_zero_point;
    float factor, before;
    int32_t offset, act_min, act_max;
} tinyfuse_float_product;

TINYFUSE_INLINE int8_t tinyfuse_float_product_one(const tinyfuse_float_product *p, int32_t a, int32_t b)
{
    const float product = tinyfuse_product_f32((float)((a - p->a_zero_point) * (b - p->b_zero_point)), p->factor);
    const int32_t nearest = tinyfuse_nearest_even(tinyfuse_sum_f32(product, p->before));
    return (int8_t)tinyfuse_clamp(nearest - p->offset, p->act_min, p->act_max);
}

TINYFUSE_DEFINE_BINARY(float_sum, s8, tinyfuse_float_sum, int8_t, int8_t, tinyfuse_float_sum_one(p, x, y))
TINYFUSE_DEFINE_BINARY(float_product, s8, tinyfuse_float_product, int8_t, int8_t, tinyfuse_float_product_one(p, x, y))

#endif
