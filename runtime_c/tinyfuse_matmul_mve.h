/* The inner product of convolutions and fully connected layers for Helium: two pixels (or batches) of
   int8 inputs times four output channels. Requantization is the general form with right shifts only,
   four channels in a vector.

   weights  [ceil(out_c / 4)] groups; a group is [depth / 16][4][16] and then [4][depth % 16]; zeros
            for channels beyond out_c; 16 bytes more at the end, which are read but don't count.
   channels [ceil(out_c / 4)][3][4] int32: of four channels the biases, with -zero point * sum of
            weights folded in; the multipliers; the shifts (at most 0)
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

/* All channels of the inputs x0 and x1 to out0 and out1, which may be the same. */
TINYFUSE_SHARED void tinyfuse_matmul_two(const tinyfuse_matmul_mve *p, const int8_t *x0,
                                         const int8_t *x1, const int8_t *weights,
                                         const int32_t *channels, int8_t *out0,
                                         int8_t *out1)
{
    int32_t left;
    for (left = p->out_c; left > 0; left -= 4) {
        const mve_pred16_t valid = vctp32q((uint32_t)left);
        int32x4_t s0, s1;
        weights = tinyfuse_dot4(x0, x1, weights, channels, p->depth, &s0, &s1);
        s0 = tinyfuse_requantize4(s0, channels + 4, channels + 8);
        s1 = tinyfuse_requantize4(s1, channels + 4, channels + 8);
        s0 = vaddq_n_s32(s0, p->out_zero_point);
        s1 = vaddq_n_s32(s1, p->out_zero_point);
        s0 = vminq_s32(vmaxq_s32(s0, vdupq_n_s32(p->act_min)), vdupq_n_s32(p->act_max));
        s1 = vminq_s32(vmaxq_s32(s1, vdupq_n_s32(p->act_min)), vdupq_n_s32(p->act_max));
        vstrbq_p_s32(out0, s0, valid);
        vstrbq_p_s32(out1, s1, valid);
        out0 += 4;
        out1 += 4;
        channels += 12;
    }
}

#else

TINYFUSE_SHARED void tinyfuse_matmul_two(const tinyfuse_matmul_mve *p, const int8_t *x0,
                                         const int8_t *x1, const int8_t *weights,
                                         const int32_t *channels, int8_t *out0,
                                         int8_t *out1)
{
    const int32_t blocks = p->depth >> 4, rest = p->depth & 15;
    int32_t c, o, k;
    for (c = 0; c < p->out_c; c += 4) {
        for (o = 0; o < 4 && c + o < p->out_c; ++o) {
            uint32_t s0 = (uint32_t)channels[o], s1 = s0; /* wrap */
            for (k = 0; k < p->depth; ++k) {
                const int32_t w = k < 16 * blocks
                                      ? weights[(k >> 4) * 64 + o * 16 + (k & 15)]
                                      : weights[blocks * 64 + o * rest + (k & 15)];
                s0 += (uint32_t)(x0[k] * w);
                s1 += (uint32_t)(x1[k] * w);
            }
            out0[c + o] = (int8_t)tinyfuse_clamp(
                tinyfuse_requantize((int32_t)s0, channels[4 + o], channels[8 + o]) +
                    p->out_zero_point,
                p->act_min, p->act_max);
            out1[c + o] = (int8_t)tinyfuse_clamp(
                tinyfuse_requantize((int32_t)s1, channels[4 + o], channels[8 + o]) +
                    p->out_zero_point,
                p->act_min, p->act_max);
        }
        weights += 4 * p->depth;
        channels += 12;
    }
}

#endif

/* in [pixels][depth] to out [pixels][out_c], which must not overlap. */
TINYFUSE_SHARED void tinyfuse_pointwise_mve_s8(const tinyfuse_matmul_mve *p, const int8_t *in,
                                               int32_t pixels, int8_t *out, const int8_t *weights,
                                               const int32_t *channels)
{
    for (; pixels > 0; pixels -= 2) {
        /* a last single pixel is computed twice */
        const int32_t second = pixels > 1 ? 1 : 0;
        tinyfuse_matmul_two(p, in, in + second * p->depth, weights, channels, out,
                            out + second * p->out_c);
        in += 2 * p->depth;
        out += 2 * p->out_c;
    }
}

#endif
