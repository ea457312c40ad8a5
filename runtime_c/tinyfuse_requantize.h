/* Fixed-point requantization as TensorFlow Lite Micro rounds it: a saturating rounding doubling high
   multiply, then a rounding shift whose halves go away from zero. The algorithms are gemmlowp's
   (Jacob et al. 2018, "Quantization and Training of Neural Networks for Efficient
   Integer-Arithmetic-Only Inference", section 2.2). This is the general form, exact for all inputs.
*/
#ifndef TINYFUSE_REQUANTIZE_H
#define TINYFUSE_REQUANTIZE_H

#include "tinyfuse_common.h"

/* Requantization of one output channel: real multiplier = multiplier / 2^31 * 2^shift. */
typedef struct {
    int32_t bias;
    int32_t multiplier;
    int32_t shift;
} tinyfuse_requant;

/* floor(a * b / 2^31 + 1/2), saturated: only -2^31 * -2^31 does not fit. */
TINYFUSE_INLINE int32_t tinyfuse_high_multiply(int32_t a, int32_t b)
{
    const int64_t rounded = ((int64_t)a * b + ((int64_t)1 << 30)) >> 31;
    return rounded > INT32_MAX ? INT32_MAX : (int32_t)rounded;
}

/* value / 2^exponent, halves away from zero; exponent in 0..31. */
TINYFUSE_INLINE int32_t tinyfuse_divide_by_power(int32_t value, int32_t exponent)
{
    const int32_t mask = (int32_t)(((uint32_t)1 << exponent) - 1u);
    const int32_t remainder = value & mask;
    const int32_t threshold = (mask >> 1) + (value < 0 ? 1 : 0);
    return (value >> exponent) + (remainder > threshold ? 1 : 0);
}

/* value * multiplier / 2^31 * 2^shift with two roundings; shift in -31..30, positive to the left.
   A left shift wraps at 32 bits. */
TINYFUSE_INLINE int32_t tinyfuse_requantize(int32_t value, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t right = shift > 0 ? 0 : -shift;
    const int32_t shifted = (int32_t)((uint32_t)value << left);
    return tinyfuse_divide_by_power(tinyfuse_high_multiply(shifted, multiplier), right);
}

TINYFUSE_INLINE int32_t tinyfuse_clamp(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : (value > high ? high : value);
}

#endif
