/* Functions of the C library's libm, in float32 only: the same bits on every core, with every compiler.
 *
 * No double is used and no function of libm is called. Each operation is rounded separately (tinyfuse_float.h), in
 * the order that tinyfuse/ir/float_math.py uses. NaN and infinity are recognized by their bits, because -ffast-math
 * breaks comparisons. tests/exact/test_float_math.py measures the distance from the correctly rounded results in
 * units of the last place (ulp).
 *
 * Method: reduction of the argument as in W. J. Cody and W. Waite, Software Manual for the Elementary Functions
 * (1980), and J.-M. Muller, Elementary Functions (3rd edition, 2016), chapters 10 and 11; polynomials fitted by
 * Lawson's algorithm, their coefficients rounded one after the other.
 */
#ifndef TINYFUSE_MATH_H
#define TINYFUSE_MATH_H

#include "tinyfuse_float.h"

#define TINYFUSE_BITS_OF_INFINITY 0x7F800000u
#define TINYFUSE_BITS_OF_NAN 0x7FC00000u
#define TINYFUSE_BITS_OF_SIGN 0x80000000u

TINYFUSE_INLINE uint32_t tinyfuse_bits_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

TINYFUSE_INLINE float tinyfuse_f32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 2^exponent for an exponent from -126 to 127. */
TINYFUSE_INLINE float tinyfuse_power_of_two_f32(int32_t exponent)
{
    return tinyfuse_f32_of_bits((uint32_t)(exponent + 127) << 23);
}

/* value * 2^exponent, rounded once, for a normal value near 1 and an exponent from -252 to 254. */
TINYFUSE_INLINE float tinyfuse_scaled_f32(float value, int32_t exponent)
{
    const int32_t half = exponent >> 1;
    return tinyfuse_product_f32(tinyfuse_product_f32(value, tinyfuse_power_of_two_f32(half)),
                                tinyfuse_power_of_two_f32(exponent - half));
}

/* The square root, rounded once as in IEEE 754: digit by digit, for cores without an FPU. */
TINYFUSE_SHARED float tinyfuse_sqrt_in_integers(float value)
{
    const uint32_t bits = tinyfuse_bits_of_f32(value);
    int32_t exponent = (int32_t)(bits >> 23);
    uint32_t mantissa = bits & 0x7FFFFFu, root = 0, sum = 0, step;
    if ((bits & ~TINYFUSE_BITS_OF_SIGN) == 0 || bits == TINYFUSE_BITS_OF_INFINITY) {
        return value;
    }
    if (bits > TINYFUSE_BITS_OF_INFINITY) {
        return tinyfuse_f32_of_bits(TINYFUSE_BITS_OF_NAN);
    }
    if (exponent == 0) {
        for (exponent = 1; !(mantissa & 0x800000u); --exponent) {
            mantissa <<= 1;
        }
    }
    mantissa = (mantissa | 0x800000u) << (exponent & 1 ? 1 : 2);
    for (step = 0x1000000u; step != 0; step >>= 1) { /* 24 bits of the root, and one more to round by */
        const uint32_t trial = sum + step;
        if (trial <= mantissa) {
            sum = trial + step;
            mantissa -= trial;
            root += step;
        }
        mantissa <<= 1;
    }
    return tinyfuse_f32_of_bits(((uint32_t)(exponent + 125) >> 1 << 23) + ((root + 1u) >> 1));
}

TINYFUSE_INLINE float tinyfuse_sqrt_f32(float value)
{
#if defined(__GNUC__) && defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__SOFTFP__)
    float root;
    __asm__("vsqrt.f32 %0, %1" : "=t"(root) : "t"(value));
    return root;
#elif defined(__GNUC__) && defined(__SSE2__)
    __asm__("sqrtss %0, %0" : "+x"(value));
    return value;
#else
    return tinyfuse_sqrt_in_integers(value);
#endif
}

/* e^x = (high + low) * 2^exponent with high from 0.7 to 1.42. */
typedef struct {
    float high, low;
    int32_t exponent;
} tinyfuse_exponential;

/* (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2; the error, times |r|, is below 2^-31. */
TINYFUSE_INLINE float tinyfuse_exp_polynomial(float r)
{
    float sum = tinyfuse_add_product_f32(1.39335648e-3f, 1.99442657e-4f, r);
    sum = tinyfuse_add_product_f32(8.33320804e-3f, sum, r);
    sum = tinyfuse_add_product_f32(0.0416664816f, sum, r);
    sum = tinyfuse_add_product_f32(0.166666672f, sum, r);
    return tinyfuse_add_product_f32(0.5f, sum, r);
}

