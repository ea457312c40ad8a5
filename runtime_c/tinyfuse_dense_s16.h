/* Fully connected layer, int16 data and int8 weights without zero points, by tinyfuse_matmul_s16.h: batches are
   pixels. */
#ifndef TINYFUSE_DENSE_S16_H
#define TINYFUSE_DENSE_S16_H

#include "tinyfuse_matmul_s16.h"

typedef struct {
    int32_t batches, in_c, out_c;
    int32_t act_min, act_max;
} tinyfuse_dense_of_s16;

/* Computes a layer, in [batches][in_c] to out [batches][out_c], forward by blocks of up to three batches: out may
   overlap what was read already, the block included. Weights are packed for tinyfuse_matmul_s16.h, whose `form` is a
   constant. scratch, aligned to 8: columns of min(batches, 3) * depth inputs, with depth = in_c rounded up to a
   multiple of 4. */
TINYFUSE_INLINE void tinyfuse_dense_s16(const tinyfuse_dense_of_s16 *p, const int16_t *in, int16_t *out,
                                        const int8_t *weights, const void *channels, void *scratch, int form)
{
    const int32_t whole = p->in_c & ~3, rest = p->in_c & 3, depth = (p->in_c + 3) & ~3;
    int16_t *const columns = (int16_t *)scratch;
    int16_t *const first = out;
    int32_t left, i, k;
    for (left = p->batches; left > 0;) {
        const int32_t block = tinyfuse_block_pixels(left, 3);
        for (i = 0; i < block; ++i) {
            int16_t *const to = tinyfuse_spread_s16(in, whole, columns + 4 * i, 4 * block);
            if (rest != 0) {
                for (k = 0; k < 4; ++k) {
                    to[k] = k < rest ? in[whole + k] : (int16_t)0; /* times zero weights */
                }
            }
            in += p->in_c;
        }
        tinyfuse_matmul_block_s16(weights, columns, depth, out, p->out_c, p->out_c, channels, block, form);
        out += block * p->out_c;
        left -= block;
    }
    if (tinyfuse_narrower_s16(p->act_min, p->act_max, form) != 0) {
        tinyfuse_clamp_row_s16(first, p->batches * p->out_c, p->act_min, p->act_max);
    }
}

#endif
