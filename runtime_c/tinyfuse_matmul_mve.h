/* The inner product of convolutions and fully connected layers for Helium: two pixels (or batches) of
   int8 inputs times four output channels. Requantization is the general form with right shifts only,
   four channels in a vector.

   weights  [ceil(out_c / 4)] groups; a group is [depth / 16][4][16] and then [4][depth % 16]; zeros
            for channels beyond out_c; 16 bytes more at the end, which are read but don't count.
   channels [ceil(out_c / 4)][3][4] int32: of four channels the biases, with -zero point * sum of
            weights folded in; the multipliers; the shifts (at most 0). With `one_scale`, a constant, all
            channels have one multiplier and shift: [4] multipliers, [4] shifts, [ceil(out_c / 4)][4] biases
*/
#ifndef TINYFUSE_MATMUL_MVE_H
#define TINYFUSE_MATMUL_MVE_H

#include "tinyfuse_requantize.h"

#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && \
    !defined(TINYFUSE_NO_ASM)
#define TINYFUSE_MVE 1
#include <arm_mve.h>
#else
#define TINYFUSE_MVE 0
#endif

typedef struct {
    int32_t depth, out_c, out_zero_point, act_min, act_max;
} tinyfuse_matmul_mve;

/* The biases of the first four channels. */
TINYFUSE_INLINE const int32_t *tinyfuse_first_bias(const int32_t *channels, int one_scale)
{
    return one_scale ? channels + 8 : channels;
}

#if TINYFUSE_MVE

/* Rounds twice as tinyfuse_requantize does: VQRDMULH is the rounding doubling high multiply, VRSHL
   rounds halves up, so that a negative value is first lowered by one unless it isn't shifted. */
TINYFUSE_INLINE int32x4_t tinyfuse_requantize4(int32x4_t value, const int32_t *multiplier,
                                               const int32_t *shift)
{
    const int32x4_t shifts = vldrwq_s32(shift);
    const int32x4_t v = vqrdmulhq_s32(value, vldrwq_s32(multiplier));
    return vrshlq_s32(vaddq_s32(v, vshrq_n_s32(vandq_s32(v, shifts), 31)), shifts);
}

