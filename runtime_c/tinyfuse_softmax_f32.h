/* SOFTMAX and LOG_SOFTMAX of floats over the last dimension. Sums are computed in memory order. */
#ifndef TINYFUSE_SOFTMAX_F32_H
#define TINYFUSE_SOFTMAX_F32_H

#include "tinyfuse_math.h"
#include "tinyfuse_real.h"

TINYFUSE_INLINE float tinyfuse_greatest_f32(const float *in, int32_t count)
{
    float most = -FLT_MAX;
    int32_t i;
    for (i = 0; i < count; ++i) {
        most = tinyfuse_greater_f32(most, in[i]);
    }
    return most;
}

/* `rows` rows of `depth` elements. Goes forward: `out`, which holds the exps meanwhile, may be `in`. */
TINYFUSE_INLINE void tinyfuse_softmax_f32(const float *in, int32_t rows, int32_t depth, float beta, float *out)
{
    int32_t row, i;
    for (row = 0; row < rows; ++row) {
        const float most = tinyfuse_greatest_f32(in, depth);
        float sum = 0.0f;
        for (i = 0; i < depth; ++i) {
            out[i] = tinyfuse_exp_f32(tinyfuse_product_f32(tinyfuse_sum_f32(in[i], -most), beta));
            sum = tinyfuse_sum_f32(sum, out[i]);
        }
        for (i = 0; i < depth; ++i) {
            out[i] = tinyfuse_quotient_f32(out[i], sum);
        }
        in += depth;
        out += depth;
    }
}

/* Goes forward: `out` may be `in`. */
TINYFUSE_INLINE void tinyfuse_log_softmax_f32(const float *in, int32_t rows, int32_t depth, float *out)
{
    int32_t row, i;
    for (row = 0; row < rows; ++row) {
        const float most = tinyfuse_greatest_f32(in, depth);
        float sum = 0.0f;
        for (i = 0; i < depth; ++i) {
            sum = tinyfuse_sum_f32(sum, tinyfuse_exp_f32(tinyfuse_sum_f32(in[i], -most)));
        }
        sum = tinyfuse_log_f32(sum);
        for (i = 0; i < depth; ++i) {
            out[i] = tinyfuse_sum_f32(tinyfuse_sum_f32(in[i], -most), -sum);
        }
        in += depth;
        out += depth;
    }
}

#endif
