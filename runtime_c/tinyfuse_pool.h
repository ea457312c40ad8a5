/* Average and max pooling, int8 NHWC, one output row a call. */
#ifndef TINYFUSE_POOL_H
#define TINYFUSE_POOL_H

#include "tinyfuse_requantize.h"

typedef struct {
    int32_t in_h, in_w, channels;
    int32_t in_ring; /* rows of the input in memory */
    int32_t out_w;
    int32_t filter_h, filter_w, stride_h, stride_w, pad_top, pad_left;
    int32_t act_min, act_max;
} tinyfuse_pool;

/* The pixels of one window that lie in the input: `first` points to the first one in memory, then `rows` rows of
   `columns` pixels. After `until_wrap` rows the ring starts again. */
typedef struct {
    const int8_t *first;
    int32_t rows, columns, until_wrap;
} tinyfuse_pool_window;

TINYFUSE_INLINE tinyfuse_pool_window tinyfuse_pool_window_at(const tinyfuse_pool *p, const int8_t *in,
                                                             int32_t y, int32_t x)
{
    const int32_t top = y * p->stride_h - p->pad_top, left = x * p->stride_w - p->pad_left;
    const int32_t y_from = tinyfuse_max(top, 0), x_from = tinyfuse_max(left, 0);
    tinyfuse_pool_window w;
    w.first = tinyfuse_ring_row(in, y_from, p->in_ring, p->in_w * p->channels) + x_from * p->channels;
    w.rows = tinyfuse_min(top + p->filter_h, p->in_h) - y_from;
    w.columns = tinyfuse_min(left + p->filter_w, p->in_w) - x_from;
    w.until_wrap = p->in_ring - y_from % p->in_ring;
    return w;
}

/* Returns the pixel below `from` in the window's next row; `from` is in row `i`. */
TINYFUSE_INLINE const int8_t *tinyfuse_pool_below(const tinyfuse_pool *p, const tinyfuse_pool_window *w,
                                                  const int8_t *from, int32_t i)
{
    const int32_t row_bytes = p->in_w * p->channels;
    return from + (i + 1 == w->until_wrap ? row_bytes - p->in_ring * row_bytes : row_bytes);
}

/* The mean of `count` values, halves rounded away from zero. */
TINYFUSE_INLINE int32_t tinyfuse_mean_of(int32_t sum, int32_t count)
{
    return sum > 0 ? (sum + count / 2) / count : (sum - count / 2) / count;
}

/* The largest number of int8 values whose sum fits 16 bits. */
#define TINYFUSE_MOST_PAIRED 256

/* Adds bytes 0 and 2 of `word` to the 16-bit halves of `sums`. */
TINYFUSE_INLINE uint32_t tinyfuse_add_even_bytes(uint32_t sums, uint32_t word)
{
#if TINYFUSE_DSP
    __asm("sxtab16 %0, %0, %1" : "+r"(sums) : "r"(word));
    return sums;
#else
    const int32_t low = (int16_t)sums + (int8_t)word;
    const int32_t high = (int16_t)(sums >> 16) + (int8_t)(word >> 16);
    return ((uint32_t)high << 16) | ((uint32_t)low & 0xFFFFu);
#endif
}

/* Adds bytes 1 and 3 of `word` to the 16-bit halves of `sums`. */
TINYFUSE_INLINE uint32_t tinyfuse_add_odd_bytes(uint32_t sums, uint32_t word)
{
#if TINYFUSE_DSP
    __asm("sxtab16 %0, %0, %1, ror #8" : "+r"(sums) : "r"(word));
    return sums;
#else
    return tinyfuse_add_even_bytes(sums, word >> 8);
#endif
}

/* Sums channels c to c + 3 over a window. `small`: the window has at most TINYFUSE_MOST_PAIRED pixels. */
TINYFUSE_INLINE void tinyfuse_sum_window4(const tinyfuse_pool *p, const tinyfuse_pool_window *w,
                                          int32_t c, int small, int32_t *sum)
{
    const int8_t *row = w->first + c;
    uint32_t even = 0, odd = 0; /* two channels in each */
    int32_t i, j;
    sum[0] = sum[1] = sum[2] = sum[3] = 0;
    for (i = 0; i < w->rows; ++i) {
        const int8_t *from = row;
        for (j = 0; j < w->columns; ++j) {
            const uint32_t word = tinyfuse_load_u32(from);
            if (small != 0) {
                even = tinyfuse_add_even_bytes(even, word);
                odd = tinyfuse_add_odd_bytes(odd, word);
            } else {
                sum[0] += (int8_t)word;
                sum[1] += (int8_t)(word >> 8);
                sum[2] += (int8_t)(word >> 16);
                sum[3] += (int8_t)(word >> 24);
            }
            from += p->channels;
        }
        row = tinyfuse_pool_below(p, w, row, i);
    }
    if (small != 0) {
        sum[0] = (int16_t)even;
        sum[1] = (int16_t)odd;
        sum[2] = (int16_t)(even >> 16);
        sum[3] = (int16_t)(odd >> 16);
    }
}

