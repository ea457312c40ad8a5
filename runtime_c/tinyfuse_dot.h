/* The sum of products of two int8 vectors, for layers that see one input vector at a time. */
#ifndef TINYFUSE_DOT_H
#define TINYFUSE_DOT_H

#include "tinyfuse_common.h"

#if TINYFUSE_MVE

/* sum + a[0] * b[0] + ... + a[count - 1] * b[count - 1]; wraps. */
TINYFUSE_INLINE int32_t tinyfuse_dot_s8(const int8_t *a, const int8_t *b, int32_t count, int32_t sum)
{
    while (count > 0) {
        const mve_pred16_t some = vctp8q((uint32_t)count);
        sum = vmladavaq_p_s8(sum, vldrbq_z_s8(a, some), vldrbq_z_s8(b, some), some);
        a += 16;
        b += 16;
        count -= 16;
    }
    return sum;
}

#elif TINYFUSE_DSP

/* Bytes 0 and 2 of a word, and bytes 1 and 3, as pairs of int16. */
TINYFUSE_INLINE uint32_t tinyfuse_even_bytes(uint32_t word)
{
    uint32_t pair;
    __asm("sxtb16 %0, %1" : "=r"(pair) : "r"(word));
    return pair;
}

TINYFUSE_INLINE uint32_t tinyfuse_odd_bytes(uint32_t word)
{
    uint32_t pair;
    __asm("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
    return pair;
}

TINYFUSE_INLINE int32_t tinyfuse_add_products(int32_t sum, uint32_t a, uint32_t b)
{
    int32_t result;
    __asm("smlad %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

TINYFUSE_INLINE int32_t tinyfuse_dot_s8(const int8_t *a, const int8_t *b, int32_t count, int32_t sum)
{
    const int8_t *const words = a + (count & ~3), *const end = a + count;
    while (a != words) {
        const uint32_t x = tinyfuse_load_u32(a), y = tinyfuse_load_u32(b);
        sum = tinyfuse_add_products(sum, tinyfuse_even_bytes(x), tinyfuse_even_bytes(y));
        sum = tinyfuse_add_products(sum, tinyfuse_odd_bytes(x), tinyfuse_odd_bytes(y));
        a += 4;
        b += 4;
    }
    while (a != end) {
        sum = (int32_t)((uint32_t)sum + (uint32_t)(*a++ * *b++));
    }
    return sum;
}

#else

TINYFUSE_INLINE int32_t tinyfuse_dot_s8(const int8_t *a, const int8_t *b, int32_t count, int32_t sum)
{
    uint32_t wrapping = (uint32_t)sum;
    int32_t i;
    for (i = 0; i < count; ++i) {
        wrapping += (uint32_t)(a[i] * b[i]);
    }
    return (int32_t)wrapping;
}

#endif

#endif
