/* The window of a streaming layer: a ring of rows that is kept from one inference to the next. */
#ifndef TINYFUSE_RING_H
#define TINYFUSE_RING_H

#include "tinyfuse_common.h"

/* Writes `count` rows of `row_bytes` bytes over the oldest rows of a ring of `height` rows. Row 0 of the window is
   the ring's row `*cursor`; the others follow and wrap around. */
TINYFUSE_INLINE void tinyfuse_ring_push(const void *rows, int32_t count, void *ring, int32_t height,
                                        int32_t row_bytes, int32_t *cursor)
{
    const uint8_t *from = (const uint8_t *)rows;
    int32_t i;
    for (i = 0; i < count; ++i) {
        memcpy((uint8_t *)ring + (ptrdiff_t)*cursor * row_bytes, from, (size_t)row_bytes);
        from += row_bytes;
        *cursor = *cursor + 1 == height ? 0 : *cursor + 1;
    }
}

/* Copies `count` rows of a ring, from the window's row `first` on, to `rows`. */
TINYFUSE_INLINE void tinyfuse_ring_rows(const void *ring, int32_t height, int32_t row_bytes, const int32_t *cursor,
                                        int32_t first, int32_t count, void *rows)
{
    const int32_t place = *cursor + first, start = place < height ? place : place - height;
    const int32_t straight = height - start < count ? height - start : count;
    memcpy(rows, (const uint8_t *)ring + (ptrdiff_t)start * row_bytes, (size_t)straight * (size_t)row_bytes);
    memcpy((uint8_t *)rows + (ptrdiff_t)straight * row_bytes, ring, (size_t)(count - straight) * (size_t)row_bytes);
}

/* Copies `count` rows of a ring in parts to `rows`: `left` rows of the first part, then `pushed` rows of each
   further one. `between` rows between two parts are skipped. */
TINYFUSE_INLINE void tinyfuse_ring_rows_apart(const void *ring, int32_t height, int32_t row_bytes,
                                              const int32_t *cursor, int32_t first, int32_t count, int32_t left,
                                              int32_t pushed, int32_t between, void *rows)
{
    uint8_t *to = (uint8_t *)rows;
    while (count > 0) {
        const int32_t here = left < count ? left : count;
        tinyfuse_ring_rows(ring, height, row_bytes, cursor, first, here, to);
        to += (ptrdiff_t)here * row_bytes;
        first += here + between;
        count -= here;
        left = pushed;
    }
}

#endif
