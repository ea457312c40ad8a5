/* SOFTMAX of int16 over the last dimension with tables of 513 entries, as in TensorFlow Lite Micro. */
#ifndef TINYFUSE_SOFTMAX_S16_H
#define TINYFUSE_SOFTMAX_S16_H

#include "tinyfuse_fixed_point.h"
#include "tinyfuse_requantize.h"

typedef struct {
    int32_t rows, depth;
    int32_t multiplier, shift; /* from a difference of stored values to one where 65535 means 10 */
    const int16_t *exps, *reciprocals;
} tinyfuse_softmax_s16;

/* Interpolates between the entries of a table, which are 128 values apart. */
TINYFUSE_INLINE int32_t tinyfuse_between_entries(const int16_t *table, int32_t value)
{
    const int16_t *const entry = table + 256 + (value >> 7);
    return entry[0] + (((entry[1] - entry[0]) * (value & 127) + 64) >> 7);
}

TINYFUSE_INLINE int32_t tinyfuse_saturated_s16(int32_t value)
{
    return tinyfuse_clamp(value, INT16_MIN, INT16_MAX);
}

/* Goes forward: `out`, which holds the exps meanwhile, may be `in`. */
TINYFUSE_INLINE void tinyfuse_softmax_rows_s16(const tinyfuse_softmax_s16 *p, const int16_t *in, int16_t *out)
{
    int32_t row, i;
    for (row = 0; row < p->rows; ++row) {
        int32_t most = INT16_MIN, sum = 0, headroom, reciprocal, shift;
        for (i = 0; i < p->depth; ++i) {
            most = tinyfuse_max(most, in[i]);
        }
        for (i = 0; i < p->depth; ++i) {
            const int32_t scaled = tinyfuse_requantize(in[i] - most, p->multiplier, p->shift);
            const int32_t value = tinyfuse_between_entries(p->exps, tinyfuse_saturated_s16(scaled + INT16_MAX));
            out[i] = (int16_t)value;
            sum += value;
        }
        headroom = tinyfuse_leading_zeros((uint32_t)sum);
        shift = 31 - headroom;
        reciprocal = (int32_t)((((uint32_t)sum << (headroom - 1)) + (1u << 13)) >> 14) - (1 << 15) - (1 << 16);
        reciprocal = tinyfuse_between_entries(p->reciprocals, tinyfuse_saturated_s16(reciprocal));
        for (i = 0; i < p->depth; ++i) {
            const int32_t share = (out[i] * reciprocal + (1 << (shift - 1))) >> shift;
            out[i] = (int16_t)tinyfuse_clamp(share, 0, INT16_MAX);
        }
        in += p->depth;
        out += p->depth;
    }
}

#endif
