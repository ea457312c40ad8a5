/* Fully connected layers of eight inputs of int8, in lanes and along lines as those by five outputs
   (tinyfuse_dense_fives.h), which with so few inputs are mostly busy around their loops: here the inputs stay in
   registers, and two outputs at a time take all their loads in a row. */
#ifndef TINYFUSE_DENSE_EIGHT_H
#define TINYFUSE_DENSE_EIGHT_H

#include "tinyfuse_dense_fives.h"

/* What a batch takes comes in `pairs`, int32: a multiplier; on bent lines a rounding; how many bytes all pairs of
   outputs have; a shift in 8 bits, and pairs in the first iteration. Then of each output what its sum begins with and two
   words of weights in lanes. `form` and the other members are as there. */
typedef struct {
    int32_t batches, out_c, form, act_min, act_max;
} tinyfuse_dense_eight;

/* Pairs of outputs of an iteration of the loop. */
#define TINYFUSE_EIGHT_PAIRS 4

#if TINYFUSE_DSP

/* r1 pairs, r2 multiplier, r3 rounding, r4 out, r8 and r10 inputs, r9 and r11 their X; r0 and r12 sums, r5 r7 and r6 lr
   their weights. On the stack where pairs end on a bent line, and the word with the shift. */
#define TINYFUSE_EIGHT_OUTPUT(sum, first, second)   \
    "smlsdx " sum ", " first ", r9, " sum "\n\t"    \
    "sxtb16 " first ", " first "\n\t"               \
    "smlsdx " sum ", r8, " first ", " sum "\n\t"    \
    "smlsdx " sum ", " second ", r11, " sum "\n\t"  \
    "sxtb16 " second ", " second "\n\t"             \
    "smlsdx " sum ", r10, " second ", " sum "\n\t"
#define TINYFUSE_EIGHT_PAIR(form)                                                                   \
    "ldr.n r5, [r1, #4]\n\tldr.n r7, [r1, #8]\n\tldr.w r12, [r1, #12]\n\tldr.n r6, [r1, #16]\n\t"   \
    "ldr.w lr, [r1, #20]\n\tldr.w r0, [r1], #24\n\t"                                                \
    TINYFUSE_EIGHT_OUTPUT("r0", "r5", "r7") TINYFUSE_EIGHT_OUTPUT("r12", "r6", "lr")                \
    TINYFUSE_EIGHT_LOADS_##form TINYFUSE_FIVES_OF_##form("r12") "strb.n r5, [r4, #1]\n\t"           \
    TINYFUSE_FIVES_OF_##form("r0") "strb r5, [r4], #2\n\t"
#define TINYFUSE_EIGHT_LOADS_LINE ""
#define TINYFUSE_EIGHT_LOADS_BENT ""
#define TINYFUSE_EIGHT_LOADS_ANY "ldr.n r6, [sp, #4]\n\t"
/* What pairs share, the count of those in the first iteration to r6, and where they end, which r3 has where it has no
   rounding. */
#define TINYFUSE_EIGHT_SHARED_LINE "ldr r5, [r1, #4]\n\tldr r6, [r1, #8]\n\tldr r2, [r1], #12\n\tadd r3, r5, r1\n\t"
#define TINYFUSE_EIGHT_SHARED_BENT                                                                      \
    "ldr r3, [r1, #4]\n\tldr r5, [r1, #8]\n\tldr r6, [r1, #12]\n\tldr r2, [r1], #16\n\tadd r5, r1\n\t"  \
    "str r5, [sp]\n\t"
