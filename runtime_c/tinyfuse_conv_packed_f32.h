/* Convolution, depthwise convolution and fully connected layer of float32 by eight output channels at a time
   (tinyfuse_dot_8_f32.h). */
#ifndef TINYFUSE_CONV_PACKED_F32_H
#define TINYFUSE_CONV_PACKED_F32_H

#include "tinyfuse_depthwise_packed.h"
#include "tinyfuse_dot_8_f32.h"

/* Computes one group's channels of output column x in row y to `out`. Weights are [out_c / groups /
   8][kernel_h][kernel_w][in_c / groups][8]; a last block of fewer than eight channels has as many in the place of
   [8]. `weights` and `biases` are the group's. */
TINYFUSE_INLINE void tinyfuse_conv_packed_pixel_f32(const tinyfuse_conv *p, const float *in, int32_t y, int32_t x,
                                                    int32_t group, float *out, const float *weights,
                                                    const float *biases, float low, float high)
{
    const int32_t row = p->in_w * p->in_c, group_c = p->in_c / p->groups;
    const int32_t filters = p->out_c / p->groups, from = x * p->stride_w - p->pad_left;
    const int whole = p->groups == 1 && p->dilation_w == 1 && from >= 0 && from + p->kernel_w <= p->in_w;
    int32_t o, ky, kx;
    for (o = 0; o < filters; o += 8) {
        const int32_t outputs = tinyfuse_min(filters - o, 8), column = outputs * group_c;
        float sums[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
        for (ky = 0; ky < p->kernel_h; ++ky, weights += p->kernel_w * column) {
            const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
            const float *source;
            if (iy < 0 || iy >= p->in_h) {
                continue;
            }
            source = in + (iy % p->in_ring) * row + group * group_c;
            if (whole != 0) {
                tinyfuse_dot_8_layer_sums(sums, source + from * p->in_c, weights, p->kernel_w * p->in_c,
                                          outputs);
                continue;
            }
            for (kx = 0; kx < p->kernel_w; ++kx) {
                const int32_t ix = from + kx * p->dilation_w;
                if (ix >= 0 && ix < p->in_w) {
                    tinyfuse_dot_8_layer_sums(sums, source + ix * p->in_c, weights + kx * column, group_c,
                                              outputs);
                }
            }
        }
        tinyfuse_dot_8_outputs(sums, biases + o, out + o, outputs, low, high);
    }
}

/* Computes output row y of a convolution. Weights are [groups] of a pixel's, zeros filling a group's last eight
   channels; `biases` has out_c entries. Reads only the input rows of y's own window, writes only the out_w * out_c
   elements of out_row. The quantization in tinyfuse_conv is not used. */
TINYFUSE_INLINE void tinyfuse_conv_packed_row_f32(const tinyfuse_conv *p, const float *in, int32_t y, float *out_row,
                                                  const float *weights, const float *biases, float low, float high)
{
    const int32_t filters = p->out_c / p->groups;
    const int32_t size = filters * p->kernel_h * p->kernel_w * (p->in_c / p->groups);
    int32_t x, group;
    for (x = 0; x < p->out_w; ++x) {
        for (group = 0; group < p->groups; ++group) {
            tinyfuse_conv_packed_pixel_f32(p, in, y, x, group, out_row + group * filters, weights + group * size,
                                           biases + group * filters, low, high);
        }
        out_row += p->out_c;
    }
}

/* Computes a fully connected layer, in [batches][in_c] to out [batches][out_c], weights as a convolution's, biases
   [out_c]. out may overlap batches of in that were read already, not the one that is computed. */
TINYFUSE_INLINE void tinyfuse_dense_f32(const float *in, float *out, const float *weights, const float *biases,
                                        int32_t batches, int32_t in_c, int32_t out_c, float low, float high)
{
    int32_t b, o;
    for (b = 0; b < batches; ++b) {
        for (o = 0; o < out_c; o += 8) {
            const int32_t outputs = tinyfuse_min(out_c - o, 8);
            float sums[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
            tinyfuse_dot_8_layer_sums(sums, in, weights + o * in_c, in_c, outputs);
            tinyfuse_dot_8_outputs(sums, biases + o, out + o, outputs, low, high);
        }
        in += in_c;
        out += out_c;
    }
}

/* Computes output row y of a depthwise convolution with depth multiplier 1 and at least eight channels, whose weights
   are finite: padding is zeros, whose products change no sum. Weights are [ceil(in_c / 8)][kernel_h * kernel_w][8],
   the last eight channels ending at in_c; `biases` has in_c entries. scratch, aligned to 8: 2 * pairs pointers of 4
   bytes, with pairs = ceil(taps / 2); then in_c zeros where any window reaches into the padding. */
TINYFUSE_INLINE void tinyfuse_depthwise_packed_row_f32(const tinyfuse_conv *p, const float *in, int32_t y,
                                                       float *out_row, const float *weights, const float *biases,
                                                       void *scratch, float low, float high)
{
    const int32_t count = p->kernel_h * p->kernel_w, pairs = (count + 1) / 2;
    const int8_t **const taps =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, 2 * (size_t)pairs * sizeof *taps);
    int8_t *const padding = (int8_t *)scratch + 2 * pairs * TINYFUSE_POINTER_BYTES;
    const int rows_inside = tinyfuse_depthwise_rows_inside(p, y);
    tinyfuse_conv bytes = *p; /* tinyfuse_depthwise_taps counts in bytes */
    int32_t x, c;
    bytes.in_c = 4 * p->in_c;
    if (!rows_inside || !tinyfuse_depthwise_columns_inside(p)) {
        memset(padding, 0, (size_t)bytes.in_c);
    }
    for (x = 0; x < p->out_w; ++x) {
        const float *w = weights;
        tinyfuse_depthwise_next_taps(&bytes, (const int8_t *)in, y, x, padding, taps, rows_inside);
        for (c = 0; c < p->in_c; c += 8, w += 8 * count) {
            const int32_t from = tinyfuse_min(c, p->in_c - 8);
            float sums[8];
            tinyfuse_dot_8_tap_sums(sums, taps, count, 4 * from, w);
            tinyfuse_dot_8_outputs(sums, biases + from, out_row + from, 8, low, high);
        }
        out_row += p->in_c;
    }
}

#endif
