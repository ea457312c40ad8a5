/* DYNAMIC_UPDATE_SLICE and UPDATE_STATE: replaces a part of a tensor or state at an offset that is known at run
   time. */
#ifndef TINYFUSE_UPDATE_SLICE_H
#define TINYFUSE_UPDATE_SLICE_H

#include "tinyfuse_common.h"

/* Layout of an update in a tensor of `bytes` bytes. For each of the `starts` dimensions that the update doesn't
   fill: index `at` of its start, greatest index `last` at which the update may begin, bytes `step` between two
   indexes. For each of `loops` loops over contiguous runs of `run` bytes, innermost first: iterations, and bytes
   from one to the next. `wide`: the starts are int64, else int32. */
typedef struct {
    int32_t bytes, wide, starts, loops, run;
    int32_t at[6], last[6], step[6];
    int32_t count[5], stride[5];
} tinyfuse_updating;

/* Byte offset of the update; every start is clamped to its range. */
TINYFUSE_INLINE int32_t tinyfuse_update_offset(const tinyfuse_updating *p, const void *starts)
{
    int32_t i, offset = 0;
    for (i = 0; i < p->starts; ++i) {
        int64_t start;
        if (p->wide != 0) {
            memcpy(&start, (const uint8_t *)starts + 8 * p->at[i], 8); /* memcpy: only aligned to words */
        } else {
            start = ((const int32_t *)starts)[p->at[i]];
        }
        start = start < 0 ? 0 : start > p->last[i] ? p->last[i] : start;
        offset += (int32_t)start * p->step[i];
    }
    return offset;
}

/* Copies the update run by run into the part that begins at `to`. */
TINYFUSE_SHARED void tinyfuse_update_part(const tinyfuse_updating *p, const uint8_t *update, uint8_t *to)
{
    int32_t done[5] = {0, 0, 0, 0, 0};
    int32_t d;
    do {
        memcpy(to, update, (size_t)p->run);
        update += p->run;
        for (d = 0; d < p->loops; ++d) {
            to += p->stride[d];
            if (++done[d] < p->count[d]) {
                break;
            }
            to -= p->count[d] * p->stride[d];
            done[d] = 0;
        }
    } while (d < p->loops);
}

/* Copies the update to its offset in `out`; they must not overlap. */
TINYFUSE_INLINE void tinyfuse_update_state(const tinyfuse_updating *p, const void *update, const void *starts,
                                           void *out)
{
    uint8_t *const to = (uint8_t *)out + tinyfuse_update_offset(p, starts);
    if (p->loops == 0) {
        memcpy(to, update, (size_t)p->run);
    } else {
        tinyfuse_update_part(p, (const uint8_t *)update, to);
    }
}

/* `out` may be `in` or overlap it. */
TINYFUSE_INLINE void tinyfuse_update_slice(const tinyfuse_updating *p, const void *in, const void *update,
                                           const void *starts, void *out)
{
    if (in != out) {
        memmove(out, in, (size_t)p->bytes);
    }
    tinyfuse_update_state(p, update, starts, out);
}

#endif
