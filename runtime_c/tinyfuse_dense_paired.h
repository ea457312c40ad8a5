/* Fully connected layers of int8 for cores without the DSP extension: inputs are converted into a column, which
   tinyfuse_paired.h multiplies as that of one pixel. */
#ifndef TINYFUSE_DENSE_PAIRED_H
#define TINYFUSE_DENSE_PAIRED_H

#include "tinyfuse_paired.h"

typedef struct {
    int32_t batches, in_c, out_c, out_zero_point, act_min, act_max;
} tinyfuse_dense_paired;

/* Computes a layer, in [batches][in_c] to out [batches][out_c]. `form` is a constant. scratch, aligned to 8: in_c
   inputs of 4 bytes, rounded up to a multiple of 4. out may overlap batches of in that were read already, the one
   that is computed included. */
TINYFUSE_INLINE void tinyfuse_dense_paired_s8(const tinyfuse_dense_paired *p, const int8_t *in, int8_t *out,
                                              const int32_t *pairs, void *scratch, int form)
{
    const int32_t words = p->in_c / 4, rest = p->in_c & 3;
    int32_t *const columns = (int32_t *)scratch;
    tinyfuse_paired s = tinyfuse_paired_of(p->out_c, p->out_zero_point, columns, (p->in_c + 3) & ~3, form);
    int8_t *const first = out;
    int32_t b;
    for (b = 0; b < p->batches; ++b) {
        int32_t *const to = tinyfuse_paired_column(in, words, columns, 2);
        if (rest > 0) {
            int8_t tail[4] = {0, 0, 0, 0};
            memcpy(tail, in + 4 * words, (size_t)rest);
            (void)tinyfuse_paired_column(tail, 1, to, 2);
        }
        tinyfuse_paired_pixels(&s, pairs, out, 1, form);
        in += p->in_c;
        out += p->out_c;
    }
    tinyfuse_clamp_outputs(first, p->batches * p->out_c, p->act_min, p->act_max);
}

#endif
