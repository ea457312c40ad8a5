/* TRANSPOSE_CONV, float32 NHWC, one output row a call: every output pixel gathers the input pixels whose kernels
   reach it, in the order of these pixels, so that the last tap comes first. Every product and every sum is rounded.
   The fields of tinyfuse_transpose_conv that say how to quantize are not used. */
#ifndef TINYFUSE_TRANSPOSE_CONV_F32_H
#define TINYFUSE_TRANSPOSE_CONV_F32_H

#include "tinyfuse_conv_f32.h"
#include "tinyfuse_transpose_conv.h"

/* Returns the last tap of `kernel` that falls on an input row (column) for output row (column) `place`, cropped ones
   included; below 0 if there is none. The other taps are a stride before. */
TINYFUSE_INLINE int32_t tinyfuse_last_tap(int32_t place, int32_t kernel, int32_t stride)
{
    return kernel - 1 - (kernel - 1 - place % stride + stride) % stride;
}

/* Computes output row `y`. Weights are [out_c][kernel_h][kernel_w][in_c], `biases` has out_c entries. */
TINYFUSE_INLINE void tinyfuse_transpose_conv_row_f32(const tinyfuse_transpose_conv *p, const float *in, int32_t y,
                                                     float *out_row, const float *weights, const float *biases,
                                                     float low, float high)
{
    const int32_t row = p->in_w * p->in_c;
    const int32_t last_ky = tinyfuse_last_tap(y + p->pad_top, p->kernel_h, p->stride_h);
    int32_t x, o, ky, kx;
    for (x = 0; x < p->out_w; ++x) {
        const int32_t last_kx = tinyfuse_last_tap(x + p->pad_left, p->kernel_w, p->stride_w);
        for (o = 0; o < p->out_c; ++o) {
            float sum = 0.0f;
            for (ky = last_ky; ky >= 0; ky -= p->stride_h) {
                const int32_t iy = (y + p->pad_top - ky) / p->stride_h;
                if (y + p->pad_top < ky || iy >= p->in_h) {
                    continue;
                }
                for (kx = last_kx; kx >= 0; kx -= p->stride_w) {
                    const int32_t ix = (x + p->pad_left - kx) / p->stride_w;
                    if (x + p->pad_left >= kx && ix < p->in_w) {
                        const float *const w = weights + ((o * p->kernel_h + ky) * p->kernel_w + kx) * p->in_c;
                        const float *const from = in + (iy % p->in_ring) * row + ix * p->in_c;
                        sum = tinyfuse_add_products_f32(sum, from, w, p->in_c);
                    }
                }
            }
            *out_row++ = tinyfuse_layer_output_f32(sum, biases[o], low, high);
        }
    }
}

#endif
