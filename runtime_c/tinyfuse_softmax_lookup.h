/* SOFTMAX of int8 with a table of exps: they depend on the difference of two stored values, of which there are at
   most 256. Faster for long rows; the arithmetic is that of tinyfuse_softmax.h. */
#ifndef TINYFUSE_SOFTMAX_LOOKUP_H
#define TINYFUSE_SOFTMAX_LOOKUP_H

#include "tinyfuse_softmax.h"

typedef struct {
    int32_t rows, depth;
    int32_t differences; /* entries of the table: the exp of a larger difference counts as zero */
} tinyfuse_softmax_lookup;

/* All numbers are positive, so that both roundings of tinyfuse_requantize add a half. `exps`: exp in Q0.31 for differences 0, 1, 2, ... from the greatest value. Goes forward: the output may be the
   input. */
TINYFUSE_SHARED void tinyfuse_softmax_lookup_s8(const tinyfuse_softmax_lookup *p, const int8_t *in, int8_t *out,
                                                const int32_t *exps)
{
    int32_t row, i;
    for (row = 0; row < p->rows; ++row) {
        int32_t most = -128, headroom, exponent;
        uint32_t sum = 0, scale, half;
        for (i = 0; i < p->depth; ++i) {
            most = tinyfuse_max(most, in[i]);
        }
        for (i = 0; i < p->depth; ++i) {
            const int32_t difference = most - in[i];
            if (difference < p->differences) {
                sum += ((uint32_t)exps[difference] + 2048u) >> 12;
            }
        }
        headroom = tinyfuse_leading_zeros(sum);
        exponent = 12 - headroom + 31 - 8; /* 23 at least: the greatest value's exp is nearly 1 */
        scale = 2u * (uint32_t)tinyfuse_reciprocal_of_one_plus((int32_t)((sum << headroom) - 0x80000000u));
        if (exponent > 31) { /* every output is below a half */
            scale = 0;
            exponent = 31;
        }
        half = 1u << (exponent - 1);
        for (i = 0; i < p->depth; ++i) {
            const int32_t difference = most - in[i];
            uint32_t value = 0;
            if (difference < p->differences) {
                const uint64_t product = (uint64_t)(uint32_t)exps[difference] * scale + 0x80000000u;
                value = ((uint32_t)(product >> 32) + half) >> exponent;
            }
            out[i] = (int8_t)(tinyfuse_min((int32_t)value, 255) - 128);
        }
        in += p->depth;
        out += p->depth;
    }
}

#endif
