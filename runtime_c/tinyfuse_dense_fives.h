/* Fully connected layers of int8 by five outputs, for cores with the DSP extension where cycles count: an input is loaded
   once for five weights, and all loads of a step follow one another, which takes a cycle less each. Weights are two to a
   lane (tinyfuse_matmul.h); one multiplier serves all outputs. What a group of outputs takes comes in one stream. */
#ifndef TINYFUSE_DENSE_FIVES_H
#define TINYFUSE_DENSE_FIVES_H

#include "tinyfuse_matmul.h"

/* `fives` groups of five outputs, then `fours` of four: out_c. in_c is a multiple of TINYFUSE_FIVES_INPUTS.
   shift     0: on a step line, whose rounding and multiplier follow
             else of the bounded form of sums in 256ths (tinyfuse_requantize.h), and rounding is shifted by it */
typedef struct {
    int32_t batches, in_c, fives, fours, multiplier, rounding, shift, act_min, act_max;
} tinyfuse_dense_fives;

/* Inputs of a turn of the loop. */
#define TINYFUSE_FIVES_INPUTS 32

/* Some groups of a batch; assembly knows the offsets. A group of n outputs is n int32, what their sums begin with; for each
   four inputs [n][4] weights in lanes. */
typedef struct {
    const int8_t *columns;
    int32_t multiplier; /* 4 */
    int32_t rounding;
    int8_t *out; /* 12 */
    const int32_t *end;
    int32_t shift;
    const int32_t *groups; /* 24 */
    int32_t steps;         /* fours of inputs */
} tinyfuse_fives_groups;

#if TINYFUSE_DSP

typedef char tinyfuse_check_fives[offsetof(tinyfuse_fives_groups, groups) == 24 ? 1 : -1];

/* In the loop: r0 columns, r1 groups; r2 to r5 and lr weights, r6, r7 inputs, r8 to r12 sums. On the stack what the
   tinyfuse_fives_groups has up to the shift.

   A turn is eight steps of four inputs, the first of them last, so that its loads move both addresses. No register is left
   for where the columns end: the word of inputs that was loaded last has its sign there, and only there. The product of
   that sign is part of what sums begin with. */
#define TINYFUSE_FIVES_OUTPUT(sum, weights)              \
    "smlad " sum ", r7, " weights ", " sum "\n\t"        \
    "sxtb16 " weights ", " weights "\n\t"                \
    "smlad " sum ", r6, " weights ", " sum "\n\t"
#define TINYFUSE_FIVES_OUTPUTS_4                                              \
    TINYFUSE_FIVES_OUTPUT("r8", "r2") TINYFUSE_FIVES_OUTPUT("r9", "r3")       \
    TINYFUSE_FIVES_OUTPUT("r10", "r4") TINYFUSE_FIVES_OUTPUT("r11", "r5")
#define TINYFUSE_FIVES_OUTPUTS_5 TINYFUSE_FIVES_OUTPUTS_4 TINYFUSE_FIVES_OUTPUT("r12", "lr")
#define TINYFUSE_FIVES_LOADS_4(at)            \
    "ldr r3, [r1, #" at " + 4]\n\t"           \
    "ldr r4, [r1, #" at " + 8]\n\t"           \
    "ldr r5, [r1, #" at " + 12]\n\t"
#define TINYFUSE_FIVES_LOADS_5(at) TINYFUSE_FIVES_LOADS_4(at) "ldr lr, [r1, #" at " + 16]\n\t"
#define TINYFUSE_FIVES_TURN(n)                                          \
    ".irp step, 1, 2, 3, 4, 5, 6, 7\n\t"                                \
    TINYFUSE_FIVES_LOADS_##n("4 * " #n " * \\step")                     \
    "ldr r2, [r1, #4 * " #n " * \\step]\n\t"                            \
    "ldr r6, [r0, #8 * \\step + 4]\n\t"                                 \
    "ldr r7, [r0, #8 * \\step]\n\t"                                     \
    TINYFUSE_FIVES_OUTPUTS_##n                                          \
    ".endr\n\t"                                                         \
    TINYFUSE_FIVES_LOADS_##n("0")                                       \
    "ldr r2, [r1], #8 * 4 * " #n "\n\t"                                 \
    "ldr r6, [r0, #4]\n\t"                                              \
    "ldr r7, [r0], #8 * 8\n\t" TINYFUSE_FIVES_OUTPUTS_##n
/* r0 columns, r2 multiplier, r3 rounding, r4 out, r5 end, r6 shift */
#define TINYFUSE_FIVES_LINE(sum) "smmla " sum ", " sum ", r2, r3\n\t" TINYFUSE_STEP_LINE_SATURATE(sum)
#define TINYFUSE_FIVES_BOUNDED(sum)                    \
    "asr " sum ", #7\n\t"                              \
    "sub r7, r3, " sum ", lsr #31\n\t"                 \
    "smmlar " sum ", " sum ", r2, r7\n\t"              \
    "asr " sum ", r6\n\t"                              \
    "ssat " sum ", #8, " sum ", asr #1\n\t"
#define TINYFUSE_FIVES_EACH_4(of) of("r8") of("r9") of("r10") of("r11")
#define TINYFUSE_FIVES_EACH_5(of) TINYFUSE_FIVES_EACH_4(of) of("r12")
#define TINYFUSE_FIVES_PUT_4 \
    "strb r9, [r4, #1]\n\tstrb r10, [r4, #2]\n\tstrb r11, [r4, #3]\n\tstrb r8, [r4], #4\n\t"
#define TINYFUSE_FIVES_PUT_5                                       \
    "strb r9, [r4, #1]\n\tstrb r10, [r4, #2]\n\t"                  \
    "strb r11, [r4, #3]\n\tstrb r12, [r4, #4]\n\tstrb r8, [r4], #5\n\t"
