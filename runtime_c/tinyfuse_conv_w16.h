/* Convolutions of int8 data with int16 weights of at most 9 bits (those of uint8 models, less their zero point), NHWC,
   one output row a call, which reads only the input rows of that row's own window. */
#ifndef TINYFUSE_CONV_W16_H
#define TINYFUSE_CONV_W16_H

#include "tinyfuse_conv_packed.h"

/* Computes output row y of any convolution of groups. Biases and multipliers are those of TensorFlow Lite Micro,
   weights [out_c][kernel_h][kernel_w][in_c / groups]. */
TINYFUSE_INLINE void tinyfuse_conv_row_w16(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                           const int16_t *weights, const tinyfuse_requant *channels)
{
    const int32_t row_bytes = p->in_w * p->in_c;
    const int32_t filter_c = p->in_c / p->groups;
    const int32_t filters = p->out_c / p->groups;
    int32_t x, o, ky, kx, i;
    for (x = 0; x < p->out_w; ++x) {
        const int16_t *w = weights;
        for (o = 0; o < p->out_c; ++o) {
            uint32_t sum = (uint32_t)channels[o].bias; /* wraps */
            for (ky = 0; ky < p->kernel_h; ++ky) {
                const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
                const int inside = iy >= 0 && iy < p->in_h;
                const int8_t *const row =
                    tinyfuse_ring_row(in, inside ? iy : 0, p->in_ring, row_bytes) + o / filters * filter_c;
                for (kx = 0; kx < p->kernel_w; ++kx) {
                    const int32_t ix = x * p->stride_w - p->pad_left + kx * p->dilation_w;
                    for (i = 0; i < filter_c && inside && ix >= 0 && ix < p->in_w; ++i) {
                        sum += (uint32_t)((row[ix * p->in_c + i] - p->in_zero_point) * w[i]);
                    }
                    w += filter_c;
                }
            }
            *out_row++ = (int8_t)tinyfuse_clamp(
                tinyfuse_requantize((int32_t)sum, channels[o].multiplier, channels[o].shift) +
                    p->out_zero_point,
                p->act_min, p->act_max);
        }
    }
}

/* Computes the pairs of channels of a block. Inputs, biases and requantization are those of TINYFUSE_WIDE
   (tinyfuse_matmul.h), weights are int16. */
TINYFUSE_INLINE void tinyfuse_matmul_w16_pairs(tinyfuse_matmul *p, const int8_t *weights, const int8_t *columns,
                                               int32_t depth, int pixels)
{
#if TINYFUSE_DSP
    if (pixels == 3) {
        TINYFUSE_PAIRS_ASM(3, TINYFUSE_WEIGHTS_W16 TINYFUSE_STEP_3, WIDE)
    } else if (pixels == 2) {
        TINYFUSE_PAIRS_ASM(2, TINYFUSE_WEIGHTS_W16 TINYFUSE_STEP_2, WIDE)
    } else {
        TINYFUSE_PAIRS_ASM(1, TINYFUSE_WEIGHTS_W16 TINYFUSE_STEP_1, WIDE)
    }
#else
    const void *const channels = tinyfuse_matmul_channels(p, TINYFUSE_WIDE);
    const int32_t step = tinyfuse_step_bytes(TINYFUSE_WIDE);
    int32_t o, i, k;
    for (o = 0; o + 1 < p->out_c; o += 2) {
        for (i = 0; i < pixels; ++i) {
            const int8_t *x = columns + step * i;
            const int8_t *w = weights;
            int32_t s0 = tinyfuse_channel_bias(channels, o, TINYFUSE_WIDE);
            int32_t s1 = tinyfuse_channel_bias(channels, o + 1, TINYFUSE_WIDE);
            int8_t *const to = p->out + i * p->out_c + o;
            for (k = 0; k < depth; k += 4) {
                s0 = tinyfuse_products_w16(s0, x, w, 8);
                s1 = tinyfuse_products_w16(s1, x, w + 4, 8);
                x += step * pixels;
                w += 16;
            }
            to[0] = tinyfuse_channel_output(channels, o, s0, p->rounding, TINYFUSE_WIDE);
            to[1] = tinyfuse_channel_output(channels, o + 1, s1, p->rounding, TINYFUSE_WIDE);
        }
        weights += 4 * depth;
    }
#endif
}

