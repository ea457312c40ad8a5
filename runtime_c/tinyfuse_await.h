/* A window that fills up step by step. */
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

#endif
