/* The inner product of convolutions with weights of int4, which stay two to a byte in flash: columns of int16 inputs
   times nibbles that are widened in the loop. A variant of tinyfuse_matmul.h, whose requantization it takes
   (TINYFUSE_WIDE and TINYFUSE_SINGLE_ROUNDING).

   A block computes 1, 2 or 3 output pixels, two output channels at a time. A word has four weights of both
   channels; a nibble at the top of 16 bits is 4096 times its weight, so a shift and a mask make an operand of
   SMLAD of it, and sums are in 4096ths. They must stay below 2^19 ones: the compiler proves it, or keeps bytes.

   columns  [depth / 4][inputs 0 2, inputs 1 3][pixels][2] int16, aligned to 4
   weights  [ceil(out_c / 2)][depth / 4] words, zeros beyond the layer. From the lowest nibble on: input 0 of both
            channels, input 1 of both; in the upper half inputs 2 and 3.
   channels [out_c] tinyfuse_single_rounding or tinyfuse_requant
*/
#ifndef TINYFUSE_MATMUL_S4_H
#define TINYFUSE_MATMUL_S4_H

#include "tinyfuse_matmul.h"

/* Widens 4 * words bytes, words > 0: inputs 0 and 2 to `to`, 1 and 3 `half` bytes on, the next four 2 * half bytes
   on. Returns the next place. */
TINYFUSE_INLINE int8_t *tinyfuse_widen_s4(const int8_t *from, int32_t words, int8_t *to, int32_t half)
{
#if TINYFUSE_DSP
    const int8_t *const end = from + 4 * words;
    uint32_t even, odd;
    __asm volatile("1:\n\t"
                   "ldr %[odd], [%[from]], #4\n\t"
                   "sxtb16 %[even], %[odd]\n\t"
                   "sxtb16 %[odd], %[odd], ror #8\n\t"
                   "str %[even], [%[to]]\n\t"
                   "str %[odd], [%[to], %[half]]\n\t"
                   "add %[to], %[to], %[half], lsl #1\n\t"
                   "cmp %[from], %[end]\n\t"
                   "bne 1b"
                   : [from] "+&r"(from), [to] "+&r"(to), [even] "=&r"(even), [odd] "=&r"(odd)
                   : [half] "r"(half), [end] "r"(end)
                   : "cc", "memory");
#else
    for (; words > 0; --words) {
        const int16_t even[2] = {from[0], from[2]}, odd[2] = {from[1], from[3]};
        memcpy(to, even, sizeof even);
        memcpy(to + half, odd, sizeof odd);
        from += 4;
        to += 2 * half;
    }
#endif
    return to;
}

/* Returns one of four weights of a pair's first or second channel, in the order of the inputs. */
TINYFUSE_INLINE int32_t tinyfuse_nibble(uint32_t word, int32_t channel, int32_t input)
{
    const int32_t at = 16 * (input >> 1) + 8 * (input & 1) + 4 * channel;
    return (int32_t)((word >> at & 15u) ^ 8u) - 8;
}

/* Returns the sum of a channel of a pair, in ones. */
TINYFUSE_INLINE int32_t tinyfuse_sum_s4(const int8_t *columns, const int8_t *weights, int32_t depth, int32_t pixels,
                                        int32_t pixel, int32_t channel)
{
    const int16_t *const x = (const int16_t *)(const void *)columns;
    int32_t k, sum = 0;
    for (k = 0; k < depth; k += 4) {
        const uint32_t word = tinyfuse_load_u32(weights + k);
        const int16_t *const even = x + k * pixels + 2 * pixel, *const odd = even + 2 * pixels;
        /* inputs 2 and 3 are in the upper halves */
        sum += even[0] * tinyfuse_nibble(word, channel, 0) + even[1] * tinyfuse_nibble(word, channel, 2);
        sum += odd[0] * tinyfuse_nibble(word, channel, 1) + odd[1] * tinyfuse_nibble(word, channel, 3);
    }
    return sum;
}

/* Returns one output of a channel, in C. Without the DSP extension it serves all channels, else the last of an odd
   count. */
