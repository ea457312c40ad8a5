/* Elementwise operators of two int64 inputs, and rare ones of int32 (with fused activations) and bool. */
#ifndef TINYFUSE_BINARY_WIDE_H
#define TINYFUSE_BINARY_WIDE_H

#include "tinyfuse_broadcast.h"

/* int32 wraps around */
TINYFUSE_INLINE uint32_t tinyfuse_wrapped_square(uint32_t value)
{
    return value * value;
}

/* Quotient towards zero. Division by zero gives 0, and the least number divided by -1 gives itself: both would trap
   on some processors. */
TINYFUSE_INLINE int32_t tinyfuse_quotient_s32(int32_t a, int32_t b)
{
    if (b == 0) {
        return 0;
    }
    return b == -1 ? (int32_t)(0u - (uint32_t)a) : a / b;
}

/* Clamps to the range of a fused activation. */
typedef struct {
    int32_t low, high;
} tinyfuse_range_s32;

TINYFUSE_INLINE int32_t tinyfuse_clamp_s32(const tinyfuse_range_s32 *p, int32_t value)
{
    return value < p->low ? p->low : value > p->high ? p->high : value;
}

TINYFUSE_DEFINE_BINARY(sub_clamped, s32, tinyfuse_range_s32, int32_t, int32_t,
                       tinyfuse_clamp_s32(p, (int32_t)((uint32_t)x - (uint32_t)y)))
TINYFUSE_DEFINE_BINARY(mul_clamped, s32, tinyfuse_range_s32, int32_t, int32_t,
                       tinyfuse_clamp_s32(p, (int32_t)((uint32_t)x * (uint32_t)y)))
TINYFUSE_DEFINE_BINARY(div_clamped, s32, tinyfuse_range_s32, int32_t, int32_t,
                       tinyfuse_clamp_s32(p, tinyfuse_quotient_s32(x, y)))
TINYFUSE_DEFINE_PLAIN_BINARY(squared_difference, s32, int32_t, int32_t,
                             tinyfuse_wrapped_square((uint32_t)x - (uint32_t)y))
TINYFUSE_DEFINE_PLAIN_BINARY(div, s32, int32_t, int32_t, tinyfuse_quotient_s32(x, y))
TINYFUSE_DEFINE_PLAIN_BINARY(equal, bool, uint8_t, uint8_t, x == y)
TINYFUSE_DEFINE_PLAIN_BINARY(not_equal, bool, uint8_t, uint8_t, x != y)
TINYFUSE_DEFINE_PLAIN_BINARY(maximum, s64, int64_t, int64_t, x > y ? x : y)
TINYFUSE_DEFINE_PLAIN_BINARY(minimum, s64, int64_t, int64_t, x < y ? x : y)
TINYFUSE_DEFINE_PLAIN_BINARY(equal, s64, int64_t, uint8_t, x == y)
TINYFUSE_DEFINE_PLAIN_BINARY(not_equal, s64, int64_t, uint8_t, x != y)
TINYFUSE_DEFINE_PLAIN_BINARY(greater, s64, int64_t, uint8_t, x > y)
TINYFUSE_DEFINE_PLAIN_BINARY(greater_equal, s64, int64_t, uint8_t, x >= y)
TINYFUSE_DEFINE_PLAIN_BINARY(less, s64, int64_t, uint8_t, x < y)
TINYFUSE_DEFINE_PLAIN_BINARY(less_equal, s64, int64_t, uint8_t, x <= y)

#endif
