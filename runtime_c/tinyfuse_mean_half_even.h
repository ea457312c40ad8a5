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

/* Computes means. `out` has the kept elements in order. */
TINYFUSE_INLINE void tinyfuse_reduce_mean_half_even_s8(const tinyfuse_reduction *p,
                                                       const tinyfuse_mean_scaling *scaling, const int8_t *in,
                                                       int8_t *out)
{
    int32_t i, j, k, l;
    for (i = 0; i < p->kept[0]; ++i) {
        for (j = 0; j < p->kept[1]; ++j) {
            const int8_t *const origin = in + i * p->kept_stride[0] + j * p->kept_stride[1];
            int32_t sum = -scaling->offset;
            for (k = 0; k < p->reduced[0]; ++k) {
                const int8_t *from = origin + k * p->reduced_stride[0];
                for (l = 0; l < p->reduced[1]; ++l) {
                    sum += *from;
                    from += p->reduced_stride[1];
                }
            }
            *out++ = (int8_t)tinyfuse_requantize_half_even(sum, scaling->scale, scaling->out_zero_point);
        }
    }
}

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
