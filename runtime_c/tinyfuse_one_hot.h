/* ONE_HOT: indexes as vectors with one value at the index and another value elsewhere. */
#ifndef TINYFUSE_ONE_HOT_H
#define TINYFUSE_ONE_HOT_H

#include "tinyfuse_common.h"

/* Indexes [outer][inner] are int64 if `wide`, else int32. The output is [outer][depth][inner] values of `bytes`
   bytes. */
typedef struct {
    int32_t outer, depth, inner, bytes, wide;
} tinyfuse_vectors;

/* Index `i`, or -1 if it is outside the vector. */
TINYFUSE_INLINE int32_t tinyfuse_one_hot_index(const tinyfuse_vectors *p, const void *indexes, int32_t i)
{
    int64_t index;
    if (p->wide != 0) {
        memcpy(&index, (const uint8_t *)indexes + 8 * i, 8); /* memcpy: only aligned to words */
    } else {
        index = ((const int32_t *)indexes)[i];
    }
    return index < 0 || index >= p->depth ? -1 : (int32_t)index;
}

TINYFUSE_INLINE void tinyfuse_one_hot(const tinyfuse_vectors *p, const void *indexes, const void *hot,
                                      const void *cold, void *out)
{
    uint8_t *to = (uint8_t *)out;
    int32_t i, d, j;
    for (i = 0; i < p->outer; ++i) {
        for (d = 0; d < p->depth; ++d) {
            for (j = 0; j < p->inner; ++j) {
                memcpy(to, tinyfuse_one_hot_index(p, indexes, i * p->inner + j) == d ? hot : cold, (size_t)p->bytes);
                to += p->bytes;
            }
        }
    }
}

#endif
