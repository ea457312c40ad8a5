/* GATHER: slices along a dimension, in the order of the indexes. */
#ifndef TINYFUSE_GATHER_H
#define TINYFUSE_GATHER_H

#include "tinyfuse_common.h"

/* Data [batches][outer][slices] of slices of `bytes` bytes; indexes [batches][indexes]. */
typedef struct {
    int32_t batches, outer, slices, bytes, indexes;
} tinyfuse_gathering;

/* Returns 0, or 1 if an index is outside the data; `out` is then incomplete. */
TINYFUSE_INLINE int tinyfuse_gather(const tinyfuse_gathering *p, const void *data, const int32_t *indexes,
                                    void *out)
{
    const uint8_t *from = (const uint8_t *)data;
    uint8_t *to = (uint8_t *)out;
    int32_t batch, outer, i;
    for (batch = 0; batch < p->batches; ++batch) {
        for (outer = 0; outer < p->outer; ++outer) {
            for (i = 0; i < p->indexes; ++i) {
                if (indexes[i] < 0 || indexes[i] >= p->slices) {
                    return 1;
                }
                memcpy(to, from + indexes[i] * p->bytes, (size_t)p->bytes);
                to += p->bytes;
            }
            from += p->slices * p->bytes;
        }
        indexes += p->indexes;
    }
    return 0;
}

#endif
