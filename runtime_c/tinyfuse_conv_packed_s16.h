/* 2D convolution, int16 data and int8 weights, NHWC, one output row a call: im2col of up to three pixels, then
   tinyfuse_matmul_s16.h. Any kernel, stride, dilation and padding; one group. */
#ifndef TINYFUSE_CONV_PACKED_S16_H
#define TINYFUSE_CONV_PACKED_S16_H

#include "tinyfuse_conv.h"
#include "tinyfuse_matmul_s16.h"

/* The input rows of output row y's window; NULL is padding. */
TINYFUSE_INLINE void tinyfuse_window_rows_s16(const tinyfuse_conv *p, const int16_t *in, int32_t y,
                                              const int16_t **rows)
{
    int32_t ky;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        rows[ky] = iy >= 0 && iy < p->in_h ? in + (iy % p->in_ring) * p->in_w * p->in_c : NULL;
    }
}

/* `count` zeros, a multiple of 4, four to each `step` from `to`. Returns the next place. */
TINYFUSE_INLINE int16_t *tinyfuse_spread_zeros_s16(int32_t count, int16_t *to, int32_t step)
{
    for (; count > 0; count -= 4) {
        memset(to, 0, 8);
        to += step;
    }
    return to;
}

/* The window of output column x where in_c is a multiple of 4; rows[kernel_h] point to input rows. */
TINYFUSE_INLINE void tinyfuse_spread_window_s16(const tinyfuse_conv *p, const int16_t *const *rows, int32_t x,
                                                int16_t *to, int32_t step)
{
    const int32_t from = x * p->stride_w - p->pad_left, run = p->kernel_w * p->in_c;
    const int inside = p->dilation_w == 1 && from >= 0 && from + p->kernel_w <= p->in_w;
    int32_t ky, kx;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        if (rows[ky] == NULL) {
            to = tinyfuse_spread_zeros_s16(run, to, step);
        } else if (inside) {
            to = tinyfuse_spread_s16(rows[ky] + from * p->in_c, run, to, step);
        } else {
            for (kx = 0; kx < p->kernel_w; ++kx) {
                const int32_t ix = from + kx * p->dilation_w;
                to = ix >= 0 && ix < p->in_w ? tinyfuse_spread_s16(rows[ky] + ix * p->in_c, p->in_c, to, step)
                                             : tinyfuse_spread_zeros_s16(p->in_c, to, step);
            }
        }
    }
}

/* The same in order, for any in_c. */
TINYFUSE_INLINE void tinyfuse_copy_window_s16(const tinyfuse_conv *p, const int16_t *const *rows, int32_t x,
                                              int16_t *to)
{
    const int32_t from = x * p->stride_w - p->pad_left, run = p->kernel_w * p->in_c;
    const int inside = p->dilation_w == 1 && from >= 0 && from + p->kernel_w <= p->in_w;
    int32_t ky, kx, i;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        if (rows[ky] != NULL && inside) {
            const int16_t *const row = rows[ky] + from * p->in_c;
            for (i = 0; i < run; ++i) {
                to[i] = row[i];
            }
            to += run;
            continue;
        }
        for (kx = 0; kx < p->kernel_w; ++kx) {
            const int32_t ix = from + kx * p->dilation_w;
            const int there = rows[ky] != NULL && ix >= 0 && ix < p->in_w;
            for (i = 0; i < p->in_c; ++i) {
                *to++ = there ? rows[ky][ix * p->in_c + i] : (int16_t)0;
            }
        }
    }
}

/* Output row y, packed for tinyfuse_matmul_s16.h, whose `form` is a constant. Reads only the input rows of y's own
   window, writes only the out_w * out_c elements of out_row; the inputs of a block of `block_pixels`, 2 or 3, are
   copied before its outputs are written. scratch, aligned to 8: kernel_h pointers of 4 bytes, columns of
   block_pixels * depth inputs, then `depth` inputs where in_c is no multiple of 4, with depth = kernel_h * kernel_w *
   in_c rounded up to a multiple of 4. */
TINYFUSE_INLINE void tinyfuse_conv_packed_row_s16(const tinyfuse_conv *p, const int16_t *in, int32_t y,
                                                  int16_t *out_row, const int8_t *weights, const void *channels,
                                                  void *scratch, int32_t block_pixels, int form)
{
    const int32_t depth = (p->kernel_h * p->kernel_w * p->in_c + 3) & ~3;
    const int16_t **const rows =
        (const int16_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int16_t *const columns = (int16_t *)(void *)((uint8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES);
    int16_t *const flat = columns + block_pixels * depth;
    const int fours = (p->in_c & 3) == 0;
    int16_t *out = out_row;
    int32_t x, i;
    tinyfuse_window_rows_s16(p, in, y, rows);
    if (!fours) { /* times zero weights */
        memset(flat + depth - 4, 0, 8);
    }
    for (x = 0; x < p->out_w;) {
        const int32_t block = tinyfuse_block_pixels(p->out_w - x, block_pixels);
        for (i = 0; i < block; ++i) {
            if (fours) {
                tinyfuse_spread_window_s16(p, rows, x + i, columns + 4 * i, 4 * block);
            } else {
                tinyfuse_copy_window_s16(p, rows, x + i, flat);
                (void)tinyfuse_spread_s16(flat, depth, columns + 4 * i, 4 * block);
            }
        }
        tinyfuse_matmul_block_s16(weights, columns, depth, out, p->out_c, channels, block, form);
        out += block * p->out_c;
        x += block;
    }
    if (tinyfuse_narrower_s16(p->act_min, p->act_max, form)) {
        tinyfuse_clamp_row_s16(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
    }
}

#endif