TINYFUSE_INLINE int8_t tinyfuse_output_s4(const tinyfuse_matmul *p, const int8_t *columns, const int8_t *weights,
                                          int32_t depth, int32_t pixels, int32_t pixel, int32_t c, int form)
{
    const void *const channels = tinyfuse_matmul_channels(p, form);
    const int32_t sum = tinyfuse_sum_s4(columns, weights + (c >> 1) * depth, depth, pixels, pixel, c & 1);
    const int32_t bias = tinyfuse_channel_bias(channels, c, form);
    const int32_t value = form == TINYFUSE_SINGLE_ROUNDING ? (int32_t)(256u * (uint32_t)sum + (uint32_t)bias) : sum + bias;
    return tinyfuse_channel_output(channels, c, value, p->rounding, form);
}

#if TINYFUSE_DSP

/* Computes pairs of channels, as tinyfuse_matmul.h does, whose macros these use. The loop of a pair has
     r0       columns; r1 weights
     r2 to r7 sums: those of the pixels' first channel are r2, r4, r6, of the second r3, r5, r7
     r8       a channel's operand; r10 the word; r11 the mask of the top of 16 bits
     r9, r12, lr  inputs of each pixel; with two pixels r6, r7, r9 and r12, with one r9 and r12 */
#define TINYFUSE_S4_MAC(sum, input) "smlad " sum ", " input ", r8, " sum "\n\t"
#define TINYFUSE_S4_OF(shift) "and r8, r11, r10" shift "\n\t"
#define TINYFUSE_S4_HALF_1(x, first, second)      \
    TINYFUSE_S4_OF(first) TINYFUSE_S4_MAC("r2", x) TINYFUSE_S4_OF(second) TINYFUSE_S4_MAC("r3", x)
#define TINYFUSE_S4_HALF_2(x, y, first, second)                                             \
    TINYFUSE_S4_OF(first) TINYFUSE_S4_MAC("r2", x) TINYFUSE_S4_MAC("r4", y)                 \
    TINYFUSE_S4_OF(second) TINYFUSE_S4_MAC("r3", x) TINYFUSE_S4_MAC("r5", y)
#define TINYFUSE_S4_HALF_3(first, second)                                                               \
    "ldm r0!, {r9, r12, lr}\n\t"                                                                        \
    TINYFUSE_S4_OF(first) TINYFUSE_S4_MAC("r2", "r9") TINYFUSE_S4_MAC("r4", "r12") TINYFUSE_S4_MAC("r6", "lr") \
    TINYFUSE_S4_OF(second) TINYFUSE_S4_MAC("r3", "r9") TINYFUSE_S4_MAC("r5", "r12") TINYFUSE_S4_MAC("r7", "lr")
#define TINYFUSE_S4_STEP_1                                      \
    "ldr r10, [r1], #4\n\tldrd r9, r12, [r0], #8\n\t"           \
    TINYFUSE_S4_HALF_1("r9", ", lsl #12", ", lsl #8") TINYFUSE_S4_HALF_1("r12", ", lsl #4", "")
#define TINYFUSE_S4_STEP_2                                      \
    "ldr r10, [r1], #4\n\tldm r0!, {r6, r7, r9, r12}\n\t"       \
    TINYFUSE_S4_HALF_2("r6", "r7", ", lsl #12", ", lsl #8") TINYFUSE_S4_HALF_2("r9", "r12", ", lsl #4", "")
#define TINYFUSE_S4_STEP_3                                      \
    "ldr r10, [r1], #4\n\t"                                     \
    TINYFUSE_S4_HALF_3(", lsl #12", ", lsl #8") TINYFUSE_S4_HALF_3(", lsl #4", "")
/* Zeros to the sums, which lie on the stack. */
#define TINYFUSE_S4_ZERO_1 "ldrd r2, r3, [sp, #8]\n\t"
#define TINYFUSE_S4_ZERO_2 "add r12, sp, #8\n\tldm r12, {r2, r3, r4, r5}\n\t"
#define TINYFUSE_S4_ZERO_3 "add r12, sp, #8\n\tldm r12, {r2, r3, r4, r5, r6, r7}\n\t"

