/* Depthwise convolution with int16 weights of at most 9 bits (tinyfuse_conv_w16.h), int8 NHWC, depth multiplier 1, in
   portable C. */
#ifndef TINYFUSE_DEPTHWISE_W16_H
#define TINYFUSE_DEPTHWISE_W16_H

#include "tinyfuse_depthwise_packed.h"

TINYFUSE_INLINE void tinyfuse_depthwise_output_w16(const tinyfuse_conv *p, uint32_t sum,
                                                   const tinyfuse_requant *channel, int8_t *out)
{
    const int32_t scaled = tinyfuse_requantize((int32_t)sum, channel->multiplier, channel->shift);
    *out = (int8_t)tinyfuse_clamp(scaled + p->out_zero_point, p->act_min, p->act_max);
}

/* Computes the outputs of four channels of a pixel from c on. Sums wrap, and are no array, so that they stay in
   registers. */
TINYFUSE_INLINE void tinyfuse_depthwise_quad_w16(const tinyfuse_conv *p, const int8_t *const *taps, int32_t c,
                                                 int8_t *out, const int16_t *weights,
                                                 const tinyfuse_requant *channels)
{
    const int8_t *const *const end = taps + p->kernel_h * p->kernel_w;
    const int16_t *w = weights + c;
    uint32_t s0 = (uint32_t)channels[c].bias, s1 = (uint32_t)channels[c + 1].bias;
    uint32_t s2 = (uint32_t)channels[c + 2].bias, s3 = (uint32_t)channels[c + 3].bias;
    for (; taps != end; ++taps) {
        const int8_t *const from = *taps + c;
        s0 += (uint32_t)(from[0] * w[0]);
        s1 += (uint32_t)(from[1] * w[1]);
        s2 += (uint32_t)(from[2] * w[2]);
        s3 += (uint32_t)(from[3] * w[3]);
        w += p->in_c;
    }
    tinyfuse_depthwise_output_w16(p, s0, channels + c, out + c);
    tinyfuse_depthwise_output_w16(p, s1, channels + c + 1, out + c + 1);
    tinyfuse_depthwise_output_w16(p, s2, channels + c + 2, out + c + 2);
    tinyfuse_depthwise_output_w16(p, s3, channels + c + 3, out + c + 3);
}

/* Computes the output of one channel. */
TINYFUSE_INLINE void tinyfuse_depthwise_one_w16(const tinyfuse_conv *p, const int8_t *const *taps, int32_t c,
                                                int8_t *out, const int16_t *weights, const tinyfuse_requant *channels)
{
    const int32_t last = p->kernel_h * p->kernel_w;
    uint32_t sum = (uint32_t)channels[c].bias;
    int32_t t;
    for (t = 0; t < last; ++t) {
        sum += (uint32_t)(taps[t][c] * weights[t * p->in_c + c]);
    }
    tinyfuse_depthwise_output_w16(p, sum, channels + c, out + c);
}

/* Computes output row y. Reads only the input rows of y's own window. Weights are [kernel_h][kernel_w][in_c]; the
   input zero point is folded into the biases. scratch, aligned to 8: a pointer of 4 bytes for each tap, an even
   number, then in_c bytes where any window reaches into the padding. */
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
            tinyfuse_depthwise_quad_w16(p, taps, c, out_row, weights, channels);
        }
        for (; c < p->in_c; ++c) {
            tinyfuse_depthwise_one_w16(p, taps, c, out_row, weights, channels);
        }
        out_row += p->in_c;
    }
}

/* Computes output row y of at least four channels in the bounded form (tinyfuse_requantize.h), by the loop of int8
   weights: a weight is the sum of two, and a tap is listed twice. Reads only the input rows of y's own window.
   Weights are those of tinyfuse_depthwise_packed_row_s8 with twice the taps; channels [in_c]. scratch, aligned to 8:
   2 * pairs + 2 * taps pointers of 4 bytes, with pairs = ceil(taps / 2); then in_c bytes where any window reaches
   into the padding. */
TINYFUSE_INLINE void tinyfuse_depthwise_packed_row_w16(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                       int8_t *out_row, const int8_t *weights,
                                                       const tinyfuse_requant *channels, void *scratch)
{
    const int32_t count = p->kernel_h * p->kernel_w, single = (count + 1) & ~1, pointers = single + 2 * count;
    const int8_t **const taps = (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)pointers * sizeof *taps);
    const int8_t **const twice = taps + single;
    int8_t *const padding = (int8_t *)scratch + pointers * TINYFUSE_POINTER_BYTES;
    const int rows_inside = tinyfuse_depthwise_rows_inside(p, y);
    int8_t *out = out_row;
    int32_t x, t;
    if (!rows_inside || !tinyfuse_depthwise_columns_inside(p)) {
        memset(padding, p->in_zero_point, (size_t)p->in_c);
    }
    for (x = 0; x < p->out_w; ++x) {
        tinyfuse_depthwise_next_taps(p, in, y, x, padding, taps, rows_inside);
        for (t = 0; t < count; ++t) {
            twice[2 * t] = twice[2 * t + 1] = taps[t];
        }
        tinyfuse_depthwise_pixel_bounded(twice, count, p->in_c, weights, channels, 2 * p->out_zero_point + 1, out);
        out += p->in_c;
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
    }
}

#endif
