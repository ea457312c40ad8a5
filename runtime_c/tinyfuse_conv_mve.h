/* 2D convolution for Helium, int8 NHWC, one output row a call: the windows of two pixels side by side,
   then tinyfuse_matmul_mve.h. Any kernel, stride, dilation and padding; one group. */
#ifndef TINYFUSE_CONV_MVE_H
#define TINYFUSE_CONV_MVE_H

#include "tinyfuse_conv.h"
#include "tinyfuse_matmul_mve.h"

TINYFUSE_INLINE int8_t *tinyfuse_copy(int8_t *to, const int8_t *from, int32_t count)
{
#if TINYFUSE_MVE
    int8_t *const end = to + count;
    for (; count > 0; count -= 16) {
        const mve_pred16_t valid = vctp8q((uint32_t)count);
        vstrbq_p_s8(to, vldrbq_z_s8(from, valid), valid);
        to += 16;
        from += 16;
    }
    return end;
#else
    memcpy(to, from, (size_t)count);
    return to + count;
#endif
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

/* The window of output pixel (y, x): kernel_h * kernel_w * in_c bytes. */
TINYFUSE_SHARED void tinyfuse_window_mve(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                         int32_t x, int8_t *to)
{
    const int32_t in_c = p->in_c, zero = p->in_zero_point;
    const int32_t from = x * p->stride_w - p->pad_left;
    /* kernel columns in the padding on the left, in the image, in the padding on the right */
    const int32_t left = tinyfuse_clamp(-from, 0, p->kernel_w);
    const int32_t right = tinyfuse_clamp(from + p->kernel_w - p->in_w, 0, p->kernel_w);
    const int32_t middle = p->kernel_w - left - right;
    int32_t ky, kx, iy = y * p->stride_h - p->pad_top;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int8_t *const row =
            iy >= 0 && iy < p->in_h ? tinyfuse_ring_row(in, iy, p->in_ring, p->in_w * in_c) : NULL;
        iy += p->dilation_h;
        if (row == NULL) {
            to = tinyfuse_fill(to, zero, p->kernel_w * in_c);
        } else if (p->dilation_w == 1 && middle > 0) {
            to = tinyfuse_fill(to, zero, left * in_c);
            to = tinyfuse_copy(to, row + (from + left) * in_c, middle * in_c);
            to = tinyfuse_fill(to, zero, right * in_c);
        } else {
            for (kx = 0; kx < p->kernel_w; ++kx) {
                const int32_t ix = from + kx * p->dilation_w;
                if (ix >= 0 && ix < p->in_w) {
                    to = tinyfuse_copy(to, row + ix * in_c, in_c);
                } else {
                    to = tinyfuse_fill(to, zero, in_c);
                }
            }
        }
    }
}

/* Output row y. Reads only the input rows of y's own window, writes only the out_w * out_c bytes of
   out_row. scratch: 2 * kernel_h * kernel_w * in_c bytes. */
TINYFUSE_SHARED void tinyfuse_conv_mve_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                              int8_t *out_row, const int8_t *weights,
                                              const int32_t *channels, void *scratch)
{
    const int32_t depth = p->kernel_h * p->kernel_w * p->in_c;
    const tinyfuse_matmul_mve m = {depth, p->out_c, p->out_zero_point, p->act_min, p->act_max};
    int8_t *const windows = (int8_t *)scratch;
    int32_t x;
    for (x = 0; x + 1 < p->out_w; x += 2) {
        tinyfuse_window_mve(p, in, y, x, windows);
        tinyfuse_window_mve(p, in, y, x + 1, windows + depth);
        tinyfuse_matmul_two(&m, windows, windows + depth, weights, channels, out_row,
                            out_row + p->out_c);
        out_row += 2 * p->out_c;
    }
    if (x < p->out_w) {
        tinyfuse_window_mve(p, in, y, x, windows);
        tinyfuse_matmul_one(&m, windows, weights, channels, out_row);
    }
}

#endif
