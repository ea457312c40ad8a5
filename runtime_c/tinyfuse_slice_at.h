/* A slice of a tensor whose start is computed at run time. */
#ifndef TINYFUSE_SLICE_AT_H
#define TINYFUSE_SLICE_AT_H

#include "tinyfuse_common.h"

/* For each of `rank` dimensions, outermost first: least and greatest index at which the slice may begin, bytes
   between two indexes, and the slice's size. `wide`: the starts are int64, else int32. */
typedef struct {
    int32_t rank, wide;
    int32_t first[5], last[5], step[5], dim[5];
} tinyfuse_slicing;

/* Byte offset of the slice, or -1 if it begins outside. */
TINYFUSE_INLINE int32_t tinyfuse_slice_offset(const tinyfuse_slicing *p, const void *begins)
{
    int32_t d, offset = 0;
    for (d = 0; d < p->rank; ++d) {
        int64_t begin;
        if (p->wide != 0) {
            memcpy(&begin, (const uint8_t *)begins + 8 * d, 8); /* memcpy: only aligned to words */
        } else {
            begin = ((const int32_t *)begins)[d];
        }
        if (begin < p->first[d] || begin > p->last[d]) {
            return -1;
        }
        offset += (int32_t)begin * p->step[d];
    }
    return offset;
}

/* Copies the slice to `out`, contiguously; they must not overlap. Returns not 0 if the slice begins outside. */
TINYFUSE_SHARED int32_t tinyfuse_slice_at(const tinyfuse_slicing *p, const void *in, const void *begins, void *out)
{
    const int32_t inner = p->rank - 1;
    const int32_t run = p->dim[inner] * p->step[inner];
    const int32_t offset = tinyfuse_slice_offset(p, begins);
    const uint8_t *from = (const uint8_t *)in;
    uint8_t *to = (uint8_t *)out;
    int32_t at[5] = {0, 0, 0, 0, 0};
    int32_t d;
    if (offset < 0) {
        return 1;
    }
    from += offset;
    do {
        memcpy(to, from, (size_t)run);
        to += run;
        for (d = inner - 1; d >= 0; --d) {
            from += p->step[d];
            if (++at[d] < p->dim[d]) {
                break;
            }
            from -= p->dim[d] * p->step[d];
            at[d] = 0;
        }
    } while (d >= 0);
    return 0;
}

#endif
