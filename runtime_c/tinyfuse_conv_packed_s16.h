/* 2D convolution, int16 data and int8 weights, NHWC, one output row a call: im2col of up to three pixels, then
   tinyfuse_matmul_s16.h. Any kernel, stride, dilation, padding and groups. */
#ifndef TINYFUSE_CONV_PACKED_S16_H
#define TINYFUSE_CONV_PACKED_S16_H

#include "tinyfuse_conv.h"
#include "tinyfuse_matmul_s16.h"

/* Lists the input rows of output row y's window; NULL is padding. */
TINYFUSE_INLINE void tinyfuse_window_rows_s16(const tinyfuse_conv *p, const int16_t *in, int32_t y,
                                              const int16_t **rows)
{
    int32_t ky;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        rows[ky] = iy >= 0 && iy < p->in_h ? in + (iy % p->in_ring) * p->in_w * p->in_c : NULL;
    }
}

/* Writes `count` zeros, a multiple of 4, four to each `step` from `to`. Returns the next place. */
TINYFUSE_INLINE int16_t *tinyfuse_spread_zeros_s16(int32_t count, int16_t *to, int32_t step)
{
    for (; count > 0; count -= 4) {
        memset(to, 0, 8);
        to += step;
    }
    return to;
}

/* Gathers the window of output column x where in_c is a multiple of 4; rows[kernel_h] point to input rows. */
TINYFUSE_INLINE void tinyfuse_spread_window_s16(const tinyfuse_conv *p, const int16_t *const *rows, int32_t x,
                                                int16_t *to, int32_t step)
{
    const int32_t from = x * p->stride_w - p->pad_left, run = p->kernel_w * p->in_c;
    const int inside = p->dilation_w == 1 && from >= 0 && from + p->kernel_w <= p->in_w;
    int32_t ky, kx;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        if (rows[ky] == NULL) {
            to = tinyfuse_spread_zeros_s16(run, to, step);
        } else if (inside != 0) {
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

/* Copies `count` channels from `first` on of the window of output column x in order, for any in_c. */
TINYFUSE_INLINE void tinyfuse_copy_window_s16(const tinyfuse_conv *p, const int16_t *const *rows, int32_t x,
                                              int32_t first, int32_t count, int16_t *to)
{
    const int32_t from = x * p->stride_w - p->pad_left, run = p->kernel_w * p->in_c;
    const int inside = count == p->in_c && p->dilation_w == 1 && from >= 0 && from + p->kernel_w <= p->in_w;
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
            for (i = 0; i < count; ++i) {
                *to++ = there ? rows[ky][ix * p->in_c + first + i] : (int16_t)0;
            }
        }
    }
}

/* Scratch of a block's inputs, aligned to 8: columns of block_pixels * depth, then `depth` where channels are no
   multiple of 4 or not all of a group, with depth = kernel_h * kernel_w * in_c / groups rounded up to a multiple of
   4. */
typedef struct {
    int16_t *columns;
    int32_t block_pixels; /* 2 or 3 */
} tinyfuse_block_s16;

/* Computes output columns x to x_end of one group, whose weights and channels are given, to `out`, `stride` elements
   from one column to the next. rows[kernel_h] point to input rows; `form` is a constant. */
TINYFUSE_INLINE void tinyfuse_conv_packed_columns_s16(const tinyfuse_conv *p, const int16_t *const *rows, int32_t group,
                                                      int32_t x, int32_t x_end, int16_t *out, int32_t stride,
                                                      const int8_t *weights, const void *channels,
                                                      tinyfuse_block_s16 at, int form)
{
    const int32_t group_c = p->in_c / p->groups, terms = p->kernel_h * p->kernel_w * group_c;
    const int32_t depth = (terms + 3) & ~3;
    int16_t *const flat = at.columns + at.block_pixels * depth;
    const int quads = p->groups == 1 && (p->in_c & 3) == 0;
    int32_t i;
    if (quads == 0) { /* times zero weights */
        memset(flat + depth - 4, 0, 8);
    }
    while (x < x_end) {
        const int32_t block = tinyfuse_block_pixels(x_end - x, at.block_pixels);
        for (i = 0; i < block; ++i) {
            if (quads != 0) {
                tinyfuse_spread_window_s16(p, rows, x + i, at.columns + 4 * i, 4 * block);
            } else {
                tinyfuse_copy_window_s16(p, rows, x + i, group * group_c, group_c, flat);
                (void)tinyfuse_spread_s16(flat, depth, at.columns + 4 * i, 4 * block);
            }
        }
        tinyfuse_matmul_block_s16(weights, at.columns, depth, out, p->out_c / p->groups, stride, channels, block,
                                  form);
        out += block * stride;
        x += block;
    }
}

/* Computes output row y group by group with weights packed for tinyfuse_matmul_s16.h, whose `form` is a constant.
   Reads only the input rows of y's own window, writes only the out_w * out_c elements of out_row. With one group, the
   inputs of a block of `block_pixels`, 2 or 3, are copied before its outputs are written. scratch, aligned to 8:
   kernel_h pointers of 4 bytes, then that of tinyfuse_block_s16. */
TINYFUSE_INLINE void tinyfuse_conv_packed_row_s16(const tinyfuse_conv *p, const int16_t *in, int32_t y,
                                                  int16_t *out_row, const int8_t *weights, const void *channels,
                                                  void *scratch, int32_t block_pixels, int form)
{
    const int32_t filters = p->out_c / p->groups;
    const int32_t depth = (p->kernel_h * p->kernel_w * (p->in_c / p->groups) + 3) & ~3;
    const int16_t **const rows =
        (const int16_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    tinyfuse_block_s16 at;
    int32_t group;
    at.columns = (int16_t *)(void *)((uint8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES);
    at.block_pixels = block_pixels;
    tinyfuse_window_rows_s16(p, in, y, rows);
    for (group = 0; group < p->groups; ++group) {
        tinyfuse_conv_packed_columns_s16(p, rows, group, 0, p->out_w, out_row + group * filters, p->out_c,
                                         weights + group * filters * depth,
                                         tinyfuse_channels_from(channels, group * filters, form), at, form);
    }
    if (tinyfuse_narrower_s16(p->act_min, p->act_max, form) != 0) {
        tinyfuse_clamp_row_s16(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
    }
}

#endif
