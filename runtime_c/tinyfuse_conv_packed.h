/* 2D convolution, int8 NHWC, one output row a call: im2col of up to three pixels, then
   tinyfuse_matmul.h. Any kernel, stride, dilation and padding; one group. */
#ifndef TINYFUSE_CONV_PACKED_H
#define TINYFUSE_CONV_PACKED_H

#include "tinyfuse_conv.h"
#include "tinyfuse_matmul.h"

/* Where the inputs of a pixel go: widened, four to each `step` bytes from `to` (`wide`), or in
   order to `bytes`. */
typedef struct {
    int8_t *bytes;
    int16_t *to;
    int32_t step;
} tinyfuse_column;

/* Copies count >= 4 bytes by words; the last word may overlap the one before. */
TINYFUSE_INLINE void tinyfuse_copy_words(int8_t *to, const int8_t *from, int32_t count)
{
    int8_t *const last = to + count - 4;
    memcpy(last, from + count - 4, 4);
#if TINYFUSE_DSP
    {
        uint32_t word;
        /* in C, gcc makes two loops of it, and a test which may be taken */
        __asm volatile("b 2f\n\t"
                       "1:\n\t"
                       "ldr %[word], [%[from]], #4\n\t"
                       "str %[word], [%[to]], #4\n\t"
                       "2:\n\t"
                       "cmp %[to], %[last]\n\t"
                       "bcc 1b"
                       : [to] "+r"(to), [from] "+r"(from), [word] "=&r"(word)
                       : [last] "r"(last)
                       : "cc", "memory");
    }
#else
    while (to < last) {
        memcpy(to, from, 4);
        to += 4;
        from += 4;
    }
#endif
}

/* Appends count > 0 bytes; count is a multiple of 4 where they are widened. */
TINYFUSE_INLINE void tinyfuse_column_append(tinyfuse_column *c, const int8_t *from, int32_t count,
                                            int wide)
{
    if (wide) {
        c->to = tinyfuse_widen(from, count / 4, c->to, c->step);
    } else if (count < 4) {
        int32_t i;
        for (i = 0; i < count; ++i) {
            c->bytes[i] = from[i];
        }
        c->bytes += count;
    } else {
        tinyfuse_copy_words(c->bytes, from, count);
        c->bytes += count;
    }
}

TINYFUSE_INLINE void tinyfuse_column_fill(tinyfuse_column *c, int32_t value, int32_t count,
                                          int wide)
{
    int32_t i;
    if (!wide) {
        for (i = 0; i < count; ++i) {
            *c->bytes++ = (int8_t)value;
        }
        return;
    }
    {
        const uint32_t pair = (uint32_t)value << 16 | ((uint32_t)value & 0xFFFFu);
        for (; count > 0; count -= 4) {
            memcpy(c->to, &pair, 4);
            memcpy(c->to + 2, &pair, 4);
            c->to += c->step / 2;
        }
    }
}

/* The window of output column x, row by row; rows[kernel_h] point to input rows, NULL is padding. */
TINYFUSE_SHARED void tinyfuse_gather_window(const tinyfuse_conv *p, const int8_t *const *rows, int32_t x,
                                     tinyfuse_column *column, int wide)
{
    const int32_t in_c = p->in_c, zero = p->in_zero_point;
    const int32_t from = x * p->stride_w - p->pad_left;
    /* kernel columns in the padding on the left, in the image, in the padding on the right */
    const int32_t left = tinyfuse_clamp(-from, 0, p->kernel_w);
    const int32_t right = tinyfuse_clamp(from + p->kernel_w - p->in_w, 0, p->kernel_w);
    const int32_t middle = p->kernel_w - left - right;
    int32_t ky, kx;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int8_t *const row = rows[ky];
        if (row == NULL) {
            tinyfuse_column_fill(column, zero, p->kernel_w * in_c, wide);
        } else if (p->dilation_w == 1 && middle > 0) {
            if (left > 0) {
                tinyfuse_column_fill(column, zero, left * in_c, wide);
            }
            tinyfuse_column_append(column, row + (from + left) * in_c, middle * in_c, wide);
            if (right > 0) {
                tinyfuse_column_fill(column, zero, right * in_c, wide);
            }
        } else {
            for (kx = 0; kx < p->kernel_w; ++kx) {
                const int32_t ix = from + kx * p->dilation_w;
                if (ix >= 0 && ix < p->in_w) {
                    tinyfuse_column_append(column, row + ix * in_c, in_c, wide);
                } else {
                    tinyfuse_column_fill(column, zero, in_c, wide);
                }
            }
        }
    }
}

/* Whether each kernel row of the window of output column x lies in one piece of an input row. */
TINYFUSE_INLINE int tinyfuse_window_inside(const tinyfuse_conv *p, int32_t x)
{
    const int32_t from = x * p->stride_w - p->pad_left;
    return p->dilation_w == 1 && from >= 0 && from + p->kernel_w <= p->in_w;
}

/* The windows of `block` output columns from x on, as tinyfuse_matmul.h takes them; in_c is a
   multiple of 4. */
