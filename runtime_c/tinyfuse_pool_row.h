/* Windows of pooling for elements of any type, and a macro that defines loops over them: NHWC, one output row a
   call. */
#ifndef TINYFUSE_POOL_ROW_H
#define TINYFUSE_POOL_ROW_H

#include "tinyfuse_common.h"

typedef struct {
    int32_t in_h, in_w, channels;
    int32_t in_ring; /* rows of the input in memory */
    int32_t out_w;
    int32_t filter_h, filter_w, stride_h, stride_w, pad_top, pad_left;
} tinyfuse_pool_shape;

/* The pixels of one window that lie in the input: `rows` rows of `columns` pixels. The first element is `first`
   elements after the start of memory. After `until_wrap` rows the ring starts again. */
typedef struct {
    int32_t first, rows, columns, until_wrap;
} tinyfuse_pool_pixels;

TINYFUSE_INLINE tinyfuse_pool_pixels tinyfuse_pool_pixels_at(const tinyfuse_pool_shape *p, int32_t y, int32_t x)
{
    const int32_t top = y * p->stride_h - p->pad_top, left = x * p->stride_w - p->pad_left;
    const int32_t y_from = tinyfuse_max(top, 0), x_from = tinyfuse_max(left, 0);
    const int32_t slot = y_from % p->in_ring;
    tinyfuse_pool_pixels w;
    w.first = (slot * p->in_w + x_from) * p->channels;
    w.rows = tinyfuse_min(top + p->filter_h, p->in_h) - y_from;
    w.columns = tinyfuse_min(left + p->filter_w, p->in_w) - x_from;
    w.until_wrap = p->in_ring - slot;
    return w;
}

/* Elements between the window's row `i` and the row below. */
TINYFUSE_INLINE int32_t tinyfuse_pool_step(const tinyfuse_pool_shape *p, const tinyfuse_pool_pixels *w, int32_t i)
{
    const int32_t row = p->in_w * p->channels;
    return i + 1 == w->until_wrap ? row - p->in_ring * row : row;
}

/* Defines void name(const params *p, const type *in, int32_t y, type *out_row); params has a tinyfuse_pool_shape
   `shape`. For each output an accumulator of type `acc_type` starts as `start`, becomes take(accumulator, element) for
   the window's elements row by row, and gives finish(p, accumulator, number of elements). Four channels at a time. */
#define TINYFUSE_DEFINE_POOL_ROW(name, params, type, acc_type, start, take, finish)                    \
    TINYFUSE_INLINE void name(const params *p, const type *in, int32_t y, type *out_row)               \
    {                                                                                                  \
        const int32_t channels = p->shape.channels;                                                    \
        int32_t x, c, i, j;                                                                            \
        for (x = 0; x < p->shape.out_w; ++x) {                                                         \
            const tinyfuse_pool_pixels w = tinyfuse_pool_pixels_at(&p->shape, y, x);                   \
            const int32_t count = w.rows * w.columns;                                                  \
            type *const out = out_row + x * channels;                                                  \
            for (c = 0; c + 4 <= channels; c += 4) {                                                   \
                const type *row = in + w.first + c;                                                    \
                acc_type a = (start), b = (start), d = (start), e = (start);                           \
                for (i = 0; i < w.rows; ++i) {                                                         \
                    const type *from = row;                                                            \
                    for (j = 0; j < w.columns; ++j) {                                                  \
                        a = take(a, from[0]);                                                          \
                        b = take(b, from[1]);                                                          \
                        d = take(d, from[2]);                                                          \
                        e = take(e, from[3]);                                                          \
                        from += channels;                                                              \
                    }                                                                                  \
                    row += tinyfuse_pool_step(&p->shape, &w, i);                                       \
                }                                                                                      \
                out[c] = finish(p, a, count);                                                          \
                out[c + 1] = finish(p, b, count);                                                      \
                out[c + 2] = finish(p, d, count);                                                      \
                out[c + 3] = finish(p, e, count);                                                      \
            }                                                                                          \
            for (; c < channels; ++c) {                                                                \
                const type *row = in + w.first + c;                                                    \
                acc_type a = (start);                                                                  \
                for (i = 0; i < w.rows; ++i) {                                                         \
                    const type *from = row;                                                            \
                    for (j = 0; j < w.columns; ++j) {                                                  \
                        a = take(a, *from);                                                            \
                        from += channels;                                                              \
                    }                                                                                  \
                    row += tinyfuse_pool_step(&p->shape, &w, i);                                       \
                }                                                                                      \
                out[c] = finish(p, a, count);                                                          \
            }                                                                                          \
        }                                                                                              \
    }

#endif
