/* Average and max pooling, int16 NHWC, one output row a call. */
#ifndef TINYFUSE_POOL_S16_H
#define TINYFUSE_POOL_S16_H

#include "tinyfuse_pool.h"
#include "tinyfuse_pool_row.h"

typedef struct {
    tinyfuse_pool_shape shape;
    int32_t act_min, act_max;
} tinyfuse_pool_s16;

TINYFUSE_INLINE int32_t tinyfuse_pool_add_s16(int32_t sum, int16_t value)
{
    return sum + value;
}

TINYFUSE_INLINE int16_t tinyfuse_pool_mean_s16(const tinyfuse_pool_s16 *p, int32_t sum, int32_t count)
{
    return (int16_t)tinyfuse_clamp(tinyfuse_mean_of(sum, count), p->act_min, p->act_max);
}

TINYFUSE_INLINE int32_t tinyfuse_pool_most_s16(int32_t most, int16_t value)
{
    return tinyfuse_max(most, value);
}

TINYFUSE_INLINE int16_t tinyfuse_pool_clamped_s16(const tinyfuse_pool_s16 *p, int32_t most, int32_t count)
{
    (void)count;
    return (int16_t)tinyfuse_clamp(most, p->act_min, p->act_max);
}

TINYFUSE_DEFINE_POOL_ROW(tinyfuse_average_pool_row_s16, tinyfuse_pool_s16, int16_t, int32_t, 0,
                         tinyfuse_pool_add_s16, tinyfuse_pool_mean_s16)
TINYFUSE_DEFINE_POOL_ROW(tinyfuse_max_pool_row_s16, tinyfuse_pool_s16, int16_t, int32_t, INT16_MIN,
                         tinyfuse_pool_most_s16, tinyfuse_pool_clamped_s16)

/* out[c] = previous[c] + the sum of channel c over `width` pixels; `previous` may be `out`, NULL
   counts as zeros. */
TINYFUSE_INLINE void tinyfuse_row_sum_s16(const int16_t *in, const int32_t *previous, int32_t *out,
                                          int32_t width, int32_t channels)
{
    int32_t c, x;
    for (c = 0; c < channels; ++c) {
        const int16_t *from = in + c;
        int32_t sum = previous != NULL ? previous[c] : 0;
        for (x = 0; x < width; ++x) {
            sum += *from;
            from += channels;
        }
        out[c] = sum;
    }
}

/* The means of `count` values whose sums are given. */
TINYFUSE_INLINE void tinyfuse_average_of_sum_s16(const int32_t *sum, int16_t *out, int32_t channels,
                                                 int32_t count, int32_t low, int32_t high)
{
    int32_t c;
    for (c = 0; c < channels; ++c) {
        out[c] = (int16_t)tinyfuse_clamp(tinyfuse_mean_of(sum[c], count), low, high);
    }
}

#endif
