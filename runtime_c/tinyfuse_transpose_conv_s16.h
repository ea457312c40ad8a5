/* TRANSPOSE_CONV, int16 data and int8 weights, NHWC, one output row a call: every output pixel gathers the input
   pixels whose kernels reach it. Sums are int64; zero points are 0, and their fields not used. */
#ifndef TINYFUSE_TRANSPOSE_CONV_S16_H
#define TINYFUSE_TRANSPOSE_CONV_S16_H

#include "tinyfuse_conv_s16.h"
#include "tinyfuse_transpose_conv.h"

/* Computes output row `y`. Weights are [out_c][kernel_h][kernel_w][in_c], `channels` has out_c entries. */
TINYFUSE_INLINE void tinyfuse_transpose_conv_row_s16(const tinyfuse_transpose_conv *p, const int16_t *in, int32_t y,
                                                     int16_t *out_row, const int8_t *weights,
                                                     const tinyfuse_requant_s16 *channels)
{
    const int32_t row = p->in_w * p->in_c;
    /* the first tap of a kernel that falls on an input row (column); the others are a stride apart */
    const int32_t first_ky = (y + p->pad_top) % p->stride_h;
    int32_t x, o, ky, kx;
    for (x = 0; x < p->out_w; ++x) {
        const int32_t first_kx = (x + p->pad_left) % p->stride_w;
        for (o = 0; o < p->out_c; ++o) {
            int64_t sum = channels[o].bias;
            for (ky = first_ky; ky < p->kernel_h; ky += p->stride_h) {
                const int32_t iy = (y + p->pad_top - ky) / p->stride_h;
                if (y + p->pad_top < ky || iy >= p->in_h) {
                    continue;
                }
                for (kx = first_kx; kx < p->kernel_w; kx += p->stride_w) {
                    const int32_t ix = (x + p->pad_left - kx) / p->stride_w;
                    if (x + p->pad_left >= kx && ix < p->in_w) {
                        const int8_t *const w = weights + ((o * p->kernel_h + ky) * p->kernel_w + kx) * p->in_c;
                        const int16_t *const from = in + (iy % p->in_ring) * row + ix * p->in_c;
                        sum = tinyfuse_add_s64(sum, tinyfuse_products_s16(from, w, p->in_c));
                    }
                }
            }
            *out_row++ = (int16_t)tinyfuse_clamp(
                tinyfuse_requantize_s64(sum, channels[o].multiplier, channels[o].shift), p->act_min, p->act_max);
        }
    }
}

#endif
