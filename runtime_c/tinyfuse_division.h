/* DIV of int8, FLOOR_DIV and FLOOR_MOD of float32, with TensorFlow Lite Micro's arithmetic. */
#ifndef TINYFUSE_DIVISION_H
#define TINYFUSE_DIVISION_H

#include "tinyfuse_broadcast.h"
#include "tinyfuse_math.h"
#include "tinyfuse_requantize.h"

/* Number of bits after the sign bit that equal it, for values of at most 9 bits. */
TINYFUSE_INLINE int32_t tinyfuse_sign_bits(int32_t value)
{
    const uint32_t size = (uint32_t)(value < 0 ? ~value : value);
#if defined(__GNUC__)
    return size ? __builtin_clz(size) - 1 : 31;
#else
    int32_t bits = 31;
    for (; size >> (31 - bits); --bits) {
    }
    return bits;
#endif
}

/* `reciprocals[size]`: 2^31 / size, shifted to 31 bits, for each magnitude of a divisor. Multiplier and shift (7 to
   23) rescale the quotient of stored values. */
typedef struct {
    const int32_t *reciprocals;
    int32_t a_zero_point, b_zero_point, out_zero_point;
    int32_t multiplier, shift, act_min, act_max;
} tinyfuse_div;

TINYFUSE_INLINE int32_t tinyfuse_div_one(const tinyfuse_div *p, int32_t a, int32_t b)
{
    int32_t x = a - p->a_zero_point, y = b - p->b_zero_point, result = 0;
    if (y < 0) {
        x = -x;
        y = -y;
    }
    if (y != 0) {
        const int32_t headroom = tinyfuse_sign_bits(x);
        const int32_t high = tinyfuse_high_multiply((int32_t)((uint32_t)x << headroom), p->reciprocals[y]);
        result = tinyfuse_divide_by_power(tinyfuse_high_multiply(high, p->multiplier),
                                          headroom + 30 - tinyfuse_sign_bits(y) - p->shift);
    }
    return tinyfuse_clamp(result + p->out_zero_point, p->act_min, p->act_max);
}

/* Divides in double, as the interpreter does. */
TINYFUSE_INLINE float tinyfuse_floor_div_one(float a, float b)
{
    const double quotient = (double)tinyfuse_rounded(a) / (double)tinyfuse_rounded(b);
    double whole;
    if (!(quotient > -4503599627370496.0 && quotient < 4503599627370496.0) || quotient == 0.0) {
        return (float)quotient; /* an integer, infinity or NaN already; zeros keep their sign */
    }
    whole = (double)(int64_t)quotient;
    return (float)(whole > quotient ? whole - 1.0 : whole);
}

/* Splits a magnitude, which must not be 0, into 24 bits, the first of which is 1, and an exponent. */
TINYFUSE_INLINE uint32_t tinyfuse_mantissa(uint32_t size, int32_t *exponent)
{
    *exponent = (int32_t)(size >> 23);
    if (*exponent != 0) {
        return (size & 0x7FFFFFu) | 0x800000u;
    }
    for (*exponent = 1; size < 0x800000u; --*exponent) {
        size <<= 1;
    }
    return size;
}

/* The exact remainder, with the sign of a: long division of the mantissas, bit by bit. */
TINYFUSE_SHARED float tinyfuse_remainder_f32(float a, float b)
{
    const uint32_t sign = tinyfuse_bits_of_f32(a) & TINYFUSE_BITS_OF_SIGN;
    uint32_t x = tinyfuse_bits_of_f32(a) ^ sign, y = tinyfuse_bits_of_f32(b) & ~TINYFUSE_BITS_OF_SIGN;
    int32_t x_exponent, y_exponent;
    if (x >= TINYFUSE_BITS_OF_INFINITY || y > TINYFUSE_BITS_OF_INFINITY || y == 0) {
        return tinyfuse_f32_of_bits(TINYFUSE_BITS_OF_NAN);
    }
    if (x < y) {
        return a;
    }
    x = tinyfuse_mantissa(x, &x_exponent);
    y = tinyfuse_mantissa(y, &y_exponent);
    for (;; --x_exponent, x <<= 1) {
        x -= x >= y ? y : 0;
        if (x_exponent == y_exponent) {
            break;
        }
    }
    for (; x != 0 && x < 0x800000u && x_exponent > 1; --x_exponent) {
        x <<= 1;
    }
    for (; x_exponent < 1; ++x_exponent) {
        x >>= 1; /* a multiple of the smallest number, so exact */
    }
    if (x >= 0x800000u) {
        x += (uint32_t)(x_exponent - 1) << 23;
    }
    return tinyfuse_f32_of_bits(x | sign);
}

TINYFUSE_INLINE float tinyfuse_floor_mod_one(float a, float b)
{
    const float rest = tinyfuse_remainder_f32(a, b);
    const uint32_t bits = tinyfuse_bits_of_f32(rest);
    if ((bits & ~TINYFUSE_BITS_OF_SIGN) != 0 && (bits ^ tinyfuse_bits_of_f32(b)) >> 31) {
        return tinyfuse_sum_f32(rest, b);
    }
    return rest;
}

TINYFUSE_DEFINE_BINARY(div, s8, tinyfuse_div, int8_t, int8_t, tinyfuse_div_one(p, x, y))
TINYFUSE_DEFINE_PLAIN_BINARY(floor_div, f32, float, float, tinyfuse_floor_div_one(x, y))
TINYFUSE_DEFINE_PLAIN_BINARY(floor_mod, f32, float, float, tinyfuse_floor_mod_one(x, y))

#endif
