/* SVDF of int8: each filter's product with the input is appended to the state; an output is the weighted sum of the
   last products. */
#ifndef TINYFUSE_SVDF_H
#define TINYFUSE_SVDF_H

#include "tinyfuse_dot.h"
#include "tinyfuse_requantize.h"

/* An output unit sums up `rank` filters, which are adjacent. */
typedef struct {
    int32_t batches, inputs, units, rank, memory;
    int32_t state_zero_point, out_zero_point;
    int32_t feature_multiplier, feature_shift, time_multiplier, time_shift;
} tinyfuse_svdf;

/* The products of four filters with an input vector, or of the remaining ones if there are fewer. */
TINYFUSE_INLINE void tinyfuse_svdf_products(const tinyfuse_svdf *p, const int8_t *in, const int8_t *features,
                                            const int32_t *offsets, int32_t filters, int32_t *sums)
{
    int32_t f;
    if (filters >= 4) {
        memcpy(sums, offsets, 4 * sizeof *sums);
        tinyfuse_dots_s8(in, features, p->inputs, p->inputs, sums);
    } else {
        for (f = 0; f < filters; ++f) {
            sums[f] = tinyfuse_dot_s8(in, features + f * p->inputs, p->inputs, offsets[f]);
        }
    }
}

/* A product in units of the state, before the clamp. */
TINYFUSE_INLINE int32_t tinyfuse_svdf_feature(const tinyfuse_svdf *p, int32_t sum)
{
    return tinyfuse_requantize(sum, p->feature_multiplier, p->feature_shift);
}

TINYFUSE_INLINE int8_t tinyfuse_svdf_output(const tinyfuse_svdf *p, uint32_t sum)
{
    const int32_t scaled = tinyfuse_requantize((int32_t)sum, p->time_multiplier, p->time_shift);
    return (int8_t)tinyfuse_clamp(scaled + p->out_zero_point, -128, 127);
}

/* Moves a filter's state by one value and leaves the newest place free. Returns `sum` plus the weighted moved
   values; sums wrap around. */
TINYFUSE_INLINE uint32_t tinyfuse_svdf_move_s16(int16_t *state, const int16_t *time, int32_t moved, uint32_t sum)
{
    int32_t m = 0;
#if TINYFUSE_MVE
    for (; m < moved; m += 8) {
        const mve_pred16_t some = vctp16q((uint32_t)(moved - m));
        const int16x8_t values = vldrhq_z_s16(state + m + 1, some);
        vstrhq_p_s16(state + m, values, some);
        sum = (uint32_t)vmladavaq_s16((int32_t)sum, values, vldrhq_z_s16(time + m, some));
    }
#elif TINYFUSE_DSP
    for (; m + 2 <= moved; m += 2) {
        uint32_t pair, weights;
        memcpy(&pair, state + m + 1, sizeof pair);
        memcpy(&weights, time + m, sizeof weights);
        memcpy(state + m, &pair, sizeof pair);
        sum = (uint32_t)tinyfuse_add_products((int32_t)sum, pair, weights);
    }
#endif
    for (; m < moved; ++m) {
        state[m] = state[m + 1];
        sum += (uint32_t)(state[m] * time[m]);
    }
    return sum;
}

/* tinyfuse_svdf_move for int8 with a zero point. */
TINYFUSE_INLINE uint32_t tinyfuse_svdf_move_s8(int8_t *state, const int8_t *time, int32_t moved, int32_t zero_point,
                                               uint32_t sum)
{
    int32_t m = 0;
#if TINYFUSE_MVE
    for (; m < moved; m += 8) {
        const mve_pred16_t some = vctp16q((uint32_t)(moved - m));
        const int16x8_t values = vldrbq_z_s16(state + m + 1, some), weights = vldrbq_z_s16(time + m, some);
        vstrbq_p_s16(state + m, values, some);
        sum = (uint32_t)vmladavaq_s16((int32_t)sum, vsubq_n_s16(values, (int16_t)zero_point), weights);
    }
#elif TINYFUSE_DSP
    const uint32_t zero_points = ((uint32_t)zero_point & 0xFFFFu) * 0x10001u;
    for (; m + 4 <= moved; m += 4) {
        const uint32_t values = tinyfuse_load_u32(state + m + 1), weights = tinyfuse_load_u32(time + m);
        const uint32_t even = tinyfuse_subtract_pairs(tinyfuse_even_bytes(values), zero_points);
        const uint32_t odd = tinyfuse_subtract_pairs(tinyfuse_odd_bytes(values), zero_points);
        memcpy(state + m, &values, sizeof values);
        sum = (uint32_t)tinyfuse_add_products((int32_t)sum, even, tinyfuse_even_bytes(weights));
        sum = (uint32_t)tinyfuse_add_products((int32_t)sum, odd, tinyfuse_odd_bytes(weights));
    }
#endif
    for (; m < moved; ++m) {
        state[m] = state[m + 1];
        sum += (uint32_t)((state[m] - zero_point) * time[m]);
    }
    return sum;
}

