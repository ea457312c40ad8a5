/* Channels of a filter bank over a spectrum's energies, and their post-processing: square roots, noise, gain,
   logarithm. All arithmetic is unsigned and wraps around. */
#ifndef TINYFUSE_SIGNAL_FILTER_BANK_H
#define TINYFUSE_SIGNAL_FILTER_BANK_H

#include "tinyfuse_common.h"

/* bins, starts, widths [channels + 1]: first energy, first weight and number of energies of each channel, plus one
   entry before the first channel. An energy times its weight is added to its channel; times its unweight, to the
   next channel. */
TINYFUSE_INLINE void tinyfuse_signal_filter_bank(const uint32_t *energies, uint64_t *out, const int16_t *weights,
                                                 const int16_t *unweights, const int16_t *bins, const int16_t *starts,
                                                 const int16_t *widths, int32_t channels)
{
    uint64_t carried = 0;
    int32_t c, i;
    for (c = 0; c <= channels; ++c) {
        uint64_t total = carried, rest = 0;
        for (i = 0; i < widths[c]; ++i) {
            const uint64_t energy = energies[bins[c] + i];
            total += (uint64_t)(int64_t)weights[starts[c] + i] * energy;
            rest += (uint64_t)(int64_t)unweights[starts[c] + i] * energy;
        }
        if (c > 0) {
            out[c - 1] = total;
        }
        carried = rest;
    }
}

/* Defines a function that returns the integer nearest to the square root of a value of `bits` bits, at most `most`. */
#define TINYFUSE_SIGNAL_ROOT(name, type, bits, most)                                               \
    TINYFUSE_INLINE uint32_t name(type value)                                                      \
    {                                                                                              \
        type root = 0, bit = (type)1 << ((bits)-2);                                                \
        while (bit > value) {                                                                      \
            bit >>= 2;                                                                             \
        }                                                                                          \
        for (; bit != 0; bit >>= 2) {                                                              \
            if (value >= root + bit) {                                                             \
                value -= root + bit;                                                               \
                root = (root >> 1) + bit;                                                          \
            } else {                                                                               \
                root >>= 1;                                                                        \
            }                                                                                      \
        }                                                                                          \
        return (uint32_t)(value > root && root != (most) ? root + 1u : root);                      \
    }
TINYFUSE_SIGNAL_ROOT(tinyfuse_signal_root_32, uint32_t, 32, 0xFFFFu)
TINYFUSE_SIGNAL_ROOT(tinyfuse_signal_root_64, uint64_t, 64, 0xFFFFFFFFu)

/* Computes square roots, shifted right by the low five bits of bits[0]. Roots of values below 2^32 are rounded
   within 16 bits, which is one too little just below 2^32. */
TINYFUSE_INLINE void tinyfuse_signal_roots(const uint64_t *in, const int32_t *bits, uint32_t *out, int32_t channels)
{
    const uint32_t shift = (uint32_t)*bits & 31u;
    int32_t c;
    for (c = 0; c < channels; ++c) {
        const uint64_t value = in[c];
        const uint32_t root =
            value >> 32 == 0 ? tinyfuse_signal_root_32((uint32_t)value) : tinyfuse_signal_root_64(value);
        out[c] = root >> shift;
    }
}

/* Smoothing weights with `bits` fraction bits: [0] for even channels, [1] for odd ones. */
typedef struct {
    int32_t channels, smoothing_bits, bits, clamping;
    uint32_t smoothing[2], one_minus_smoothing[2], min_signal_remaining;
} tinyfuse_noise;

/* Subtracts a smoothed noise estimate from each channel. noise [channels] is the state, estimate its copy as an
   output. */
