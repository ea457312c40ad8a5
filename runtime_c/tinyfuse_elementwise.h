/* ADD and MUL of int8 tensors with TensorFlow Lite Micro's arithmetic: every operand is rescaled with two
   roundings. Operands of equal shape take a flat loop, others a strided one. */
#ifndef TINYFUSE_ELEMENTWISE_H
#define TINYFUSE_ELEMENTWISE_H

#include "tinyfuse_broadcast.h"
#include "tinyfuse_requantize.h"

/* Left shift of ADD's operands before they are rescaled: the bits that keep the fraction. */
#define TINYFUSE_ADD_SHIFT 20

/* ADD: real multipliers as multiplier / 2^31 / 2^right, all below one. MUL reads only out_multiplier and out_shift
   (positive to the left). */
typedef struct {
    int32_t a_zero_point, a_multiplier, a_right;
    int32_t b_zero_point, b_multiplier, b_right;
    int32_t out_zero_point, out_multiplier, out_shift;
    int32_t act_min, act_max;
} tinyfuse_binary;

/* round(value * multiplier / 2^31); |value| < 2^30. */
TINYFUSE_INLINE int32_t tinyfuse_scale_high(int32_t value, int32_t multiplier)
{
#if TINYFUSE_DSP
    int32_t high;
    __asm("smmulr %0, %1, %2" : "=r"(high) : "r"(2 * value), "r"(multiplier));
    return high;
#else
    return (int32_t)(((int64_t)value * multiplier + ((int64_t)1 << 30)) >> 31);
#endif
}

/* value / 2^right, halves rounded away from zero; |value| < 2^30, right in 0..31. */
TINYFUSE_INLINE int32_t tinyfuse_scale_down(int32_t value, int32_t right)
{
    return right == 0 ? value : (value + (value >> 31) + (int32_t)((uint32_t)1 << (right - 1))) >> right;
}

/* Rescales an operand of ADD to the scale of the sum: shifted left, then two roundings. The operand of the larger
   scale has a multiplier of one half, which is exact. */
TINYFUSE_INLINE int32_t tinyfuse_add_operand(int32_t value, int32_t multiplier, int32_t right)
{
    int32_t high;
    if (multiplier == 1 << 30 && right == 0) {
        return value * (1 << (TINYFUSE_ADD_SHIFT - 1));
    }
    high = tinyfuse_scale_high(value * (1 << TINYFUSE_ADD_SHIFT), multiplier);
    return tinyfuse_scale_down(high, right);
}

TINYFUSE_INLINE int32_t tinyfuse_clamp_s8(int32_t value, int32_t low, int32_t high)
{
#if TINYFUSE_DSP
    if (low == -128 && high == 127) {
        int32_t result;
        __asm("ssat %0, #8, %1" : "=r"(result) : "r"(value) : "cc");
        return result;
    }
#endif
    return tinyfuse_clamp(value, low, high);
}

TINYFUSE_INLINE int8_t tinyfuse_add_one(const tinyfuse_binary *p, int32_t a, int32_t b)
{
    /* 255 * 2^20 < 2^28, so the sum of both rescaled operands stays below 2^29, and so does `high` */
    const int32_t sum = tinyfuse_add_operand(a - p->a_zero_point, p->a_multiplier, p->a_right) +
                        tinyfuse_add_operand(b - p->b_zero_point, p->b_multiplier, p->b_right);
    const int32_t high = tinyfuse_scale_high(sum, p->out_multiplier);
    const int32_t right = -p->out_shift;
    int32_t scaled;
    if (right == 0) {
        scaled = high + p->out_zero_point;
    } else {
        /* the zero point is added before shifts of up to 22: 128 * 2^22 is 2^29 */
        const int32_t early = right <= 22 ? p->out_zero_point * (1 << tinyfuse_min(right, 22)) : 0;
        const int32_t half = (int32_t)((uint32_t)1 << (right - 1));
        scaled = (high + (high >> 31) + (half + early)) >> right;
        scaled += right <= 22 ? 0 : p->out_zero_point;
    }
    return (int8_t)tinyfuse_clamp_s8(scaled, p->act_min, p->act_max);
}

