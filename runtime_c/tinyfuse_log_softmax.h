/* LOG_SOFTMAX over the last dimension in TensorFlow Lite Micro's fixed-point arithmetic: exp as in
   tinyfuse_softmax.h, and the logarithm of the sum from a rational approximation around sqrt(sqrt(1/2)) (algorithm:
   TensorFlow Lite, kernels/internal/common.h). Qm.n: m integer bits, n fraction bits, one sign bit. */
#ifndef TINYFUSE_LOG_SOFTMAX_H
#define TINYFUSE_LOG_SOFTMAX_H

#include "tinyfuse_softmax.h"

/* log of a value >= 1 in Q12.19, as Q5.26. */
TINYFUSE_SHARED int32_t tinyfuse_log_q12(int32_t value)
{
    const int32_t root_half = 1518500250, fourth_root_half = 1805811301, log_2 = 1488522236;
    const int32_t quarter = 1 << 23; /* in Q6.25 */
    /* value = r * 2^power with r near the fourth root of 1/2; of two such r the smaller one, and its power */
    const int32_t headroom = tinyfuse_leading_zeros((uint32_t)value) - 1;
    const int32_t r_a =
        tinyfuse_shift_up(tinyfuse_high_multiply(tinyfuse_shift_up(value, headroom), root_half), 1);
    const int32_t power_a = (12 - headroom - 1) * (1 << 25) + quarter;
    const int32_t headroom_b =
        tinyfuse_leading_zeros((uint32_t)tinyfuse_high_multiply(value, root_half)) - 1;
    const int32_t r_b = tinyfuse_shift_up(value, headroom_b);
    const int32_t power_b = (12 - headroom_b) * (1 << 25) - quarter;
    const int32_t r = tinyfuse_min(r_a, r_b);
    const int32_t power = tinyfuse_max(power_a, power_b);
    /* log(r) as a quotient of two polynomials of q */
    const int32_t p = (int32_t)(((int64_t)r + fourth_root_half + 1) / 2);
    const int32_t q = (r - fourth_root_half) * 2;
    const int32_t square = tinyfuse_high_multiply(q, q);
    const int32_t cubed = tinyfuse_high_multiply(tinyfuse_high_multiply(q, square), 117049297);
    const int32_t numerator = tinyfuse_high_multiply(q, r) + cubed;
    const int32_t inner = 1057819769 + q + tinyfuse_high_multiply(127690142, square);
    const int32_t denominator = tinyfuse_high_multiply(p, inner) + tinyfuse_high_multiply(638450708, q);
    const int32_t log_r = tinyfuse_high_multiply(tinyfuse_divide_by_power(numerator, 6),
                                                 tinyfuse_reciprocal_of_one_plus(denominator));
    return tinyfuse_shift_up(tinyfuse_high_multiply(power, log_2) + log_r, 1);
}

/* `reverse_multiplier` and `reverse_shift` undo the scaling of differences. `out` may be `in`. */
TINYFUSE_INLINE void tinyfuse_log_softmax_s8(const tinyfuse_softmax *p, int32_t reverse_multiplier,
                                             int32_t reverse_shift, const int8_t *in, int8_t *out)
{
    int32_t row, i;
    for (row = 0; row < p->rows; ++row) {
        int32_t most = -128, sum = 0, log_sum, least;
        for (i = 0; i < p->depth; ++i) {
            most = tinyfuse_max(most, in[i]);
        }
        for (i = 0; i < p->depth; ++i) {
            const int32_t difference = in[i] - most;
            if (difference >= p->least_difference) {
                sum += tinyfuse_divide_by_power(tinyfuse_softmax_exp(p, difference), 12);
            }
        }
        log_sum = tinyfuse_log_q12(sum);
        least = tinyfuse_max(p->least_difference - 1,
                             tinyfuse_requantize(log_sum + INT32_MIN, reverse_multiplier, reverse_shift));
        for (i = 0; i < p->depth; ++i) {
            const int32_t difference = in[i] - most;
            int32_t value = -128;
            if (difference > least) {
                const int32_t scaled = tinyfuse_requantize(difference, p->multiplier, p->left_shift);
                value = tinyfuse_divide_by_power(scaled - log_sum, 22) + 127;
            }
            out[i] = (int8_t)tinyfuse_clamp(value, -128, 127);
        }
        in += p->depth;
        out += p->depth;
    }
}

#endif
