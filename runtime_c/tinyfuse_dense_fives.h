/* Fully connected layers of int8 by five outputs, for cores with the DSP extension where cycles count: an input is loaded
   once for five weights, and all loads of a step follow one another, which takes a cycle less each. One multiplier serves
   all outputs. What a group of outputs takes comes in one stream.

   Weights are two to a 16-bit lane, as elsewhere (tinyfuse_matmul.h), but with signs such that columns are the inputs
   themselves: of four inputs x0 to x3 the halves 256 * x1 + X0 and 256 * x3 + X2, with X = x + 128, whose low bytes are the X.
   Of weights w0 to w3 the lanes are 256 * w2 - w3, the lower one, and w1 - 256 * w0, their low bytes -w3 and w1. SMLSDX
   multiplies halves crosswise and subtracts the second product. Of columns and low bytes, then of lanes and X:

       (256 * x1 + X0) * w1 - (256 * x3 + X2) * -w3
       + (256 * w2 - w3) * X2 - (w1 - 256 * w0) * X0  =  256 * (w0 * X0 + w1 * x1 + w2 * X2 + w3 * x3) */
#ifndef TINYFUSE_DENSE_FIVES_H
#define TINYFUSE_DENSE_FIVES_H

#include "tinyfuse_matmul.h"

/* Groups of five outputs, then of four. in_c is a multiple of TINYFUSE_FIVES_INPUTS.
   first_four   where in the groups those of four begin
   words        all that the groups have
   shift        0: on a step line of TINYFUSE_FIVES_SHIFT, with the zero point in the sums
                else on a bent one of this shift (tinyfuse_requantize.h), which is higher by 1 where sums aren't negative;
                `rounding` is the zero point and this 1 */
typedef struct {
    int32_t batches, in_c, out_c, first_four, words, multiplier, rounding, shift, act_min, act_max;
} tinyfuse_dense_fives;

/* A step line here has two bits less than elsewhere: multipliers may be up to 1/4. */
#define TINYFUSE_FIVES_SHIFT 9

/* Inputs of a turn of the loop, and bytes of its columns: eight words, then the X of the first one once more. */
#define TINYFUSE_FIVES_INPUTS 32
#define TINYFUSE_FIVES_TURN_BYTES 36

/* The groups of a batch; assembly knows the offsets. A group of n outputs is n int32, what their sums begin with; for each
   four inputs [n][4] weights in lanes. */
typedef struct {
    const int8_t *columns;
    int32_t multiplier; /* 4 */
    int8_t *out;
    const int32_t *first_four; /* 12 */
    int32_t rounding;
    int32_t shift; /* 20 */
    const int32_t *groups;
    const int32_t *end; /* 28 */
    int32_t in_c;
} tinyfuse_fives_groups;

#if TINYFUSE_DSP

typedef char tinyfuse_check_fives[offsetof(tinyfuse_fives_groups, end) == 28 ? 1 : -1];

/* In the loop: r0 columns, r1 groups; r2 to r5 and lr weights, r7 inputs, r6 their X, r8 to r12 sums. On the stack what the
   tinyfuse_fives_groups has up to the shift, then the end.

   A turn is eight steps of four inputs, the first of them last, so that its loads move both addresses. No register is left
   for where the columns end: the X that were loaded last have a sign there, and only there. The product of that sign is
   part of what sums begin with. */
#define TINYFUSE_FIVES_OUTPUT(sum, weights)              \
    "smlsdx " sum ", " weights ", r6, " sum "\n\t"       \
    "sxtb16 " weights ", " weights "\n\t"                \
    "smlsdx " sum ", r7, " weights ", " sum "\n\t"
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
    "ldr r7, [r0, #4 * \\step]\n\t"                                     \
    TINYFUSE_FIVES_LOADS_##n("4 * " #n " * \\step")                     \
    "ldr r2, [r1, #4 * " #n " * \\step]\n\t"                            \
    "uxtb16 r6, r7\n\t"                                                 \
    TINYFUSE_FIVES_OUTPUTS_##n                                          \
    ".endr\n\t"                                                         \
    "ldr r6, [r0, #32]\n\t"                                             \
    TINYFUSE_FIVES_LOADS_##n("0")                                       \
    "ldr r7, [r0], #36\n\t"                                             \
    "ldr r2, [r1], #8 * 4 * " #n "\n\t" TINYFUSE_FIVES_OUTPUTS_##n
/* r2 multiplier, r3 rounding, r4 out, r5 end, r6 shift */
#define TINYFUSE_FIVES_LOADS_LINE "ldr r2, [sp, #4]\n\tldr r4, [sp, #8]\n\tldr r5, [sp, #12]\n\t"
#define TINYFUSE_FIVES_LOADS_BENT TINYFUSE_FIVES_LOADS_LINE "ldr r3, [sp, #16]\n\tldr r6, [sp, #20]\n\t"
#define TINYFUSE_FIVES_LINE(sum) "smmul " sum ", " sum ", r2\n\tssat " sum ", #8, " sum ", asr #9\n\t"
#define TINYFUSE_FIVES_BENT(sum)                       \
    "sub r7, r3, " sum ", lsr #31\n\t"                 \
    "smmla " sum ", " sum ", r2, r7\n\t"               \
    "asr " sum ", r6\n\t"                              \
    "ssat " sum ", #8, " sum "\n\t"
