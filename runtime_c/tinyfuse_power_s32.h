/* POW of int32. Goes forward, element by element: the output may be the input or lie below it. */
#ifndef TINYFUSE_POWER_S32_H
#define TINYFUSE_POWER_S32_H

#include "tinyfuse_broadcast.h"

/* INT32_MIN if the result doesn't fit int32, 0 if y is negative. */
TINYFUSE_SHARED int32_t tinyfuse_power_s32(int32_t x, int32_t y)
{
    int64_t power = 1;
    if (y < 0) {
        return 0;
    }
    if (x >= -1 && x <= 1) {
        return y == 0 || (x == -1 && y % 2 == 0) ? 1 : x;
    }
    for (; y > 0; --y) {
        power *= x;
        if (power < INT32_MIN || power > INT32_MAX) {
            return INT32_MIN;
        }
    }
    return (int32_t)power;
}

TINYFUSE_DEFINE_PLAIN_BINARY(pow, s32, int32_t, int32_t, tinyfuse_power_s32(x, y))

#endif
