/* Fully connected layer with palettized weights (tinyfuse_palette.h): four outputs of all batches at a time, by
   tinyfuse_dense.h. */
#ifndef TINYFUSE_DENSE_PALETTIZED_H
#define TINYFUSE_DENSE_PALETTIZED_H

#include "tinyfuse_dense.h"
#include "tinyfuse_palette.h"

/* Computes four outputs, or the fewer last ones, of each batch. */
TINYFUSE_SHARED void tinyfuse_dense_palettized_all(const tinyfuse_dense *p, const int8_t *in, int8_t *out,
                                                   const tinyfuse_palettized *w, const int32_t *biases,
                                                   const tinyfuse_dense_scale *scales, int8_t *columns, int8_t *weights,
                                                   int form, tinyfuse_dense_block block)
{
    const int32_t depth = (p->in_c + 3) & ~3;
    tinyfuse_dense four = *p;
    int32_t o, c, b;
    four.batches = 1;
    four.act_min = -128; /* all outputs are clamped together */
    four.act_max = 127;
    for (o = 0; o < p->out_c; o += 4) {
        four.out_c = tinyfuse_min(p->out_c - o, 4);
        for (c = 0; c < four.out_c; ++c) {
            /* words of four outputs alternate, fewer outputs follow one another */
            if (four.out_c == 4) {
                tinyfuse_expand_palette_group(w, o + c, depth, weights + 4 * c, 16);
            } else {
                tinyfuse_expand_palette_group(w, o + c, depth, weights + c * depth, 4);
            }
        }
        for (b = 0; b < p->batches; ++b) {
            tinyfuse_dense_batches(&four, in + b * p->in_c, out + b * p->out_c + o, weights, biases + o,
                                   scales + o * p->scale_step, columns, form, block);
        }
    }
    tinyfuse_clamp_outputs(out, p->batches * p->out_c, p->act_min, p->act_max);
}

/* Computes what tinyfuse_dense_s8 does, for any in_c; out must not overlap in. scratch, aligned to 16: 4 * depth
   weights, then a column of `depth` inputs where in_c is no multiple of 4. */
TINYFUSE_INLINE void tinyfuse_dense_palettized_s8(const tinyfuse_dense *p, const int8_t *in, int8_t *out,
                                                  const tinyfuse_palettized *w, const int32_t *biases,
                                                  const tinyfuse_dense_scale *scales, int form, void *scratch)
{
    int8_t *const weights = (int8_t *)scratch;
    if ((p->in_c & 3) == 0) {
        tinyfuse_dense_palettized_all(p, in, out, w, biases, scales, NULL, weights, form,
                               TINYFUSE_DENSE_OF_BYTES(form));
    } else {
        tinyfuse_dense_palettized_all(p, in, out, w, biases, scales, weights + 4 * ((p->in_c + 3) & ~3), weights, form,
                               TINYFUSE_DENSE_OF_COLUMNS(form));
    }
}

#endif
