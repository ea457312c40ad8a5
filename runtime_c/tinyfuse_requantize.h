/* Fixed-point requantization with TensorFlow Lite Micro's rounding: a saturating rounding doubling high multiply, then
   a rounding shift with halves away from zero. The algorithms are gemmlowp's (Jacob et al. 2018, "Quantization and
   Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", section 2.2).

   tinyfuse_requantize is the general form, exact for all inputs. tinyfuse_requantize_bounded is shorter, and exact
   under bounds that the compiler proves for every channel (tinyfuse/kernels/requantize/two_roundings.py).
   tinyfuse_requantize_shifted has wider bounds. tinyfuse_requantize_single_rounding is the shortest, and exact if
   the compiler has compared all its steps with those of the general form
   (tinyfuse/kernels/requantize/single_rounding.py). tinyfuse_requantize_signed_rounding is a single rounding that
   depends on the sign. */
#ifndef TINYFUSE_REQUANTIZE_H
#define TINYFUSE_REQUANTIZE_H

#include "tinyfuse_common.h"

/* Requantization of one output channel. General form: the layer's bias; real multiplier = multiplier / 2^31 *
   2^shift. Bounded form: bias with -zero point * sum of weights folded in; 2 * multiplier - 2^32; right shift less
   one. For sums in 256ths: as in the bounded form, but with the multiplier itself. */
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

/* value / 2^exponent, halves rounded away from zero; exponent in 0..31. */
TINYFUSE_INLINE int32_t tinyfuse_divide_by_power(int32_t value, int32_t exponent)
{
    const int32_t mask = (int32_t)(((uint32_t)1 << exponent) - 1u);
    const int32_t remainder = value & mask;
    const int32_t threshold = (mask >> 1) + (value < 0 ? 1 : 0);
    return (value >> exponent) + (remainder > threshold ? 1 : 0);
}

/* value * multiplier / 2^31 * 2^shift with two roundings; shift in -31..30, positive to the left. A left shift
   wraps around at 32 bits. */
TINYFUSE_INLINE int32_t tinyfuse_requantize(int32_t value, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t right = shift > 0 ? 0 : -shift;
    const int32_t shifted = (int32_t)((uint32_t)value << left);
    return tinyfuse_divide_by_power(tinyfuse_high_multiply(shifted, multiplier), right);
}

/* A real number, (high * 2^32 + low) / 2^(32 + shift), with high below 2^30 and shift in 1..62. The 62 bits of high and
   low hold all bits of a double's significand. */
typedef struct {
    uint32_t high, low;
    int32_t shift;
} tinyfuse_real_scale;

/* The integer nearest to value * scale, halves away from zero, as LiteRT's uint8 FULLY_CONNECTED rounds it; within
   -2^30..2^30. Bits below the product's 32nd bit can't reach the half that is added. */
TINYFUSE_INLINE int32_t tinyfuse_scale_by_real(int32_t value, const tinyfuse_real_scale *scale)
{
    const uint32_t magnitude = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
    const uint64_t product = (uint64_t)magnitude * scale->high + (((uint64_t)magnitude * scale->low) >> 32);
    const uint64_t rounded = (product + ((uint64_t)1 << (scale->shift - 1))) >> scale->shift;
    const int32_t nearest = rounded > ((uint64_t)1 << 30) ? (int32_t)1 << 30 : (int32_t)rounded;
    return value < 0 ? -nearest : nearest;
}

TINYFUSE_INLINE int32_t tinyfuse_clamp(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : (value > high ? high : value);
}

#if TINYFUSE_DSP

