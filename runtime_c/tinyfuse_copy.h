/* Copies a tensor that only changes its shape. */
#ifndef TINYFUSE_COPY_H
#define TINYFUSE_COPY_H

#include "tinyfuse_common.h"

/* `out` may be `in` or overlap it. */
TINYFUSE_INLINE void tinyfuse_copy(const void *in, void *out, int32_t bytes)
{
    if (in != out) {
        memmove(out, in, (size_t)bytes);
    }
}

#endif
