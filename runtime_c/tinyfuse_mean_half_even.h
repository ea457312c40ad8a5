/* MEAN of int8 as in onnxruntime (QLinearGlobalAveragePool): the sum times a float32 factor, rounded half to even. */
#ifndef TINYFUSE_MEAN_HALF_EVEN_H
#define TINYFUSE_MEAN_HALF_EVEN_H

#include "tinyfuse_half_even.h"
#include "tinyfuse_reduce.h"

/* Converts a sum of stored values to an output: `offset` is the number of reduced elements times the input's zero
   point, `scale` the bits of the factor. */
typedef struct {
    int32_t offset, scale, out_zero_point;
} tinyfuse_mean_scaling;

TINYFUSE_INLINE int8_t tinyfuse_mean_output(const tinyfuse_mean_scaling *s, int32_t sum)
{
    return (int8_t)tinyfuse_requantize_half_even(sum, s->scale, s->out_zero_point);
}

TINYFUSE_DEFINE_REDUCE_SUM(tinyfuse_reduce_mean_half_even_s8, tinyfuse_mean_scaling, tinyfuse_mean_output)

/* Computes one output for each channel from its sum of stored values. */
TINYFUSE_INLINE void tinyfuse_mean_of_sum_half_even(const int32_t *sums, int8_t *out, int32_t channels, int32_t offset,
                                                    int32_t scale, int32_t out_zero_point)
{
    int32_t i;
    for (i = 0; i < channels; ++i) {
        out[i] = (int8_t)tinyfuse_requantize_half_even(sums[i] - offset, scale, out_zero_point);
    }
}

#endif
