/* Depthwise convolution with weights of 9 bits stored in bytes, int8 NHWC, depth multiplier 1. A stored byte is a weight
   less `offset`, -127 to 128, one for the layer. */
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
                                                 int8_t *out, const int8_t *weights,
                                                 const tinyfuse_requant *channels, int32_t offset)
{
    const int8_t *const *const end = taps + p->kernel_h * p->kernel_w;
    const int8_t *w = weights + c;
    uint32_t s0 = (uint32_t)channels[c].bias, s1 = (uint32_t)channels[c + 1].bias;
    uint32_t s2 = (uint32_t)channels[c + 2].bias, s3 = (uint32_t)channels[c + 3].bias;
    for (; taps != end; ++taps) {
        const int8_t *const from = *taps + c;
        s0 += (uint32_t)(from[0] * (w[0] + offset));
        s1 += (uint32_t)(from[1] * (w[1] + offset));
        s2 += (uint32_t)(from[2] * (w[2] + offset));
        s3 += (uint32_t)(from[3] * (w[3] + offset));
        w += p->in_c;
    }
    tinyfuse_depthwise_output_w16(p, s0, channels + c, out + c);
    tinyfuse_depthwise_output_w16(p, s1, channels + c + 1, out + c + 1);
    tinyfuse_depthwise_output_w16(p, s2, channels + c + 2, out + c + 2);
    tinyfuse_depthwise_output_w16(p, s3, channels + c + 3, out + c + 3);
}

/* Computes the output of one channel. */
TINYFUSE_INLINE void tinyfuse_depthwise_one_w16(const tinyfuse_conv *p, const int8_t *const *taps, int32_t c,
                                                int8_t *out, const int8_t *weights, const tinyfuse_requant *channels,
                                                int32_t offset)
{
    const int32_t last = p->kernel_h * p->kernel_w;
    uint32_t sum = (uint32_t)channels[c].bias;
    int32_t t;
    for (t = 0; t < last; ++t) {
        sum += (uint32_t)(taps[t][c] * (weights[t * p->in_c + c] + offset));
    }
    tinyfuse_depthwise_output_w16(p, sum, channels + c, out + c);
}

/* Computes output row y. Reads only the input rows of y's own window. Weights are [kernel_h][kernel_w][in_c]; the
   input zero point is folded into the biases. scratch, aligned to 8: a pointer of 4 bytes for each tap, an even
   number, then in_c bytes where any window reaches into the padding. */
TINYFUSE_INLINE void tinyfuse_depthwise_row_w16(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                                const int8_t *weights, const tinyfuse_requant *channels,
                                                void *scratch, int32_t offset)
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
            tinyfuse_depthwise_quad_w16(p, taps, c, out_row, weights, channels, offset);
        }
        for (; c < p->in_c; ++c) {
            tinyfuse_depthwise_one_w16(p, taps, c, out_row, weights, channels, offset);
        }
        out_row += p->in_c;
    }
}

#if TINYFUSE_DSP

/* tinyfuse_depthwise_pixel with an offset in both halves of a word. */
typedef struct {
    tinyfuse_depthwise_pixel pixel;
    uint32_t offsets; /* 20 */
} tinyfuse_depthwise_pixel_w16;

typedef char tinyfuse_check_depthwise_pixel_w16[offsetof(tinyfuse_depthwise_pixel_w16, offsets) == 20 ? 1 : -1];

/* r7: the offsets */
#define TINYFUSE_TAPS_EVEN_W16(to, from) "sxtab16 " to ", r7, " from "\n\t"
#define TINYFUSE_TAPS_ODD_W16(to) "sxtab16 " to ", r7, " to ", ror #8\n\t"
#define TINYFUSE_TAPS_BIAS_W16   \
    TINYFUSE_TAPS_BIAS_BOUNDED   \
    "ldr r7, [sp]\n\t"           \
    "ldr r7, [r7, #20]\n\t"

/* Computes quads as tinyfuse_depthwise_quads_bounded does. */
TINYFUSE_SHARED void tinyfuse_depthwise_quads_offset(tinyfuse_depthwise_pixel_w16 *job, const int8_t *weights,
                                                     int32_t channel, const int8_t *const *end)
{
    tinyfuse_depthwise_pixel *const pixel = &job->pixel;
    TINYFUSE_TAPS_ASM(W16, TINYFUSE_TAPS_OUTPUT_BOUNDED)
}

