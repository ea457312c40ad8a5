/* Operators around the Fourier transform of int16 samples: window, automatic scaling, energies. */
#ifndef TINYFUSE_SIGNAL_WINDOW_H
#define TINYFUSE_SIGNAL_WINDOW_H

#include "tinyfuse_common.h"

/* in, out [frames][samples], weights [samples]: products are shifted right and saturated. */
TINYFUSE_INLINE void tinyfuse_signal_window(const int16_t *in, int16_t *out, const int16_t *weights, int32_t frames,
                                            int32_t samples, int32_t shift)
{
    int32_t f, i;
    for (f = 0; f < frames; ++f) {
        for (i = 0; i < samples; ++i) {
            const int32_t raw = (in[i] * weights[i]) >> shift;
            out[i] = (int16_t)(raw < INT16_MIN ? INT16_MIN : raw > INT16_MAX ? INT16_MAX : raw);
        }
        in += samples;
        out += samples;
    }
}

/* in, out [samples]: shifts left as far as the largest magnitude allows; bits [1] is the shift. The magnitude is
   computed as in TFLM: -32768 has none in int16, and discards the maximum of the samples before it. */
TINYFUSE_INLINE void tinyfuse_signal_auto_scale(const int16_t *in, int16_t *out, int32_t *bits, int32_t samples)
{
    int32_t i, largest = 0, shift = 0;
    for (i = 0; i < samples; ++i) {
        const int32_t value = in[i];
        if (value > largest) {
            largest = value;
        } else if (-value > largest) {
            largest = value == INT16_MIN ? INT16_MIN : -value;
        } else {
            /* not larger than the largest so far */
        }
    }
    if (largest > 0) {
        while (largest < 1 << 14) {
            largest *= 2;
            ++shift;
        }
    }
    for (i = 0; i < samples; ++i) {
        out[i] = (int16_t)(in[i] * (1 << shift));
    }
    *bits = shift;
}

/* in [2 * bins], real and imaginary parts interleaved. out [bins]: squared magnitudes of bins `start` to `end` - 1,
   0 elsewhere. */
TINYFUSE_INLINE void tinyfuse_signal_energy(const int16_t *in, uint32_t *out, int32_t bins, int32_t start, int32_t end)
{
    int32_t i;
    memset(out, 0, (size_t)start * sizeof *out);
    for (i = start; i < end; ++i) {
        const int32_t real = in[2 * i], imaginary = in[2 * i + 1];
        out[i] = (uint32_t)(real * real) + (uint32_t)(imaginary * imaginary);
    }
    memset(out + end, 0, (size_t)(bins - end) * sizeof *out);
}

#endif
