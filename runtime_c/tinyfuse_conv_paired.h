/* 2D convolution, int8 NHWC, for cores without the DSP extension, one output row a call: im2col of two pixels, then
   tinyfuse_paired.h. Any kernel, stride, dilation and padding; one group. */
#ifndef TINYFUSE_CONV_PAIRED_H
#define TINYFUSE_CONV_PAIRED_H

#include "tinyfuse_conv_packed.h"
#include "tinyfuse_paired.h"

/* Writes `count` input zero points, a multiple of 4, two to each `step` words from `to`. Returns the next place. */
TINYFUSE_SHARED int32_t *tinyfuse_paired_zeros(int32_t zero_point, int32_t count, int32_t *to, int32_t step)
{
    for (; count > 0; count -= 2) {
        to[0] = zero_point;
        to[1] = zero_point;
        to += step;
    }
    return to;
}

/* Converts `count` inputs of a row from column ix on, a multiple of 4. A NULL `row` and columns outside of it are
   padding. */
TINYFUSE_INLINE int32_t *tinyfuse_paired_run(const tinyfuse_conv *p, const int8_t *row, int32_t ix, int32_t count,
                                             int32_t *to, int32_t step)
{
    if (row == NULL || ix < 0 || ix >= p->in_w) {
        return tinyfuse_paired_zeros(p->in_zero_point, count, to, step);
    }
    return tinyfuse_paired_column(row + ix * p->in_c, count / 4, to, step);
}

/* Gathers the window of output column x to its column, through `bytes` where in_c is no multiple of 4. */
TINYFUSE_SHARED void tinyfuse_paired_window(const tinyfuse_conv *p, const int8_t *const *rows, int32_t x, int32_t *to,
                                            int32_t step, int32_t depth, int8_t *bytes)
{
    const int inside = tinyfuse_window_inside(p, x);
    int32_t ky, kx;
    if ((p->in_c & 3) != 0) {
        if (inside != 0) {
            tinyfuse_copy_window(p, rows, x, bytes, 0, 0);
        } else {
            tinyfuse_gather_bytes(p, rows, x, bytes, 0);
        }
        (void)tinyfuse_paired_column(bytes, depth / 4, to, step);
        return;
    }
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t from = x * p->stride_w - p->pad_left;
        if (inside != 0) {
            to = tinyfuse_paired_run(p, rows[ky], from, p->kernel_w * p->in_c, to, step);
            continue;
        }
        for (kx = 0; kx < p->kernel_w; ++kx) {
            to = tinyfuse_paired_run(p, rows[ky], from + kx * p->dilation_w, p->in_c, to, step);
        }
    }
}

/* Computes output row y. Reads only the input rows of y's own window, writes only the out_w * out_c bytes of out_row.
   `form` is a constant. scratch, aligned to 8: kernel_h pointers of 4 bytes, columns of 2 * depth inputs of 4 bytes,
   then `depth` bytes where in_c is no multiple of 4, with depth = kernel_h * kernel_w * in_c rounded up to a multiple
   of 4. */
TINYFUSE_INLINE void tinyfuse_conv_paired_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                                 const int32_t *pairs, void *scratch, int form)
{
    const int32_t depth = (p->kernel_h * p->kernel_w * p->in_c + 3) & ~3;
    const int8_t **const rows =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int32_t *const columns = (int32_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES / 4;
    int8_t *const bytes = (int8_t *)(columns + 2 * depth);
    int8_t *out = out_row;
    tinyfuse_paired s = tinyfuse_paired_of(p->out_c, p->out_zero_point, columns, depth, form);
    int32_t x, block;
    (void)tinyfuse_window_rows(p, in, y, rows);
    if ((p->in_c & 3) != 0) {
        memset(bytes + depth - 4, 0, 4);
    }
    for (x = 0; x < p->out_w; x += block) {
        block = tinyfuse_min(p->out_w - x, 2);
        tinyfuse_paired_window(p, rows, x, columns, 2 * block, depth, bytes);
        if (block == 2) {
            tinyfuse_paired_window(p, rows, x + 1, columns + 2, 4, depth, bytes);
        }
        tinyfuse_paired_pixels(&s, pairs, out, block, form);
        out += block * p->out_c;
    }
    tinyfuse_clamp_outputs(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
}

#endif
