/* Convolutions and fully connected layers with palettized weights (tinyfuse_palette.h) for Helium: strips of channels
   by tinyfuse_matmul_2x4_mve.h, each for all pixels of the call. */
#ifndef TINYFUSE_CONV_PALETTIZED_MVE_H
#define TINYFUSE_CONV_PALETTIZED_MVE_H

#include "tinyfuse_conv_2x4_mve.h"
#include "tinyfuse_palette.h"

/* A strip of channels from `first` on, and their biases. */
typedef struct {
    tinyfuse_mve_job job;
    const int32_t *bias;
    int32_t first, count;
} tinyfuse_mve_strip;

/* Expands the weights of `count` channels from `first` on to `weights`, in the order of tinyfuse_matmul_2x4_mve.h. */
TINYFUSE_SHARED void tinyfuse_expand_palette_strip(const tinyfuse_palettized *w, int32_t first, int32_t count,
                                                   int32_t depth, int8_t *weights)
{
    const int32_t whole = depth & ~15, rest = depth & 15;
    tinyfuse_palettized rests = *w;
    int32_t c;
    rests.indices += whole / 16 * (w->index_bytes / ((depth + 15) >> 4));
    for (c = 0; c < count; ++c) {
        int8_t *const four = weights + (c >> 2) * 4 * depth;
        tinyfuse_expand_palette_group(w, first + c, whole, four + (c & 3) * 16, 64);
        if (rest > 0) {
            /* the next channel overwrites what this one writes too far */
            tinyfuse_expand_palette_group(&rests, first + c, rest, four + 4 * whole + (c & 3) * rest, 16);
        }
    }
}

TINYFUSE_INLINE void tinyfuse_mve_strip_start(tinyfuse_mve_strip *s, const tinyfuse_palettized *w, int32_t first,
                                              const tinyfuse_matmul_2x4_mve *p, int8_t *weights,
                                              const int32_t *channels)
{
    s->first = first;
    s->count = tinyfuse_min(w->strip, p->out_c - first);
    s->bias = channels + 3 * first;
    tinyfuse_expand_palette_strip(w, first, s->count, p->depth, weights);
    tinyfuse_mve_start(&s->job, p, weights, s->bias, TINYFUSE_MVE_EACH);
}

/* Computes a strip's channels of one or two neighbouring pixels, whose outputs of all channels lie from `out` on. */
TINYFUSE_INLINE void tinyfuse_mve_strip_pixels(tinyfuse_mve_strip *s, const tinyfuse_matmul_2x4_mve *p,
                                               const int8_t *in, int32_t pixels, int8_t *out)
{
    s->job.inputs.x0 = in;
    s->job.out0 = out + s->first;
    s->job.channels_left = s->count;
    if (pixels > 1) {
        s->job.inputs.x1 = in + p->depth;
        s->job.out1 = out + p->out_c + s->first;
        tinyfuse_mve_two(&s->job, TINYFUSE_MVE_EACH);
    } else {
        s->job.bias = s->bias; /* one pixel uses it up */
        tinyfuse_mve_one(&s->job, TINYFUSE_MVE_EACH);
        s->job.bias = s->bias;
    }
}

/* Computes what tinyfuse_pointwise_2x4_mve_s8 does. out may overlap pixels that were read already only if one strip
   has all channels. scratch, aligned to 16: strip * depth + 16 bytes of weights, the strip a multiple of 4. */
TINYFUSE_SHARED void tinyfuse_pointwise_palettized_mve_s8(const tinyfuse_matmul_2x4_mve *p, const int8_t *in,
                                                          int32_t pixels, int8_t *out, const tinyfuse_palettized *w,
                                                          const int32_t *channels, void *scratch)
{
    int32_t first, x;
    for (first = 0; first < p->out_c; first += w->strip) {
        tinyfuse_mve_strip s;
        tinyfuse_mve_strip_start(&s, w, first, p, (int8_t *)scratch, channels);
        for (x = 0; x < pixels; x += 2) {
            tinyfuse_mve_strip_pixels(&s, p, in + x * p->depth, tinyfuse_min(pixels - x, 2), out + x * p->out_c);
        }
    }
}

/* Computes what tinyfuse_conv_2x4_mve_row_s8 does. scratch, aligned to 16: kernel_h pointers of 4 bytes, 2 * depth
   bytes of windows, then strip * depth + 16 bytes of weights, the strip a multiple of 4, with depth = kernel_h *
   kernel_w * in_c. */
TINYFUSE_SHARED void tinyfuse_conv_palettized_mve_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                         int8_t *out_row, const tinyfuse_palettized *w,
                                                         const int32_t *channels, void *scratch)
{
    const int32_t depth = p->kernel_h * p->kernel_w * p->in_c;
    const tinyfuse_matmul_2x4_mve m = {depth, p->out_c, p->out_zero_point, p->act_min, p->act_max};
    const int8_t **const rows =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int8_t *const windows = (int8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES;
    int32_t first, x;
    tinyfuse_window_rows_mve(p, in, y, rows);
    for (first = 0; first < p->out_c; first += w->strip) {
        tinyfuse_mve_strip s;
        tinyfuse_mve_strip_start(&s, w, first, &m, windows + 2 * depth, channels);
        for (x = 0; x < p->out_w; x += 2) {
            const int32_t pixels = tinyfuse_min(p->out_w - x, 2);
            tinyfuse_window_mve(p, rows, x, windows);
            if (pixels > 1) {
                tinyfuse_window_mve(p, rows, x + 1, windows + depth);
            }
            tinyfuse_mve_strip_pixels(&s, &m, windows, pixels, out_row + x * p->out_c);
        }
    }
}

#endif
