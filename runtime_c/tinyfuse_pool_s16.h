/* Average and max pooling, int16 NHWC, one output row a call. */
#ifndef TINYFUSE_POOL_S16_H
#define TINYFUSE_POOL_S16_H

#include "tinyfuse_pool.h"
#include "tinyfuse_pool_row.h"

typedef struct {
    tinyfuse_pool_shape shape;
    int32_t act_min, act_max;
} tinyfuse_pool_s16;

TINYFUSE_INLINE int16_t tinyfuse_pool_mean_s16(const tinyfuse_pool_s16 *p, int32_t sum, int32_t count)
{
    return (int16_t)tinyfuse_clamp(tinyfuse_mean_of(sum, count), p->act_min, p->act_max);
}

#if TINYFUSE_MVE

/* Computes one output pixel, eight channels at a time. */
TINYFUSE_INLINE void tinyfuse_average_window_s16(const tinyfuse_pool_s16 *p, const tinyfuse_pool_pixels *w,
                                                 const int16_t *first, int16_t *out)
{
    const int32_t channels = p->shape.channels, count = w->rows * w->columns;
    int32_t c, i, j;
    for (c = 0; c < channels; c += 8) {
        const int32_t some = tinyfuse_min(8, channels - c);
        const mve_pred16_t lanes = vctp16q((uint32_t)some);
        const int16_t *row = first + c;
        int32x4_t even = vdupq_n_s32(0), odd = vdupq_n_s32(0);
        int32_t sums[8];
        for (i = 0; i < w->rows; ++i) {
            const int16_t *from = row;
            for (j = 0; j < w->columns; ++j) {
                const int16x8_t values = vldrhq_z_s16(from, lanes);
                even = vaddq_s32(even, vmovlbq_s16(values));
                odd = vaddq_s32(odd, vmovltq_s16(values));
                from += channels;
            }
            row += tinyfuse_pool_step(&p->shape, w, i);
        }
        vstrwq_s32(sums, even);
        vstrwq_s32(sums + 4, odd);
        for (i = 0; i < some; ++i) {
            out[c + i] = tinyfuse_pool_mean_s16(p, sums[i / 2 + i % 2 * 4], count);
        }
    }
}

TINYFUSE_INLINE void tinyfuse_max_window_s16(const tinyfuse_pool_s16 *p, const tinyfuse_pool_pixels *w,
                                             const int16_t *first, int16_t *out)
{
    const int32_t channels = p->shape.channels;
    int32_t c, i, j;
    for (c = 0; c < channels; c += 8) {
        const mve_pred16_t lanes = vctp16q((uint32_t)(channels - c));
        const int16_t *row = first + c;
        int16x8_t most = vdupq_n_s16((int16_t)p->act_min);
        for (i = 0; i < w->rows; ++i) {
            const int16_t *from = row;
            for (j = 0; j < w->columns; ++j) {
                most = vmaxq_s16(most, vldrhq_z_s16(from, lanes));
                from += channels;
            }
            row += tinyfuse_pool_step(&p->shape, w, i);
        }
        vstrhq_p_s16(out + c, vminq_s16(most, vdupq_n_s16((int16_t)p->act_max)), lanes);
    }
}

#else