#define TINYFUSE_EIGHT_SHARED_ANY TINYFUSE_EIGHT_SHARED_BENT
/* Compares r1 with where pairs end. */
#define TINYFUSE_EIGHT_AT_END_LINE "cmp r1, r3\n\t"
#define TINYFUSE_EIGHT_AT_END_BENT "ldr r5, [sp]\n\tcmp r1, r5\n\t"
#define TINYFUSE_EIGHT_AT_END_ANY TINYFUSE_EIGHT_AT_END_BENT
/* bytes of a pair's code */
#define TINYFUSE_EIGHT_LINE_BYTES "88"
#define TINYFUSE_EIGHT_BENT_BYTES "96"
#define TINYFUSE_EIGHT_ANY_BYTES "106"
/* A word of inputs to `inputs`, with the first and the third one's X, to `x`. */
#define TINYFUSE_EIGHT_INPUTS(inputs, x) "eor " inputs ", #0x00800080\n\tuxtb16 " x ", " inputs "\n\t"
#define TINYFUSE_EIGHT_ASM(form)                                                                \
    {                                                                                           \
        register const int8_t *r0 __asm("r0") = in;                                             \
        register const int32_t *r1 __asm("r1") = pairs;                                         \
        register int8_t *r2 __asm("r2") = out;                                                  \
        __asm volatile("push {r4-r11, lr}\n\t"                                                  \
                       "mov r4, r2\n\t"                                                         \
                       "sub sp, #8\n\t"                                                         \
                       "ldr r8, [r0]\n\t"                                                       \
                       "ldr r10, [r0, #4]\n\t" TINYFUSE_EIGHT_SHARED_##form                     \
                       "str r6, [sp, #4]\n\t"                                                   \
                       "lsr r6, #8\n\t"                                                         \
                       TINYFUSE_EIGHT_INPUTS("r8", "r9") TINYFUSE_EIGHT_INPUTS("r10", "r11")    \
                       "adr.w r5, 1f + 4 * " TINYFUSE_EIGHT_##form##_BYTES " + 1\n\t"           \
                       "movs r7, #" TINYFUSE_EIGHT_##form##_BYTES "\n\t"                        \
                       "mls r5, r6, r7, r5\n\t"                                                 \
                       "bx r5\n\t"                                                              \
                       ".p2align 2\n\t"                                                         \
                       "1:\n\t" TINYFUSE_EIGHT_PAIR(form) TINYFUSE_EIGHT_PAIR(form)             \
                       TINYFUSE_EIGHT_PAIR(form) TINYFUSE_EIGHT_PAIR(form)                      \
                       TINYFUSE_EIGHT_AT_END_##form                                             \
                       "bne.w 1b\n\t"                                                           \
                       "add sp, #8\n\t"                                                         \
                       "pop {r4-r11, lr}\n\t"                                                   \
                       : "+r"(r0), "+r"(r1), "+r"(r2)                                           \
                       :                                                                        \
                       : "r3", "r12", "cc", "memory");                                          \
    }

#endif

/* A batch; `form` is a constant. */
TINYFUSE_INLINE void tinyfuse_eight_run(const int8_t *in, const int32_t *pairs, int8_t *out, int form)
{
#if TINYFUSE_DSP
    if (form == TINYFUSE_FIVES_LINE) {
        TINYFUSE_EIGHT_ASM(LINE)
    } else if (form == TINYFUSE_FIVES_BENT) {
        TINYFUSE_EIGHT_ASM(BENT)
    } else {
        TINYFUSE_EIGHT_ASM(ANY)
    }
#else
    const int32_t multiplier = *pairs++, rounding = form == TINYFUSE_FIVES_LINE ? 0 : *pairs++;
    const int32_t outputs = pairs[0] / 12, shift = pairs[1] & 255;
    int16_t inputs[4], x[4];
    int32_t i;
    for (i = 0; i < 4; ++i) {
        x[i] = (int16_t)(in[2 * i] + 128);
        inputs[i] = (int16_t)(256 * in[2 * i + 1] + x[i]);
    }
    for (pairs += 2, i = 0; i < outputs; ++i, pairs += 3) {
        int32_t sum = tinyfuse_fives_products(pairs[0], pairs[1], inputs, x);
        sum = tinyfuse_fives_products(sum, pairs[2], inputs + 2, x + 2);
        out[i] = tinyfuse_fives_output(sum, multiplier, rounding, shift, form);
    }
#endif
}

TINYFUSE_SHARED void tinyfuse_eight_line(const int8_t *in, const int32_t *pairs, int8_t *out)
{
    tinyfuse_eight_run(in, pairs, out, TINYFUSE_FIVES_LINE);
}

TINYFUSE_SHARED void tinyfuse_eight_bent(const int8_t *in, const int32_t *pairs, int8_t *out)
{
    tinyfuse_eight_run(in, pairs, out, TINYFUSE_FIVES_BENT);
}

TINYFUSE_SHARED void tinyfuse_eight_any(const int8_t *in, const int32_t *pairs, int8_t *out)
{
    tinyfuse_eight_run(in, pairs, out, TINYFUSE_FIVES_ANY);
}

/* in [batches][8] to out [batches][out_c], by `pairs` of all outputs. out may lie over batches of in that are read
   already, the one that is computed included. */
TINYFUSE_INLINE void tinyfuse_dense_eight_s8(const tinyfuse_dense_eight *p, const int8_t *in, int8_t *out,
                                             const int32_t *pairs)
{
    int32_t b;
    for (b = 0; b < p->batches; ++b) {
        const int8_t *const from = in + b * 8;
        int8_t *const to = out + b * p->out_c;
        if (p->form == TINYFUSE_FIVES_LINE) {
            tinyfuse_eight_line(from, pairs, to);
        } else if (p->form == TINYFUSE_FIVES_BENT) {
            tinyfuse_eight_bent(from, pairs, to);
        } else {
            tinyfuse_eight_any(from, pairs, to);
        }
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(out, p->batches * p->out_c, p->act_min, p->act_max);
    }
}

#endif
