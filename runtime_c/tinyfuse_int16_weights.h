/* The inner product of convolutions with weights of int16 in flash and single-rounding requantization, for cores with
   the DSP extension. A block is two pixels times two channels: beside four sums, registers hold four inputs and four
   weights of each step, two loads for eight SMLAD. The weights and constants of a pair of channels come in one
   stream, in the order in which they are needed.

   pairs    [out_c / 2] of: int32 biases of the channels o, o + 1, o, o + 1, the initial sums of two pixels;
            [depth / 4][2][2][2] int16, 256 times the weights of inputs 0 2 of both channels, then of inputs 1 3; int32
            multipliers of both. Then of the last of an odd count: bias, [depth / 4][2][2] int16, multiplier.
   columns  [depth / 4][pixels][4] int16, aligned to 4, each four inputs in the order 0 2 1 3. */
#ifndef TINYFUSE_INT16_WEIGHTS_H
#define TINYFUSE_INT16_WEIGHTS_H

#include "tinyfuse_matmul.h"

/* A block of one or two pixels; assembly knows the offsets. All but `out` serves every block of a layer. */
typedef struct {
    int32_t rounding; /* of single rounding */
    int8_t *out;      /* [pixels][out_c] */
    int32_t out_c;
    const int32_t *pairs_end;
    const int8_t *columns; /* 16 */
    const int8_t *columns_end;
    int32_t steps; /* depth / 4 */
    const int32_t *pairs; /* 28 */
} tinyfuse_int16_weights;

#if TINYFUSE_DSP

typedef char tinyfuse_check_int16_weights[offsetof(tinyfuse_int16_weights, pairs) == 28 ? 1 : -1];

/* In the loop: r0 columns, r1 pairs; r2 to r5 sums, those of the first pixel are r2 and r3; r6, r7, r12, lr inputs;
   r8 to r11 weights. On the stack: the fields of tinyfuse_int16_weights up to the end of the columns, `out` less one,
   then the loop's entry: it is entered in its middle, so that only whole iterations remain. Its steps have no
   instruction of 16 bits. */
#define TINYFUSE_INT16_WEIGHTS_STEP_2                                                 \
    "ldm r1!, {r8, r9, r10, r11}\n\t"                                                 \
    "ldm r0!, {r6, r7, r12, lr}\n\t"                                                  \
    TINYFUSE_PRODUCTS("r6", "r7", "r2", "r3") TINYFUSE_PRODUCTS("r12", "lr", "r4", "r5")
#define TINYFUSE_INT16_WEIGHTS_BYTES_2 "40"
#define TINYFUSE_INT16_WEIGHTS_STEP_1 "ldm r1!, {r8, r9, r10, r11}\n\t" TINYFUSE_PIXEL("r2", "r3")
#define TINYFUSE_INT16_WEIGHTS_BYTES_1 "24"
/* r6 rounding, r7 out, r8 out_c */
#define TINYFUSE_INT16_WEIGHTS_OUTPUT(sum, multiplier) \
    "smmla " sum ", " sum ", " multiplier ", r6\n\t" TINYFUSE_SINGLE_ROUNDING_SATURATE(sum)
#define TINYFUSE_INT16_WEIGHTS_OUTPUTS_1 TINYFUSE_INT16_WEIGHTS_OUTPUT("r2", "r10") TINYFUSE_INT16_WEIGHTS_OUTPUT("r3", "r11")
#define TINYFUSE_INT16_WEIGHTS_OUTPUTS_2 \
    TINYFUSE_INT16_WEIGHTS_OUTPUTS_1 TINYFUSE_INT16_WEIGHTS_OUTPUT("r4", "r10") TINYFUSE_INT16_WEIGHTS_OUTPUT("r5", "r11")
#define TINYFUSE_INT16_WEIGHTS_PUT_1 "strb r2, [r7, #1]!\n\tstrb r3, [r7, #1]!\n\t"
#define TINYFUSE_INT16_WEIGHTS_PUT_2 \
    "strb r2, [r7, #1]!\n\tstrb r4, [r7, r8]\n\tstrb r3, [r7, #1]!\n\tstrb r5, [r7, r8]\n\t"
