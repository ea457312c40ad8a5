/* Fourier transforms of real signals of int16, int32 and float32, with the roundings of KISS FFT v130.
 *
 * A real signal is transformed as `points` complex numbers (its even and odd samples) in stages of radix 4, 2, 3
 * and 5; a last pass separates the two spectra. All of it happens in the output's memory. In fixed point each stage
 * divides its inputs by its radix; products are rounded with halves upwards, and sums wrap around.
 */
#ifndef TINYFUSE_SIGNAL_FFT_H
#define TINYFUSE_SIGNAL_FFT_H

#include "tinyfuse_common.h"
#include "tinyfuse_float.h"

/* radices: radix of each stage, the last stage first, then 0. used: the sum of 1 << radix, so that compilers drop
   the code of other radices. inverse: 1 or 0. */
typedef struct {
    int32_t points;
    uint8_t inverse, used, radices[14];
} tinyfuse_fft;

/* --- int16 --- */

TINYFUSE_INLINE int16_t tinyfuse_fft_round_s16(int32_t product)
{
    return (int16_t)((product + (1 << 14)) >> 15);
}

TINYFUSE_INLINE int16_t tinyfuse_fft_add_s16(int16_t a, int16_t b)
{
    return (int16_t)(a + b);
}

TINYFUSE_INLINE int16_t tinyfuse_fft_sub_s16(int16_t a, int16_t b)
{
    return (int16_t)(a - b);
}

TINYFUSE_INLINE int16_t tinyfuse_fft_half_sum_s16(int16_t a, int16_t b)
{
    return (int16_t)((a + b) >> 1);
}

TINYFUSE_INLINE int16_t tinyfuse_fft_half_difference_s16(int16_t a, int16_t b)
{
    return (int16_t)((a - b) >> 1);
}

TINYFUSE_INLINE int16_t tinyfuse_fft_half_s16(int16_t a)
{
    return (int16_t)(a >> 1);
}

TINYFUSE_INLINE int16_t tinyfuse_fft_mul_s16(int16_t a, int16_t b)
{
    return tinyfuse_fft_round_s16(a * b);
}

/* a * b - c * d. The factors b and d are on the unit circle, so the result fits. */
TINYFUSE_INLINE int16_t tinyfuse_fft_product_difference_s16(int16_t a, int16_t b, int16_t c, int16_t d)
{
    return tinyfuse_fft_round_s16(a * b - c * d);
}

TINYFUSE_INLINE int16_t tinyfuse_fft_product_sum_s16(int16_t a, int16_t b, int16_t c, int16_t d)
{
    return tinyfuse_fft_round_s16(a * b + c * d);
}

TINYFUSE_INLINE int16_t tinyfuse_fft_divide_s16(int16_t a, int32_t by)
{
    return tinyfuse_fft_round_s16(a * (INT16_MAX / by));
}

/* --- int32 --- */

TINYFUSE_INLINE int32_t tinyfuse_fft_round_s32(int64_t product)
{
    return (int32_t)((product + (1 << 30)) >> 31);
}

