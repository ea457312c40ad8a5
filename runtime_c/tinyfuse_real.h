/* Clamp, minimum and maximum of float32 values as the interpreter computes them. No operation is reordered, omitted or
 * vectorized (Helium flushes numbers below FLT_MIN to zero).
 */
#ifndef TINYFUSE_REAL_H
#define TINYFUSE_REAL_H

#include "tinyfuse_float.h"

/* The greater of both; the first one if they are equal or not comparable (NaN). */
TINYFUSE_INLINE float tinyfuse_greater_f32(float first, float second)
{
    return tinyfuse_rounded(first < second ? second : first);
}

/* The lesser of both; the first one if they are equal or not comparable (NaN). */
TINYFUSE_INLINE float tinyfuse_lesser_f32(float first, float second)
{
    return tinyfuse_rounded(second < first ? second : first);
}

/* Zeros keep their sign at a bound of zero; NaN stays NaN. */
TINYFUSE_INLINE float tinyfuse_clamp_f32(float value, float low, float high)
{
    return tinyfuse_lesser_f32(tinyfuse_greater_f32(value, low), high);
}

#endif
