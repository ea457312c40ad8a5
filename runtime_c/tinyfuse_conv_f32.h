/* Convolutions of float32, NHWC, one output row a call: the general form (any kernel, stride, dilation, padding, groups
   and depth multiplier) in portable C. Every product and every sum is rounded, in the order of rows, columns and
   channels, as TensorFlow Lite Micro does it. The fields of tinyfuse_conv that say how to quantize are not used. */
#ifndef TINYFUSE_CONV_F32_H
#define TINYFUSE_CONV_F32_H

#include "tinyfuse_conv.h"
#include "tinyfuse_real.h"

/* Returns the sum plus the bias, clamped. */
TINYFUSE_INLINE float tinyfuse_layer_output_f32(float sum, float bias, float low, float high)
{
    return tinyfuse_clamp_f32(tinyfuse_sum_f32(sum, bias), low, high);
}

/* Returns sum + in[0] * weights[0] + ... over `count` neighbours, in that order. */
TINYFUSE_INLINE float tinyfuse_add_products_f32(float sum, const float *in, const float *weights, int32_t count)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        sum = tinyfuse_add_product_f32(sum, in[i], weights[i]);
    }
    return sum;
}

/* Computes output row y. Weights are [out_c][kernel_h][kernel_w][in_c / groups], `biases` has out_c entries. Reads
   only the input rows of y's own window, writes only out_row. */
TINYFUSE_INLINE void tinyfuse_conv_row_f32(const tinyfuse_conv *p, const float *in, int32_t y, float *out_row,
                                           const float *weights, const float *biases, float low, float high)
{
    const int32_t row = p->in_w * p->in_c;
    const int32_t filter_c = p->in_c / p->groups;
    const int32_t filters = p->out_c / p->groups;
    int32_t x, o, ky, kx;
    for (x = 0; x < p->out_w; ++x) {
        for (o = 0; o < p->out_c; ++o) {
            float sum = 0.0f;
            for (ky = 0; ky < p->kernel_h; ++ky) {
                const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
                if (iy < 0 || iy >= p->in_h) {
                    continue;
                }
                for (kx = 0; kx < p->kernel_w; ++kx) {
                    const int32_t ix = x * p->stride_w - p->pad_left + kx * p->dilation_w;
                    if (ix >= 0 && ix < p->in_w) {
                        sum = tinyfuse_add_products_f32(
                            sum, in + (iy % p->in_ring) * row + ix * p->in_c + o / filters * filter_c,
                            weights + ((o * p->kernel_h + ky) * p->kernel_w + kx) * filter_c, filter_c);
                    }
                }
            }
            *out_row++ = tinyfuse_layer_output_f32(sum, biases[o], low, high);
        }
    }
}

/* Computes output row y of a depthwise convolution. Weights are [kernel_h][kernel_w][out_c]; output channel c reads
   input channel c / (out_c / in_c). Reads only the input rows of y's own window, writes only out_row. */
TINYFUSE_INLINE void tinyfuse_depthwise_row_f32(const tinyfuse_conv *p, const float *in, int32_t y, float *out_row,
                                                const float *weights, const float *biases, float low, float high)
{
    const int32_t row = p->in_w * p->in_c;
    const int32_t multiplier = p->out_c / p->in_c;
    int32_t x, o, ky, kx;
    for (x = 0; x < p->out_w; ++x) {
        for (o = 0; o < p->out_c; ++o) {
            float sum = 0.0f;
            for (ky = 0; ky < p->kernel_h; ++ky) {
                const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
                if (iy < 0 || iy >= p->in_h) {
                    continue;
                }
                for (kx = 0; kx < p->kernel_w; ++kx) {
                    const int32_t ix = x * p->stride_w - p->pad_left + kx * p->dilation_w;
                    if (ix >= 0 && ix < p->in_w) {
                        sum = tinyfuse_add_product_f32(
                            sum, in[(iy % p->in_ring) * row + ix * p->in_c + o / multiplier],
                            weights[(ky * p->kernel_w + kx) * p->out_c + o]);
                    }
                }
            }
            *out_row++ = tinyfuse_layer_output_f32(sum, biases[o], low, high);
        }
    }
}

#endif
