/* ARG_MAX and ARG_MIN of floats. */
#ifndef TINYFUSE_ARG_EXTREME_F32_H
#define TINYFUSE_ARG_EXTREME_F32_H

#include "tinyfuse_float.h"

/* Like tinyfuse_arg_extreme_s8; `least` selects the least value. NaN is neither greater nor less than anything. */
TINYFUSE_INLINE void tinyfuse_arg_extreme_f32(const float *in, int32_t outer, int32_t count, int32_t inner,
                                              int least, int32_t *out)
{
    int32_t i, j, k;
    for (i = 0; i < outer; ++i) {
        for (j = 0; j < inner; ++j) {
            const float *from = in + i * count * inner + j;
            float most = *from;
            int32_t found = 0;
            for (k = 1; k < count; ++k) {
                float value;
                from += inner;
                value = tinyfuse_rounded(*from);
                if (least ? value < most : value > most) {
                    most = value;
                    found = k;
                }
            }
            *out++ = found;
        }
    }
}

#endif
