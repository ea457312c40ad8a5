/* ROWS_MATMUL of int8: for each head, a row vector times a matrix, with bounded double rounding. The vector is
   converted to int16 once, less its zero point. The other zero point times the vector's sum is folded into the
   initial sums. */
#ifndef TINYFUSE_ROWS_MATMUL_H
#define TINYFUSE_ROWS_MATMUL_H

#include "tinyfuse_dot.h"
#include "tinyfuse_half_even.h"

/* The left row is [heads][depth], the output [heads][columns]. right_head, right_row: elements from one head of the
   right operand, or from one row of its matrix, to the next. multiplier in 2^31sts and a right shift of at least 1, as
   in TFLM; if outputs are rounded half to even (`half_even`, a constant), multiplier holds the bits of a float32 scale
   (tinyfuse_half_even.h). */
typedef struct {
    int32_t heads, columns, depth, right_head, right_row;
    int32_t left_zero_point, right_zero_point, out_zero_point, multiplier, shift;
} tinyfuse_rows_matmul;

/* Factors that `tinyfuse_rows_output` needs, computed once per call. */
typedef struct {
    int32_t multiplier, shift, rounding;
} tinyfuse_rows_scaling;

TINYFUSE_INLINE tinyfuse_rows_scaling tinyfuse_rows_scaling_of(const tinyfuse_rows_matmul *p, int half_even)
{
    tinyfuse_rows_scaling s;
    s.multiplier = half_even != 0 ? p->multiplier : (int32_t)(2u * (uint32_t)p->multiplier);
    s.shift = p->shift - 1;
    s.rounding = half_even != 0 ? p->out_zero_point : 2 * p->out_zero_point + 1;
    return s;
}

/* Returns the requantized output of a sum. */
TINYFUSE_INLINE int8_t tinyfuse_rows_output(const tinyfuse_rows_scaling *s, int32_t sum, int half_even)
{
    return (int8_t)(half_even != 0 ? tinyfuse_requantize_half_even(sum, s->multiplier, s->rounding)
                                   : tinyfuse_requantize_bounded(sum, s->multiplier, s->shift, s->rounding));
}

/* Returns the sum of one column: the initial value plus the products of its elements, `step` apart, and the vector. */
TINYFUSE_INLINE int32_t tinyfuse_rows_column(const int8_t *column, int32_t step, const int16_t *wide, int32_t depth,
                                             int32_t begin)
{
    const int16_t *const end = wide + depth;
    int32_t sum = begin;
    while (wide != end) {
        sum += *wide++ * *column;
        column += step;
    }
    return sum;
}

#if TINYFUSE_MVE

/* Requantizes and stores four sums. */
TINYFUSE_INLINE void tinyfuse_rows_store4(const tinyfuse_rows_matmul *p, const tinyfuse_rows_scaling *s, int32x4_t sums,
                                          int8_t *out, int half_even)
{
    int32x4_t v = sums;
#if !TINYFUSE_MVE_FLOATS
    if (half_even) {
        int32_t all[4], i;
        vst1q_s32(all, sums);
        for (i = 0; i < 4; ++i) {
            out[i] = tinyfuse_rows_output(s, all[i], half_even);
        }
        return;
    }
#else
    if (half_even) {
        __asm("vcvt.f32.s32 %q0, %q0\n\t"
              "vmul.f32 %q0, %q0, %1\n\t"
              "vcvtn.s32.f32 %q0, %q0"
              : "+w"(v)
              : "r"(s->multiplier));
        v = vqaddq_n_s32(v, p->out_zero_point);
    } else
#endif
    {
        v = vqrdmulhq_n_s32(v, p->multiplier);
        v = vrshlq_s32(vaddq_s32(v, vshrq_n_s32(v, 31)), vdupq_n_s32(-p->shift));
        v = vaddq_n_s32(v, p->out_zero_point);
    }
    vstrbq_s32(out, vminq_s32(vmaxq_s32(v, vdupq_n_s32(-128)), vdupq_n_s32(127)));
}