/* The sums of four channels for the inputs x0 and x1; returns the weights behind. */
TINYFUSE_INLINE const int8_t *tinyfuse_dot4(const int8_t *x0, const int8_t *x1, const int8_t *w,
                                            const int32_t *bias, int32_t depth, int32x4_t *s0,
                                            int32x4_t *s1)
{
    int32x4_t a, b;
    int8x16_t x, y, u, v;
    int32_t blocks = depth >> 4;
    const int32_t rest = depth & 15;
    /* VMLADAVA wants its sums in even registers: the rest lives in odd ones */
    register const int8_t *at0 __asm("r1") = x0;
    register const int8_t *at1 __asm("r3") = x1;
    register const int8_t *weights __asm("r5") = w;
    register int32_t left __asm("r9") = blocks;
    register const int32_t *start __asm("r11") = bias;
    __asm volatile("ldm %[start], {r0, r2, r4, r6}\n\t"
                   "ldm %[start], {r8, r10, r12, lr}\n\t"
                   "cmp %[left], #0\n\t"
                   "beq 2f\n\t"
                   "1:\n\t"
                   "vldrb.8 %q[u], [%[weights], #16]\n\t"
                   "vldrb.8 %q[x], [%[at0]], #16\n\t"
                   "vldrb.8 %q[y], [%[at1]], #16\n\t"
                   "vmladava.s8 r2, %q[x], %q[u]\n\t"
                   "vldrb.8 %q[v], [%[weights], #32]\n\t"
                   "vmladava.s8 r10, %q[y], %q[u]\n\t"
                   "vldrb.8 %q[u], [%[weights], #48]\n\t"
                   "vmladava.s8 r4, %q[x], %q[v]\n\t"
                   "subs %[left], #1\n\t"
                   "vmladava.s8 r12, %q[y], %q[v]\n\t"
                   "vldrb.8 %q[v], [%[weights]], #64\n\t"
                   "vmladava.s8 r6, %q[x], %q[u]\n\t"
                   "vmladava.s8 lr, %q[y], %q[u]\n\t"
                   "vmladava.s8 r0, %q[x], %q[v]\n\t"
                   "vmladava.s8 r8, %q[y], %q[v]\n\t"
                   "bne 1b\n\t"
                   "2:\n\t"
                   "ldr %[left], %[rest]\n\t"
                   "cmp %[left], #0\n\t"
                   "beq 3f\n\t"
                   "vctp.8 %[left]\n\t"
                   "vpstt\n\t"
                   "vldrbt.8 %q[x], [%[at0]]\n\t" /* zeros behind the inputs */
                   "vldrbt.8 %q[y], [%[at1]]\n\t"
                   "vldrb.8 %q[u], [%[weights]]\n\t"
                   "add %[weights], %[left]\n\t"
                   "vmladava.s8 r0, %q[x], %q[u]\n\t"
                   "vmladava.s8 r8, %q[y], %q[u]\n\t"
                   "vldrb.8 %q[u], [%[weights]]\n\t"
                   "add %[weights], %[left]\n\t"
                   "vmladava.s8 r2, %q[x], %q[u]\n\t"
                   "vmladava.s8 r10, %q[y], %q[u]\n\t"
                   "vldrb.8 %q[u], [%[weights]]\n\t"
                   "add %[weights], %[left]\n\t"
                   "vmladava.s8 r4, %q[x], %q[u]\n\t"
                   "vmladava.s8 r12, %q[y], %q[u]\n\t"
                   "vldrb.8 %q[u], [%[weights]]\n\t"
                   "add %[weights], %[left]\n\t"
                   "vmladava.s8 r6, %q[x], %q[u]\n\t"
                   "vmladava.s8 lr, %q[y], %q[u]\n\t"
                   "3:\n\t"
                   "vmov %q[a][2], %q[a][0], r0, r4\n\t"
                   "vmov %q[a][3], %q[a][1], r2, r6\n\t"
                   "vmov %q[b][2], %q[b][0], r8, r12\n\t"
                   "vmov %q[b][3], %q[b][1], r10, lr"
                   : [a] "=&w"(a), [b] "=&w"(b), [x] "=&w"(x), [y] "=&w"(y), [u] "=&w"(u),
                     [v] "=&w"(v), [at0] "+r"(at0), [at1] "+r"(at1), [weights] "+r"(weights),
                     [left] "+r"(left)
                   : [start] "r"(start), [rest] "m"(rest)
                   : "r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr", "p0", "cc", "memory");
    *s0 = a;
    *s1 = b;
    return weights;
}

/* The sums of eight channels, two groups, for the inputs x; their biases are those at `bias`, and those
   behind them and behind what `skip` goes over. */
