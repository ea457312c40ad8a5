/* ADD and SUB of int8 tensors with a single rounding: one multiplication for each operand, then one shift. The
   generator has compared the results of all 65,536 pairs of operands with TensorFlow Lite Micro's. */
#ifndef TINYFUSE_SINGLE_ROUNDING_SUM_H
#define TINYFUSE_SINGLE_ROUNDING_SUM_H

#include "tinyfuse_elementwise.h"

/* out = clamp((a * a_factor + b * b_factor + offset) >> shift). No sum exceeds int32; factors lie between -2^23 and
   2^23. */
typedef struct {
    int32_t a_factor, b_factor, offset, shift;
    int32_t act_min, act_max;
} tinyfuse_single_rounding_sum;

TINYFUSE_INLINE int8_t tinyfuse_single_rounding_sum_one(const tinyfuse_single_rounding_sum *p, int32_t a, int32_t b)
{
    const int32_t sum = a * p->a_factor + p->offset + b * p->b_factor;
    const int32_t result = tinyfuse_saturate_right(sum, p->shift);
    const int saturates = p->act_min == -128 && p->act_max == 127;
    return (int8_t)(saturates ? result : tinyfuse_clamp(result, p->act_min, p->act_max));
}

#if TINYFUSE_MVE

TINYFUSE_INLINE int32x4_t tinyfuse_single_rounding_sum4(const tinyfuse_single_rounding_sum *p, int32x4_t a, int32x4_t b)
{
    const int32x4_t first = vmlaq_n_s32(vdupq_n_s32(p->offset), a, p->a_factor);
    const int32x4_t sum = vshlq_s32(vmlaq_n_s32(first, b, p->b_factor), vdupq_n_s32(-p->shift));
    return vminq_s32(vmaxq_s32(sum, vdupq_n_s32(p->act_min)), vdupq_n_s32(p->act_max));
}

/* Eight elements an iteration. Narrowing interleaves the first four with the last four. `clamp` saturates or clamps
   them in 16 bits. */
#define TINYFUSE_SINGLE_ROUNDING_SUM_EIGHTS(clamp)                                                            \
    __asm volatile("dls lr, %[eights]\n\t"                                                         \
                   "1:\n\t"                                                                        \
                   "vldrb.s32 q0, [%[a]], #4\n\t"                                                  \
                   "vldrb.s32 q1, [%[b]], #4\n\t"                                                  \
                   "vmlas.s32 q0, %q[a_factor], %[offset]\n\t"                                     \
                   "vldrb.s32 q2, [%[a]], #4\n\t"                                                  \
                   "vmla.s32 q0, q1, %[b_factor]\n\t"                                              \
                   "vldrb.s32 q1, [%[b]], #4\n\t"                                                  \
                   "vmlas.s32 q2, %q[a_factor], %[offset]\n\t"                                     \
                   "vshl.s32 q0, %[shift]\n\t"                                                     \
                   "vmla.s32 q2, q1, %[b_factor]\n\t"                                              \
                   "vqmovnb.s32 q0, q0\n\t"                                                        \
                   "vshl.s32 q2, %[shift]\n\t"                                                     \
                   "vqmovnt.s32 q0, q2\n\t" clamp                                                  \
                   "vstrb.16 q0, [%[out], %q[places]]\n\t"                                         \
                   "add %[out], #8\n\t"                                                            \
                   "le lr, 1b\n\t"                                                                 \
                   : [a] "+l"(a), [b] "+l"(b), [out] "+r"(out)                                     \
                   : [eights] "r"(eights), [offset] "r"(p->offset), [b_factor] "r"(p->b_factor),   \
                     [shift] "r"(-p->shift), [a_factor] "w"(vdupq_n_s32(p->a_factor)),             \
                     [places] "w"(places), [least] "w"(vdupq_n_s16((int16_t)p->act_min)),          \
                     [most] "w"(vdupq_n_s16((int16_t)p->act_max))                                  \
                   : "lr", "cc", "memory", "q0", "q1", "q2")

/* Computes `eights` times eight elements, at least one; returns the end of their results. */
TINYFUSE_SHARED int8_t *tinyfuse_single_rounding_sum_eights(const tinyfuse_single_rounding_sum *p, const int8_t *a,
                                                            const int8_t *b, int8_t *out, int32_t eights)
{
    const uint16x8_t steps = vidupq_n_u16(0, 1);
    const uint16x8_t places = vaddq_u16(vshrq_n_u16(steps, 1), vshlq_n_u16(vandq_u16(steps, vdupq_n_u16(1)), 2));
    if (p->act_min == -128 && p->act_max == 127) {
        TINYFUSE_SINGLE_ROUNDING_SUM_EIGHTS("vqmovnb.s16 q0, q0\n\t");
    } else {
        TINYFUSE_SINGLE_ROUNDING_SUM_EIGHTS("vmax.s16 q0, q0, %q[least]\n\t"
                                 "vmin.s16 q0, q0, %q[most]\n\t");
    }
    return out;
}

