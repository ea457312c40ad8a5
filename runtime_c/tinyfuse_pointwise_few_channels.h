/* 1x1 convolution with stride 1 of four or eight input channels, int8, single-rounding requantization, for cores with
   the DSP extension. A channel's weights stay in registers for many pixels, which share the setup of its loop;
   tinyfuse_pointwise.h shares it among three.

   channels [out_c][in_c / 2 + 2] int32: weights, times 256, two int16 a word, inputs 0 2, 1 3 (, 4 6, 5 7); bias and
            multiplier.
   columns  [pixels][in_c] int16, each four in the order 0 2 1 3, aligned to 8. */
#ifndef TINYFUSE_POINTWISE_FEW_CHANNELS_H
#define TINYFUSE_POINTWISE_FEW_CHANNELS_H

#include "tinyfuse_pointwise.h"

/* The job of some pixels; assembly knows the offsets. */
typedef struct {
    int32_t rounding;
    int32_t out_c;
    const int16_t *columns;
    const int16_t *pairs_end; /* bytes of the columns, without a last odd one */
    int32_t odd;              /* whether there is one */
    int8_t *out;              /* 20 */
    int8_t *out_end;          /* end of the first pixel's outputs */
    const int32_t *channels;  /* 28 */
} tinyfuse_few_channels;

#if TINYFUSE_DSP

typedef char tinyfuse_check_few_channels[offsetof(tinyfuse_few_channels, channels) == 28 ? 1 : -1];
/* r0 columns, r1 out, r2 to r5 weights, r6 bias, r7 multiplier, r8 rounding, r9 to r12 inputs, the first of which becomes
   the output, lr bytes from a pixel's output to the next one's. On the stack the end of the pairs of pixels, then the
   tinyfuse_few_channels. */
#define TINYFUSE_FEW_CHANNELS_SUM_4                   \
    "ldrd r9, r10, [r0], #8\n\t"                \
    "smlad r9, r9, r2, r6\n\t"                  \
    "smlad r9, r10, r3, r9\n\t"
#define TINYFUSE_FEW_CHANNELS_SUM_8                   \
    "ldm r0!, {r9, r10, r11, r12}\n\t"          \
    "smlad r9, r9, r2, r6\n\t"                  \
    "smlad r9, r10, r3, r9\n\t"                 \
    "smlad r9, r11, r4, r9\n\t"                 \
    "smlad r9, r12, r5, r9\n\t"
#define TINYFUSE_FEW_CHANNELS_OUTPUT(n) \
    TINYFUSE_FEW_CHANNELS_SUM_##n "smmla r9, r9, r7, r8\n\t" TINYFUSE_SINGLE_ROUNDING_SATURATE("r9")
#define TINYFUSE_FEW_CHANNELS_PAIR(n)                              \
    TINYFUSE_FEW_CHANNELS_OUTPUT(n) "strb r9, [r1]\n\t"            \
    TINYFUSE_FEW_CHANNELS_OUTPUT(n) "strb r9, [r1, lr]\n\t"        \
    "add r1, r1, lr, lsl #1\n\t"
#define TINYFUSE_FEW_CHANNELS_WEIGHTS_4 "ldm r0!, {r2, r3, r6, r7}\n\t"
#define TINYFUSE_FEW_CHANNELS_WEIGHTS_8 "ldm r0!, {r2, r3, r4, r5, r6, r7}\n\t"
/* Pairs of pixels come four by four. The loop is entered in its middle, so that only whole iterations remain: a shift
   to the left by `pairs` brings the bits of the columns' bytes that count single pairs, and two of them, to N and C. */
