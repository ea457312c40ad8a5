/* float32 arithmetic whose bits don't depend on the compiler's flags.
 *
 * GCC and clang may contract a product and a sum into one instruction with one rounding (-ffp-contract, on by
 * default for cores with an FPU), and reassociate under -ffast-math; old x86 FPUs compute in more bits.
 * Intermediate results therefore go through tinyfuse_rounded: an empty statement that the compiler can't look
 * through. It keeps the value in a 32-bit register and costs no instruction.
 */
#ifndef TINYFUSE_FLOAT_H
#define TINYFUSE_FLOAT_H

#include <float.h>

#include "tinyfuse_common.h"

#if !defined(__GNUC__) || (defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0)
#define TINYFUSE_FLOAT_REGISTER /* Unknown registers: through memory. */
#elif defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__SOFTFP__)
#define TINYFUSE_FLOAT_REGISTER "+t"
#elif defined(__aarch64__)
#define TINYFUSE_FLOAT_REGISTER "+w"
#elif defined(__x86_64__) || defined(__SSE_MATH__)
#define TINYFUSE_FLOAT_REGISTER "+x"
#elif defined(__riscv_flen)
#define TINYFUSE_FLOAT_REGISTER "+f"
#elif defined(__arm__) || defined(__riscv)
#define TINYFUSE_FLOAT_REGISTER "+r"
#else
#define TINYFUSE_FLOAT_REGISTER "+m"
#endif

/* Rounds to float32. */
TINYFUSE_INLINE float tinyfuse_rounded(float value)
{
#if !defined(__GNUC__) || (defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0)
    volatile float stored = value;
    return stored;
#else
    __asm__("" : TINYFUSE_FLOAT_REGISTER(value));
    return value;
#endif
}

/* a * b, rounded, so that a sum with it rounds once more, as in the interpreter. */
TINYFUSE_INLINE float tinyfuse_product_f32(float a, float b)
{
    return tinyfuse_rounded(a * b);
}

TINYFUSE_INLINE float tinyfuse_sum_f32(float a, float b)
{
    return tinyfuse_rounded(a + b);
}

/* A true division, never a product with a reciprocal that divisions share. */
TINYFUSE_INLINE float tinyfuse_quotient_f32(float a, float b)
{
    return tinyfuse_rounded(a / tinyfuse_rounded(b));
}

/* sum + a * b, rounded twice, in this order. */
TINYFUSE_INLINE float tinyfuse_add_product_f32(float sum, float a, float b)
{
    return tinyfuse_rounded(sum + tinyfuse_product_f32(a, b));
}

#endif
