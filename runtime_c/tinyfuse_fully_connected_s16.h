/* Fully connected layer, int16 data and int8 weights, in portable C: any batch and zero points. */
#ifndef TINYFUSE_FULLY_CONNECTED_S16_H
#define TINYFUSE_FULLY_CONNECTED_S16_H

#include "tinyfuse_fully_connected.h"
#include "tinyfuse_requantize_s16.h"

/* Computes a layer: in [batches][in_c], weights [out_c][in_c], out [batches][out_c]; `channels` has out_c entries.
   out may overlap batches of in that were read already, but not the batch being computed. */
TINYFUSE_INLINE void tinyfuse_fully_connected_s16(const tinyfuse_fully_connected *p, const int16_t *in, int16_t *out,
                                                  const int8_t *weights, const tinyfuse_requant_s16 *channels,
                                                  enum tinyfuse_sums sums)
{
    int32_t b, o, i;
    for (b = 0; b < p->batches; ++b) {
        for (o = 0; o < p->out_c; ++o) {
            const int8_t *w = weights + o * p->in_c;
            int64_t sum = 0;
            int32_t scaled;
            for (i = 0; i < p->in_c; ++i) {
                sum += (in[i] - p->in_zero_point) * (w[i] - p->weights_zero_point);
            }
            scaled = tinyfuse_requantize_s16(tinyfuse_add_s64(sum, channels[o].bias), &channels[o], sums);
            *out++ = (int16_t)tinyfuse_clamp((int32_t)((uint32_t)scaled + (uint32_t)p->out_zero_point), p->act_min,
                                             p->act_max);
        }
        in += p->in_c;
    }
}

#endif
