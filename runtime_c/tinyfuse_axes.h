/* Which of some sets of dimensions a run's axes name. */
#ifndef TINYFUSE_AXES_H
#define TINYFUSE_AXES_H

#include "tinyfuse_common.h"

/* Of a tensor of `rank` dimensions, at most 31: how many axes there are, how many sets, and the dimensions that make a
   difference, bit d for dimension d. */
typedef struct {
    int32_t rank, axes, choices;
    int32_t dimensions;
} tinyfuse_axes;

/* The number of the set that the axes name, each from 0 or, where it is negative, from the rank; -1 where there is no
   such set, or no such dimension. */
TINYFUSE_SHARED int32_t tinyfuse_chosen(const tinyfuse_axes *p, const int32_t *axes, const int32_t *choices)
{
    uint32_t named = 0;
    int32_t i;
    for (i = 0; i < p->axes; ++i) {
        const int32_t axis = axes[i] < 0 ? axes[i] + p->rank : axes[i];
        if (axis < 0 || axis >= p->rank) {
            return -1;
        }
        named |= (uint32_t)1 << axis;
    }
    named &= (uint32_t)p->dimensions;
    for (i = 0; i < p->choices; ++i) {
        if ((uint32_t)choices[i] == named) {
            return i;
        }
    }
    return -1;
}

TINYFUSE_INLINE int32_t tinyfuse_none_chosen(int32_t chosen)
{
    return chosen < 0;
}

#endif
