/* Images whose channels lie in planes: lines of planes become pixels, and pixels lines. */
#ifndef TINYFUSE_PLANES_H
#define TINYFUSE_PLANES_H

#include "tinyfuse_common.h"

/* Elements of 8, 16 and 32 bits: an element after the other, of which so many lie between two in `in` (`from_step`) and
   in `out` (`to_step`). One of the steps is 1. */
#define TINYFUSE_PLANES_LINE(bits, type)                                                                               \
    TINYFUSE_INLINE void tinyfuse_planes_line_##bits(const type *in, int32_t from_step, type *out, int32_t to_step,    \
                                                     int32_t count)                                                    \
    {                                                                                                                  \
        int32_t i;                                                                                                     \
        for (i = count; i >= 4; i -= 4) {                                                                              \
            const type a = in[0], b = in[from_step], c = in[2 * from_step], d = in[3 * from_step];                     \
            out[0] = a;                                                                                                \
            out[to_step] = b;                                                                                          \
            out[2 * to_step] = c;                                                                                      \
            out[3 * to_step] = d;                                                                                      \
            in += 4 * from_step;                                                                                       \
            out += 4 * to_step;                                                                                        \
        }                                                                                                              \
        for (; i > 0; --i) {                                                                                           \
            *out = *in;                                                                                                \
            in += from_step;                                                                                           \
            out += to_step;                                                                                            \
        }                                                                                                              \
    }

/* `count` pixels of `channels` elements at `out` from as many elements of each plane; `plane`: elements from one plane to
   the next. And the other way round. */
#define TINYFUSE_PLANES_TO_ROWS(bits, type)                                                                            \
    TINYFUSE_INLINE void tinyfuse_planes_to_rows_##bits(const type *in, int32_t plane, int32_t channels,               \
                                                        int32_t count, type *out)                                      \
    {                                                                                                                  \
        int32_t c;                                                                                                     \
        for (c = 0; c < channels; ++c) {                                                                               \
            tinyfuse_planes_line_##bits(in + c * plane, 1, out + c, channels, count);                                  \
        }                                                                                                              \
    }

#define TINYFUSE_ROWS_TO_PLANES(bits, type)                                                                            \
    TINYFUSE_INLINE void tinyfuse_rows_to_planes_##bits(const type *in, int32_t plane, int32_t channels,               \
                                                        int32_t count, type *out)                                      \
    {                                                                                                                  \
        int32_t c;                                                                                                     \
        for (c = 0; c < channels; ++c) {                                                                               \
            tinyfuse_planes_line_##bits(in + c, channels, out + c * plane, 1, count);                                  \
        }                                                                                                              \
    }

TINYFUSE_PLANES_LINE(8, int8_t)
TINYFUSE_PLANES_LINE(16, int16_t)
TINYFUSE_PLANES_LINE(32, float)
TINYFUSE_PLANES_TO_ROWS(8, int8_t)
TINYFUSE_PLANES_TO_ROWS(16, int16_t)
TINYFUSE_PLANES_TO_ROWS(32, float)
TINYFUSE_ROWS_TO_PLANES(8, int8_t)
TINYFUSE_ROWS_TO_PLANES(16, int16_t)
TINYFUSE_ROWS_TO_PLANES(32, float)

#endif
