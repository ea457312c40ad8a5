/* SVDF of float32 with an activation other than a clamp. */
#ifndef TINYFUSE_SVDF_ACTIVATED_F32_H
#define TINYFUSE_SVDF_ACTIVATED_F32_H

#include "tinyfuse_math.h"
#include "tinyfuse_svdf_f32.h"

/* tinyfuse_svdf_f32 followed by an activation: 1 for a set sign bit, else 0 (`sign_bit`, a constant), or tanh. */
TINYFUSE_INLINE void tinyfuse_svdf_activated_f32(const tinyfuse_svdf_real *p, const float *in, float *state, float *out,
                                                 const float *features, const float *time, const float *bias,
                                                 int sign_bit)
{
    int32_t i;
    tinyfuse_svdf_f32(p, in, state, out, features, time, bias);
    for (i = 0; i < p->batches * p->units; ++i) {
        out[i] = sign_bit ? (float)(tinyfuse_bits_of_f32(out[i]) >> 31) : tinyfuse_tanh_f32(out[i]);
    }
}

#endif
