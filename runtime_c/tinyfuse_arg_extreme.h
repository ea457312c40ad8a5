/* ARG_MAX and ARG_MIN: index of the greatest (least) value along a dimension. */
#ifndef TINYFUSE_ARG_EXTREME_H
#define TINYFUSE_ARG_EXTREME_H

#include "tinyfuse_common.h"

/* in [outer][count][inner], out [outer][inner]: the first index of the greatest value, or of the least one if
   `flip` is -1. The exclusive or with -1 reverses the order of the values. */
TINYFUSE_INLINE void tinyfuse_arg_extreme_s8(const int8_t *in, int32_t outer, int32_t count, int32_t inner,
                                             int32_t flip, int32_t *out)
{
    int32_t i, j, k;
    for (i = 0; i < outer; ++i) {
        for (j = 0; j < inner; ++j) {
            const int8_t *from = in + i * count * inner + j;
            int32_t most = *from ^ flip, found = 0;
            for (k = 1; k < count; ++k) {
                from += inner;
                if ((*from ^ flip) > most) {
                    most = *from ^ flip;
                    found = k;
                }
            }
            *out++ = found;
        }
    }
}

#endif
