/* 2D convolution, int8 NHWC, one output row a call: im2col of up to three pixels, then
   tinyfuse_matmul.h. Any kernel, stride, dilation and padding; one group. */
#ifndef TINYFUSE_CONV_PACKED_H
#define TINYFUSE_CONV_PACKED_H

#include "tinyfuse_conv.h"
#include "tinyfuse_matmul.h"

/* the most bytes of a window's row that unrolled code copies instead of a loop */
enum { TINYFUSE_SHORT_ROW = 16 };

/* Copies count >= 4 bytes by words; the last word may overlap the one before. */
TINYFUSE_INLINE void tinyfuse_copy_words(int8_t *to, const int8_t *from, int32_t count)
{
    int8_t *const last = to + count - 4;
    memcpy(last, from + count - 4, 4);
#if TINYFUSE_DSP
    {
        uint32_t word;
        /* assembly: from C, gcc makes two loops and a test */
        __asm volatile("b 2f\n\t"
                       "1:\n\t"
                       "ldr %[word], [%[from]], #4\n\t"
                       "str %[word], [%[to]], #4\n\t"
                       "2:\n\t"
                       "cmp %[to], %[last]\n\t"
                       "bcc 1b"
                       : [to] "+&r"(to), [from] "+&r"(from), [word] "=&r"(word)
                       : [last] "r"(last)
                       : "cc", "memory");
    }
#else
    while (to < last) {
        tinyfuse_copy_word(to, from);
        to += 4;
        from += 4;
    }
#endif
}

/* Writes `count` input zero points, a multiple of 4, as columns have them, four to each `step` bytes from `to`.
   Returns the next place. */
TINYFUSE_INLINE int8_t *tinyfuse_widen_zeros(int32_t zero_point, int32_t count, int8_t *to, int32_t step, int form)
{
    const int8_t zeros[4] = {(int8_t)zero_point, (int8_t)zero_point, (int8_t)zero_point, (int8_t)zero_point};
    for (; count > 0; count -= 4) {
        to = tinyfuse_widen(zeros, 1, to, step, form);
    }
    return to;
}

/* Gathers the window of output column x row by row, four inputs to each `step` bytes from `to`. rows[kernel_h] point
   to input rows; NULL is padding. in_c is a multiple of 4. */
TINYFUSE_SHARED void tinyfuse_gather_window(const tinyfuse_conv *p, const int8_t *const *rows, int32_t x, int8_t *to,
                                            int32_t step, int form)
{
    const int32_t in_c = p->in_c, zero = p->in_zero_point;
    const int32_t from = x * p->stride_w - p->pad_left;
    int32_t ky, kx;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        int32_t ix = from;
        for (kx = 0; kx < p->kernel_w; ++kx) {
            if (rows[ky] != NULL && ix >= 0 && ix < p->in_w) {
                to = tinyfuse_widen(rows[ky] + ix * in_c, in_c / 4, to, step, form);
            } else {
                to = tinyfuse_widen_zeros(zero, in_c, to, step, form);
            }
            ix += p->dilation_w;
        }
    }
}

/* Lists the input rows of output row y's window; NULL is padding. Returns whether none is padding. */
TINYFUSE_INLINE int tinyfuse_window_rows(const tinyfuse_conv *p, const int8_t *in, int32_t y, const int8_t **rows)
{
    int inside = 1;
    int32_t ky;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        rows[ky] = iy >= 0 && iy < p->in_h
                       ? tinyfuse_ring_row(in, iy, p->in_ring, p->in_w * p->in_c)
                       : NULL;
        inside &= rows[ky] != NULL;
    }
    return inside;
}

/* Returns whether each kernel row of the window of output column x lies contiguously in an input row. */
TINYFUSE_INLINE int tinyfuse_window_inside(const tinyfuse_conv *p, int32_t x)
{
    const int32_t from = x * p->stride_w - p->pad_left;
    return p->dilation_w == 1 && from >= 0 && from + p->kernel_w <= p->in_w;
}

/* Gathers the windows of `block` output columns from x on as tinyfuse_matmul.h takes them; in_c is a multiple of 4.
   `shared`: see tinyfuse_windows. */