/* Converts the vector to int16 and appends zeros up to a multiple of 8. Returns the initial value of all sums. */
TINYFUSE_INLINE int32_t tinyfuse_rows_widen(const tinyfuse_rows_matmul *p, const int8_t *left, int16_t *wide)
{
    const int32_t depth = p->depth, zero_point = p->left_zero_point;
    int32_t i = 0, sum = 0;
    for (; i + 8 <= depth; i += 8) {
        const int16x8_t v = vsubq_n_s16(vldrbq_s16(left + i), (int16_t)zero_point);
        sum = vaddvaq_s16(sum, v);
        vstrhq_s16(wide + i, v);
    }
    if (i < depth) {
        const mve_pred16_t there = vctp16q((uint32_t)(depth - i));
        const int16x8_t v = vsubq_x_n_s16(vldrbq_z_s16(left + i, there), (int16_t)zero_point, there);
        const int16x8_t masked = vpselq_s16(v, vdupq_n_s16(0), there);
        sum = vaddvaq_s16(sum, masked);
        vstrhq_s16(wide + i, masked);
    }
    return -sum * p->right_zero_point;
}

/* Computes one head if the right operand's rows are columns of the output: products of these rows with the vector. */
TINYFUSE_INLINE void tinyfuse_rows_dots(const tinyfuse_rows_matmul *p, const int8_t *left, const int8_t *right,
                                         int8_t *out, int16_t *wide, int half_even)
{
    const tinyfuse_rows_matmul q = *p; /* a copy, which compilers need not reload after stores of outputs */
    const tinyfuse_rows_scaling scaling = tinyfuse_rows_scaling_of(&q, half_even);
    const int32_t begin = tinyfuse_rows_widen(&q, left, wide), step = q.right_row, rest = q.depth & 7;
    const mve_pred16_t there = vctp16q((uint32_t)rest);
    const int16_t *const end = wide + (q.depth - rest);
    int32_t column = 0;
    for (; column + 4 <= q.columns; column += 4) {
        const int8_t *r0 = right, *r1 = r0 + step, *r2 = r1 + step, *r3 = r2 + step;
        const int16_t *from = wide;
        int32_t s0 = begin, s1 = begin, s2 = begin, s3 = begin;
        int32x4_t sums = vdupq_n_s32(0);
        right = r3 + step;
        while (from != end) {
            const int16x8_t x = vldrhq_s16(from);
            s0 = vmladavaq_s16(s0, x, vldrbq_s16(r0));
            s1 = vmladavaq_s16(s1, x, vldrbq_s16(r1));
            s2 = vmladavaq_s16(s2, x, vldrbq_s16(r2));
            s3 = vmladavaq_s16(s3, x, vldrbq_s16(r3));
            from += 8;
            r0 += 8;
            r1 += 8;
            r2 += 8;
            r3 += 8;
        }
        if (rest != 0) {
            const int16x8_t x = vldrhq_s16(from);
            s0 = vmladavaq_s16(s0, x, vldrbq_z_s16(r0, there));
            s1 = vmladavaq_s16(s1, x, vldrbq_z_s16(r1, there));
            s2 = vmladavaq_s16(s2, x, vldrbq_z_s16(r2, there));
            s3 = vmladavaq_s16(s3, x, vldrbq_z_s16(r3, there));
        }
        sums = vsetq_lane_s32(s0, sums, 0);
        sums = vsetq_lane_s32(s1, sums, 1);
        sums = vsetq_lane_s32(s2, sums, 2);
        sums = vsetq_lane_s32(s3, sums, 3);
        tinyfuse_rows_store4(&q, &scaling, sums, out + column, half_even);
    }
    for (; column < q.columns; ++column) {
        int32_t sum = begin, i = 0;
        for (; i < q.depth - rest; i += 8) {
            sum = vmladavaq_s16(sum, vldrhq_s16(wide + i), vldrbq_s16(right + i));
        }
        if (rest != 0) {
            sum = vmladavaq_s16(sum, vldrhq_s16(wide + i), vldrbq_z_s16(right + i, there));
        }
        out[column] = tinyfuse_rows_output(&scaling, sum, half_even);
        right += step;
    }
}

