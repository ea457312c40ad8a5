/* 1x1 convolution with stride 1, int8: consecutive pixels times packed weights. */
#ifndef TINYFUSE_POINTWISE_H
#define TINYFUSE_POINTWISE_H

#include "tinyfuse_matmul.h"

/* in_c is a multiple of 4. */
typedef struct {
    int32_t in_c, out_c, out_zero_point, act_min, act_max;
} tinyfuse_pointwise;

/* Widens `pixels` consecutive pixels into columns; in_c is a multiple of 4. */
TINYFUSE_SHARED void tinyfuse_pointwise_columns(const int8_t *in, int32_t in_c, int32_t pixels,
                                                int16_t *columns)
{
    int32_t i;
    for (i = 0; i < pixels; ++i) {
        (void)tinyfuse_widen(in, in_c / 4, columns + 4 * i, 8 * pixels);
        in += in_c;
    }
}

TINYFUSE_INLINE void tinyfuse_pointwise_body(const tinyfuse_pointwise *p, const int8_t *in,
                                           int32_t pixels, int8_t *out, const int8_t *weights,
                                           const tinyfuse_requant *channels, void *scratch,
                                             int ramp)
{
    const tinyfuse_matmul m = {p->in_c, p->out_c, 2 * p->out_zero_point + 1};
    int16_t *const columns = (int16_t *)scratch;
    int8_t *const first = out;
    int32_t left = pixels;
    while (left > 0) {
        const int32_t block = tinyfuse_block_pixels(left);
        tinyfuse_pointwise_columns(in, p->in_c, block, columns);
        tinyfuse_matmul_pixels(&m, columns, weights, channels, out, block, ramp);
        in += block * p->in_c;
        out += block * p->out_c;
        left -= block;
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(first, pixels * p->out_c, p->act_min, p->act_max);
    }
}

TINYFUSE_SHARED void tinyfuse_pointwise_ramp(const tinyfuse_pointwise *p, const int8_t *in,
                                             int32_t pixels, int8_t *out, const int8_t *weights,
                                             const tinyfuse_requant *channels, void *scratch)
{
    tinyfuse_pointwise_body(p, in, pixels, out, weights, channels, scratch, 1);
}

TINYFUSE_SHARED void tinyfuse_pointwise_plain(const tinyfuse_pointwise *p, const int8_t *in,
                                              int32_t pixels, int8_t *out, const int8_t *weights,
                                              const tinyfuse_requant *channels, void *scratch)
{
    tinyfuse_pointwise_body(p, in, pixels, out, weights, channels, scratch, 0);
}

/* in [pixels][in_c] to out [pixels][out_c], which must not overlap; weights and channels packed for
   tinyfuse_matmul.h; scratch: 3 * in_c int16, aligned to 8. `ramp` (a constant): act_min is not below the output
   zero point. */
TINYFUSE_INLINE void tinyfuse_pointwise_s8(const tinyfuse_pointwise *p, const int8_t *in,
                                           int32_t pixels, int8_t *out, const int8_t *weights,
                                           const tinyfuse_requant *channels, void *scratch,
                                           int ramp)
{
    (ramp ? tinyfuse_pointwise_ramp
          : tinyfuse_pointwise_plain)(p, in, pixels, out, weights, channels, scratch);
}

#endif
