/* LSTM of int8 with an int16 cell state. Gates are in the order forget, input, cell, output. */
#ifndef TINYFUSE_LSTM_H
#define TINYFUSE_LSTM_H

#include "tinyfuse_dot.h"
#include "tinyfuse_requantize.h"

/* A real multiplier for tinyfuse_requantize. */
typedef struct {
    int32_t multiplier;
    int32_t shift;
} tinyfuse_scale;

/* `in_batch` and `in_step`: distances of inputs between batches and between steps; `out_batch` and `out_step`: the
   same of outputs. `cell_clip` 0: no clipping. `tanh_multiplier` and `tanh_shift` (to the right) rescale the cell
   to the input of tanh. */
typedef struct {
    int32_t batches, steps, inputs, units;
    int32_t in_batch, in_step, out_batch, out_step;
    int32_t hidden_zero_point, cell_clip, tanh_multiplier, tanh_shift;
    tinyfuse_scale of_input[4], of_hidden[4], forget, entry, shown;
} tinyfuse_lstm;

TINYFUSE_INLINE int32_t tinyfuse_to_int16(int32_t value)
{
    return tinyfuse_clamp(value, INT16_MIN, INT16_MAX);
}

TINYFUSE_INLINE int32_t tinyfuse_rescale_to_int16(int32_t value, tinyfuse_scale scale)
{
    return tinyfuse_to_int16(tinyfuse_requantize(value, scale.multiplier, scale.shift));
}

/* Interpolates between two entries of a table, which are 2^bits apart; the result is times 2^bits. size >> bits is
   at most 254. */
TINYFUSE_INLINE int32_t tinyfuse_interpolate(const uint16_t *table, int32_t size, int32_t bits)
{
    const int32_t low = table[size >> bits], high = table[(size >> bits) + 1];
    return (low << bits) + (size & ((1 << bits) - 1)) * (high - low);
}

/* 1 / (1 + exp(-x)) in Q0.15 of an int16 in Q3.12. `table` has 65536 / (1 + exp(-i / 24)), i in 0..255, rounded as
   in TensorFlow Lite Micro; sigmoid and tanh both interpolate it. */
TINYFUSE_INLINE int32_t tinyfuse_logistic_int16(const uint16_t *table, int32_t value)
{
    const int32_t scaled = value * 3;
    const int32_t size = scaled < 0 ? -scaled : scaled;
    const int32_t found = size >> 9 >= 255 ? 0x7FFF << 10 : tinyfuse_interpolate(table, size, 9);
    return (scaled < 0 ? (1 << 25) - found + (1 << 9) - 1 : found + (1 << 9)) >> 10;
}

/* tanh in Q0.15 of an int16 that multiplier and right shift rescale to 3/4 of Q3.12. */
TINYFUSE_INLINE int32_t tinyfuse_tanh_int16(const uint16_t *table, int32_t value, int32_t multiplier,
                                            int32_t shift)
{
    const int32_t half = shift > 0 ? 1 << (shift - 1) : 0;
    const int32_t scaled = (value * multiplier + half) >> shift;
    const int32_t size = scaled < 0 ? -scaled : scaled;
    const int32_t found = size >> 8 >= 255 ? 0xFFFF << 8 : tinyfuse_interpolate(table, size, 8);
    return (scaled < 0 ? (1 << 23) - found + (1 << 7) - 1 : found - (1 << 23) + (1 << 7)) >> 8;
}

/* Updates a unit's cell from its gates; returns the new hidden state, not clamped. */
TINYFUSE_INLINE int32_t tinyfuse_lstm_advance(const tinyfuse_lstm *p, const int32_t *gate, int16_t *cell,
                                              const uint16_t *table)
{
    const int32_t entered = tinyfuse_rescale_to_int16(gate[1] * gate[2], p->entry);
    int32_t value = tinyfuse_to_int16(tinyfuse_rescale_to_int16(gate[0] * *cell, p->forget) + entered);
    int32_t shown;
    if (p->cell_clip > 0) {
        value = tinyfuse_clamp(value, -p->cell_clip, p->cell_clip);
    }
    *cell = (int16_t)value;
    shown = tinyfuse_tanh_int16(table, value, p->tanh_multiplier, p->tanh_shift) * gate[3];
    return tinyfuse_requantize(shown, p->shown.multiplier, p->shown.shift) + p->hidden_zero_point;
}

/* A gate's nonlinearity of its sums with the input and with the hidden state. */
TINYFUSE_INLINE int32_t tinyfuse_lstm_gate(int32_t g, int32_t of_input, int32_t of_hidden, const uint16_t *table)
{
    const int32_t sum = tinyfuse_to_int16(of_input + of_hidden);
    return g == 2 ? tinyfuse_tanh_int16(table, sum, 3, 0) : tinyfuse_logistic_int16(table, sum);
}

/* One unit's step: updates the cell, returns the new hidden state. `weights` [4][inputs + units] and `bias` [2][4]
   are the unit's own. A bias is the initial value of a gate's products with the input or the hidden state, and
   includes -zero point * sum of weights. */
TINYFUSE_INLINE int8_t tinyfuse_lstm_unit(const tinyfuse_lstm *p, const int8_t *in, const int8_t *hidden,
                                          int16_t *cell, const int8_t *weights,
                                          const int32_t *bias, const uint16_t *table)
{
    int32_t of_input[4], of_hidden[4], gate[4];
    int32_t g;
    memcpy(of_input, bias, sizeof of_input);
    memcpy(of_hidden, bias + 4, sizeof of_hidden);
    tinyfuse_dots_s8(in, weights, p->inputs + p->units, p->inputs, of_input);
    tinyfuse_dots_s8(hidden, weights + p->inputs, p->inputs + p->units, p->units, of_hidden);
    for (g = 0; g < 4; ++g) {
        gate[g] = tinyfuse_lstm_gate(g, tinyfuse_rescale_to_int16(of_input[g], p->of_input[g]),
                                     tinyfuse_rescale_to_int16(of_hidden[g], p->of_hidden[g]), table);
    }
    return (int8_t)tinyfuse_clamp(tinyfuse_lstm_advance(p, gate, cell, table), INT8_MIN, INT8_MAX);
}

/* State: hidden [batches][units], cell [batches][units]. Constants: weights [units][4][inputs + units], bias
   [units][2][4]. The output must not overlap the input. */
TINYFUSE_INLINE void tinyfuse_lstm_s8(const tinyfuse_lstm *p, const int8_t *in, int8_t *hidden,
                                      int16_t *cell, int8_t *out, const int8_t *weights,
                                      const int32_t *bias, const uint16_t *table)
{
    int32_t b, t, u;
    for (b = 0; b < p->batches; ++b) {
        for (t = 0; t < p->steps; ++t) {
            int8_t *const now = out + b * p->out_batch + t * p->out_step;
            for (u = 0; u < p->units; ++u) {
                /* the other units still need the old hidden state */
                now[u] = tinyfuse_lstm_unit(p, in + b * p->in_batch + t * p->in_step, hidden, cell + u,
                                            weights + 4 * u * (p->inputs + p->units), bias + 8 * u, table);
            }
            memcpy(hidden, now, (size_t)p->units);
        }
        hidden += p->units;
        cell += p->units;
    }
}

#endif
