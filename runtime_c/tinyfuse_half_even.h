/* Requantization as in onnxruntime: the sum becomes float32, is multiplied by a float32 scale, and the product is
   rounded to the nearest integer, halves to even (MlasRequantizeOutput). An FPU needs three instructions; they are
   assembly, so that no compiler contracts or reorders them. Other cores compute the same with integers, independently
   of any rounding mode.

   A scale is given by its bits: 0, or a positive normal float32. */
#ifndef TINYFUSE_HALF_EVEN_H
#define TINYFUSE_HALF_EVEN_H

#include "tinyfuse_requantize.h"

/* Saturation bound: larger than every stored value less its zero point. */
enum { TINYFUSE_HALF_EVEN_MOST = 1024 };

/* One output channel: its bias with the input zero point folded in, and its scale, negated where channels may use
   single rounding, whose multipliers are positive and whose biases are in 256ths (tinyfuse_requantize.h). In packed
   lanes all biases and scales are for sums in 256ths. Channels that assembly computes together use single rounding if
   each of them can. */
typedef struct {
    int32_t bias;
    int32_t scale;
} tinyfuse_half_even;

/* magnitude * scale with both roundings of float32, saturated; exact for all operands. */
TINYFUSE_SHARED uint32_t tinyfuse_half_even_exactly(uint32_t magnitude, uint32_t scale)
{
    int32_t shift = 150 - (int32_t)(scale >> 23), lost = 0;
    uint64_t product, half, fraction, distance;
    uint32_t whole;
    /* rounds to the 24 bits of float32 */
    while (magnitude >> lost >= (uint32_t)1 << 24) {
        ++lost;
    }
    if (lost > 0) {
        const uint32_t odd = magnitude >> lost & 1u;
        magnitude = (uint32_t)(((uint64_t)magnitude + ((uint32_t)1 << (lost - 1)) - 1u + odd) >> lost);
        shift -= lost;
    }
    product = (uint64_t)magnitude * ((scale & 0x7FFFFFu) | 0x800000u);
    if (scale == 0u || magnitude == 0u || shift > 49) {
        return 0; /* the product is below 2^48 / 2^49 */
    }
    if (shift <= 0 || product >> shift >= TINYFUSE_HALF_EVEN_MOST) {
        return TINYFUSE_HALF_EVEN_MOST;
    }
    whole = (uint32_t)(product >> shift);
    half = (uint64_t)1 << (shift - 1);
    fraction = product - ((uint64_t)whole << shift);
    distance = fraction > half ? fraction - half : half - fraction;
    /* float32 rounds the product's last bits: up to half a unit away from a half, the product becomes that half,
       and then the even integer */
    for (lost = 0; product >> lost >= (uint32_t)1 << 24; ++lost) {
    }
    if (distance <= (((uint64_t)1 << lost) >> 1)) {
        return whole + (whole & 1u);
    }
    return whole + (fraction > half ? 1u : 0u);
}

/* tinyfuse_half_even_exactly, with a short path for products whose integer and first 32 fraction bits decide.
   Products that are near a half, large, or have many bits take the long one. */
TINYFUSE_SHARED uint32_t tinyfuse_half_even_wide(uint32_t magnitude, uint32_t scale)
{
    const uint32_t shift = 126u - (scale >> 23); /* for scales below 1, whose significand is a number from 2^24 to
                                                    2^25 after a shift */
    const uint64_t product = (uint64_t)magnitude * (scale << 8 | 0x80000000u);
    if (magnitude >> 24 == 0u && shift < 32u) {
        const uint32_t whole = (uint32_t)(product >> 32) >> shift, fraction = (uint32_t)(product >> shift);
        if (fraction - 0x7FFC0000u > 0x80000u && whole < TINYFUSE_HALF_EVEN_MOST) {
            return whole + (fraction >> 31);
        }
    }
    return tinyfuse_half_even_exactly(magnitude, scale);
}

/* magnitude * scale with both roundings, like tinyfuse_half_even_exactly, with another short path: for magnitudes below
   2^20 and scales from 2^-20 to 2^-3, 32-bit products give the product rounded down by less than 2^-15. */
TINYFUSE_INLINE uint32_t tinyfuse_half_even_magnitude(uint32_t magnitude, uint32_t scale)
{
    const uint32_t shift = 138u - (scale >> 23);
    if (magnitude >> 20 == 0u && shift - 15u <= 16u) {
        const uint32_t high = (scale >> 12 & 0x7FFu) | 0x800u, low = scale & 0xFFFu; /* of the significand */
        const uint32_t product = magnitude * high + (magnitude * low >> 12);
        const uint32_t fraction = product << (32u - shift);
        if (fraction - 0x7FF80000u > 0xC0000u) {
            return (product >> shift) + (fraction >> 31); /* results above TINYFUSE_HALF_EVEN_MOST need not be exact */
        }
    }
    return tinyfuse_half_even_wide(magnitude, scale);
}

/* The integer nearest to float32(value) * scale, with the product rounded to float32, halves to even. Saturated to
   TINYFUSE_HALF_EVEN_MOST or beyond, so that adding a zero point can't overflow. */
