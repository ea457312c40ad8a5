/* Copies elements by index tables, one for each dimension: reflections, repeated rows and columns. */
#ifndef TINYFUSE_INDEXED_H
#define TINYFUSE_INDEXED_H

#include "tinyfuse_common.h"

/* For each dimension, outermost first: number of output indexes, bytes between two input indexes, and the input
   index for each output index (NULL: the same index). The unit of copying is `run` bytes. */
typedef struct {
    int32_t count[4];
    int32_t step[4];
    const uint16_t *index[4];
    int32_t run;
} tinyfuse_indexed;

/* Byte offset of index `i` of dimension `d`. */
TINYFUSE_INLINE int32_t tinyfuse_indexed_offset(const tinyfuse_indexed *p, int32_t d, int32_t i)
{
    return (p->index[d] == NULL ? i : (int32_t)p->index[d][i]) * p->step[d];
}

/* Copies the two inner dimensions to `to`, contiguously; returns its end. */
TINYFUSE_INLINE uint8_t *tinyfuse_indexed_line(const tinyfuse_indexed *p, const uint8_t *from, uint8_t *to)
{
    int32_t x, c;
    for (x = 0; x < p->count[2]; ++x) {
        const uint8_t *const pixel = from + tinyfuse_indexed_offset(p, 2, x);
        for (c = 0; c < p->count[3]; ++c) {
            memcpy(to, pixel + tinyfuse_indexed_offset(p, 3, c), (size_t)p->run);
            to += p->run;
        }
    }
    return to;
}

/* Computes the whole output. */
TINYFUSE_INLINE void tinyfuse_indexed_copy(const tinyfuse_indexed *p, const void *in, void *out)
{
    uint8_t *to = (uint8_t *)out;
    int32_t n, y;
    for (n = 0; n < p->count[0]; ++n) {
        const uint8_t *const image = (const uint8_t *)in + tinyfuse_indexed_offset(p, 0, n);
        for (y = 0; y < p->count[1]; ++y) {
            to = tinyfuse_indexed_line(p, image + tinyfuse_indexed_offset(p, 1, y), to);
        }
    }
}

/* Computes output row `y` of an image whose input lies in a ring of `ring` rows. */
TINYFUSE_INLINE void tinyfuse_indexed_row(const tinyfuse_indexed *p, const void *in, int32_t ring,
                                          int32_t y, void *out_row)
{
    const int32_t from = p->index[1] == NULL ? y : (int32_t)p->index[1][y];
    (void)tinyfuse_indexed_line(p, (const uint8_t *)in + (from % ring) * p->step[1], (uint8_t *)out_row);
}

#endif
