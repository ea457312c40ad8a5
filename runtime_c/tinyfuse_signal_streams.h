/* Splits streams into frames and joins frames to streams. Earlier samples that are still needed are kept as state. */
#ifndef TINYFUSE_SIGNAL_STREAMS_H
#define TINYFUSE_SIGNAL_STREAMS_H

#include "tinyfuse_common.h"
#include "tinyfuse_float.h"

/* Drops the first `drop` of `count` samples and appends samples of `in`, so that count - drop + added samples are
   left. If drop > count, the first samples of `in` are dropped too; drop <= count + added. */
TINYFUSE_INLINE void tinyfuse_signal_shift(int16_t *history, int32_t count, int32_t drop, const int16_t *in,
                                           int32_t added)
{
    const int32_t stay = count > drop ? count - drop : 0;
    const int32_t skip = count > drop ? 0 : drop - count;
    memmove(history, history + (count - stay), (size_t)stay * sizeof *history);
    memcpy(history + stay, in + skip, (size_t)(added - skip) * sizeof *history);
}

/* Copies the first `wanted` samples of history [count] followed by in. */
TINYFUSE_INLINE void tinyfuse_signal_take(int16_t *out, const int16_t *history, int32_t count, const int16_t *in,
                                          int32_t wanted)
{
    const int32_t old = count < wanted ? count : wanted;
    memcpy(out, history, (size_t)old * sizeof *out);
    memcpy(out + old, in, (size_t)(wanted - old) * sizeof *out);
}

/* in [streams][steps][step], out [streams][steps][size], history [streams][kept]. kept_count[0]: samples that history
   holds. A frame without enough samples is all zeros, and valid[0] becomes 0. */
TINYFUSE_INLINE void tinyfuse_signal_frames(const int16_t *in, int16_t *history, int32_t *kept_count, int16_t *out,
                                            uint8_t *valid, int32_t streams, int32_t steps, int32_t step, int32_t size,
                                            int32_t kept)
{
    int32_t count = *kept_count, s, f;
    *valid = 1;
    for (s = 0; s < streams; ++s, history += kept) {
        count = *kept_count;
        for (f = 0; f < steps; ++f, in += step, out += size) {
            const int complete = count + step >= size;
            if (complete != 0) {
                tinyfuse_signal_take(out, history, count, in, size);
            } else {
                memset(out, 0, (size_t)size * sizeof *out);
                *valid = 0;
            }
            tinyfuse_signal_shift(history, count, complete ? step : 0, in, step);
            count += complete ? 0 : step;
        }
    }
    *kept_count = count;
}

/* in [channels], out [frames][channels]: a stack of the last frames. kept_count[0]: frames in history, -1 before the
   first frame, which is repeated `left` more times. After a complete stack `step` frames are dropped. */
TINYFUSE_INLINE void tinyfuse_signal_stack(const int16_t *in, int16_t *history, int32_t *kept_count, int16_t *out,
                                           uint8_t *valid, int32_t channels, int32_t frames, int32_t left, int32_t step)
{
    const int32_t before = *kept_count < 0 ? 0 : *kept_count;
    const int32_t there = before + (*kept_count < 0 ? left + 1 : 1);
    const size_t bytes = (size_t)channels * sizeof *in;
    int16_t *to = history;
    int32_t f;
    *valid = there >= frames;
    if (*valid != 0) {
        to = out;
        memcpy(out, history, (size_t)before * bytes);
    } else {
        memset(out, 0, (size_t)frames * bytes);
    }
    for (f = before; f < there; ++f) {
        memcpy(to + f * channels, in, bytes);
    }
    if (*valid != 0) {
        memcpy(history, out + step * channels, (size_t)(frames - step) * bytes);
    }
    *kept_count = *valid ? frames - step : there;
}

/* in, out [streams][samples], delayed [streams][length]. */
TINYFUSE_INLINE void tinyfuse_signal_delay(const int16_t *in, int16_t *delayed, int16_t *out, int32_t streams,
                                           int32_t samples, int32_t length)
{
    int32_t s;
    for (s = 0; s < streams; ++s, in += samples, out += samples, delayed += length) {
        tinyfuse_signal_take(out, delayed, length, in, samples);
        tinyfuse_signal_shift(delayed, length, samples, in, samples);
    }
}

TINYFUSE_INLINE int16_t tinyfuse_signal_added_s16(int32_t a, int32_t b)
{
    const int32_t sum = a + b;
    return (int16_t)(sum < INT16_MIN ? INT16_MIN : sum > INT16_MAX ? INT16_MAX : sum);
}

/* in [streams][frames][size], out [streams][frames][step], overlap [streams][size - step]. Adds each frame to the
   rest of the frames before it, and outputs the first `step` sums. */
TINYFUSE_INLINE void tinyfuse_signal_overlap_add_s16(const int16_t *in, int16_t *overlap, int16_t *out, int32_t streams,
                                                     int32_t frames, int32_t size, int32_t step)
{
    const int32_t kept = size - step;
    int32_t s, f, i;
    for (s = 0; s < streams; ++s, overlap += kept) {
        for (f = 0; f < frames; ++f, in += size, out += step) {
            for (i = 0; i < step; ++i) {
                out[i] = tinyfuse_signal_added_s16(i < kept ? overlap[i] : 0, in[i]);
            }
            for (i = 0; i < kept; ++i) {
                overlap[i] = tinyfuse_signal_added_s16(i + step < kept ? overlap[i + step] : 0, in[i + step]);
            }
        }
    }
}

TINYFUSE_INLINE void tinyfuse_signal_overlap_add_f32(const float *in, float *overlap, float *out, int32_t streams,
                                                     int32_t frames, int32_t size, int32_t step)
{
    const int32_t kept = size - step;
    int32_t s, f, i;
    for (s = 0; s < streams; ++s, overlap += kept) {
        for (f = 0; f < frames; ++f, in += size, out += step) {
            for (i = 0; i < step; ++i) {
                out[i] = tinyfuse_rounded(tinyfuse_rounded(i < kept ? overlap[i] : 0.0f) + in[i]);
            }
            for (i = 0; i < kept; ++i) {
                overlap[i] = tinyfuse_rounded(tinyfuse_rounded(i + step < kept ? overlap[i + step] : 0.0f) + in[i + step]);
            }
        }
    }
}

#endif
