/* Fully connected layer, int8, in portable C: any batch, weights with or without zero point. */
#ifndef TINYFUSE_FULLY_CONNECTED_H
#define TINYFUSE_FULLY_CONNECTED_H

#include "tinyfuse_requantize.h"

typedef struct {
    int32_t batches, in_c, out_c;
    int32_t in_zero_point, weights_zero_point, out_zero_point, act_min, act_max;
} tinyfuse_fully_connected;

/* Computes a layer, in [batches][in_c], weights [out_c][in_c], out [batches][out_c]; `channels` has out_c entries.
   out may overlap batches of in that were read already, not the one that is computed. */
TINYFUSE_INLINE void tinyfuse_fully_connected_s8(const tinyfuse_fully_connected *p, const int8_t *in,
                                                 int8_t *out, const int8_t *weights,
                                                 const tinyfuse_requant *channels)
{
    int32_t b, o, i;
    for (b = 0; b < p->batches; ++b) {
        for (o = 0; o < p->out_c; ++o) {
            const int8_t *w = weights + o * p->in_c;
            uint32_t sum = (uint32_t)channels[o].bias; /* wraps */
            for (i = 0; i < p->in_c; ++i) {
                sum += (uint32_t)((in[i] - p->in_zero_point) * (w[i] - p->weights_zero_point));
            }
            *out++ = (int8_t)tinyfuse_clamp(
                tinyfuse_requantize((int32_t)sum, channels[o].multiplier, channels[o].shift) +
                    p->out_zero_point,
                p->act_min, p->act_max);
        }
        in += p->in_c;
    }
}

#endif
