/* PAD of bytes with a value that is computed at run time. */
#ifndef TINYFUSE_PAD_WITH_H
#define TINYFUSE_PAD_WITH_H

#include "tinyfuse_pad.h"

/* tinyfuse_pad_s8 with *`value` instead of the one in `p`. */
TINYFUSE_INLINE void tinyfuse_pad_with_s8(const tinyfuse_pad *p, const int8_t *in, const int8_t *value, int8_t *out)
{
    tinyfuse_pad with = *p;
    with.value = *value;
    tinyfuse_pad_s8(&with, in, out);
}

#endif
