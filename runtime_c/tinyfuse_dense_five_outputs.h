/* Fully connected layers of int8, five outputs at a time, for cores with the DSP extension where cycles count. An
   input is loaded once for five weights, and all loads of a step follow one another, which saves a cycle each. One
   multiplier serves all outputs. The weights and constants of a group of outputs come in one stream.

   Weights lie two to a 16-bit lane as in tinyfuse_matmul.h, but with signs such that columns are the inputs
   themselves. Four inputs x0 to x3 give the halves 256 * x1 + X0 and 256 * x3 + X2, with X = x + 128, whose low bytes
   are the X. Weights w0 to w3 give the lanes 256 * w2 - w3 (the lower one) and w1 - 256 * w0, with low bytes -w3 and
   w1. SMLSDX multiplies halves crosswise and subtracts the second product. Columns with low bytes, then lanes with X,
   sum to

       (256 * x1 + X0) * w1 - (256 * x3 + X2) * -w3
       + (256 * w2 - w3) * X2 - (w1 - 256 * w0) * X0  =  256 * (w0 * X0 + w1 * x1 + w2 * X2 + w3 * x3) */
#ifndef TINYFUSE_DENSE_FIVE_OUTPUTS_H
#define TINYFUSE_DENSE_FIVE_OUTPUTS_H

#include "tinyfuse_matmul.h"

/* Requantization of all outputs:

   SINGLE_ROUNDING  one rounding, shift TINYFUSE_FIVE_OUTPUTS_SHIFT; the zero point is in the sums
   SIGNED_ROUNDING  sign-dependent rounding with that shift and sums within 2^29. The rounding is the zero point and, in
                    its lowest three bits, the bend, which is added where sums aren't negative
   ANY              sign-dependent rounding with any shift and bend 1 */
enum { TINYFUSE_FIVE_OUTPUTS_SINGLE_ROUNDING, TINYFUSE_FIVE_OUTPUTS_SIGNED_ROUNDING, TINYFUSE_FIVE_OUTPUTS_ANY };

/* Two bits fewer than TINYFUSE_SINGLE_ROUNDING_SHIFT: multipliers may be up to 1/4. */
#define TINYFUSE_FIVE_OUTPUTS_SHIFT 9

/* `groups`, int32, has all constants of a batch: a multiplier; with sign-dependent rounding a rounding; the bytes of
   all groups of five outputs, and of those of four; a word with the shift in 8 bits, the steps of the first
   iteration, of four inputs each, in 4 bits, and in_c. Then come groups of five, then of four. A group of n outputs
   is n int32, the initial sums, then for each four inputs [n] weights in lanes. */
typedef struct {
    int32_t batches, in_c, out_c, form, act_min, act_max;
} tinyfuse_dense_five_outputs;

/* Steps of a loop iteration; the first iteration has the remainder. With its surroundings, a loop of this length is a
   kilobyte of code. */
#define TINYFUSE_FIVE_OUTPUTS_STEPS 11

#if TINYFUSE_DSP

/* In the loop: r0 columns, r1 groups; r2 to r5 and lr weights, r7 inputs, r6 their X, r8 to r12 sums. On the stack: out,
   columns, multiplier, rounding, where groups of five end, bytes of those of four, where the loop is entered, and the
   word with the shift.

   Columns are words of four inputs; the last one of an iteration has its X after it, as a word. No register is left for
   the end of the columns. It is marked by a sign bit in the last X, which no other X has. The initial sums compensate
   for the product of that bit. The loop is entered in its middle, where as many steps are left of an iteration as the
   first one has. */
#define TINYFUSE_FIVE_OUTPUTS_OUTPUT(sum, weights)         \
    "smlsdx " sum ", " weights ", r6, " sum "\n\t"  \
    "sxtb16 " weights ", " weights "\n\t"           \
    "smlsdx " sum ", r7, " weights ", " sum "\n\t"
#define TINYFUSE_FIVE_OUTPUTS_OUTPUTS_4                                        \
    TINYFUSE_FIVE_OUTPUTS_OUTPUT("r8", "r2") TINYFUSE_FIVE_OUTPUTS_OUTPUT("r9", "r3") \
    TINYFUSE_FIVE_OUTPUTS_OUTPUT("r10", "r4") TINYFUSE_FIVE_OUTPUTS_OUTPUT("r11", "r5")
