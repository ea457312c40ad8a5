/* RESIZE_BILINEAR: every pixel between two rows and two columns, with weights in 1024ths. */
#ifndef TINYFUSE_BILINEAR_H
#define TINYFUSE_BILINEAR_H

#include "tinyfuse_common.h"

/* An output row (column) lies `fraction` / 1024 after input row `lower`, before `upper`. */
typedef struct {
    uint16_t lower, upper;
    int16_t fraction;
} tinyfuse_place;

/* `rows` has out_h places, `columns` out_w. The input is a ring of in_ring rows (in_h for a whole
   tensor). */
typedef struct {
    int32_t in_h, in_w, channels, out_h, out_w, in_ring;
    const tinyfuse_place *rows, *columns;
} tinyfuse_bilinear;

/* Output row `y`. */
TINYFUSE_INLINE void tinyfuse_bilinear_row_s8(const tinyfuse_bilinear *p, const int8_t *in, int32_t y,
                                              int8_t *out_row)
{
    const int32_t channels = p->channels, row_bytes = p->in_w * channels;
    const int8_t *const above = tinyfuse_ring_row(in, p->rows[y].lower, p->in_ring, row_bytes);
    const int8_t *const below = tinyfuse_ring_row(in, p->rows[y].upper, p->in_ring, row_bytes);
    const int32_t down = p->rows[y].fraction, up = 1024 - down;
    int32_t x, c;
    for (x = 0; x < p->out_w; ++x) {
        const int32_t left = p->columns[x].lower * channels, right = p->columns[x].upper * channels;
        const int32_t to_right = p->columns[x].fraction, to_left = 1024 - to_right;
        for (c = 0; c < channels; ++c) {
            const int32_t upper = above[left + c] * to_left + above[right + c] * to_right;
            const int32_t lower = below[left + c] * to_left + below[right + c] * to_right;
            const int32_t sum = upper * up + lower * down;
            const int32_t half = sum > 0 ? 1 << 19 : -(1 << 19);
            *out_row++ = (int8_t)((sum + half) / (1 << 20));
        }
    }
}

/* `images` whole images. */
TINYFUSE_INLINE void tinyfuse_bilinear_s8(const tinyfuse_bilinear *p, int32_t images, const int8_t *in,
                                          int8_t *out)
{
    int32_t n, y;
    for (n = 0; n < images; ++n) {
        for (y = 0; y < p->out_h; ++y) {
            tinyfuse_bilinear_row_s8(p, in, y, out);
            out += p->out_w * p->channels;
        }
        in += p->in_h * p->in_w * p->channels;
    }
}

#endif