/* Adds x times four elements to `sums`. In assembly, because compilers would copy the address first. */
#define TINYFUSE_ROWS_ADD(sums, offset)                                                  \
    __asm("vldrb.s32 %q[part], [%[row], #" offset "]\n\t"                                \
          "vmla.s32 %q[s], %q[part], %[value]"                                           \
          : [s] "+w"(sums), [part] "=&w"(part)                                           \
          : [row] "l"(row), [value] "r"(x)                                               \
          : "memory");

/* Computes one head if the right operand's rows are added up, each times an element of the vector. */
TINYFUSE_INLINE void tinyfuse_rows_sums(const tinyfuse_rows_matmul *p, const int8_t *left, const int8_t *right,
                                         int8_t *out, int16_t *wide, int half_even)
{
    const tinyfuse_rows_matmul q = *p; /* a copy, which compilers need not reload after stores of outputs */
    const tinyfuse_rows_scaling scaling = tinyfuse_rows_scaling_of(&q, half_even);
    const int32_t begin = tinyfuse_rows_widen(&q, left, wide);
    int32_t column = 0, i;
    int32x4_t part;
    for (; column + 16 <= q.columns; column += 16) {
        const int8_t *row = right + column;
        int32x4_t s0 = vdupq_n_s32(begin), s1 = s0, s2 = s0, s3 = s0;
        for (i = 0; i < q.depth; ++i) {
            const int32_t x = wide[i];
            TINYFUSE_ROWS_ADD(s0, "0")
            TINYFUSE_ROWS_ADD(s1, "4")
            TINYFUSE_ROWS_ADD(s2, "8")
            TINYFUSE_ROWS_ADD(s3, "12")
            row += q.right_row;
        }
        tinyfuse_rows_store4(&q, &scaling, s0, out + column, half_even);
        tinyfuse_rows_store4(&q, &scaling, s1, out + column + 4, half_even);
        tinyfuse_rows_store4(&q, &scaling, s2, out + column + 8, half_even);
        tinyfuse_rows_store4(&q, &scaling, s3, out + column + 12, half_even);
    }
    for (; column + 4 <= q.columns; column += 4) {
        const int8_t *row = right + column;
        int32x4_t sums = vdupq_n_s32(begin);
        for (i = 0; i < q.depth; ++i) {
            const int32_t x = wide[i];
            TINYFUSE_ROWS_ADD(sums, "0")
            row += q.right_row;
        }
        tinyfuse_rows_store4(&q, &scaling, sums, out + column, half_even);
    }
    for (; column < q.columns; ++column) {
        const int32_t sum = tinyfuse_rows_column(right + column, q.right_row, wide, q.depth, begin);
        out[column] = tinyfuse_rows_output(&scaling, sum, half_even);
    }
}

#elif TINYFUSE_DSP

/* Return the lower halves of two pairs, and the upper ones. */
TINYFUSE_INLINE uint32_t tinyfuse_lower_halves(uint32_t a, uint32_t b)
{
    uint32_t pair;
    __asm("pkhbt %0, %1, %2, lsl #16" : "=r"(pair) : "r"(a), "r"(b));
    return pair;
}

TINYFUSE_INLINE uint32_t tinyfuse_upper_halves(uint32_t a, uint32_t b)
{
    uint32_t pair;
    __asm("pkhtb %0, %1, %2, asr #16" : "=r"(pair) : "r"(b), "r"(a));
    return pair;
}

/* Converts four elements to int16, in the order 0 2 1 3 or, with `in_order`, unchanged. Returns `sum` plus all four. */
TINYFUSE_INLINE int32_t tinyfuse_rows_widen4(uint32_t word, uint32_t zero_points, int16_t *wide, int in_order,
                                             int32_t sum)
{
    const uint32_t even = tinyfuse_subtract_pairs(tinyfuse_even_bytes(word), zero_points);
    const uint32_t odd = tinyfuse_subtract_pairs(tinyfuse_odd_bytes(word), zero_points);
    const uint32_t first = in_order != 0 ? tinyfuse_lower_halves(even, odd) : even;
    const uint32_t second = in_order != 0 ? tinyfuse_upper_halves(even, odd) : odd;
    memcpy(wide, &first, sizeof first);
    memcpy(wide + 2, &second, sizeof second);
    return tinyfuse_add_products(tinyfuse_add_products(sum, even, 0x10001u), odd, 0x10001u);
}