#define TINYFUSE_FIVE_OUTPUTS_OUTPUTS_5 TINYFUSE_FIVE_OUTPUTS_OUTPUTS_4 TINYFUSE_FIVE_OUTPUTS_OUTPUT("r12", "lr")
/* loads in a row; the last one moves r1 */
#define TINYFUSE_FIVE_OUTPUTS_LOADS_4 "ldr.n r3, [r1, #4]\n\tldr.n r4, [r1, #8]\n\tldr.n r5, [r1, #12]\n\tldr.w r2, [r1], #16\n\t"
#define TINYFUSE_FIVE_OUTPUTS_LOADS_5  \
    "ldr.n r3, [r1, #4]\n\tldr.n r4, [r1, #8]\n\tldr.n r5, [r1, #12]\n\tldr.w lr, [r1, #16]\n\tldr.w r2, [r1], #20\n\t"
#define TINYFUSE_FIVE_OUTPUTS_LOADS(n) "ldr.w r7, [r0], #4\n\t" TINYFUSE_FIVE_OUTPUTS_LOADS_##n
#define TINYFUSE_FIVE_OUTPUTS_ITERATION(n)                                             \
    ".irp last, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1\n\t" TINYFUSE_FIVE_OUTPUTS_LOADS(n)    \
    ".if \\last\n\tldr.w r6, [r0], #4\n\t.else\n\tuxtb16 r6, r7\n\t.endif\n\t"  \
    TINYFUSE_FIVE_OUTPUTS_OUTPUTS_##n ".endr\n\t"
/* Bytes of code of a step, of an iteration, and of a step's loads plus 1, which marks Thumb addresses. */
#define TINYFUSE_FIVE_OUTPUTS_STEP_BYTES_4 "66"
#define TINYFUSE_FIVE_OUTPUTS_BEHIND_4 "11 * 66 + 14 + 1"
#define TINYFUSE_FIVE_OUTPUTS_STEP_BYTES_5 "82"
#define TINYFUSE_FIVE_OUTPUTS_BEHIND_5 "11 * 82 + 18 + 1"
#define TINYFUSE_FIVE_OUTPUTS_SUMS_4 "ldr r9, [r1, #4]\n\tldr r10, [r1, #8]\n\tldr r11, [r1, #12]\n\tldr r8, [r1], #16\n\t"
#define TINYFUSE_FIVE_OUTPUTS_SUMS_5                   \
    "ldr r9, [r1, #4]\n\tldr r10, [r1, #8]\n\t" \
    "ldr r11, [r1, #12]\n\tldr r12, [r1, #16]\n\tldr r8, [r1], #20\n\t"
/* Loads before the loop, and the computation of an output from a sum in r5. r2 multiplier, r3 rounding, r6 shift. */
#define TINYFUSE_FIVE_OUTPUTS_SHARED_SINGLE_ROUNDING "{r4, r6, r7, r10}"
#define TINYFUSE_FIVE_OUTPUTS_SHARED_SIGNED_ROUNDING "{r4, r5, r6, r7, r10}"
#define TINYFUSE_FIVE_OUTPUTS_SHARED_ANY TINYFUSE_FIVE_OUTPUTS_SHARED_SIGNED_ROUNDING
#define TINYFUSE_FIVE_OUTPUTS_LOADS_SINGLE_ROUNDING ""
#define TINYFUSE_FIVE_OUTPUTS_LOADS_SIGNED_ROUNDING "ldr r3, [sp, #12]\n\t"
#define TINYFUSE_FIVE_OUTPUTS_LOADS_ANY "ldr r3, [sp, #12]\n\tldr r6, [sp, #28]\n\t"
#define TINYFUSE_FIVE_OUTPUTS_OF_SINGLE_ROUNDING(sum) "smmul " sum ", " sum ", r2\n\tssat r5, #8, " sum ", asr #9\n\t"
#define TINYFUSE_FIVE_OUTPUTS_OF_SIGNED_ROUNDING(sum)         \
    "bic r7, r3, " sum ", lsr #29\n\t"      \
    "smmla " sum ", " sum ", r2, r7\n\t"    \
    "ssat r5, #8, " sum ", asr #9\n\t"
#define TINYFUSE_FIVE_OUTPUTS_OF_ANY(sum)          \
    "sub r7, r3, " sum ", lsr #31\n\t"      \
    "smmla " sum ", " sum ", r2, r7\n\t"    \
    "asr.w " sum ", " sum ", r6\n\t"        \
    "ssat r5, #8, " sum "\n\t"
