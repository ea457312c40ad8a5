/* LSTM of float32; every operation is rounded, in the interpreter's order. */
#ifndef TINYFUSE_LSTM_F32_H
#define TINYFUSE_LSTM_F32_H

#include "tinyfuse_unary_f32.h"

/* Elements between batches and steps of input and output; cell_clip 0: no clipping. */
typedef struct {
    int32_t batches, steps, inputs, units;
    int32_t in_batch, in_step, out_batch, out_step;
    float cell_clip;
} tinyfuse_lstm_f32_params;

TINYFUSE_INLINE float tinyfuse_lstm_finite_f32(float value)
{
    return tinyfuse_clamp_f32(value, -FLT_MAX, FLT_MAX);
}

/* Sum of the products of `count` inputs and weights, from 0 on; then adds `bias`. */
TINYFUSE_INLINE float tinyfuse_lstm_sum_f32(const float *in, const float *weights, int32_t count, float bias)
{
    float sum = 0.0f;
    int32_t i;
    for (i = 0; i < count; ++i) {
        sum = tinyfuse_add_product_f32(sum, in[i], weights[i]);
    }
    return tinyfuse_lstm_finite_f32(tinyfuse_sum_f32(sum, bias));
}

/* One unit's step: updates the cell, returns the new hidden state. `weights` [4 gates: forget, input, cell,
   output][inputs + units] and `bias` [4] are the unit's own. */
TINYFUSE_INLINE float tinyfuse_lstm_unit_f32(const tinyfuse_lstm_f32_params *p, const float *in, const float *hidden,
                                             float *cell, const float *weights, const float *bias)
{
    float gate[4], value;
    int32_t g;
    for (g = 0; g < 4; ++g) {
        const float of_input = tinyfuse_lstm_sum_f32(in, weights, p->inputs, bias[g]);
        const float of_hidden = tinyfuse_lstm_sum_f32(hidden, weights + p->inputs, p->units, 0.0f);
        const float sum = tinyfuse_sum_f32(of_input, of_hidden);
        gate[g] = g == 2 ? tinyfuse_tanh_f32(sum) : tinyfuse_logistic_one_f32(sum);
        weights += p->inputs + p->units;
    }
    value = tinyfuse_sum_f32(tinyfuse_lstm_finite_f32(tinyfuse_product_f32(gate[0], *cell)),
                             tinyfuse_lstm_finite_f32(tinyfuse_product_f32(gate[1], gate[2])));
    if (p->cell_clip > 0.0f) {
        value = tinyfuse_greater_f32(tinyfuse_lesser_f32(value, p->cell_clip), -p->cell_clip);
    }
    *cell = value;
    return tinyfuse_lstm_finite_f32(tinyfuse_product_f32(tinyfuse_tanh_f32(value), gate[3]));
}

/* State: hidden [batches][units], cell [batches][units]. Constants: weights [units][4][inputs + units], bias
   [units][4]. The output must not overlap the input. */
TINYFUSE_INLINE void tinyfuse_lstm_f32(const tinyfuse_lstm_f32_params *p, const float *in, float *hidden, float *cell,
                                       float *out, const float *weights, const float *bias)
{
    int32_t b, t, u;
    for (b = 0; b < p->batches; ++b) {
        for (t = 0; t < p->steps; ++t) {
            float *const now = out + b * p->out_batch + t * p->out_step;
            for (u = 0; u < p->units; ++u) {
                /* the other units still need the old hidden state */
                now[u] = tinyfuse_lstm_unit_f32(p, in + b * p->in_batch + t * p->in_step, hidden, cell + u,
                                                weights + 4 * u * (p->inputs + p->units), bias + 4 * u);
            }
            memcpy(hidden, now, (size_t)p->units * sizeof *hidden);
        }
        hidden += p->units;
        cell += p->units;
    }
}

#endif