#define TINYFUSE_FIVES_EACH_4(of) of("r8") of("r9") of("r10") of("r11")
#define TINYFUSE_FIVES_EACH_5(of) TINYFUSE_FIVES_EACH_4(of) of("r12")
#define TINYFUSE_FIVES_PUT_4 \
    "strb r9, [r4, #1]\n\tstrb r10, [r4, #2]\n\tstrb r11, [r4, #3]\n\tstrb r8, [r4], #4\n\t"
#define TINYFUSE_FIVES_PUT_5                                       \
    "strb r9, [r4, #1]\n\tstrb r10, [r4, #2]\n\t"                  \
    "strb r11, [r4, #3]\n\tstrb r12, [r4, #4]\n\tstrb r8, [r4], #5\n\t"
#define TINYFUSE_FIVES_SUMS_4 "ldr r9, [r1, #4]\n\tldr r10, [r1, #8]\n\tldr r11, [r1, #12]\n\tldr r8, [r1], #16\n\t"
#define TINYFUSE_FIVES_SUMS_5                                      \
    "ldr r9, [r1, #4]\n\tldr r10, [r1, #8]\n\t"                    \
    "ldr r11, [r1, #12]\n\tldr r12, [r1, #16]\n\tldr r8, [r1], #20\n\t"
#define TINYFUSE_FIVES_LOOP(n, form, group, turn)                                             \
    group ":\n\t"                                                                             \
    "ldr r0, [sp]\n\t" TINYFUSE_FIVES_SUMS_##n turn ":\n\t" TINYFUSE_FIVES_TURN(n)            \
    "cmp r6, #0\n\t"                                                                          \
    "bpl " turn "b\n\t" TINYFUSE_FIVES_LOADS_##form                                           \
    TINYFUSE_FIVES_EACH_##n(TINYFUSE_FIVES_##form) TINYFUSE_FIVES_PUT_##n                     \
    "str r4, [sp, #8]\n\t"                                                                    \
    "cmp r1, r5\n\t"                                                                          \
    "bne " group "b\n\t"
#define TINYFUSE_FIVES_ASM(form, p)                                                           \
    {                                                                                         \
        TINYFUSE_ARGUMENT(const tinyfuse_fives_groups *, arguments, p);                       \
        __asm volatile(TINYFUSE_ASM_BEGIN                                                     \
                       "ldm r0, {r2, r3, r4, r5, r6, r7}\n\t"                                 \
                       "ldrd r1, r8, [r0, #24]\n\t"                                           \
                       "push {r2, r3, r4, r5, r6, r7, r8}\n\t"                                \
                       "cmp r1, r5\n\t"                                                       \
                       "beq 3f\n\t" TINYFUSE_FIVES_LOOP(5, form, "1", "2")                    \
                       "3:\n\t"                                                               \
                       "ldr r5, [sp, #24]\n\t"                                                \
                       "str r5, [sp, #12]\n\t"                                                \
                       "cmp r1, r5\n\t"                                                       \
                       "beq 6f\n\t" TINYFUSE_FIVES_LOOP(4, form, "4", "5")                    \
                       "6:\n\t"                                                               \
                       "add sp, #28\n\t" TINYFUSE_ASM_END                                     \
                       :                                                                      \
                       : "r"(arguments)                                                       \
                       : TINYFUSE_ASM_CLOBBERS);                                              \
    }

#else

/* `sum` plus the products of four weights in lanes with halves of inputs and their X. */
TINYFUSE_INLINE int32_t tinyfuse_fives_products(int32_t sum, int32_t lanes, const int16_t *inputs, const int16_t *x)
{
    uint32_t total = (uint32_t)sum;
    int8_t low[4];
    int16_t half[2];
    memcpy(low, &lanes, sizeof low);
    memcpy(half, &lanes, sizeof half);
    total += (uint32_t)(inputs[0] * low[2]) - (uint32_t)(inputs[1] * low[0]);
    return (int32_t)(total + (uint32_t)(half[0] * x[1]) - (uint32_t)(half[1] * x[0]));
}

#endif

