/* A state that is initialized once. */
#ifndef TINYFUSE_COPY_ONCE_H
#define TINYFUSE_COPY_ONCE_H

#include "tinyfuse_common.h"

/* If `*done` is 0, copies `in` to `out` and sets `*done` to 1. */
TINYFUSE_INLINE void tinyfuse_copy_once(const void *in, void *out, int32_t bytes, int8_t *done)
{
    if (*done == 0) {
        memcpy(out, in, (size_t)bytes);
        *done = 1;
    }
}

#endif