#define TINYFUSE_INT16_WEIGHTS_EIGHT(step) step step step step step step step step
#define TINYFUSE_INT16_WEIGHTS_ASM(n, p)                                                      \
    {                                                                                         \
        TINYFUSE_ARGUMENT(const tinyfuse_int16_weights *, arguments, p);                      \
        __asm volatile(TINYFUSE_ASM_BEGIN                                                     \
                       "ldm r0, {r2, r3, r4, r5, r6, r7, r8}\n\t"                             \
                       "ldr r1, [r0, #28]\n\t"                                                \
                       "sub r3, #1\n\t"                                                       \
                       "adr.w r9, 3f\n\t"                                                     \
                       "sub r8, #1\n\t"                                                       \
                       "and r8, #7\n\t"                                                       \
                       "add r8, #1\n\t"                                                       \
                       "mov r10, #" TINYFUSE_INT16_WEIGHTS_BYTES_##n "\n\t"                   \
                       "mls r8, r8, r10, r9\n\t"                                              \
                       "orr r8, #1\n\t"                                                       \
                       "push {r2, r3, r4, r5, r6, r7, r8}\n\t"                                \
                       "1:\n\t"                                                               \
                       "ldm r1!, {r2, r3, r4, r5}\n\t"                                        \
                       "ldr r0, [sp, #16]\n\t"                                                \
                       "ldr pc, [sp, #24]\n\t"                                                \
                       ".p2align 2\n\t" /* ADR counts from words */                           \
                       "2:\n\t"                                                               \
                       TINYFUSE_INT16_WEIGHTS_EIGHT(TINYFUSE_INT16_WEIGHTS_STEP_##n)          \
                       "3:\n\t"                                                               \
                       "ldr r12, [sp, #20]\n\t"                                               \
                       "cmp r0, r12\n\t"                                                      \
                       "bne 2b\n\t"                                                           \
                       "ldm sp, {r6, r7, r8, r9}\n\t"                                         \
                       "ldrd r10, r11, [r1], #8\n\t" TINYFUSE_INT16_WEIGHTS_OUTPUTS_##n       \
                       "cmp r1, r9\n\t" /* nothing below sets flags */                        \
                       TINYFUSE_INT16_WEIGHTS_PUT_##n                                         \
                       "str r7, [sp, #4]\n\t"                                                 \
                       "bne 1b\n\t"                                                           \
                       "add sp, #28\n\t" TINYFUSE_ASM_END                                     \
                       :                                                                      \
                       : "r"(arguments)                                                       \
                       : TINYFUSE_ASM_CLOBBERS);                                              \
    }

#endif

/* Computes all pairs of channels, at least one, of `pixels` pixels, a constant. */
TINYFUSE_INLINE void tinyfuse_int16_weights_run(const tinyfuse_int16_weights *p, int pixels)
{
#if TINYFUSE_DSP
    if (pixels == 2) {
        TINYFUSE_INT16_WEIGHTS_ASM(2, p)
    } else {
        TINYFUSE_INT16_WEIGHTS_ASM(1, p)
    }
#else
    const int32_t *pair = p->pairs;
    int8_t *out = p->out;
    for (; pair != p->pairs_end; pair += 6 + 4 * p->steps) {
        const int32_t *const multipliers = pair + 4 + 4 * p->steps;
        int32_t i, j, k;
        for (i = 0; i < pixels; ++i) {
            for (j = 0; j < 2; ++j) {
                int32_t sum = pair[j];
                for (k = 0; k < p->steps; ++k) {
                    sum = tinyfuse_products_w16(sum, p->columns + 8 * (pixels * k + i), pair + 4 + 4 * k + j, 8);
                }
                out[i * p->out_c + j] = (int8_t)tinyfuse_requantize_single_rounding(sum, multipliers[j], p->rounding);
            }
        }
        out += 2;
    }
#endif
}

TINYFUSE_SHARED void tinyfuse_int16_weights_1(const tinyfuse_int16_weights *p)
{
    tinyfuse_int16_weights_run(p, 1);
}

TINYFUSE_SHARED void tinyfuse_int16_weights_2(const tinyfuse_int16_weights *p)
{
    tinyfuse_int16_weights_run(p, 2);
}

/* Computes the last of an odd count of channels. */
TINYFUSE_SHARED void tinyfuse_int16_weights_odd(const tinyfuse_int16_weights *p, int32_t pixels)
{
    const int32_t *const w = p->pairs_end + 1;
    int32_t i;
    for (i = 0; i < pixels; ++i) {
        int32_t k, sum = p->pairs_end[0];
        for (k = 0; k < p->steps; ++k) {
            sum = tinyfuse_products_w16(sum, p->columns + 8 * (pixels * k + i), w + 2 * k, 4);
        }
        p->out[i * p->out_c + p->out_c - 1] =
            (int8_t)tinyfuse_requantize_single_rounding(sum, w[2 * p->steps], p->rounding);
    }
}

/* Returns a layer of out_c channels and sums of `depth` products. */
TINYFUSE_INLINE tinyfuse_int16_weights tinyfuse_int16_weights_of(int32_t out_c, int32_t out_zero_point,
                                                                 const int32_t *pairs, const int8_t *columns,
                                                                 int32_t depth)
{
    tinyfuse_int16_weights s;
    s.rounding = tinyfuse_single_rounding_rounding(out_zero_point);
    s.out = NULL;
    s.out_c = out_c;
    s.pairs_end = pairs + out_c / 2 * (6 + depth);
    s.columns = columns;
    s.columns_end = columns;
    s.steps = depth / 4;
    s.pairs = pairs;
    return s;
}

/* Sets up blocks of one or two pixels. */
TINYFUSE_INLINE void tinyfuse_int16_weights_begin(tinyfuse_int16_weights *s, int32_t pixels)
{
    s->columns_end = s->columns + 8 * pixels * s->steps;
}

/* Computes one block: all channels of its pixels to `out`. */
TINYFUSE_INLINE void tinyfuse_int16_weights_pixels(tinyfuse_int16_weights *s, int8_t *out, int32_t pixels)
{
    s->out = out;
    if (s->out_c == 1) {
    } else if (pixels == 2) {
        tinyfuse_int16_weights_2(s);
    } else {
        tinyfuse_int16_weights_1(s);
    }
    if ((s->out_c & 1) != 0) {
        tinyfuse_int16_weights_odd(s, pixels);
    }
}

#endif
