/* Counters of steps without a result: until a window is full, or until all rows of a step have come. */
#ifndef TINYFUSE_AWAIT_H
#define TINYFUSE_AWAIT_H

#include "tinyfuse_common.h"

/* `*left`: steps up to and including the first one with a result. Returns 0 from that step on, else 1. */
TINYFUSE_INLINE int tinyfuse_await_window(int32_t *left)
{
    if (*left > 0) {
        *left -= 1;
    }
    return *left > 0;
}

/* `*left`: rows that a step of `rows` still needs, this one included. Returns 0 if this row completes the step, and
   starts the next one; else 1. */
TINYFUSE_INLINE int tinyfuse_await_rows(int32_t *left, int32_t rows)
{
    if (*left > 1) {
        *left -= 1;
        return 1;
    }
    *left = rows;
    return 0;
}

#endif
