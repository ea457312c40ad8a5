/* Convolution of one group with weights in bytes less an offset (tinyfuse_conv_bytes_w16.h), pixel by pixel: for cores whose
   instructions multiply bytes, or whose registers hold few sums. */
#ifndef TINYFUSE_CONV_DOTS_W16_H
#define TINYFUSE_CONV_DOTS_W16_H

#include "tinyfuse_conv.h"
#include "tinyfuse_dot.h"

#if TINYFUSE_MVE
enum { TINYFUSE_DOTS_TOGETHER = 4 };
#else
enum { TINYFUSE_DOTS_TOGETHER = 2 };
#endif

/* Adds to each of TINYFUSE_DOTS_TOGETHER sums the dot product of `a` and a row. Two rows are what the registers of a
   Cortex-M0+ hold. */
TINYFUSE_INLINE void tinyfuse_dots_w16(const int8_t *a, const int8_t *rows, int32_t row, int32_t count, int32_t *sums)
{
#if TINYFUSE_MVE
    tinyfuse_dots_s8(a, rows, row, count, sums);
#else
    const int8_t *const other = rows + row;
    uint32_t s0 = (uint32_t)sums[0], s1 = (uint32_t)sums[1];
    int32_t i;
    for (i = 0; i < count; ++i) {
        const int32_t x = a[i];
        s0 += (uint32_t)(x * rows[i]);
        s1 += (uint32_t)(x * other[i]);
    }
    sums[0] = (int32_t)s0;
    sums[1] = (int32_t)s1;
#endif
}

/* Copies the window of output column x, [kernel_h][kernel_w][in_c]. Returns the sum of its inputs. */
TINYFUSE_SHARED int32_t tinyfuse_copy_window_w16(const tinyfuse_conv *p, const int8_t *in, int32_t y, int32_t x,
                                                 int8_t *window)
{
    const int32_t from = x * p->stride_w - p->pad_left, row_bytes = p->in_w * p->in_c;
    const int32_t span = p->dilation_w == 1 ? p->kernel_w : 1; /* taps that are neighbours in the input */
    int8_t *to = window;
    int32_t ky, kx, sum = 0;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        const int inside = iy >= 0 && iy < p->in_h;
        const int8_t *const row = tinyfuse_ring_row(in, inside ? iy : 0, p->in_ring, row_bytes);
        for (kx = 0; kx < p->kernel_w; kx += span) {
            const int32_t ix = from + kx * p->dilation_w;
            const int32_t first = tinyfuse_min(tinyfuse_max(ix, 0), p->in_w);
            const int32_t last = inside ? tinyfuse_max(tinyfuse_min(ix + span, p->in_w), first) : first;
            if (last - first < span) {
                memset(to, p->in_zero_point, (size_t)(span * p->in_c));
            }
            memcpy(to + (last > first ? first - ix : 0) * p->in_c, row + first * p->in_c,
                   (size_t)((last - first) * p->in_c));
            to += span * p->in_c;
        }
    }
    for (; window < to; ++window) {
        sum += *window;
    }
    return sum;
}

/* Computes output row y. Weights are [out_c][kernel_h][kernel_w][in_c] less `offset`; channels are of the bounded
   form. scratch: kernel_h * kernel_w * in_c bytes. */
TINYFUSE_INLINE void tinyfuse_conv_dots_row_w16(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                                const int8_t *weights, const tinyfuse_requant *channels,
                                                void *scratch, int32_t offset)
{
    const int32_t depth = p->kernel_h * p->kernel_w * p->in_c, rounding = 2 * p->out_zero_point + 1;
    int8_t *const window = (int8_t *)scratch;
    int8_t *out = out_row;
    int32_t x, o, i;
    for (x = 0; x < p->out_w; ++x) {
        const int32_t more = offset * tinyfuse_copy_window_w16(p, in, y, x, window);
        for (o = 0; o + TINYFUSE_DOTS_TOGETHER <= p->out_c; o += TINYFUSE_DOTS_TOGETHER) {
            int32_t sums[TINYFUSE_DOTS_TOGETHER];
            for (i = 0; i < TINYFUSE_DOTS_TOGETHER; ++i) {
                sums[i] = channels[o + i].bias + more;
            }
            tinyfuse_dots_w16(window, weights + o * depth, depth, depth, sums);
            for (i = 0; i < TINYFUSE_DOTS_TOGETHER; ++i) {
                *out++ = (int8_t)tinyfuse_requantize_bounded(sums[i], channels[o + i].multiplier,
                                                             channels[o + i].shift, rounding);
            }
        }
        for (; o < p->out_c; ++o) {
            const int32_t sum = tinyfuse_dot_s8(window, weights + o * depth, depth, channels[o].bias + more);
            *out++ = (int8_t)tinyfuse_requantize_bounded(sum, channels[o].multiplier, channels[o].shift, rounding);
        }
    }
    tinyfuse_clamp_outputs(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
}

#endif
