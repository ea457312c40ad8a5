/* SOFTMAX of int8 with a table of exps: they depend on the difference of two stored values, of which there are at
   most 256. Faster for long rows; the arithmetic is that of tinyfuse_softmax.h. */
#ifndef TINYFUSE_SOFTMAX_LOOKUP_H
#define TINYFUSE_SOFTMAX_LOOKUP_H

#include "tinyfuse_softmax.h"

typedef struct {
    int32_t rows, depth;
    int32_t differences; /* entries of the table: the exp of a larger difference counts as zero */
} tinyfuse_softmax_lookup;

/* `exps`: exp in Q0.31 for differences 0, 1, 2, ... from the greatest value. Goes forward: the output may be the
   input. */
TINYFUSE_SHARED void tinyfuse_softmax_lookup_s8(const tinyfuse_softmax_lookup *p, const int8_t *in, int8_t *out,
                                                const int32_t *exps)
{
    int32_t row, i;
    for (row = 0; row < p->rows; ++row) {
        int32_t most = -128, sum = 0, headroom, exponent, reciprocal;
        for (i = 0; i < p->depth; ++i) {
            most = tinyfuse_max(most, in[i]);
        }
        for (i = 0; i < p->depth; ++i) {
            const int32_t difference = most - in[i];
            if (difference < p->differences) {
                sum += tinyfuse_divide_by_power(exps[difference], 12);
            }
        }
        headroom = tinyfuse_leading_zeros((uint32_t)sum);
        exponent = 12 - headroom + 31 - 8;
        reciprocal = tinyfuse_reciprocal_of_one_plus((int32_t)(((uint32_t)sum << headroom) - 0x80000000u));
        for (i = 0; i < p->depth; ++i) {
            const int32_t difference = most - in[i];
            int32_t value = -128;
            if (difference < p->differences && exponent <= 31) {
                value += tinyfuse_divide_by_power(tinyfuse_high_multiply(reciprocal, exps[difference]), exponent);
            }
            out[i] = (int8_t)tinyfuse_min(value, 127);
        }
        in += p->depth;
        out += p->depth;
    }
}

#endif
