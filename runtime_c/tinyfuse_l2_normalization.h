/* L2_NORMALIZATION over the last dimension in TensorFlow Lite Micro's fixed-point arithmetic. The sum of squares is
   an integer; its reciprocal square root takes five steps of Newton-Raphson. Qm.n: m integer bits, n fraction bits,
   one sign bit. */
#ifndef TINYFUSE_L2_NORMALIZATION_H
#define TINYFUSE_L2_NORMALIZATION_H

#include "tinyfuse_fixed_point.h"
#include "tinyfuse_requantize.h"

/* 1 / sqrt(sum) = `*multiplier` / 2^31 * 2^shift; returns the shift. */
TINYFUSE_SHARED int32_t tinyfuse_reciprocal_root(int32_t sum, int32_t *multiplier)
{
    int32_t right = 11, pairs, half, guess = 1 << 28; /* 1 in Q3.28 */
    int i;
    if (sum <= 1) { /* 0 is treated as 1 */
        *multiplier = INT32_MAX;
        return 0;
    }
    while (sum >= 1 << 29) {
        sum /= 4;
        ++right;
    }
    pairs = (tinyfuse_leading_zeros((uint32_t)sum) - 1) / 2 - 1;
    right -= pairs;
    half = tinyfuse_divide_by_power((int32_t)((uint32_t)sum << (2 * pairs)) >> 1, 1);
    for (i = 0; i < 5; ++i) { /* guess * (3 - sum * guess^2) / 2 */
        const int32_t square = tinyfuse_high_multiply(guess, guess);
        const int32_t cube = tinyfuse_shift_up(tinyfuse_high_multiply(square, guess), 6);
        const int32_t next = tinyfuse_high_multiply((1 << 28) + (1 << 27), guess);
        guess = tinyfuse_shift_up(next - tinyfuse_high_multiply(half, cube), 3);
    }
    guess = tinyfuse_high_multiply(guess, 1518500250); /* sqrt(1/2) */
    if (right < 0) {
        guess = (int32_t)((uint32_t)guess << -right);
        right = 0;
    }
    *multiplier = guess;
    return -right;
}

/* `rows` rows of `depth` values; outputs are in 128ths. `out` may be `in`. */
TINYFUSE_INLINE void tinyfuse_l2_normalization_s8(const int8_t *in, int32_t rows, int32_t depth,
                                                  int32_t zero_point, int8_t *out)
{
    int32_t row, i;
    for (row = 0; row < rows; ++row) {
        int32_t sum = 0, multiplier, shift;
        for (i = 0; i < depth; ++i) {
            sum += (in[i] - zero_point) * (in[i] - zero_point);
        }
        shift = tinyfuse_reciprocal_root(sum, &multiplier) + 7;
        for (i = 0; i < depth; ++i) {
            const int32_t value = tinyfuse_requantize(in[i] - zero_point, multiplier, shift);
            out[i] = (int8_t)tinyfuse_clamp(value, -128, 127);
        }
        in += depth;
        out += depth;
    }
}

#endif
