/* SOFTMAX of int8 with a table of exps: they depend on the difference of two stored values, of which there are at
   most 256. Faster for long rows; the arithmetic is that of tinyfuse_softmax.h. */
#ifndef TINYFUSE_SOFTMAX_LOOKUP_H
#define TINYFUSE_SOFTMAX_LOOKUP_H

#include "tinyfuse_pool.h"
#include "tinyfuse_softmax.h"

typedef struct {
    int32_t rows, depth;
    int32_t differences; /* entries of the table; exps of larger differences count as zero. For Helium, a zero
                            follows the entries */
} tinyfuse_softmax_lookup;

/* Returns the greatest of `count` values. */
TINYFUSE_INLINE int32_t tinyfuse_softmax_greatest(const int8_t *in, int32_t count)
{
    int32_t most = -128, i = 0;
#if TINYFUSE_MVE
    for (; i + 16 <= count; i += 16) {
        most = vmaxvq_s8((int8_t)most, vldrbq_s8(in + i));
    }
#elif TINYFUSE_DSP
    uint32_t word = 0x80808080u;
    for (; i + 4 <= count; i += 4) {
        word = tinyfuse_max_bytes(word, tinyfuse_load_u32(in + i));
    }
    word = tinyfuse_max_bytes(word, (word >> 16) | 0x80800000u);
    most = (int8_t)tinyfuse_max_bytes(word, (word >> 8) | 0x80000000u);
#endif
    for (; i < count; ++i) {
        most = tinyfuse_max(most, in[i]);
    }
    return most;
}

#if TINYFUSE_MVE

/* Returns the exps of four values. The table ends with a zero, at `differences`. */
TINYFUSE_INLINE int32x4_t tinyfuse_softmax_exps(const int8_t *in, const int32_t *exps, int32_t most,
                                                int32_t differences)
{
    const int32x4_t difference = vsubq_s32(vdupq_n_s32(most), vldrbq_s32(in));
    const int32x4_t place = vminq_s32(difference, vdupq_n_s32(differences));
    return vldrwq_gather_shifted_offset_s32(exps, vreinterpretq_u32_s32(place));
}

#endif

/* Returns the sum of the exps of `count` values, in Q12.19. */
TINYFUSE_INLINE uint32_t tinyfuse_softmax_sum(const int8_t *in, int32_t count, const int32_t *exps, int32_t most,
                                              int32_t differences)
{
    const int8_t *const end = in + count;
    uint32_t sum = 0;
#if TINYFUSE_MVE
    for (; end - in >= 4; in += 4) {
        const int32x4_t found = tinyfuse_softmax_exps(in, exps, most, differences);
        sum = vaddvaq_u32(sum, vreinterpretq_u32_s32(vrshrq_n_s32(found, 12)));
    }
#endif
    while (in != end) {
        const int32_t difference = most - *in++;
        if (difference < differences) {
            sum += ((uint32_t)exps[difference] + 2048u) >> 12;
        }
    }
    return sum;
}

/* Computes `count` outputs, exp * reciprocal / 2^exponent - 128. Twice a reciprocal of at least 2^30 overflows int32 by
   2^32, so exp * 2^32 is added to the product. Some reciprocals are just below 2^30 and need no correction. */
TINYFUSE_INLINE void tinyfuse_softmax_outputs(const int8_t *in, int8_t *out, int32_t count, const int32_t *exps,
                                              int32_t most, int32_t differences, int32_t reciprocal, int32_t exponent)
{
    const int8_t *const end = in + count;
    const int32_t factor = (int32_t)(2u * (uint32_t)reciprocal), is_large = reciprocal >= 1 << 30 ? -1 : 0;
    const uint32_t half = 1u << (exponent - 1);
#if TINYFUSE_MVE
    for (; end - in >= 4; in += 4) {
        const int32x4_t found = tinyfuse_softmax_exps(in, exps, most, differences);
        const int32x4_t value = vrshlq_s32(vqrdmulhq_n_s32(found, reciprocal), vdupq_n_s32(-exponent));
        vstrbq_s32(out, vsubq_n_s32(vminq_s32(value, vdupq_n_s32(255)), 128));
        out += 4;
    }
#endif
    while (in != end) {
        const int32_t difference = most - *in++;
        int32_t value = 0;
        if (difference < differences) {
            const int32_t found = exps[difference];
            const int32_t share = tinyfuse_high_multiply_add(found & is_large, found, factor);
            value = (int32_t)(((uint32_t)share + half) >> exponent);
        }
        *out++ = (int8_t)(tinyfuse_min(value, 255) - 128);
    }
}

/* `exps`: exp in Q0.31 for differences 0, 1, 2, ... from the greatest value. All numbers are positive, so both roundings
   of tinyfuse_requantize add a half. The output may be the input, because rows are computed forward. */
TINYFUSE_SHARED void tinyfuse_softmax_lookup_s8(const tinyfuse_softmax_lookup *p, const int8_t *in, int8_t *out,
                                                const int32_t *exps)
{
    const int32_t count = p->depth, differences = p->differences;
    int32_t row;
    for (row = 0; row < p->rows; ++row) {
        const int32_t most = tinyfuse_softmax_greatest(in, count);
        const uint32_t sum = tinyfuse_softmax_sum(in, count, exps, most, differences);
        const int32_t headroom = tinyfuse_leading_zeros(sum);
        const int32_t exponent = 12 - headroom + 31 - 8; /* at least 23, because the greatest value's exp is nearly 1 */
        if (exponent > 31) { /* every output is below a half */
            memset(out, -128, (size_t)count);
        } else {
            const int32_t reciprocal = tinyfuse_reciprocal_of_one_plus((int32_t)((sum << headroom) - 0x80000000u));
            tinyfuse_softmax_outputs(in, out, count, exps, most, differences, reciprocal, exponent);
        }
        in += count;
        out += count;
    }
}

#endif
