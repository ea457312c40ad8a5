/* Shifts of fixed-point numbers. */
#ifndef TINYFUSE_FIXED_POINT_H
#define TINYFUSE_FIXED_POINT_H

#include "tinyfuse_common.h"

/* Shifts left and saturates. */
TINYFUSE_INLINE int32_t tinyfuse_shift_up(int32_t value, int32_t bits)
{
    const int32_t limit = INT32_MAX >> bits;
    if (value > limit) {
        return INT32_MAX;
    }
    if (value < -limit) {
        return INT32_MIN;
    }
    return (int32_t)((uint32_t)value << bits);
}

TINYFUSE_INLINE int32_t tinyfuse_leading_zeros(uint32_t value)
{
    int32_t count = 0;
#if TINYFUSE_DSP
    __asm("clz %0, %1" : "=r"(count) : "r"(value));
#else
    while (count < 32 && !(value & 0x80000000u)) {
        value <<= 1;
        ++count;
    }
#endif
    return count;
}

#endif
