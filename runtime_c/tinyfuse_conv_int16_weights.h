/* 2D convolution, int8 NHWC, weights of int16, one output row a call: im2col of two pixels (tinyfuse_conv_packed.h), then
   tinyfuse_int16_weights.h. Any kernel, stride, dilation and padding; one group. */
#ifndef TINYFUSE_CONV_INT16_WEIGHTS_H
#define TINYFUSE_CONV_INT16_WEIGHTS_H

#include "tinyfuse_conv_packed.h"
#include "tinyfuse_int16_weights.h"

TINYFUSE_INLINE void tinyfuse_conv_int16_weights_body(const tinyfuse_conv *p, const tinyfuse_conv *shared,
                                                      const int8_t *in, int32_t y, int8_t *out_row,
                                                      const int32_t *pairs, void *scratch, int form)
{
    const int32_t depth = (p->kernel_h * p->kernel_w * p->in_c + 3) & ~3;
    const int8_t **const rows =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int8_t *const columns = (int8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES;
    int8_t *const bytes = columns + 4 * depth;
    tinyfuse_int16_weights s = tinyfuse_int16_weights_of(p->out_c, p->out_zero_point, pairs, columns, depth, form);
    const int inside = tinyfuse_window_rows(p, in, y, rows);
    int8_t *out = out_row;
    int32_t x, block;
    for (x = 0; x < p->out_w; x += block) {
        block = tinyfuse_min(p->out_w - x, 2);
        tinyfuse_windows(p, shared, rows, inside, x, block, columns, bytes, TINYFUSE_WIDE);
        tinyfuse_int16_weights_begin(&s, block);
        tinyfuse_int16_weights_pixels(&s, out, block, form);
        out += block * p->out_c;
    }
    tinyfuse_clamp_outputs(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
}

#define TINYFUSE_CONV_INT16_WEIGHTS(name, form)                                                    \
    TINYFUSE_IN_FORM(name, form, tinyfuse_conv_int16_weights_body,                                 \
                     (const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row, const int32_t *pairs, \
                      void *scratch),                                                              \
                     p, p, in, y, out_row, pairs, scratch)
TINYFUSE_CONV_INT16_WEIGHTS(tinyfuse_conv_int16_weights_single_rounding, TINYFUSE_PAIRS_SINGLE_ROUNDING)
TINYFUSE_CONV_INT16_WEIGHTS(tinyfuse_conv_int16_weights_beside, TINYFUSE_PAIRS_SINGLE_ROUNDING_BESIDE)
TINYFUSE_CONV_INT16_WEIGHTS(tinyfuse_conv_int16_weights_bounded, TINYFUSE_PAIRS_BOUNDED)
TINYFUSE_CONV_INT16_WEIGHTS(tinyfuse_conv_int16_weights_half_even, TINYFUSE_PAIRS_HALF_EVEN)

/* Computes output row y. Reads only the input rows of y's own window, writes only the out_w * out_c bytes of out_row.
   scratch, aligned to 8: kernel_h pointers of 4 bytes, columns of 2 * depth inputs of 2 bytes, then `depth` bytes
   where in_c is no multiple of 4, with depth = kernel_h * kernel_w * in_c rounded up to a multiple of 4. Layers with
   short rows are compiled as copies of their own (tinyfuse_short_rows). `form`, a constant: see
   tinyfuse_int16_weights.h. */
TINYFUSE_INLINE void tinyfuse_conv_int16_weights_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                        int8_t *out_row, const int32_t *pairs, void *scratch,
                                                        int form)
{
    const tinyfuse_conv own = *p;
    if (tinyfuse_short_rows(p) != 0) {
        tinyfuse_conv_int16_weights_body(&own, p, in, y, out_row, pairs, scratch, form);
    } else {
        TINYFUSE_OF_PAIRS(form, tinyfuse_conv_int16_weights)(p, in, y, out_row, pairs, scratch);
    }
}

#endif
