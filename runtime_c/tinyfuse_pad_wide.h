/* PAD of up to four dimensions with one value, of elements of two or four bytes. */
#ifndef TINYFUSE_PAD_WIDE_H
#define TINYFUSE_PAD_WIDE_H

#include "tinyfuse_common.h"

/* Sizes of input and output as [N, H, W, C], the padding before each dimension, bytes of an element, and the
   padding value as an unsigned number of that size. */
typedef struct {
    int32_t in[4];
    int32_t out[4];
    int32_t before[4];
    int32_t item;
    uint32_t value;
} tinyfuse_pad_wide;

/* Fills `count` elements with the padding value. */
TINYFUSE_INLINE void tinyfuse_pad_wide_fill(const tinyfuse_pad_wide *p, uint8_t *out, int32_t count)
{
    const uint16_t half = (uint16_t)p->value;
    int32_t i;
    for (i = 0; i < count; ++i) {
        if (p->item == 2) {
            memcpy(out + 2 * i, &half, 2);
        } else {
            memcpy(out + 4 * i, &p->value, 4);
        }
    }
}

/* Writes one output row [W, C] from the input row at the same height; NULL: a row of padding. */
TINYFUSE_INLINE void tinyfuse_pad_wide_line(const tinyfuse_pad_wide *p, const uint8_t *in, uint8_t *out)
{
    const int32_t in_c = p->in[3], out_c = p->out[3];
    int32_t x;
    if (in == NULL || in_c != out_c) {
        tinyfuse_pad_wide_fill(p, out, p->out[2] * out_c);
    }
    if (in == NULL) {
        return;
    }
    if (in_c == out_c) {
        const int32_t left = p->before[2] * out_c, middle = p->in[2] * out_c;
        tinyfuse_pad_wide_fill(p, out, left);
        memcpy(out + left * p->item, in, (size_t)(middle * p->item));
        tinyfuse_pad_wide_fill(p, out + (left + middle) * p->item, p->out[2] * out_c - left - middle);
        return;
    }
    for (x = 0; x < p->in[2]; ++x) {
        const int32_t to = (p->before[2] + x) * out_c + p->before[3];
        memcpy(out + to * p->item, in + x * in_c * p->item, (size_t)(in_c * p->item));
    }
}

/* Computes output row `y` of a tensor [1, H, W, C] whose input lies in a ring of `ring` rows. */
TINYFUSE_INLINE void tinyfuse_pad_wide_row(const tinyfuse_pad_wide *p, const void *in, int32_t ring, int32_t y,
                                           void *out_row)
{
    const int32_t from = y - p->before[1], row_bytes = p->in[2] * p->in[3] * p->item;
    const int inside = from >= 0 && from < p->in[1];
    const uint8_t *const row = inside ? (const uint8_t *)in + (from % ring) * row_bytes : NULL;
    tinyfuse_pad_wide_line(p, row, (uint8_t *)out_row);
}

/* Computes the whole output. */
TINYFUSE_INLINE void tinyfuse_pad_wide_whole(const tinyfuse_pad_wide *p, const void *in, void *out)
{
    const int32_t row_bytes = p->in[2] * p->in[3] * p->item;
    uint8_t *to = (uint8_t *)out;
    int32_t n, y;
    for (n = 0; n < p->out[0]; ++n) {
        const int32_t from_n = n - p->before[0];
        for (y = 0; y < p->out[1]; ++y) {
            const int32_t from_y = y - p->before[1];
            const int inside = from_n >= 0 && from_n < p->in[0] && from_y >= 0 && from_y < p->in[1];
            const uint8_t *const row = (const uint8_t *)in + (from_n * p->in[1] + from_y) * row_bytes;
            tinyfuse_pad_wide_line(p, inside ? row : NULL, to);
            to += p->out[2] * p->out[3] * p->item;
        }
    }
}

#endif