/* For |x| < 128. ln(2) is split so that the first product has no error. */
TINYFUSE_INLINE tinyfuse_exponential tinyfuse_exp_parts(float x)
{
    const float count = tinyfuse_product_f32(x, 1.44269502f); /* 1 / ln(2) */
    tinyfuse_exponential parts;
    float multiple, high, low, rest, tail, sum, power;
    parts.exponent = (int32_t)tinyfuse_sum_f32(count, tinyfuse_bits_of_f32(x) >> 31 ? -0.5f : 0.5f);
    multiple = (float)parts.exponent;
    high = tinyfuse_sum_f32(x, -tinyfuse_product_f32(multiple, 0.693145752f));
    low = tinyfuse_product_f32(multiple, 1.42860677e-6f);
    rest = tinyfuse_sum_f32(high, -low);
    tail = tinyfuse_sum_f32(tinyfuse_sum_f32(high, -rest), -low); /* rounding error of the line before */
    power = tinyfuse_product_f32(tinyfuse_product_f32(rest, rest), tinyfuse_exp_polynomial(rest));
    sum = tinyfuse_sum_f32(power, tail);
    parts.high = tinyfuse_sum_f32(1.0f, rest);
    parts.low = tinyfuse_sum_f32(tinyfuse_sum_f32(rest, -tinyfuse_sum_f32(parts.high, -1.0f)), sum);
    return parts;
}

TINYFUSE_SHARED float tinyfuse_exp_f32(float x)
{
    const uint32_t bits = tinyfuse_bits_of_f32(x), size = bits & ~TINYFUSE_BITS_OF_SIGN;
    tinyfuse_exponential parts;
    if (size > TINYFUSE_BITS_OF_INFINITY) {
        return x;
    }
    if (size >= 0x42D00000u) { /* 104 */
        return tinyfuse_f32_of_bits(bits >> 31 ? 0 : TINYFUSE_BITS_OF_INFINITY);
    }
    parts = tinyfuse_exp_parts(x);
    return tinyfuse_scaled_f32(tinyfuse_sum_f32(parts.high, parts.low), parts.exponent);
}

/* e^x - 1 */
TINYFUSE_SHARED float tinyfuse_expm1_f32(float x)
{
    const uint32_t bits = tinyfuse_bits_of_f32(x), size = bits & ~TINYFUSE_BITS_OF_SIGN;
    tinyfuse_exponential parts;
    float scale, high, low, sum, tail;
    if (size > TINYFUSE_BITS_OF_INFINITY || size < 0x33000000u) { /* 2^-25: x is the nearest float */
        return x;
    }
    if (size >= 0x41D80000u) { /* 27 */
        return bits >> 31 ? -1.0f : tinyfuse_exp_f32(x);
    }
    if (size < 0x3EB17218u) { /* ln(2) / 2 */
        return tinyfuse_sum_f32(x, tinyfuse_product_f32(tinyfuse_product_f32(x, x), tinyfuse_exp_polynomial(x)));
    }
    parts = tinyfuse_exp_parts(x);
    scale = tinyfuse_power_of_two_f32(parts.exponent);
    high = tinyfuse_product_f32(parts.high, scale);
    low = tinyfuse_product_f32(parts.low, scale);
    sum = tinyfuse_sum_f32(high, -1.0f);
    tail = bits >> 31 ? tinyfuse_sum_f32(high, -tinyfuse_sum_f32(sum, 1.0f))
                      : tinyfuse_sum_f32(tinyfuse_sum_f32(high, -sum), -1.0f);
    return tinyfuse_sum_f32(sum, tinyfuse_sum_f32(tail, low));
}

/* x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2); with s = f / (2 + f),
   ln(1 + f) = 2 s + s^3 polynomial(s^2) = f - (f^2 / 2 - s (f^2 / 2 + s^2 polynomial(s^2))). */