TINYFUSE_INLINE void tinyfuse_depthwise_quads_w16(const int8_t *const *taps, int32_t pairs, int32_t channel,
                                                  int32_t quads, const int8_t *weights,
                                                  const tinyfuse_requant *channels, int32_t rounding, int8_t *out,
                                                  int32_t offset)
{
    tinyfuse_depthwise_pixel_w16 job;
    job.pixel.taps = taps;
    job.pixel.rounding = rounding;
    job.pixel.out = out;
    job.pixel.before = (uintptr_t)channels - TINYFUSE_BEFORE_CHANNELS;
    job.pixel.quads = quads;
    job.offsets = ((uint32_t)offset & 0xFFFFu) | (uint32_t)offset << 16;
    tinyfuse_depthwise_quads_offset(&job, weights, channel, taps + 2 * pairs);
}

#else

/* Computes four channels at a time as tinyfuse_depthwise_quads_c does in the bounded form. */
TINYFUSE_INLINE void tinyfuse_depthwise_quads_w16(const int8_t *const *taps, int32_t pairs, int32_t channel,
                                                  int32_t quads, const int8_t *weights,
                                                  const tinyfuse_requant *channels, int32_t rounding, int8_t *out,
                                                  int32_t offset)
{
    const int8_t *w = weights;
    const tinyfuse_requant *r = channels;
    int32_t c = channel;
    for (; quads > 0; --quads) {
        int32_t s0 = r[0].bias, s1 = r[1].bias, s2 = r[2].bias, s3 = r[3].bias, i;
        for (i = 0; i < pairs; ++i) {
            const int8_t *a = taps[2 * i] + c;
            const int8_t *b = taps[2 * i + 1] + c;
            s0 += a[0] * (w[0] + offset) + b[0] * (w[2] + offset);
            s1 += a[1] * (w[1] + offset) + b[1] * (w[3] + offset);
            s2 += a[2] * (w[4] + offset) + b[2] * (w[6] + offset);
            s3 += a[3] * (w[5] + offset) + b[3] * (w[7] + offset);
            w += 8;
        }
        out[c] = (int8_t)tinyfuse_requantize_bounded(s0, r[0].multiplier, r[0].shift, rounding);
        out[c + 1] = (int8_t)tinyfuse_requantize_bounded(s1, r[1].multiplier, r[1].shift, rounding);
        out[c + 2] = (int8_t)tinyfuse_requantize_bounded(s2, r[2].multiplier, r[2].shift, rounding);
        out[c + 3] = (int8_t)tinyfuse_requantize_bounded(s3, r[3].multiplier, r[3].shift, rounding);
        r += 4;
        c += 4;
    }
}

#endif

/* Computes one output pixel as tinyfuse_depthwise_pixel_bounded does. */
TINYFUSE_DEPTHWISE_PIXEL void tinyfuse_depthwise_pixel_offset(const int8_t *const *taps, int32_t pairs, int32_t in_c,
                                                              const int8_t *weights, const tinyfuse_requant *channels,
                                                              int32_t rounding, int8_t *out, int32_t offset)
{
    const int32_t quads = in_c / 4, last = in_c - 4;
    tinyfuse_depthwise_quads_w16(taps, pairs, 0, quads, weights, channels, rounding, out, offset);
    if ((in_c & 3) != 0) {
        tinyfuse_depthwise_quads_w16(taps, pairs, last, 1, weights + 8 * pairs * quads, channels + last, rounding, out,
                                     offset);
    }
}

/* Computes output row y of at least four channels in the bounded form (tinyfuse_requantize.h). Reads only the input rows
   of y's own window. Weights are those of tinyfuse_depthwise_packed_row_s8 less `offset`, also where taps make their
   count even; channels [in_c]. scratch, aligned to 8: a pointer of 4 bytes for each tap, an even number, then in_c bytes
   where any window reaches into the padding. */
TINYFUSE_INLINE void tinyfuse_depthwise_packed_row_w16(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                       int8_t *out_row, const int8_t *weights,
                                                       const tinyfuse_requant *channels, void *scratch, int32_t offset)
{
    const int32_t pairs = (p->kernel_h * p->kernel_w + 1) / 2, rounding = 2 * p->out_zero_point + 1;
    const int8_t **const taps =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, 2 * (size_t)pairs * sizeof *taps);
    int8_t *const padding = (int8_t *)scratch + 2 * pairs * TINYFUSE_POINTER_BYTES;
    const int rows_inside = tinyfuse_depthwise_rows_inside(p, y);
    int8_t *out = out_row;
    int32_t x;
    if (!rows_inside || !tinyfuse_depthwise_columns_inside(p)) {
        memset(padding, p->in_zero_point, (size_t)p->in_c);
    }
    for (x = 0; x < p->out_w; ++x) {
        tinyfuse_depthwise_next_taps(p, in, y, x, padding, taps, rows_inside);
        tinyfuse_depthwise_pixel_offset(taps, pairs, p->in_c, weights, channels, rounding, out, offset);
        out += p->in_c;
    }
    tinyfuse_clamp_outputs(out_row, p->out_w * p->in_c, p->act_min, p->act_max);
}

#endif
