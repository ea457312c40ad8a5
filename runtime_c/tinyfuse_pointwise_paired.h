/* 1x1 convolution with stride 1, int8, for cores without the DSP extension: consecutive pixels by tinyfuse_paired.h. */
#ifndef TINYFUSE_POINTWISE_PAIRED_H
#define TINYFUSE_POINTWISE_PAIRED_H

#include "tinyfuse_paired.h"
#include "tinyfuse_pointwise.h"

/* Computes a layer, in [pixels][in_c] to out [pixels][out_c], forward by blocks of pixels: out may overlap pixels
   that were read already, those of the block included. in_c is a multiple of 4, p->block is 2, `form` a constant.
   scratch, aligned to 8: columns of block * in_c inputs of 4 bytes. */
TINYFUSE_INLINE void tinyfuse_pointwise_paired_s8(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels,
                                                  int8_t *out, const int32_t *pairs, void *scratch, int form)
{
    const int32_t words = p->in_c / 4;
    int32_t *const columns = (int32_t *)scratch;
    int8_t *const first = out;
    int32_t left = pixels;
    tinyfuse_paired s = tinyfuse_paired_of(p->out_c, p->out_zero_point, columns, p->in_c, form);
    while (left > 0) {
        const int32_t block = tinyfuse_min(left, 2);
        (void)tinyfuse_paired_column(in, words, columns, 2 * block);
        if (block == 2) {
            (void)tinyfuse_paired_column(in + p->in_c, words, columns + 2, 4);
        }
        tinyfuse_paired_pixels(&s, pairs, out, block, form);
        in += block * p->in_c;
        out += block * p->out_c;
        left -= block;
    }
    tinyfuse_clamp_outputs(first, pixels * p->out_c, p->act_min, p->act_max);
}

#endif