TINYFUSE_INLINE void tinyfuse_windows_of_words(const tinyfuse_conv *p, const tinyfuse_conv *shared,
                                               const int8_t *const *rows, int32_t x, int32_t block, int8_t *columns,
                                               int form)
{
    const int32_t count = p->kernel_w * p->in_c, step = tinyfuse_step_bytes(form), pixel = tinyfuse_pixel_bytes(form);
    int32_t i, ky;
    for (i = 0; i < block; ++i) {
        int8_t *to = columns + pixel * i;
        if (tinyfuse_window_inside(p, x + i) != 0) {
            const int32_t offset = ((x + i) * p->stride_w - p->pad_left) * p->in_c;
            for (ky = 0; ky < p->kernel_h; ++ky) {
                if (rows[ky] != NULL) {
                    to = tinyfuse_widen(rows[ky] + offset, count / 4, to, step * block, form);
                } else {
                    to = tinyfuse_widen_zeros(p->in_zero_point, count, to, step * block, form);
                }
            }
        } else {
            tinyfuse_gather_window(shared, rows, x + i, to, step * block, form);
        }
    }
}

/* Order of a column where in_c is no multiple of 4. Each kernel row gives its whole words of four inputs, converted
   from where they lie. The inputs left over from rows are collected: as soon as there are four they follow as a word,
   the last one first; the remaining ones come at the end, followed by zeros. If rows have no whole word, as with one
   input channel, inputs are copied in order to `bytes`. Weights have the same order
   (tinyfuse/kernels/layers/int8_dsp/lanes.py). */

/* Converts the kernel_h * run inputs of a window without whole words; zeros are appended to `bytes`. */
TINYFUSE_INLINE void tinyfuse_widen_in_order(int8_t *bytes, int32_t count, int8_t *to, int32_t step, int form)
{
    int32_t i;
    for (i = count; (i & 3) != 0; ++i) {
        bytes[i] = 0;
    }
    (void)tinyfuse_widen(bytes, i / 4, to, step, form);
}

/* Converts `words` words of four inputs, to each `step` bytes from `to`; most layers have one or two here. */
TINYFUSE_INLINE int8_t *tinyfuse_widen_few(const int8_t *from, int32_t words, int8_t *to, int32_t step, int form)
{
    if (words == 0) {
        return to;
    }
    if (words > 2) {
        return tinyfuse_widen(from, words, to, step, form);
    }
    to = tinyfuse_widen_word(tinyfuse_load_u32(from), to, step, form);
    return words == 1 ? to : tinyfuse_widen_word(tinyfuse_load_u32(from + 4), to, step, form);
}

/* Converts a window whose kernel rows have `words` words and a rest. They begin `offset` bytes after the start of
   input rows, or, if `rows` is NULL, follow one another from `bytes` on. */
TINYFUSE_INLINE void tinyfuse_widen_kernel_rows(const int8_t *const *rows, int32_t offset, const int8_t *bytes,
                                                int8_t *to, int32_t step, int32_t kernel_h, int32_t words,
                                                int32_t rest, int form)
{
    uint32_t left = 0;
    int32_t count = 0, ky, i;
    for (ky = 0; ky < kernel_h; ++ky) {
        const int8_t *const from = rows != NULL ? rows[ky] + offset : bytes + ky * (4 * words + rest);
        to = tinyfuse_widen_few(from, words, to, step, form);
        for (i = 0; i < rest; ++i) {
            left = left << 8 | (uint8_t)from[4 * words + i];
            ++count;
            if (kernel_h * rest > 3 && count == 4) {
                to = tinyfuse_widen_word(left, to, step, form);
                count = 0;
                left = 0;
            }
        }
    }
    if (count > 0) {
        (void)tinyfuse_widen_word(left, to, step, form);
    }
}

/* Copies count > 0 bytes by a loop; meant for a few bytes. */
TINYFUSE_INLINE void tinyfuse_copy_few(int8_t *to, const int8_t *from, int32_t count)
{
    if (count >= 4) {
        tinyfuse_copy_words(to, from, count);
        return;
    }
    to[0] = from[0];
    if (count > 1) {
        to[1] = from[1];
        to[count - 1] = from[count - 1];
    }
}

