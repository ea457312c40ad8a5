/* Sums of a row's pixels for Helium, int8 NHWC. */
#ifndef TINYFUSE_ROW_SUM_MVE_H
#define TINYFUSE_ROW_SUM_MVE_H

#include "tinyfuse_pool.h"

#if TINYFUSE_MVE

/* tinyfuse_row_sum_s8 for a multiple of eight channels. */
TINYFUSE_SHARED void tinyfuse_row_sum_mve_s8(const int8_t *in, const int32_t *previous, int32_t *out,
                                             int32_t width, int32_t channels)
{
    int32_t c, x, stop;
    for (c = 0; c < channels; c += 8) {
        const int8_t *from = in + c;
        int32x4x2_t sum = {{vdupq_n_s32(0), vdupq_n_s32(0)}}; /* sums of the even and of the odd channels */
        if (previous != NULL) {
            sum = vld2q_s32(previous + c);
        }
        for (x = 0; x < width; x = stop) {
            int16x8_t some = vdupq_n_s16(0); /* as many pixels as fit sums of 16 bits */
            stop = tinyfuse_min(width, x + 255);
            for (; x < stop; ++x) {
                some = vaddq_s16(some, vldrbq_s16(from));
                from += channels;
            }
            sum.val[0] = vaddq_s32(sum.val[0], vmovlbq_s16(some));
            sum.val[1] = vaddq_s32(sum.val[1], vmovltq_s16(some));
        }
        vst2q_s32(out + c, sum);
    }
}

#else

TINYFUSE_INLINE void tinyfuse_row_sum_mve_s8(const int8_t *in, const int32_t *previous, int32_t *out,
                                             int32_t width, int32_t channels)
{
    tinyfuse_row_sum_s8(in, previous, out, width, channels);
}

#endif

#endif
