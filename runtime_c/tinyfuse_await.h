/* A window that fills up step by step, a step that does row by row. */
#ifndef TINYFUSE_AWAIT_H
#define TINYFUSE_AWAIT_H

#include "tinyfuse_common.h"

/* `*left`: steps that are still to come up to the first with a result, that one counted. 0 from that one on, else 1. */
TINYFUSE_INLINE int tinyfuse_await_window(int32_t *left)
{
    if (*left > 0) {
        *left -= 1;
    }
    return *left > 0;
}

/* `*left`: rows that are still to come of a step of `rows`, this one counted. 0 where this was the last one, and the next
   step begins; else 1. */
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