/* Four channels at a time. If their number is no multiple of four, the last four overlap those before, and some
   outputs are computed twice. */
TINYFUSE_INLINE int32_t tinyfuse_block4(int32_t c, int32_t channels)
{
    return tinyfuse_min(c, channels - 4);
}

#if TINYFUSE_MVE

/* Most pixels in a window for which tinyfuse_average_window4 is exact. */
#define TINYFUSE_MOST_AVERAGED 4087

/* Computes four channels of an output pixel. The mean is (|sum| + count / 2) / count, with the sum's sign. Instead of
   the division, twice the dividend is multiplied by 2^31 / count, rounded up. With |sum| <= 128 * count, the upper half
   of the product is exact for up to TINYFUSE_MOST_AVERAGED pixels. */
TINYFUSE_INLINE void tinyfuse_average_window4(const tinyfuse_pool *p, const tinyfuse_pool_window *w, int32_t c,
                                              int8_t *out)
{
    const uint32_t count = (uint32_t)(w->rows * w->columns), inverse = (0x80000000u + count - 1u) / count;
    const int8_t *row = w->first + c;
    int32x4_t sums = vdupq_n_s32(0), signs, means;
    uint32x4_t sizes;
    int32_t i, j;
    for (i = 0; i < w->rows; ++i) {
        const int8_t *from = row;
        for (j = 0; j < w->columns; ++j) {
            sums = vaddq_s32(sums, vldrbq_s32(from));
            from += p->channels;
        }
        row = tinyfuse_pool_below(p, w, row, i);
    }
    signs = vshrq_n_s32(sums, 31);
    sizes = vaddq_n_u32(vreinterpretq_u32_s32(vabsq_s32(sums)), count / 2u);
    sizes = vmulhq_u32(vshlq_n_u32(sizes, 1), vdupq_n_u32(inverse));
    means = vsubq_s32(veorq_s32(vreinterpretq_s32_u32(sizes), signs), signs);
    means = vminq_s32(vmaxq_s32(means, vdupq_n_s32(p->act_min)), vdupq_n_s32(p->act_max));
    vstrbq_s32(out + c, means);
}

#endif

TINYFUSE_INLINE void tinyfuse_average_pool_row_s8(const tinyfuse_pool *p, const int8_t *in, int32_t y,
                                                  int8_t *out_row)
{
    const int small = p->filter_h * p->filter_w <= TINYFUSE_MOST_PAIRED;
    int32_t x, c, i, j;
    for (x = 0; x < p->out_w; ++x) {
        const tinyfuse_pool_window w = tinyfuse_pool_window_at(p, in, y, x);
        const int32_t count = w.rows * w.columns;
        int8_t *const out = out_row + x * p->channels;
        for (c = 0; c < p->channels && p->channels >= 4; c += 4) {
            const int32_t first = tinyfuse_block4(c, p->channels);
            int32_t sum[4];
#if TINYFUSE_MVE
            if (p->filter_h * p->filter_w <= TINYFUSE_MOST_AVERAGED) {
                tinyfuse_average_window4(p, &w, first, out);
                continue;
            }
#endif
            tinyfuse_sum_window4(p, &w, first, small, sum);
            for (i = 0; i < 4; ++i) {
                int32_t mean = tinyfuse_mean_of(sum[i], count);
                if (p->act_min > -128 || p->act_max < 127) {
                    mean = tinyfuse_clamp(mean, p->act_min, p->act_max);
                }
                out[first + i] = (int8_t)mean;
            }
        }
        for (c = 0; c < p->channels && p->channels < 4; ++c) {
            const int8_t *row = w.first + c;
            int32_t sum = 0;
            for (i = 0; i < w.rows; ++i) {
                for (j = 0; j < w.columns; ++j) {
                    sum += row[j * p->channels];
                }
                row = tinyfuse_pool_below(p, &w, row, i);
            }
            out[c] = (int8_t)tinyfuse_clamp(tinyfuse_mean_of(sum, count), p->act_min, p->act_max);
        }
    }
}

#if TINYFUSE_MVE