/* All groups, of which there are some; `bent`, by which line they go, is a constant. */
TINYFUSE_INLINE void tinyfuse_fives_run(const tinyfuse_fives_groups *p, int bent)
{
#if TINYFUSE_DSP
    if (bent) {
        TINYFUSE_FIVES_ASM(BENT, p)
    } else {
        TINYFUSE_FIVES_ASM(LINE, p)
    }
#else
    const int32_t *group = p->groups;
    int8_t *out = p->out;
    while (group != p->end) {
        const int32_t n = group < p->first_four ? 5 : 4;
        int32_t i, k;
        for (i = 0; i < n; ++i) {
            int32_t sum = group[i], high;
            for (k = 0; k < p->in_c / 4; ++k) {
                const int8_t *const turn = p->columns + k / 8 * TINYFUSE_FIVES_TURN_BYTES;
                int16_t inputs[2], x[2];
                memcpy(inputs, turn + k % 8 * 4, sizeof inputs);
                memcpy(x, turn + 32, sizeof x);
                if (k % 8 != 0) {
                    x[0] = (int16_t)(inputs[0] & 255);
                    x[1] = (int16_t)(inputs[1] & 255);
                }
                sum = tinyfuse_fives_products(sum, group[n * (1 + k) + i], inputs, x);
            }
            high = (int32_t)(((int64_t)sum * p->multiplier) >> 32);
            high = bent ? (high + p->rounding - (sum < 0 ? 1 : 0)) >> p->shift : high >> TINYFUSE_FIVES_SHIFT;
            *out++ = (int8_t)tinyfuse_clamp(high, -128, 127);
        }
        group += n * (1 + p->in_c / 4);
    }
#endif
}

TINYFUSE_SHARED void tinyfuse_fives_line(const tinyfuse_fives_groups *p)
{
    tinyfuse_fives_run(p, 0);
}

TINYFUSE_SHARED void tinyfuse_fives_bent(const tinyfuse_fives_groups *p)
{
    tinyfuse_fives_run(p, 1);
}

/* The columns of in_c inputs, of which there are some. */
TINYFUSE_INLINE void tinyfuse_fives_columns(const int8_t *in, int32_t in_c, int8_t *columns)
{
    const int8_t *const end = in + in_c;
#if TINYFUSE_DSP
    uint32_t a, b, c, d;
#define TINYFUSE_FIVES_FOUR_COLUMNS                                                                          \
    "ldr %[b], [%[in], #4]\n\tldr %[c], [%[in], #8]\n\tldr %[d], [%[in], #12]\n\tldr %[a], [%[in]], #16\n\t" \
    "eor %[a], %[a], #0x00800080\n\teor %[b], %[b], #0x00800080\n\t"                                         \
    "eor %[c], %[c], #0x00800080\n\teor %[d], %[d], #0x00800080\n\t"
    __asm volatile("1:\n\t" TINYFUSE_FIVES_FOUR_COLUMNS
                   "str %[b], [%[to], #4]\n\tstr %[c], [%[to], #8]\n\tstr %[d], [%[to], #12]\n\t"
                   "str %[a], [%[to]], #36\n\t"
                   "uxtb16 %[a], %[a]\n\t"
                   "str %[a], [%[to], #-4]\n\t" TINYFUSE_FIVES_FOUR_COLUMNS
                   "str %[a], [%[to], #-20]\n\tstr %[b], [%[to], #-16]\n\t"
                   "str %[c], [%[to], #-12]\n\tstr %[d], [%[to], #-8]\n\t"
                   "cmp %[in], %[end]\n\t"
                   "bne 1b"
                   : [in] "+&r"(in), [to] "+&r"(columns), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d)
                   : [end] "r"(end)
                   : "cc", "memory");
#else
    int32_t i;
    for (; in != end; in += TINYFUSE_FIVES_INPUTS) {
        for (i = 0; i < TINYFUSE_FIVES_INPUTS; ++i) {
            columns[i] = (int8_t)(i % 2 == 0 ? in[i] ^ -128 : in[i]);
        }
        columns[32] = columns[0];
        columns[33] = 0;
        columns[34] = columns[2];
        columns[35] = 0;
        columns += TINYFUSE_FIVES_TURN_BYTES;
    }
#endif
    columns[-1] = -128; /* the sign by which the loop ends */
}

TINYFUSE_SHARED void tinyfuse_dense_by_fives(const tinyfuse_dense_fives *p, const int8_t *in, int8_t *out,
                                             const int32_t *groups, int8_t *columns)
{
    int8_t *const first = out;
    tinyfuse_fives_groups job;
    int32_t b;
    job.columns = columns;
    job.multiplier = p->multiplier;
    job.first_four = groups + p->first_four;
    job.rounding = p->rounding;
    job.shift = p->shift;
    job.groups = groups;
    job.end = groups + p->words;
    job.in_c = p->in_c;
    for (b = p->batches; b > 0; --b) {
        tinyfuse_fives_columns(in, p->in_c, columns);
        job.out = out;
        if (p->shift == 0) {
            tinyfuse_fives_line(&job);
        } else {
            tinyfuse_fives_bent(&job);
        }
        in += p->in_c;
        out += p->out_c;
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(first, p->batches * p->out_c, p->act_min, p->act_max);
    }
}

/* in [batches][in_c] to out [batches][out_c], by `groups` of all outputs. scratch, aligned to 4: columns, 9 / 8 of in_c
   bytes. out may lie over batches of in that are read already, the one that is computed included. */
TINYFUSE_INLINE void tinyfuse_dense_fives_s8(const tinyfuse_dense_fives *p, const int8_t *in, int8_t *out,
                                             const int32_t *groups, void *scratch)
{
    tinyfuse_dense_by_fives(p, in, out, groups, (int8_t *)scratch);
}

#endif
