/* Average and max pooling, int8 NHWC, one output row a call. */
#ifndef TINYFUSE_POOL_H
#define TINYFUSE_POOL_H

#include "tinyfuse_requantize.h"

typedef struct {
    int32_t in_h, in_w, channels;
    int32_t in_ring; /* rows of the input that memory holds */
    int32_t out_w;
    int32_t filter_h, filter_w, stride_h, stride_w, pad_top, pad_left;
    int32_t act_min, act_max;
} tinyfuse_pool;

/* The real input rows and columns [from, to) of one window. */
typedef struct {
    int32_t y_from, y_to, x_from, x_to;
} tinyfuse_pool_window;

TINYFUSE_INLINE tinyfuse_pool_window tinyfuse_pool_window_at(const tinyfuse_pool *p, int32_t y,
                                                             int32_t x)
{
    const int32_t top = y * p->stride_h - p->pad_top;
    const int32_t left = x * p->stride_w - p->pad_left;
    tinyfuse_pool_window w;
    w.y_from = tinyfuse_max(top, 0);
    w.y_to = tinyfuse_min(top + p->filter_h, p->in_h);
    w.x_from = tinyfuse_max(left, 0);
    w.x_to = tinyfuse_min(left + p->filter_w, p->in_w);
    return w;
}

/* The mean of `count` values with halves away from zero. */
TINYFUSE_INLINE int32_t tinyfuse_mean_of(int32_t sum, int32_t count)
{
    return sum > 0 ? (sum + count / 2) / count : (sum - count / 2) / count;
}

TINYFUSE_INLINE void tinyfuse_average_pool_row_s8(const tinyfuse_pool *p, const int8_t *in, int32_t y,
                                                  int8_t *out_row)
{
    const int32_t row_bytes = p->in_w * p->channels;
    int32_t x, c, i, iy, ix;
    for (x = 0; x < p->out_w; ++x) {
        const tinyfuse_pool_window w = tinyfuse_pool_window_at(p, y, x);
        const int32_t count = (w.y_to - w.y_from) * (w.x_to - w.x_from);
        int8_t *const out = out_row + x * p->channels;
        for (c = 0; c < p->channels; c += 4) {
            /* four channels a word, where there are four */
            const int32_t lanes = tinyfuse_min(p->channels - c, 4);
            int32_t sum[4] = {0, 0, 0, 0};
            for (iy = w.y_from; iy < w.y_to; ++iy) {
                const int8_t *from = tinyfuse_ring_row(in, iy, p->in_ring, row_bytes);
                from += w.x_from * p->channels + c;
                if (lanes == 4) {
                    for (ix = w.x_from; ix < w.x_to; ++ix) {
                        const uint32_t word = tinyfuse_load_u32(from);
                        sum[0] += (int8_t)word;
                        sum[1] += (int8_t)(word >> 8);
                        sum[2] += (int8_t)(word >> 16);
                        sum[3] += (int8_t)(word >> 24);
                        from += p->channels;
                    }
                } else {
                    for (ix = w.x_from; ix < w.x_to; ++ix) {
                        for (i = 0; i < lanes; ++i) {
                            sum[i] += from[i];
                        }
                        from += p->channels;
                    }
                }
            }
            for (i = 0; i < lanes; ++i) {
                const int32_t mean = tinyfuse_mean_of(sum[i], count);
                out[c + i] = (int8_t)tinyfuse_clamp(mean, p->act_min, p->act_max);
            }
        }
    }
}

TINYFUSE_INLINE void tinyfuse_max_pool_row_s8(const tinyfuse_pool *p, const int8_t *in, int32_t y,
                                              int8_t *out_row)
{
    const int32_t row_bytes = p->in_w * p->channels;
    int32_t x, c, iy, ix;
    for (x = 0; x < p->out_w; ++x) {
        const tinyfuse_pool_window w = tinyfuse_pool_window_at(p, y, x);
        int8_t *const out = out_row + x * p->channels;
        for (c = 0; c < p->channels; ++c) {
            int32_t most = -128;
            for (iy = w.y_from; iy < w.y_to; ++iy) {
                const int8_t *from = tinyfuse_ring_row(in, iy, p->in_ring, row_bytes);
                from += w.x_from * p->channels + c;
                for (ix = w.x_from; ix < w.x_to; ++ix) {
                    most = tinyfuse_max(most, *from);
                    from += p->channels;
                }
            }
            out[c] = (int8_t)tinyfuse_clamp(most, p->act_min, p->act_max);
        }
    }
}

/* out[c] = previous[c] + the sum of channel c over `width` pixels; `previous` may be `out`, NULL
   counts as zeros. */
TINYFUSE_INLINE void tinyfuse_row_sum_s8(const int8_t *in, const int32_t *previous, int32_t *out,
                                         int32_t width, int32_t channels)
{
    int32_t c = 0, x;
    for (; c + 4 <= channels; c += 4) {
        /* four channels a word */
        const int8_t *from = in + c;
        int32_t a = 0, b = 0, d = 0, e = 0;
        if (previous != NULL) {
            a = previous[c];
            b = previous[c + 1];
            d = previous[c + 2];
            e = previous[c + 3];
        }
        for (x = 0; x < width; ++x) {
            const uint32_t word = tinyfuse_load_u32(from);
            a += (int8_t)word;
            b += (int8_t)(word >> 8);
            d += (int8_t)(word >> 16);
            e += (int8_t)(word >> 24);
            from += channels;
        }
        out[c] = a;
        out[c + 1] = b;
        out[c + 2] = d;
        out[c + 3] = e;
    }
    for (; c < channels; ++c) {
        const int8_t *from = in + c;
        int32_t sum = previous != NULL ? previous[c] : 0;
        for (x = 0; x < width; ++x) {
            sum += *from;
            from += channels;
        }
        out[c] = sum;
    }
}

/* The means of `count` values whose sums are given. */
TINYFUSE_INLINE void tinyfuse_average_of_sum(const int32_t *sum, int8_t *out, int32_t channels,
                                             int32_t count, int32_t low, int32_t high)
{
    int32_t c;
    for (c = 0; c < channels; ++c) {
        out[c] = (int8_t)tinyfuse_clamp(tinyfuse_mean_of(sum[c], count), low, high);
    }
}

#endif
