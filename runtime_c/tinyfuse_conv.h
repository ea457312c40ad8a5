/* 2D convolution, int8 NHWC, one output row a call: the general form (any kernel, stride, dilation,
   padding and groups) in portable C. */
#ifndef TINYFUSE_CONV_H
#define TINYFUSE_CONV_H

#include "tinyfuse_half_even.h"

/* Geometry and quantization of a convolution or depthwise convolution; sizes in elements. The
   input is a ring of in_ring rows (in_h for a whole tensor). Padded positions count as
   in_zero_point. `groups` is not used by depthwise kernels. */
typedef struct {
    int32_t in_h, in_w, in_c, in_ring;
    int32_t out_w, out_c, groups;
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
    int32_t in_zero_point, out_zero_point, act_min, act_max;
} tinyfuse_conv;

/* Computes output row y. Weights are [out_c][kernel_h][kernel_w][in_c / groups], `channels` has out_c entries
   as TensorFlow Lite Micro computes them. Of the input it reads only the rows of y's own window, and
   it writes only the out_w * out_c bytes of out_row. */
TINYFUSE_INLINE void tinyfuse_conv_row_by(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                          int8_t *out_row, const int8_t *weights,
                                          const tinyfuse_requant *channels, int half_even)
{
    const int32_t row_bytes = p->in_w * p->in_c;
    const int32_t filter_c = p->in_c / p->groups;
    const int32_t filters = p->out_c / p->groups;
    int32_t x, o, ky, kx, i;
    for (x = 0; x < p->out_w; ++x) {
        for (o = 0; o < p->out_c; ++o) {
            uint32_t sum = (uint32_t)channels[o].bias; /* wraps */
            for (ky = 0; ky < p->kernel_h; ++ky) {
                const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
                const int8_t *row;
                if (iy < 0 || iy >= p->in_h) {
                    continue;
                }
                row = tinyfuse_ring_row(in, iy, p->in_ring, row_bytes) + o / filters * filter_c; /* divides */
                for (kx = 0; kx < p->kernel_w; ++kx) {
                    const int32_t ix = x * p->stride_w - p->pad_left + kx * p->dilation_w;
                    const int8_t *from;
                    const int8_t *w;
                    if (ix < 0 || ix >= p->in_w) {
                        continue;
                    }
                    from = row + ix * p->in_c;
                    w = weights + ((o * p->kernel_h + ky) * p->kernel_w + kx) * filter_c;
                    for (i = 0; i < filter_c; ++i) {
                        sum += (uint32_t)((from[i] - p->in_zero_point) * w[i]);
                    }
                }
            }
            *out_row++ = (int8_t)tinyfuse_clamp(
                tinyfuse_requantize_by((int32_t)sum, &channels[o], half_even) +
                    p->out_zero_point,
                p->act_min, p->act_max);
        }
    }
}

TINYFUSE_INLINE void tinyfuse_conv_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                          int8_t *out_row, const int8_t *weights,
                                          const tinyfuse_requant *channels)
{
    tinyfuse_conv_row_by(p, in, y, out_row, weights, channels, 0);
}

/* Computes output row y for channels that have float32 scales instead of multipliers (tinyfuse_half_even.h). */
TINYFUSE_INLINE void tinyfuse_conv_row_half_even_s8(const tinyfuse_conv *p, const int8_t *in,
                                                    int32_t y, int8_t *out_row,
                                                    const int8_t *weights,
                                                    const tinyfuse_requant *channels)
{
    tinyfuse_conv_row_by(p, in, y, out_row, weights, channels, 1);
}

#endif