#define TINYFUSE_DOT8(skip)                                                                        \
    __asm volatile("ldm %[start]!, {r0, r2, r4, r6}\n\t" skip                                      \
                   "ldm %[start], {r8, r10, r12, lr}\n\t"                                          \
                   "cmp %[left], #0\n\t"                                                           \
                   "beq 2f\n\t"                                                                    \
                   "1:\n\t"                                                                        \
                   "vldrb.8 %q[v], [%[w0], #16]\n\t"                                               \
                   "vldrb.8 %q[x], [%[at]], #16\n\t"                                               \
                   "vmladava.s8 r2, %q[x], %q[v]\n\t"                                              \
                   "vldrb.8 %q[u], [%[w0], #32]\n\t"                                               \
                   "vmladava.s8 r4, %q[x], %q[u]\n\t"                                              \
                   "vldrb.8 %q[v], [%[w0], #48]\n\t"                                               \
                   "vmladava.s8 r6, %q[x], %q[v]\n\t"                                              \
                   "vldrb.8 %q[u], [%[w0]], #64\n\t"                                               \
                   "vmladava.s8 r0, %q[x], %q[u]\n\t"                                              \
                   "vldrb.8 %q[v], [%[w1], #16]\n\t"                                               \
                   "vmladava.s8 r10, %q[x], %q[v]\n\t"                                             \
                   "vldrb.8 %q[u], [%[w1], #32]\n\t"                                               \
                   "vmladava.s8 r12, %q[x], %q[u]\n\t"                                             \
                   "vldrb.8 %q[v], [%[w1], #48]\n\t"                                               \
                   "vmladava.s8 lr, %q[x], %q[v]\n\t"                                              \
                   "vldrb.8 %q[u], [%[w1]], #64\n\t"                                               \
                   "vmladava.s8 r8, %q[x], %q[u]\n\t"                                              \
                   "subs %[left], #1\n\t"                                                          \
                   "bne 1b\n\t"                                                                    \
                   "2:\n\t"                                                                        \
                   "ldr %[left], %[rest]\n\t"                                                      \
                   "cmp %[left], #0\n\t"                                                           \
                   "beq 3f\n\t"                                                                    \
                   "vctp.8 %[left]\n\t"                                                            \
                   "vpst\n\t"                                                                      \
                   "vldrbt.8 %q[x], [%[at]]\n\t"                                                   \
                   "vldrb.8 %q[u], [%[w0]]\n\t"                                                    \
                   "add %[w0], %[left]\n\t"                                                        \
                   "vmladava.s8 r0, %q[x], %q[u]\n\t"                                              \
                   "vldrb.8 %q[u], [%[w0]]\n\t"                                                    \
                   "add %[w0], %[left]\n\t"                                                        \
                   "vmladava.s8 r2, %q[x], %q[u]\n\t"                                              \
                   "vldrb.8 %q[u], [%[w0]]\n\t"                                                    \
                   "add %[w0], %[left]\n\t"                                                        \
                   "vmladava.s8 r4, %q[x], %q[u]\n\t"                                              \
                   "vldrb.8 %q[u], [%[w0]]\n\t"                                                    \
                   "add %[w0], %[left]\n\t"                                                        \
                   "vmladava.s8 r6, %q[x], %q[u]\n\t"                                              \
                   "vldrb.8 %q[u], [%[w1]]\n\t"                                                    \
                   "add %[w1], %[left]\n\t"                                                        \
                   "vmladava.s8 r8, %q[x], %q[u]\n\t"                                              \
                   "vldrb.8 %q[u], [%[w1]]\n\t"                                                    \
                   "add %[w1], %[left]\n\t"                                                        \
                   "vmladava.s8 r10, %q[x], %q[u]\n\t"                                             \
                   "vldrb.8 %q[u], [%[w1]]\n\t"                                                    \
                   "add %[w1], %[left]\n\t"                                                        \
                   "vmladava.s8 r12, %q[x], %q[u]\n\t"                                             \
                   "vldrb.8 %q[u], [%[w1]]\n\t"                                                    \
                   "add %[w1], %[left]\n\t"                                                        \
                   "vmladava.s8 lr, %q[x], %q[u]\n\t"                                              \
                   "3:\n\t"                                                                        \
                   "vmov %q[a][2], %q[a][0], r0, r4\n\t"                                           \
                   "vmov %q[a][3], %q[a][1], r2, r6\n\t"                                           \
                   "vmov %q[b][2], %q[b][0], r8, r12\n\t"                                          \
                   "vmov %q[b][3], %q[b][1], r10, lr"                                              \
                   : [a] "=&w"(a), [b] "=&w"(b), [x] "=&w"(x), [u] "=&w"(u), [v] "=&w"(v),         \
                     [at] "+r"(at), [w0] "+r"(w0), [w1] "+r"(w1), [left] "+r"(left),               \
                     [start] "+r"(start)                                                           \
                   : [rest] "m"(rest)                                                              \
                   : "r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr", "p0", "cc", "memory")

