/* Depthwise convolution, int8 NHWC, one output row a call: the general form (any kernel, stride,
   dilation, padding and depth multiplier) in portable C. */
#ifndef TINYFUSE_DEPTHWISE_H
#define TINYFUSE_DEPTHWISE_H

#include "tinyfuse_conv.h"

/* Output row y. Weights are [kernel_h][kernel_w][out_c]; output channel c reads input channel
   c / (out_c / in_c). Reads only the input rows of y's own window, writes only out_row. */
TINYFUSE_INLINE void tinyfuse_depthwise_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                               int8_t *out_row, const int8_t *weights,
                                               const tinyfuse_requant *channels)
{
    const int32_t row_bytes = p->in_w * p->in_c;
    const int32_t multiplier = p->out_c / p->in_c;
    int32_t x, o, ky, kx;
    for (x = 0; x < p->out_w; ++x) {
        for (o = 0; o < p->out_c; ++o) {
            uint32_t sum = (uint32_t)channels[o].bias; /* wraps */
            for (ky = 0; ky < p->kernel_h; ++ky) {
                const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
                if (iy < 0 || iy >= p->in_h) {
                    continue;
                }
                for (kx = 0; kx < p->kernel_w; ++kx) {
                    const int32_t ix = x * p->stride_w - p->pad_left + kx * p->dilation_w;
                    if (ix < 0 || ix >= p->in_w) {
                        continue;
                    }
                    sum += (uint32_t)((tinyfuse_ring_row(in, iy, p->in_ring,
                                                         row_bytes)[ix * p->in_c + o / multiplier] -
                                       p->in_zero_point) *
                                      weights[(ky * p->kernel_w + kx) * p->out_c + o]);
                }
            }
            *out_row++ = (int8_t)tinyfuse_clamp(
                tinyfuse_requantize((int32_t)sum, channels[o].multiplier, channels[o].shift) +
                    p->out_zero_point,
                p->act_min, p->act_max);
        }
    }
}

#endif
