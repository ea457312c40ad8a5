/* QUANTIZE from float32 to int8 as in onnxruntime: halves are rounded to even. */
#ifndef TINYFUSE_QUANTIZE_HALF_EVEN_H
#define TINYFUSE_QUANTIZE_HALF_EVEN_H

#include "tinyfuse_nearest_even.h"

/* out = nearest(in / scale + before) + after, saturated. Goes forward, element by element: the output may begin
   where the input does, or below it. */
TINYFUSE_INLINE void tinyfuse_quantize_half_even_f32_s8(const float *in, int8_t *out, int32_t count, float scale,
                                                        int32_t before, int32_t after)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        const float quotient = tinyfuse_quotient_f32(in[i], scale);
        const int32_t nearest = tinyfuse_nearest_even(tinyfuse_sum_f32(quotient, (float)before));
        out[i] = (int8_t)tinyfuse_clamp(nearest + after, -128, 127);
    }
}

/* QUANTIZE as ExecuTorch computes it: out = nearest(in * factor) + zero_point, saturated, with factor = 1 / scale. Goes
   forward, element by element, as above. */
TINYFUSE_INLINE void tinyfuse_quantize_by_reciprocal_f32_s8(const float *in, int8_t *out, int32_t count, float factor,
                                                            int32_t zero_point)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        const int32_t nearest = tinyfuse_nearest_even(tinyfuse_product_f32(in[i], factor));
        out[i] = (int8_t)tinyfuse_clamp(nearest + zero_point, -128, 127);
    }
}

#endif
