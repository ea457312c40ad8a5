/* Offsets of an SVDF whose feature weights are computed at run time. */
#ifndef TINYFUSE_SVDF_OFFSETS_H
#define TINYFUSE_SVDF_OFFSETS_H

#include "tinyfuse_common.h"

/* Fills `offsets` int32_t [filters]: minus the zero point times the sum of each filter's `inputs` weights. */
TINYFUSE_INLINE void tinyfuse_svdf_offsets(const int8_t *features, int32_t filters, int32_t inputs, int32_t zero_point,
                                           void *offsets)
{
    int32_t *to = (int32_t *)offsets;
    int32_t f, i;
    for (f = 0; f < filters; ++f) {
        int64_t sum = 0;
        for (i = 0; i < inputs; ++i) {
            sum += *features++;
        }
        *to++ = (int32_t)(uint32_t)-(zero_point * sum); /* wraps around as the sums do */
    }
}

#endif
