/* Functions that are computed in double and rounded to float32 at the end: the same bits on every core, with every
 * compiler.
 *
 * No function of libm is called. Each operation is rounded separately, in the order that tinyfuse/ir/double_math.py
 * uses. NaN and infinity are recognized by their bits, because -ffast-math breaks comparisons. Without an FPU for
 * doubles each operation is a library call.
 */
#ifndef TINYFUSE_DOUBLE_H
#define TINYFUSE_DOUBLE_H

#include "tinyfuse_math.h"

/* Rounds to double, so that no product is contracted with a sum. */
TINYFUSE_INLINE double tinyfuse_rounded_f64(double value)
{
    const volatile double stored = value;
    return stored;
}

TINYFUSE_INLINE double tinyfuse_add_product_f64(double sum, double a, double b)
{
    return tinyfuse_rounded_f64(sum + tinyfuse_rounded_f64(a * b));
}

TINYFUSE_INLINE double tinyfuse_two_to(int32_t exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Evaluates a polynomial by Horner's scheme; coefficients from the highest to the constant one. */
TINYFUSE_SHARED double tinyfuse_polynomial_f64(double x, const double *coefficients, int32_t count)
{
    double total = coefficients[0];
    int32_t i;
    for (i = 1; i < count; ++i) {
        total = tinyfuse_add_product_f64(coefficients[i], total, x);
    }
    return total;
}

#define TINYFUSE_POLYNOMIAL_F64(x, coefficients) \
    tinyfuse_polynomial_f64(x, coefficients, (int32_t)(sizeof coefficients / sizeof coefficients[0]))

/* e^x: 2^k times a polynomial of the rest, which is at most ln(2) / 2. */
TINYFUSE_SHARED double tinyfuse_exp_f64(double x)
{
    /* 1/13!, 1/12!, ... 1/2! */
    static const double factors[] = {
        1.6059043836821613e-10, 2.08767569878681e-09, 2.505210838544172e-08, 2.755731922398589e-07,
        2.7557319223985893e-06, 2.48015873015873e-05, 0.0001984126984126984, 0.001388888888888889,
        0.008333333333333333, 0.041666666666666664, 0.16666666666666666, 0.5,
    };
    double r, total;
    int32_t k, half;
    if (!(x <= 709.8)) {
        return x != x ? x : tinyfuse_two_to(1024) /* infinity */;
    }
    if (x < -745.2) {
        return 0.0;
    }
    k = (int32_t)tinyfuse_add_product_f64(x < 0.0 ? -0.5 : 0.5, x, 1.44269504088896338700);
    r = tinyfuse_rounded_f64(x - tinyfuse_rounded_f64(k * 0.693147180369123816490));
    r = tinyfuse_rounded_f64(r - tinyfuse_rounded_f64(k * 1.90821492927058770002e-10));
    total = TINYFUSE_POLYNOMIAL_F64(r, factors);
    total = tinyfuse_rounded_f64(1.0 + tinyfuse_add_product_f64(r, tinyfuse_rounded_f64(r * r), total));
    half = k / 2;
    return tinyfuse_rounded_f64(tinyfuse_rounded_f64(total * tinyfuse_two_to(half)) * tinyfuse_two_to(k - half));
}

/* The natural logarithm of a normal number above 0: log of a mantissa from sqrt(1/2) to sqrt(2), plus a multiple of
   ln(2). */
TINYFUSE_SHARED double tinyfuse_log_f64(double x)
{
    /* 1/19, 1/17, ... 1/3 */
    static const double odd[] = {
        0.05263157894736842, 0.058823529411764705, 0.06666666666666667, 0.07692307692307693, 0.09090909090909091,
        0.1111111111111111, 0.14285714285714285, 0.2, 0.3333333333333333,
    };
    uint64_t bits;
    double k, f, twice, z;
    memcpy(&bits, &x, sizeof bits);
    bits -= 0x3FE6A09E667F3BCDu; /* sqrt(1/2) */
    k = (double)((int32_t)((bits >> 52) ^ 0x800u) - 0x800);
    bits = (bits & 0xFFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu;
    memcpy(&f, &bits, sizeof f);
    f = tinyfuse_rounded_f64(f - 1.0);
    f = tinyfuse_rounded_f64(f / tinyfuse_rounded_f64(2.0 + f));
    twice = 2.0 * f;
    z = tinyfuse_rounded_f64(f * f);
    z = tinyfuse_rounded_f64(z * TINYFUSE_POLYNOMIAL_F64(z, odd));
    f = tinyfuse_add_product_f64(twice, twice, z);
    f = tinyfuse_rounded_f64(tinyfuse_rounded_f64(k * 1.90821492927058770002e-10) + f);
    return tinyfuse_rounded_f64(tinyfuse_rounded_f64(k * 0.693147180369123816490) + f);
}

/* Kind of a float, from its bits: 0 not an integer, 1 odd, 2 even. */
TINYFUSE_INLINE int32_t tinyfuse_parity_f32(uint32_t bits)
{
    const int32_t exponent = (int32_t)(bits >> 23 & 0xFFu) - 127; /* exponent of the highest of 24 bits */
    uint32_t mantissa = (bits & 0x7FFFFFu) | 0x800000u;
    if (exponent < 0 || exponent > 23) {
        return exponent < 0 ? 0 : 2;
    }
    mantissa <<= exponent; /* bit 23 is the units bit */
    return mantissa & 0x7FFFFFu ? 0 : mantissa & 0x800000u ? 1 : 2;
}

/* x^y, with C99's results for infinities, zeros and NaN. */
TINYFUSE_SHARED float tinyfuse_power(float x, float y)
{
    const uint32_t x_bits = tinyfuse_bits_of_f32(x), y_bits = tinyfuse_bits_of_f32(y);
    const uint32_t size = x_bits & ~TINYFUSE_BITS_OF_SIGN, far = y_bits & ~TINYFUSE_BITS_OF_SIGN;
    const uint32_t one = 0x3F800000u, sign = x_bits & TINYFUSE_BITS_OF_SIGN;
    const int32_t parity = tinyfuse_parity_f32(y_bits);
    uint32_t result;
    if (far == 0 || x_bits == one) {
        return 1.0f;
    }
    if (size > TINYFUSE_BITS_OF_INFINITY || far > TINYFUSE_BITS_OF_INFINITY) {
        return tinyfuse_f32_of_bits(TINYFUSE_BITS_OF_NAN);
    }
    if (size == 0 || size == TINYFUSE_BITS_OF_INFINITY || far == TINYFUSE_BITS_OF_INFINITY) {
        const int grows = (size > one) == (y_bits == far);
        result = size == one ? one : grows ? TINYFUSE_BITS_OF_INFINITY : 0u;
    } else {
        if (sign && !parity) {
            return tinyfuse_f32_of_bits(TINYFUSE_BITS_OF_NAN);
        }
        {
            const double log = tinyfuse_log_f64((double)tinyfuse_f32_of_bits(size));
            const double power = tinyfuse_exp_f64(tinyfuse_rounded_f64((double)y * log));
            result = tinyfuse_bits_of_f32(tinyfuse_rounded((float)power));
        }
    }
    return tinyfuse_f32_of_bits(parity == 1 ? result | sign : result);
}

/* The complementary error function: exp(-x^2) times a polynomial of 1 / (1 + x / 2). */
TINYFUSE_SHARED float tinyfuse_erfc_f32(float x)
{
    static const double factors[] = {
        0.18611825903521728, -0.2578405510382019, -0.09081336400188084, 0.32963817045838534, -0.03678124089281836,
        -0.2990816491238119, 0.11249089566577684, 0.28235142908197997, -0.15796015916786213, -0.37516405418589216,
        0.1893731955283681, 1.3452864435513452, -0.6717940840069534,
    };
    const uint32_t bits = tinyfuse_bits_of_f32(x), size = bits & ~TINYFUSE_BITS_OF_SIGN;
    double z, t, sum;
    if (size > TINYFUSE_BITS_OF_INFINITY) {
        return x;
    }
    z = (double)tinyfuse_f32_of_bits(size < 0x41280000u ? size : 0x41280000u); /* the result is 0 or 2 from 10.5 on */
    t = tinyfuse_rounded_f64(2.0 / tinyfuse_rounded_f64(2.0 + z));
    sum = TINYFUSE_POLYNOMIAL_F64(tinyfuse_rounded_f64(t - 0.5), factors);
    sum = tinyfuse_rounded_f64(sum - tinyfuse_rounded_f64(z * z));
    sum = tinyfuse_rounded_f64(t * tinyfuse_exp_f64(sum));
    return tinyfuse_rounded((float)(bits == size ? sum : tinyfuse_rounded_f64(2.0 - sum)));
}

#endif
