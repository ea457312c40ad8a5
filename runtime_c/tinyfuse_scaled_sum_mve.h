/* ADD(MUL(x, gains), offsets) of int8 for Helium, with constant gains and offsets for each channel: a batch
   normalization after a layer. Products are rounded as in TensorFlow Lite Micro and stay in registers. Sums use the
   formula of tinyfuse_single_rounding_sum.h, in which the term of a channel's offset is a constant. Eight channels
   at a time: one vector holds the products of the even places, another one those of the odd places. */
#ifndef TINYFUSE_SCALED_SUM_MVE_H
#define TINYFUSE_SCALED_SUM_MVE_H

#include "tinyfuse_single_rounding_sum.h"

/* product: parameters of MUL, with an out_shift from -22 to -1; b's fields are unused because the gains include
   them. The stored product q gives clamp((q * factor + channel's offset) >> shift). */
typedef struct {
    tinyfuse_binary product;
    int32_t factor, shift;
    int32_t act_min, act_max;
} tinyfuse_scaled_sum;

/* Layout of the constants of eight channels in words: gains of 16 bits, offsets of the even channels, offsets of
   the odd ones. Offsets apply to products less their zero point. */
enum { TINYFUSE_SCALED_SUM_EIGHT = 8, TINYFUSE_SCALED_SUM_EIGHT_WORDS = 12 };

/* Flags: products may lie below (above) the range of their activation, and must be clamped there. */
#define TINYFUSE_SCALED_SUM_BELOW 1
#define TINYFUSE_SCALED_SUM_ABOVE 2

#if TINYFUSE_MVE

/* Computes `eights` times eight channels, at least one. `clamp_products` clamps products less their zero point,
   `clamp` clamps sums. Negative products are lowered so that halves go away from zero, as in tinyfuse_mul_down4. */
#define TINYFUSE_SCALED_SUM_EIGHTS(clamp_products, clamp)                                          \
    __asm volatile("dls lr, %[eights]\n\t"                                                         \
                   "1:\n\t"                                                                        \
                   "vldrb.s16 q0, [%[in]], #8\n\t"                                                 \
                   "vldrh.u16 q1, [%[group]], #16\n\t"                                             \
                   "vadd.i16 q0, q0, %[less]\n\t"                                                  \
                   "vmullb.s16 q2, q0, q1\n\t"                                                     \
                   "vmullt.s16 q3, q0, q1\n\t"                                                     \
                   "vshr.s32 q0, q2, #31\n\t"                                                      \
                   "vqrdmlah.s32 q0, q2, %[multiplier]\n\t"                                        \
                   "vshr.s32 q1, q3, #31\n\t"                                                      \
                   "vldrw.u32 q2, [%[group]], #16\n\t"                                             \
                   "vrshl.s32 q0, %[right]\n\t"                                                    \
                   "vqrdmlah.s32 q1, q3, %[multiplier]\n\t"                                        \
                   "vldrw.u32 q3, [%[group]], #16\n\t"                                             \
                   "vrshl.s32 q1, %[right]\n\t" clamp_products                                     \
                   "vmla.s32 q2, q0, %[factor]\n\t"                                                \
                   "vmla.s32 q3, q1, %[factor]\n\t"                                                \
                   "vshl.s32 q2, %[shift]\n\t"                                                     \
                   "vshl.s32 q3, %[shift]\n\t"                                                     \
                   "vqmovnb.s32 q2, q2\n\t"                                                        \
                   "vqmovnt.s32 q2, q3\n\t" clamp                                                  \
                   "vstrb.16 q2, [%[out]], #8\n\t"                                                 \
                   "le lr, 1b\n\t"                                                                 \
                   : [in] "+l"(in), [group] "+r"(group), [out] "+l"(out)                           \
                   : [eights] "r"(eights), [less] "r"(-m->a_zero_point),                           \
                     [multiplier] "r"(m->out_multiplier), [right] "r"(m->out_shift),               \
                     [factor] "r"(p->factor), [shift] "r"(-p->shift),                              \
                     [lowest] "w"(vdupq_n_s32(m->act_min - m->out_zero_point)),                    \
                     [highest] "w"(vdupq_n_s32(m->act_max - m->out_zero_point)),                   \
                     [least] "w"(vdupq_n_s16((int16_t)p->act_min)),                                \
                     [most] "w"(vdupq_n_s16((int16_t)p->act_max))                                  \
                   : "lr", "cc", "memory", "q0", "q1", "q2", "q3")
#define TINYFUSE_SCALED_SUM_FROM                                                                   \
    "vmax.s32 q0, q0, %q[lowest]\n\t"                                                              \
    "vmax.s32 q1, q1, %q[lowest]\n\t"