/* Gathers the window of output column x, which reaches into the padding, through `bytes`. */
TINYFUSE_SHARED void tinyfuse_border_window(const tinyfuse_conv *p, const int8_t *const *rows, int32_t x, int8_t *to,
                                            int32_t step, int8_t *bytes, int form)
{
    /* taps that are neighbours in the input */
    const int32_t span = p->dilation_w == 1 ? p->kernel_w : 1;
    const int32_t in_c = p->in_c, from = x * p->stride_w - p->pad_left, run = p->kernel_w * in_c;
    const uint32_t zeros = 0x01010101u * (uint8_t)p->in_zero_point;
    int32_t ky, kx;
    for (ky = 0; ky < p->kernel_h * run; ky += 4) { /* up to `depth`, without a slower call of memset */
        memcpy(bytes + ky, &zeros, 4);
    }
    for (kx = 0; kx < p->kernel_w; kx += span) {
        const int32_t ix = from + kx * p->dilation_w;
        const int32_t first = tinyfuse_max(ix, 0), count = tinyfuse_min(ix + span, p->in_w) - first;
        int8_t *put = bytes + (kx + first - ix) * in_c;
        for (ky = 0; ky < p->kernel_h && count > 0; ++ky) {
            if (rows[ky] != NULL) {
                tinyfuse_copy_few(put, rows[ky] + first * in_c, count * in_c);
            }
            put += run;
        }
    }
    if (run < 4) {
        tinyfuse_widen_in_order(bytes, p->kernel_h * run, to, step, form);
    } else {
        tinyfuse_widen_kernel_rows(NULL, 0, bytes, to, step, p->kernel_h, run / 4, run & 3, form);
    }
}

/* Gathers the windows of `block` output columns from x on as tinyfuse_matmul.h takes them. `inside`: no kernel row is
   padding. `bytes` is scratch for an in_c that is no multiple of 4. `shared` is a copy of *p for functions that layers
   share. Only its address is passed on, so that the compiler can keep the fields of *p in registers. */
TINYFUSE_INLINE void tinyfuse_windows(const tinyfuse_conv *p, const tinyfuse_conv *shared, const int8_t *const *rows,
                                      int inside, int32_t x, int32_t block, int8_t *columns, int8_t *bytes, int form)
{
    const int32_t step = tinyfuse_step_bytes(form), pixel = tinyfuse_pixel_bytes(form), run = p->kernel_w * p->in_c;
    int32_t i;
    if ((p->in_c & 3) == 0) {
        tinyfuse_windows_of_words(p, shared, rows, x, block, columns, form);
        return;
    }
    for (i = 0; i < block; ++i) {
        if (inside && tinyfuse_window_inside(p, x + i)) {
            const int32_t offset = ((x + i) * p->stride_w - p->pad_left) * p->in_c;
            if (run < 4) {
                int32_t ky;
                for (ky = 0; ky < p->kernel_h; ++ky) {
                    tinyfuse_copy_few(bytes + ky * run, rows[ky] + offset, run);
                }
                tinyfuse_widen_in_order(bytes, p->kernel_h * run, columns + pixel * i, step * block, form);
            } else {
                tinyfuse_widen_kernel_rows(rows, offset, NULL, columns + pixel * i, step * block, p->kernel_h, run / 4,
                                           run & 3, form);
            }
        } else {
            tinyfuse_border_window(shared, rows, x + i, columns + pixel * i, step * block, bytes, form);
        }
    }
}

/* Returns whether a layer gets a copy of the code of its own because a window's row has few bytes, as in the first
   layer of most networks, with one or three input channels. The compiler then knows the row's length. */
TINYFUSE_INLINE int tinyfuse_short_rows(const tinyfuse_conv *p)
{
    return (p->in_c & 3) != 0 && p->kernel_w * p->in_c <= TINYFUSE_SHORT_ROW;
}

/* Computes an output row by blocks of pixels. `shared`: see tinyfuse_windows; `m`: the layer, with lookup tables where
   `form` has them. */