/* Computes one output pixel, sixteen channels at a time. */
TINYFUSE_INLINE void tinyfuse_max_window(const tinyfuse_pool *p, const tinyfuse_pool_window *w,
                                         int8_t *out)
{
    int32_t c, i, j;
    for (c = 0; c < p->channels; c += 16) {
        const mve_pred16_t lanes = vctp8q((uint32_t)(p->channels - c));
        const int8_t *row = w->first + c;
        int8x16_t most = vdupq_n_s8((int8_t)p->act_min);
        for (i = 0; i < w->rows; ++i) {
            const int8_t *from = row;
            for (j = 0; j < w->columns; ++j) {
                most = vmaxq_s8(most, vldrbq_z_s8(from, lanes));
                from += p->channels;
            }
            row = tinyfuse_pool_below(p, w, row, i);
        }
        vstrbq_p_s8(out + c, vminq_s8(most, vdupq_n_s8((int8_t)p->act_max)), lanes);
    }
}

#else

/* The larger int8 in each byte of a and b. */
TINYFUSE_INLINE uint32_t tinyfuse_max_bytes(uint32_t a, uint32_t b)
{
#if TINYFUSE_DSP
    uint32_t most;
    __asm("ssub8 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(most) : "r"(a), "r"(b) : "cc");
    return most;
#else
    const uint32_t signs = 0x80808080u, differ = a ^ b;
    /* bit 7 of each byte: the low seven bits of a are not less than those of b */
    const uint32_t rest = (a | signs) - (b & ~signs);
    /* compares whole bytes: signs decide if they differ, else the low bits do */
    const uint32_t larger = ((b & differ) | (rest & ~differ)) & signs;
    return b ^ (differ & ((larger << 1) - (larger >> 7)));
#endif
}

/* Computes one output pixel, four channels at a time. */
TINYFUSE_INLINE void tinyfuse_max_window(const tinyfuse_pool *p, const tinyfuse_pool_window *w,
                                         int8_t *out)
{
    const uint32_t low = (uint8_t)p->act_min * 0x01010101u;
    const uint32_t high = (uint8_t)p->act_max * 0x01010101u;
    int32_t c, i, j;
    for (c = 0; c < p->channels && p->channels >= 4; c += 4) {
        const int32_t first = tinyfuse_block4(c, p->channels);
        const int8_t *row = w->first + first;
        uint32_t most = low;
        for (i = 0; i < w->rows; ++i) {
            const int8_t *from = row;
            for (j = 0; j < w->columns; ++j) {
                most = tinyfuse_max_bytes(most, tinyfuse_load_u32(from));
                from += p->channels;
            }
            row = tinyfuse_pool_below(p, w, row, i);
        }
        if (p->act_max < 127) {
            most = ~tinyfuse_max_bytes(~most, ~high); /* ~ reverses the order */
        }
        memcpy(out + first, &most, sizeof most);
    }
    for (c = 0; c < p->channels && p->channels < 4; ++c) {
        const int8_t *row = w->first + c;
        int32_t most = p->act_min;
        for (i = 0; i < w->rows; ++i) {
            for (j = 0; j < w->columns; ++j) {
                most = tinyfuse_max(most, row[j * p->channels]);
            }
            row = tinyfuse_pool_below(p, w, row, i);
        }
        out[c] = (int8_t)tinyfuse_min(most, p->act_max);
    }
}

#endif

TINYFUSE_INLINE void tinyfuse_max_pool_row_s8(const tinyfuse_pool *p, const int8_t *in, int32_t y,
                                              int8_t *out_row)
{
    int32_t x;
    for (x = 0; x < p->out_w; ++x) {
        const tinyfuse_pool_window w = tinyfuse_pool_window_at(p, in, y, x);
        tinyfuse_max_window(p, &w, out_row + x * p->channels);
    }
}

/* out[c] = previous[c] + the sum of channel c over `width` pixels. `previous` may be `out`; NULL counts as zeros. */
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
    /* sets c anew: GCC 12 warns about values of c that the loop above never leaves */
    for (c = channels & ~3; c < channels; ++c) {
        const int8_t *from = in + c;
        int32_t sum = previous != NULL ? previous[c] : 0;
        for (x = 0; x < width; ++x) {
            sum += *from;
            from += channels;
        }
        out[c] = sum;
    }
}

/* Computes means of `count` values from their sums. */
TINYFUSE_INLINE void tinyfuse_average_of_sum(const int32_t *sum, int8_t *out, int32_t channels,
                                             int32_t count, int32_t low, int32_t high)
{
    int32_t c;
    for (c = 0; c < channels; ++c) {
        out[c] = (int8_t)tinyfuse_clamp(tinyfuse_mean_of(sum[c], count), low, high);
    }
}

#endif