/* Converts the vector to int16 in the order of tinyfuse_rows_widen4, and appends zeros up to a multiple of 4. Returns
   the initial value of all sums. */
TINYFUSE_INLINE int32_t tinyfuse_rows_widen(const tinyfuse_rows_matmul *p, const int8_t *left, int16_t *wide,
                                            int in_order)
{
    const uint32_t zero_points = (uint32_t)(uint16_t)p->left_zero_point * 0x10001u;
    const int8_t *const end = left + (p->depth & ~3);
    const int32_t rest = p->depth & 3;
    int32_t sum = 0;
    while (left != end) {
        sum = tinyfuse_rows_widen4(tinyfuse_load_u32(left), zero_points, wide, in_order, sum);
        left += 4;
        wide += 4;
    }
    if (rest != 0) { /* pads with zero points */
        int8_t last[4];
        memset(last, p->left_zero_point, sizeof last);
        memcpy(last, left, (size_t)rest);
        sum = tinyfuse_rows_widen4(tinyfuse_load_u32(last), zero_points, wide, in_order, sum);
    }
    return -sum * p->right_zero_point;
}

/* Adds the products of four elements from `from` on, which moves on. In assembly, for compilers run out of registers. */
#define TINYFUSE_ROWS_DOT(sum, from)                                                                          \
    __asm("ldr %[low], [%[at]], #4\n\t"                                                                       \
          "sxtb16 %[high], %[low], ror #8\n\t"                                                                \
          "sxtb16 %[low], %[low]\n\t"                                                                         \
          "smlad %[s], %[e], %[low], %[s]\n\t"                                                                \
          "smlad %[s], %[o], %[high], %[s]"                                                                   \
          : [at] "+r"(from), [s] "+r"(sum), [low] "=&r"(low), [high] "=&r"(high)                              \
          : [e] "r"(even), [o] "r"(odd)                                                                       \
          : "memory");

/* Computes one head if the right operand's rows are columns of the output: products of these rows with the vector. */
TINYFUSE_INLINE void tinyfuse_rows_dots(const tinyfuse_rows_matmul *p, const int8_t *left, const int8_t *right,
                                         int8_t *out, int16_t *wide, int half_even)
{
    const tinyfuse_rows_scaling scaling = tinyfuse_rows_scaling_of(p, half_even);
    const int32_t begin = tinyfuse_rows_widen(p, left, wide, 0), step = p->right_row, rest = p->depth & 3;
    const int16_t *const words = wide + (p->depth - rest);
    int8_t *const end = out + p->columns, *const quads = out + (p->columns & ~3);
    uint32_t low, high;
    int32_t i;
    while (out != quads) {
        const int8_t *r0 = right, *r1 = r0 + step, *r2 = r1 + step, *r3 = r2 + step;
        const int16_t *x = wide;
        int32_t s0 = begin, s1 = begin, s2 = begin, s3 = begin;
        right = r3 + step;
        while (x != words) {
            const uint32_t even = tinyfuse_load_u32(x), odd = tinyfuse_load_u32(x + 2);
            TINYFUSE_ROWS_DOT(s0, r0)
            TINYFUSE_ROWS_DOT(s1, r1)
            TINYFUSE_ROWS_DOT(s2, r2)
            TINYFUSE_ROWS_DOT(s3, r3)
            x += 4;
        }
        for (i = 0; i < rest; ++i) {
            const int32_t value = x[i == 1 ? 2 : i == 2 ? 1 : 0];
            s0 += value * r0[i];
            s1 += value * r1[i];
            s2 += value * r2[i];
            s3 += value * r3[i];
        }
        out[0] = tinyfuse_rows_output(&scaling, s0, half_even);
        out[1] = tinyfuse_rows_output(&scaling, s1, half_even);
        out[2] = tinyfuse_rows_output(&scaling, s2, half_even);
        out[3] = tinyfuse_rows_output(&scaling, s3, half_even);
        out += 4;
    }
    while (out != end) {
        const int8_t *from = right;
        const int16_t *x = wide;
        int32_t sum = begin;
        while (x != words) {
            const uint32_t even = tinyfuse_load_u32(x), odd = tinyfuse_load_u32(x + 2);
            TINYFUSE_ROWS_DOT(sum, from)
            x += 4;
        }
        for (i = 0; i < rest; ++i) {
            sum += x[i == 1 ? 2 : i == 2 ? 1 : 0] * from[i];
        }
        *out++ = tinyfuse_rows_output(&scaling, sum, half_even);
        right += step;
    }
}

