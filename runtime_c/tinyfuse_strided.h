/* Elements that only move: slices, splits, transpositions, space-to-depth and depth-to-space. */
#ifndef TINYFUSE_STRIDED_H
#define TINYFUSE_STRIDED_H

#include "tinyfuse_common.h"

/* Pieces of `run` bytes, visited by five loops, outermost first. Steps are in bytes and may be negative or 0. */
typedef struct {
    int32_t dim[5];
    int32_t step[5];
    int32_t run;
} tinyfuse_strided;

/* Copies the pieces of the innermost loop to `to`, contiguously; returns its end. */
TINYFUSE_INLINE uint8_t *tinyfuse_strided_line(const tinyfuse_strided *p, const uint8_t *from,
                                               uint8_t *to)
{
    const int32_t count = p->dim[4], step = p->step[4];
    int32_t i;
    if (p->run == 1) {
        for (i = 0; i < count; ++i) {
            *to++ = *from;
            from += step;
        }
    } else if (p->run == 4) {
        for (i = 0; i < count; ++i) {
            memcpy(to, from, 4);
            to += 4;
            from += step;
        }
    } else {
        for (i = 0; i < count; ++i) {
            memcpy(to, from, (size_t)p->run);
            to += p->run;
            from += step;
        }
    }
    return to;
}

/* `in` is the first piece. `out` gets all pieces in order and must not overlap them. */
TINYFUSE_SHARED void tinyfuse_strided_copy(const tinyfuse_strided *p, const void *in, void *out)
{
    const uint8_t *const first = (const uint8_t *)in;
    uint8_t *to = (uint8_t *)out;
    int32_t i, j, k, l;
    for (i = 0; i < p->dim[0]; ++i) {
        for (j = 0; j < p->dim[1]; ++j) {
            const int32_t outer = i * p->step[0] + j * p->step[1];
            for (k = 0; k < p->dim[2]; ++k) {
                for (l = 0; l < p->dim[3]; ++l) {
                    to = tinyfuse_strided_line(p, first + outer + k * p->step[2] + l * p->step[3], to);
                }
            }
        }
    }
}

#endif