/* value >> right, saturated to int8. */
TINYFUSE_INLINE int32_t tinyfuse_saturate_right(int32_t value, int32_t right)
{
#if TINYFUSE_DSP
    /* SSAT takes `right` as an immediate: the compiler knows it, and keeps one of these cases */
    switch (right) {
#define TINYFUSE_SATURATE_RIGHT(n)                                                    \
    case n:                                                                           \
        __asm("ssat %0, #8, %1, asr #" #n : "=r"(value) : "r"(value) : "cc");         \
        return value;
        TINYFUSE_SATURATE_RIGHT(1)
        TINYFUSE_SATURATE_RIGHT(2)
        TINYFUSE_SATURATE_RIGHT(3)
        TINYFUSE_SATURATE_RIGHT(4)
        TINYFUSE_SATURATE_RIGHT(5)
        TINYFUSE_SATURATE_RIGHT(6)
        TINYFUSE_SATURATE_RIGHT(7)
        TINYFUSE_SATURATE_RIGHT(8)
        TINYFUSE_SATURATE_RIGHT(9)
        TINYFUSE_SATURATE_RIGHT(10)
        TINYFUSE_SATURATE_RIGHT(11)
        TINYFUSE_SATURATE_RIGHT(12)
        TINYFUSE_SATURATE_RIGHT(13)
        TINYFUSE_SATURATE_RIGHT(14)
        TINYFUSE_SATURATE_RIGHT(15)
        TINYFUSE_SATURATE_RIGHT(16)
        TINYFUSE_SATURATE_RIGHT(17)
        TINYFUSE_SATURATE_RIGHT(18)
        TINYFUSE_SATURATE_RIGHT(19)
        TINYFUSE_SATURATE_RIGHT(20)
        TINYFUSE_SATURATE_RIGHT(21)
        TINYFUSE_SATURATE_RIGHT(22)
        TINYFUSE_SATURATE_RIGHT(23)
#undef TINYFUSE_SATURATE_RIGHT
    default:
        break;
    }
#endif
    return tinyfuse_clamp_s8(value >> right, -128, 127);
}

#if TINYFUSE_DSP

/* tinyfuse_mul_one for products that are shifted right by 1 to 22. -2 times the product needs no shift of its own,
   and SMMLAR adds the zero point and half a unit to the high word of this times -multiplier. Negative products are
   lowered so that halves go away from zero. A negative product that becomes 0 may be lowered too, because half a
   unit is at least 1. */
TINYFUSE_INLINE int32_t tinyfuse_mul_down(const tinyfuse_binary *p, int32_t a, int32_t b, int32_t right)
{
    int32_t zero_point = 2 * p->a_zero_point, doubled;
    const int32_t half = (int32_t)((uint32_t)1 << ((right - 1) & 31));
    const int32_t early = p->out_zero_point * (int32_t)((uint32_t)1 << (right & 31));
    const int saturates = p->act_min == -128 && p->act_max == 127;
    int32_t high;
    __asm("" : "+r"(zero_point)); /* an empty statement: compilers would shift products again */
    doubled = (zero_point - 2 * a) * (b - p->b_zero_point);
    __asm("smmlar %0, %1, %2, %3" : "=r"(high) : "r"(doubled), "r"(-p->out_multiplier), "r"(half + early - 1));
    high = tinyfuse_saturate_right(high - (doubled >> 31), right);
    return saturates ? high : tinyfuse_clamp(high, p->act_min, p->act_max);
}

#if !TINYFUSE_MVE

/* Loads four elements and advances the pointer. */
TINYFUSE_INLINE uint32_t tinyfuse_next_quad(const int8_t **from)
{
    uint32_t four;
    __asm volatile("ldr %0, [%1], #4" : "=&r"(four), "+r"(*from) : : "memory");
    return four;
}

/* Packs four results, the first one in the lowest byte. */
TINYFUSE_INLINE uint32_t tinyfuse_word_of(int32_t first, int32_t second, int32_t third, int32_t fourth)
{
    __asm("bfi %0, %1, #8, #8" : "+r"(first) : "r"(second));
    __asm("bfi %0, %1, #16, #8" : "+r"(first) : "r"(third));
    __asm("bfi %0, %1, #24, #8" : "+r"(first) : "r"(fourth));
    return (uint32_t)first;
}

/* The elements at even places of four, or with ", ror #8" those at odd places, less the zero point. `less` holds
   the negated zero point in both halves. */
#define TINYFUSE_MUL_HALVES(halves, four, zero_point, less, places)                                                    do {                                                                                                                   if ((zero_point) == 0) {                                                                                               __asm("sxtb16 %0, %1" places : "=r"(halves) : "r"(four));                                                      } else {                                                                                                               __asm("sxtab16 %0, %1, %2" places : "=r"(halves) : "r"(less), "r"(four));                                      }                                                                                                              } while (0)

/* Computes one element as in tinyfuse_mul_down from halves of two words, one operand doubled: smulbb or smultt. */
#define TINYFUSE_MUL_HALF(multiply, result, p, a, b, term, right)                                                      do {                                                                                                                   int32_t doubled_;                                                                                                  __asm(multiply " %0, %1, %2" : "=r"(doubled_) : "r"(a), "r"(b));                                                   __asm("smmlar %0, %1, %2, %3" : "=r"(result) : "r"(doubled_), "r"((p)->out_multiplier), "r"(term));                result = tinyfuse_saturate_right(result + (doubled_ >> 31), right);                                                if ((p)->act_min != -128 || (p)->act_max != 127) {                                                                     result = tinyfuse_clamp(result, (p)->act_min, (p)->act_max);                                                   }                                                                                                              } while (0)

/* Extracts from two words of four elements the halves that TINYFUSE_MUL_HALF multiplies. */
#define TINYFUSE_MUL_OPERANDS(p, four_a, four_b, less_a, less_b, even_a, odd_a, even_b, odd_b)                     \
    do {                                                                                                           \
        TINYFUSE_MUL_HALVES(even_a, four_a, (p)->a_zero_point, less_a, "");                                        \
        TINYFUSE_MUL_HALVES(odd_a, four_a, (p)->a_zero_point, less_a, ", ror #8");                                 \
        TINYFUSE_MUL_HALVES(even_b, four_b, (p)->b_zero_point, less_b, "");                                        \
        TINYFUSE_MUL_HALVES(odd_b, four_b, (p)->b_zero_point, less_b, ", ror #8");                                 \
        __asm("sadd16 %0, %0, %0" : "+r"(even_a) : : "cc");                                                        \
        __asm("sadd16 %0, %0, %0" : "+r"(odd_a) : : "cc");                                                         \
    } while (0)

/* The negated zero point in both halves for TINYFUSE_MUL_HALVES. An empty statement hides it from compilers, which
   would compute it again for each element. */
TINYFUSE_INLINE uint32_t tinyfuse_mul_less(int32_t zero_point)
{
    uint32_t less = (uint32_t)(uint16_t)-zero_point * 0x10001u;
    __asm("" : "+r"(less));
    return less;
}

/* Addend of a product's high word: the zero point and half a unit of what is shifted out. */
TINYFUSE_INLINE int32_t tinyfuse_mul_term(const tinyfuse_binary *p, int32_t right)
{
    const int32_t half = (int32_t)((uint32_t)1 << ((right - 1) & 31));
    return half + p->out_zero_point * (int32_t)((uint32_t)1 << (right & 31));
}

/* tinyfuse_mul_down of four elements, loaded and stored as words. `less_a`, `less_b`: see tinyfuse_mul_less. */
TINYFUSE_INLINE void tinyfuse_mul_four(const tinyfuse_binary *p, const int8_t **a, const int8_t **b, int8_t *out,
                                       uint32_t less_a, uint32_t less_b, int32_t right)
{
    const int32_t term = tinyfuse_mul_term(p, right);
    const uint32_t four_a = tinyfuse_next_quad(a), four_b = tinyfuse_next_quad(b);
    uint32_t even_a, odd_a, even_b, odd_b, four;
    int32_t first, second, third, fourth;
    TINYFUSE_MUL_OPERANDS(p, four_a, four_b, less_a, less_b, even_a, odd_a, even_b, odd_b);
    TINYFUSE_MUL_HALF("smulbb", first, p, even_a, even_b, term, right);
    TINYFUSE_MUL_HALF("smulbb", second, p, odd_a, odd_b, term, right);
    TINYFUSE_MUL_HALF("smultt", third, p, even_a, even_b, term, right);
    TINYFUSE_MUL_HALF("smultt", fourth, p, odd_a, odd_b, term, right);
    four = tinyfuse_word_of(first, second, third, fourth);
    memcpy(out, &four, sizeof four);
}

#endif

#endif

TINYFUSE_INLINE int8_t tinyfuse_mul_one(const tinyfuse_binary *p, int32_t a, int32_t b)
{
    /* left-shifted products are at most 255 * 255 * 2^15; with a zero point they fit int32 */
    const int32_t product = (a - p->a_zero_point) * (b - p->b_zero_point);
    const int32_t right = -p->out_shift;
    int32_t scaled;
#if TINYFUSE_DSP
    if (right >= 1 && right <= 22) {
        return (int8_t)tinyfuse_mul_down(p, a, b, right);
    }
#endif
    if (right < 0) {
        scaled = tinyfuse_high_multiply((int32_t)((uint32_t)product << p->out_shift), p->out_multiplier);
    } else {
        scaled = tinyfuse_scale_down(tinyfuse_scale_high(product, p->out_multiplier), right);
    }
    return (int8_t)tinyfuse_clamp_s8(scaled + p->out_zero_point, p->act_min, p->act_max);
}

#if TINYFUSE_MVE

/* Helium versions for four elements. VQRDMULH is the doubling high multiply with rounding, VRSHL rounds halves up. */

TINYFUSE_INLINE int32x4_t tinyfuse_scale_down4(int32x4_t value, int32_t right)
{
    return right == 0 ? value : vrshlq_n_s32(vaddq_s32(value, vshrq_n_s32(value, 31)), -right);
}

TINYFUSE_INLINE int32x4_t tinyfuse_add_operand4(int32x4_t value, int32_t multiplier, int32_t right)
{
    if (multiplier == 1 << 30 && right == 0) {
        return vshlq_n_s32(value, TINYFUSE_ADD_SHIFT - 1);
    }
    return tinyfuse_scale_down4(
        vqrdmulhq_n_s32(vshlq_n_s32(value, TINYFUSE_ADD_SHIFT), multiplier), right);
}

TINYFUSE_INLINE int32x4_t tinyfuse_binary_stored4(int32x4_t value, const tinyfuse_binary *p)
{
    const int32x4_t stored = vaddq_n_s32(value, p->out_zero_point);
    return vminq_s32(vmaxq_s32(stored, vdupq_n_s32(p->act_min)), vdupq_n_s32(p->act_max));
}

TINYFUSE_INLINE int32x4_t tinyfuse_add4(const tinyfuse_binary *p, int32x4_t a, int32x4_t b)
{
    const int32x4_t sum = vaddq_s32(
        tinyfuse_add_operand4(vsubq_n_s32(a, p->a_zero_point), p->a_multiplier, p->a_right),
        tinyfuse_add_operand4(vsubq_n_s32(b, p->b_zero_point), p->b_multiplier, p->b_right));
    const int32x4_t high = vqrdmulhq_n_s32(sum, p->out_multiplier);
    return tinyfuse_binary_stored4(tinyfuse_scale_down4(high, -p->out_shift), p);
}

/* Products times a multiplier, shifted right. Negative products are lowered so that halves go away from zero: see
   tinyfuse_mul_down. */
TINYFUSE_INLINE int32x4_t tinyfuse_mul_down4(int32x4_t product, const tinyfuse_binary *p)
{
    if (p->out_shift == 0) {
        return vqrdmulhq_n_s32(product, p->out_multiplier);
    }
    return vrshlq_n_s32(vqrdmlahq_n_s32(vshrq_n_s32(product, 31), product, p->out_multiplier), p->out_shift);
}

TINYFUSE_INLINE int32x4_t tinyfuse_mul4(const tinyfuse_binary *p, int32x4_t a, int32x4_t b)
{
    const int32x4_t product =
        vmulq_s32(vsubq_n_s32(a, p->a_zero_point), vsubq_n_s32(b, p->b_zero_point));
    if (p->out_shift > 0) {
        /* left-shifted products are at most 255 * 255 * 2^15 and fit int32 */
        const int32x4_t shifted = vshlq_r_s32(product, p->out_shift);
        return tinyfuse_binary_stored4(vqrdmulhq_n_s32(shifted, p->out_multiplier), p);
    }
    return tinyfuse_binary_stored4(tinyfuse_mul_down4(product, p), p);
}

TINYFUSE_INLINE int16x8_t tinyfuse_less_zero_point8(const int8_t *from, int32_t zero_point)
{
    const int16x8_t values = vldrbq_s16(from);
    return zero_point == 0 ? values : vsubq_n_s16(values, (int16_t)zero_point);
}

/* Multiplies eight pairs of operands, all in 16 bits: first the even places, then the odd ones. */
TINYFUSE_INLINE void tinyfuse_mul_eight(const tinyfuse_binary *p, const int8_t *a, const int8_t *b, int8_t *out)
{
    const int16x8_t x = tinyfuse_less_zero_point8(a, p->a_zero_point);
    const int16x8_t y = tinyfuse_less_zero_point8(b, p->b_zero_point);
    int32x4_t even = vmullbq_int_s16(x, y), odd = vmulltq_int_s16(x, y);
    int16x8_t results;
    if (p->out_shift > 0) {
        even = vqrdmulhq_n_s32(vshlq_r_s32(even, p->out_shift), p->out_multiplier);
        odd = vqrdmulhq_n_s32(vshlq_r_s32(odd, p->out_shift), p->out_multiplier);
    } else {
        even = tinyfuse_mul_down4(even, p);
        odd = tinyfuse_mul_down4(odd, p);
    }
    results = vqmovntq_s32(vqmovnbq_s32(vreinterpretq_s16_s32(even), even), odd);
    results = vqaddq_n_s16(results, (int16_t)p->out_zero_point);
    if (p->act_min == -128 && p->act_max == 127) {
        results = vreinterpretq_s16_s8(vqmovnbq_s16(vreinterpretq_s8_s16(results), results));
    } else {
        results = vmaxq_s16(results, vdupq_n_s16((int16_t)p->act_min));
        results = vminq_s16(results, vdupq_n_s16((int16_t)p->act_max));
    }
    vstrbq_s16(out, results);
}

/* Computes `element` of a and b into out, eight at a time; i becomes the number of elements computed. */
#define TINYFUSE_VECTOR_ELEMENTS(element)                                                           \
    for (; i + 8 <= count; i += 8) {                                                                \
        const int32x4_t first = element(p, vldrbq_s32(a + i), vldrbq_s32(b + i));                   \
        const int32x4_t second = element(p, vldrbq_s32(a + i + 4), vldrbq_s32(b + i + 4));          \
        vstrbq_s32(out + i, first);                                                                 \
        vstrbq_s32(out + i + 4, second);                                                            \
    }

#endif

/* `count` elements of equal-shaped operands; `out` may be `a` or `b`, or lie below them. */
TINYFUSE_INLINE void tinyfuse_add_s8(const tinyfuse_binary *p, const int8_t *a, const int8_t *b,
                                     int8_t *out, int32_t count)
{
    int32_t i = 0;
#if TINYFUSE_MVE
    TINYFUSE_VECTOR_ELEMENTS(tinyfuse_add4)
#else
    for (; i + 4 <= count; i += 4) {
        out[i] = tinyfuse_add_one(p, a[i], b[i]);
        out[i + 1] = tinyfuse_add_one(p, a[i + 1], b[i + 1]);
        out[i + 2] = tinyfuse_add_one(p, a[i + 2], b[i + 2]);
        out[i + 3] = tinyfuse_add_one(p, a[i + 3], b[i + 3]);
    }
#endif
    for (; i < count; ++i) {
        out[i] = tinyfuse_add_one(p, a[i], b[i]);
    }
}

TINYFUSE_INLINE void tinyfuse_add_broadcast_s8(const tinyfuse_binary *p, const tinyfuse_broadcast *s,
                                               const int8_t *a, const int8_t *b, int8_t *out)
{
    TINYFUSE_EACH_BROADCAST(int8_t, int8_t, tinyfuse_add_one(p, x, y))
}

TINYFUSE_INLINE void tinyfuse_mul_s8(const tinyfuse_binary *p, const int8_t *a, const int8_t *b,
                                     int8_t *out, int32_t count)
{
    int32_t i = 0;
#if TINYFUSE_MVE
    for (; count >= 8; count -= 8) {
        tinyfuse_mul_eight(p, a, b, out);
        a += 8;
        b += 8;
        out += 8;
    }
#elif TINYFUSE_DSP
    const int32_t right = -p->out_shift;
    if (right >= 1 && right <= 22) {
        const uint32_t less_a = tinyfuse_mul_less(p->a_zero_point), less_b = tinyfuse_mul_less(p->b_zero_point);
        for (; count >= 8; count -= 8) {
            tinyfuse_mul_four(p, &a, &b, out, less_a, less_b, right);
            tinyfuse_mul_four(p, &a, &b, out + 4, less_a, less_b, right);
            out += 8;
        }
    } else {
        for (; i + 4 <= count; i += 4) {
            out[i] = tinyfuse_mul_one(p, a[i], b[i]);
            out[i + 1] = tinyfuse_mul_one(p, a[i + 1], b[i + 1]);
            out[i + 2] = tinyfuse_mul_one(p, a[i + 2], b[i + 2]);
            out[i + 3] = tinyfuse_mul_one(p, a[i + 3], b[i + 3]);
        }
    }
#endif
    for (; i < count; ++i) {
        out[i] = tinyfuse_mul_one(p, a[i], b[i]);
    }
}

TINYFUSE_INLINE void tinyfuse_mul_broadcast_s8(const tinyfuse_binary *p, const tinyfuse_broadcast *s,
                                               const int8_t *a, const int8_t *b, int8_t *out)
{
    TINYFUSE_EACH_BROADCAST(int8_t, int8_t, tinyfuse_mul_one(p, x, y))
}

#endif
