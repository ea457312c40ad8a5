/* ADD(MUL(x, gains), offsets) of int8, gains and offsets being constants a channel: what is left of a batch normalization
   behind a layer. Products are rounded as TensorFlow Lite Micro does it, and stay in registers; sums lie on the plane of
   tinyfuse_single_rounding_sum.h, of which a channel's operand is known: what it adds is a constant, too. */
#ifndef TINYFUSE_SCALED_SUM_H
#define TINYFUSE_SCALED_SUM_H

#include "tinyfuse_single_rounding_sum.h"

/* product: of MUL, whose out_shift is from -22 to -1; of b, that is in the gains, nothing is read. A product that is
   stored as q gives clamp((q * factor + the channel's offset) >> shift). */
typedef struct {
    tinyfuse_binary product;
    int32_t factor, shift;
    int32_t act_min, act_max;
} tinyfuse_scaled_sum;

#if !TINYFUSE_MVE && (!TINYFUSE_DSP || defined(TINYFUSE_SCALED_SUM_MVE_H))

/* `gain`: less its zero point. */
TINYFUSE_INLINE int8_t tinyfuse_scaled_sum_one(const tinyfuse_scaled_sum *p, int32_t x, int32_t gain, int32_t offset)
{
    const tinyfuse_binary *const m = &p->product;
    const int32_t right = -m->out_shift;
    const int32_t high = tinyfuse_scale_high((x - m->a_zero_point) * gain, m->out_multiplier);
    const int32_t half = (int32_t)((uint32_t)1 << ((right - 1) & 31));
    const int32_t early = m->out_zero_point * (int32_t)((uint32_t)1 << (right & 31));
    const int32_t product = tinyfuse_clamp((high + (high >> 31) + (half + early)) >> right, m->act_min, m->act_max);
    return (int8_t)tinyfuse_clamp((product * p->factor + offset) >> p->shift, p->act_min, p->act_max);
}

/* Of int16 in words the one of that number. */
TINYFUSE_INLINE int32_t tinyfuse_scaled_sum_gain(const int32_t *group, int32_t i)
{
    return (i & 1) == 0 ? (int16_t)(group[i >> 1] & 0xffff) : group[i >> 1] >> 16;
}

#endif

#if !TINYFUSE_MVE

/* The constants of four channels, in words: twice their gains in 16 bits, then their offsets. */
enum { TINYFUSE_SCALED_SUM_CHANNELS = 4, TINYFUSE_SCALED_SUM_WORDS = 6 };

#if TINYFUSE_DSP

#define TINYFUSE_SCALED_SUM_LESS(p) tinyfuse_mul_less((p)->product.a_zero_point)

#define TINYFUSE_SCALED_SUM_OF(product, p, offset)                                                                 \
    do {                                                                                                           \
        product = tinyfuse_saturate_right(product * (p)->factor + (offset), (p)->shift);                           \
        if ((p)->act_min != -128 || (p)->act_max != 127) {                                                         \
            product = tinyfuse_clamp(product, (p)->act_min, (p)->act_max);                                         \
        }                                                                                                          \
    } while (0)

/* Of two products; their offsets, from that word of the group on, are loaded when registers are free for them. */
#define TINYFUSE_SCALED_SUM_PAIR(first, second, p, group, word)                                                    \
    do {                                                                                                           \
        int32_t of_first_, of_second_;                                                                             \
        __asm volatile("ldrd %0, %1, [%2, %3]"                                                                     \
                       : "=r"(of_first_), "=r"(of_second_) : "r"(group), "i"(4 * (word)) : "memory");              \
        TINYFUSE_SCALED_SUM_OF(first, p, of_first_);                                                               \
        TINYFUSE_SCALED_SUM_OF(second, p, of_second_);                                                             \
    } while (0)

TINYFUSE_INLINE void tinyfuse_scaled_sum_four(const tinyfuse_scaled_sum *p, const int8_t **in, const int32_t *group,
                                              int8_t *out, uint32_t less)
{
    const int32_t right = -p->product.out_shift, term = tinyfuse_mul_term(&p->product, right);
    const uint32_t word = tinyfuse_next_quad(in);
    const int32_t gains = group[0], more_gains = group[1];
    uint32_t even, odd, four;
    int32_t first, second, third, fourth;
    TINYFUSE_MUL_HALVES(even, word, p->product.a_zero_point, less, "");
    TINYFUSE_MUL_HALVES(odd, word, p->product.a_zero_point, less, ", ror #8");
    TINYFUSE_MUL_HALF("smulbb", first, &p->product, even, gains, term, right);
    TINYFUSE_MUL_HALF("smulbt", second, &p->product, odd, gains, term, right);
    TINYFUSE_MUL_HALF("smultb", third, &p->product, even, more_gains, term, right);
    TINYFUSE_MUL_HALF("smultt", fourth, &p->product, odd, more_gains, term, right);
    TINYFUSE_SCALED_SUM_PAIR(first, second, p, group, 2);
    TINYFUSE_SCALED_SUM_PAIR(third, fourth, p, group, 4);
    four = tinyfuse_word_of(first, second, third, fourth);
    memcpy(out, &four, sizeof four);
}

#else

#define TINYFUSE_SCALED_SUM_LESS(p) 0

/* One after the other. */
TINYFUSE_INLINE void tinyfuse_scaled_sum_four(const tinyfuse_scaled_sum *p, const int8_t **in, const int32_t *group,
                                              int8_t *out, uint32_t less)
{
    int32_t i;
    (void)less;
    for (i = 0; i < TINYFUSE_SCALED_SUM_CHANNELS; ++i) {
        out[i] = tinyfuse_scaled_sum_one(p, *(*in)++, tinyfuse_scaled_sum_gain(group, i) / 2, group[2 + i]);
    }
}

#endif

/* `pixels` of so many channels, whose constants are [channels / 4, rounded up] groups; `out` may be `in`, or lie below
   it. */
TINYFUSE_INLINE void tinyfuse_scaled_sum_s8(const tinyfuse_scaled_sum *p, const int8_t *in, const int32_t *groups,
                                            int8_t *out, int32_t pixels, int32_t channels)
{
    const uint32_t less = TINYFUSE_SCALED_SUM_LESS(p);
    const int32_t rest = channels & (TINYFUSE_SCALED_SUM_CHANNELS - 1);
    for (; pixels > 0; --pixels) {
        const int32_t *group = groups;
        const int8_t *const end = in + channels - rest;
        while (in != end) {
            tinyfuse_scaled_sum_four(p, &in, group, out, less);
            out += TINYFUSE_SCALED_SUM_CHANNELS;
            group += TINYFUSE_SCALED_SUM_WORDS;
        }
        if (rest > 0) {
            int8_t few[TINYFUSE_SCALED_SUM_CHANNELS] = {0};
            const int8_t *from = few;
            memcpy(few, in, (size_t)rest);
            tinyfuse_scaled_sum_four(p, &from, group, few, less);
            memcpy(out, few, (size_t)rest);
            in += rest;
            out += rest;
        }
    }
}

#endif

#endif
