/* PAD of up to four dimensions with one value. */
#ifndef TINYFUSE_PAD_H
#define TINYFUSE_PAD_H

#include "tinyfuse_common.h"

/* Sizes of input and output as [N, H, W, C], and the padding before each dimension. */
typedef struct {
    int32_t in[4];
    int32_t out[4];
    int32_t before[4];
    int32_t value;
} tinyfuse_pad;

TINYFUSE_INLINE void tinyfuse_pad_fill(const tinyfuse_pad *p, int8_t *out, int32_t count)
{
    memset(out, p->value, (size_t)count);
}

/* Writes one output row [W, C] from the input row at the same height; NULL: a row of padding. */
TINYFUSE_INLINE void tinyfuse_pad_line(const tinyfuse_pad *p, const int8_t *in, int8_t *out)
{
    const int32_t in_c = p->in[3], out_c = p->out[3];
    int32_t x;
    if (in == NULL || in_c != out_c) {
        tinyfuse_pad_fill(p, out, p->out[2] * out_c);
    }
    if (in == NULL) {
        return;
    }
    if (in_c == out_c) {
        const int32_t left = p->before[2] * out_c, middle = p->in[2] * out_c;
        tinyfuse_pad_fill(p, out, left);
        memcpy(out + left, in, (size_t)middle);
        tinyfuse_pad_fill(p, out + left + middle, p->out[2] * out_c - left - middle);
        return;
    }
    for (x = 0; x < p->in[2]; ++x) {
        memcpy(out + (p->before[2] + x) * out_c + p->before[3], in + x * in_c, (size_t)in_c);
    }
}

/* Computes output row `y` of a tensor [1, H, W, C] whose input lies in a ring of `ring` rows. */
TINYFUSE_INLINE void tinyfuse_pad_row_s8(const tinyfuse_pad *p, const int8_t *in, int32_t ring,
                                         int32_t y, int8_t *out_row)
{
    const int32_t from = y - p->before[1];
    const int inside = from >= 0 && from < p->in[1];
    const int8_t *row = inside ? tinyfuse_ring_row(in, from, ring, p->in[2] * p->in[3]) : NULL;
    tinyfuse_pad_line(p, row, out_row);
}

/* Computes the whole output. */
TINYFUSE_INLINE void tinyfuse_pad_s8(const tinyfuse_pad *p, const int8_t *in, int8_t *out)
{
    int32_t n, y;
    for (n = 0; n < p->out[0]; ++n) {
        const int32_t from_n = n - p->before[0];
        for (y = 0; y < p->out[1]; ++y) {
            const int32_t from_y = y - p->before[1];
            const int inside = from_n >= 0 && from_n < p->in[0] && from_y >= 0 && from_y < p->in[1];
            const int32_t row = (from_n * p->in[1] + from_y) * p->in[2] * p->in[3];
            tinyfuse_pad_line(p, inside ? in + row : NULL, out);
            out += p->out[2] * p->out[3];
        }
    }
}

#endif
