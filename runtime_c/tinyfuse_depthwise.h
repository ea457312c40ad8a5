/* Depthwise convolution, int8 NHWC, one output row a call: the general form (any kernel, stride,
   dilation, padding and depth multiplier) in portable C. */
#ifndef TINYFUSE_DEPTHWISE_H
#define TINYFUSE_DEPTHWISE_H

#include "tinyfuse_conv.h"

/* The taps of a window's row or column that lie inside an image of `size`; taps are `step` apart from `start` on. */
typedef struct {
    int32_t from, to;
} tinyfuse_inner_taps;

TINYFUSE_INLINE tinyfuse_inner_taps tinyfuse_taps_inside(int32_t start, int32_t step, int32_t count, int32_t size)
{
    tinyfuse_inner_taps taps = {0, count};
    while (taps.from < taps.to && start + taps.from * step < 0) {
        ++taps.from;
    }
    while (taps.from < taps.to && start + (taps.to - 1) * step >= size) {
        --taps.to;
    }
    return taps;
}

/* Output row y. Weights are [kernel_h][kernel_w][out_c]; output channel c reads input channel
   c / (out_c / in_c). Reads only the input rows of y's own window, writes only out_row. */
TINYFUSE_INLINE void tinyfuse_depthwise_row_by(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                               int8_t *out_row, const int8_t *weights,
                                               const tinyfuse_requant *channels, int half_even)
{
    const int32_t multiplier = p->out_c / p->in_c;
    const int32_t top = y * p->stride_h - p->pad_top;
    int32_t x, o, ky, kx;
    for (x = 0; x < p->out_w; ++x) {
        const int32_t left = x * p->stride_w - p->pad_left;
        const tinyfuse_inner_taps columns = tinyfuse_taps_inside(left, p->dilation_w, p->kernel_w, p->in_w);
        for (o = 0; o < p->out_c; ++o) {
            const int32_t first = (left + columns.from * p->dilation_w) * p->in_c + o / multiplier;
            uint32_t sum = (uint32_t)channels[o].bias; /* wraps */
            for (ky = 0; ky < p->kernel_h; ++ky) {
                const int32_t iy = top + ky * p->dilation_h;
                const int8_t *row;
                int32_t i = first, w = (ky * p->kernel_w + columns.from) * p->out_c + o;
                if (iy < 0 || iy >= p->in_h) {
                    continue;
                }
                row = tinyfuse_ring_row(in, iy, p->in_ring, p->in_w * p->in_c); /* divides */
                for (kx = columns.from; kx < columns.to; ++kx) {
                    sum += (uint32_t)((row[i] - p->in_zero_point) * weights[w]);
                    i += p->dilation_w * p->in_c;
                    w += p->out_c;
                }
            }
            *out_row++ = (int8_t)tinyfuse_clamp(
                tinyfuse_requantize_by((int32_t)sum, &channels[o], half_even) +
                    p->out_zero_point,
                p->act_min, p->act_max);
        }
    }
}

TINYFUSE_INLINE void tinyfuse_depthwise_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                               int8_t *out_row, const int8_t *weights,
                                               const tinyfuse_requant *channels)
{
    tinyfuse_depthwise_row_by(p, in, y, out_row, weights, channels, 0);
}

/* Computes output row y for channels that have float32 scales instead of multipliers (tinyfuse_half_even.h). */
TINYFUSE_INLINE void tinyfuse_depthwise_row_half_even_s8(const tinyfuse_conv *p, const int8_t *in,
                                                         int32_t y, int8_t *out_row,
                                                         const int8_t *weights,
                                                         const tinyfuse_requant *channels)
{
    tinyfuse_depthwise_row_by(p, in, y, out_row, weights, channels, 1);
}

#endif
