/* Functions of one int16 value with zero point 0. All go forward, element by element: the output may be the input
   or lie below it. */
#ifndef TINYFUSE_UNARY_S16_H
#define TINYFUSE_UNARY_S16_H

#include "tinyfuse_requantize.h"

TINYFUSE_INLINE void tinyfuse_clamp_s16(const int16_t *in, int16_t *out, int32_t count, int32_t low, int32_t high)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        out[i] = (int16_t)tinyfuse_clamp(in[i], low, high);
    }
}

/* Real multipliers for values from 0 on and for negative ones, as tinyfuse_requantize takes them. `negated`: the
   result for negative values is negated. Results are clamped to `low` to 32767. */
typedef struct {
    int32_t multiplier, shift;
    int32_t below_multiplier, below_shift, negated;
    int32_t low;
} tinyfuse_two_slopes;

/* RELU and LEAKY_RELU. */
TINYFUSE_INLINE void tinyfuse_two_slopes_s16(const tinyfuse_two_slopes *p, const int16_t *in, int16_t *out,
                                             int32_t count)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        int32_t value = in[i];
        if (value >= 0) {
            value = tinyfuse_requantize(value, p->multiplier, p->shift);
        } else {
            value = tinyfuse_requantize(value, p->below_multiplier, p->below_shift);
            value = p->negated ? -value : value;
        }
        out[i] = (int16_t)tinyfuse_clamp(value, p->low, 32767);
    }
}

TINYFUSE_INLINE void tinyfuse_abs_s16(const int16_t *in, int16_t *out, int32_t count, int32_t multiplier, int32_t shift)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        const int32_t size = in[i] < 0 ? -in[i] : in[i];
        out[i] = (int16_t)tinyfuse_clamp(tinyfuse_requantize(size, multiplier, shift), -32768, 32767);
    }
}

/* Interpolates the table at a magnitude in units of 1 / (3 * 4096), whose last `bits` bits lie between entries. */
TINYFUSE_INLINE int32_t tinyfuse_interpolated(const uint16_t *table, int32_t size, int32_t bits, int32_t most)
{
    const int32_t index = size >> bits;
    int32_t here;
    if (index >= 255) {
        return most;
    }
    here = table[index];
    return (here << bits) + (size & ((1 << bits) - 1)) * (table[index + 1] - here);
}

/* `table`: sigmoid(i / 24) in 65536ths. An input times `multiplier`, shifted right and rounded, is in units of 1 /
   (3 * 4096). */
TINYFUSE_INLINE void tinyfuse_logistic_s16(const uint16_t *table, const int16_t *in, int16_t *out, int32_t count,
                                           int32_t multiplier, int32_t shift)
{
    const int32_t half = shift ? (int32_t)1 << (shift - 1) : 0;
    int32_t i;
    for (i = 0; i < count; ++i) {
        const int32_t value = (in[i] * multiplier + half) >> shift;
        const int32_t result = tinyfuse_interpolated(table, value < 0 ? -value : value, 9, 0x7FFF << 10);
        out[i] = (int16_t)((value >= 0 ? result + 512 : (1 << 25) - result + 511) >> 10);
    }
}

TINYFUSE_INLINE void tinyfuse_tanh_s16(const uint16_t *table, const int16_t *in, int16_t *out, int32_t count,
                                       int32_t multiplier, int32_t shift)
{
    const int32_t half = shift ? (int32_t)1 << (shift - 1) : 0;
    int32_t i;
    for (i = 0; i < count; ++i) {
        const int32_t value = (in[i] * multiplier + half) >> shift;
        const int32_t result = tinyfuse_interpolated(table, value < 0 ? -value : value, 8, 0xFFFF << 8);
        out[i] = (int16_t)((value >= 0 ? result - (1 << 23) + 128 : (1 << 23) - result + 127) >> 8);
    }
}

#endif
