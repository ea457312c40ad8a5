/* Average pooling with halves rounded up, as uint8 models need it: int8 NHWC, one output row a call. */
#ifndef TINYFUSE_POOL_UP_H
#define TINYFUSE_POOL_UP_H

#include "tinyfuse_pool.h"

TINYFUSE_INLINE void tinyfuse_average_pool_up_row_s8(const tinyfuse_pool *p, const int8_t *in, int32_t y,
                                                     int8_t *out_row)
{
    int32_t x, c, i, j;
    for (x = 0; x < p->out_w; ++x) {
        const tinyfuse_pool_window w = tinyfuse_pool_window_at(p, in, y, x);
        const uint32_t count = (uint32_t)(w.rows * w.columns);
        for (c = 0; c < p->channels; ++c) {
            const int8_t *row = w.first + c;
            int32_t sum = 0, mean;
            for (i = 0; i < w.rows; ++i) {
                const int8_t *from = row;
                for (j = 0; j < w.columns; ++j) {
                    sum += *from;
                    from += p->channels;
                }
                row = tinyfuse_pool_below(p, &w, row, i);
            }
            /* for stored values as numbers from 0 to 255 */
            mean = (int32_t)(((uint32_t)sum + 128u * count + count / 2) / count) - 128;
            *out_row++ = (int8_t)tinyfuse_clamp(mean, p->act_min, p->act_max);
        }
    }
}

#endif
