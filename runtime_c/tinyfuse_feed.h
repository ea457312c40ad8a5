/* An input that arrives row by row, over several calls. */
#ifndef TINYFUSE_FEED_H
#define TINYFUSE_FEED_H

#include "tinyfuse_common.h"

/* State in the arena between the calls of one inference. Between begin and finish `mark` is the check word of
   `rows` (the number of rows fed) and of the other counters; otherwise it is 0. */
typedef struct {
    uint32_t mark;
    uint32_t rows;
} tinyfuse_feed;

TINYFUSE_INLINE tinyfuse_feed tinyfuse_feed_load(const uint8_t *at)
{
    tinyfuse_feed state;
    memcpy(&state, at, sizeof state);
    return state;
}

TINYFUSE_INLINE void tinyfuse_feed_store(uint8_t *at, uint32_t mark, uint32_t rows)
{
    const tinyfuse_feed state = {mark, rows};
    memcpy(at, &state, sizeof state);
}

/* The check word, never 0, of the number of rows fed and of `bytes` bytes of counters. `key` differs between
   modules. Each number is mixed into all bits. */
TINYFUSE_INLINE uint32_t tinyfuse_feed_check(uint32_t key, uint32_t rows, const uint8_t *counters, int32_t bytes)
{
    uint32_t check = key * key + rows;
    int32_t i;
    check ^= check >> 15;
    for (i = 0; i < bytes; ++i) {
        check = check * key + counters[i];
        check ^= check >> 15;
    }
    return check * key | 1u;
}

/* Copies row `index` of the caller's `rows`, `bytes` bytes each. */
TINYFUSE_INLINE void tinyfuse_feed_row(const void *rows, int32_t index, int32_t bytes, void *out)
{
    memcpy(out, (const uint8_t *)rows + (ptrdiff_t)index * bytes, (size_t)bytes);
}

#endif
