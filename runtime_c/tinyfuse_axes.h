/* Looks up which of several sets of dimensions an operand with computed axes names. */
#ifndef TINYFUSE_AXES_H
#define TINYFUSE_AXES_H

#include "tinyfuse_common.h"

/* `rank` dimensions (at most 31), number of axes, number of sets, and the dimensions that tell the sets apart, bit
   d for dimension d. */
typedef struct {
    int32_t rank, axes, choices;
    int32_t dimensions;
} tinyfuse_axes;

/* The number of the set that the axes name, or -1 if there is none or an axis is out of range. Negative axes count
   from the rank. */
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
