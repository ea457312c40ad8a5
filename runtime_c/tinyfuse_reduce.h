/* MEAN, SUM, REDUCE_MAX and REDUCE_MIN over any dimensions. */
#ifndef TINYFUSE_REDUCE_H
#define TINYFUSE_REDUCE_H

#include "tinyfuse_requantize.h"

/* Adjacent dimensions that are both kept or both reduced are merged, so at most two of each kind are left, the
   outer one first. Strides are in elements. */
typedef struct {
    int32_t kept[2], kept_stride[2];
    int32_t reduced[2], reduced_stride[2];
} tinyfuse_reduction;

/* Rescales a sum of stored values to an output. `offset` is the number of reduced elements times the input's zero
   point; the multiplier of a mean includes the division. */
typedef struct {
    int32_t offset, multiplier, shift, out_zero_point;
} tinyfuse_sum_scaling;

/* Computes sums and rescales them once, with two roundings. `out` has the kept elements in order. */
TINYFUSE_INLINE void tinyfuse_reduce_sum_s8(const tinyfuse_reduction *p, const tinyfuse_sum_scaling *scaling,
                                            const int8_t *in, int8_t *out)
{
    int32_t i, j, k, l;
    for (i = 0; i < p->kept[0]; ++i) {
        for (j = 0; j < p->kept[1]; ++j) {
            const int8_t *const origin = in + i * p->kept_stride[0] + j * p->kept_stride[1];
            int32_t sum = -scaling->offset, scaled;
            for (k = 0; k < p->reduced[0]; ++k) {
                const int8_t *from = origin + k * p->reduced_stride[0];
                for (l = 0; l < p->reduced[1]; ++l) {
                    sum += *from;
                    from += p->reduced_stride[1];
                }
            }
            scaled = tinyfuse_requantize(sum, scaling->multiplier, scaling->shift) + scaling->out_zero_point;
            *out++ = (int8_t)tinyfuse_clamp(scaled, -128, 127);
        }
    }
}

/* Computes the greatest stored values, or the least ones if `flip` is -1: the exclusive or with -1 reverses the
   order. */
TINYFUSE_INLINE void tinyfuse_reduce_extreme_s8(const tinyfuse_reduction *p, int32_t flip, const int8_t *in,
                                                int8_t *out)
{
    int32_t i, j, k, l;
    for (i = 0; i < p->kept[0]; ++i) {
        for (j = 0; j < p->kept[1]; ++j) {
            const int8_t *const origin = in + i * p->kept_stride[0] + j * p->kept_stride[1];
            int32_t most = -128;
            for (k = 0; k < p->reduced[0]; ++k) {
                const int8_t *from = origin + k * p->reduced_stride[0];
                for (l = 0; l < p->reduced[1]; ++l) {
                    most = tinyfuse_max(most, *from ^ flip);
                    from += p->reduced_stride[1];
                }
            }
            *out++ = (int8_t)(most ^ flip);
        }
    }
}

#endif
