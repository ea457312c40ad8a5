/* LSTM of int16 with int8 weights and an int16 cell: sums of gates have 64 bits and are rounded once. */
#ifndef TINYFUSE_LSTM_S16_H
#define TINYFUSE_LSTM_S16_H

#include "tinyfuse_lstm.h"
#include "tinyfuse_requantize_s16.h"

/* bias + products of int16 inputs with int8 weights. Partial sums of 256 products fit 32 bits. */
TINYFUSE_INLINE int64_t tinyfuse_dot_s16(const int16_t *in, const int8_t *weights, int32_t count, int64_t bias)
{
    while (count > 0) {
        const int32_t some = tinyfuse_min(count, 256);
        int32_t i, sum = 0;
        for (i = 0; i < some; ++i) {
            sum += in[i] * weights[i];
        }
        bias = tinyfuse_add_s64(bias, sum);
        in += some;
        weights += some;
        count -= some;
    }
    return bias;
}

TINYFUSE_INLINE int32_t tinyfuse_rescale_s64_to_int16(int64_t value, tinyfuse_scale scale)
{
    return tinyfuse_to_int16(tinyfuse_requantize_s64(value, scale.multiplier, scale.shift));
}

/* Like tinyfuse_lstm_unit; of_input and of_hidden are multipliers for tinyfuse_requantize_s64. */
TINYFUSE_INLINE int16_t tinyfuse_lstm_unit_s16(const tinyfuse_lstm *p, const int16_t *in, const int16_t *hidden,
                                               int16_t *cell, const int8_t *weights,
                                               const int64_t *bias, const uint16_t *table)
{
    int32_t gate[4];
    int32_t g;
    for (g = 0; g < 4; ++g) {
        const int64_t of_input = tinyfuse_dot_s16(in, weights, p->inputs, bias[g]);
        const int64_t of_hidden = tinyfuse_dot_s16(hidden, weights + p->inputs, p->units, bias[4 + g]);
        gate[g] = tinyfuse_lstm_gate(g, tinyfuse_rescale_s64_to_int16(of_input, p->of_input[g]),
                                     tinyfuse_rescale_s64_to_int16(of_hidden, p->of_hidden[g]), table);
        weights += p->inputs + p->units;
    }
    return (int16_t)tinyfuse_to_int16(tinyfuse_lstm_advance(p, gate, cell, table));
}

/* Like tinyfuse_lstm_s8. */
TINYFUSE_INLINE void tinyfuse_lstm_s16(const tinyfuse_lstm *p, const int16_t *in, int16_t *hidden,
                                       int16_t *cell, int16_t *out, const int8_t *weights,
                                       const int64_t *bias, const uint16_t *table)
{
    int32_t b, t, u;
    for (b = 0; b < p->batches; ++b) {
        for (t = 0; t < p->steps; ++t) {
            int16_t *const now = out + b * p->out_batch + t * p->out_step;
            for (u = 0; u < p->units; ++u) {
                /* the other units still need the old hidden state */
                now[u] = tinyfuse_lstm_unit_s16(p, in + b * p->in_batch + t * p->in_step, hidden, cell + u,
                                                weights + 4 * u * (p->inputs + p->units), bias + 8 * u, table);
            }
            memcpy(hidden, now, (size_t)p->units * sizeof *hidden);
        }
        hidden += p->units;
        cell += p->units;
    }
}

#endif
