/* RESIZE_BILINEAR: every pixel from two rows and two columns, with weights in 1024ths. */
#ifndef TINYFUSE_BILINEAR_H
#define TINYFUSE_BILINEAR_H

#include "tinyfuse_common.h"

/* Position of an output row (column): `fraction` / 1024 after input row `lower`, before row `upper`. */
typedef struct {
    uint16_t lower, upper;
    int16_t fraction;
} tinyfuse_place;

/* `rows` has out_h entries, `columns` out_w. The input is a ring of in_ring rows (in_h for a whole tensor). */
typedef struct {
    int32_t in_h, in_w, channels, out_h, out_w, in_ring;
    const tinyfuse_place *rows, *columns;
} tinyfuse_bilinear;

/* Interpolates a pixel of `channels` values. `upper` and `lower` are its neighbours on the left; those on the right
   lie `right` bytes further. The four weights add up to 2^20. Halves are rounded away from zero. */
TINYFUSE_INLINE void tinyfuse_bilinear_pixel_s8(const int8_t *upper, const int8_t *lower, int32_t right,
                                                const int32_t weights[4], int32_t channels, int8_t *out)
{
    const int32_t upper_left = weights[0], upper_right = weights[1], lower_left = weights[2], lower_right = weights[3];
#if TINYFUSE_MVE
    for (; channels > 0; channels -= 4, upper += 4, lower += 4, out += 4) {
        const mve_pred16_t there = vctp32q((uint32_t)channels);
        int32x4_t sum = vmulq_n_s32(vldrbq_z_s32(upper, there), upper_left);
        sum = vmlaq_n_s32(sum, vldrbq_z_s32(upper + right, there), upper_right);
        sum = vmlaq_n_s32(sum, vldrbq_z_s32(lower, there), lower_left);
        sum = vmlaq_n_s32(sum, vldrbq_z_s32(lower + right, there), lower_right);
        vstrbq_p_s32(out, vrshrq_n_s32(vaddq_s32(sum, vshrq_n_s32(sum, 31)), 20), there);
    }
#else
    for (; channels > 0; --channels, ++upper, ++lower) {
        int32_t sum = *upper * upper_left + upper[right] * upper_right;
        sum += *lower * lower_left + lower[right] * lower_right;
        *out++ = (int8_t)((sum + (sum >> 31) + (1 << 19)) >> 20);
    }
#endif
}

/* Computes output row `y`. */
TINYFUSE_SHARED void tinyfuse_bilinear_row_s8(const tinyfuse_bilinear *p, const int8_t *in, int32_t y,
                                              int8_t *out_row)
{
    const int32_t channels = p->channels, row_bytes = p->in_w * channels;
    const int8_t *const above = tinyfuse_ring_row(in, p->rows[y].lower, p->in_ring, row_bytes);
    const int8_t *const below = tinyfuse_ring_row(in, p->rows[y].upper, p->in_ring, row_bytes);
    const int32_t down = p->rows[y].fraction, up = 1024 - down;
    int32_t x;
    for (x = 0; x < p->out_w; ++x, out_row += channels) {
        const int32_t left = p->columns[x].lower * channels, right = p->columns[x].upper * channels - left;
        const int32_t to_right = p->columns[x].fraction, to_left = 1024 - to_right;
        const int32_t weights[4] = {up * to_left, up * to_right, down * to_left, down * to_right};
        tinyfuse_bilinear_pixel_s8(above + left, below + left, right, weights, channels, out_row);
    }
}

/* Computes `images` whole images. */
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