#define TINYFUSE_FIVE_OUTPUTS_PUT_4(of) ".irp sum, r8, r9, r10, r11\n\t" of("\\sum") "strb r5, [r4], #1\n\t.endr\n\t"
#define TINYFUSE_FIVE_OUTPUTS_PUT_5(of) ".irp sum, r8, r9, r10, r11, r12\n\t" of("\\sum") "strb r5, [r4], #1\n\t.endr\n\t"
/* Computes into r9 where the loop is entered, after the loads of the first iteration's first step; r8 has that
   iteration's steps. */
#define TINYFUSE_FIVE_OUTPUTS_ENTRY(n, iteration)                         \
    "adr.w r9, " iteration "f + " TINYFUSE_FIVE_OUTPUTS_BEHIND_##n "\n\t" \
    "mov r12, #" TINYFUSE_FIVE_OUTPUTS_STEP_BYTES_##n "\n\t"              \
    "mls r9, r8, r12, r9\n\t"
/* Begins a group and enters the loop. */
#define TINYFUSE_FIVE_OUTPUTS_GROUP(n) \
    "ldr r0, [sp, #4]\n\t" TINYFUSE_FIVE_OUTPUTS_SUMS_##n TINYFUSE_FIVE_OUTPUTS_LOADS(n) "ldr.w pc, [sp, #24]\n\t"
/* Computes groups of n outputs; there is at least one. */
#define TINYFUSE_FIVE_OUTPUTS_LOOP(n, form, iteration)                         \
    TINYFUSE_FIVE_OUTPUTS_GROUP(n)                                             \
    ".p2align 2\n\t" iteration ":\n\t" TINYFUSE_FIVE_OUTPUTS_ITERATION(n)      \
    "cmp r6, #0\n\t"                                                    \
    "bpl.w " iteration "b\n\t"                                          \
    "ldr r2, [sp, #8]\n\t"                                              \
    "ldr r4, [sp]\n\t"                                                  \
    "ldr r5, [sp, #16]\n\t" TINYFUSE_FIVE_OUTPUTS_LOADS_##form                 \
    "cmp r1, r5\n\t" TINYFUSE_FIVE_OUTPUTS_PUT_##n(TINYFUSE_FIVE_OUTPUTS_OF_##form)   \
    "str r4, [sp]\n\t"                                                  \
    "beq.n 9f\n\t" TINYFUSE_FIVE_OUTPUTS_GROUP(n)                              \
    "9:\n\t"
/* Makes some words of columns, with all loads together. */
#define TINYFUSE_FIVE_OUTPUTS_COLUMNS(words)                               \
    ".irp word, " words "\n\tldr \\word, [r0], #4\n\t.endr\n\t"     \
    ".irp word, " words "\n\teor \\word, #0x00800080\n\t.endr\n\t"  \
    ".irp word, " words "\n\tstr \\word, [r3], #4\n\t.endr\n\t"
/* Makes the columns at r3 of the inputs from r0 to r7, by turns of 3 + 4 + 4 words; the last word, followed by its X,
   is in r9. r8 has the words of the first iteration. */
#define TINYFUSE_FIVE_OUTPUTS_ALL_COLUMNS                          \
    "lsrs r8, #1\n\t"                                       \
    "bcc 1f\n\t" TINYFUSE_FIVE_OUTPUTS_COLUMNS("r9")               \
    "1:\n\t"                                                \
    "lsrs r8, #1\n\t"                                       \
    "bcc 2f\n\t" TINYFUSE_FIVE_OUTPUTS_COLUMNS("r10, r9")          \
    "2:\n\t"                                                \
    "lsrs r8, #1\n\t"                                       \
    "bcs 5f\n\t"                                            \
    "beq 6f\n\t"                                            \
    "b 4f\n\t"                                              \
    "3:\n\t" TINYFUSE_FIVE_OUTPUTS_COLUMNS("r11, r10, r9")         \
    "4:\n\t" TINYFUSE_FIVE_OUTPUTS_COLUMNS("r12, r11, r10, r9")    \
    "5:\n\t" TINYFUSE_FIVE_OUTPUTS_COLUMNS("r12, r11, r10, r9")    \
    "6:\n\t"                                                \
    "uxtb16 r9, r9\n\t"                                     \
    "str r9, [r3], #4\n\t"                                  \
    "cmp r0, r7\n\t"                                        \
    "bne 3b\n\t"                                            \
    "orr r9, #0x80000000\n\t"                               \
    "str r9, [r3, #-4]\n\t"
