/* SVDF of float32: every product and every sum is rounded, in the order of inputs, of memory, and of filters. */
#ifndef TINYFUSE_SVDF_F32_H
#define TINYFUSE_SVDF_F32_H

#include "tinyfuse_float.h"

/* Parameters like those of tinyfuse_svdf. Outputs are clamped from above and then from below if there are bounds. */
typedef struct {
    int32_t batches, inputs, units, rank, memory, has_high, has_low;
    float high, low;
} tinyfuse_svdf_real;

/* Writes a filter's product with an input vector as its newest value; returns the weighted sum of its last values. */
TINYFUSE_INLINE float tinyfuse_svdf_filter_f32(const tinyfuse_svdf_real *p, const float *in, float *state,
                                               const float *features, const float *time)
{
    float newest = 0.0f, sum = 0.0f;
    int32_t i;
    for (i = 0; i < p->inputs; ++i) {
        newest = tinyfuse_add_product_f32(newest, in[i], features[i]);
    }
    for (i = 0; i + 1 < p->memory; ++i) {
        state[i] = state[i + 1];
        sum = tinyfuse_add_product_f32(sum, state[i], time[i]);
    }
    state[i] = newest;
    return tinyfuse_add_product_f32(sum, newest, time[i]);
}

/* in [batches][inputs], state [batches][units * rank][memory], out [batches][units]; features
   [units * rank][inputs], time [units * rank][memory], bias [units]. */
TINYFUSE_INLINE void tinyfuse_svdf_f32(const tinyfuse_svdf_real *p, const float *in, float *state, float *out,
                                       const float *features, const float *time, const float *bias)
{
    int32_t b, u, r;
    for (b = 0; b < p->batches; ++b) {
        const float *feature = features, *weight = time;
        for (u = 0; u < p->units; ++u) {
            float total = bias[u];
            for (r = 0; r < p->rank; ++r) {
                const float sum = tinyfuse_svdf_filter_f32(p, in, state, feature, weight);
                total = tinyfuse_rounded(total + sum);
                feature += p->inputs;
                weight += p->memory;
                state += p->memory;
            }
            if (p->has_high && !(total < p->high)) { /* also clamps NaN */
                total = p->high;
            }
            if (p->has_low && !(total > p->low)) {
                total = p->low;
            }
            *out++ = total;
        }
        in += p->inputs;
    }
}

#endif
