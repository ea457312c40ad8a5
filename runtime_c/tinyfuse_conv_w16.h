/* Convolutions of int8 data with int16 weights of at most 9 bits (those of uint8 models, less their zero point), NHWC,
   one output row a call, which reads only the input rows of that row's own window. */
#ifndef TINYFUSE_CONV_W16_H
#define TINYFUSE_CONV_W16_H

#include "tinyfuse_conv_packed.h"

/* Computes output row y of any convolution of groups. Biases and multipliers are those of TensorFlow Lite Micro,
   weights [out_c][kernel_h][kernel_w][in_c / groups]. */
TINYFUSE_INLINE void tinyfuse_conv_row_w16(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                           const int16_t *weights, const tinyfuse_requant *channels)
{
    const int32_t row_bytes = p->in_w * p->in_c;
    const int32_t filter_c = p->in_c / p->groups;
    const int32_t filters = p->out_c / p->groups;
    int32_t x, o, ky, kx, i;
    for (x = 0; x < p->out_w; ++x) {
        const int16_t *w = weights;
        for (o = 0; o < p->out_c; ++o) {
            uint32_t sum = (uint32_t)channels[o].bias; /* wraps */
            for (ky = 0; ky < p->kernel_h; ++ky) {
                const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
                const int inside = iy >= 0 && iy < p->in_h;
                const int8_t *const row =
                    tinyfuse_ring_row(in, inside ? iy : 0, p->in_ring, row_bytes) + o / filters * filter_c;
                for (kx = 0; kx < p->kernel_w; ++kx) {
                    const int32_t ix = x * p->stride_w - p->pad_left + kx * p->dilation_w;
                    for (i = 0; i < filter_c && inside && ix >= 0 && ix < p->in_w; ++i) {
                        sum += (uint32_t)((row[ix * p->in_c + i] - p->in_zero_point) * w[i]);
                    }
                    w += filter_c;
                }
            }
            *out_row++ = (int8_t)tinyfuse_clamp(
                tinyfuse_requantize((int32_t)sum, channels[o].multiplier, channels[o].shift) +
                    p->out_zero_point,
                p->act_min, p->act_max);
        }
    }
}

/* Computes output row y of a convolution of one group. Weights are those of TINYFUSE_W16 (tinyfuse_matmul.h), channels
   of the bounded form. scratch as that of tinyfuse_conv_packed_row_s8. */
TINYFUSE_INLINE void tinyfuse_conv_packed_row_w16(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                                  const int8_t *weights, const tinyfuse_requant *channels,
                                                  void *scratch, int32_t block_pixels)
{
    tinyfuse_conv_packed_body(p, p, in, y, out_row, weights, channels, scratch, block_pixels, TINYFUSE_W16);
}

#endif