TINYFUSE_SHARED float tinyfuse_log_f32(float x)
{
    uint32_t bits = tinyfuse_bits_of_f32(x);
    int32_t exponent = 0;
    float f, s, z, sum, half_square, k;
    if ((bits & ~TINYFUSE_BITS_OF_SIGN) == 0) {
        return tinyfuse_f32_of_bits(TINYFUSE_BITS_OF_SIGN | TINYFUSE_BITS_OF_INFINITY);
    }
    if ((bits & ~TINYFUSE_BITS_OF_SIGN) > TINYFUSE_BITS_OF_INFINITY || bits == TINYFUSE_BITS_OF_INFINITY) {
        return x;
    }
    if (bits >> 31 != 0u) {
        return tinyfuse_f32_of_bits(TINYFUSE_BITS_OF_NAN);
    }
    if (bits < 0x800000u) {
        bits = tinyfuse_bits_of_f32(tinyfuse_product_f32(x, 8388608.0f));
        exponent = -23;
    }
    bits -= 0x3F3504F3u; /* sqrt(1/2) */
    exponent += (int32_t)bits >> 23;
    f = tinyfuse_sum_f32(tinyfuse_f32_of_bits((bits & 0x7FFFFFu) + 0x3F3504F3u), -1.0f);
    s = tinyfuse_quotient_f32(f, tinyfuse_sum_f32(2.0f, f));
    z = tinyfuse_product_f32(s, s);
    sum = tinyfuse_add_product_f32(0.284987926f, 0.242788181f, z);
    sum = tinyfuse_add_product_f32(0.400009722f, sum, z);
    sum = tinyfuse_product_f32(tinyfuse_add_product_f32(0.666666627f, sum, z), z);
    half_square = tinyfuse_product_f32(tinyfuse_product_f32(0.5f, f), f);
    k = (float)exponent;
    sum = tinyfuse_product_f32(s, tinyfuse_sum_f32(half_square, sum));
    sum = tinyfuse_sum_f32(sum, tinyfuse_product_f32(k, 1.42860677e-6f));
    sum = tinyfuse_sum_f32(tinyfuse_sum_f32(half_square, -sum), -f);
    return tinyfuse_sum_f32(tinyfuse_product_f32(k, 0.693145752f), -sum);
}

/* An odd polynomial below 1, otherwise 1 - 2 / (e^2x + 1). */
TINYFUSE_SHARED float tinyfuse_tanh_f32(float x)
{
    const uint32_t bits = tinyfuse_bits_of_f32(x), sign = bits & TINYFUSE_BITS_OF_SIGN, size = bits ^ sign;
    float result;
    if (size > TINYFUSE_BITS_OF_INFINITY || size < 0x39800000u) { /* 2^-12: x - x^3 / 3 is exact to half a unit */
        return x;
    }
    if (size < 0x3F800000u) {
        const float z = tinyfuse_product_f32(x, x);
        float sum = tinyfuse_add_product_f32(-8.21203983e-4f, 1.16208641e-4f, z);
        sum = tinyfuse_add_product_f32(3.04812356e-3f, sum, z);
        sum = tinyfuse_add_product_f32(-8.57107434e-3f, sum, z);
        sum = tinyfuse_add_product_f32(0.0217743553f, sum, z);
        sum = tinyfuse_add_product_f32(-0.0539507158f, sum, z);
        sum = tinyfuse_add_product_f32(0.133331746f, sum, z);
        sum = tinyfuse_add_product_f32(-0.333333284f, sum, z);
        return tinyfuse_sum_f32(x, tinyfuse_product_f32(x, tinyfuse_product_f32(z, sum)));
    }
    result = 1.0f;
    if (size < 0x41200000u) { /* 10 */
        const float size_twice = tinyfuse_product_f32(2.0f, tinyfuse_f32_of_bits(size));
        const float sum = tinyfuse_sum_f32(tinyfuse_exp_f32(size_twice), 1.0f);
        result = tinyfuse_sum_f32(1.0f, -tinyfuse_quotient_f32(2.0f, sum));
    }
    return tinyfuse_f32_of_bits(tinyfuse_bits_of_f32(result) | sign);
}

/* An angle reduced by quarter turns: high + low lies between -pi/4 and pi/4; `quarters` is the number of quarter
   turns modulo 4. */
typedef struct {
    float high, low;
    uint32_t quarters;
} tinyfuse_angle;

/* Reduces a finite |x| of at least 2^-1 (M. H. Payne and R. N. Hanek, Radian reduction for trigonometric functions,
   1983): computes x * 2 / pi in integers from only those 96 bits of 2 / pi that affect the result modulo 4
   quarters. */
