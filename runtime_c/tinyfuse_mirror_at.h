/* MIRROR_PAD of up to six dimensions with paddings that are computed at run time. */
#ifndef TINYFUSE_MIRROR_AT_H
#define TINYFUSE_MIRROR_AT_H

#include "tinyfuse_common.h"

/* For each dimension, outermost first: sizes of input and output, and bytes between two indexes of the input.
   `item`: bytes of an element. `wide`: paddings are int64, else int32. `border`: 1 if a reflection leaves out the
   border, else 0. */
typedef struct {
    int32_t rank, item, wide, border;
    int32_t in[6], out[6], step[6];
} tinyfuse_mirroring;

/* Padding before dimension `d`; -1 if it is negative or larger than what can be reflected. */
TINYFUSE_INLINE int32_t tinyfuse_mirrored_before(const tinyfuse_mirroring *p, const void *paddings, int32_t d)
{
    int64_t before;
    if (p->wide != 0) {
        memcpy(&before, (const uint8_t *)paddings + 16 * d, 8); /* memcpy: only aligned to words */
    } else {
        before = ((const int32_t *)paddings)[2 * d];
    }
    return before < 0 || before > p->in[d] - p->border ? -1 : (int32_t)before;
}

/* The input index for index `i` of the output; 0 beyond the reflected part. */
TINYFUSE_INLINE int32_t tinyfuse_mirrored(int32_t i, int32_t before, int32_t dim, int32_t border)
{
    const int32_t inside = i - before, last = dim - 1 - border;
    if (inside < 0) {
        return border - 1 - inside;
    }
    if (inside < dim) {
        return inside;
    }
    return tinyfuse_max(last - (inside - dim), 0);
}

/* Returns not 0 if the paddings reach outside the input. `out` overlaps no input. */
TINYFUSE_SHARED int32_t tinyfuse_mirror_pad_at(const tinyfuse_mirroring *p, const void *in, const void *paddings,
                                               void *out)
{
    const int32_t inner = p->rank - 1;
    int32_t before[6], at[6] = {0, 0, 0, 0, 0, 0};
    uint8_t *to = (uint8_t *)out;
    int32_t d, x;
    for (d = 0; d < p->rank; ++d) {
        before[d] = tinyfuse_mirrored_before(p, paddings, d);
        if (before[d] < 0) {
            return 1;
        }
    }
    do {
        const uint8_t *from = (const uint8_t *)in;
        for (d = 0; d < inner; ++d) {
            from += tinyfuse_mirrored(at[d], before[d], p->in[d], p->border) * p->step[d];
        }
        for (x = 0; x < p->out[inner]; ++x) {
            const int32_t i = tinyfuse_mirrored(x, before[inner], p->in[inner], p->border);
            memcpy(to, from + i * p->item, (size_t)p->item);
            to += p->item;
        }
        for (d = inner - 1; d >= 0; --d) {
            if (++at[d] < p->out[d]) {
                break;
            }
            at[d] = 0;
        }
    } while (d >= 0);
    return 0;
}

#endif
