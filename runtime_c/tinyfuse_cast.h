/* CAST between stored numbers. All functions go forward, element by element: the output may be the input, or lie
   below it if its elements are not larger. */
#ifndef TINYFUSE_CAST_H
#define TINYFUSE_CAST_H

#include "tinyfuse_math.h"
#include "tinyfuse_requantize.h"

/* Rounds towards zero and saturates; NaN becomes 0. */
TINYFUSE_INLINE int32_t tinyfuse_float_to_int32(float value)
{
    if (value >= 2147483648.0f) {
        return INT32_MAX;
    }
    if (value <= -2147483648.0f) {
        return INT32_MIN;
    }
    return value == value ? (int32_t)value : 0;
}

TINYFUSE_INLINE uint32_t tinyfuse_float_to_uint32(float value)
{
    if (value >= 4294967296.0f) {
        return UINT32_MAX;
    }
    return value > 0.0f ? (uint32_t)value : 0;
}

#define TINYFUSE_DEFINE_EACH_ELEMENT(name, in_type, out_type, expression)                              \
    TINYFUSE_INLINE void tinyfuse_##name(const in_type *in, out_type *out, int32_t count)             \
    {                                                                                                  \
        int32_t i;                                                                                     \
        for (i = 0; i < count; ++i) {                                                                  \
            const in_type x = in[i];                                                                   \
            out[i] = (out_type)(expression);                                                           \
        }                                                                                              \
    }

/* Takes the low bits of a wider integer. bool becomes 1 for everything but zero. */
#define TINYFUSE_DEFINE_CASTS(suffix, in_type)                                                         \
    TINYFUSE_DEFINE_EACH_ELEMENT(cast_##suffix##_s8, in_type, int8_t, x)                               \
    TINYFUSE_DEFINE_EACH_ELEMENT(cast_##suffix##_s16, in_type, int16_t, x)                             \
    TINYFUSE_DEFINE_EACH_ELEMENT(cast_##suffix##_s32, in_type, int32_t, x)                             \
    TINYFUSE_DEFINE_EACH_ELEMENT(cast_##suffix##_u32, in_type, uint32_t, x)                            \
    TINYFUSE_DEFINE_EACH_ELEMENT(cast_##suffix##_bool, in_type, uint8_t, x != 0)                       \
    TINYFUSE_DEFINE_EACH_ELEMENT(cast_##suffix##_f32, in_type, float, x)

TINYFUSE_DEFINE_CASTS(s8, int8_t)
TINYFUSE_DEFINE_CASTS(s16, int16_t)
TINYFUSE_DEFINE_CASTS(s32, int32_t)
TINYFUSE_DEFINE_CASTS(u32, uint32_t)
TINYFUSE_DEFINE_CASTS(bool, uint8_t)
TINYFUSE_DEFINE_EACH_ELEMENT(cast_f32_s8, float, int8_t, tinyfuse_clamp(tinyfuse_float_to_int32(x), -128, 127))
TINYFUSE_DEFINE_EACH_ELEMENT(cast_f32_s16, float, int16_t,
                             tinyfuse_clamp(tinyfuse_float_to_int32(x), -32768, 32767))
TINYFUSE_DEFINE_EACH_ELEMENT(cast_f32_s32, float, int32_t, tinyfuse_float_to_int32(x))
TINYFUSE_DEFINE_EACH_ELEMENT(cast_f32_u32, float, uint32_t, tinyfuse_float_to_uint32(x))
TINYFUSE_DEFINE_EACH_ELEMENT(cast_f32_f32, float, float, x)
/* Looks at the bits: the vector units of some cores take numbers below the least normal one for zero. */
TINYFUSE_DEFINE_EACH_ELEMENT(cast_f32_bool, float, uint8_t, tinyfuse_bits_of_f32(x) << 1 != 0)

#endif