/* Converts sums in 4096ths for requantization, with the biases in r8 and r10: to 256ths for single rounding, else to
   ones. */
#define TINYFUSE_S4_SCALED_1(by) "add r2, r8, r2, asr " by "\n\tadd r3, r10, r3, asr " by "\n\t"
#define TINYFUSE_S4_SCALED_2(by) \
    TINYFUSE_S4_SCALED_1(by) "add r4, r8, r4, asr " by "\n\tadd r5, r10, r5, asr " by "\n\t"
#define TINYFUSE_S4_SCALED_3(by) \
    TINYFUSE_S4_SCALED_2(by) "add r6, r8, r6, asr " by "\n\tadd r7, r10, r7, asr " by "\n\t"
#define TINYFUSE_S4_BIASES_SINGLE_ROUNDING(n) "ldr r8, [r9, #4]\n\tldr r10, [r9, #12]\n\t" TINYFUSE_S4_SCALED_##n("#4")
#define TINYFUSE_S4_BIASES_WIDE(n) "ldr r8, [r9, #8]\n\tldr r10, [r9, #20]\n\t" TINYFUSE_S4_SCALED_##n("#12")

/* Computes pairs, as TINYFUSE_PAIRS_ASM does. */
#define TINYFUSE_S4_PAIRS_ASM(n, form)                                                       \
    {                                                                                        \
        register tinyfuse_matmul *r0 __asm("r0") = p;                                        \
        register const int8_t *r1 __asm("r1") = weights;                                     \
        register const int8_t *r2 __asm("r2") = columns;                                     \
        register int32_t r3 __asm("r3") = depth;                                             \
        __asm volatile("push {r0, r2-r11, lr}\n\t"                                           \
                       "mov r5, #0\n\tmov r6, #0\n\tmov r7, #0\n\t"                           \
                       "push {r5, r6, r7}\n\t"                                               \
                       "push {r5, r6, r7}\n\t"                                               \
                       "ldr r9, [r0, #4]\n\t" TINYFUSE_END_##n                               \
                       "push {r4, r9}\n\t"                                                   \
                       "b 6f\n\t"                                                            \
                       "5:\n\t"                                                              \
                       "bmi 2f\n\t"                                                          \
                       "b 3f\n\t"                                                            \
                       "6:\n\t"                                                              \
                       "ldrd r0, r9, [sp, #36]\n\t" TINYFUSE_S4_ZERO_##n                     \
                       "mov r11, #0xF000F000\n\t"                                            \
                       "lsls r9, r9, #29\n\t"                                                \
                       "bcs 5b\n\t"                                                          \
                       "bmi 4f\n\t"                                                          \
                       "1:\n\t" TINYFUSE_S4_STEP_##n                                         \
                       "2:\n\t" TINYFUSE_S4_STEP_##n                                         \
                       "3:\n\t" TINYFUSE_S4_STEP_##n                                         \
                       "4:\n\t" TINYFUSE_S4_STEP_##n                                         \
                       "ldr r12, [sp]\n\t"                                                   \
                       "cmp r0, r12\n\t"                                                     \
                       "bne 1b\n\t"                                                          \
                       "ldr r0, [sp, #32]\n\t"                                               \
                       "ldr r9, [r0, #4]\n\t" TINYFUSE_S4_BIASES_##form(n)                   \
                       TINYFUSE_OUTPUT_##form(n)                                             \
                       "cmp r9, r12\n\t" /* nothing below sets flags */                      \
                       TINYFUSE_PUT_##n                                                      \
                       "strd r9, r10, [r0, #4]\n\t"                                          \
                       "bne 6b\n\t"                                                          \
                       "pop {r4, r9}\n\t"                                                    \
                       "str r9, [r0, #4]\n\t"                                                \
                       "add sp, #24\n\t"                                                     \
                       "pop {r0, r2-r11, lr}\n\t"                                            \
                       : "+r"(r1)                                                            \
                       : "r"(r0), "r"(r2), "r"(r3)                                           \
                       : "r12", "cc", "memory");                                             \
    }
