/* RESIZE_BILINEAR of floats: every pixel from two rows and two columns. */
#ifndef TINYFUSE_BILINEAR_F32_H
#define TINYFUSE_BILINEAR_F32_H

#include "tinyfuse_float.h"

/* Position of an output row (column): `fraction` after input row `lower`, before row `upper`. */
typedef struct {
    uint16_t lower, upper;
    float fraction;
} tinyfuse_place_f32;

/* `rows` has out_h entries, `columns` out_w. The input is a ring of in_ring rows (in_h for a whole tensor). */
typedef struct {
    int32_t in_h, in_w, channels, out_h, out_w, in_ring;
    const tinyfuse_place_f32 *rows, *columns;
} tinyfuse_bilinear_f32;

/* Returns sum + value * a * b, rounding after every operation. */
TINYFUSE_INLINE float tinyfuse_add_weighted_f32(float sum, float value, float a, float b)
{
    return tinyfuse_add_product_f32(sum, tinyfuse_product_f32(value, a), b);
}

/* Computes output row `y`. */
TINYFUSE_INLINE void tinyfuse_bilinear_row_f32(const tinyfuse_bilinear_f32 *p, const float *in, int32_t y,
                                               float *out_row)
{
    const int32_t channels = p->channels, row = p->in_w * channels;
    const float *const above = in + p->rows[y].lower % p->in_ring * row;
    const float *const below = in + p->rows[y].upper % p->in_ring * row;
    const float down = p->rows[y].fraction, up = tinyfuse_rounded(1.0f - down);
    int32_t x, c;
    for (x = 0; x < p->out_w; ++x) {
        const int32_t left = p->columns[x].lower * channels, right = p->columns[x].upper * channels;
        const float to_right = p->columns[x].fraction, to_left = tinyfuse_rounded(1.0f - to_right);
        for (c = 0; c < channels; ++c) {
            float sum = tinyfuse_product_f32(tinyfuse_product_f32(above[left + c], up), to_left);
            sum = tinyfuse_add_weighted_f32(sum, below[left + c], down, to_left);
            sum = tinyfuse_add_weighted_f32(sum, above[right + c], up, to_right);
            sum = tinyfuse_add_weighted_f32(sum, below[right + c], down, to_right);
            *out_row++ = tinyfuse_sum_f32(sum, tinyfuse_rounded(0.0f)); /* turns -0.0 into 0 */
        }
    }
}

/* Computes `images` whole images. */
TINYFUSE_INLINE void tinyfuse_bilinear_f32_whole(const tinyfuse_bilinear_f32 *p, int32_t images, const float *in,
                                                 float *out)
{
    int32_t n, y;
    for (n = 0; n < images; ++n) {
        for (y = 0; y < p->out_h; ++y) {
            tinyfuse_bilinear_row_f32(p, in, y, out);
            out += p->out_w * p->channels;
        }
        in += p->in_h * p->in_w * p->channels;
    }
}

#endif
