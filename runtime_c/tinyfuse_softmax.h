/* SOFTMAX over the last dimension in TensorFlow Lite Micro's fixed-point arithmetic: exp from a polynomial around
   -1/8 times factors exp(-2^k), and the reciprocal of the sum by Newton-Raphson (algorithms: gemmlowp's
   fixedpoint.h). Qm.n: m integer bits, n fraction bits, one sign bit. */
#ifndef TINYFUSE_SOFTMAX_H
#define TINYFUSE_SOFTMAX_H

#include "tinyfuse_fixed_point.h"
#include "tinyfuse_requantize.h"

typedef struct {
    int32_t rows, depth;
    int32_t multiplier, left_shift; /* from a difference of stored values to Q5.26 */
    int32_t least_difference;       /* the exp of a smaller difference counts as zero */
} tinyfuse_softmax;

/* exp of a value <= 0 in Q5.26, as Q0.31. */
TINYFUSE_SHARED int32_t tinyfuse_exp_q5(int32_t value)
{
    static const int32_t factor[7] = {1672461947, 1302514674, 790015084, 290630308,
                                      39332535,   720401,     242}; /* exp(-2^k), k = -2..4 */
    const int32_t eighth = 1895147668;                              /* exp(-1/8) */
    const int32_t quarter = 1 << 24;
    const int32_t rest = (int32_t)((uint32_t)value & (uint32_t)(quarter - 1)) - quarter;
    const uint32_t remainder = (uint32_t)rest - (uint32_t)value;
    const int32_t x = rest * 32 + (1 << 28);
    const int32_t x2 = tinyfuse_high_multiply(x, x);
    const int32_t x3 = tinyfuse_high_multiply(x2, x);
    const int32_t x4 = tinyfuse_high_multiply(x2, x2);
    const int32_t third = 715827883; /* 1/3 */
    const int32_t series =
        tinyfuse_high_multiply(tinyfuse_divide_by_power(x4, 2) + x3, third) + x2;
    int32_t result =
        eighth + tinyfuse_high_multiply(eighth, x + tinyfuse_divide_by_power(series, 1));
    int k;
    if (value == 0) {
        return INT32_MAX;
    }
    for (k = 0; k < 7; ++k) {
        if ((remainder >> (24 + k)) & 1u) {
            result = tinyfuse_high_multiply(result, factor[k]);
        }
    }
    return result;
}

/* 1 / (1 + x) for x in [0, 1), both Q0.31. */
TINYFUSE_SHARED int32_t tinyfuse_reciprocal_of_one_plus(int32_t x)
{
    const int32_t half = (int32_t)(((int64_t)x + INT32_MAX + 1) >> 1);
    int32_t guess = 1515870810 + tinyfuse_high_multiply(half, -1010580540); /* 48/17 - 32/17 * half */
    int i;
    for (i = 0; i < 3; ++i) {
        const int32_t error = (1 << 29) - tinyfuse_high_multiply(half, guess);
        guess += tinyfuse_shift_up(tinyfuse_high_multiply(guess, error), 2);
    }
    return tinyfuse_shift_up(guess, 1);
}

TINYFUSE_INLINE int32_t tinyfuse_softmax_exp(const tinyfuse_softmax *p, int32_t difference)
{
    const int32_t scaled = difference * (int32_t)((uint32_t)1 << p->left_shift);
    return tinyfuse_exp_q5(tinyfuse_high_multiply(scaled, p->multiplier));
}

/* `bits`: 8 or 16, the size of the output type; `low`, `high`: its range. `scratch`: `depth` exps of 4
   bytes, aligned to 4. An int8 output may be the input. `exponent` exceeds 31 only if the sum is
   512 or more; every 8-bit result is then 0. */
#define TINYFUSE_DEFINE_SOFTMAX(suffix, out_type, bits, low, high)                                     \
    TINYFUSE_INLINE void tinyfuse_softmax_##suffix(const tinyfuse_softmax *p, const int8_t *in,        \
                                                   out_type *out, void *scratch)                       \
    {                                                                                                  \
        int32_t *const exps = (int32_t *)scratch;                                                      \
        int32_t row, i;                                                                                \
        for (row = 0; row < p->rows; ++row) {                                                          \
            int32_t most = -128, sum = 0, headroom, exponent, reciprocal;                              \
            for (i = 0; i < p->depth; ++i) {                                                           \
                most = tinyfuse_max(most, in[i]);                                                      \
            }                                                                                          \
            for (i = 0; i < p->depth; ++i) {                                                           \
                const int32_t difference = in[i] - most;                                               \
                exps[i] = difference >= p->least_difference ? tinyfuse_softmax_exp(p, difference) : 0; \
                sum += tinyfuse_divide_by_power(exps[i], 12);                                          \
            }                                                                                          \
            headroom = tinyfuse_leading_zeros((uint32_t)sum);                                          \
            exponent = 12 - headroom + 31 - (bits);                                                    \
            reciprocal = tinyfuse_reciprocal_of_one_plus(                                              \
                (int32_t)(((uint32_t)sum << headroom) - 0x80000000u));                                 \
            for (i = 0; i < p->depth; ++i) {                                                           \
                int32_t value = low;                                                                   \
                if (exponent <= 31) {                                                                  \
                    value += tinyfuse_divide_by_power(tinyfuse_high_multiply(reciprocal, exps[i]),     \
                                                      exponent);                                       \
                }                                                                                      \
                out[i] = (out_type)tinyfuse_min(value, high);                                          \
            }                                                                                          \
            in += p->depth;                                                                            \
            out += p->depth;                                                                           \
        }                                                                                              \
    }

TINYFUSE_DEFINE_SOFTMAX(s8, int8_t, 8, -128, 127)
TINYFUSE_DEFINE_SOFTMAX(s8_s16, int16_t, 16, -32768, 32767)

#endif