TINYFUSE_INLINE void tinyfuse_conv_packed_blocks(const tinyfuse_conv *p, const tinyfuse_conv *shared, const int8_t *in,
                                                 int32_t y, tinyfuse_matmul *m, int8_t *out_row, const int8_t *weights,
                                                 void *scratch, int32_t block_pixels, int form)
{
    const int plain = form & ~TINYFUSE_LOOKED_UP;
    const int32_t depth = (p->kernel_h * p->kernel_w * p->in_c + 3) & ~3;
    const int8_t **const rows =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int8_t *const columns = (int8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES;
    int8_t *const bytes = columns + block_pixels * depth / 4 * tinyfuse_step_bytes(plain);
    int8_t *out = out_row;
    const int inside = tinyfuse_window_rows(p, in, y, rows);
    int32_t x;
    for (x = 0; x < p->out_w;) {
        const int32_t block = tinyfuse_block_pixels(p->out_w - x, block_pixels);
        tinyfuse_windows(p, shared, rows, inside, x, block, columns, bytes, plain);
        tinyfuse_matmul_pixels(m, weights, columns, depth, out, p->out_c, block, form);
        out += block * p->out_c;
        x += block;
    }
    tinyfuse_clamp_outputs(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
}

TINYFUSE_INLINE void tinyfuse_conv_packed_body(const tinyfuse_conv *p, const tinyfuse_conv *shared, const int8_t *in,
                                               int32_t y, int8_t *out_row, const int8_t *weights,
                                               const void *channels, void *scratch, int32_t block_pixels,
                                               int form)
{
    tinyfuse_matmul m = tinyfuse_matmul_of(p->out_c, p->out_zero_point, channels, form);
    tinyfuse_conv_packed_blocks(p, shared, in, y, &m, out_row, weights, scratch, block_pixels, form);
}

/* In forms that multiply bytes, a column's inputs are copied unchanged: if in_c is a multiple of 4 (`words`), four to
   each `step` bytes from `to`, else in order. Both are arguments, because a struct would take stack. */

/* Writes `count` zero points of the input. Returns the next place. */
TINYFUSE_INLINE int8_t *tinyfuse_fill_bytes(int32_t zero_point, int32_t count, int8_t *to, int32_t step, int words)
{
    if (words == 0) {
        memset(to, zero_point, (size_t)count);
        return to + count;
    }
    for (; count > 0; count -= 4) {
        to[0] = to[1] = to[2] = to[3] = (int8_t)zero_point;
        to += step;
    }
    return to;
}

/* Gathers the window of output column x, as tinyfuse_gather_window does, as bytes. */
TINYFUSE_SHARED void tinyfuse_gather_bytes(const tinyfuse_conv *p, const int8_t *const *rows, int32_t x, int8_t *to,
                                           int32_t step)
{
    const int32_t in_c = p->in_c, from = x * p->stride_w - p->pad_left;
    const int words = (in_c & 3) == 0;
    int32_t ky, kx;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        int32_t ix = from;
        for (kx = 0; kx < p->kernel_w; ++kx) {
            if (rows[ky] == NULL || ix < 0 || ix >= p->in_w) {
                to = tinyfuse_fill_bytes(p->in_zero_point, in_c, to, step, words);
            } else if (words != 0) {
                to = tinyfuse_widen(rows[ky] + ix * in_c, in_c / 4, to, step, TINYFUSE_BYTES);
            } else {
                memcpy(to, rows[ky] + ix * in_c, (size_t)in_c);
                to += in_c;
            }
            ix += p->dilation_w;
        }
    }
}

/* Copies the window of output column x, which lies inside of the input's columns. */
TINYFUSE_INLINE void tinyfuse_copy_window(const tinyfuse_conv *p, const int8_t *const *rows, int32_t x, int8_t *to,
                                          int32_t step, int words)
{
    const int32_t count = p->kernel_w * p->in_c, offset = (x * p->stride_w - p->pad_left) * p->in_c;
    int32_t ky;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        if (rows[ky] == NULL) {
            to = tinyfuse_fill_bytes(p->in_zero_point, count, to, step, words);
        } else if (words != 0) {
            to = tinyfuse_widen(rows[ky] + offset, count / 4, to, step, TINYFUSE_BYTES);
        } else {
            if (count <= TINYFUSE_SHORT_ROW) {
                memcpy(to, rows[ky] + offset, (size_t)count);
            } else {
                tinyfuse_copy_words(to, rows[ky] + offset, count);
            }
            to += count;
        }
    }
}

/* Gathers the windows of `block` output columns from x on; `bytes` as in tinyfuse_conv_bytes_body. */
TINYFUSE_INLINE void tinyfuse_byte_windows(const tinyfuse_conv *p, const tinyfuse_conv *shared,
                                           const int8_t *const *rows, int32_t x, int32_t block, int8_t *columns,
                                           int8_t *bytes, int32_t depth, int words)
{
    int32_t i;
    for (i = 0; i < block; ++i) {
        int8_t *const column = columns + 4 * i;
        int8_t *const to = words ? column : bytes;
        if (tinyfuse_window_inside(p, x + i) != 0) {
            tinyfuse_copy_window(p, rows, x + i, to, 4 * block, words);
        } else {
            tinyfuse_gather_bytes(shared, rows, x + i, to, 4 * block);
        }
        if (words == 0) {
            (void)tinyfuse_widen(bytes, depth / 4, column, 4 * block, TINYFUSE_BYTES);
        }
    }
}

