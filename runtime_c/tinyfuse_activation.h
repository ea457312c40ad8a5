/* RELU, RELU6 and LOGISTIC of int8 tensors: a clamp, or a table of all 256 results. */
#ifndef TINYFUSE_ACTIVATION_H
#define TINYFUSE_ACTIVATION_H

#include "tinyfuse_requantize.h"

/* Both go forward, element by element: the output may be the input, or lie below it. */

TINYFUSE_INLINE void tinyfuse_activation_clamp_s8(const int8_t *in, int8_t *out, int32_t count,
                                                  int32_t low, int32_t high)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        out[i] = (int8_t)tinyfuse_clamp(in[i], low, high);
    }
}

/* `table[v + 128]` is the result of v. */
TINYFUSE_INLINE void tinyfuse_activation_lookup_s8(const int8_t *table, const int8_t *in, int8_t *out,
                                                   int32_t count)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        out[i] = table[in[i] + 128];
    }
}

#endif