TINYFUSE_INLINE int32_t tinyfuse_scale_half_even(int32_t value, int32_t scale)
{
#if TINYFUSE_FPU
    float product, factor;
    int32_t nearest;
    memcpy(&factor, &scale, sizeof factor);
    __asm("vmov %0, %1\n\t"
          "vcvt.f32.s32 %0, %0\n\t"
          "vmul.f32 %0, %0, %2\n\t"
          "vcvtr.s32.f32 %0, %0"
          : "=&t"(product)
          : "r"(value), "t"(factor));
    memcpy(&nearest, &product, sizeof nearest);
    return tinyfuse_clamp(nearest, -TINYFUSE_HALF_EVEN_MOST, TINYFUSE_HALF_EVEN_MOST);
#else
    const uint32_t magnitude = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
    const int32_t nearest = (int32_t)tinyfuse_half_even_magnitude(magnitude, (uint32_t)scale);
    return value < 0 ? -nearest : nearest;
#endif
}

/* Requantizes by a channel's parameters. If `half_even`, a constant, is set, the multiplier holds the bits of a
   scale; else multiplier and shift are for tinyfuse_requantize. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_by(int32_t value, const tinyfuse_requant *channel, int half_even)
{
    return half_even ? tinyfuse_scale_half_even(value, channel->multiplier)
                     : tinyfuse_requantize(value, channel->multiplier, channel->shift);
}

/* The stored output, saturated to int8 but not clamped further. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_half_even(int32_t value, int32_t scale, int32_t out_zero_point)
{
    return tinyfuse_clamp(tinyfuse_scale_half_even(value, scale) + out_zero_point, -128, 127);
}

/* tinyfuse_requantize_half_even for a sum in 256ths whose remainder is 0, and a scale for these. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_half_even_256ths(int32_t value, int32_t scale, int32_t out_zero_point)
{
    return tinyfuse_requantize_half_even(value >> 8, scale + (8 << 23), out_zero_point);
}

/* The stored output of a channel in packed lanes; `rounding` is that of single rounding. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_single_or_half_even(int32_t value, int32_t scale, int32_t rounding)
{
    if (scale >= 0) {
        return tinyfuse_requantize_single_rounding(value, scale, rounding);
    }
    return tinyfuse_requantize_half_even_256ths(value, scale & INT32_MAX, rounding >> TINYFUSE_SINGLE_ROUNDING_SHIFT);
}

/* The stored output of a channel whose sum is not in 256ths, and has no bias yet. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_plain_single_or_half_even(int32_t sum, const tinyfuse_half_even *channel,
                                                                      int32_t rounding)
{
    if (channel->scale >= 0) {
        const int32_t value = (int32_t)(256u * (uint32_t)sum + (uint32_t)channel->bias);
        return tinyfuse_requantize_single_rounding(value, channel->scale, rounding);
    }
    return tinyfuse_requantize_half_even(sum + channel->bias, channel->scale & INT32_MAX,
                                         rounding >> TINYFUSE_SINGLE_ROUNDING_SHIFT);
}

/* How Helium's kernels requantize a layer's channels. */
enum {
    TINYFUSE_VECTORS_BY_SHIFTS, /* two roundings, by each channel's multiplier and shift */
    TINYFUSE_VECTORS_SINGLE_ROUNDING,
    TINYFUSE_VECTORS_HALF_EVEN /* half to even; channels whose shift is 0 have a single rounding */
};

/* The output of a sum without its bias, before the clamp. `channel`: bias, multiplier and shift. Single rounding is of
   sums in 256ths, its biases include the zero point; assembly rounds at 2^-12 of twice the product. */
TINYFUSE_INLINE int32_t tinyfuse_vector_output(uint32_t sum, const int32_t *channel, int32_t zero_point, int rule)
{
    const uint32_t bias = (uint32_t)channel[0];
    if (rule == TINYFUSE_VECTORS_SINGLE_ROUNDING || (rule == TINYFUSE_VECTORS_HALF_EVEN && channel[2] == 0)) {
        return tinyfuse_requantize_single_rounding((int32_t)(256u * sum + bias), channel[1],
                                                   tinyfuse_single_rounding_rounding(0));
    }
    return zero_point + (rule == TINYFUSE_VECTORS_HALF_EVEN
                             ? tinyfuse_scale_half_even((int32_t)(sum + bias), channel[1])
                             : tinyfuse_requantize((int32_t)(sum + bias), channel[1], channel[2]));
}

/* Assembly: recovers the output zero point from a single-rounding `rounding`. */
#define TINYFUSE_ZERO_POINT_OF(rounding) "asr " rounding ", " rounding ", #11\n\t"

/* tinyfuse_scale_half_even, saturated to int32: VCVTN rounds halves to even in every mode. */
#define TINYFUSE_NEAREST4(v, scale)                                                                \
    "vcvt.f32.s32 " v ", " v "\n\t"                                                                \
    "vmul.f32 " v ", " v ", " scale "\n\t"                                                         \
    "vcvtn.s32.f32 " v ", " v "\n\t"

#endif