#define TINYFUSE_SCALED_SUM_TO                                                                     \
    "vmin.s32 q0, q0, %q[highest]\n\t"                                                             \
    "vmin.s32 q1, q1, %q[highest]\n\t"
#define TINYFUSE_SCALED_SUM_SATURATE "vqmovnb.s16 q2, q2\n\t"
#define TINYFUSE_SCALED_SUM_CLAMP                                                                  \
    "vmax.s16 q2, q2, %q[least]\n\t"                                                               \
    "vmin.s16 q2, q2, %q[most]\n\t"

#define TINYFUSE_SCALED_SUM_CLAMPED(clamp_products)                                                \
    do {                                                                                           \
        if (p->act_min == -128 && p->act_max == 127) {                                             \
            TINYFUSE_SCALED_SUM_EIGHTS(clamp_products, TINYFUSE_SCALED_SUM_SATURATE);              \
        } else {                                                                                   \
            TINYFUSE_SCALED_SUM_EIGHTS(clamp_products, TINYFUSE_SCALED_SUM_CLAMP);                 \
        }                                                                                          \
    } while (0)

/* Computes `eights` times eight channels. */
TINYFUSE_INLINE void tinyfuse_scaled_sum_eights(const tinyfuse_scaled_sum *p, const int8_t *in, const int32_t *group,
                                                int8_t *out, int32_t eights, int clamps)
{
    const tinyfuse_binary *const m = &p->product;
    if (clamps == (TINYFUSE_SCALED_SUM_BELOW | TINYFUSE_SCALED_SUM_ABOVE)) {
        TINYFUSE_SCALED_SUM_CLAMPED(TINYFUSE_SCALED_SUM_FROM TINYFUSE_SCALED_SUM_TO);
    } else if (clamps == TINYFUSE_SCALED_SUM_ABOVE) {
        TINYFUSE_SCALED_SUM_CLAMPED(TINYFUSE_SCALED_SUM_TO);
    } else if (clamps == TINYFUSE_SCALED_SUM_BELOW) {
        TINYFUSE_SCALED_SUM_CLAMPED(TINYFUSE_SCALED_SUM_FROM);
    } else {
        TINYFUSE_SCALED_SUM_CLAMPED("");
    }
}

#else

/* `gain`: stored value less its zero point. */
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

/* Extracts the int16 of index `i` from packed words. */
TINYFUSE_INLINE int32_t tinyfuse_scaled_sum_gain(const int32_t *group, int32_t i)
{
    return (i & 1) == 0 ? (int16_t)(group[i >> 1] & 0xffff) : group[i >> 1] >> 16;
}

TINYFUSE_INLINE void tinyfuse_scaled_sum_eights(const tinyfuse_scaled_sum *p, const int8_t *in, const int32_t *group,
                                                int8_t *out, int32_t eights, int clamps)
{
    const int32_t whole = p->product.out_zero_point * p->factor; /* offsets apply to products less their zero point,
                                                                    these products include it */
    int32_t i, k;
    (void)clamps;
    for (i = 0; i < eights; ++i) {
        for (k = 0; k < TINYFUSE_SCALED_SUM_EIGHT; ++k) {
            const int32_t offset = group[4 + 4 * (k & 1) + (k >> 1)] - whole;
            *out++ = tinyfuse_scaled_sum_one(p, *in++, tinyfuse_scaled_sum_gain(group, k), offset);
        }
        group += TINYFUSE_SCALED_SUM_EIGHT_WORDS;
    }
}

#endif

/* Computes `pixels` pixels of `channels` channels. `groups`: constants [ceil(channels / 8)]. `out` may be `in` or
   lie below it. `clamps`: flags of how products are clamped. */
TINYFUSE_INLINE void tinyfuse_scaled_sum_mve_s8(const tinyfuse_scaled_sum *p, const int8_t *in, const int32_t *groups,
                                                int8_t *out, int32_t pixels, int32_t channels, int clamps)
{
    const int32_t rest = channels & (TINYFUSE_SCALED_SUM_EIGHT - 1), eights = channels / TINYFUSE_SCALED_SUM_EIGHT;
    for (; pixels > 0; --pixels) {
        if (eights > 0) {
            tinyfuse_scaled_sum_eights(p, in, groups, out, eights, clamps);
            in += channels - rest;
            out += channels - rest;
        }
        if (rest > 0) {
            int8_t few[TINYFUSE_SCALED_SUM_EIGHT] = {0};
            memcpy(few, in, (size_t)rest);
            tinyfuse_scaled_sum_eights(p, few, groups + eights * TINYFUSE_SCALED_SUM_EIGHT_WORDS, few, 1, clamps);
            memcpy(out, few, (size_t)rest);
            in += rest;
            out += rest;
        }
    }
}

#endif
