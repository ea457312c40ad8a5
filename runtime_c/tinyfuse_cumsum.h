/* CUMSUM of int8 and float32: sums up to each element along a dimension. */
#ifndef TINYFUSE_CUMSUM_H
#define TINYFUSE_CUMSUM_H

#include "tinyfuse_float.h"
#include "tinyfuse_requantize.h"

/* The tensor is [outer][count][inner]. */
typedef struct {
    int32_t outer, count, inner;
    int32_t exclusive; /* a sum doesn't include its element */
    int32_t reverse;   /* sums begin at the last element */
} tinyfuse_cumsum;

/* Parameters for stored values. Sums start with the stored value 0, not with the real value 0. */
typedef struct {
    int32_t in_zero_point, multiplier, shift, out_zero_point;
} tinyfuse_cumsum_scaling;

/* A stored value in units of 2^-20 times twice the input's scale. */
TINYFUSE_INLINE int32_t tinyfuse_cumsum_term(const tinyfuse_cumsum_scaling *scaling, int32_t value)
{
    return (value - scaling->in_zero_point) * (1 << 19);
}

TINYFUSE_INLINE int8_t tinyfuse_cumsum_output(const tinyfuse_cumsum_scaling *scaling, int32_t sum)
{
    const int32_t scaled = tinyfuse_requantize(sum, scaling->multiplier, scaling->shift);
    return (int8_t)tinyfuse_clamp(scaled + scaling->out_zero_point, -128, 127);
}

/* Index of the first element of line `i` (of outer * inner) in the order of summation, and the step to the next. */
TINYFUSE_INLINE int32_t tinyfuse_cumsum_first(const tinyfuse_cumsum *p, int32_t i)
{
    return (i / p->inner * p->count + (p->reverse ? p->count - 1 : 0)) * p->inner + i % p->inner;
}

TINYFUSE_INLINE int32_t tinyfuse_cumsum_step(const tinyfuse_cumsum *p)
{
    return p->reverse ? -p->inner : p->inner;
}

/* Sums wrap around at 32 bits. */
TINYFUSE_INLINE void tinyfuse_cumsum_s8(const tinyfuse_cumsum *p, const tinyfuse_cumsum_scaling *scaling,
                                        const int8_t *in, int8_t *out)
{
    const int32_t step = tinyfuse_cumsum_step(p);
    int32_t i, k;
    for (i = 0; i < p->outer * p->inner; ++i) {
        int32_t at = tinyfuse_cumsum_first(p, i), sum = tinyfuse_cumsum_term(scaling, 0);
        for (k = 0; k < p->count; ++k) {
            const int32_t term = tinyfuse_cumsum_term(scaling, in[at]);
            const int32_t next = (int32_t)((uint32_t)sum + (uint32_t)term);
            out[at] = tinyfuse_cumsum_output(scaling, p->exclusive ? sum : next);
            sum = next;
            at += step;
        }
    }
}

TINYFUSE_INLINE void tinyfuse_cumsum_f32(const tinyfuse_cumsum *p, const float *in, float *out)
{
    const int32_t step = tinyfuse_cumsum_step(p);
    int32_t i, k;
    for (i = 0; i < p->outer * p->inner; ++i) {
        int32_t at = tinyfuse_cumsum_first(p, i);
        float sum = 0.0f;
        for (k = 0; k < p->count; ++k) {
            const float next = tinyfuse_sum_f32(sum, in[at]);
            out[at] = p->exclusive ? sum : next;
            sum = next;
            at += step;
        }
    }
}

#endif
