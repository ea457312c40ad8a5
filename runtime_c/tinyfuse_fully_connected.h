/* Fully connected layer, int8, in portable C: any batch, weights with or without a zero point. */
#ifndef TINYFUSE_FULLY_CONNECTED_H
#define TINYFUSE_FULLY_CONNECTED_H

#include "tinyfuse_half_even.h"

typedef struct {
    int32_t batches, in_c, out_c;
    int32_t in_zero_point, weights_zero_point, out_zero_point, act_min, act_max;
} tinyfuse_fully_connected;

/* Computes a layer: in [batches][in_c], weights [out_c][in_c], out [batches][out_c]; `channels` has out_c entries.
   out may overlap batches of in that were read already, but not the batch being computed. */
TINYFUSE_INLINE void tinyfuse_fully_connected_by(const tinyfuse_fully_connected *p,
                                                 const int8_t *in, int8_t *out,
                                                 const int8_t *weights,
                                                 const tinyfuse_requant *channels, int half_even)
{
    int32_t b, o, i;
    for (b = 0; b < p->batches; ++b) {
        for (o = 0; o < p->out_c; ++o) {
            const int8_t *w = weights + o * p->in_c;
            uint32_t sum = (uint32_t)channels[o].bias; /* wraps around */
            for (i = 0; i < p->in_c; ++i) {
                sum += (uint32_t)((in[i] - p->in_zero_point) * (w[i] - p->weights_zero_point));
            }
            *out++ = (int8_t)tinyfuse_clamp(
                tinyfuse_requantize_by((int32_t)sum, &channels[o], half_even) +
                    p->out_zero_point,
                p->act_min, p->act_max);
        }
        in += p->in_c;
    }
}

TINYFUSE_INLINE void tinyfuse_fully_connected_s8(const tinyfuse_fully_connected *p,
                                                 const int8_t *in, int8_t *out,
                                                 const int8_t *weights,
                                                 const tinyfuse_requant *channels)
{
    tinyfuse_fully_connected_by(p, in, out, weights, channels, 0);
}

/* Computes a layer whose channels have float32 scales instead of multipliers (tinyfuse_half_even.h). */
TINYFUSE_INLINE void tinyfuse_fully_connected_half_even_s8(const tinyfuse_fully_connected *p,
                                                           const int8_t *in, int8_t *out,
                                                           const int8_t *weights,
                                                           const tinyfuse_requant *channels)
{
    tinyfuse_fully_connected_by(p, in, out, weights, channels, 1);
}

#endif
