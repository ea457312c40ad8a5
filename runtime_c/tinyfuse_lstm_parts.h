/* Packs weights and biases of an LSTM that are computed at run time into the layout of its kernels. */
#ifndef TINYFUSE_LSTM_PARTS_H
#define TINYFUSE_LSTM_PARTS_H

#include "tinyfuse_common.h"

/* Operands for the gates forget, input, cell, output: weights [units, inputs] and [units, units] of `item` bytes an
   element, and biases [units]. */
typedef struct {
    int32_t inputs, units, item, in_zero_point, hidden_zero_point;
    const void *of_input[4], *of_hidden[4], *bias[4];
} tinyfuse_lstm_parts;

/* Fills [units, 4 gates, inputs + units] at `offset` bytes of `scratch`. */
TINYFUSE_SHARED void tinyfuse_lstm_rows(const tinyfuse_lstm_parts *p, void *scratch, size_t offset)
{
    const size_t input_bytes = (size_t)(p->inputs * p->item), hidden_bytes = (size_t)(p->units * p->item);
    uint8_t *to = (uint8_t *)scratch + offset;
    size_t u;
    int32_t g;
    for (u = 0; u < (size_t)p->units; ++u) {
        for (g = 0; g < 4; ++g) {
            memcpy(to, (const uint8_t *)p->of_input[g] + u * input_bytes, input_bytes);
            to += input_bytes;
            memcpy(to, (const uint8_t *)p->of_hidden[g] + u * hidden_bytes, hidden_bytes);
            to += hidden_bytes;
        }
    }
}

/* Returns the sum of `count` weights. */
TINYFUSE_INLINE int64_t tinyfuse_lstm_weight_sum(const int8_t *weights, int32_t count)
{
    int64_t sum = 0;
    int32_t i;
    for (i = 0; i < count; ++i) {
        sum += weights[i];
    }
    return sum;
}

/* Fills `to` [units, 2, 4 gates]: initial sums of the products with stored inputs, and with the stored hidden
   state. */
#define TINYFUSE_DEFINE_LSTM_BIASES(name, type)                                                             \
    TINYFUSE_INLINE void tinyfuse_lstm_biases_##name(const tinyfuse_lstm_parts *p, void *to)                \
    {                                                                                                       \
        type *next = (type *)to;                                                                            \
        int32_t u, g;                                                                                       \
        for (u = 0; u < p->units; ++u) {                                                                    \
            for (g = 0; g < 4; ++g) {                                                                       \
                const int8_t *const of_input = (const int8_t *)p->of_input[g] + u * p->inputs;              \
                const int8_t *const of_hidden = (const int8_t *)p->of_hidden[g] + u * p->units;             \
                const int64_t sum = p->in_zero_point * tinyfuse_lstm_weight_sum(of_input, p->inputs);       \
                const uint64_t bias = (uint64_t)((const type *)p->bias[g])[u];                              \
                next[g] = (type)(bias - (uint64_t)sum); /* wraps around as the sums do */                          \
                next[g + 4] = (type)-(p->hidden_zero_point * tinyfuse_lstm_weight_sum(of_hidden, p->units)); \
            }                                                                                               \
            next += 8;                                                                                      \
        }                                                                                                   \
    }

TINYFUSE_DEFINE_LSTM_BIASES(s8, int32_t)
TINYFUSE_DEFINE_LSTM_BIASES(s16, int64_t)

/* Fills `to` [units, 4 gates]. */
TINYFUSE_INLINE void tinyfuse_lstm_biases_f32(const tinyfuse_lstm_parts *p, void *to)
{
    float *next = (float *)to;
    int32_t u, g;
    for (u = 0; u < p->units; ++u) {
        for (g = 0; g < 4; ++g) {
            *next++ = ((const float *)p->bias[g])[u];
        }
    }
}

#endif
