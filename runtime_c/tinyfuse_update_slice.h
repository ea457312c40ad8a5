/* DYNAMIC_UPDATE_SLICE: a part of a tensor replaced, at a place that is known at run time. */
#ifndef TINYFUSE_UPDATE_SLICE_H
#define TINYFUSE_UPDATE_SLICE_H

#include "tinyfuse_common.h"

/* Of a tensor of `bytes` bytes, dimension by dimension, the outermost first, `rank` of them: the greatest index at
   which the update may begin, bytes from one index to the next, and the update's indexes. `wide`: the starts are
   int64, else int32. */
typedef struct {
    int32_t rank, bytes, wide;
    int32_t last[6], step[6], dim[6];
} tinyfuse_updating;

/* Where the update begins, in bytes: every start moved inside where it must be. */
TINYFUSE_INLINE int32_t tinyfuse_update_offset(const tinyfuse_updating *p, const void *starts)
{
    int32_t d, offset = 0;
    for (d = 0; d < p->rank; ++d) {
        int64_t start;
        if (p->wide) {
            memcpy(&start, (const uint8_t *)starts + 8 * d, 8); /* aligned to words, no more */
        } else {
            start = ((const int32_t *)starts)[d];
        }
        start = start < 0 ? 0 : start > p->last[d] ? p->last[d] : start;
        offset += (int32_t)start * p->step[d];
    }
    return offset;
}

/* The update, runs of the innermost dimension one after the other, into the part that begins at `to`. */
TINYFUSE_SHARED void tinyfuse_update_part(const tinyfuse_updating *p, const uint8_t *update, uint8_t *to)
{
    const int32_t inner = p->rank - 1;
    const int32_t run = p->dim[inner] * p->step[inner];
    int32_t at[6] = {0, 0, 0, 0, 0, 0};
    int32_t d;
    do {
        memcpy(to, update, (size_t)run);
        update += run;
        for (d = inner - 1; d >= 0; --d) {
            to += p->step[d];
            if (++at[d] < p->dim[d]) {
                break;
            }
            to -= p->dim[d] * p->step[d];
            at[d] = 0;
        }
    } while (d >= 0);
}

/* `out` may be `in`, or overlap it. */
TINYFUSE_INLINE void tinyfuse_update_slice(const tinyfuse_updating *p, const void *in, const void *update,
                                           const void *starts, void *out)
{
    if (in != out) {
        memmove(out, in, (size_t)p->bytes);
    }
    tinyfuse_update_part(p, (const uint8_t *)update, (uint8_t *)out + tinyfuse_update_offset(p, starts));
}

#endif