#define TINYFUSE_FIVE_OUTPUTS_ASM(form)                                                    \
    {                                                                               \
        register const int8_t *r0 __asm("r0") = in;                                 \
        register const int32_t *r1 __asm("r1") = groups;                            \
        register int8_t *r2 __asm("r2") = out;                                      \
        register int8_t *r3 __asm("r3") = columns;                                  \
        __asm volatile("push {r4-r11, lr}\n\t"                                      \
                       "ldm r1!, " TINYFUSE_FIVE_OUTPUTS_SHARED_##form "\n\t"              \
                       "ubfx r8, r10, #8, #4\n\t"                                   \
                       "add r6, r1\n\t" TINYFUSE_FIVE_OUTPUTS_ENTRY(5, "10")               \
                       "push {r2, r3, r4, r5, r6, r7, r9, r10}\n\t"                 \
                       "add r7, r0, r10, lsr #12\n\t" TINYFUSE_FIVE_OUTPUTS_ALL_COLUMNS    \
                       "cmp r1, r6\n\t"                                             \
                       "beq.w 9f\n\t" TINYFUSE_FIVE_OUTPUTS_LOOP(5, form, "10")            \
                       "ldr r6, [sp, #20]\n\t"                                      \
                       "ldr r8, [sp, #28]\n\t"                                      \
                       "cmp r6, #0\n\t"                                             \
                       "beq.w 9f\n\t"                                               \
                       "ubfx r8, r8, #8, #4\n\t"                                    \
                       "add r6, r1\n\t" TINYFUSE_FIVE_OUTPUTS_ENTRY(4, "11")               \
                       "str r6, [sp, #16]\n\t"                                      \
                       "str r9, [sp, #24]\n\t"                                      \
                       TINYFUSE_FIVE_OUTPUTS_LOOP(4, form, "11")                           \
                       "add sp, #32\n\t"                                            \
                       "pop {r4-r11, lr}\n\t"                                       \
                       : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3)                     \
                       :                                                            \
                       : "r12", "cc", "memory");                                    \
    }

#else

/* Returns `sum` plus the products of four weights in lanes with halves of inputs and their X. */
TINYFUSE_INLINE int32_t tinyfuse_five_outputs_products(int32_t sum, int32_t lanes, const int16_t *inputs,
                                                       const int16_t *x)
{
    uint32_t total = (uint32_t)sum;
    int8_t low[4];
    int16_t half[2];
    memcpy(low, &lanes, sizeof low);
    memcpy(half, &lanes, sizeof half);
    total += (uint32_t)(inputs[0] * low[2]) - (uint32_t)(inputs[1] * low[0]);
    return (int32_t)(total + (uint32_t)(half[0] * x[1]) - (uint32_t)(half[1] * x[0]));
}

/* The output of a sum. */
TINYFUSE_INLINE int8_t tinyfuse_five_outputs_output(int32_t sum, int32_t multiplier, int32_t rounding, int32_t shift,
                                                    int form)
{
    const int32_t high = (int32_t)(((int64_t)sum * multiplier) >> 32);
    const int32_t bent = form == TINYFUSE_FIVE_OUTPUTS_SIGNED_ROUNDING ? rounding & ~(int32_t)((uint32_t)sum >> 29)
                                                     : rounding - (int32_t)((uint32_t)sum >> 31);
    return (int8_t)tinyfuse_clamp(
        form == TINYFUSE_FIVE_OUTPUTS_SINGLE_ROUNDING ? high >> shift : (high + bent) >> shift, -128, 127);
}

/* Makes the columns of `steps` times four inputs, `first` of them in the first iteration. */
TINYFUSE_INLINE void tinyfuse_five_outputs_columns(const int8_t *in, int32_t steps, int32_t first, int8_t *columns)
{
    int32_t k, left = first;
    for (k = 0; k < steps; ++k) {
        columns[0] = (int8_t)(in[0] ^ -128);
        columns[1] = in[1];
        columns[2] = (int8_t)(in[2] ^ -128);
        columns[3] = in[3];
        in += 4;
        columns += 4;
        if (--left == 0) {
            columns[0] = columns[-4];
            columns[1] = 0;
            columns[2] = columns[-2];
            columns[3] = (int8_t)(k + 1 < steps ? 0 : -128);
            columns += 4;
            left = TINYFUSE_FIVE_OUTPUTS_STEPS;
        }
    }
}