TINYFUSE_INLINE int32_t tinyfuse_high_multiply_add(int32_t add, int32_t a, int32_t b)
{
    int32_t result;
    __asm("smmlar %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(add));
    return result;
}

TINYFUSE_INLINE int32_t tinyfuse_halve_to_int8(int32_t value)
{
    int32_t result;
    __asm("ssat %0, #8, %1, asr #1" : "=r"(result) : "r"(value) : "cc");
    return result;
}

#else

/* add + floor(a * b / 2^32 + 1/2) */
TINYFUSE_INLINE int32_t tinyfuse_high_multiply_add(int32_t add, int32_t a, int32_t b)
{
    return (int32_t)(add + (((int64_t)a * b + ((int64_t)1 << 31)) >> 32));
}

/* floor(value / 2), saturated to int8 */
TINYFUSE_INLINE int32_t tinyfuse_halve_to_int8(int32_t value)
{
    return tinyfuse_clamp(value >> 1, -128, 127);
}

#endif

/* The stored output, saturated to int8 but not clamped further, of an accumulator.

   With m the multiplier in 2^31sts, s the right shift and z the output zero point, the two roundings
   and the zero point are (v + (v < 0 ? -1 : 0) + 2^(s-1) + z * 2^s) >> s with
   v = floor(value * m / 2^31 + 1/2). Here `multiplier` is 2m - 2^32, so that value + value *
   multiplier / 2^32 is value * m / 2^31; `rounding` is 2z + 1, so that rounding << (s - 1) is the sum
   of the last two terms; and `shift` is s - 1. v < 0 exactly if value < 0, or v is 0 and the term
   makes no difference. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_bounded(int32_t value, int32_t multiplier, int32_t shift,
                                                    int32_t rounding)
{
    const int32_t sum = value + (int32_t)((uint32_t)rounding << shift) + (value >> 31);
    return tinyfuse_halve_to_int8(tinyfuse_high_multiply_add(sum, value, multiplier) >> shift);
}

/* tinyfuse_requantize_bounded for an accumulator in 256ths whose remainder is 0: it is doubled, so the multiplier
   needs no change. The result is negative if the accumulator is. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_256ths(int32_t value, int32_t multiplier, int32_t shift, int32_t rounding)
{
    const int32_t term = (int32_t)((uint32_t)rounding << shift) - (value < 0 ? 1 : 0);
    return tinyfuse_halve_to_int8(tinyfuse_high_multiply_add(term, value >> 7, multiplier) >> shift);
}

/* tinyfuse_requantize_bounded for channels that may shift either way, for |value| < 2^23. `shifts` is the right shift,
   at most 22, plus 256 times the left shift, at most 6; one of both is 0. The multiplier is that of the general form.

   With v the rounded product and r the right shift, the second rounding is (2v - (v < 0 ? 2 : 0) + 2^r) >> (r + 1).
   The 2 may be replaced by 1: the other terms are even, so no multiple of 2^(r + 1) lies between. If r is 0, the
   result is v. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_shifted(int32_t value, int32_t multiplier, int32_t shifts, int32_t rounding)
{
    const int32_t right = shifts & 0xFF;
    const int32_t v = tinyfuse_high_multiply((int32_t)((uint32_t)value << (shifts >> 8)), multiplier);
    const int32_t sum = 2 * v + (v >> 31) + (int32_t)((uint32_t)rounding << right);
    return tinyfuse_halve_to_int8(sum >> right);
}

/* --- single rounding -------------------------------------------------------------------------------

   As a function of the accumulator, an int8 output is a staircase of at most 255 steps, and any computation with steps
   at the same accumulators is the same function. For accumulators in 256ths, a bias and a multiplier can nearly always
   be found for which one multiplication and one rounding give these steps: two instructions. All channels share one
   shift, with which multipliers must be below 2^-4 to fit int32. Per-channel shifts take one instruction more, and can
   nearly always use the multipliers of the general form. */

/* One output channel: bias in 256ths of the accumulator's unit, with the input zero point and a correction folded
   in; approximately the real multiplier * 2^(24 + TINYFUSE_SINGLE_ROUNDING_SHIFT). */
typedef struct {
    int32_t bias;
    int32_t multiplier;
} tinyfuse_single_rounding;

#define TINYFUSE_SINGLE_ROUNDING_SHIFT 11
/* shift and saturation in assembly */
#define TINYFUSE_SINGLE_ROUNDING_SATURATE(s) "ssat " s ", #8, " s ", asr #11\n\t"
/* tinyfuse_requantize_own_shift in assembly */
#define TINYFUSE_OWN_SHIFT(s, multiplier, shift) \
    "smmul " s ", " s ", " multiplier "\n\tasr " s ", " shift "\n\tssat " s ", #8, " s "\n\t"

/* Addend of every channel before the shift: the output zero point and a half. */
TINYFUSE_INLINE int32_t tinyfuse_single_rounding_rounding(int32_t out_zero_point)
{
    return (2 * out_zero_point + 1) * (1 << (TINYFUSE_SINGLE_ROUNDING_SHIFT - 1));
}

/* The stored output, saturated to int8 but not clamped further. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_single_rounding(int32_t value, int32_t multiplier, int32_t rounding)
{
    const int32_t high = (int32_t)(((int64_t)value * multiplier) >> 32);
    return tinyfuse_clamp((rounding + high) >> TINYFUSE_SINGLE_ROUNDING_SHIFT, -128, 127);
}

/* Single rounding with a shift for each channel; the bias includes the output zero point. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_own_shift(int32_t value, int32_t multiplier, int32_t shift)
{
    return tinyfuse_clamp((int32_t)(((int64_t)value * multiplier) >> 32) >> shift, -128, 127);
}

/* The form of requantization of a depthwise convolution, a constant argument of kernels. */
enum {
    TINYFUSE_BOUNDED_FORM,
    TINYFUSE_SINGLE_ROUNDING_FORM,
    TINYFUSE_OWN_SHIFTS_FORM,
    TINYFUSE_HALF_EVEN_FORM,
    TINYFUSE_SHIFTED_FORM
};

/* Returns whether the channels of a form are tinyfuse_requant. */
TINYFUSE_INLINE int tinyfuse_form_rounds_twice(int form)
{
    return form == TINYFUSE_BOUNDED_FORM || form == TINYFUSE_SHIFTED_FORM;
}

/* Addend of every channel in this form. */
TINYFUSE_INLINE int32_t tinyfuse_form_rounding(int32_t out_zero_point, int form)
{
    return form == TINYFUSE_SINGLE_ROUNDING_FORM || form == TINYFUSE_HALF_EVEN_FORM
               ? tinyfuse_single_rounding_rounding(out_zero_point)
           : form == TINYFUSE_OWN_SHIFTS_FORM ? 0
                                              : 2 * out_zero_point + 1;
}

/* --- sign-dependent single rounding ------------------------------------------------------------------

   Halves are rounded away from zero, so outputs above zero need another bias than those below: `bend` is added if the
   sum is not negative. The sum must have the sign of the output less its zero point, so no zero point is added, and
   this form is only for outputs that are looked up in a table (tinyfuse_matmul.h).
   tinyfuse/kernels/requantize/signed_rounding.py compares all steps. */

/* One output channel, like tinyfuse_single_rounding with another shift. `bend` is an integer for real multipliers
   down to 2^-13. */
typedef struct {
    int32_t bias;
    int32_t multiplier;
    int32_t bend;
} tinyfuse_signed_rounding;

#define TINYFUSE_SIGNED_ROUNDING_SHIFT 12
/* shift and saturation to 9 bits in assembly */
#define TINYFUSE_SIGNED_ROUNDING_SATURATE(s) "ssat " s ", #9, " s ", asr #12\n\t"

/* The output less its zero point of a sum in 256ths, clamped to -256..255. */
TINYFUSE_INLINE int32_t tinyfuse_requantize_signed_rounding(int32_t value, int32_t multiplier, int32_t bend)
{
    const int32_t high = (int32_t)(((int64_t)value * multiplier) >> 32);
    return tinyfuse_clamp((high + (value < 0 ? 0 : bend)) >> TINYFUSE_SIGNED_ROUNDING_SHIFT, -256, 255);
}

#if TINYFUSE_DSP && !TINYFUSE_MVE

/* Clamps four outputs. All four bytes of `low` hold the lower bound, those of `high` the upper one. SSUB8 sets a flag
   for each byte of its first operand that is not below that of the second. SEL takes a byte of its first operand if the
   flag is set, else of the second. */
TINYFUSE_INLINE void tinyfuse_clamp_four(int8_t *four, uint32_t low, uint32_t high)
{
    uint32_t word = tinyfuse_load_u32(four), difference;
    __asm volatile("ssub8 %1, %0, %2\n\t"
                   "sel %0, %0, %2\n\t"
                   "ssub8 %1, %0, %3\n\t"
                   "sel %0, %3, %0"
                   : "+r"(word), "=&r"(difference)
                   : "r"(low), "r"(high)
                   : "cc");
    memcpy(four, &word, sizeof word);
}

/* Clamps `count` outputs in place. The last four are clamped together, some of them for the second time if `count` is
   not a multiple of four. */
TINYFUSE_SHARED void tinyfuse_clamp_row(int8_t *row, int32_t count, int32_t low, int32_t high)
{
    const uint32_t lows = 0x01010101u * (uint8_t)low, highs = 0x01010101u * (uint8_t)high;
    int8_t *const last = row + count - 4;
    if (count < 4) {
        for (; count > 0; --count) {
            *row = (int8_t)tinyfuse_clamp(*row, low, high);
            ++row;
        }
        return;
    }
    for (; row < last; row += 4) {
        tinyfuse_clamp_four(row, lows, highs);
    }
    tinyfuse_clamp_four(last, lows, highs);
}

#else

/* Clamps `count` outputs in place. */
TINYFUSE_SHARED void tinyfuse_clamp_row(int8_t *row, int32_t count, int32_t low, int32_t high)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        row[i] = (int8_t)tinyfuse_clamp(row[i], low, high);
    }
}

#endif

/* Clamps outputs that are already saturated to int8, if the layer's clamp is narrower. */
TINYFUSE_INLINE void tinyfuse_clamp_outputs(int8_t *row, int32_t count, int32_t low, int32_t high)
{
    if (low > -128 || high < 127) {
        tinyfuse_clamp_row(row, count, low, high);
    }
}

#endif
