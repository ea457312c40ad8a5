/* TRANSPOSE_CONV of int16 data and int8 weights, one output row a call, as convolutions (tinyfuse_transpose_conv_phases.h). */
#ifndef TINYFUSE_TRANSPOSE_CONV_PHASES_S16_H
#define TINYFUSE_TRANSPOSE_CONV_PHASES_S16_H

#include "tinyfuse_conv_packed_s16.h"
#include "tinyfuse_transpose_conv_phases.h"

/* Computes output row y. Weights are packed for tinyfuse_matmul_s16.h phase by phase, whose `form` is a constant.
   Reads only the input rows whose kernels reach row y, writes only out_row. scratch, aligned to 8: a pointer of 4
   bytes for each row of taps of the largest phase, then that of its tinyfuse_block_s16. */
TINYFUSE_INLINE void tinyfuse_transpose_conv_phases_row_s16(const tinyfuse_transpose_conv *p, const int16_t *in,
                                                            int32_t y, int16_t *out_row, const int8_t *weights,
                                                            const void *channels, void *scratch, int32_t block_pixels,
                                                            int form)
{
    const int32_t most_rows = tinyfuse_phase_taps(p->kernel_h, 0, p->stride_h);
    const int16_t **const rows = (const int16_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)most_rows * sizeof *rows);
    tinyfuse_conv q = tinyfuse_phase_of_row(p, y);
    tinyfuse_block_s16 at;
    int32_t phase;
    at.columns = (int16_t *)(void *)((uint8_t *)scratch + most_rows * TINYFUSE_POINTER_BYTES);
    at.block_pixels = block_pixels;
    tinyfuse_window_rows_s16(&q, in, (y + p->pad_top) / p->stride_h, rows);
    weights += tinyfuse_terms_before(p, y, 4) * p->out_c;
    for (phase = 0; phase < p->stride_w; ++phase) {
        const tinyfuse_phase_columns columns = tinyfuse_phase_of_columns(p, phase, &q);
        tinyfuse_conv_packed_columns_s16(&q, rows, 0, columns.at, columns.at + columns.count,
                                         out_row + columns.first * p->out_c, p->stride_w * p->out_c, weights, channels,
                                         at, form);
        weights += ((q.kernel_h * q.kernel_w * p->in_c + 3) & ~3) * p->out_c;
    }
    if (tinyfuse_narrower_s16(p->act_min, p->act_max, form) != 0) {
        tinyfuse_clamp_row_s16(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
    }
}

#endif
