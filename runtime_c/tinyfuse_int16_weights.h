/* The inner product of convolutions with weights of int16 in flash, for cores with the DSP extension. A block is two
   pixels times two channels: beside four sums, registers hold four inputs and four weights of each step, two loads
   for eight SMLAD. The weights and constants of a pair of channels come in one stream, in the order in which they are
   needed. With a single rounding sums are in 256ths; in the bounded form they are not.

   pairs    [out_c / 2] of: int32 biases of the channels o, o + 1, o, o + 1, the initial sums of two pixels;
            [depth / 4][2][2][2] int16, the weights (times 256) of inputs 0 2 of both channels, then of inputs 1 3; int32
            multipliers of both (half to even: negated scales, if not both have a single rounding), in the bounded form
            shifts of both, and rounding << shift of both. Then of the last of an
            odd count: bias, [depth / 4][2][2] int16, multiplier (, shift, rounding << shift).
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

/* How sums become outputs: with a single rounding, in the bounded form, or by tinyfuse_requantize_single_or_half_even.
   With ..._BESIDE a block loads each of its inputs and weights beside a product, else all at once. */
enum {
    TINYFUSE_PAIRS_SINGLE_ROUNDING,
    TINYFUSE_PAIRS_SINGLE_ROUNDING_BESIDE,
    TINYFUSE_PAIRS_BOUNDED,
    TINYFUSE_PAIRS_HALF_EVEN
};
/* Selects the function for a form among those whose names begin with `name`. */
#define TINYFUSE_OF_PAIRS(form, name)                                                              \
    ((form) == TINYFUSE_PAIRS_SINGLE_ROUNDING          ? name##_single_rounding                    \
     : (form) == TINYFUSE_PAIRS_SINGLE_ROUNDING_BESIDE ? name##_beside                             \
     : (form) == TINYFUSE_PAIRS_HALF_EVEN              ? name##_half_even                          \
                                                       : name##_bounded)

#if TINYFUSE_DSP

typedef char tinyfuse_check_int16_weights[offsetof(tinyfuse_int16_weights, pairs) == 28 ? 1 : -1];

/* In the loop: r0 columns, r1 pairs; r2 to r5 sums, those of the first pixel are r2 and r3; r6, r7, r12, lr inputs;
   r8 to r11 weights. On the stack: the fields of tinyfuse_int16_weights up to the end of the columns, `out` less one,
   then the loop's entry: it is entered in its middle, so that only whole iterations remain. Its steps have no
   instruction of 16 bits.

   A step is two halves, of the products of an input of each pixel with two weights. A core that issues one
   instruction a cycle loads all registers of a step at once. One that issues a load beside a product (`BESIDE`),
   but several loads alone, loads each register of a half beside a product of the other half; the last step is behind
   the loop, so that nothing is loaded from behind the columns. */
#define TINYFUSE_INT16_WEIGHTS_HALF(first, second, w, v, load_0, load_1, load_2, load_3) \
    "smlad r2, " first ", " w ", r2\n\t" load_0                                          \
    "smlad r3, " first ", " v ", r3\n\t" load_1                                          \
    "smlad r4, " second ", " w ", r4\n\t" load_2                                         \
    "smlad r5, " second ", " v ", r5\n\t" load_3
#define TINYFUSE_INT16_WEIGHTS_EVEN(...) TINYFUSE_INT16_WEIGHTS_HALF("r6", "r12", "r8", "r9", __VA_ARGS__)
#define TINYFUSE_INT16_WEIGHTS_ODD(...) TINYFUSE_INT16_WEIGHTS_HALF("r7", "lr", "r10", "r11", __VA_ARGS__)
#define TINYFUSE_INT16_WEIGHTS_LOAD_ODD(half)                                        \
    half("ldr.w r7, [r0, #4]\n\t", "ldr.w r10, [r1, #8]\n\t", "ldr.w r11, [r1, #12]\n\t", "ldr.w lr, [r0, #12]\n\t")
#define TINYFUSE_INT16_WEIGHTS_LOAD_EVEN(half)                                       \
    half("ldr.w r8, [r1, #16]!\n\t", "ldr.w r6, [r0, #16]!\n\t", "ldr.w r9, [r1, #4]\n\t", "ldr.w r12, [r0, #8]\n\t")
#define TINYFUSE_INT16_WEIGHTS_STEP_2             \
    "ldm r1!, {r8, r9, r10, r11}\n\t"             \
    "ldm r0!, {r6, r7, r12, lr}\n\t"              \
    TINYFUSE_INT16_WEIGHTS_EVEN("", "", "", "") TINYFUSE_INT16_WEIGHTS_ODD("", "", "", "")
#define TINYFUSE_INT16_WEIGHTS_STEP_2_BESIDE \
    TINYFUSE_INT16_WEIGHTS_LOAD_ODD(TINYFUSE_INT16_WEIGHTS_EVEN) TINYFUSE_INT16_WEIGHTS_LOAD_EVEN(TINYFUSE_INT16_WEIGHTS_ODD)
#define TINYFUSE_INT16_WEIGHTS_HALF_1(input, w, v, load_0, load_1) \
    "smlad r2, " input ", " w ", r2\n\t" load_0                    \
    "smlad r3, " input ", " v ", r3\n\t" load_1
#define TINYFUSE_INT16_WEIGHTS_EVEN_1 \
    TINYFUSE_INT16_WEIGHTS_HALF_1("r12", "r8", "r9", "ldr.w lr, [r0, #4]\n\t", "ldr.w r10, [r1, #8]\n\t")
#define TINYFUSE_INT16_WEIGHTS_STEP_1_BESIDE                                                                \
    TINYFUSE_INT16_WEIGHTS_EVEN_1 "ldr.w r11, [r1, #12]\n\tldr.w r12, [r0, #8]!\n\t"                        \
    TINYFUSE_INT16_WEIGHTS_HALF_1("lr", "r10", "r11", "ldr.w r8, [r1, #16]!\n\t", "ldr.w r9, [r1, #4]\n\t")
#define TINYFUSE_INT16_WEIGHTS_STEP_1 "ldm r1!, {r8, r9, r10, r11}\n\t" TINYFUSE_PIXEL("r2", "r3")
/* bytes of a step; before the loop: the steps of the first, incomplete iteration in r8; before a pair's steps */
#define TINYFUSE_INT16_WEIGHTS_BYTES_1 "24"
#define TINYFUSE_INT16_WEIGHTS_BYTES_1_BESIDE "40"
#define TINYFUSE_INT16_WEIGHTS_BYTES_2 "40"
#define TINYFUSE_INT16_WEIGHTS_BYTES_2_BESIDE "64"
#define TINYFUSE_INT16_WEIGHTS_SKIP_1 "sub r8, #1\n\tand r8, #7\n\tadd r8, #1\n\t"
#define TINYFUSE_INT16_WEIGHTS_SKIP_2 TINYFUSE_INT16_WEIGHTS_SKIP_1
#define TINYFUSE_INT16_WEIGHTS_SKIP_1_BESIDE "sub r7, #8\n\tsub r8, #1\n\tand r8, #7\n\t"
#define TINYFUSE_INT16_WEIGHTS_SKIP_2_BESIDE "sub r7, #16\n\tsub r8, #1\n\tand r8, #7\n\t"
#define TINYFUSE_INT16_WEIGHTS_BEGIN_1
#define TINYFUSE_INT16_WEIGHTS_BEGIN_2
#define TINYFUSE_INT16_WEIGHTS_BEGIN_1_BESIDE "ldr r8, [r1]\n\tldr r9, [r1, #4]\n\tldr r12, [r0]\n\t"
#define TINYFUSE_INT16_WEIGHTS_BEGIN_2_BESIDE \
    "ldr r8, [r1]\n\tldr r9, [r1, #4]\n\tldr r6, [r0]\n\tldr r12, [r0, #8]\n\t"
/* behind the loop: multipliers to r10 and r11 and what the outputs read */
#define TINYFUSE_INT16_WEIGHTS_END "ldm sp, {r6, r7, r8, r9}\n\tldrd r10, r11, [r1], #8\n\t"
#define TINYFUSE_INT16_WEIGHTS_END_2_BESIDE                                                                          \
    TINYFUSE_INT16_WEIGHTS_LOAD_ODD(TINYFUSE_INT16_WEIGHTS_EVEN)                                                     \
    TINYFUSE_INT16_WEIGHTS_ODD("ldr r6, [sp]\n\t", "ldr r8, [sp, #8]\n\t", "ldr r9, [sp, #12]\n\t", "")              \
    TINYFUSE_INT16_WEIGHTS_MULTIPLIERS_BESIDE
#define TINYFUSE_INT16_WEIGHTS_MULTIPLIERS_BESIDE \
    "ldr r10, [r1, #16]\n\tldr r7, [sp, #4]\n\tldr r11, [r1, #20]\n\tadd r1, #24\n\t"
#define TINYFUSE_INT16_WEIGHTS_END_1_BESIDE                                                                        \
    TINYFUSE_INT16_WEIGHTS_EVEN_1 "ldr r11, [r1, #12]\n\tldr r6, [sp]\n\t"                                         \
    TINYFUSE_INT16_WEIGHTS_HALF_1("lr", "r10", "r11", "ldr r8, [sp, #8]\n\t", "ldr r9, [sp, #12]\n\t")             \
    TINYFUSE_INT16_WEIGHTS_MULTIPLIERS_BESIDE
/* r6 rounding, r7 out, r8 out_c */
#define TINYFUSE_INT16_WEIGHTS_SCALE(sum, multiplier) "smmla " sum ", " sum ", " multiplier ", r6\n\t"
#define TINYFUSE_INT16_WEIGHTS_OUTPUTS_1                                                       \
    TINYFUSE_INT16_WEIGHTS_SCALE("r2", "r10") TINYFUSE_INT16_WEIGHTS_SCALE("r3", "r11")        \
    TINYFUSE_SINGLE_ROUNDING_SATURATE("r2") TINYFUSE_SINGLE_ROUNDING_SATURATE("r3")
/* Outputs of two pixels are saturated beside multiplications and stores, for cores that issue two instructions at once. */
#define TINYFUSE_INT16_WEIGHTS_OUTPUTS_2                                                       \
    TINYFUSE_INT16_WEIGHTS_SCALE("r2", "r10") TINYFUSE_INT16_WEIGHTS_SCALE("r4", "r10")        \
    TINYFUSE_INT16_WEIGHTS_SCALE("r3", "r11")
#define TINYFUSE_INT16_WEIGHTS_PUT_1 "strb r2, [r7, #1]!\n\tstrb r3, [r7, #1]!\n\t"
#define TINYFUSE_INT16_WEIGHTS_PUT_2                                                           \
    TINYFUSE_SINGLE_ROUNDING_SATURATE("r2") TINYFUSE_INT16_WEIGHTS_SCALE("r5", "r11")          \
    TINYFUSE_SINGLE_ROUNDING_SATURATE("r4") "strb r2, [r7, #1]!\n\t"                           \
    TINYFUSE_SINGLE_ROUNDING_SATURATE("r3") "strb r4, [r7, r8]\n\t"                            \
    TINYFUSE_SINGLE_ROUNDING_SATURATE("r5") "strb r3, [r7, #1]!\n\tstrb r5, [r7, r8]\n\t"
/* The bounded form differs behind the loop: multipliers to r6 and r7, shifts to r8 and r9, rounding << shift to r10 and
   r11. */
#define TINYFUSE_INT16_WEIGHTS_END_BOUNDED "ldm r1!, {r6, r7, r8, r9, r10, r11}\n\t"
#define TINYFUSE_INT16_WEIGHTS_ROUND_TWICE(sum, multiplier, shift, rounding) \
    "add r0, " sum ", " rounding "\n\t"                                     \
    "add r0, r0, " sum ", asr #31\n\t"                                      \
    "smmlar " sum ", " sum ", " multiplier ", r0\n\t"                       \
    "asr.w " sum ", " shift "\n\t"                                          \
    "ssat " sum ", #8, " sum ", asr #1\n\t"
#define TINYFUSE_INT16_WEIGHTS_OUTPUTS_1_BOUNDED                                                                   \
    TINYFUSE_INT16_WEIGHTS_ROUND_TWICE("r2", "r6", "r8", "r10")                                                    \
    TINYFUSE_INT16_WEIGHTS_ROUND_TWICE("r3", "r7", "r9", "r11") "ldm sp, {r6, r7, r8, r9}\n\t"
#define TINYFUSE_INT16_WEIGHTS_OUTPUTS_2_BOUNDED                                                                   \
    TINYFUSE_INT16_WEIGHTS_ROUND_TWICE("r4", "r6", "r8", "r10")                                                    \
    TINYFUSE_INT16_WEIGHTS_ROUND_TWICE("r5", "r7", "r9", "r11") TINYFUSE_INT16_WEIGHTS_OUTPUTS_1_BOUNDED
#define TINYFUSE_INT16_WEIGHTS_PUT_2_BOUNDED \
    "strb r2, [r7, #1]!\n\tstrb r4, [r7, r8]\n\tstrb r3, [r7, #1]!\n\tstrb r5, [r7, r8]\n\t"
/* Half to even differs in the outputs: r6 becomes the output zero point. */
#define TINYFUSE_INT16_WEIGHTS_BY_LINE_1 TINYFUSE_INT16_WEIGHTS_OUTPUTS_1
#define TINYFUSE_INT16_WEIGHTS_BY_LINE_2                                                       \
    TINYFUSE_INT16_WEIGHTS_OUTPUTS_2 TINYFUSE_INT16_WEIGHTS_SCALE("r5", "r11")                 \
    TINYFUSE_SINGLE_ROUNDING_SATURATE("r2") TINYFUSE_SINGLE_ROUNDING_SATURATE("r4")            \
    TINYFUSE_SINGLE_ROUNDING_SATURATE("r3") TINYFUSE_SINGLE_ROUNDING_SATURATE("r5")
#define TINYFUSE_INT16_WEIGHTS_STORED(a, b, first, second) \
    "vmov " first ", " second ", " a ", " b "\n\t"         \
    "add " first ", r6\n\tssat " first ", #8, " first "\n\t" \
    "add " second ", r6\n\tssat " second ", #8, " second "\n\t"
#define TINYFUSE_INT16_WEIGHTS_SINGLE_OR_HALF_EVEN(n)                                                \
    "cmp r10, #0\n\t"                                                                                \
    "bmi 4f\n\t" TINYFUSE_INT16_WEIGHTS_BY_LINE_##n                                                 \
    "b 5f\n\t"                                                                                      \
    "4:\n\t" TINYFUSE_ZERO_POINT_OF("r6")                                                           \
    "vmov s6, s7, r10, r11\n\t" TINYFUSE_HALF_EVEN_##n(TINYFUSE_HALF_EVEN_NEGATED)                  \
    TINYFUSE_HALF_EVEN_##n(TINYFUSE_INT16_WEIGHTS_STORED)                                            \
    "5:\n\t"
#if TINYFUSE_FPU
#define TINYFUSE_INT16_WEIGHTS_HALF_EVEN_ASM(n, put, p)                                            \
    TINYFUSE_INT16_WEIGHTS_ASM(n, TINYFUSE_INT16_WEIGHTS_END, TINYFUSE_INT16_WEIGHTS_SINGLE_OR_HALF_EVEN(n), put, p)
#else
#define TINYFUSE_INT16_WEIGHTS_HALF_EVEN_ASM(n, put, p) (void)(p); /* never reached */
#endif
/* `n`: number of pixels, and whether loads stand beside products or all at once. `end`, `outputs` and `put`: code after
   the loop. */
#define TINYFUSE_INT16_WEIGHTS_EIGHT(step) step step step step step step step step
#define TINYFUSE_INT16_WEIGHTS_ASM(n, end, outputs, put, p)                                   \
    {                                                                                         \
        TINYFUSE_ARGUMENT(const tinyfuse_int16_weights *, arguments, p);                      \
        __asm volatile(TINYFUSE_ASM_BEGIN                                                     \
                       "ldm r0, {r2, r3, r4, r5, r6, r7, r8}\n\t"                             \
                       "ldr r1, [r0, #28]\n\t"                                                \
                       "sub r3, #1\n\t"                                                       \
                       "adr.w r9, 3f\n\t" TINYFUSE_INT16_WEIGHTS_SKIP_##n                     \
                       "mov r10, #" TINYFUSE_INT16_WEIGHTS_BYTES_##n "\n\t"                   \
                       "mls r8, r8, r10, r9\n\t"                                              \
                       "orr r8, #1\n\t"                                                       \
                       "push {r2, r3, r4, r5, r6, r7, r8}\n\t"                                \
                       "1:\n\t"                                                               \
                       "ldm r1!, {r2, r3, r4, r5}\n\t"                                        \
                       "ldr r0, [sp, #16]\n\t" TINYFUSE_INT16_WEIGHTS_BEGIN_##n               \
                       "ldr pc, [sp, #24]\n\t"                                                \
                       ".p2align 2\n\t" /* ADR counts from words */                           \
                       "2:\n\t"                                                               \
                       TINYFUSE_INT16_WEIGHTS_EIGHT(TINYFUSE_INT16_WEIGHTS_STEP_##n)          \
                       "3:\n\t"                                                               \
                       "ldr r7, [sp, #20]\n\t"                                                \
                       "cmp r0, r7\n\t"                                                       \
                       "bne 2b\n\t"                                                           \
                       end outputs                                                            \
                       "cmp r1, r9\n\t" /* nothing below sets flags */                        \
                       put                                                                    \
                       "str r7, [sp, #4]\n\t"                                                 \
                       "bne 1b\n\t"                                                           \
                       "add sp, #28\n\t" TINYFUSE_ASM_END                                     \
                       :                                                                      \
                       : "r"(arguments)                                                       \
                       : TINYFUSE_CLOBBERS_FPU TINYFUSE_ASM_CLOBBERS);                        \
    }

#endif

/* Returns the output of a sum whose multiplier is scale[0]; those of the bounded form lie `words` apart. */
TINYFUSE_INLINE int8_t tinyfuse_int16_weights_output(const int32_t *scale, int32_t words, int32_t sum, int32_t rounding,
                                                     int form)
{
    return (int8_t)(form == TINYFUSE_PAIRS_BOUNDED ? tinyfuse_requantize_bounded(sum, scale[0], scale[words], rounding)
                    : form == TINYFUSE_PAIRS_HALF_EVEN
                                           ? tinyfuse_requantize_single_or_half_even(sum, scale[0], rounding)
                                                       : tinyfuse_requantize_single_rounding(sum, scale[0], rounding));
}

/* Returns the words of a channel's multiplier, and what else scales it. */
TINYFUSE_INLINE int32_t tinyfuse_int16_weights_scale_words(int form)
{
    return form == TINYFUSE_PAIRS_BOUNDED ? 3 : 1;
}

/* Computes all pairs of channels, at least one, of `pixels` pixels; `pixels` and `form` are constants. */
TINYFUSE_INLINE void tinyfuse_int16_weights_run(const tinyfuse_int16_weights *p, int pixels, int form)
{
#if TINYFUSE_DSP
    if (form == TINYFUSE_PAIRS_SINGLE_ROUNDING && pixels == 2) {
        TINYFUSE_INT16_WEIGHTS_ASM(2, TINYFUSE_INT16_WEIGHTS_END, TINYFUSE_INT16_WEIGHTS_OUTPUTS_2,
                                   TINYFUSE_INT16_WEIGHTS_PUT_2, p)
    } else if (form == TINYFUSE_PAIRS_SINGLE_ROUNDING) {
        TINYFUSE_INT16_WEIGHTS_ASM(1, TINYFUSE_INT16_WEIGHTS_END, TINYFUSE_INT16_WEIGHTS_OUTPUTS_1,
                                   TINYFUSE_INT16_WEIGHTS_PUT_1, p)
    } else if (form == TINYFUSE_PAIRS_SINGLE_ROUNDING_BESIDE && pixels == 2) {
        TINYFUSE_INT16_WEIGHTS_ASM(2_BESIDE, TINYFUSE_INT16_WEIGHTS_END_2_BESIDE, TINYFUSE_INT16_WEIGHTS_OUTPUTS_2,
                                   TINYFUSE_INT16_WEIGHTS_PUT_2, p)
    } else if (form == TINYFUSE_PAIRS_SINGLE_ROUNDING_BESIDE) {
        TINYFUSE_INT16_WEIGHTS_ASM(1_BESIDE, TINYFUSE_INT16_WEIGHTS_END_1_BESIDE, TINYFUSE_INT16_WEIGHTS_OUTPUTS_1,
                                   TINYFUSE_INT16_WEIGHTS_PUT_1, p)
    } else if (form == TINYFUSE_PAIRS_HALF_EVEN && pixels == 2) {
        TINYFUSE_INT16_WEIGHTS_HALF_EVEN_ASM(2, TINYFUSE_INT16_WEIGHTS_PUT_2_BOUNDED, p)
    } else if (form == TINYFUSE_PAIRS_HALF_EVEN) {
        TINYFUSE_INT16_WEIGHTS_HALF_EVEN_ASM(1, TINYFUSE_INT16_WEIGHTS_PUT_1, p)
    } else if (pixels == 2) {
        TINYFUSE_INT16_WEIGHTS_ASM(2, TINYFUSE_INT16_WEIGHTS_END_BOUNDED, TINYFUSE_INT16_WEIGHTS_OUTPUTS_2_BOUNDED,
                                   TINYFUSE_INT16_WEIGHTS_PUT_2_BOUNDED, p)
    } else {
        TINYFUSE_INT16_WEIGHTS_ASM(1, TINYFUSE_INT16_WEIGHTS_END_BOUNDED, TINYFUSE_INT16_WEIGHTS_OUTPUTS_1_BOUNDED,
                                   TINYFUSE_INT16_WEIGHTS_PUT_1, p)
    }
#else
    const int32_t *pair = p->pairs;
    int8_t *out = p->out;
    for (; pair != p->pairs_end; pair += 4 + 2 * tinyfuse_int16_weights_scale_words(form) + 4 * p->steps) {
        const int32_t *const scales = pair + 4 + 4 * p->steps;
        int32_t i, j, k;
        for (i = 0; i < pixels; ++i) {
            for (j = 0; j < 2; ++j) {
                int32_t sum = pair[j];
                for (k = 0; k < p->steps; ++k) {
                    sum = tinyfuse_products_w16(sum, p->columns + 8 * (pixels * k + i), pair + 4 + 4 * k + j, 8);
                }
                out[i * p->out_c + j] = tinyfuse_int16_weights_output(scales + j, 2, sum, p->rounding, form);
            }
        }
        out += 2;
    }
#endif
}

#define TINYFUSE_INT16_WEIGHTS_FUNCTIONS(form, end)                                               \
    TINYFUSE_IN_FORM(tinyfuse_int16_weights_1##end, form, tinyfuse_int16_weights_run, (const tinyfuse_int16_weights *p), p, 1) \
    TINYFUSE_IN_FORM(tinyfuse_int16_weights_2##end, form, tinyfuse_int16_weights_run, (const tinyfuse_int16_weights *p), p, 2)
TINYFUSE_INT16_WEIGHTS_FUNCTIONS(TINYFUSE_PAIRS_SINGLE_ROUNDING, )
TINYFUSE_INT16_WEIGHTS_FUNCTIONS(TINYFUSE_PAIRS_SINGLE_ROUNDING_BESIDE, _beside)
TINYFUSE_INT16_WEIGHTS_FUNCTIONS(TINYFUSE_PAIRS_BOUNDED, _bounded)
TINYFUSE_INT16_WEIGHTS_FUNCTIONS(TINYFUSE_PAIRS_HALF_EVEN, _half_even)

/* Computes the last of an odd count of channels. */
TINYFUSE_SHARED void tinyfuse_int16_weights_odd(const tinyfuse_int16_weights *p, int32_t pixels, int form)
{
    const int32_t *const w = p->pairs_end + 1;
    int32_t i;
    for (i = 0; i < pixels; ++i) {
        int32_t k, sum = p->pairs_end[0];
        for (k = 0; k < p->steps; ++k) {
            sum = tinyfuse_products_w16(sum, p->columns + 8 * (pixels * k + i), w + 2 * k, 4);
        }
        p->out[i * p->out_c + p->out_c - 1] =
            tinyfuse_int16_weights_output(w + 2 * p->steps, 1, sum, p->rounding, form);
    }
}

/* Returns a layer of out_c channels and sums of `depth` products. */
TINYFUSE_INLINE tinyfuse_int16_weights tinyfuse_int16_weights_of(int32_t out_c, int32_t out_zero_point,
                                                                 const int32_t *pairs, const int8_t *columns,
                                                                 int32_t depth, int form)
{
    tinyfuse_int16_weights s;
    s.rounding = form == TINYFUSE_PAIRS_BOUNDED ? tinyfuse_matmul_rounding(out_zero_point, TINYFUSE_WIDE)
                                                : tinyfuse_single_rounding_rounding(out_zero_point);
    s.out = NULL;
    s.out_c = out_c;
    s.pairs_end = pairs + out_c / 2 * (4 + 2 * tinyfuse_int16_weights_scale_words(form) + depth);
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

/* Computes one block: all channels of its pixels to `out`; `form` is a constant. */
TINYFUSE_INLINE void tinyfuse_int16_weights_pixels(tinyfuse_int16_weights *s, int8_t *out, int32_t pixels, int form)
{
    s->out = out;
    if (s->out_c == 1) {
    } else if (form == TINYFUSE_PAIRS_SINGLE_ROUNDING) {
        (pixels == 2 ? tinyfuse_int16_weights_2 : tinyfuse_int16_weights_1)(s);
    } else if (form == TINYFUSE_PAIRS_SINGLE_ROUNDING_BESIDE) {
        (pixels == 2 ? tinyfuse_int16_weights_2_beside : tinyfuse_int16_weights_1_beside)(s);
    } else if (form == TINYFUSE_PAIRS_HALF_EVEN) {
        (pixels == 2 ? tinyfuse_int16_weights_2_half_even : tinyfuse_int16_weights_1_half_even)(s);
    } else {
        (pixels == 2 ? tinyfuse_int16_weights_2_bounded : tinyfuse_int16_weights_1_bounded)(s);
    }
    if ((s->out_c & 1) != 0) {
        tinyfuse_int16_weights_odd(s, pixels, form);
    }
}

#endif
