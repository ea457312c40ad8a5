/* 2D convolution, int8 NHWC, one output row a call: im2col of up to three pixels, then
   tinyfuse_matmul.h. Any kernel, stride, dilation and padding; one group. */
#ifndef TINYFUSE_CONV_PACKED_H
#define TINYFUSE_CONV_PACKED_H

#include "tinyfuse_conv.h"
#include "tinyfuse_matmul.h"

/* Where the inputs of a pixel go: every four to `to`, then `step` int16 further. */
typedef struct {
    int16_t *to;
    int32_t step;
} tinyfuse_column;

TINYFUSE_INLINE void tinyfuse_column_append(tinyfuse_column *c, const int8_t *from, int32_t bytes)
{
    int16_t *to = c->to;
    const int32_t step = c->step;
    for (; bytes > 0; bytes -= 4) {
        tinyfuse_widen(from, to);
        from += 4;
        to += step;
    }
    c->to = to;
}

TINYFUSE_INLINE void tinyfuse_column_fill(tinyfuse_column *c, int32_t value, int32_t bytes)
{
    int32_t i;
    for (; bytes > 0; bytes -= 4) {
        for (i = 0; i < 4; ++i) {
            c->to[i] = (int16_t)value;
        }
        c->to += c->step;
    }
}

/* The window of output pixel (y, x) as bytes: kernel_h * kernel_w * in_c, then zeros up to a
   multiple of 4. */
TINYFUSE_SHARED void tinyfuse_window_bytes(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                           int32_t x, int8_t *to)
{
    const int32_t row_bytes = p->in_w * p->in_c;
    int32_t ky, kx, rest = -(p->kernel_h * p->kernel_w * p->in_c) & 3;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        const int inside = iy >= 0 && iy < p->in_h;
        const int8_t *row = inside ? tinyfuse_ring_row(in, iy, p->in_ring, row_bytes) : in;
        int32_t ix = x * p->stride_w - p->pad_left;
        int32_t run = 1;
        if (p->dilation_w == 1 && ix >= 0 && ix + p->kernel_w <= p->in_w) {
            run = p->kernel_w; /* the whole kernel row lies in one piece */
        }
        for (kx = 0; kx < p->kernel_w; kx += run) {
            const int32_t bytes = run * p->in_c;
            if (inside && ix >= 0 && ix < p->in_w) {
                const int8_t *from = row + ix * p->in_c;
                int32_t n = bytes;
                for (; n >= 4; n -= 4) {
                    memcpy(to, from, 4);
                    to += 4;
                    from += 4;
                }
                for (; n > 0; --n) {
                    *to++ = *from++;
                }
            } else {
                int32_t n;
                for (n = 0; n < bytes; ++n) {
                    *to++ = (int8_t)p->in_zero_point;
                }
            }
            ix += p->dilation_w;
        }
    }
    while (rest-- > 0) {
        *to++ = 0;
    }
}

/* The window of output pixel (y, x), widened; in_c is a multiple of 4. */
TINYFUSE_SHARED void tinyfuse_window_column(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                            int32_t x, int16_t *to, int32_t step)
{
    const int32_t row_bytes = p->in_w * p->in_c;
    tinyfuse_column column = {to, step};
    int32_t ky, kx;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        const int inside = iy >= 0 && iy < p->in_h;
        const int8_t *row = inside ? tinyfuse_ring_row(in, iy, p->in_ring, row_bytes) : in;
        int32_t ix = x * p->stride_w - p->pad_left;
        int32_t run = 1;
        if (p->dilation_w == 1 && ix >= 0 && ix + p->kernel_w <= p->in_w) {
            run = p->kernel_w; /* the whole kernel row lies in one piece */
        }
        for (kx = 0; kx < p->kernel_w; kx += run) {
            if (inside && ix >= 0 && ix < p->in_w) {
                tinyfuse_column_append(&column, row + ix * p->in_c, run * p->in_c);
            } else {
                tinyfuse_column_fill(&column, p->in_zero_point, run * p->in_c);
            }
            ix += p->dilation_w;
        }
    }
}

/* Output row y, packed for tinyfuse_matmul.h. Reads only the input rows of y's own window, writes
   only the out_w * out_c bytes of out_row. `ramp`: act_min is not below the output zero point.
   scratch, aligned to 8: 3 * depth int16, and depth bytes more where in_c is no multiple of 4, with
   depth = kernel_h * kernel_w * in_c rounded up to a multiple of 4. */
TINYFUSE_INLINE void tinyfuse_conv_packed_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                 int8_t *out_row, const int8_t *weights,
                                                 const tinyfuse_requant *channels, void *scratch,
                                                 int ramp)
{
    const int32_t depth = (p->kernel_h * p->kernel_w * p->in_c + 3) & ~3;
    const tinyfuse_matmul m = {depth, p->out_c, 2 * p->out_zero_point + 1};
    int16_t *const columns = (int16_t *)scratch;
    int8_t *const bytes = (int8_t *)(columns + 3 * depth);
    int8_t *out = out_row;
    int32_t x = 0;
    while (x < p->out_w) {
        const int32_t block = tinyfuse_block_pixels(p->out_w - x);
        int32_t i;
        for (i = 0; i < block; ++i) {
            if ((p->in_c & 3) == 0) {
                tinyfuse_window_column(p, in, y, x + i, columns + 4 * i, 4 * block);
            } else {
                tinyfuse_window_bytes(p, in, y, x + i, bytes);
                {
                    tinyfuse_column column = {columns + 4 * i, 4 * block};
                    tinyfuse_column_append(&column, bytes, depth);
                }
            }
        }
        tinyfuse_matmul_pixels(&m, columns, weights, channels, out, block, ramp);
        out += block * p->out_c;
        x += block;
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
    }
}

#endif
