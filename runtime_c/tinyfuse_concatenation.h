/* CONCATENATION: copies the blocks of each input to their places in the output. */
#ifndef TINYFUSE_CONCATENATION_H
#define TINYFUSE_CONCATENATION_H

#include "tinyfuse_common.h"

/* Copies `blocks` blocks of `bytes` bytes from `in`, where they are contiguous, to `out`, where they are `stride`
   bytes apart. */
TINYFUSE_INLINE void tinyfuse_deal_blocks(const void *in, void *out, int32_t blocks, int32_t bytes,
                                          int32_t stride)
{
    const uint8_t *from = (const uint8_t *)in;
    uint8_t *to = (uint8_t *)out;
    int32_t i;
    for (i = 0; i < blocks; ++i) {
        memcpy(to, from, (size_t)bytes);
        from += bytes;
        to += stride;
    }
}

#endif
