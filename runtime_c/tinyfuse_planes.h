/* Conversion between planar images (one plane per channel) and interleaved pixels, row by row. */
#ifndef TINYFUSE_PLANES_H
#define TINYFUSE_PLANES_H

#include "tinyfuse_common.h"

/* Copies four elements, `from` elements apart at `in`, to places `to` elements apart at `out`. */
#define TINYFUSE_PLANES_FOUR(type, in, from, out, to)                                                                  \
    do {                                                                                                               \
        const type a = (in)[0], b = (in)[from], c = (in)[2 * (from)], d = (in)[3 * (from)];                            \
        (out)[0] = a;                                                                                                  \
        (out)[to] = b;                                                                                                 \
        (out)[2 * (to)] = c;                                                                                           \
        (out)[3 * (to)] = d;                                                                                           \
    } while (0)

/* Functions for elements of `bits` bits: planes_line copies a row of `count` strided elements; planes_to_rows makes
   `count` pixels of `channels` elements at `out` from a row of each plane, planes being `plane` elements apart;
   rows_to_planes does the opposite. */
#define TINYFUSE_PLANES(bits, type)                                                                                    \
    TINYFUSE_INLINE void tinyfuse_planes_line_##bits(const type *in, int32_t from, type *out, int32_t to,              \
                                                     int32_t count)                                                    \
    {                                                                                                                  \
        int32_t i;                                                                                                     \
        for (i = count >> 3; i > 0; --i) {                                                                             \
            TINYFUSE_PLANES_FOUR(type, in, from, out, to);                                                             \
            TINYFUSE_PLANES_FOUR(type, in + 4 * from, from, out + 4 * to, to);                                         \
            in += 8 * from;                                                                                            \
            out += 8 * to;                                                                                             \
        }                                                                                                              \
        for (i = count & 7; i > 0; --i) {                                                                              \
            *out = *in;                                                                                                \
            in += from;                                                                                                \
            out += to;                                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    TINYFUSE_INLINE void tinyfuse_planes_to_rows_##bits(const void *in, int32_t plane, int32_t channels,               \
                                                        int32_t count, void *out)                                      \
    {                                                                                                                  \
        int32_t c;                                                                                                     \
        for (c = 0; c < channels; ++c) {                                                                               \
            tinyfuse_planes_line_##bits((const type *)in + c * plane, 1, (type *)out + c, channels, count);            \
        }                                                                                                              \
    }                                                                                                                  \
    TINYFUSE_INLINE void tinyfuse_rows_to_planes_##bits(const void *in, int32_t plane, int32_t channels,               \
                                                        int32_t count, void *out)                                      \
    {                                                                                                                  \
        int32_t c;                                                                                                     \
        for (c = 0; c < channels; ++c) {                                                                               \
            tinyfuse_planes_line_##bits((const type *)in + c, channels, (type *)out + c * plane, 1, count);            \
        }                                                                                                              \
    }

TINYFUSE_PLANES(8, uint8_t)
TINYFUSE_PLANES(16, uint16_t)
TINYFUSE_PLANES(32, float)

#endif
