/* PAD of elements of two or four bytes with a value that is computed at run time. */
#ifndef TINYFUSE_PAD_WIDE_WITH_H
#define TINYFUSE_PAD_WIDE_WITH_H

#include "tinyfuse_pad_wide.h"

/* tinyfuse_pad_wide_whole with the element at `value` instead of the one in `p`. */
TINYFUSE_INLINE void tinyfuse_pad_wide_with(const tinyfuse_pad_wide *p, const void *in, const void *value, void *out)
{
    tinyfuse_pad_wide with = *p;
    uint16_t half;
    if (p->item == 2) {
        memcpy(&half, value, 2);
        with.value = half;
    } else {
        memcpy(&with.value, value, 4);
    }
    tinyfuse_pad_wide_whole(&with, in, out);
}

#endif