/* Computes one head if the right operand's rows are added up, each times an element of the vector: two rows and
   four columns at a time. */
TINYFUSE_INLINE void tinyfuse_rows_sums(const tinyfuse_rows_matmul *p, const int8_t *left, const int8_t *right,
                                         int8_t *out, int16_t *wide, int half_even)
{
    const tinyfuse_rows_scaling scaling = tinyfuse_rows_scaling_of(p, half_even);
    const int32_t begin = tinyfuse_rows_widen(p, left, wide, 1), step = p->right_row, depth = p->depth;
    const int16_t *const pairs = wide + (depth & ~1);
    int8_t *const end = out + p->columns, *const quads = out + (p->columns & ~3);
    while (out != quads) {
        const int8_t *row = right;
        const int16_t *x = wide;
        int32_t s0 = begin, s1 = begin, s2 = begin, s3 = begin;
        while (x != pairs) {
            const uint32_t first = tinyfuse_load_u32(row), second = tinyfuse_load_u32(row + step);
            const uint32_t pair = tinyfuse_load_u32(x);
            const uint32_t e0 = tinyfuse_even_bytes(first), e1 = tinyfuse_even_bytes(second);
            const uint32_t o0 = tinyfuse_odd_bytes(first), o1 = tinyfuse_odd_bytes(second);
            s0 = tinyfuse_add_products(s0, pair, tinyfuse_lower_halves(e0, e1));
            s1 = tinyfuse_add_products(s1, pair, tinyfuse_lower_halves(o0, o1));
            s2 = tinyfuse_add_products(s2, pair, tinyfuse_upper_halves(e0, e1));
            s3 = tinyfuse_add_products(s3, pair, tinyfuse_upper_halves(o0, o1));
            x += 2;
            row += 2 * step;
        }
        if ((depth & 1) != 0) {
            const int32_t value = *x;
            s0 += value * row[0];
            s1 += value * row[1];
            s2 += value * row[2];
            s3 += value * row[3];
        }
        out[0] = tinyfuse_rows_output(&scaling, s0, half_even);
        out[1] = tinyfuse_rows_output(&scaling, s1, half_even);
        out[2] = tinyfuse_rows_output(&scaling, s2, half_even);
        out[3] = tinyfuse_rows_output(&scaling, s3, half_even);
        out += 4;
        right += 4;
    }
    while (out != end) {
        const int32_t sum = tinyfuse_rows_column(right++, step, wide, depth, begin);
        *out++ = tinyfuse_rows_output(&scaling, sum, half_even);
    }
}

#else

TINYFUSE_INLINE int32_t tinyfuse_rows_widen(const tinyfuse_rows_matmul *p, const int8_t *left, int16_t *wide)
{
    int32_t i, sum = 0;
    for (i = 0; i < p->depth; ++i) {
        wide[i] = (int16_t)(left[i] - p->left_zero_point);
        sum += wide[i];
    }
    return -sum * p->right_zero_point;
}