TINYFUSE_INLINE void tinyfuse_signal_subtract_noise(const tinyfuse_noise *p, const uint32_t *in, uint32_t *noise,
                                                    uint32_t *out, uint32_t *estimate)
{
    int32_t c;
    for (c = 0; c < p->channels; ++c) {
        const uint32_t scaled = in[c] << p->smoothing_bits;
        const uint32_t smoothed = (uint32_t)(((uint64_t)scaled * p->smoothing[c & 1] +
                                              (uint64_t)noise[c] * p->one_minus_smoothing[c & 1]) >>
                                             p->bits);
        const uint32_t taken = smoothed > scaled ? scaled : smoothed;
        const uint32_t least = (uint32_t)(((uint64_t)in[c] * p->min_signal_remaining) >> p->bits);
        const uint32_t left = (scaled - taken) >> p->smoothing_bits;
        noise[c] = p->clamping ? taken : smoothed;
        estimate[c] = noise[c];
        out[c] = left > least ? left : least;
    }
}

/* Interpolates the gain table: a polynomial of second degree within each octave. */
TINYFUSE_INLINE int16_t tinyfuse_signal_gain(uint32_t noise, const int16_t *table)
{
    int32_t octave = 0, place, value;
    if (noise <= 2) {
        return table[noise];
    }
    while (octave < 32 && noise >> octave != 0) {
        ++octave;
    }
    table += 4 * octave - 6;
    place = (int32_t)((octave < 11 ? noise << (11 - octave) : noise >> (octave - 11)) & 0x3FF);
    value = (table[2] * place) >> 5;
    value += table[1] * 32;
    value = (value * place + (1 << 14)) >> 15;
    return (int16_t)(value + table[0]);
}

/* Multiplies channels by the gain at their noise and shifts right: ratios with 12 fraction bits. Outputs, with 6
   fraction bits, are x^2 / 4 for ratios x below 2, otherwise x - 1. */
TINYFUSE_INLINE void tinyfuse_signal_pcan(const uint32_t *in, const uint32_t *noise, uint32_t *out,
                                          const int16_t *gains, int32_t channels, int32_t shift)
{
    int32_t c;
    for (c = 0; c < channels; ++c) {
        const uint32_t gain = (uint32_t)(int32_t)tinyfuse_signal_gain(noise[c], gains);
        const uint32_t ratio = (uint32_t)(((uint64_t)in[c] * gain) >> shift);
        out[c] = ratio < (uint32_t)2 << 12 ? (ratio * ratio) >> 20 : (ratio >> 6) - ((uint32_t)1 << 6);
    }
}

/* The natural logarithm of a value of at least 2, times `scale`. table [129]: log2(1 + x) - x at each 128th. */
TINYFUSE_INLINE uint32_t tinyfuse_signal_log(uint32_t value, uint32_t scale, const uint16_t *table)
{
    uint32_t power = 31, fraction, segment, natural;
    int32_t step;
    while (!(value >> power)) {
        --power;
    }
    fraction = value - ((uint32_t)1 << power);
    fraction = power < 16 ? fraction << (16 - power) : fraction >> (power - 16);
    segment = fraction >> 9;
    step = ((int32_t)table[segment + 1] - (int32_t)table[segment]) * (int32_t)(fraction - (segment << 9));
    fraction += table[segment] + (uint32_t)(step >> 16);
    fraction += power << 16; /* now the logarithm to base 2 */
    natural = (uint32_t)(((uint64_t)45426u * fraction + 32768u) >> 16);
    return (scale * natural + 32768u) >> 16;
}

TINYFUSE_INLINE void tinyfuse_signal_logs(const uint32_t *in, int16_t *out, const uint16_t *table, int32_t channels,
                                          uint32_t scale, int32_t correction_bits)
{
    int32_t c;
    for (c = 0; c < channels; ++c) {
        const uint32_t value = in[c] << correction_bits;
        const uint32_t log = value > 1 ? tinyfuse_signal_log(value, scale, table) : 0;
        out[c] = (int16_t)(log < INT16_MAX ? log : INT16_MAX);
    }
}

#endif
