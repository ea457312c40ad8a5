/* 2D convolution for Helium, int8 NHWC, one output row a call: the windows of two pixels side by side,
   then tinyfuse_matmul_2x4_mve.h. Any kernel, stride, dilation and padding; one group. */
#ifndef TINYFUSE_CONV_2X4_MVE_H
#define TINYFUSE_CONV_2X4_MVE_H

#include "tinyfuse_conv.h"
#include "tinyfuse_matmul_2x4_mve.h"

/* Copies count > 0 bytes; returns the place after them. */
TINYFUSE_INLINE int8_t *tinyfuse_append_mve(int8_t *to, const int8_t *from, int32_t count)
{
#if TINYFUSE_MVE
    int8_t *put = to;
    uint8x16_t bytes;
    __asm volatile("dlstp.8 lr, %[count]\n\t"
                   "1:\n\t"
                   "vldrb.8 %q[bytes], [%[from]], #16\n\t"
                   "vstrb.8 %q[bytes], [%[put]], #16\n\t"
                   "letp lr, 1b"
                   : [put] "+&l"(put), [from] "+&l"(from), [bytes] "=&w"(bytes)
                   : [count] "r"(count)
                   : "lr", "cc", "memory");
#else
    memcpy(to, from, (size_t)count);
#endif
    return to + count;
}

TINYFUSE_INLINE int8_t *tinyfuse_fill(int8_t *to, int32_t value, int32_t count)
{
#if TINYFUSE_MVE
    int8_t *const end = to + count;
    for (; count > 0; count -= 16) {
        vstrbq_p_s8(to, vdupq_n_s8((int8_t)value), vctp8q((uint32_t)count));
        to += 16;
    }
    return end;
#else
    memset(to, value, (size_t)count);
    return to + count;
#endif
}

/* Writes a row of the window of output column x, kernel_w * in_c bytes with padding. Returns the place after them. */
TINYFUSE_INLINE int8_t *tinyfuse_window_row(const tinyfuse_conv *p, const int8_t *row, int32_t x, int8_t *to)
{
    const int32_t from = x * p->stride_w - p->pad_left;
    int32_t kx;
    if (p->dilation_w == 1) {
        const int32_t first = tinyfuse_clamp(-from, 0, p->kernel_w);
        const int32_t after = tinyfuse_clamp(p->in_w - from, first, p->kernel_w);
        to = tinyfuse_fill(to, p->in_zero_point, first * p->in_c);
        if (after > first) {
            to = tinyfuse_append_mve(to, row + (from + first) * p->in_c, (after - first) * p->in_c);
        }
        return tinyfuse_fill(to, p->in_zero_point, (p->kernel_w - after) * p->in_c);
    }
    for (kx = 0; kx < p->kernel_w; ++kx) {
        const int32_t ix = from + kx * p->dilation_w;
        if (ix >= 0 && ix < p->in_w) {
            to = tinyfuse_append_mve(to, row + ix * p->in_c, p->in_c);
        } else {
            to = tinyfuse_fill(to, p->in_zero_point, p->in_c);
        }
    }
    return to;
}

/* Writes the window of output column x, kernel_h * kernel_w * in_c bytes. rows[kernel_h] point to input rows; NULL is
   padding. */
TINYFUSE_SHARED void tinyfuse_window_mve(const tinyfuse_conv *p, const int8_t *const *rows, int32_t x,
                                         int8_t *to)
{
    const int32_t in_c = p->in_c, kernel_w = p->kernel_w, zero = p->in_zero_point;
    const int32_t from = x * p->stride_w - p->pad_left, count = kernel_w * in_c;
    const int8_t *const *const end = rows + p->kernel_h;
    if (p->dilation_w == 1 && from >= 0 && from + kernel_w <= p->in_w) {
        /* each kernel row lies in one piece */
        for (; rows != end; ++rows) {
            if (*rows != NULL) {
                to = tinyfuse_append_mve(to, *rows + from * in_c, count);
            } else {
                to = tinyfuse_fill(to, zero, count);
            }
        }
        return;
    }
    for (; rows != end; ++rows) {
        to = *rows != NULL ? tinyfuse_window_row(p, *rows, x, to) : tinyfuse_fill(to, zero, count);
    }
}

/* Sets `rows` to the input rows of output row y's window, NULL in the padding. */
TINYFUSE_INLINE void tinyfuse_window_rows_mve(const tinyfuse_conv *p, const int8_t *in, int32_t y, const int8_t **rows)
{
    int32_t ky;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        rows[ky] = iy >= 0 && iy < p->in_h ? tinyfuse_ring_row(in, iy, p->in_ring, p->in_w * p->in_c) : NULL;
    }
}

TINYFUSE_INLINE void tinyfuse_conv_2x4_mve_row_in_form(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                       int8_t *out_row, const int8_t *weights,
                                                       const int32_t *channels, void *scratch, int form)
{
    const int32_t depth = p->kernel_h * p->kernel_w * p->in_c;
    const tinyfuse_matmul_2x4_mve m = {depth, p->out_c, p->out_zero_point, p->act_min, p->act_max};
    const int8_t **const rows =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int8_t *const windows = (int8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES;
    tinyfuse_mve_job job;
    int32_t x;
    tinyfuse_window_rows_mve(p, in, y, rows);
    tinyfuse_mve_start(&job, &m, weights, channels, form);
    for (x = 0; x + 1 < p->out_w; x += 2) {
        tinyfuse_window_mve(p, rows, x, windows);
        tinyfuse_window_mve(p, rows, x + 1, windows + depth);
        tinyfuse_mve_pixels(&job, &m, windows, 2, out_row, form);
        out_row += 2 * p->out_c;
    }
    if (x < p->out_w) {
        tinyfuse_window_mve(p, rows, x, windows);
        tinyfuse_mve_pixels(&job, &m, windows, 1, out_row, form);
    }
}
TINYFUSE_MVE_BY_FORM(tinyfuse_conv_2x4_mve_row, tinyfuse_conv_2x4_mve_row_in_form,
                     (const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row, const int8_t *weights,
                      const int32_t *channels, void *scratch),
                     p, in, y, out_row, weights, channels, scratch)
TINYFUSE_IN_FORM(tinyfuse_conv_2x4_mve_row_int4, TINYFUSE_MVE_INT4, tinyfuse_conv_2x4_mve_row_in_form,
                 (const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row, const int8_t *weights,
                  const int32_t *channels, void *scratch),
                 p, in, y, out_row, weights, channels, scratch)

/* Computes output row y. Reads only the input rows of y's own window, writes only the out_w * out_c bytes of out_row.
   `form` is a constant of tinyfuse_matmul_2x4_mve.h. scratch, aligned to 4: kernel_h pointers of 4 bytes, then 2 *
   kernel_h * kernel_w * in_c bytes. */
TINYFUSE_INLINE void tinyfuse_conv_2x4_mve_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                  int8_t *out_row, const int8_t *weights, const int32_t *channels,
                                                  void *scratch, int form)
{
    TINYFUSE_MVE_OF(form, tinyfuse_conv_2x4_mve_row)(p, in, y, out_row, weights, channels, scratch);
}

/* Computes the same from weights of int4. */
TINYFUSE_INLINE void tinyfuse_conv_mve_row_s4(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                              const int8_t *weights, const int32_t *channels, void *scratch)
{
    tinyfuse_conv_2x4_mve_row_int4(p, in, y, out_row, weights, channels, scratch);
}

#endif