TINYFUSE_SHARED void tinyfuse_windows_wide(const tinyfuse_conv *p, const int8_t *const *rows,
                                           int32_t x, int32_t block, int16_t *columns)
{
    const int32_t count = p->kernel_w * p->in_c, kernel_h = p->kernel_h;
    int32_t i, ky;
    for (i = 0; i < block; ++i) {
        tinyfuse_column column = {NULL, columns + 4 * i, 8 * block};
        if (tinyfuse_window_inside(p, x + i)) {
            const int32_t offset = ((x + i) * p->stride_w - p->pad_left) * p->in_c;
            for (ky = 0; ky < kernel_h; ++ky) {
                if (rows[ky] != NULL) {
                    tinyfuse_column_append(&column, rows[ky] + offset, count, 1);
                } else {
                    tinyfuse_column_fill(&column, p->in_zero_point, count, 1);
                }
            }
        } else {
            tinyfuse_gather_window(p, rows, x + i, &column, 1);
        }
    }
}

/* The same for any in_c, by way of `bytes`, whose last `depth` - kernel_h * kernel_w * in_c bytes
   are zeros. */
TINYFUSE_SHARED void tinyfuse_windows_any(const tinyfuse_conv *p, const int8_t *const *rows,
                                          int32_t x, int32_t block, int16_t *columns, int8_t *bytes,
                                          int32_t depth)
{
    const int32_t count = p->kernel_w * p->in_c, kernel_h = p->kernel_h;
    int32_t i, ky;
    for (i = 0; i < block; ++i) {
        tinyfuse_column column = {bytes, NULL, 0};
        if (tinyfuse_window_inside(p, x + i) && count >= 4) {
            const int32_t offset = ((x + i) * p->stride_w - p->pad_left) * p->in_c;
            int8_t *put = bytes;
            for (ky = 0; ky < kernel_h; ++ky) {
                if (rows[ky] != NULL) {
                    tinyfuse_copy_words(put, rows[ky] + offset, count);
                } else {
                    memset(put, p->in_zero_point, (size_t)count);
                }
                put += count;
            }
        } else {
            tinyfuse_gather_window(p, rows, x + i, &column, 0);
        }
        (void)tinyfuse_widen(bytes, depth / 4, columns + 4 * i, 8 * block);
    }
}

TINYFUSE_INLINE void tinyfuse_conv_packed_body(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                 int8_t *out_row, const int8_t *weights,
                                                 const tinyfuse_requant *channels, void *scratch,
                                                 int ramp)
{
    const int32_t depth = (p->kernel_h * p->kernel_w * p->in_c + 3) & ~3;
    const tinyfuse_matmul m = {depth, p->out_c, 2 * p->out_zero_point + 1};
    int16_t *const columns = (int16_t *)scratch;
    const int8_t **const rows = (const int8_t **)(void *)(columns + 3 * depth);
    int8_t *const bytes = (int8_t *)(rows + p->kernel_h);
    const int wide = (p->in_c & 3) == 0;
    int8_t *out = out_row;
    int32_t x, ky;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        rows[ky] = iy >= 0 && iy < p->in_h
                       ? tinyfuse_ring_row(in, iy, p->in_ring, p->in_w * p->in_c)
                       : NULL;
    }
    if (!wide) {
        memset(bytes + depth - 4, 0, 4);
    }
    for (x = 0; x < p->out_w;) {
        const int32_t block = tinyfuse_block_pixels(p->out_w - x);
        if (wide) {
            tinyfuse_windows_wide(p, rows, x, block, columns);
        } else {
            tinyfuse_windows_any(p, rows, x, block, columns, bytes, depth);
        }
        tinyfuse_matmul_pixels(&m, columns, weights, channels, out, block, ramp);
        out += block * p->out_c;
        x += block;
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
    }
}

TINYFUSE_SHARED void tinyfuse_conv_packed_row_ramp(const tinyfuse_conv *p, const int8_t *in,
                                                   int32_t y, int8_t *out_row,
                                                   const int8_t *weights,
                                                   const tinyfuse_requant *channels, void *scratch)
{
    tinyfuse_conv_packed_body(p, in, y, out_row, weights, channels, scratch, 1);
}

TINYFUSE_SHARED void tinyfuse_conv_packed_row_plain(const tinyfuse_conv *p, const int8_t *in,
                                                    int32_t y, int8_t *out_row,
                                                    const int8_t *weights,
                                                    const tinyfuse_requant *channels, void *scratch)
{
    tinyfuse_conv_packed_body(p, in, y, out_row, weights, channels, scratch, 0);
}

/* Output row y, packed for tinyfuse_matmul.h. Reads only the input rows of y's own window, writes
   only the out_w * out_c bytes of out_row. `ramp` (a constant): act_min is not below the output zero point.
   scratch, aligned to 8: 3 * depth int16, then kernel_h pointers, then `depth` bytes where in_c is no
   multiple of 4, with depth = kernel_h * kernel_w * in_c rounded up to a multiple of 4. */
TINYFUSE_INLINE void tinyfuse_conv_packed_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                 int8_t *out_row, const int8_t *weights,
                                                 const tinyfuse_requant *channels, void *scratch,
                                                 int ramp)
{
    (ramp ? tinyfuse_conv_packed_row_ramp
          : tinyfuse_conv_packed_row_plain)(p, in, y, out_row, weights, channels, scratch);
}

#endif
