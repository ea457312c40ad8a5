/* An input that is brought row by row, over several calls. */
#ifndef TINYFUSE_FEED_H
#define TINYFUSE_FEED_H

#include "tinyfuse_common.h"

/* What the arena keeps between the calls of one inference. `mark` has the module's own value from
   begin to finish; `rows` were fed. */
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

/* Row `index` of the caller's `rows`, of `bytes` bytes each. */
TINYFUSE_INLINE void tinyfuse_feed_row(const void *rows, int32_t index, int32_t bytes, void *out)
{
    memcpy(out, (const uint8_t *)rows + (ptrdiff_t)index * bytes, (size_t)bytes);
}

#endif