/* Computes output row y from bytes. The multiplication does not advance m.out, so it is set for each block. */
TINYFUSE_INLINE void tinyfuse_conv_bytes_body(const tinyfuse_conv *p, const tinyfuse_conv *shared, const int8_t *in,
                                              int32_t y, int8_t *out_row, const int8_t *weights, const void *channels, void *scratch,
                                              int32_t block_pixels, int form)
{
    const int32_t depth = (p->kernel_h * p->kernel_w * p->in_c + 3) & ~3;
    const int8_t **const rows =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int8_t *const columns = (int8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES;
    int8_t *const bytes = columns + block_pixels * depth;
    tinyfuse_matmul m = tinyfuse_matmul_of(p->out_c, p->out_zero_point, channels, form);
    const int words = (p->in_c & 3) == 0;
    int32_t x;
    m.out = out_row;
    (void)tinyfuse_window_rows(p, in, y, rows);
    if (words == 0) {
        memset(bytes + depth - 4, 0, 4);
    }
    for (x = 0; x < p->out_w;) {
        const int32_t block = tinyfuse_block_pixels(p->out_w - x, block_pixels);
        tinyfuse_byte_windows(p, shared, rows, x, block, columns, bytes, depth, words);
        tinyfuse_matmul_pixels(&m, weights, columns, depth, m.out, p->out_c, block, form);
        m.out += block * p->out_c;
        x += block;
    }
    tinyfuse_clamp_outputs(m.out - p->out_w * p->out_c, p->out_w * p->out_c, p->act_min, p->act_max);
}

#define TINYFUSE_CONV_PACKED(name, body, form)                                                   \
    TINYFUSE_SHARED void name(const tinyfuse_conv *p, const int8_t *in, int32_t y,               \
                              int8_t *out_row, const int8_t *weights, const void *channels,      \
                              void *scratch, int32_t block_pixels)                               \
    {                                                                                            \
        body(p, p, in, y, out_row, weights, channels, scratch, block_pixels, form);              \
    }
TINYFUSE_CONV_PACKED(tinyfuse_conv_packed_wide, tinyfuse_conv_packed_body, TINYFUSE_WIDE)
TINYFUSE_CONV_PACKED(tinyfuse_conv_packed_lanes, tinyfuse_conv_packed_body, TINYFUSE_LANES)
TINYFUSE_CONV_PACKED(tinyfuse_conv_packed_single_rounding, tinyfuse_conv_packed_body, TINYFUSE_SINGLE_ROUNDING)
TINYFUSE_CONV_PACKED(tinyfuse_conv_packed_bytes, tinyfuse_conv_bytes_body, TINYFUSE_BYTES)
TINYFUSE_CONV_PACKED(tinyfuse_conv_packed_bytes_single_rounding, tinyfuse_conv_bytes_body, TINYFUSE_BYTES_SINGLE_ROUNDING)
TINYFUSE_CONV_PACKED(tinyfuse_conv_packed_shifted, tinyfuse_conv_packed_body, TINYFUSE_SHIFTED)
TINYFUSE_CONV_PACKED(tinyfuse_conv_packed_bytes_shifted, tinyfuse_conv_bytes_body, TINYFUSE_BYTES_SHIFTED)
TINYFUSE_CONV_PACKED(tinyfuse_conv_packed_half_even, tinyfuse_conv_packed_body, TINYFUSE_HALF_EVEN)
TINYFUSE_CONV_PACKED(tinyfuse_conv_packed_half_even_wide, tinyfuse_conv_packed_body, TINYFUSE_HALF_EVEN_WIDE)
TINYFUSE_CONV_PACKED(tinyfuse_conv_packed_bytes_half_even, tinyfuse_conv_bytes_body, TINYFUSE_BYTES_HALF_EVEN)
TINYFUSE_CONV_PACKED(tinyfuse_conv_packed_int4, tinyfuse_conv_packed_body, TINYFUSE_INT4)
TINYFUSE_CONV_PACKED(tinyfuse_conv_packed_int4_single_rounding, tinyfuse_conv_packed_body, TINYFUSE_INT4_SINGLE_ROUNDING)

/* Computes output row y with weights and channels packed for tinyfuse_matmul.h, whose `form` is a constant. Reads
   only the input rows of y's own window, writes only the out_w * out_c bytes of out_row. `block_pixels`, 2 or 3, are
   computed together. scratch, aligned to 8: kernel_h pointers of 4 bytes, columns of block_pixels * depth inputs,
   then `depth` bytes where in_c is no multiple of 4, with depth = kernel_h * kernel_w * in_c rounded up to a multiple
   of 4. Layers with short rows are compiled as copies of their own (tinyfuse_short_rows). */
TINYFUSE_INLINE void tinyfuse_conv_packed_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                 int8_t *out_row, const int8_t *weights,
                                                 const void *channels, void *scratch,
                                                 int32_t block_pixels, int form)
{
    const tinyfuse_conv own = *p;
    if (tinyfuse_short_rows(p) && tinyfuse_of_bytes(form)) {
        tinyfuse_conv_bytes_body(&own, p, in, y, out_row, weights, channels, scratch, block_pixels, form);
    } else if (tinyfuse_short_rows(p) != 0) {
        tinyfuse_conv_packed_body(&own, p, in, y, out_row, weights, channels, scratch, block_pixels, form);
    } else {
        TINYFUSE_OF_FORM(form, tinyfuse_conv_packed, )(p, in, y, out_row, weights, channels, scratch,
                                                       block_pixels);
    }
}

