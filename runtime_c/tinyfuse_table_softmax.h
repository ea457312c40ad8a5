/* SOFTMAX of int8 as in onnxruntime (QLinearSoftmax): exps from a float32 table, quotients in double precision,
   halves rounded to even. */
#ifndef TINYFUSE_TABLE_SOFTMAX_H
#define TINYFUSE_TABLE_SOFTMAX_H

#include "tinyfuse_float.h"

/* The integer nearest to exp * factor / sum (0 to 2^17), halves to even. float32 decides if the quotient, whose
   relative error is below 2^-22, is not near a half. Otherwise double precision decides, which most cores compute
   in software: it never rounds a quotient to a half that it isn't. */
TINYFUSE_INLINE int32_t tinyfuse_nearest_quotient(float value, int32_t factor, float sum)
{
    const float about = tinyfuse_product_f32(tinyfuse_quotient_f32(value, sum), (float)factor);
    const int32_t whole = (int32_t)about;
    const float rest = tinyfuse_sum_f32(about, -(float)whole) - 0.5f; /* exact */
    const float near_half = about * (1.0f / 1048576.0f);
    if (rest > near_half) {
        return whole + 1;
    }
    if (rest < -near_half) {
        return whole;
    } else {
        const double quotient = (double)value * (double)factor / (double)sum;
        const int32_t floor = (int32_t)quotient;
        const double part = quotient - (double)floor; /* exact */
        return floor + (part > 0.5 || (part == 0.5 && (floor & 1)) ? 1 : 0);
    }
}

/* `exps`: float32 [256] for the differences -255 to 0 from the greatest value of a vector. out = nearest(exp *
   factor / sum of exps) + zero point. Goes forward: the output may be the input. */
TINYFUSE_SHARED void tinyfuse_table_softmax_s8(const int8_t *in, int32_t rows, int32_t depth, const float *exps,
                                               int32_t factor, int32_t out_zero_point, int8_t *out)
{
    int32_t row, i;
    for (row = 0; row < rows; ++row) {
        int32_t most = -128;
        float sum = 0.0f;
        for (i = 0; i < depth; ++i) {
            most = tinyfuse_max(most, in[i]);
        }
        for (i = 0; i < depth; ++i) {
            sum = tinyfuse_sum_f32(sum, exps[255 + in[i] - most]);
        }
        for (i = 0; i < depth; ++i) {
            const int32_t nearest = tinyfuse_nearest_quotient(exps[255 + in[i] - most], factor, sum);
            out[i] = (int8_t)tinyfuse_min(nearest + out_zero_point, 127);
        }
        in += depth;
        out += depth;
    }
}

#endif
