/* ADD_N: the sum of several tensors of one shape. Goes forward, element by element: the output may be one of the
   inputs or lie below it. */
#ifndef TINYFUSE_ADD_N_H
#define TINYFUSE_ADD_N_H

#include "tinyfuse_float.h"
#include "tinyfuse_requantize.h"

TINYFUSE_INLINE void tinyfuse_add_n_f32(const float *const *in, int32_t inputs, float *out, int32_t count)
{
    int32_t i, j;
    for (i = 0; i < count; ++i) {
        float sum = tinyfuse_rounded(0.0f);
        for (j = 0; j < inputs; ++j) {
            sum = tinyfuse_sum_f32(sum, in[j][i]);
        }
        out[i] = sum;
    }
}

/* `start`: initial value of the sum of stored values. The multiplier applies to the sum times 2^19. */
TINYFUSE_INLINE void tinyfuse_add_n_s8(const int8_t *const *in, int32_t inputs, int8_t *out, int32_t count,
                                       int32_t start, int32_t multiplier, int32_t right, int32_t out_zero_point)
{
    int32_t i, j;
    for (i = 0; i < count; ++i) {
        int32_t sum = start;
        for (j = 0; j < inputs; ++j) {
            sum += in[j][i];
        }
        sum = tinyfuse_divide_by_power(tinyfuse_high_multiply(sum * (1 << 19), multiplier), right);
        out[i] = (int8_t)tinyfuse_clamp(sum + out_zero_point, -128, 127);
    }
}

#endif