#define TINYFUSE_FEW_CHANNELS_ASM(n, pairs, s)                                                  \
    {                                                                                     \
        TINYFUSE_ARGUMENT(tinyfuse_few_channels *, arguments, s);                               \
        __asm volatile(TINYFUSE_ASM_BEGIN                                                 \
                       "ldrd r8, lr, [r0]\n\t"                                            \
                       "ldr r9, [r0, #12]\n\t"                                            \
                       "push {r9}\n\t"                                                    \
                       "1:\n\t"                                                           \
                       "ldr r9, [sp, #4]\n\t"                                             \
                       "ldrd r1, r12, [r9, #20]\n\t"                                      \
                       "cmp r1, r12\n\t"                                                  \
                       "beq 7f\n\t"                                                       \
                       "add r12, r1, #1\n\t"                                              \
                       "str r12, [r9, #20]\n\t"                                           \
                       "ldr r0, [r9, #28]\n\t" TINYFUSE_FEW_CHANNELS_WEIGHTS_##n                \
                       "str r0, [r9, #28]\n\t"                                            \
                       "ldrd r0, r12, [r9, #8]\n\t"                                       \
                       "subs r12, r12, r0\n\t"                                            \
                       "beq 6f\n\t"                                                       \
                       "lsls r12, r12, #" pairs "\n\t"                                    \
                       "bcs 8f\n\t"                                                       \
                       "bmi 5f\n\t"                                                       \
                       "2:\n\t" TINYFUSE_FEW_CHANNELS_PAIR(n)                                   \
                       "3:\n\t" TINYFUSE_FEW_CHANNELS_PAIR(n)                                   \
                       "4:\n\t" TINYFUSE_FEW_CHANNELS_PAIR(n)                                   \
                       "5:\n\t" TINYFUSE_FEW_CHANNELS_PAIR(n)                                   \
                       "ldr r12, [sp]\n\t"                                                \
                       "cmp r0, r12\n\t"                                                  \
                       "bne 2b\n\t"                                                       \
                       "6:\n\t"                                                           \
                       "ldr r11, [sp, #4]\n\t"                                            \
                       "ldr r12, [r11, #16]\n\t"                                          \
                       "cmp r12, #0\n\t"                                                  \
                       "beq 1b\n\t" TINYFUSE_FEW_CHANNELS_OUTPUT(n)                             \
                       "strb r9, [r1]\n\t"                                                \
                       "b 1b\n\t"                                                         \
                       "8:\n\t"                                                           \
                       "bmi 3b\n\t"                                                       \
                       "b 4b\n\t"                                                         \
                       "7:\n\t"                                                           \
                       "add sp, #4\n\t" TINYFUSE_ASM_END                                  \
                       :                                                                  \
                       : "r"(arguments)                                                   \
                       : TINYFUSE_ASM_CLOBBERS);                                          \
    }

#endif

/* Computes all channels of the pixels; in_c, a constant, is 4 or 8. */
TINYFUSE_INLINE void tinyfuse_few_channels_run(tinyfuse_few_channels *s, int32_t in_c)
{
#if TINYFUSE_DSP
    if (in_c == 4) {
        TINYFUSE_FEW_CHANNELS_ASM(4, "27", s)
    } else {
        TINYFUSE_FEW_CHANNELS_ASM(8, "26", s)
    }
#else
    const int32_t *c = s->channels;
    for (; s->out != s->out_end; ++s->out) {
        const int16_t *x, *const end = s->pairs_end + s->odd * in_c;
        int8_t *out = s->out;
        for (x = s->columns; x != end; x += in_c) {
            uint32_t sum = (uint32_t)c[in_c / 2];
            int16_t w[8];
            int32_t i;
            memcpy(w, c, (size_t)(2 * in_c));
            for (i = 0; i < in_c; ++i) {
                sum += (uint32_t)(x[i] * w[i]);
            }
            *out = (int8_t)tinyfuse_requantize_single_rounding((int32_t)sum, c[in_c / 2 + 1], s->rounding);
            out += s->out_c;
        }
        c += in_c / 2 + 2;
    }
#endif
}

TINYFUSE_SHARED void tinyfuse_few_channels_4(tinyfuse_few_channels *s)
{
    tinyfuse_few_channels_run(s, 4);
}

TINYFUSE_SHARED void tinyfuse_few_channels_8(tinyfuse_few_channels *s)
{
    tinyfuse_few_channels_run(s, 8);
}

/* Computes a layer, in [pixels][in_c] to out [pixels][out_c], forward by blocks of pixels: out may overlap pixels
   that were read already, those of the block included. in_c is 4 or 8, p->block any count. scratch, aligned to 8:
   columns of block * in_c inputs of 2 bytes. */
TINYFUSE_INLINE void tinyfuse_pointwise_few_channels_s8(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels,
                                                        int8_t *out, const int32_t *channels, void *scratch)
{
    int8_t *const first = out;
    int32_t left = pixels;
    tinyfuse_few_channels s;
    s.rounding = tinyfuse_single_rounding_rounding(p->out_zero_point);
    s.out_c = p->out_c;
    s.columns = (const int16_t *)scratch;
    while (left > 0) {
        const int32_t block = tinyfuse_min(left, p->block);
        (void)tinyfuse_widen(in, block * p->in_c / 4, (int8_t *)scratch, 8, TINYFUSE_WIDE);
        s.odd = block & 1;
        s.pairs_end = s.columns + (block - s.odd) * p->in_c;
        s.out = out;
        s.out_end = out + p->out_c;
        s.channels = channels;
        if (p->in_c == 4) {
            tinyfuse_few_channels_4(&s);
        } else {
            tinyfuse_few_channels_8(&s);
        }
        in += block * p->in_c;
        out += block * p->out_c;
        left -= block;
    }
    tinyfuse_clamp_outputs(first, pixels * p->out_c, p->act_min, p->act_max);
}

#endif