/* Computes one head if the right operand's rows are columns of the output: products of these rows with the vector. */
TINYFUSE_INLINE void tinyfuse_rows_dots(const tinyfuse_rows_matmul *p, const int8_t *left, const int8_t *right,
                                         int8_t *out, int16_t *wide, int half_even)
{
    const tinyfuse_rows_scaling scaling = tinyfuse_rows_scaling_of(p, half_even);
    const int32_t begin = tinyfuse_rows_widen(p, left, wide);
    const int16_t *const end = wide + p->depth;
    int32_t column;
    for (column = 0; column < p->columns; ++column) {
        const int8_t *element = right + column * p->right_row;
        const int16_t *x = wide;
        int32_t sum = begin;
        while (x != end) {
            sum += *x++ * *element++;
        }
        out[column] = tinyfuse_rows_output(&scaling, sum, half_even);
    }
}

/* Computes one head if the right operand's rows are added up, each times an element of the vector: two columns at a
   time. */
TINYFUSE_INLINE void tinyfuse_rows_sums(const tinyfuse_rows_matmul *p, const int8_t *left, const int8_t *right,
                                         int8_t *out, int16_t *wide, int half_even)
{
    const tinyfuse_rows_scaling scaling = tinyfuse_rows_scaling_of(p, half_even);
    const int32_t begin = tinyfuse_rows_widen(p, left, wide);
    const int16_t *const end = wide + p->depth;
    int32_t column;
    for (column = 0; column < p->columns; column += 2) {
        const int32_t count = tinyfuse_min(p->columns - column, 2);
        const int8_t *row = right + column;
        const int16_t *x = wide;
        int32_t s0 = begin, s1 = begin;
        while (x != end) {
            s0 += *x * row[0];
            s1 += *x++ * row[count - 1];
            row += p->right_row;
        }
        out[column] = tinyfuse_rows_output(&scaling, s0, half_even);
        if (count > 1) {
            out[column + 1] = tinyfuse_rows_output(&scaling, s1, half_even);
        }
    }
}

#endif

#define TINYFUSE_ROWS_OF(name, body, half_even)                                                     \
    TINYFUSE_IN_FORM(name, half_even, body,                                                         \
                     (const tinyfuse_rows_matmul *p, const int8_t *left, const int8_t *right, int8_t *out, int16_t *wide), \
                     p, left, right, out, wide)
TINYFUSE_ROWS_OF(tinyfuse_rows_dots_s8, tinyfuse_rows_dots, 0)
TINYFUSE_ROWS_OF(tinyfuse_rows_sums_s8, tinyfuse_rows_sums, 0)
TINYFUSE_ROWS_OF(tinyfuse_rows_dots_half_even_s8, tinyfuse_rows_dots, 1)
TINYFUSE_ROWS_OF(tinyfuse_rows_sums_half_even_s8, tinyfuse_rows_sums, 1)

/* Computes all heads of a row. `dots`, a constant: the right operand's rows are columns of the output; otherwise
   they are added up. scratch, aligned to 16: `depth` elements of 2 bytes, rounded up to a multiple of 8. */
TINYFUSE_INLINE void tinyfuse_rows_matmul_s8(const tinyfuse_rows_matmul *p, const int8_t *left, const int8_t *right,
                                             int8_t *out, int dots, void *scratch)
{
    int32_t head;
    for (head = 0; head < p->heads; ++head) {
        (dots ? tinyfuse_rows_dots_s8 : tinyfuse_rows_sums_s8)(p, left, right, out, (int16_t *)scratch);
        left += p->depth;
        right += p->right_head;
        out += p->columns;
    }
}

/* Computes a ROWS_MATMUL that rounds half to even; the multiplier holds the bits of a float32 scale. */
TINYFUSE_INLINE void tinyfuse_rows_matmul_half_even_s8(const tinyfuse_rows_matmul *p, const int8_t *left,
                                                       const int8_t *right, int8_t *out, int dots, void *scratch)
{
    int32_t head;
    for (head = 0; head < p->heads; ++head) {
        (dots ? tinyfuse_rows_dots_half_even_s8 : tinyfuse_rows_sums_half_even_s8)(p, left, right, out,
                                                                                   (int16_t *)scratch);
        left += p->depth;
        right += p->right_head;
        out += p->columns;
    }
}

#endif
