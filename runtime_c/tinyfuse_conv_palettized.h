/* Convolutions with palettized weights (tinyfuse_palette.h) by tinyfuse_matmul.h. Each strip of channels is computed
   for all pixels of the call: 1x1 with stride 1 directly, other convolutions of one group by im2col of up to three
   pixels, once per strip. */
#ifndef TINYFUSE_CONV_PALETTIZED_H
#define TINYFUSE_CONV_PALETTIZED_H

#include "tinyfuse_conv_packed.h"
#include "tinyfuse_palette.h"
#include "tinyfuse_pointwise.h"

/* A strip of channels: its expanded weights, and where a block's outputs go, [pixels][count], before they are copied
   to [out_c]. */
typedef struct {
    tinyfuse_matmul matmul;
    const int8_t *weights;
    int8_t *outputs;
    int32_t first, count, depth;
} tinyfuse_strip;

/* Returns the strip of channels from `first` on, its weights expanded at `weights` in the order of tinyfuse_matmul.h
   and followed by its outputs. `depth` is a multiple of 4. */
TINYFUSE_INLINE tinyfuse_strip tinyfuse_strip_of(const tinyfuse_palettized *w, int32_t first, int32_t out_c,
                                                 int32_t depth, int8_t *weights, int32_t out_zero_point,
                                                 const void *channels, int form)
{
    const int8_t *const own = (const int8_t *)channels + (uintptr_t)first * tinyfuse_channel_bytes(form);
    tinyfuse_strip s;
    int32_t c;
    s.first = first;
    s.count = tinyfuse_min(w->strip, out_c - first);
    s.depth = depth;
    s.weights = weights;
    s.outputs = weights + s.count * depth;
    s.matmul = tinyfuse_matmul_of(s.count, out_zero_point, own, form);
    for (c = 0; c < s.count; ++c) {
        const int odd_last = c == s.count - 1 && (c & 1) == 0;
        int8_t *const to = weights + (c & ~1) * depth + (c & 1) * 4;
        tinyfuse_expand_palette_group(w, first + c, depth, to, odd_last ? 4 : 8);
    }
    return s;
}

/* Computes a strip's channels of a block of `pixels` pixels, whose outputs of all channels lie from `out` on. */
TINYFUSE_INLINE void tinyfuse_strip_pixels(tinyfuse_strip *s, const int8_t *columns, int8_t *out, int32_t out_c,
                                           int32_t pixels, int form)
{
    const int whole = s->count == out_c;
    tinyfuse_matmul_pixels(&s->matmul, s->weights, columns, s->depth, whole ? out : s->outputs, s->count, pixels, form);
    if (whole == 0) {
        const int8_t *from = s->outputs;
        for (; pixels > 0; --pixels) {
            memcpy(out + s->first, from, (size_t)s->count);
            from += s->count;
            out += out_c;
        }
    }
}

TINYFUSE_INLINE void tinyfuse_pointwise_palettized_body(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels,
                                                        int8_t *out, const tinyfuse_palettized *w, const void *channels,
                                                        void *scratch, int form)
{
    const int32_t in_c = p->in_c, out_c = p->out_c, step = tinyfuse_step_bytes(form), pixel = tinyfuse_pixel_bytes(form);
    int8_t *const columns = (int8_t *)scratch;
    int8_t *const weights = columns + p->block * in_c / 4 * step;
    int32_t first, x, i;
    for (first = 0; first < out_c; first += w->strip) {
        tinyfuse_strip s = tinyfuse_strip_of(w, first, out_c, in_c, weights, p->out_zero_point, channels, form);
        for (x = 0; x < pixels;) {
            const int32_t block = tinyfuse_block_pixels(pixels - x, p->block);
            for (i = 0; i < block; ++i) {
                (void)tinyfuse_widen(in + (x + i) * in_c, in_c / 4, columns + pixel * i, step * block, form);
            }
            tinyfuse_strip_pixels(&s, columns, out + x * out_c, out_c, block, form);
            x += block;
        }
    }
    tinyfuse_clamp_outputs(out, pixels * out_c, p->act_min, p->act_max);
}

#define TINYFUSE_POINTWISE_PALETTIZED(name, form)                                                                 \
    TINYFUSE_SHARED void name(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels, int8_t *out,         \
                              const tinyfuse_palettized *w, const void *channels, void *scratch)                  \
    {                                                                                                             \
        tinyfuse_pointwise_palettized_body(p, in, pixels, out, w, channels, scratch, form);                       \
    }
TINYFUSE_POINTWISE_PALETTIZED(tinyfuse_pointwise_palettized_wide, TINYFUSE_WIDE)
TINYFUSE_POINTWISE_PALETTIZED(tinyfuse_pointwise_palettized_lanes, TINYFUSE_LANES)
TINYFUSE_POINTWISE_PALETTIZED(tinyfuse_pointwise_palettized_single_rounding, TINYFUSE_SINGLE_ROUNDING)
TINYFUSE_POINTWISE_PALETTIZED(tinyfuse_pointwise_palettized_bytes, TINYFUSE_BYTES)
TINYFUSE_POINTWISE_PALETTIZED(tinyfuse_pointwise_palettized_bytes_single_rounding, TINYFUSE_BYTES_SINGLE_ROUNDING)

