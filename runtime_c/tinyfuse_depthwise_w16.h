/* Depthwise convolution with int16 weights of at most 9 bits (tinyfuse_conv_w16.h), int8 NHWC, depth multiplier 1, in
   portable C. */
#ifndef TINYFUSE_DEPTHWISE_W16_H
#define TINYFUSE_DEPTHWISE_W16_H

#include "tinyfuse_depthwise_packed.h"

/* The outputs of channels c to c + count - 1 of a pixel, 1 or 4, a constant. */
TINYFUSE_INLINE void tinyfuse_depthwise_channels_w16(const tinyfuse_conv *p, const int8_t *const *taps, int32_t c,
                                                     int count, int8_t *out, const int16_t *weights,
                                                     const tinyfuse_requant *channels)
{
    const int32_t last = p->kernel_h * p->kernel_w;
    uint32_t sum[4];
    int32_t t, i;
    for (i = 0; i < count; ++i) {
        sum[i] = (uint32_t)channels[c + i].bias; /* wraps */
    }
    for (t = 0; t < last; ++t) {
        const int8_t *const from = taps[t] + c;
        const int16_t *const w = weights + t * p->in_c + c;
        for (i = 0; i < count; ++i) {
            sum[i] += (uint32_t)(from[i] * w[i]);
        }
    }
    for (i = 0; i < count; ++i) {
        const int32_t scaled =
            tinyfuse_requantize((int32_t)sum[i], channels[c + i].multiplier, channels[c + i].shift);
        out[c + i] = (int8_t)tinyfuse_clamp(scaled + p->out_zero_point, p->act_min, p->act_max);
    }
}

/* Output row y; reads only the input rows of y's own window. Weights are [kernel_h][kernel_w][in_c]; the input zero
   point is folded into the biases. scratch, aligned to 8: a pointer of 4 bytes for each tap, an even number, then
   in_c bytes where any window reaches into the padding. */
TINYFUSE_INLINE void tinyfuse_depthwise_row_w16(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                                const int16_t *weights, const tinyfuse_requant *channels,
                                                void *scratch)
{
    const int32_t pairs = (p->kernel_h * p->kernel_w + 1) / 2;
    const int8_t **const taps =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, 2 * (size_t)pairs * sizeof *taps);
    int8_t *const padding = (int8_t *)scratch + 2 * pairs * TINYFUSE_POINTER_BYTES;
    const int rows_inside = tinyfuse_depthwise_rows_inside(p, y);
    int32_t x, c;
    if (!rows_inside || !tinyfuse_depthwise_columns_inside(p)) {
        memset(padding, p->in_zero_point, (size_t)p->in_c);
    }
    for (x = 0; x < p->out_w; ++x) {
        tinyfuse_depthwise_next_taps(p, in, y, x, padding, taps, rows_inside);
        for (c = 0; c + 4 <= p->in_c; c += 4) {
            tinyfuse_depthwise_channels_w16(p, taps, c, 4, out_row, weights, channels);
        }
        for (; c < p->in_c; ++c) {
            tinyfuse_depthwise_channels_w16(p, taps, c, 1, out_row, weights, channels);
        }
        out_row += p->in_c;
    }
}

#endif
