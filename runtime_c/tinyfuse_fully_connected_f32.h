/* Fully connected layer, float32: every product and every sum rounded, in the order of the inputs. */
#ifndef TINYFUSE_FULLY_CONNECTED_F32_H
#define TINYFUSE_FULLY_CONNECTED_F32_H

#include "tinyfuse_conv_f32.h"

/* in [batches][in_c], weights [out_c][in_c], out [batches][out_c], biases [out_c]. out may lie over batches of in
   that are read already, not over the one that is computed. */
TINYFUSE_INLINE void tinyfuse_fully_connected_f32(const float *in, float *out, const float *weights,
                                                  const float *biases, int32_t batches, int32_t in_c, int32_t out_c,
                                                  float low, float high)
{
    int32_t b, o;
    for (b = 0; b < batches; ++b) {
        for (o = 0; o < out_c; ++o) {
            const float sum = tinyfuse_add_products_f32(0.0f, in, weights + o * in_c, in_c);
            *out++ = tinyfuse_layer_output_f32(sum, biases[o], low, high);
        }
        in += in_c;
    }
}

#endif