#endif

#if TINYFUSE_DSP && !TINYFUSE_MVE

/* Computes one element. Its operands, times 256, are the bottom (`half` is b) or top (t) halves of words `a` and
   `b`. The factors are times 256, too: SMLAW drops the low 16 bits of a product, so its result is the plain
   product. */
#define TINYFUSE_SINGLE_ROUNDING_SUM_HALF(half, result, p, a, b)                                                              \
    do {                                                                                                           \
        __asm("smlaw" half " %0, %1, %2, %3"                                                                       \
              : "=r"(result) : "r"((p)->a_factor * 256), "r"(a), "r"((p)->offset) : "cc");                         \
        __asm("smlaw" half " %0, %1, %2, %0" : "+r"(result) : "r"((p)->b_factor * 256), "r"(b) : "cc");            \
        result = tinyfuse_saturate_right(result, (p)->shift);                                                      \
        if ((p)->act_min != -128 || (p)->act_max != 127) {                                                         \
            result = tinyfuse_clamp(result, (p)->act_min, (p)->act_max);                                           \
        }                                                                                                          \
    } while (0)

/* `high`: mask of the high byte of each half, in a register so that AND can shift its other operand. */
TINYFUSE_INLINE void tinyfuse_single_rounding_sum_four(const tinyfuse_single_rounding_sum *p, const int8_t **a,
                                                       const int8_t **b, int8_t *out, uint32_t high)
{
    const uint32_t four_a = tinyfuse_next_quad(a), four_b = tinyfuse_next_quad(b);
    const uint32_t even_a = four_a << 8 & high, even_b = four_b << 8 & high;
    const uint32_t odd_a = four_a & high, odd_b = four_b & high;
    int32_t first, second, third, fourth;
    uint32_t four;
    TINYFUSE_SINGLE_ROUNDING_SUM_HALF("b", first, p, even_a, even_b);
    TINYFUSE_SINGLE_ROUNDING_SUM_HALF("b", second, p, odd_a, odd_b);
    TINYFUSE_SINGLE_ROUNDING_SUM_HALF("t", third, p, even_a, even_b);
    TINYFUSE_SINGLE_ROUNDING_SUM_HALF("t", fourth, p, odd_a, odd_b);
    four = tinyfuse_word_of(first, second, third, fourth);
    memcpy(out, &four, sizeof four);
}

#endif

/* `count` elements; `out` may be `a` or `b`, or lie below them. */
TINYFUSE_INLINE void tinyfuse_single_rounding_sum_s8(const tinyfuse_single_rounding_sum *p, const int8_t *a,
                                                     const int8_t *b, int8_t *out, int32_t count)
{
#if TINYFUSE_MVE
    if (count >= 8) {
        const int32_t done = count & ~7;
        out = tinyfuse_single_rounding_sum_eights(p, a, b, out, count >> 3);
        a += done;
        b += done;
        count &= 7;
    }
#elif TINYFUSE_DSP
    uint32_t high = 0xff00ff00u;
    __asm("" : "+r"(high));
    for (; count >= 8; count -= 8) {
        tinyfuse_single_rounding_sum_four(p, &a, &b, out, high);
        tinyfuse_single_rounding_sum_four(p, &a, &b, out + 4, high);
        out += 8;
    }
#else
    for (; count >= 8; count -= 8) {
        out[0] = tinyfuse_single_rounding_sum_one(p, a[0], b[0]);
        out[1] = tinyfuse_single_rounding_sum_one(p, a[1], b[1]);
        out[2] = tinyfuse_single_rounding_sum_one(p, a[2], b[2]);
        out[3] = tinyfuse_single_rounding_sum_one(p, a[3], b[3]);
        out[4] = tinyfuse_single_rounding_sum_one(p, a[4], b[4]);
        out[5] = tinyfuse_single_rounding_sum_one(p, a[5], b[5]);
        out[6] = tinyfuse_single_rounding_sum_one(p, a[6], b[6]);
        out[7] = tinyfuse_single_rounding_sum_one(p, a[7], b[7]);
        a += 8;
        b += 8;
        out += 8;
    }
#endif
    for (; count > 0; --count) {
        *out++ = tinyfuse_single_rounding_sum_one(p, *a++, *b++);
    }
}

#endif
