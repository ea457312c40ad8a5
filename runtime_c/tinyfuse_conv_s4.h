/* Convolutions with weights of int4 by tinyfuse_matmul_s4.h: 1x1 with stride 1, and any other of one group by im2col
   of up to three pixels. */
#ifndef TINYFUSE_CONV_S4_H
#define TINYFUSE_CONV_S4_H

#include "tinyfuse_conv_packed.h"
#include "tinyfuse_matmul_s4.h"
#include "tinyfuse_pointwise.h"

TINYFUSE_INLINE void tinyfuse_pointwise_s4_body(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels,
                                                int8_t *out, const int8_t *weights, const void *channels,
                                                void *scratch, int form)
{
    int8_t *const columns = (int8_t *)scratch;
    tinyfuse_matmul m = tinyfuse_matmul_of(p->out_c, p->out_zero_point, channels, form);
    int8_t *const first = out;
    int32_t left = pixels;
    while (left > 0) {
        const int32_t block = tinyfuse_block_pixels(left, p->block);
        int32_t i;
        for (i = 0; i < block; ++i) {
            (void)tinyfuse_widen_s4(in, p->in_c / 4, columns + 4 * i, 4 * block);
            in += p->in_c;
        }
        tinyfuse_pixels_s4(&m, weights, columns, p->in_c, out, block, form);
        out += block * p->out_c;
        left -= block;
    }
    tinyfuse_clamp_outputs(first, pixels * p->out_c, p->act_min, p->act_max);
}

#define TINYFUSE_POINTWISE_S4(name, form)                                                                       \
    TINYFUSE_SHARED void name(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels, int8_t *out,       \
                              const int8_t *weights, const void *channels, void *scratch)                       \
    {                                                                                                           \
        tinyfuse_pointwise_s4_body(p, in, pixels, out, weights, channels, scratch, form);                       \
    }
TINYFUSE_POINTWISE_S4(tinyfuse_pointwise_s4_wide, TINYFUSE_WIDE)
TINYFUSE_POINTWISE_S4(tinyfuse_pointwise_s4_single_rounding, TINYFUSE_SINGLE_ROUNDING)

/* Computes what tinyfuse_pointwise_s8 does, from int4 weights. */
TINYFUSE_INLINE void tinyfuse_pointwise_s4(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels, int8_t *out,
                                           const int8_t *weights, const void *channels, void *scratch, int form)
{
    TINYFUSE_S4_OF_FORM(form, tinyfuse_pointwise_s4, )(p, in, pixels, out, weights, channels, scratch);
}

/* Writes `count` zero points of the input, a multiple of 4. Returns the next place. */
TINYFUSE_INLINE int8_t *tinyfuse_fill_s4(int32_t zero_point, int32_t count, int8_t *to, int32_t half)
{
    const int8_t zeros[4] = {(int8_t)zero_point, (int8_t)zero_point, (int8_t)zero_point, (int8_t)zero_point};
    for (; count > 0; count -= 4) {
        to = tinyfuse_widen_s4(zeros, 1, to, half);
    }
    return to;
}

/* Gathers the window of output column x to a column; in_c is a multiple of 4. */
TINYFUSE_SHARED void tinyfuse_window_s4(const tinyfuse_conv *p, const int8_t *const *rows, int32_t x, int8_t *to,
                                        int32_t half)
{
    const int32_t in_c = p->in_c, from = x * p->stride_w - p->pad_left;
    int32_t ky, kx;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        if (rows[ky] == NULL) {
            to = tinyfuse_fill_s4(p->in_zero_point, p->kernel_w * in_c, to, half);
        } else if (tinyfuse_window_inside(p, x) != 0) {
            to = tinyfuse_widen_s4(rows[ky] + from * in_c, p->kernel_w * in_c / 4, to, half);
        } else {
            int32_t ix = from;
            for (kx = 0; kx < p->kernel_w; ++kx) {
                if (ix >= 0 && ix < p->in_w) {
                    to = tinyfuse_widen_s4(rows[ky] + ix * in_c, in_c / 4, to, half);
                } else {
                    to = tinyfuse_fill_s4(p->in_zero_point, in_c, to, half);
                }
                ix += p->dilation_w;
            }
        }
    }
}

/* Copies the window of output column x to `bytes`, for any in_c. */
TINYFUSE_SHARED void tinyfuse_window_bytes_s4(const tinyfuse_conv *p, const int8_t *const *rows, int32_t x,
                                              int8_t *bytes)
{
    if (tinyfuse_window_inside(p, x) != 0) {
        tinyfuse_copy_window(p, rows, x, bytes, 0, 0);
    } else {
        tinyfuse_gather_bytes(p, rows, x, bytes, 0);
    }
}

TINYFUSE_INLINE void tinyfuse_conv_s4_body(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                           const int8_t *weights, const void *channels, void *scratch,
                                           int32_t block_pixels, int form)
{
    const int32_t depth = (p->kernel_h * p->kernel_w * p->in_c + 3) & ~3;
    const int8_t **const rows =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int8_t *const columns = (int8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES;
    int8_t *const bytes = columns + 2 * block_pixels * depth;
    tinyfuse_matmul m = tinyfuse_matmul_of(p->out_c, p->out_zero_point, channels, form);
    const int words = (p->in_c & 3) == 0;
    int8_t *out = out_row;
    int32_t x, i;
    tinyfuse_window_rows(p, in, y, rows);
    if (words == 0) {
        memset(bytes + depth - 4, 0, 4);
    }
    for (x = 0; x < p->out_w;) {
        const int32_t block = tinyfuse_block_pixels(p->out_w - x, block_pixels);
        for (i = 0; i < block; ++i) {
            if (words != 0) {
                tinyfuse_window_s4(p, rows, x + i, columns + 4 * i, 4 * block);
            } else {
                tinyfuse_window_bytes_s4(p, rows, x + i, bytes);
                (void)tinyfuse_widen_s4(bytes, depth / 4, columns + 4 * i, 4 * block);
            }
        }
        tinyfuse_pixels_s4(&m, weights, columns, depth, out, block, form);
        out += block * p->out_c;
        x += block;
    }
    tinyfuse_clamp_outputs(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
}

#define TINYFUSE_CONV_S4(name, form)                                                                            \
    TINYFUSE_SHARED void name(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,             \
                              const int8_t *weights, const void *channels, void *scratch, int32_t block_pixels) \
    {                                                                                                           \
        tinyfuse_conv_s4_body(p, in, y, out_row, weights, channels, scratch, block_pixels, form);               \
    }
TINYFUSE_CONV_S4(tinyfuse_conv_s4_wide, TINYFUSE_WIDE)
TINYFUSE_CONV_S4(tinyfuse_conv_s4_single_rounding, TINYFUSE_SINGLE_ROUNDING)

/* Computes what tinyfuse_conv_packed_row_s8 does, from int4 weights. */
TINYFUSE_INLINE void tinyfuse_conv_row_s4(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                          const int8_t *weights, const void *channels, void *scratch,
                                          int32_t block_pixels, int form)
{
    TINYFUSE_S4_OF_FORM(form, tinyfuse_conv_s4, )(p, in, y, out_row, weights, channels, scratch, block_pixels);
}

#endif