/* Computes what tinyfuse_conv_packed_row_s8 does, from int4 weights. */
TINYFUSE_INLINE void tinyfuse_conv_row_s4(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                          const int8_t *weights, const void *channels, void *scratch,
                                          int32_t block_pixels, int form)
{
    TINYFUSE_OF_FORM(form, tinyfuse_conv_packed, )(p, in, y, out_row, weights, channels, scratch, block_pixels);
}

TINYFUSE_INLINE void tinyfuse_conv_lut_body(const tinyfuse_conv *p, const tinyfuse_conv *shared, const int8_t *in,
                                            int32_t y, int8_t *out_row, const int8_t *weights, const void *channels, void *scratch,
                                            int32_t block_pixels, const int8_t *tables, int32_t table_bytes, int form)
{
    tinyfuse_matmul m =
        tinyfuse_matmul_lut_of(p->out_c, p->out_zero_point, channels, tables, table_bytes, form);
    tinyfuse_conv_packed_blocks(p, shared, in, y, &m, out_row, weights, scratch, block_pixels,
                                form | TINYFUSE_LOOKED_UP);
}

#define TINYFUSE_CONV_LUT(name, form)                                                                             \
    TINYFUSE_SHARED void name(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,               \
                              const int8_t *weights, const void *channels, void *scratch, int32_t block_pixels,   \
                              const int8_t *tables, int32_t table_bytes)                                          \
    {                                                                                                             \
        tinyfuse_conv_lut_body(p, p, in, y, out_row, weights, channels, scratch, block_pixels, tables, table_bytes, \
                                  form);                                                                          \
    }
TINYFUSE_CONV_LUT(tinyfuse_conv_packed_lut_wide, TINYFUSE_WIDE)
TINYFUSE_CONV_LUT(tinyfuse_conv_packed_lut_lanes, TINYFUSE_LANES)
TINYFUSE_CONV_LUT(tinyfuse_conv_packed_lut_single_rounding, TINYFUSE_SINGLE_ROUNDING)
TINYFUSE_CONV_LUT(tinyfuse_conv_packed_lut_signed_rounding, TINYFUSE_SIGNED_ROUNDING)

/* Computes output row y as tinyfuse_conv_packed_row_s8 does and maps each output by a lookup table: one table, or one
   per channel, `table_bytes` apart (tinyfuse_matmul.h). */
TINYFUSE_INLINE void tinyfuse_conv_packed_lut_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                     int8_t *out_row, const int8_t *weights, const void *channels,
                                                     void *scratch, int32_t block_pixels, const int8_t *tables,
                                                     int32_t table_bytes, int form)
{
    const tinyfuse_conv own = *p;
    if (tinyfuse_short_rows(p) != 0) {
        tinyfuse_conv_lut_body(&own, p, in, y, out_row, weights, channels, scratch, block_pixels, tables, table_bytes,
                                  form);
    } else {
        TINYFUSE_OF_LUT(form, tinyfuse_conv_packed, )(p, in, y, out_row, weights, channels, scratch, block_pixels,
                                                         tables, table_bytes);
    }
}

#endif
