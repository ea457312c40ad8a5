/* TRANSPOSE_CONV of float32, one output row a call, as convolutions (tinyfuse_transpose_conv_phases.h), whose order of sums is
   TensorFlow Lite Micro's: that of the input's rows, columns and channels. */
#ifndef TINYFUSE_TRANSPOSE_CONV_PHASES_F32_H
#define TINYFUSE_TRANSPOSE_CONV_PHASES_F32_H

#include "tinyfuse_conv_packed_f32.h"
#include "tinyfuse_transpose_conv_phases.h"

/* Computes output row y. Weights are packed as those of tinyfuse_conv_packed_row_f32, phase by phase; `biases` has
   out_c entries. Reads only the input rows whose kernels reach row y, writes only out_row. */
TINYFUSE_INLINE void tinyfuse_transpose_conv_phases_row_f32(const tinyfuse_transpose_conv *p, const float *in,
                                                            int32_t y, float *out_row, const float *weights,
                                                            const float *biases, float low, float high)
{
    tinyfuse_conv q = tinyfuse_phase_of_row(p, y);
    int32_t phase, x;
    weights += tinyfuse_terms_before(p, y, 1) * p->out_c;
    for (phase = 0; phase < p->stride_w; ++phase) {
        const tinyfuse_phase_columns columns = tinyfuse_phase_of_columns(p, phase, &q);
        float *out = out_row + columns.first * p->out_c;
        for (x = columns.at; x < columns.at + columns.count; ++x) {
            tinyfuse_conv_packed_pixel_f32(&q, in, (y + p->pad_top) / p->stride_h, x, 0, out, weights, biases, low,
                                           high);
            out += p->stride_w * p->out_c;
        }
        weights += q.kernel_h * q.kernel_w * p->in_c * p->out_c;
    }
}

#endif
