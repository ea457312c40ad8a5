/* Sums over a moving window: adds new pixels, subtracts old ones. */
#ifndef TINYFUSE_MOVE_SUM_H
#define TINYFUSE_MOVE_SUM_H

#include "tinyfuse_common.h"

/* Defines a function for pixels of a type: sums[c] = previous[c] + `sign` * (sum of channel c over all pixels of `in`
   [pixels][channels]); `sign` is 1 or -1. `sums` may be `previous`. Channels are processed four at a time. */
#define TINYFUSE_MOVE_SUM(name, type)                                                         \
    TINYFUSE_INLINE void name(const type *in, int32_t pixels, int32_t channels, int32_t sign, \
                              const int32_t *previous, int32_t *sums)                         \
    {                                                                                         \
        const int32_t fours = channels / 4 * 4;                                               \
        int32_t c, x;                                                                         \
        for (c = 0; c < fours; c += 4) {                                                      \
            const type *from = in + c;                                                        \
            int32_t w0 = 0, w1 = 0, w2 = 0, w3 = 0;                                           \
            for (x = 0; x < pixels; ++x) {                                                    \
                w0 += from[0];                                                                \
                w1 += from[1];                                                                \
                w2 += from[2];                                                                \
                w3 += from[3];                                                                \
                from += channels;                                                             \
            }                                                                                 \
            sums[c] = previous[c] + sign * w0;                                                \
            sums[c + 1] = previous[c + 1] + sign * w1;                                        \
            sums[c + 2] = previous[c + 2] + sign * w2;                                        \
            sums[c + 3] = previous[c + 3] + sign * w3;                                        \
        }                                                                                     \
        for (c = fours; c < channels; ++c) {                                                  \
            const type *from = in + c;                                                        \
            int32_t sum = 0;                                                                  \
            for (x = 0; x < pixels; ++x) {                                                    \
                sum += *from;                                                                 \
                from += channels;                                                             \
            }                                                                                 \
            sums[c] = previous[c] + sign * sum;                                               \
        }                                                                                     \
    }
TINYFUSE_MOVE_SUM(tinyfuse_move_sum_s8, int8_t)
TINYFUSE_MOVE_SUM(tinyfuse_move_sum_s16, int16_t)

#endif
