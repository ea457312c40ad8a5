/* Average and max pooling, float32 NHWC, one output row a call. Every sum adds a window's pixels row by row. */
#ifndef TINYFUSE_POOL_F32_H
#define TINYFUSE_POOL_F32_H

#include "tinyfuse_pool_row.h"
#include "tinyfuse_real.h"

typedef struct {
    tinyfuse_pool_shape shape;
    float act_min, act_max;
} tinyfuse_pool_f32;

TINYFUSE_INLINE float tinyfuse_pool_mean_f32(const tinyfuse_pool_f32 *p, float sum, int32_t count)
{
    return tinyfuse_clamp_f32(tinyfuse_quotient_f32(sum, (float)count), p->act_min, p->act_max);
}

TINYFUSE_INLINE float tinyfuse_pool_clamped_f32(const tinyfuse_pool_f32 *p, float most, int32_t count)
{
    (void)count;
    return tinyfuse_clamp_f32(most, p->act_min, p->act_max);
}

TINYFUSE_DEFINE_POOL_ROW(tinyfuse_average_pool_row_f32, tinyfuse_pool_f32, float, float, 0.0f,
                         tinyfuse_sum_f32, tinyfuse_pool_mean_f32)
TINYFUSE_DEFINE_POOL_ROW(tinyfuse_max_pool_row_f32, tinyfuse_pool_f32, float, float, -FLT_MAX,
                         tinyfuse_greater_f32, tinyfuse_pool_clamped_f32)

/* out[c] = previous[c] + channel c of `width` pixels, one after the other. `previous` may be `out`; NULL counts as
   zeros. */
TINYFUSE_INLINE void tinyfuse_row_sum_f32(const float *in, const float *previous, float *out, int32_t width,
                                          int32_t channels)
{
    int32_t c, x;
    for (c = 0; c < channels; ++c) {
        const float *from = in + c;
        float sum = previous != NULL ? previous[c] : 0.0f;
        for (x = 0; x < width; ++x) {
            sum = tinyfuse_sum_f32(sum, *from);
            from += channels;
        }
        out[c] = sum;
    }
}

/* Computes means of `count` values from their sums. */
TINYFUSE_INLINE void tinyfuse_average_of_sum_f32(const float *sum, float *out, int32_t channels, int32_t count,
                                                 float low, float high)
{
    int32_t c;
    for (c = 0; c < channels; ++c) {
        out[c] = tinyfuse_clamp_f32(tinyfuse_quotient_f32(sum[c], (float)count), low, high);
    }
}

#endif
