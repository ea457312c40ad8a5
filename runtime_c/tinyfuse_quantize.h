/* QUANTIZE and DEQUANTIZE: between float32 and integers, and between integer quantizations. */
#ifndef TINYFUSE_QUANTIZE_H
#define TINYFUSE_QUANTIZE_H

#include "tinyfuse_requantize.h"

/* Integer to integer: (value - in_zero_point) * multiplier / 2^31 * 2^shift + out_zero_point. */
typedef struct {
    int32_t in_zero_point, out_zero_point;
    int32_t multiplier, shift;
} tinyfuse_rescale;

/* Returns value / scale, rounded to the nearest integer (halves away from zero), with a float32 division as in TensorFlow
   Lite Micro. For quotients beyond +-65536, at which every integer type here saturates, the result has the same sign and
   lies beyond +-65536, too. NaN counts as minus infinity.

   The largest float32 below 0.5, with the quotient's sign, is added, and the sum truncated. Adding 0.5 would round this
   number itself up. The result was compared with the definition for every float32. */
TINYFUSE_INLINE int32_t tinyfuse_round_quotient(float value, float scale)
{
    float quotient = value / scale;
#if TINYFUSE_FPU
    float half;
    int32_t whole, twice; /* twice: without the sign, to tell NaN */
    __asm("vmov %[whole], %[quotient]\n\t"
          "lsl %[twice], %[whole], #1\n\t"
          "and %[whole], %[whole], #0x80000000\n\t"
          "orr %[whole], %[whole], %[below]\n\t"
          "vmov %[half], %[whole]\n\t"
          "vadd.f32 %[half], %[quotient], %[half]\n\t"
          "vcvt.s32.f32 %[half], %[half]\n\t"
          "cmp %[twice], #0xFF000000\n\t"
          "vmov %[whole], %[half]\n\t"
          "it hi\n\t"
          "movhi %[whole], #0x80000000\n\t"
          "ssat %[whole], #18, %[whole]"
          : [whole] "=&r"(whole), [twice] "=&r"(twice), [half] "=&t"(half)
          : [quotient] "t"(quotient), [below] "r"(0x3EFFFFFF)
          : "cc");
    return whole;
#else
    uint32_t bits;
    float half;
    if (!(quotient > -65536.0f)) {
        quotient = -65536.0f;
    }
    if (quotient > 65536.0f) {
        quotient = 65536.0f;
    }
    memcpy(&bits, &quotient, sizeof bits);
    bits = (bits & 0x80000000u) | 0x3EFFFFFFu;
    memcpy(&half, &bits, sizeof half);
    return (int32_t)(quotient + half);
#endif
}

/* All functions below go forward, element by element: the output may begin where the input does, or below it if its
   elements are not larger. */
#define TINYFUSE_DEFINE_QUANTIZE(suffix, out_type, low, high)                                          \
    TINYFUSE_INLINE void tinyfuse_quantize_f32_##suffix(const float *in, out_type *out, int32_t count, \
                                                        float scale, int32_t zero_point)              \
    {                                                                                                  \
        int32_t i;                                                                                     \
        for (i = 0; i < count; ++i) {                                                                  \
            const int32_t value = tinyfuse_round_quotient(in[i], scale) + zero_point;                  \
            out[i] = (out_type)tinyfuse_clamp(value, low, high);                                       \
        }                                                                                              \
    }

/* Multiplies a float32 and an integer of at most 17 bits. The exact product fits a double, so one float32
   multiplication gives what TensorFlow Lite Micro gets by storing a double product as float32. */
#define TINYFUSE_DEFINE_DEQUANTIZE(suffix, in_type)                                                  \
    TINYFUSE_INLINE void tinyfuse_dequantize_##suffix##_f32(const in_type *in, float *out,           \
                                                            int32_t count, float scale,              \
                                                            int32_t zero_point)                      \
    {                                                                                                \
        int32_t i;                                                                                   \
        for (i = 0; i < count; ++i) {                                                                \
            out[i] = scale * (float)(in[i] - zero_point);                                            \
        }                                                                                            \
    }

#define TINYFUSE_DEFINE_RESCALE(suffix, in_type, out_type, low, high)                                \
    TINYFUSE_INLINE void tinyfuse_rescale_##suffix(const tinyfuse_rescale *p, const in_type *in,     \
                                                   out_type *out, int32_t count)                     \
    {                                                                                                \
        int32_t i;                                                                                   \
        for (i = 0; i < count; ++i) {                                                                \
            const int32_t value = tinyfuse_requantize(in[i] - p->in_zero_point, p->multiplier,       \
                                                      p->shift);                                     \
            out[i] = (out_type)tinyfuse_clamp(value + p->out_zero_point, low, high);                 \
        }                                                                                            \
    }

TINYFUSE_DEFINE_QUANTIZE(s8, int8_t, -128, 127)
TINYFUSE_DEFINE_QUANTIZE(s16, int16_t, -32768, 32767)
TINYFUSE_DEFINE_DEQUANTIZE(s8, int8_t)
TINYFUSE_DEFINE_DEQUANTIZE(u8, uint8_t)
TINYFUSE_DEFINE_DEQUANTIZE(s16, int16_t)
TINYFUSE_DEFINE_RESCALE(s8_s8, int8_t, int8_t, -128, 127)
TINYFUSE_DEFINE_RESCALE(s8_u8, int8_t, uint8_t, 0, 255)
TINYFUSE_DEFINE_RESCALE(u8_s8, uint8_t, int8_t, -128, 127)
TINYFUSE_DEFINE_RESCALE(s8_s16, int8_t, int16_t, -32768, 32767)
TINYFUSE_DEFINE_RESCALE(s16_s8, int16_t, int8_t, -128, 127)
TINYFUSE_DEFINE_RESCALE(s16_s16, int16_t, int16_t, -32768, 32767)
TINYFUSE_DEFINE_RESCALE(s8_s32, int8_t, int32_t, INT32_MIN, INT32_MAX)
TINYFUSE_DEFINE_RESCALE(s16_s32, int16_t, int32_t, INT32_MIN, INT32_MAX)
TINYFUSE_DEFINE_RESCALE(s32_s8, int32_t, int8_t, -128, 127)
TINYFUSE_DEFINE_RESCALE(s32_s16, int32_t, int16_t, -32768, 32767)

#endif