#define TINYFUSE_MATMUL_W16_PAIRS(pixels)                                                                \
    TINYFUSE_SHARED void tinyfuse_matmul_w16_##pixels(tinyfuse_matmul *p, const int8_t *weights,         \
                                                      const int8_t *columns, int32_t depth)              \
    {                                                                                                    \
        tinyfuse_matmul_w16_pairs(p, weights, columns, depth, pixels);                                   \
    }
TINYFUSE_MATMUL_W16_PAIRS(1)
TINYFUSE_MATMUL_W16_PAIRS(2)
TINYFUSE_MATMUL_W16_PAIRS(3)

/* Computes the last of an odd count of channels. */
TINYFUSE_SHARED void tinyfuse_matmul_w16_odd(const tinyfuse_matmul *p, const int8_t *weights, const int8_t *columns,
                                             int32_t depth, int32_t pixels)
{
    const int32_t last = p->out_c - 1, step = tinyfuse_step_bytes(TINYFUSE_WIDE);
    const void *const channels = tinyfuse_matmul_channels(p, TINYFUSE_WIDE);
    int32_t i, k;
    for (i = 0; i < pixels; ++i) {
        const int8_t *x = columns + step * i;
        int32_t sum = tinyfuse_channel_bias(channels, last, TINYFUSE_WIDE);
        for (k = 0; k < depth; k += 4) {
            sum = tinyfuse_products_w16(sum, x, weights + 2 * (depth * last + k), 4);
            x += step * pixels;
        }
        p->out[i * p->out_c + last] = tinyfuse_channel_output(channels, last, sum, p->rounding, TINYFUSE_WIDE);
    }
}

/* Computes a block, as tinyfuse_matmul_pixels does, from int16 weights. */
TINYFUSE_INLINE void tinyfuse_matmul_w16(tinyfuse_matmul *p, const int8_t *weights, const int8_t *columns,
                                         int32_t depth, int8_t *out, int32_t out_c, int32_t pixels)
{
    p->out = out;
    if (out_c == 1) {
    } else if (pixels == 3) {
        tinyfuse_matmul_w16_3(p, weights, columns, depth);
    } else if (pixels == 2) {
        tinyfuse_matmul_w16_2(p, weights, columns, depth);
    } else {
        tinyfuse_matmul_w16_1(p, weights, columns, depth);
    }
    if ((out_c & 1) != 0) {
        p->out = out; /* assembly moves it on */
        tinyfuse_matmul_w16_odd(p, weights, columns, depth, pixels);
    }
}

/* Computes output row y of a convolution of one group. Weights are [out_c / 2][depth / 4][2][2][2], inputs 0 2 of
   both channels, then inputs 1 3; the last of an odd count of channels has the order 0 2 1 3. Channels are of the
   bounded form. `block_pixels` (2 or 3) are computed together. scratch, aligned to 8: kernel_h pointers of 4 bytes,
   columns of 2 * block_pixels * depth bytes, then `depth` bytes where in_c is no multiple of 4, with depth = kernel_h
   * kernel_w * in_c rounded up to a multiple of 4. */
TINYFUSE_INLINE void tinyfuse_conv_packed_row_w16(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                                  const int8_t *weights, const tinyfuse_requant *channels,
                                                  void *scratch, int32_t block_pixels)
{
    const int32_t depth = (p->kernel_h * p->kernel_w * p->in_c + 3) & ~3;
    const int8_t **const rows =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int8_t *const columns = (int8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES;
    int8_t *const bytes = columns + 2 * block_pixels * depth;
    tinyfuse_matmul m = tinyfuse_matmul_of(p->out_c, p->out_zero_point, channels, TINYFUSE_WIDE);
    const int inside = tinyfuse_window_rows(p, in, y, rows);
    int32_t x, block;
    for (x = 0; x < p->out_w; x += block) {
        block = tinyfuse_block_pixels(p->out_w - x, block_pixels);
        tinyfuse_windows(p, p, rows, inside, x, block, columns, bytes, TINYFUSE_WIDE);
        tinyfuse_matmul_w16(&m, weights, columns, depth, out_row + x * p->out_c, p->out_c, block);
    }
    tinyfuse_clamp_outputs(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
}

#endif
