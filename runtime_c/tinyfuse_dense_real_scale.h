/* Fully connected layers of uint8 models: bytes of inputs and weights, each with a zero point, and sums that are
   multiplied by a real number (tinyfuse_scale_by_real). */
#ifndef TINYFUSE_DENSE_REAL_SCALE_H
#define TINYFUSE_DENSE_REAL_SCALE_H

#include "tinyfuse_dot.h"
#include "tinyfuse_fully_connected.h"

TINYFUSE_INLINE int8_t tinyfuse_real_output(const tinyfuse_fully_connected *p, const tinyfuse_real_scale *scale,
                                            int32_t sum)
{
    return (int8_t)tinyfuse_clamp(tinyfuse_scale_by_real(sum, scale) + p->out_zero_point, p->act_min, p->act_max);
}

/* Computes a layer as tinyfuse_fully_connected_s8 does, with a real scale. Only the biases of `channels` are used.
   Weights may be computed at run time. */
TINYFUSE_INLINE void tinyfuse_fully_connected_real_scale_s8(const tinyfuse_fully_connected *p,
                                                            const tinyfuse_real_scale *scale, const int8_t *in,
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
            *out++ = tinyfuse_real_output(p, scale, (int32_t)sum);
        }
        in += p->in_c;
    }
}

/* Computes a layer, in [batches][in_c], weights [out_c][in_c], out [batches][out_c]; biases [out_c] have
   -in_zero_point * (weights - weights_zero_point) folded in. The weights' zero point times the sum of the inputs is
   subtracted from every sum. */
TINYFUSE_INLINE void tinyfuse_dense_real_scale_s8(const tinyfuse_fully_connected *p, const tinyfuse_real_scale *scale,
                                                  const int8_t *in, int8_t *out, const int8_t *weights,
                                                  const int32_t *biases)
{
    int32_t b, o, i;
    for (b = 0; b < p->batches; ++b) {
        uint32_t less = 0;
        for (i = 0; i < p->in_c && p->weights_zero_point != 0; ++i) {
            less += (uint32_t)(in[i] * p->weights_zero_point);
        }
        for (o = 0; o + 4 <= p->out_c; o += 4) {
            int32_t sums[4];
            for (i = 0; i < 4; ++i) {
                sums[i] = (int32_t)((uint32_t)biases[o + i] - less);
            }
            tinyfuse_dots_s8(in, weights + o * p->in_c, p->in_c, p->in_c, sums);
            for (i = 0; i < 4; ++i) {
                *out++ = tinyfuse_real_output(p, scale, sums[i]);
            }
        }
        for (; o < p->out_c; ++o) {
            const int32_t bias = (int32_t)((uint32_t)biases[o] - less);
            *out++ = tinyfuse_real_output(p, scale, tinyfuse_dot_s8(in, weights + o * p->in_c, p->in_c, bias));
        }
        in += p->in_c;
    }
}

#endif
