/* Rounds float32 to the nearest integer, halves to even, in any rounding mode and without libm. */
#ifndef TINYFUSE_NEAREST_EVEN_H
#define TINYFUSE_NEAREST_EVEN_H

#include "tinyfuse_float.h"
#include "tinyfuse_requantize.h"

/* The integer nearest to `value`. Beyond +-65536, where every stored type here saturates, only the sign is kept.
   NaN counts as minus infinity. */
TINYFUSE_INLINE int32_t tinyfuse_nearest_even(float value)
{
    int32_t whole, odd;
    float rest;
    if (!(value > -65536.0f)) {
        value = -65536.0f;
    }
    if (value > 65536.0f) {
        value = 65536.0f;
    }
    whole = (int32_t)value;
    odd = whole & 1;
    rest = value - (float)whole; /* exact */
    return whole + (rest > 0.5f || (rest == 0.5f && odd) ? 1 : 0) - (rest < -0.5f || (rest == -0.5f && odd) ? 1 : 0);
}

#endif