#define TINYFUSE_S4_PAIRS(n)                    \
    if (form == TINYFUSE_SINGLE_ROUNDING) {           \
        TINYFUSE_S4_PAIRS_ASM(n, SINGLE_ROUNDING)     \
    } else {                                    \
        TINYFUSE_S4_PAIRS_ASM(n, WIDE)          \
    }

#endif

/* Computes all channels but the last of an odd count, for a constant count of pixels; p->out_c > 1. */
TINYFUSE_INLINE void tinyfuse_pairs_s4(tinyfuse_matmul *p, const int8_t *weights, const int8_t *columns, int32_t depth,
                                       int pixels, int form)
{
#if TINYFUSE_DSP
    if (pixels == 3) {
        TINYFUSE_S4_PAIRS(3)
    } else if (pixels == 2) {
        TINYFUSE_S4_PAIRS(2)
    } else {
        TINYFUSE_S4_PAIRS(1)
    }
#else
    int32_t c, i;
    for (c = 0; c < (p->out_c & ~1); ++c) {
        for (i = 0; i < pixels; ++i) {
            p->out[i * p->out_c + c] = tinyfuse_output_s4(p, columns, weights, depth, pixels, i, c, form);
        }
    }
#endif
}

#define TINYFUSE_MATMUL_S4(name, form)                                                                      \
    TINYFUSE_SHARED void name##_odd(const tinyfuse_matmul *p, const int8_t *weights, const int8_t *columns, \
                                    int32_t depth, int32_t pixels)                                          \
    {                                                                                                       \
        const int32_t last = p->out_c - 1;                                                                  \
        int32_t i;                                                                                          \
        for (i = 0; i < pixels; ++i) {                                                                      \
            p->out[i * p->out_c + last] =                                                                   \
                tinyfuse_output_s4(p, columns, weights, depth, pixels, i, last, form);                      \
        }                                                                                                   \
    }                                                                                                       \
    TINYFUSE_MATMUL_S4_PAIRS(name, 1, form)                                                                 \
    TINYFUSE_MATMUL_S4_PAIRS(name, 2, form)                                                                 \
    TINYFUSE_MATMUL_S4_PAIRS(name, 3, form)
#define TINYFUSE_MATMUL_S4_PAIRS(name, pixels, form)                                                        \
    TINYFUSE_SHARED void name##_##pixels(tinyfuse_matmul *p, const int8_t *weights, const int8_t *columns,  \
                                         int32_t depth)                                                     \
    {                                                                                                       \
        tinyfuse_pairs_s4(p, weights, columns, depth, pixels, form);                                        \
    }
TINYFUSE_MATMUL_S4(tinyfuse_matmul_s4_wide, TINYFUSE_WIDE)
TINYFUSE_MATMUL_S4(tinyfuse_matmul_s4_single_rounding, TINYFUSE_SINGLE_ROUNDING)

/* Selects the function of a constant form, TINYFUSE_WIDE or TINYFUSE_SINGLE_ROUNDING. */
#define TINYFUSE_S4_OF_FORM(form, name, of) ((form) == TINYFUSE_SINGLE_ROUNDING ? name##_single_rounding##of : name##_wide##of)

/* Computes one block: all channels, as `p` has them, of 1 to 3 pixels to `out`. `depth` is a multiple of 4. */
TINYFUSE_INLINE void tinyfuse_pixels_s4(tinyfuse_matmul *p, const int8_t *weights, const int8_t *columns,
                                        int32_t depth, int8_t *out, int32_t pixels, int form)
{
    p->out = out;
    if (p->out_c == 1) {
    } else if (pixels == 3) {
        TINYFUSE_S4_OF_FORM(form, tinyfuse_matmul_s4, _3)(p, weights, columns, depth);
    } else if (pixels == 2) {
        TINYFUSE_S4_OF_FORM(form, tinyfuse_matmul_s4, _2)(p, weights, columns, depth);
    } else {
        TINYFUSE_S4_OF_FORM(form, tinyfuse_matmul_s4, _1)(p, weights, columns, depth);
    }
    if ((p->out_c & 1) != 0) {
        p->out = out; /* assembly moves it on */
        TINYFUSE_S4_OF_FORM(form, tinyfuse_matmul_s4, _odd)(p, weights, columns, depth, pixels);
    }
}

#endif