TINYFUSE_INLINE int32_t tinyfuse_fft_add_s32(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

TINYFUSE_INLINE int32_t tinyfuse_fft_sub_s32(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

TINYFUSE_INLINE int32_t tinyfuse_fft_half_sum_s32(int32_t a, int32_t b)
{
    return tinyfuse_fft_add_s32(a, b) >> 1;
}

TINYFUSE_INLINE int32_t tinyfuse_fft_half_difference_s32(int32_t a, int32_t b)
{
    return tinyfuse_fft_sub_s32(a, b) >> 1;
}

TINYFUSE_INLINE int32_t tinyfuse_fft_half_s32(int32_t a)
{
    return a >> 1;
}

TINYFUSE_INLINE int32_t tinyfuse_fft_mul_s32(int32_t a, int32_t b)
{
    return tinyfuse_fft_round_s32((int64_t)a * b);
}

TINYFUSE_INLINE int32_t tinyfuse_fft_product_difference_s32(int32_t a, int32_t b, int32_t c, int32_t d)
{
    return tinyfuse_fft_round_s32((int64_t)a * b - (int64_t)c * d);
}

TINYFUSE_INLINE int32_t tinyfuse_fft_product_sum_s32(int32_t a, int32_t b, int32_t c, int32_t d)
{
    return tinyfuse_fft_round_s32((int64_t)a * b + (int64_t)c * d);
}

TINYFUSE_INLINE int32_t tinyfuse_fft_divide_s32(int32_t a, int32_t by)
{
    return tinyfuse_fft_mul_s32(a, INT32_MAX / by);
}

/* --- float32 --- */

TINYFUSE_INLINE float tinyfuse_fft_add_f32(float a, float b)
{
    return tinyfuse_rounded(a + b);
}

TINYFUSE_INLINE float tinyfuse_fft_sub_f32(float a, float b)
{
    return tinyfuse_rounded(a - b);
}

TINYFUSE_INLINE float tinyfuse_fft_half_f32(float a)
{
    return tinyfuse_product_f32(a, 0.5f);
}

TINYFUSE_INLINE float tinyfuse_fft_half_sum_f32(float a, float b)
{
    return tinyfuse_fft_half_f32(tinyfuse_fft_add_f32(a, b));
}

TINYFUSE_INLINE float tinyfuse_fft_half_difference_f32(float a, float b)
{
    return tinyfuse_fft_half_f32(tinyfuse_fft_sub_f32(a, b));
}

TINYFUSE_INLINE float tinyfuse_fft_mul_f32(float a, float b)
{
    return tinyfuse_product_f32(a, b);
}

TINYFUSE_INLINE float tinyfuse_fft_product_difference_f32(float a, float b, float c, float d)
{
    return tinyfuse_fft_sub_f32(tinyfuse_product_f32(a, b), tinyfuse_product_f32(c, d));
}

TINYFUSE_INLINE float tinyfuse_fft_product_sum_f32(float a, float b, float c, float d)
{
    return tinyfuse_fft_add_f32(tinyfuse_product_f32(a, b), tinyfuse_product_f32(c, d));
}

TINYFUSE_INLINE float tinyfuse_fft_divide_f32(float a, int32_t by)
{
    (void)by;
    return a;
}

/* --- the transforms, defined once for each dtype --- */

#define TINYFUSE_FFT(name) tinyfuse_fft_##name##_s16
#define TINYFUSE_FFT_SCALAR int16_t
#define TINYFUSE_FFT_NEGATED(a) ((int16_t)-(a))
#include "tinyfuse_signal_fft_stages.h"
#undef TINYFUSE_FFT
#undef TINYFUSE_FFT_SCALAR
#undef TINYFUSE_FFT_NEGATED

#define TINYFUSE_FFT(name) tinyfuse_fft_##name##_s32
#define TINYFUSE_FFT_SCALAR int32_t
#define TINYFUSE_FFT_NEGATED(a) tinyfuse_fft_sub_s32(0, (a))
#include "tinyfuse_signal_fft_stages.h"
#undef TINYFUSE_FFT
#undef TINYFUSE_FFT_SCALAR
#undef TINYFUSE_FFT_NEGATED

#define TINYFUSE_FFT(name) tinyfuse_fft_##name##_f32
#define TINYFUSE_FFT_SCALAR float
#define TINYFUSE_FFT_NEGATED(a) (-(a))
#include "tinyfuse_signal_fft_stages.h"
#undef TINYFUSE_FFT
#undef TINYFUSE_FFT_SCALAR
#undef TINYFUSE_FFT_NEGATED

/* out [count][2 * points], divided by its length, because KISS FFT does not normalize floats. */
TINYFUSE_INLINE void tinyfuse_fft_divide_all_f32(float *out, int32_t count, int32_t length)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        out[i] = tinyfuse_rounded(out[i] / (float)length);
    }
}

#endif
