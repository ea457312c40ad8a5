/* Convolutions of int16 data with int8 weights, NHWC, one output row a call: the general form (any kernel, stride,
   dilation, padding, groups and depth multiplier) in portable C. Zero points are 0; the fields of tinyfuse_conv
   that hold them are not used. */
#ifndef TINYFUSE_CONV_S16_H
#define TINYFUSE_CONV_S16_H

#include "tinyfuse_depthwise.h"
#include "tinyfuse_requantize_s16.h"

/* Returns the sum of in * weight over `count` neighbours. */
TINYFUSE_INLINE int64_t tinyfuse_products_s16(const int16_t *in, const int8_t *weights, int32_t count)
{
    int64_t sum = 0;
    int32_t i;
    for (i = 0; i < count; ++i) {
        sum += in[i] * weights[i];
    }
    return sum;
}

TINYFUSE_INLINE int16_t tinyfuse_conv_output_s16(const tinyfuse_conv *p, int64_t sum,
                                                 const tinyfuse_requant_s16 *channel, enum tinyfuse_sums sums)
{
    const int32_t scaled = tinyfuse_requantize_s16(tinyfuse_add_s64(sum, channel->bias), channel, sums);
    return (int16_t)tinyfuse_clamp(scaled, p->act_min, p->act_max);
}

/* Computes output row y. Weights are [out_c][kernel_h][kernel_w][in_c / groups], `channels` has out_c entries. Reads
   only the input rows of y's own window, writes only the out_w * out_c elements of out_row. */
TINYFUSE_INLINE void tinyfuse_conv_row_s16(const tinyfuse_conv *p, const int16_t *in, int32_t y, int16_t *out_row,
                                           const int8_t *weights, const tinyfuse_requant_s16 *channels,
                                           enum tinyfuse_sums sums)
{
    const int32_t row = p->in_w * p->in_c;
    const int32_t filter_c = p->in_c / p->groups;
    const int32_t filters = p->out_c / p->groups;
    int32_t x, o, ky, kx;
    for (x = 0; x < p->out_w; ++x) {
        for (o = 0; o < p->out_c; ++o) {
            int64_t sum = 0;
            for (ky = 0; ky < p->kernel_h; ++ky) {
                const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
                if (iy < 0 || iy >= p->in_h) {
                    continue;
                }
                for (kx = 0; kx < p->kernel_w; ++kx) {
                    const int32_t ix = x * p->stride_w - p->pad_left + kx * p->dilation_w;
                    if (ix >= 0 && ix < p->in_w) {
                        sum += tinyfuse_products_s16(
                            in + (iy % p->in_ring) * row + ix * p->in_c + o / filters * filter_c,
                            weights + ((o * p->kernel_h + ky) * p->kernel_w + kx) * filter_c, filter_c);
                    }
                }
            }
            *out_row++ = tinyfuse_conv_output_s16(p, sum, &channels[o], sums);
        }
    }
}

/* Computes output row y of a depthwise convolution. Weights are [kernel_h][kernel_w][out_c]; output channel c reads
   input channel c / (out_c / in_c). Sums are int64. Reads only the input rows of y's own window, writes only out_row. */
TINYFUSE_INLINE void tinyfuse_depthwise_row_s16(const tinyfuse_conv *p, const int16_t *in, int32_t y,
                                                int16_t *out_row, const int8_t *weights,
                                                const tinyfuse_requant_s16 *channels)
{
    const int32_t multiplier = p->out_c / p->in_c;
    const int32_t top = y * p->stride_h - p->pad_top;
    int32_t x, o, ky, kx;
    for (x = 0; x < p->out_w; ++x) {
        const int32_t left = x * p->stride_w - p->pad_left;
        const tinyfuse_inner_taps columns = tinyfuse_taps_inside(left, p->dilation_w, p->kernel_w, p->in_w);
        for (o = 0; o < p->out_c; ++o) {
            const int32_t first = (left + columns.from * p->dilation_w) * p->in_c + o / multiplier;
            int64_t sum = 0;
            for (ky = 0; ky < p->kernel_h; ++ky) {
                const int32_t iy = top + ky * p->dilation_h;
                const int16_t *row;
                int32_t i = first, w = (ky * p->kernel_w + columns.from) * p->out_c + o;
                if (iy < 0 || iy >= p->in_h) {
                    continue;
                }
                row = in + iy % p->in_ring * p->in_w * p->in_c; /* divides */
                for (kx = columns.from; kx < columns.to; ++kx) {
                    sum += row[i] * weights[w];
                    i += p->dilation_w * p->in_c;
                    w += p->out_c;
                }
            }
            *out_row++ = tinyfuse_conv_output_s16(p, sum, &channels[o], TINYFUSE_SUMS_S64);
        }
    }
}

#endif
