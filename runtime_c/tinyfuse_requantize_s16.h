/* Requantization of sums of int16 data as TensorFlow Lite Micro rounds them: int32 sums as those of int8
   (tinyfuse_requantize.h), int64 sums once, halves upwards, with the upper 16 bits of the multiplier. */
#ifndef TINYFUSE_REQUANTIZE_S16_H
#define TINYFUSE_REQUANTIZE_S16_H

#include "tinyfuse_requantize.h"

/* How a layer sums, and so how it rounds. */
enum tinyfuse_sums { TINYFUSE_SUMS_S32, TINYFUSE_SUMS_S64 };

/* One output channel. TINYFUSE_SUMS_S32: real multiplier = multiplier / 2^31 * 2^shift. TINYFUSE_SUMS_S64:
   multiplier / 2^shift, the multiplier from 0 to 0x7FFF, shift from 8 to 46. */
typedef struct {
    int64_t bias;
    int32_t multiplier;
    int32_t shift;
} tinyfuse_requant_s16;

/* floor(value * multiplier / 2^shift + 1/2), of which 32 bits are kept; the product wraps at 64. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_s64(int64_t value, int32_t multiplier, int32_t shift)
{
    const uint64_t product = (uint64_t)value * (uint64_t)(int64_t)multiplier;
    return (int32_t)((int64_t)(product + ((uint64_t)1 << (shift - 1))) >> shift);
}

/* The scaled sum of a channel, its bias in it: without zero point, and not clamped. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_s16(int64_t sum, const tinyfuse_requant_s16 *channel,
                                                enum tinyfuse_sums sums)
{
    if (sums == TINYFUSE_SUMS_S32) { /* wraps */
        return tinyfuse_requantize((int32_t)(uint32_t)(uint64_t)sum, channel->multiplier, channel->shift);
    }
    return tinyfuse_requantize_s64(sum, channel->multiplier, channel->shift);
}

/* a + b, wrapping: a bias may be any number. */
TINYFUSE_INLINE int64_t tinyfuse_add_s64(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

#endif
