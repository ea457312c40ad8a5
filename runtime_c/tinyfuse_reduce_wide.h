/* MEAN, SUM, REDUCE_MAX, REDUCE_MIN and REDUCE_ALL of int16, float32 and bool over any dimensions. `out` has the kept
 * elements in order; the elements reduced to each are taken in memory order.
 */
#ifndef TINYFUSE_REDUCE_WIDE_H
#define TINYFUSE_REDUCE_WIDE_H

#include "tinyfuse_real.h"
#include "tinyfuse_reduce.h"

/* Loops over all outputs: an accumulator `value` of type `acc_type` starts as `start` and becomes take(value, element)
   for each element. The expression `finish` is the output. */
#define TINYFUSE_REDUCE(type, acc_type, start, take, finish)                                           \
    do {                                                                                               \
        int32_t i, j, k, l;                                                                            \
        for (i = 0; i < p->kept[0]; ++i) {                                                             \
            for (j = 0; j < p->kept[1]; ++j) {                                                         \
                const type *const origin = in + i * p->kept_stride[0] + j * p->kept_stride[1];         \
                acc_type value = (start);                                                              \
                for (k = 0; k < p->reduced[0]; ++k) {                                                  \
                    const type *from = origin + k * p->reduced_stride[0];                              \
                    for (l = 0; l < p->reduced[1]; ++l) {                                              \
                        value = take(value, *from);                                                    \
                        from += p->reduced_stride[1];                                                  \
                    }                                                                                  \
                }                                                                                      \
                *out++ = (finish);                                                                     \
            }                                                                                          \
        }                                                                                              \
    } while (0)

TINYFUSE_INLINE int32_t tinyfuse_reduce_add(int32_t sum, int16_t value)
{
    return sum + value;
}

TINYFUSE_INLINE int16_t tinyfuse_reduce_scaled(const tinyfuse_sum_scaling *scaling, int32_t sum)
{
    const int32_t scaled = tinyfuse_requantize(sum, scaling->multiplier, scaling->shift);
    return (int16_t)tinyfuse_clamp(scaled + scaling->out_zero_point, INT16_MIN, INT16_MAX);
}

/* Like tinyfuse_reduce_sum_s8. */
TINYFUSE_INLINE void tinyfuse_reduce_sum_s16(const tinyfuse_reduction *p, const tinyfuse_sum_scaling *scaling,
                                             const int16_t *in, int16_t *out)
{
    TINYFUSE_REDUCE(int16_t, int32_t, -scaling->offset, tinyfuse_reduce_add,
                    tinyfuse_reduce_scaled(scaling, value));
}

/* Computes sums divided by `count`, which is 1 for SUM. */
TINYFUSE_INLINE void tinyfuse_reduce_sum_f32(const tinyfuse_reduction *p, int32_t count, const float *in, float *out)
{
    TINYFUSE_REDUCE(float, float, 0.0f, tinyfuse_sum_f32,
                    count == 1 ? value : tinyfuse_quotient_f32(value, (float)count));
}

TINYFUSE_INLINE void tinyfuse_reduce_max_f32(const tinyfuse_reduction *p, const float *in, float *out)
{
    TINYFUSE_REDUCE(float, float, -FLT_MAX, tinyfuse_greater_f32, value);
}

TINYFUSE_INLINE void tinyfuse_reduce_min_f32(const tinyfuse_reduction *p, const float *in, float *out)
{
    TINYFUSE_REDUCE(float, float, FLT_MAX, tinyfuse_lesser_f32, value);
}

TINYFUSE_INLINE uint8_t tinyfuse_reduce_both(uint8_t all, uint8_t value)
{
    return (uint8_t)(all && value);
}

TINYFUSE_INLINE void tinyfuse_reduce_all_bool(const tinyfuse_reduction *p, const uint8_t *in, uint8_t *out)
{
    TINYFUSE_REDUCE(uint8_t, uint8_t, 1, tinyfuse_reduce_both, value);
}

/* Like tinyfuse_mean_of_sum. */
TINYFUSE_INLINE void tinyfuse_mean_of_sum_s16(const int32_t *sums, int16_t *out, int32_t channels, int32_t offset,
                                              int32_t multiplier, int32_t shift, int32_t out_zero_point)
{
    const tinyfuse_sum_scaling scaling = {offset, multiplier, shift, out_zero_point};
    int32_t c;
    for (c = 0; c < channels; ++c) {
        out[c] = tinyfuse_reduce_scaled(&scaling, sums[c] - offset);
    }
}

TINYFUSE_INLINE void tinyfuse_mean_of_sum_f32(const float *sums, float *out, int32_t channels, int32_t count)
{
    int32_t c;
    for (c = 0; c < channels; ++c) {
        out[c] = tinyfuse_quotient_f32(sums[c], (float)count);
    }
}

#endif
