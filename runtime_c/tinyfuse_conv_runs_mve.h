/* 2D convolution for Helium, int8 NHWC, one output row a call, where a kernel row's inputs are a multiple of sixteen
   bytes: of windows inside the image each kernel row is read where it lies (`tinyfuse_mve_run`), others are copied
   first. Any kernel, stride and padding; rows may be dilated, columns not; one group. */
#ifndef TINYFUSE_CONV_RUNS_MVE_H
#define TINYFUSE_CONV_RUNS_MVE_H

#include "tinyfuse_conv_mve.h"

/* What a call has in scratch: of each kernel row the input row, NULL where it is in the padding, and its run. */
enum { TINYFUSE_RUN_BYTES = 20 };
#if UINTPTR_MAX <= 0xFFFFFFFFu
typedef char tinyfuse_check_run[sizeof(tinyfuse_mve_run) + sizeof(int8_t *) == TINYFUSE_RUN_BYTES ? 1 : -1];
#endif

typedef struct {
    const tinyfuse_conv *p;
    const int8_t **rows;
    tinyfuse_mve_run *runs;
    int8_t *windows; /* of pixels that reach into the padding; at rows in the padding they always hold the zero point */
} tinyfuse_runs;

/* Whether no column of pixel x's window is in the padding. */
TINYFUSE_INLINE int tinyfuse_runs_inside(const tinyfuse_conv *p, int32_t x)
{
    const int32_t from = x * p->stride_w - p->pad_left;
    return from >= 0 && from + p->kernel_w <= p->in_w;
}

/* From the windows of two pixels inside the image to those of the next two. */
TINYFUSE_INLINE void tinyfuse_runs_next(const tinyfuse_runs *r)
{
    const int32_t step = 2 * r->p->stride_w * r->p->in_c;
    int32_t ky;
    for (ky = 0; ky < r->p->kernel_h; ++ky) {
        if (r->rows[ky] != NULL) {
            r->runs[ky].x0 += step;
            r->runs[ky].x1 += step;
        }
    }
}

/* The windows of pixel x, as the first or second pixel of the runs. Returns the place for the next window. */
TINYFUSE_INLINE int8_t *tinyfuse_runs_pixel(const tinyfuse_runs *r, int32_t x, int second, int8_t *window)
{
    const tinyfuse_conv *const p = r->p;
    const int32_t from = x * p->stride_w - p->pad_left, run = p->kernel_w * p->in_c;
    const int inside = tinyfuse_runs_inside(p, x);
    int32_t ky;
    if (!inside) {
        tinyfuse_window_mve(p, r->rows, x, window);
    }
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int8_t *const row = r->rows[ky];
        const int8_t *const at = inside && row != NULL ? row + from * p->in_c
                                 : inside              ? r->windows + ky * run
                                                       : window + ky * run;
        if (second) {
            r->runs[ky].x1 = at;
        } else {
            r->runs[ky].x0 = at;
        }
    }
    return inside ? window : window + p->kernel_h * run;
}

/* Output row y. Reads only the input rows of y's own window, writes only the out_w * out_c bytes of out_row. `form`, a
   constant, as of tinyfuse_matmul_mve.h. scratch, aligned to 4: TINYFUSE_RUN_BYTES for each kernel row, then `windows`,
   0 to 2, of kernel_h * kernel_w * in_c bytes: as many as of two pixels side by side, the first of an even number,
   have columns in the padding, and one where any has rows there. */
TINYFUSE_SHARED void tinyfuse_conv_runs_mve_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                   int8_t *out_row, const int8_t *weights,
                                                   const int32_t *channels, void *scratch, int form)
{
    const int32_t run = p->kernel_w * p->in_c, depth = p->kernel_h * run;
    const tinyfuse_matmul_mve m = {depth, p->out_c, p->out_zero_point, p->act_min, p->act_max};
    tinyfuse_mve_job job;
    tinyfuse_runs r;
    int32_t x, ky;
    int ahead = 0; /* the runs are of two pixels inside the image, right before the next ones */
    r.p = p;
    r.runs = (tinyfuse_mve_run *)TINYFUSE_WITH_POINTERS(
        scratch, (size_t)p->kernel_h * (sizeof *r.runs + sizeof *r.rows));
    r.rows = (const int8_t **)(void *)(r.runs + p->kernel_h);
    r.windows = (int8_t *)scratch + p->kernel_h * TINYFUSE_RUN_BYTES;
    tinyfuse_mve_start(&job, &m, weights, channels, 0);
    job.runs = r.runs;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        r.rows[ky] = NULL;
        if (iy >= 0 && iy < p->in_h) {
            r.rows[ky] = tinyfuse_ring_row(in, iy, p->in_ring, p->in_w * p->in_c);
        } else {
            memset(r.windows + ky * run, p->in_zero_point, (size_t)run);
        }
        tinyfuse_mve_count(r.runs + ky, run >> 4, ky + 1 < p->kernel_h);
    }
    for (x = 0; x < p->out_w; x += 2) {
        const int32_t second = tinyfuse_min(x + 1, p->out_w - 1); /* the first one again where it is alone */
        const int inside = second > x && tinyfuse_runs_inside(p, x) && tinyfuse_runs_inside(p, second);
        if (inside && ahead) {
            tinyfuse_runs_next(&r);
        } else {
            int8_t *const next = tinyfuse_runs_pixel(&r, x, 0, r.windows);
            tinyfuse_runs_pixel(&r, second, 1, second == x ? r.windows : next);
        }
        ahead = inside;
        job.out0 = out_row;
        job.out1 = out_row + (second - x) * p->out_c;
        job.channels_left = p->out_c;
        tinyfuse_mve_two(&job, form);
        out_row += 2 * p->out_c;
    }
}

#endif