TINYFUSE_SHARED tinyfuse_angle tinyfuse_reduced_angle(float x)
{
    static const uint32_t two_over_pi[8] = {0,           0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u,
                                            0xF534DDC0u, 0xDB629599u, 0x3C439041u, 0xFE5163ABu};
    const uint32_t bits = tinyfuse_bits_of_f32(x);
    const uint32_t mantissa = (bits & 0x7FFFFFu) | 0x800000u;
    const uint32_t start = ((bits >> 23) & 0xFFu) - 120u; /* the first bit of the window */
    const uint32_t *words = two_over_pi + start / 32;
    const uint32_t shift = start % 32;
    uint32_t window[3], i, negative = bits >> 31, top, zeros = 0;
    uint64_t product;
    tinyfuse_angle angle;
    float scale;
    for (i = 0; i < 3; ++i) {
        window[i] = shift ? (words[i] << shift) | (words[i + 1] >> (32 - shift)) : words[i];
    }
    /* quarter turns modulo 4: 2 bits before the point, 62 after it */
    product = ((uint64_t)(mantissa * window[0]) << 32) + (uint64_t)mantissa * window[1] +
              (((uint64_t)mantissa * window[2]) >> 32);
    angle.quarters = (uint32_t)((product + ((uint64_t)1 << 61)) >> 62);
    product -= (uint64_t)angle.quarters << 62;
    if (product >> 63 != 0u) {
        product = (uint64_t)0 - product;
        negative ^= 1u;
    }
    if (bits >> 31 != 0u) {
        angle.quarters = (0u - angle.quarters) & 3u;
    }
    /* the fraction's 32 leading bits, times pi / 2 */
    while (!(product >> 63)) {
        product <<= 1;
        ++zeros;
    }
    top = (uint32_t)(((product >> 32) * 0xC90FDAA2u) >> 32);
    scale = tinyfuse_power_of_two_f32(-29 - (int32_t)zeros);
    if (negative != 0) {
        scale = -scale;
    }
    angle.high = tinyfuse_product_f32((float)(top & 0xFFFFFF00u), scale);
    angle.low = tinyfuse_product_f32((float)(top & 0xFFu), scale);
    return angle;
}

TINYFUSE_INLINE float tinyfuse_sin_polynomial(float r, float low)
{
    const float z = tinyfuse_product_f32(r, r);
    float sum = tinyfuse_add_product_f32(-1.98534981e-4f, 2.83724762e-6f, z);
    sum = tinyfuse_add_product_f32(8.33338033e-3f, sum, z);
    sum = tinyfuse_add_product_f32(-0.166666672f, sum, z);
    low = tinyfuse_sum_f32(low, -tinyfuse_product_f32(tinyfuse_product_f32(0.5f, z), low));
    return tinyfuse_sum_f32(r, tinyfuse_add_product_f32(low, tinyfuse_product_f32(r, z), sum));
}

TINYFUSE_INLINE float tinyfuse_cos_polynomial(float r, float low)
{
    const float z = tinyfuse_product_f32(r, r);
    const float half = tinyfuse_product_f32(0.5f, z);
    const float most = tinyfuse_sum_f32(1.0f, -half);
    const float rest = tinyfuse_sum_f32(tinyfuse_sum_f32(1.0f, -most), -half); /* rounding error of `most` */
    float sum = tinyfuse_add_product_f32(-1.38873013e-3f, 2.44306611e-5f, z);
    sum = tinyfuse_product_f32(tinyfuse_add_product_f32(0.0416666456f, sum, z), z);
    sum = tinyfuse_sum_f32(tinyfuse_product_f32(sum, z), -tinyfuse_product_f32(r, low));
    return tinyfuse_sum_f32(most, tinyfuse_sum_f32(rest, sum));
}

/* The sine of x plus `quarters` quarter turns. */
TINYFUSE_SHARED float tinyfuse_sine_from(float x, uint32_t quarters)
{
    const uint32_t size = tinyfuse_bits_of_f32(x) & ~TINYFUSE_BITS_OF_SIGN;
    tinyfuse_angle angle;
    float result;
    if (size >= TINYFUSE_BITS_OF_INFINITY) {
        return tinyfuse_f32_of_bits(TINYFUSE_BITS_OF_NAN);
    }
    if (size < 0x39800000u) { /* 2^-12: x - x^3 / 6 and 1 - x^2 / 2 are exact to half a unit */
        return quarters ? 1.0f : x;
    }
    angle.high = x;
    angle.low = 0.0f;
    angle.quarters = 0;
    if (size >= 0x3F490FDBu) { /* pi / 4 */
        angle = tinyfuse_reduced_angle(x);
    }
    quarters += angle.quarters;
    result = quarters & 1u ? tinyfuse_cos_polynomial(angle.high, angle.low)
                           : tinyfuse_sin_polynomial(angle.high, angle.low);
    return tinyfuse_f32_of_bits(tinyfuse_bits_of_f32(result) ^ ((quarters & 2u) << 30));
}

TINYFUSE_INLINE float tinyfuse_sin_f32(float x)
{
    return tinyfuse_sine_from(x, 0);
}

TINYFUSE_INLINE float tinyfuse_cos_f32(float x)
{
    return tinyfuse_sine_from(x, 1);
}

#endif
