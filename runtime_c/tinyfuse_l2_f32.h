/* L2_POOL_2D and L2_NORMALIZATION of float32: square roots of sums of squares. */
#ifndef TINYFUSE_L2_F32_H
#define TINYFUSE_L2_F32_H

#include "tinyfuse_math.h"
#include "tinyfuse_pool_f32.h"

TINYFUSE_INLINE float tinyfuse_add_square_f32(float sum, float value)
{
    return tinyfuse_add_product_f32(sum, value, value);
}

TINYFUSE_INLINE float tinyfuse_pool_root_f32(const tinyfuse_pool_f32 *p, float sum, int32_t count)
{
    const float root = tinyfuse_sqrt_f32(tinyfuse_quotient_f32(sum, (float)count));
    return tinyfuse_clamp_f32(root, p->act_min, p->act_max);
}

TINYFUSE_DEFINE_POOL_ROW(tinyfuse_l2_pool_row_f32, tinyfuse_pool_f32, float, float, 0.0f,
                         tinyfuse_add_square_f32, tinyfuse_pool_root_f32)

/* Divides each of `rows` vectors of `depth` elements by its length, or by 10^-6 if that is greater. Goes forward
   vector by vector: `out` may be `in`. */
TINYFUSE_INLINE void tinyfuse_l2_normalization_f32(const float *in, int32_t rows, int32_t depth, float *out)
{
    int32_t row, i;
    for (row = 0; row < rows; ++row) {
        float length = 0.0f;
        for (i = 0; i < depth; ++i) {
            length = tinyfuse_add_square_f32(length, in[i]);
        }
        length = tinyfuse_greater_f32(tinyfuse_sqrt_f32(length), 1e-6f);
        for (i = 0; i < depth; ++i) {
            out[i] = tinyfuse_quotient_f32(in[i], length);
        }
        in += depth;
        out += depth;
    }
}

#endif
