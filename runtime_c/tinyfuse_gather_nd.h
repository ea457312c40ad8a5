/* GATHER_ND: slices of a tensor, each at a position of several indexes. */
#ifndef TINYFUSE_GATHER_ND_H
#define TINYFUSE_GATHER_ND_H

#include "tinyfuse_common.h"

/* `count` positions of `depth` indexes, `step` bytes an index; slices of `bytes` bytes in data of `size` bytes. */
typedef struct {
    int32_t count, depth, bytes, size;
    int32_t step[5];
} tinyfuse_gathering_nd;

/* Returns 0, or 1 if a slice is outside the data; `out` is then incomplete. */
TINYFUSE_INLINE int tinyfuse_gather_nd(const tinyfuse_gathering_nd *p, const void *data, const int32_t *indexes,
                                       void *out)
{
    const uint8_t *const from = (const uint8_t *)data;
    uint8_t *to = (uint8_t *)out;
    int32_t i, d;
    for (i = 0; i < p->count; ++i) {
        int64_t start = 0;
        for (d = 0; d < p->depth; ++d) {
            start += (int64_t)*indexes++ * p->step[d];
        }
        if (start < 0 || start > p->size - p->bytes) {
            return 1;
        }
        memcpy(to, from + start, (size_t)p->bytes);
        to += p->bytes;
    }
    return 0;
}

#endif