TINYFUSE_INLINE void tinyfuse_dot8(const int8_t *x_at, const int8_t *w, const int32_t *bias,
                                   int32_t depth, int32x4_t *s0, int32x4_t *s1, int one_scale)
{
    int32x4_t a, b;
    int8x16_t x, u, v;
    const int32_t rest = depth & 15;
    register const int8_t *at __asm("r1") = x_at;
    register const int8_t *w0 __asm("r3") = w;
    register const int8_t *w1 __asm("r5") = w + 4 * depth;
    register int32_t left __asm("r9") = depth >> 4;
    register const int32_t *start __asm("r11") = bias;
    if (one_scale) {
        TINYFUSE_DOT8("");
    } else {
        TINYFUSE_DOT8("add %[start], #32\n\t"); /* multipliers and shifts */
    }
    *s0 = a;
    *s1 = b;
}

TINYFUSE_INLINE int32x4_t tinyfuse_stored4(int32x4_t sums, const int32_t *scale,
                                           int32_t zero_point, int32x4_t low, int32x4_t high)
{
    const int32x4_t v = tinyfuse_requantize4(sums, scale, scale + 4);
    return vminq_s32(vmaxq_s32(vaddq_n_s32(v, zero_point), low), high);
}

/* All channels of the inputs x to out. */
TINYFUSE_INLINE void tinyfuse_matmul_one_body(const tinyfuse_matmul_mve *p, const int8_t *x,
                                              const int8_t *weights, const int32_t *channels,
                                              int8_t *out, int one_scale)
{
    const int32x4_t low = vdupq_n_s32(p->act_min), high = vdupq_n_s32(p->act_max);
    const int32_t zero_point = p->out_zero_point, depth = p->depth;
    const int32_t *bias = tinyfuse_first_bias(channels, one_scale);
    int32_t left = p->out_c;
    int32x4_t s0, s1;
    for (; left > 4; left -= 8) {
        const mve_pred16_t valid = vctp32q((uint32_t)(left - 4));
        tinyfuse_dot8(x, weights, bias, depth, &s0, &s1, one_scale);
        vstrbq_s32(out, tinyfuse_stored4(s0, one_scale ? channels : bias + 4, zero_point, low, high));
        vstrbq_p_s32(out + 4,
                     tinyfuse_stored4(s1, one_scale ? channels : bias + 16, zero_point, low, high),
                     valid);
        weights += 8 * depth;
        bias += one_scale ? 8 : 24;
        out += 8;
    }
    if (left > 0) {
        (void)tinyfuse_dot4(x, x, weights, bias, depth, &s0, &s1);
        vstrbq_p_s32(out, tinyfuse_stored4(s0, one_scale ? channels : bias + 4, zero_point, low, high),
                     vctp32q((uint32_t)left));
    }
}

/* All channels of the inputs x0 and x1 to out0 and out1. */
TINYFUSE_INLINE void tinyfuse_matmul_two_body(const tinyfuse_matmul_mve *p, const int8_t *x0,
                                              const int8_t *x1, const int8_t *weights,
                                              const int32_t *channels, int8_t *out0, int8_t *out1,
                                              int one_scale)
{
    const int32x4_t low = vdupq_n_s32(p->act_min), high = vdupq_n_s32(p->act_max);
    const int32_t zero_point = p->out_zero_point, depth = p->depth;
    const int32_t *bias = tinyfuse_first_bias(channels, one_scale);
    int32_t left;
    for (left = p->out_c; left > 0; left -= 4) {
        const mve_pred16_t valid = vctp32q((uint32_t)left);
        int32x4_t s0, s1;
        weights = tinyfuse_dot4(x0, x1, weights, bias, depth, &s0, &s1);
        s0 = tinyfuse_stored4(s0, one_scale ? channels : bias + 4, zero_point, low, high);
        s1 = tinyfuse_stored4(s1, one_scale ? channels : bias + 4, zero_point, low, high);
        vstrbq_p_s32(out0, s0, valid);
        vstrbq_p_s32(out1, s1, valid);
        out0 += 4;
        out1 += 4;
        bias += one_scale ? 4 : 12;
    }
}

#else

