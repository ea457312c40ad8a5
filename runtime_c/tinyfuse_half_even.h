/* Requantization as onnxruntime rounds it: the sum becomes float32, is multiplied by a float32 scale, and the product is
   rounded to the nearest integer, halves to even (MlasRequantizeOutput). On an FPU these are three instructions, in
   assembly: no compiler contracts or reorders them. Elsewhere integers do the same, and never depend on a rounding mode.

   A scale is given by its bits: 0, or a positive normal float32. */
#ifndef TINYFUSE_HALF_EVEN_H
#define TINYFUSE_HALF_EVEN_H

#include "tinyfuse_requantize.h"

/* What results are saturated to: beyond every stored value less its zero point. */
enum { TINYFUSE_HALF_EVEN_MOST = 1024 };

/* One output channel: its bias with the input zero point folded in, and its scale. In lanes both are of sums in 256ths,
   and the scale is negated; a positive one is the multiplier of a step line (tinyfuse_requantize.h), which channels that
   are computed together have if each of them has one. */
typedef struct {
    int32_t bias;
    int32_t scale;
} tinyfuse_half_even;

/* magnitude * scale, rounded twice as float32 is, saturated: for any operands. */
TINYFUSE_SHARED uint32_t tinyfuse_half_even_exactly(uint32_t magnitude, uint32_t scale)
{
    int32_t shift = 150 - (int32_t)(scale >> 23), lost = 0;
    uint64_t product, half, fraction, distance;
    uint32_t whole;
    /* float32 has 24 bits */
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
        return 0; /* below 2^48 / 2^49 */
    }
    if (shift <= 0 || product >> shift >= TINYFUSE_HALF_EVEN_MOST) {
        return TINYFUSE_HALF_EVEN_MOST;
    }
    whole = (uint32_t)(product >> shift);
    half = (uint64_t)1 << (shift - 1);
    fraction = product - ((uint64_t)whole << shift);
    distance = fraction > half ? fraction - half : half - fraction;
    /* the product's last bits, which float32 hasn't, round up to half of a unit away to the half, which is even there */
    for (lost = 0; product >> lost >= (uint32_t)1 << 24; ++lost) {
    }
    if (distance <= (((uint64_t)1 << lost) >> 1)) {
        return whole + (whole & 1u);
    }
    return whole + (fraction > half ? 1u : 0u);
}

/* The same, of a product whose integer and first 32 fraction bits are told by two words; what is near a half, large, or
   has many bits, is left to the function above. */
TINYFUSE_INLINE uint32_t tinyfuse_half_even_magnitude(uint32_t magnitude, uint32_t scale)
{
    const uint32_t shift = 126u - (scale >> 23); /* of scales below 1, whose bits are 2^24 to 2^25 times shifted ones */
    const uint64_t product = (uint64_t)magnitude * (scale << 8 | 0x80000000u);
    if (magnitude >> 24 == 0u && shift < 32u) {
        const uint32_t whole = (uint32_t)(product >> 32) >> shift, fraction = (uint32_t)(product >> shift);
        if (fraction - 0x7FFC0000u > 0x80000u && whole < TINYFUSE_HALF_EVEN_MOST) {
            return whole + (fraction >> 31);
        }
    }
    return tinyfuse_half_even_exactly(magnitude, scale);
}

/* The integer nearest to float32(value) * scale, the product rounded to float32, halves to even; saturated to
   TINYFUSE_HALF_EVEN_MOST or beyond, so that a zero point may be added. */
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

/* value * scale of a channel, by the rule that `half_even`, a constant, says: its multiplier is a scale's bits, or with its
   shift that of tinyfuse_requantize. */
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

/* The same of a sum in 256ths, whose remainder is 0, and a scale of these. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_half_even_256ths(int32_t value, int32_t scale, int32_t out_zero_point)
{
    return tinyfuse_requantize_half_even(value >> 8, scale + (8 << 23), out_zero_point);
}

/* The stored output of a channel in lanes; `rounding` is that of a step line. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_even_or_line(int32_t value, int32_t scale, int32_t rounding)
{
    if (scale >= 0) {
        return tinyfuse_requantize_single_rounding(value, scale, rounding);
    }
    return tinyfuse_requantize_half_even_256ths(value, scale & INT32_MAX, rounding >> TINYFUSE_SINGLE_ROUNDING_SHIFT);
}

/* The zero point of such a rounding, in assembly. */
#define TINYFUSE_ZERO_POINT_OF(rounding) "asr " rounding ", " rounding ", #11\n\t"

/* tinyfuse_scale_half_even, saturated to int32: VCVTN rounds halves to even in every mode. */
#define TINYFUSE_NEAREST4(v, scale)                                                                \
    "vcvt.f32.s32 " v ", " v "\n\t"                                                                \
    "vmul.f32 " v ", " v ", " scale "\n\t"                                                         \
    "vcvtn.s32.f32 " v ", " v "\n\t"

#endif
