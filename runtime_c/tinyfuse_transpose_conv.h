/* TRANSPOSE_CONV, int8 NHWC, one output row a call: every output pixel gathers the input pixels whose
   kernels reach it. */
#ifndef TINYFUSE_TRANSPOSE_CONV_H
#define TINYFUSE_TRANSPOSE_CONV_H

#include "tinyfuse_half_even.h"

/* Sizes in elements; the input is a ring of in_ring rows (in_h for a whole tensor). Input pixel (y, x)
   adds to the output from (y * stride_h - pad_top, x * stride_w - pad_left) on. */
typedef struct {
    int32_t in_h, in_w, in_c, in_ring;
    int32_t out_w, out_c;
    int32_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    int32_t in_zero_point, out_zero_point, act_min, act_max;
} tinyfuse_transpose_conv;

/* Returns the sum of (in - zero point) * weight over `count` channels. */
TINYFUSE_INLINE uint32_t tinyfuse_channel_product(const int8_t *in, const int8_t *weights, int32_t count,
                                                  int32_t zero_point)
{
#if TINYFUSE_MVE
    int32_t products = 0, of_weights = 0;
    for (; count > 0; count -= 16, in += 16, weights += 16) {
        const mve_pred16_t there = vctp8q((uint32_t)count);
        const int8x16_t w = vldrbq_z_s8(weights, there);
        products = vmladavaq_s8(products, vldrbq_z_s8(in, there), w);
        of_weights = vaddvaq_s8(of_weights, w);
    }
    return (uint32_t)products - (uint32_t)(of_weights * zero_point);
#else
    uint32_t sum = 0;
    int32_t i;
    for (i = 0; i < count; ++i) {
        sum += (uint32_t)((in[i] - zero_point) * weights[i]);
    }
    return sum;
#endif
}

/* Output row `y`. Weights are [out_c][kernel_h][kernel_w][in_c], `channels` has out_c entries. */
TINYFUSE_INLINE void tinyfuse_transpose_conv_row_by(const tinyfuse_transpose_conv *p,
                                                    const int8_t *in, int32_t y, int8_t *out_row,
                                                    const int8_t *weights,
                                                    const tinyfuse_requant *channels, int half_even)
{
    const int32_t row_bytes = p->in_w * p->in_c, tap_bytes = p->in_c;
    const int32_t filter_bytes = p->kernel_h * p->kernel_w * tap_bytes;
    /* the first tap of a kernel that falls on an input row (column); the others are a stride apart */
    const int32_t first_ky = (y + p->pad_top) % p->stride_h;
    int32_t x, o, ky, kx;
    for (x = 0; x < p->out_w; ++x) {
        const int32_t first_kx = (x + p->pad_left) % p->stride_w;
        for (o = 0; o < p->out_c; ++o) {
            const int8_t *const filter = weights + o * filter_bytes;
            uint32_t sum = (uint32_t)channels[o].bias; /* wraps */
            int32_t scaled;
            for (ky = first_ky; ky < p->kernel_h; ky += p->stride_h) {
                const int32_t iy = (y + p->pad_top - ky) / p->stride_h;
                const int8_t *row;
                if (y + p->pad_top < ky || iy >= p->in_h) {
                    continue;
                }
                row = tinyfuse_ring_row(in, iy, p->in_ring, row_bytes);
                for (kx = first_kx; kx < p->kernel_w; kx += p->stride_w) {
                    const int32_t ix = (x + p->pad_left - kx) / p->stride_w;
                    if (x + p->pad_left >= kx && ix < p->in_w) {
                        sum += tinyfuse_channel_product(row + ix * tap_bytes,
                                                        filter + (ky * p->kernel_w + kx) * tap_bytes,
                                                        p->in_c, p->in_zero_point);
                    }
                }
            }
            scaled = tinyfuse_requantize_by((int32_t)sum, &channels[o], half_even);
            *out_row++ = (int8_t)tinyfuse_clamp(scaled + p->out_zero_point, p->act_min, p->act_max);
        }
    }
}

TINYFUSE_INLINE void tinyfuse_transpose_conv_row_s8(const tinyfuse_transpose_conv *p,
                                                    const int8_t *in, int32_t y, int8_t *out_row,
                                                    const int8_t *weights,
                                                    const tinyfuse_requant *channels)
{
    tinyfuse_transpose_conv_row_by(p, in, y, out_row, weights, channels, 0);
}

/* Computes output row y for channels that have float32 scales instead of multipliers (tinyfuse_half_even.h). */
TINYFUSE_INLINE void tinyfuse_transpose_conv_row_half_even_s8(const tinyfuse_transpose_conv *p,
                                                              const int8_t *in, int32_t y,
                                                              int8_t *out_row,
                                                              const int8_t *weights,
                                                              const tinyfuse_requant *channels)
{
    tinyfuse_transpose_conv_row_by(p, in, y, out_row, weights, channels, 1);
}

#endif
