/* Channels of every pixel dealt out: [groups][size] becomes [size][groups]. */
#ifndef CHANNEL_SHUFFLE_H
#define CHANNEL_SHUFFLE_H

#include <stdint.h>

static inline void channel_shuffle_s8(const int8_t *in, int8_t *out, int32_t pixels, int32_t groups, int32_t size)
{
    int32_t pixel, group, i;
    for (pixel = 0; pixel < pixels; ++pixel) {
        for (i = 0; i < size; ++i) {
            for (group = 0; group < groups; ++group) {
                *out++ = in[group * size + i];
            }
        }
        in += groups * size;
    }
}

#endif
