/* SCATTER_ND: adds up slices in a tensor of zeros, each at a position of several indexes. */
#ifndef TINYFUSE_SCATTER_ND_H
#define TINYFUSE_SCATTER_ND_H

#include "tinyfuse_common.h"

/* `count` positions of `depth` indexes. In each dimension indexes are below `dim` and `step` elements apart. A
   slice has `slice` elements, the output `bytes` bytes. */
typedef struct {
    int32_t count, depth, slice, bytes;
    int32_t dim[5], step[5];
} tinyfuse_scattering;

/* The first element of a position; negative if it is outside. */
TINYFUSE_INLINE int32_t tinyfuse_scatter_start(const tinyfuse_scattering *p, const int32_t *index)
{
    int32_t d, start = 0;
    for (d = 0; d < p->depth; ++d) {
        if (index[d] < 0 || index[d] >= p->dim[d]) {
            return -1;
        }
        start += index[d] * p->step[d];
    }
    return start;
}

/* tinyfuse_scatter_nd_NAME returns 0, or 1 if a position is outside the output, which is then incomplete. Elements
   are accessed by memcpy because they may only be aligned to words. */
#define TINYFUSE_SCATTER_ND(name, type, sum)                                                                  \
    TINYFUSE_INLINE int tinyfuse_scatter_nd_##name(const tinyfuse_scattering *p, const int32_t *indexes,      \
                                                   const void *updates, void *out)                            \
    {                                                                                                         \
        const uint8_t *from = (const uint8_t *)updates;                                                       \
        int32_t i, e;                                                                                         \
        memset(out, 0, (size_t)p->bytes);                                                                     \
        for (i = 0; i < p->count; ++i) {                                                                      \
            const int32_t start = tinyfuse_scatter_start(p, indexes + i * p->depth);                          \
            uint8_t *to;                                                                                      \
            if (start < 0) {                                                                                  \
                return 1;                                                                                     \
            }                                                                                                 \
            to = (uint8_t *)out + start * (int32_t)sizeof(type);                                              \
            for (e = 0; e < p->slice; ++e) {                                                                  \
                type a, b;                                                                                    \
                memcpy(&a, to, sizeof a);                                                                     \
                memcpy(&b, from, sizeof b);                                                                   \
                a = (type)(sum);                                                                              \
                memcpy(to, &a, sizeof a);                                                                     \
                to += sizeof a;                                                                               \
                from += sizeof b;                                                                             \
            }                                                                                                 \
        }                                                                                                     \
        return 0;                                                                                             \
    }

TINYFUSE_SCATTER_ND(bool, uint8_t, a | b)
TINYFUSE_SCATTER_ND(s8, uint8_t, a + b)
TINYFUSE_SCATTER_ND(s32, uint32_t, a + b)
TINYFUSE_SCATTER_ND(s64, uint64_t, a + b)
TINYFUSE_SCATTER_ND(f32, float, a + b)

#endif