#endif

#if !TINYFUSE_DSP

/* Computes a batch; `form` is a constant. */
TINYFUSE_INLINE void tinyfuse_five_outputs_run(const int8_t *in, const int32_t *groups, int8_t *out, int8_t *columns,
                                               int form)
{
    const int32_t multiplier = *groups++, rounding = form == TINYFUSE_FIVE_OUTPUTS_SINGLE_ROUNDING ? 0 : *groups++;
    const int32_t *const quads = groups + 3 + groups[0] / 4, *const end = quads + groups[1] / 4;
    const int32_t steps = groups[2] >> 14, first = groups[2] >> 8 & 15, shift = groups[2] & 255;
    tinyfuse_five_outputs_columns(in, steps, first, columns);
    groups += 3;
    while (groups < end) {
        const int32_t n = groups < quads ? 5 : 4;
        int32_t i, k;
        for (i = 0; i < n; ++i) {
            const int8_t *column = columns;
            int32_t sum = groups[i], left = first;
            for (k = 0; k < steps; ++k) {
                int16_t inputs[2], x[2];
                memcpy(inputs, column, sizeof inputs);
                column += 4;
                if (--left == 0) {
                    memcpy(x, column, sizeof x);
                    column += 4;
                    left = TINYFUSE_FIVE_OUTPUTS_STEPS;
                } else {
                    x[0] = (int16_t)(inputs[0] & 255);
                    x[1] = (int16_t)(inputs[1] & 255);
                }
                sum = tinyfuse_five_outputs_products(sum, groups[n * (1 + k) + i], inputs, x);
            }
            *out++ = tinyfuse_five_outputs_output(sum, multiplier, rounding, shift, form);
        }
        groups += n * (1 + steps);
    }
}

#endif

/* Each form's assembly is in a function of its own: together they are beyond the reach of -O0's literals. */
#if TINYFUSE_DSP
#define TINYFUSE_FIVE_OUTPUTS_BODY(form) TINYFUSE_FIVE_OUTPUTS_ASM(form)
#else
#define TINYFUSE_FIVE_OUTPUTS_BODY(form) \
    tinyfuse_five_outputs_run(in, groups, out, columns, TINYFUSE_FIVE_OUTPUTS_##form);
#endif

TINYFUSE_SHARED void tinyfuse_five_outputs_single_rounding(const int8_t *in, const int32_t *groups, int8_t *out,
                                                           int8_t *columns)
{
    TINYFUSE_FIVE_OUTPUTS_BODY(SINGLE_ROUNDING)
}

TINYFUSE_SHARED void tinyfuse_five_outputs_signed_rounding(const int8_t *in, const int32_t *groups, int8_t *out,
                                                           int8_t *columns)
{
    TINYFUSE_FIVE_OUTPUTS_BODY(SIGNED_ROUNDING)
}

TINYFUSE_SHARED void tinyfuse_five_outputs_any(const int8_t *in, const int32_t *groups, int8_t *out, int8_t *columns)
{
    TINYFUSE_FIVE_OUTPUTS_BODY(ANY)
}

/* Computes a layer, in [batches][in_c] to out [batches][out_c], by `groups` of all outputs. scratch, aligned to 4:
   columns, in_c bytes and 4 for each iteration. out may overlap batches of in that were read already, the one that is
   computed included. */
TINYFUSE_INLINE void tinyfuse_dense_five_outputs_s8(const tinyfuse_dense_five_outputs *p, const int8_t *in, int8_t *out,
                                                    const int32_t *groups, void *scratch)
{
    int32_t b;
    for (b = 0; b < p->batches; ++b) {
        const int8_t *const from = in + b * p->in_c;
        int8_t *const to = out + b * p->out_c;
        if (p->form == TINYFUSE_FIVE_OUTPUTS_SINGLE_ROUNDING) {
            tinyfuse_five_outputs_single_rounding(from, groups, to, (int8_t *)scratch);
        } else if (p->form == TINYFUSE_FIVE_OUTPUTS_SIGNED_ROUNDING) {
            tinyfuse_five_outputs_signed_rounding(from, groups, to, (int8_t *)scratch);
        } else {
            tinyfuse_five_outputs_any(from, groups, to, (int8_t *)scratch);
        }
    }
    tinyfuse_clamp_outputs(out, p->batches * p->out_c, p->act_min, p->act_max);
}

#endif