#define TINYFUSE_FIVES_SUMS_4 "ldm r1!, {r8, r9, r10, r11}\n\t"
#define TINYFUSE_FIVES_SUMS_5 "ldm r1!, {r8, r9, r10, r11, r12}\n\t"
#define TINYFUSE_FIVES_ASM(n, p)                                                              \
    {                                                                                         \
        TINYFUSE_ARGUMENT(const tinyfuse_fives_groups *, arguments, p);                       \
        __asm volatile(TINYFUSE_ASM_BEGIN                                                     \
                       "ldm r0, {r2, r3, r4, r5, r6, r7}\n\t"                                 \
                       "ldr r1, [r0, #24]\n\t"                                                \
                       "mov r0, r2\n\t"                                                       \
                       "push {r2, r3, r4, r5, r6, r7}\n\t"                                    \
                       "1:\n\t" TINYFUSE_FIVES_SUMS_##n                                       \
                       "2:\n\t" TINYFUSE_FIVES_TURN(n)                                        \
                       "cmp r7, #0\n\t"                                                       \
                       "bpl 2b\n\t"                                                           \
                       "ldm sp, {r0, r2, r3, r4, r5, r6}\n\t"                                 \
                       "cbnz r6, 4f\n\t" TINYFUSE_FIVES_EACH_##n(TINYFUSE_FIVES_LINE)         \
                       "3:\n\t" TINYFUSE_FIVES_PUT_##n                                        \
                       "str r4, [sp, #12]\n\t"                                                \
                       "cmp r1, r5\n\t"                                                       \
                       "bne 1b\n\t"                                                           \
                       "b 5f\n\t"                                                             \
                       "4:\n\t" TINYFUSE_FIVES_EACH_##n(TINYFUSE_FIVES_BOUNDED)               \
                       "b 3b\n\t"                                                             \
                       "5:\n\t"                                                               \
                       "add sp, #24\n\t" TINYFUSE_ASM_END                                     \
                       :                                                                      \
                       : "r"(arguments)                                                       \
                       : TINYFUSE_ASM_CLOBBERS);                                              \
    }

#endif

/* All groups of n outputs, a constant; there are some. */
TINYFUSE_INLINE void tinyfuse_fives_run(const tinyfuse_fives_groups *p, int n)
{
#if TINYFUSE_DSP
    if (n == 5) {
        TINYFUSE_FIVES_ASM(5, p)
    } else {
        TINYFUSE_FIVES_ASM(4, p)
    }
#else
    const int32_t *group = p->groups;
    int8_t *out = p->out;
    for (; group != p->end; group += n * (1 + p->steps)) {
        int32_t i, k;
        for (i = 0; i < n; ++i) {
            int32_t sum = group[i];
            for (k = 0; k < p->steps; ++k) {
                sum = tinyfuse_products(sum, p->columns + 8 * k, 8, (const int8_t *)(group + n * (1 + k) + i), TINYFUSE_LANES);
            }
            *out++ = (int8_t)(p->shift == 0 ? tinyfuse_requantize_step_line(sum, p->multiplier, p->rounding)
                                            : tinyfuse_halve_to_int8(tinyfuse_high_multiply_add(
                                                  p->rounding - (sum < 0 ? 1 : 0), sum >> 7, p->multiplier) >> p->shift));
        }
    }
#endif
}

TINYFUSE_SHARED void tinyfuse_fives_run_5(const tinyfuse_fives_groups *p)
{
    tinyfuse_fives_run(p, 5);
}

TINYFUSE_SHARED void tinyfuse_fives_run_4(const tinyfuse_fives_groups *p)
{
    tinyfuse_fives_run(p, 4);
}

TINYFUSE_SHARED void tinyfuse_dense_by_fives(const tinyfuse_dense_fives *p, const int8_t *in, int8_t *out,
                                             const int32_t *groups, int8_t *columns)
{
    const int32_t out_c = 5 * p->fives + 4 * p->fours, steps = p->in_c / 4;
    const int32_t *const first_four = groups + 5 * p->fives * (1 + steps);
    int8_t *const first = out;
    tinyfuse_fives_groups job;
    int32_t b;
    job.columns = columns;
    job.multiplier = p->multiplier;
    job.rounding = p->rounding;
    job.shift = p->shift;
    job.steps = steps;
    for (b = 0; b < p->batches; ++b) {
        (void)tinyfuse_widen(in, steps, columns, 8, TINYFUSE_LANES);
        /* the sign of the last turn's first word */
        columns[2 * (p->in_c - TINYFUSE_FIVES_INPUTS) + 3] = -128;
        if (p->fives > 0) {
            job.groups = groups;
            job.end = first_four;
            job.out = out;
            tinyfuse_fives_run_5(&job);
        }
        if (p->fours > 0) {
            job.groups = first_four;
            job.end = groups + out_c * (1 + steps);
            job.out = out + 5 * p->fives;
            tinyfuse_fives_run_4(&job);
        }
        in += p->in_c;
        out += out_c;
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(first, p->batches * out_c, p->act_min, p->act_max);
    }
}

/* in [batches][in_c] to out [batches][out_c], by `groups` of all outputs. scratch, aligned to 4: in_c inputs of 2 bytes. out
   may lie over batches of in that are read already, the one that is computed included. */
TINYFUSE_INLINE void tinyfuse_dense_fives_s8(const tinyfuse_dense_fives *p, const int8_t *in, int8_t *out,
                                             const int32_t *groups, void *scratch)
{
    tinyfuse_dense_by_fives(p, in, out, groups, (int8_t *)scratch);
}

#endif
