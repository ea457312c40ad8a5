/* MEAN over any dimensions: sums of stored values, rescaled once with two roundings. */
#ifndef TINYFUSE_MEAN_H
#define TINYFUSE_MEAN_H

#include "tinyfuse_requantize.h"

/* Neighbouring dimensions that are both kept or both reduced count as one, so at most two of each
   are left, outer before inner; strides are in elements. The multiplier holds the division by the
   number of reduced elements; `offset` is that number times the input's zero point. */
typedef struct {
    int32_t kept[2], kept_stride[2];
    int32_t reduced[2], reduced_stride[2];
    int32_t offset, multiplier, shift, out_zero_point;
} tinyfuse_mean;

/* `out` has the kept elements in order. */
TINYFUSE_INLINE void tinyfuse_mean_s8(const tinyfuse_mean *p, const int8_t *in, int8_t *out)
{
    int32_t i, j, k, l;
    for (i = 0; i < p->kept[0]; ++i) {
        for (j = 0; j < p->kept[1]; ++j) {
            const int8_t *const origin = in + i * p->kept_stride[0] + j * p->kept_stride[1];
            int32_t sum = -p->offset, scaled;
            for (k = 0; k < p->reduced[0]; ++k) {
                const int8_t *from = origin + k * p->reduced_stride[0];
                for (l = 0; l < p->reduced[1]; ++l) {
                    sum += *from;
                    from += p->reduced_stride[1];
                }
            }
            scaled = tinyfuse_requantize(sum, p->multiplier, p->shift) + p->out_zero_point;
            *out++ = (int8_t)tinyfuse_clamp(scaled, -128, 127);
        }
    }
}

#endif