TINYFUSE_INLINE void tinyfuse_matmul_one_body(const tinyfuse_matmul_mve *p, const int8_t *x,
                                              const int8_t *weights, const int32_t *channels,
                                              int8_t *out, int one_scale)
{
    const int32_t blocks = p->depth >> 4, rest = p->depth & 15;
    const int32_t *bias = tinyfuse_first_bias(channels, one_scale);
    int32_t c, o, k;
    for (c = 0; c < p->out_c; c += 4) {
        const int32_t *const scale = one_scale ? channels : bias + 4;
        for (o = 0; o < 4 && c + o < p->out_c; ++o) {
            uint32_t sum = (uint32_t)bias[o]; /* wraps */
            for (k = 0; k < p->depth; ++k) {
                sum += (uint32_t)(x[k] * (k < 16 * blocks
                                              ? weights[(k >> 4) * 64 + o * 16 + (k & 15)]
                                              : weights[blocks * 64 + o * rest + (k & 15)]));
            }
            out[c + o] = (int8_t)tinyfuse_clamp(
                tinyfuse_requantize((int32_t)sum, scale[o], scale[4 + o]) + p->out_zero_point,
                p->act_min, p->act_max);
        }
        weights += 4 * p->depth;
        bias += one_scale ? 4 : 12;
    }
}

TINYFUSE_INLINE void tinyfuse_matmul_two_body(const tinyfuse_matmul_mve *p, const int8_t *x0,
                                              const int8_t *x1, const int8_t *weights,
                                              const int32_t *channels, int8_t *out0, int8_t *out1,
                                              int one_scale)
{
    tinyfuse_matmul_one_body(p, x0, weights, channels, out0, one_scale);
    tinyfuse_matmul_one_body(p, x1, weights, channels, out1, one_scale);
}

#endif

#define TINYFUSE_MATMUL_MVE(one, two, all, one_scale)                                              \
    TINYFUSE_SHARED void one(const tinyfuse_matmul_mve *p, const int8_t *x, const int8_t *weights, \
                             const int32_t *channels, int8_t *out)                                 \
    {                                                                                              \
        tinyfuse_matmul_one_body(p, x, weights, channels, out, one_scale);                         \
    }                                                                                              \
    TINYFUSE_SHARED void two(const tinyfuse_matmul_mve *p, const int8_t *x0, const int8_t *x1,     \
                             const int8_t *weights, const int32_t *channels, int8_t *out0,         \
                             int8_t *out1)                                                         \
    {                                                                                              \
        tinyfuse_matmul_two_body(p, x0, x1, weights, channels, out0, out1, one_scale);             \
    }                                                                                              \
    TINYFUSE_SHARED void all(const tinyfuse_matmul_mve *p, const int8_t *in, int32_t pixels,       \
                             int8_t *out, const int8_t *weights, const int32_t *channels)          \
    {                                                                                              \
        for (; pixels > 1; pixels -= 2) {                                                          \
            two(p, in, in + p->depth, weights, channels, out, out + p->out_c);                     \
            in += 2 * p->depth;                                                                    \
            out += 2 * p->out_c;                                                                   \
        }                                                                                          \
        if (pixels > 0) {                                                                          \
            one(p, in, weights, channels, out);                                                    \
        }                                                                                          \
    }
TINYFUSE_MATMUL_MVE(tinyfuse_matmul_one, tinyfuse_matmul_two, tinyfuse_matmul_all, 0)
TINYFUSE_MATMUL_MVE(tinyfuse_one_scale_one, tinyfuse_one_scale_two, tinyfuse_one_scale_all, 1)

/* in [pixels][depth] to out [pixels][out_c], forward by two pixels: their outputs must not lie over them or
   later ones. */
TINYFUSE_INLINE void tinyfuse_pointwise_mve_s8(const tinyfuse_matmul_mve *p, const int8_t *in,
                                               int32_t pixels, int8_t *out, const int8_t *weights,
                                               const int32_t *channels, int one_scale)
{
    (one_scale ? tinyfuse_one_scale_all : tinyfuse_matmul_all)(p, in, pixels, out, weights, channels);
}

#endif
