/* Dot products of int8 vectors for layers of one input vector: with one row of weights, and with four rows that share
   the loads of the vector. */
#ifndef TINYFUSE_DOT_H
#define TINYFUSE_DOT_H

#include "tinyfuse_common.h"

#if TINYFUSE_MVE

/* Returns sum + a[0] * b[0] + ... + a[count - 1] * b[count - 1]; wraps. */
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

/* Adds a[0] * rows[r * row] + ... + a[count - 1] * rows[r * row + count - 1] to sums[r], for four rows; wraps. */
TINYFUSE_INLINE void tinyfuse_dots_s8(const int8_t *a, const int8_t *rows, int32_t row, int32_t count, int32_t *sums)
{
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    while (count > 0) {
        const mve_pred16_t some = vctp8q((uint32_t)count);
        const int8x16_t x = vldrbq_z_s8(a, some); /* zeros beyond the end make zero products */
        s0 = vmladavaq_s8(s0, x, vldrbq_z_s8(rows, some));
        s1 = vmladavaq_s8(s1, x, vldrbq_z_s8(rows + row, some));
        s2 = vmladavaq_s8(s2, x, vldrbq_z_s8(rows + 2 * row, some));
        s3 = vmladavaq_s8(s3, x, vldrbq_z_s8(rows + 3 * row, some));
        a += 16;
        rows += 16;
        count -= 16;
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

#elif TINYFUSE_DSP

/* Return bytes 0 and 2 of a word, and bytes 1 and 3, as pairs of int16. */
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

/* Returns a - b of each half of a word. */
TINYFUSE_INLINE uint32_t tinyfuse_subtract_pairs(uint32_t a, uint32_t b)
{
    uint32_t pair;
    __asm("ssub16 %0, %1, %2" : "=r"(pair) : "r"(a), "r"(b));
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

/* Adds a[0] * rows[r * row] + ... + a[count - 1] * rows[r * row + count - 1] to sums[r], for four rows; wraps. */
TINYFUSE_INLINE void tinyfuse_dots_s8(const int8_t *a, const int8_t *rows, int32_t row, int32_t count, int32_t *sums)
{
    const int8_t *const words = a + (count & ~3), *const end = a + count;
    const int8_t *r0 = rows, *r1 = r0 + row, *r2 = r1 + row, *r3 = r2 + row;
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
#define TINYFUSE_DOTS_WORD(sum, from)                                  \
    word = tinyfuse_load_u32(from);                                    \
    sum = tinyfuse_add_products(sum, even, tinyfuse_even_bytes(word)); \
    sum = tinyfuse_add_products(sum, odd, tinyfuse_odd_bytes(word));   \
    from += 4;
    while (a != words) {
        uint32_t word = tinyfuse_load_u32(a);
        const uint32_t even = tinyfuse_even_bytes(word), odd = tinyfuse_odd_bytes(word);
        a += 4;
        TINYFUSE_DOTS_WORD(s0, r0)
        TINYFUSE_DOTS_WORD(s1, r1)
        TINYFUSE_DOTS_WORD(s2, r2)
        TINYFUSE_DOTS_WORD(s3, r3)
    }
#undef TINYFUSE_DOTS_WORD
    while (a != end) {
        const int32_t x = *a++;
        s0 = (int32_t)((uint32_t)s0 + (uint32_t)(x * *r0++));
        s1 = (int32_t)((uint32_t)s1 + (uint32_t)(x * *r1++));
        s2 = (int32_t)((uint32_t)s2 + (uint32_t)(x * *r2++));
        s3 = (int32_t)((uint32_t)s3 + (uint32_t)(x * *r3++));
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
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

/* Adds a[0] * rows[r * row] + ... + a[count - 1] * rows[r * row + count - 1] to sums[r], for four rows; wraps. */
TINYFUSE_INLINE void tinyfuse_dots_s8(const int8_t *a, const int8_t *rows, int32_t row, int32_t count, int32_t *sums)
{
    int32_t r;
    for (r = 0; r < 4; ++r) {
        sums[r] = tinyfuse_dot_s8(a, rows + r * row, count, sums[r]);
    }
}

#endif

#endif
