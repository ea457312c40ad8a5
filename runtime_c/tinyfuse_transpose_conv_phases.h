/* TRANSPOSE_CONV as convolutions. Outputs a stride apart (a phase) have the same taps, every stride-th one from their
   phase on. They are the outputs of a convolution with stride 1 whose kernel is these taps, the last one first. No
   stride exceeds the kernel, so that every phase has taps. */
#ifndef TINYFUSE_TRANSPOSE_CONV_PHASES_H
#define TINYFUSE_TRANSPOSE_CONV_PHASES_H

#include "tinyfuse_conv.h"
#include "tinyfuse_transpose_conv.h"

/* The columns of a phase. */
typedef struct {
    int32_t first;     /* the first output column */
    int32_t count;     /* how many there are, a stride apart */
    int32_t at;        /* their first column in the convolution's output */
} tinyfuse_phase_columns;

/* Returns how many of `kernel` taps a phase has: phase, phase + stride, ... */
TINYFUSE_INLINE int32_t tinyfuse_phase_taps(int32_t kernel, int32_t phase, int32_t stride)
{
    return (kernel - phase + stride - 1) / stride;
}

/* Returns the convolution whose output row (y + pad_top) / stride_h is output row y, without its columns. */
TINYFUSE_INLINE tinyfuse_conv tinyfuse_phase_of_row(const tinyfuse_transpose_conv *p, int32_t y)
{
    tinyfuse_conv q;
    q.in_h = p->in_h;
    q.in_w = p->in_w;
    q.in_c = p->in_c;
    q.in_ring = p->in_ring;
    q.out_w = p->out_w;
    q.out_c = p->out_c;
    q.groups = 1;
    q.kernel_h = tinyfuse_phase_taps(p->kernel_h, (y + p->pad_top) % p->stride_h, p->stride_h);
    q.kernel_w = 0;
    q.stride_h = q.stride_w = q.dilation_h = q.dilation_w = 1;
    q.pad_top = q.kernel_h - 1;
    q.pad_left = 0;
    q.in_zero_point = p->in_zero_point;
    q.out_zero_point = p->out_zero_point;
    q.act_min = p->act_min;
    q.act_max = p->act_max;
    return q;
}

/* Turns the convolution into that of a phase of columns. */
TINYFUSE_INLINE tinyfuse_phase_columns tinyfuse_phase_of_columns(const tinyfuse_transpose_conv *p, int32_t phase,
                                                                 tinyfuse_conv *q)
{
    tinyfuse_phase_columns found;
    q->kernel_w = tinyfuse_phase_taps(p->kernel_w, phase, p->stride_w);
    q->pad_left = q->kernel_w - 1;
    found.first = (phase + p->stride_w - p->pad_left % p->stride_w) % p->stride_w;
    found.count = found.first < p->out_w ? (p->out_w - found.first + p->stride_w - 1) / p->stride_w : 0;
    found.at = (found.first + p->pad_left) / p->stride_w;
    return found;
}

/* Returns the terms of an output channel that are stored for the phases of rows before that of output row y, in units
   of `unit` terms, to which each phase is padded: phases of rows lie one after the other, and in each those of
   columns. */
TINYFUSE_INLINE int32_t tinyfuse_terms_before(const tinyfuse_transpose_conv *p, int32_t y, int32_t unit)
{
    const int32_t phase = (y + p->pad_top) % p->stride_h;
    int32_t terms = 0, i, j;
    for (i = 0; i < phase; ++i) {
        for (j = 0; j < p->stride_w; ++j) {
            const int32_t taps = tinyfuse_phase_taps(p->kernel_h, i, p->stride_h) *
                                 tinyfuse_phase_taps(p->kernel_w, j, p->stride_w);
            terms += (taps * p->in_c + unit - 1) / unit * unit;
        }
    }
    return terms;
}

#endif
