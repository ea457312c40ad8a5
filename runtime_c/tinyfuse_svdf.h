/* SVDF, int8: each filter's product with the input is remembered in the state, and the last of these
   are weighed and summed. */
#ifndef TINYFUSE_SVDF_H
#define TINYFUSE_SVDF_H

#include "tinyfuse_dot.h"
#include "tinyfuse_requantize.h"

/* An output unit adds up `rank` filters, which lie side by side. */
typedef struct {
    int32_t batches, inputs, units, rank, memory;
    int32_t state_zero_point, out_zero_point;
    int32_t feature_multiplier, feature_shift, time_multiplier, time_shift;
} tinyfuse_svdf;

/* A filter's product with an input vector, in units of the state, not yet clamped. */
TINYFUSE_INLINE int32_t tinyfuse_svdf_feature(const tinyfuse_svdf *p, const int8_t *in,
                                              const int8_t *weights, int32_t offset)
{
    const int32_t sum = tinyfuse_dot_s8(in, weights, p->inputs, offset);
    return tinyfuse_requantize(sum, p->feature_multiplier, p->feature_shift);
}

TINYFUSE_INLINE int8_t tinyfuse_svdf_output(const tinyfuse_svdf *p, uint32_t sum)
{
    const int32_t scaled = tinyfuse_requantize((int32_t)sum, p->time_multiplier, p->time_shift);
    return (int8_t)tinyfuse_clamp(scaled + p->out_zero_point, -128, 127);
}

/* in [batches][inputs], state [batches][units * rank][memory], out [batches][units]; features
   [units * rank][inputs], offsets [units * rank] (-zero point * sum of a filter's weights), time
   [units * rank][memory], bias [units]. The state moves by one step: the oldest value of each filter
   leaves, the newest comes last. */
TINYFUSE_INLINE void tinyfuse_svdf_s16(const tinyfuse_svdf *p, const int8_t *in, int16_t *state,
                                       int8_t *out, const int8_t *features, const int32_t *offsets,
                                       const int16_t *time, const int32_t *bias)
{
    int32_t b, u, r, m;
    for (b = 0; b < p->batches; ++b) {
        const int8_t *feature = features;
        const int32_t *offset = offsets;
        const int16_t *weight = time;
        for (u = 0; u < p->units; ++u) {
            uint32_t sum = (uint32_t)bias[u]; /* wraps */
            for (r = 0; r < p->rank; ++r) {
                for (m = 0; m + 1 < p->memory; ++m) {
                    state[m] = state[m + 1];
                    sum += (uint32_t)(state[m] * weight[m]);
                }
                state[m] = (int16_t)tinyfuse_clamp(tinyfuse_svdf_feature(p, in, feature, *offset++),
                                                   INT16_MIN, INT16_MAX);
                sum += (uint32_t)(state[m] * weight[m]);
                feature += p->inputs;
                weight += p->memory;
                state += p->memory;
            }
            *out++ = tinyfuse_svdf_output(p, sum);
        }
        in += p->inputs;
    }
}

/* The same with a state and time weights of int8; the state has a zero point, and wraps when that is
   added to the clamped product. */
TINYFUSE_INLINE void tinyfuse_svdf_s8(const tinyfuse_svdf *p, const int8_t *in, int8_t *state,
                                      int8_t *out, const int8_t *features, const int32_t *offsets,
                                      const int8_t *time, const int32_t *bias)
{
    int32_t b, u, r, m;
    for (b = 0; b < p->batches; ++b) {
        const int8_t *feature = features;
        const int32_t *offset = offsets;
        const int8_t *weight = time;
        for (u = 0; u < p->units; ++u) {
            uint32_t sum = (uint32_t)bias[u]; /* wraps */
            for (r = 0; r < p->rank; ++r) {
                int32_t newest;
                for (m = 0; m + 1 < p->memory; ++m) {
                    state[m] = state[m + 1];
                    sum += (uint32_t)((state[m] - p->state_zero_point) * weight[m]);
                }
                newest = tinyfuse_clamp(tinyfuse_svdf_feature(p, in, feature, *offset++), INT8_MIN, INT8_MAX);
                state[m] = (int8_t)(uint8_t)(newest + p->state_zero_point);
                sum += (uint32_t)((state[m] - p->state_zero_point) * weight[m]);
                feature += p->inputs;
                weight += p->memory;
                state += p->memory;
            }
            *out++ = tinyfuse_svdf_output(p, sum);
        }
        in += p->inputs;
    }
}

#endif