/* The larger int16 in each half of a and b. */
TINYFUSE_INLINE uint32_t tinyfuse_max_halves(uint32_t a, uint32_t b)
{
#if TINYFUSE_DSP
    uint32_t most;
    __asm("ssub16 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(most) : "r"(a), "r"(b) : "cc");
    return most;
#else
    const uint32_t low = (uint32_t)tinyfuse_max((int16_t)a, (int16_t)b) & 0xFFFFu;
    return (uint32_t)tinyfuse_max((int16_t)(a >> 16), (int16_t)(b >> 16)) << 16 | low;
#endif
}

/* Computes one output pixel, four channels at a time, two in a word. */
TINYFUSE_INLINE void tinyfuse_average_window_s16(const tinyfuse_pool_s16 *p, const tinyfuse_pool_pixels *w,
                                                 const int16_t *first, int16_t *out)
{
    const int32_t channels = p->shape.channels, count = w->rows * w->columns;
    int32_t c, i, j;
    for (c = 0; c + 4 <= channels; c += 4) {
        const int16_t *row = first + c;
        int32_t a = 0, b = 0, d = 0, e = 0;
        for (i = 0; i < w->rows; ++i) {
            const int16_t *from = row;
            for (j = 0; j < w->columns; ++j) {
                const int32_t low = (int32_t)tinyfuse_load_u32(from), high = (int32_t)tinyfuse_load_u32(from + 2);
                a += (int16_t)low;
                b += low >> 16;
                d += (int16_t)high;
                e += high >> 16;
                from += channels;
            }
            row += tinyfuse_pool_step(&p->shape, w, i);
        }
        out[c] = tinyfuse_pool_mean_s16(p, a, count);
        out[c + 1] = tinyfuse_pool_mean_s16(p, b, count);
        out[c + 2] = tinyfuse_pool_mean_s16(p, d, count);
        out[c + 3] = tinyfuse_pool_mean_s16(p, e, count);
    }
    for (; c < channels; ++c) {
        const int16_t *row = first + c;
        int32_t sum = 0;
        for (i = 0; i < w->rows; ++i) {
            for (j = 0; j < w->columns; ++j) {
                sum += row[j * channels];
            }
            row += tinyfuse_pool_step(&p->shape, w, i);
        }
        out[c] = tinyfuse_pool_mean_s16(p, sum, count);
    }
}

TINYFUSE_INLINE void tinyfuse_max_window_s16(const tinyfuse_pool_s16 *p, const tinyfuse_pool_pixels *w,
                                             const int16_t *first, int16_t *out)
{
    const int32_t channels = p->shape.channels;
    const uint32_t least = (uint16_t)p->act_min * 0x10001u, greatest = (uint16_t)p->act_max * 0x10001u;
    int32_t c, i, j;
    for (c = 0; c + 4 <= channels; c += 4) {
        const int16_t *row = first + c;
        uint32_t low = least, high = least;
        for (i = 0; i < w->rows; ++i) {
            const int16_t *from = row;
            for (j = 0; j < w->columns; ++j) {
                low = tinyfuse_max_halves(low, tinyfuse_load_u32(from));
                high = tinyfuse_max_halves(high, tinyfuse_load_u32(from + 2));
                from += channels;
            }
            row += tinyfuse_pool_step(&p->shape, w, i);
        }
        low = ~tinyfuse_max_halves(~low, ~greatest); /* ~ reverses the order */
        high = ~tinyfuse_max_halves(~high, ~greatest);
        memcpy(out + c, &low, sizeof low);
        memcpy(out + c + 2, &high, sizeof high);
    }
    for (; c < channels; ++c) {
        const int16_t *row = first + c;
        int32_t most = p->act_min;
        for (i = 0; i < w->rows; ++i) {
            for (j = 0; j < w->columns; ++j) {
                most = tinyfuse_max(most, row[j * channels]);
            }
            row += tinyfuse_pool_step(&p->shape, w, i);
        }
        out[c] = (int16_t)tinyfuse_min(most, p->act_max);
    }
}

#endif

TINYFUSE_INLINE void tinyfuse_average_pool_row_s16(const tinyfuse_pool_s16 *p, const int16_t *in, int32_t y,
                                                   int16_t *out_row)
{
    int32_t x;
    for (x = 0; x < p->shape.out_w; ++x) {
        const tinyfuse_pool_pixels w = tinyfuse_pool_pixels_at(&p->shape, y, x);
        tinyfuse_average_window_s16(p, &w, in + w.first, out_row + x * p->shape.channels);
    }
}

TINYFUSE_INLINE void tinyfuse_max_pool_row_s16(const tinyfuse_pool_s16 *p, const int16_t *in, int32_t y,
                                               int16_t *out_row)
{
    int32_t x;
    for (x = 0; x < p->shape.out_w; ++x) {
        const tinyfuse_pool_pixels w = tinyfuse_pool_pixels_at(&p->shape, y, x);
        tinyfuse_max_window_s16(p, &w, in + w.first, out_row + x * p->shape.channels);
    }
}

/* out[c] = previous[c] + the sum of channel c over `width` pixels. `previous` may be `out`; NULL counts as zeros. */
TINYFUSE_INLINE void tinyfuse_row_sum_s16(const int16_t *in, const int32_t *previous, int32_t *out,
                                          int32_t width, int32_t channels)
{
    int32_t c, x;
    for (c = 0; c < channels; ++c) {
        const int16_t *from = in + c;
        int32_t sum = previous != NULL ? previous[c] : 0;
        for (x = 0; x < width; ++x) {
            sum += *from;
            from += channels;
        }
        out[c] = sum;
    }
}

/* Computes means of `count` values from their sums. */
TINYFUSE_INLINE void tinyfuse_average_of_sum_s16(const int32_t *sum, int16_t *out, int32_t channels,
                                                 int32_t count, int32_t low, int32_t high)
{
    int32_t c;
    for (c = 0; c < channels; ++c) {
        out[c] = (int16_t)tinyfuse_clamp(tinyfuse_mean_of(sum[c], count), low, high);
    }
}

#endif