/* in [batches][inputs], state [batches][units * rank][memory], out [batches][units]; features [units *
   rank][inputs], offsets [units * rank] (-zero point * sum of a filter's weights), time [units * rank][memory],
   bias [units]. Moves the state by one step: drops each filter's oldest value and appends the newest. */
TINYFUSE_INLINE void tinyfuse_svdf_s16(const tinyfuse_svdf *p, const int8_t *in, int16_t *state,
                                       int8_t *out, const int8_t *features, const int32_t *offsets,
                                       const int16_t *time, const int32_t *bias)
{
    const int32_t filters = p->units * p->rank, moved = p->memory - 1;
    int32_t b, f, sums[4];
    for (b = 0; b < p->batches; ++b) {
        const int16_t *weight = time;
        uint32_t sum = 0; /* wraps around */
        int32_t unit = 0, left = p->rank;
        for (f = 0; f < filters; ++f) {
            int32_t newest;
            if (f % 4 == 0) {
                tinyfuse_svdf_products(p, in, features + f * p->inputs, offsets + f, filters - f, sums);
            }
            newest = tinyfuse_clamp(tinyfuse_svdf_feature(p, sums[f % 4]), INT16_MIN, INT16_MAX);
            sum = tinyfuse_svdf_move_s16(state, weight, moved, sum) + (uint32_t)(newest * weight[moved]);
            state[moved] = (int16_t)newest;
            weight += p->memory;
            state += p->memory;
            if (--left == 0) {
                *out++ = tinyfuse_svdf_output(p, sum + (uint32_t)bias[unit++]);
                sum = 0;
                left = p->rank;
            }
        }
        in += p->inputs;
    }
}

/* tinyfuse_svdf with state and time weights of int8. The state has a zero point; adding it to the clamped product
   wraps around. */
TINYFUSE_INLINE void tinyfuse_svdf_s8(const tinyfuse_svdf *p, const int8_t *in, int8_t *state,
                                      int8_t *out, const int8_t *features, const int32_t *offsets,
                                      const int8_t *time, const int32_t *bias)
{
    const int32_t filters = p->units * p->rank, moved = p->memory - 1;
    int32_t b, f, sums[4];
    for (b = 0; b < p->batches; ++b) {
        const int8_t *weight = time;
        uint32_t sum = 0; /* wraps around */
        int32_t unit = 0, left = p->rank;
        for (f = 0; f < filters; ++f) {
            int32_t newest;
            if (f % 4 == 0) {
                tinyfuse_svdf_products(p, in, features + f * p->inputs, offsets + f, filters - f, sums);
            }
            newest = tinyfuse_clamp(tinyfuse_svdf_feature(p, sums[f % 4]), INT8_MIN, INT8_MAX);
            sum = tinyfuse_svdf_move_s8(state, weight, moved, p->state_zero_point, sum);
            state[moved] = (int8_t)(uint8_t)(newest + p->state_zero_point);
            sum += (uint32_t)((state[moved] - p->state_zero_point) * weight[moved]);
            weight += p->memory;
            state += p->memory;
            if (--left == 0) {
                *out++ = tinyfuse_svdf_output(p, sum + (uint32_t)bias[unit++]);
                sum = 0;
                left = p->rank;
            }
        }
        in += p->inputs;
    }
}

#endif