/* Selects the function of a constant form, as TINYFUSE_OF_FORM does; no form has int16 weights. */
#define TINYFUSE_PALETTIZED_OF_FORM(form, name)                          \
    ((form) == TINYFUSE_SINGLE_ROUNDING         ? name##_single_rounding             \
     : (form) == TINYFUSE_LANES           ? name##_lanes                 \
     : (form) == TINYFUSE_BYTES_SINGLE_ROUNDING ? name##_bytes_single_rounding       \
     : (form) == TINYFUSE_BYTES           ? name##_bytes                 \
                                          : name##_wide)

/* Computes what tinyfuse_pointwise_s8 does, from palettized weights. out may overlap pixels that were read already
   only if one strip has all channels. scratch, aligned to 16: columns of block * in_c inputs, strip * in_c weights, 3
   * strip outputs where there are several strips. */
TINYFUSE_INLINE void tinyfuse_pointwise_palettized_s8(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels,
                                                      int8_t *out, const tinyfuse_palettized *w, const void *channels,
                                                      void *scratch, int form)
{
    TINYFUSE_PALETTIZED_OF_FORM(form, tinyfuse_pointwise_palettized)(p, in, pixels, out, w, channels, scratch);
}

/* Computes a strip's channels of the output row whose window has the rows `rows`, to `out`, which has all channels.
   `inside`, `columns` and `bytes` as in tinyfuse_conv_packed.h. */
TINYFUSE_INLINE void tinyfuse_strip_row(tinyfuse_strip *s, const tinyfuse_conv *p, const int8_t *const *rows,
                                        int inside, int8_t *out, int8_t *columns, int8_t *bytes, int32_t block_pixels,
                                        int form)
{
    const int words = (p->in_c & 3) == 0;
    int32_t x;
    for (x = 0; x < p->out_w;) {
        const int32_t block = tinyfuse_block_pixels(p->out_w - x, block_pixels);
        if (tinyfuse_of_bytes(form) != 0) {
            tinyfuse_byte_windows(p, p, rows, x, block, columns, bytes, s->depth, words);
        } else {
            tinyfuse_windows(p, p, rows, inside, x, block, columns, bytes, form);
        }
        tinyfuse_strip_pixels(s, columns, out + x * p->out_c, p->out_c, block, form);
        x += block;
    }
}

TINYFUSE_INLINE void tinyfuse_conv_palettized_body(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                                   int8_t *next, const tinyfuse_palettized *w, const void *channels,
                                                   void *scratch, int32_t block_pixels, int form)
{
    const int32_t depth = (p->kernel_h * p->kernel_w * p->in_c + 3) & ~3, out_c = p->out_c;
    const int32_t made = next == out_row ? 1 : 2;
    const int words = (p->in_c & 3) == 0;
    const int8_t **const rows =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int8_t *const columns = (int8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES;
    int8_t *const bytes = columns + block_pixels * depth / 4 * tinyfuse_step_bytes(form);
    int8_t *const weights = bytes + (words ? 0 : depth);
    int32_t first, row;
    if (!words && tinyfuse_of_bytes(form)) {
        memset(bytes + depth - 4, 0, 4);
    }
    for (first = 0; first < out_c; first += w->strip) {
        tinyfuse_strip s = tinyfuse_strip_of(w, first, out_c, depth, weights, p->out_zero_point, channels, form);
        for (row = 0; row < made; ++row) {
            const int inside = tinyfuse_window_rows(p, in, y + row, rows);
            tinyfuse_strip_row(&s, p, rows, inside, row == 0 ? out_row : next, columns, bytes, block_pixels, form);
        }
    }
    if (p->act_min > -128 || p->act_max < 127) {
        for (row = 0; row < made; ++row) {
            tinyfuse_clamp_row(row == 0 ? out_row : next, p->out_w * out_c, p->act_min, p->act_max);
        }
    }
}

#define TINYFUSE_CONV_PALETTIZED(name, form)                                                                      \
    TINYFUSE_SHARED void name(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row, int8_t *next, \
                              const tinyfuse_palettized *w, const void *channels, void *scratch,                  \
                              int32_t block_pixels)                                                               \
    {                                                                                                             \
        tinyfuse_conv_palettized_body(p, in, y, out_row, next, w, channels, scratch, block_pixels, form);         \
    }
TINYFUSE_CONV_PALETTIZED(tinyfuse_conv_palettized_wide, TINYFUSE_WIDE)
TINYFUSE_CONV_PALETTIZED(tinyfuse_conv_palettized_lanes, TINYFUSE_LANES)
TINYFUSE_CONV_PALETTIZED(tinyfuse_conv_palettized_single_rounding, TINYFUSE_SINGLE_ROUNDING)
TINYFUSE_CONV_PALETTIZED(tinyfuse_conv_palettized_bytes, TINYFUSE_BYTES)
TINYFUSE_CONV_PALETTIZED(tinyfuse_conv_palettized_bytes_single_rounding, TINYFUSE_BYTES_SINGLE_ROUNDING)

/* Computes output rows y and y + 1 to `out_row` and `next` (`out_row` if there is no row y + 1) as
   tinyfuse_conv_packed_row_s8 does; weights are expanded once for both. scratch, aligned to 16: that of
   tinyfuse_conv_packed_row_s8, then strip * depth weights, and 3 * strip outputs where there are several strips. */
TINYFUSE_INLINE void tinyfuse_conv_palettized_rows_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                      int8_t *out_row, int8_t *next, const tinyfuse_palettized *w,
                                                      const void *channels, void *scratch, int32_t block_pixels,
                                                      int form)
{
    TINYFUSE_PALETTIZED_OF_FORM(form, tinyfuse_conv_palettized)(p, in, y, out_row, next, w, channels, scratch, block_pixels);
}

/* Output row y alone. */
TINYFUSE_INLINE void tinyfuse_conv_palettized_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                     int8_t *out_row, const tinyfuse_palettized *w,
                                                     const void *channels, void *scratch, int32_t block_pixels,
                                                     int form)
{
    tinyfuse_conv_palettized_rows_s8(p, in, y, out_row, out_row, w, channels, scratch, block_pixels, form);
}

#endif
