/* The inner product of layers for cores without the DSP extension, with two channels' weights in a word of flash: one
   multiplication gives two products.

   The word of weights v, w of an input x is v + 65536 w, so that its product with x is v x + 65536 w x. The sum q of
   two such products has sums of two products in its halves. The lower one lies within -2^15..2^15 - 1, as the
   compiler has proven (tinyfuse/kernels/layers/int8_no_dsp/paired_weights.py), so that (q + 2^15) >> 16 is exactly
   the upper one. Upper sums are added up, and so are the q, which may wrap: the q less 65536 times the upper sum give
   the lower one.

   pairs    [ceil(out_c / 2)] of: [depth] int32, the weights; then the tinyfuse_single_rounding or tinyfuse_requant of
            both channels, for forms of bytes (tinyfuse_matmul.h). depth is a multiple of 4. With an odd count of
            channels, three or more, the last pair is the last two; the pair before has one of them, too.
   columns  [depth / 2][pixels][2] int32, the inputs of one or two pixels */
#ifndef TINYFUSE_PAIRED_H
#define TINYFUSE_PAIRED_H

#include "tinyfuse_matmul.h"

/* Whether blocks in the assembly of Armv7-M are used, or of Armv6-M, whose instructions Armv8-M baseline has, too;
   else their C twins, with the same results (TINYFUSE_DSP). */
#define TINYFUSE_THUMB1 0
#define TINYFUSE_THUMB2 0
#if defined(__ARM_ARCH_ISA_THUMB) && defined(__GNUC__) && defined(__thumb__) && !defined(__ARM_FEATURE_DSP) && \
    !defined(__ARM_RWPI) && !defined(TINYFUSE_NO_ASM)
#if __ARM_ARCH_ISA_THUMB == 1
#undef TINYFUSE_THUMB1
#define TINYFUSE_THUMB1 1
#elif defined(__thumb2__)
#undef TINYFUSE_THUMB2
#define TINYFUSE_THUMB2 1
#endif
#endif

/* A layer, and a block of one or two pixels; assembly knows the offsets. */
typedef struct {
    const int32_t *columns;
    const int32_t *columns_end;
    int32_t depth;    /* 8 */
    int32_t rounding; /* tinyfuse_matmul_rounding */
    int8_t *out;      /* 16: [pixels][out_c] */
    int32_t out_c;
    const int32_t *pairs_end; /* 24 */
    const int32_t *pairs;     /* 28: the next one */
} tinyfuse_paired;

/* Four inputs: the same code twice, in a literal that is no longer than C99 promises to take. */
#define TINYFUSE_PAIRED_FOUR(n) ".rept 2\n\t" TINYFUSE_PAIRED_TWO_##n ".endr\n\t"

#if TINYFUSE_THUMB1

/* TINYFUSE_ASM_BEGIN and TINYFUSE_ASM_END for Armv6-M, which pushes and pops low registers, pushes lr, and can't pop
   it. GCC expects another syntax. */
#define TINYFUSE_THUMB1_BEGIN       \
    ".syntax unified\n\t"           \
    "push {r0, r4-r7, lr}\n\t"      \
    "mov r4, r8\n\t"                \
    "mov r5, r9\n\t"                \
    "mov r6, r10\n\t"               \
    "mov r7, r11\n\t"               \
    "push {r4-r7}\n\t"
#define TINYFUSE_THUMB1_END         \
    "pop {r4-r7}\n\t"               \
    "mov r8, r4\n\t"                \
    "mov r9, r5\n\t"                \
    "mov r10, r6\n\t"               \
    "mov r11, r7\n\t"               \
    "ldr r4, [sp, #20]\n\t"         \
    "mov lr, r4\n\t"                \
    "pop {r0, r4-r7}\n\t"           \
    "add sp, #4\n\t"

/* In the loop: r0 columns, r1 pairs, r2 and r3 upper sums of two pixels, r8 and r9 sums of q; r4, r5 weights, r6, r7
   inputs; r10 the end of the columns. The shift leaves bit 15 in the carry, which ADCS adds. */
#define TINYFUSE_PAIRED_PIXEL(all, upper)  \
    "ldmia r0!, {r6, r7}\n\t"              \
    "muls r6, r4, r6\n\t"                  \
    "muls r7, r5, r7\n\t"                  \
    "adds r6, r6, r7\n\t"                  \
    "add " all ", r6\n\t"                  \
    "asrs r6, r6, #16\n\t"                 \
    "adcs " upper ", r6\n\t"
#define TINYFUSE_PAIRED_TWO_1 "ldmia r1!, {r4, r5}\n\t" TINYFUSE_PAIRED_PIXEL("r8", "r2")
#define TINYFUSE_PAIRED_TWO_2 TINYFUSE_PAIRED_TWO_1 TINYFUSE_PAIRED_PIXEL("r9", "r3")
/* Computes all sums of a pair; r0 is the tinyfuse_paired. The loop of sixteen inputs is entered in its middle, so
   that only whole iterations remain. */
#define TINYFUSE_PAIRED_SUMS(n)                                     \
    "ldr r4, [r0, #8]\n\t"                                          \
    "ldr r0, [r0]\n\t"                                              \
    "movs r2, #0\n\t"                                               \
    "movs r3, #0\n\t"                                               \
    "mov r8, r2\n\t"                                                \
    "mov r9, r2\n\t"                                                \
    "lsls r4, r4, #29\n\t"                                          \
    "bcc 5f\n\t"                                                    \
    "bmi 2f\n\t"                                                    \
    "b 3f\n\t"                                                      \
    "5:\n\t"                                                        \
    "bmi 4f\n\t"                                                    \
    "1:\n\t" TINYFUSE_PAIRED_FOUR(n)                                 \
    "2:\n\t" TINYFUSE_PAIRED_FOUR(n)                                 \
    "3:\n\t" TINYFUSE_PAIRED_FOUR(n)                                 \
    "4:\n\t" TINYFUSE_PAIRED_FOUR(n)                                 \
    "cmp r0, r10\n\t"                                               \
    "bne 1b\n\t"
/* Makes the lower sum S: r4 that of the first pixel, r5 that of the second. */
#define TINYFUSE_PAIRED_LOWER_1 "lsls r5, r2, #16\n\tmov r4, r8\n\tsubs r4, r4, r5\n\t"
#define TINYFUSE_PAIRED_LOWER_2 \
    TINYFUSE_PAIRED_LOWER_1 "lsls r6, r3, #16\n\tmov r5, r9\n\tsubs r5, r5, r6\n\t"
/* Puts the high word of r4 times 65536 r6 + r5 into r4: `round` is added to the middle words before they go `down` by
   16 bits. Uses r0, r2 and r7. */
#define TINYFUSE_PAIRED_PRODUCT(round, down)             \
    "uxth r0, r4\n\t"                                    \
    "asrs r4, r4, #16\n\t"                               \
    "movs r2, r0\n\t"                                    \
    "muls r2, r5, r2\n\t"                                \
    "lsrs r2, r2, #16\n\t"                               \
    "muls r0, r6, r0\n\t"                                \
    "adds r0, r0, r2\n\t" round                          \
    "movs r2, r4\n\t"                                    \
    "muls r2, r6, r2\n\t"                                \
    "muls r4, r5, r4\n\t"                                \
    "uxth r7, r0\n\t"                                    \
    "adds r4, r4, r7\n\t"                                \
    "asrs r4, r4, #16\n\t" down " r0, r0, #16\n\t"       \
    "adds r4, r4, r0\n\t"                                \
    "adds r4, r4, r2\n\t"
#define TINYFUSE_PAIRED_ROUND "movs r2, #128\n\tlsls r2, r2, #8\n\tadds r0, r0, r2\n\t"
/* Requantizes as tinyfuse_requantize_single_rounding, or with another `shift` of r4: the sum r4 of the channel whose
   bias lies at `bias` from r1; its multiplier is 65536 r6 + r5, r12 the rounding. To r7; uses r0 and r2. */
#define TINYFUSE_PAIRED_SHIFT "asrs r4, r4, #11\n\t"
#define TINYFUSE_PAIRED_OUTPUT(bias) TINYFUSE_PAIRED_SHIFTED(bias, TINYFUSE_PAIRED_SHIFT)
#define TINYFUSE_PAIRED_SHIFTED(bias, shift) \
    "ldr r0, [r1, #" bias "]\n\t"      \
    "lsls r4, r4, #8\n\t"              \
    "adds r4, r4, r0\n\t"              \
    TINYFUSE_PAIRED_PRODUCT("", "asrs") \
    "add r4, r12\n\t"                  \
    shift TINYFUSE_PAIRED_SATURATE
#define TINYFUSE_PAIRED_SATURATE       \
    "sxtb r7, r4\n\t"                  \
    "cmp r7, r4\n\t"                   \
    "beq 8f\n\t"                       \
    "asrs r7, r4, #31\n\t"             \
    "movs r0, #127\n\t"                \
    "eors r7, r0\n\t"                  \
    "8:\n\t"
/* Requantizes as tinyfuse_requantize_bounded in the same registers, for the channel whose shift lies at `shift`. The
   multiplier is negative. 2^32 is added to make it positive, and therefore no sum is added to the product: r6 as r5.
   2^15 is added for rounding before the last shift by 16. */
#define TINYFUSE_PAIRED_BOUNDED(bias, shift) \
    "ldr r0, [r1, #" bias "]\n\t"            \
    "adds r4, r4, r0\n\t"                    \
    TINYFUSE_PAIRED_PRODUCT(TINYFUSE_PAIRED_ROUND, "lsrs") \
    "asrs r0, r4, #31\n\t"                   \
    "adds r4, r4, r0\n\t"                    \
    "ldr r2, [r1, #" shift "]\n\t"           \
    "mov r0, r12\n\t"                        \
    "lsls r0, r2\n\t"                        \
    "adds r4, r4, r0\n\t"                    \
    "asrs r4, r2\n\t"                        \
    "asrs r4, r4, #1\n\t" TINYFUSE_PAIRED_SATURATE
#define TINYFUSE_PAIRED_MULTIPLIER(at) "ldr r6, [r1, #" at "]\n\tuxth r5, r6\n\tlsrs r6, r6, #16\n\t"
#define TINYFUSE_PAIRED_BYTES_SINGLE_ROUNDING "16"
#define TINYFUSE_PAIRED_BYTES_BOUNDED "24"
#define TINYFUSE_PAIRED_PUT(channel) "mov r0, r11\n\tstrb r7, [r0, #" channel "]\n\t"
#define TINYFUSE_PAIRED_PUT_NEXT(channel) "mov r0, lr\n\tldr r0, [r0, #20]\n\tadd r0, r11\n\tstrb r7, [r0, #" channel "]\n\t"
#define TINYFUSE_PAIRED_OUTPUTS_SINGLE_ROUNDING_1                                            \
    "mov r9, r2\n\t" TINYFUSE_PAIRED_MULTIPLIER("4")                                   \
    TINYFUSE_PAIRED_OUTPUT("0") TINYFUSE_PAIRED_PUT("0")                               \
    TINYFUSE_PAIRED_MULTIPLIER("12")                                                   \
    "mov r4, r9\n\t" TINYFUSE_PAIRED_OUTPUT("8") TINYFUSE_PAIRED_PUT("1")
#define TINYFUSE_PAIRED_OUTPUTS_SINGLE_ROUNDING_2                                            \
    "mov r8, r5\n\t"                                                                   \
    "mov r9, r2\n\t" TINYFUSE_PAIRED_MULTIPLIER("4")                                   \
    TINYFUSE_PAIRED_OUTPUT("0") TINYFUSE_PAIRED_PUT("0")                               \
    "mov r4, r8\n\t" TINYFUSE_PAIRED_OUTPUT("0") TINYFUSE_PAIRED_PUT_NEXT("0")         \
    TINYFUSE_PAIRED_MULTIPLIER("12")                                                   \
    "mov r4, r9\n\t" TINYFUSE_PAIRED_OUTPUT("8") TINYFUSE_PAIRED_PUT("1")              \
    "movs r4, r3\n\t" TINYFUSE_PAIRED_OUTPUT("8") TINYFUSE_PAIRED_PUT_NEXT("1")
/* Channel c; the assembler repeats it: a string has an end. */
#define TINYFUSE_PAIRED_OF_CHANNEL                                                     \
    TINYFUSE_PAIRED_MULTIPLIER("(4 + 12 * \\c)")                                       \
    TINYFUSE_PAIRED_BOUNDED("(12 * \\c)", "(8 + 12 * \\c)") TINYFUSE_PAIRED_PUT("\\c")
#define TINYFUSE_PAIRED_OUTPUTS_BOUNDED_1                                              \
    "mov r9, r2\n\t"                                                                   \
    ".irp c, 0, 1\n\t" TINYFUSE_PAIRED_OF_CHANNEL                                      \
    "mov r4, r9\n\t"                                                                   \
    ".endr\n\t"
#define TINYFUSE_PAIRED_OUTPUTS_BOUNDED_2                                              \
    "mov r8, r5\n\t"                                                                   \
    "mov r9, r2\n\t"                                                                   \
    ".irp c, 0, 1\n\t" TINYFUSE_PAIRED_OF_CHANNEL                                      \
    "mov r4, r8\n\t"                                                                   \
    TINYFUSE_PAIRED_BOUNDED("(12 * \\c)", "(8 + 12 * \\c)") TINYFUSE_PAIRED_PUT_NEXT("\\c") \
    "mov r4, r9\n\t"                                                                   \
    "mov r8, r3\n\t"                                                                   \
    ".endr\n\t"
/* The tinyfuse_paired is in r0. */
#define TINYFUSE_PAIRED_PAIRS_ASM(n, form)            \
    TINYFUSE_THUMB1_BEGIN                             \
    "ldr r1, [r0, #28]\n\t"                           \
    "ldr r4, [r0, #4]\n\t"                            \
    "mov r10, r4\n\t"                                 \
    "mov lr, r0\n\t"                                  \
    "ldr r4, [r0, #12]\n\t"                           \
    "mov r12, r4\n\t"                                 \
    "ldr r4, [r0, #16]\n\t"                           \
    "6:\n\t"                                          \
    "mov r11, r4\n\t" TINYFUSE_PAIRED_SUMS(n)         \
    TINYFUSE_PAIRED_LOWER_##n                         \
    TINYFUSE_PAIRED_OUTPUTS_##form##_##n              \
    "adds r1, #" TINYFUSE_PAIRED_BYTES_##form "\n\t"  \
    "mov r4, r11\n\t"                                 \
    "adds r4, #2\n\t"                                 \
    "mov r0, lr\n\t"                                  \
    "ldr r5, [r0, #24]\n\t"                           \
    "cmp r1, r5\n\t"                                  \
    "beq 7f\n\t"                                      \
    "b 6b\n\t"                                        \
    "7:\n\t" TINYFUSE_THUMB1_END

#elif TINYFUSE_THUMB2

/* In the loop: r0 columns, r1 pairs; r2, r3 sum of q and upper sum of a pixel, r4, r5 of another one; r6, r7 weights,
   r8 to r11 inputs; r12 2^15, lr the end of the columns. Sums of q begin lower by the 2^15 that each step adds. */
#define TINYFUSE_PAIRED_PIXEL(a, b, all, upper)          \
    "mla " a ", " a ", r6, r12\n\t"                      \
    "mla " a ", " b ", r7, " a "\n\t"                    \
    "add " all ", " a "\n\t"                             \
    "add " upper ", " upper ", " a ", asr #16\n\t"
#define TINYFUSE_PAIRED_TWO_1 \
    "ldm r1!, {r6, r7}\n\tldm r0!, {r8, r9}\n\t" TINYFUSE_PAIRED_PIXEL("r8", "r9", "r2", "r3")
#define TINYFUSE_PAIRED_TWO_2                                                                           \
    "ldm r1!, {r6, r7}\n\tldm r0!, {r8, r9, r10, r11}\n\t" TINYFUSE_PAIRED_PIXEL("r8", "r9", "r2", "r3") \
    TINYFUSE_PAIRED_PIXEL("r10", "r11", "r4", "r5")
/* Computes all sums of a pair; r0 is the tinyfuse_paired. The loop of sixteen inputs is entered in its middle, so
   that only whole iterations remain. */
#define TINYFUSE_PAIRED_SUMS(n)                                     \
    "ldr r6, [r0, #8]\n\t"                                          \
    "ldrd r0, lr, [r0]\n\t"                                         \
    "mov r3, #0\n\t"                                                \
    "mov r5, #0\n\t"                                                \
    "sub r2, r3, r6, lsl #14\n\t"                                   \
    "mov r4, r2\n\t"                                                \
    "mov r12, #0x8000\n\t"                                          \
    "lsls r6, r6, #29\n\t"                                          \
    "bcc 5f\n\t"                                                    \
    "bmi 2f\n\t"                                                    \
    "b 3f\n\t"                                                      \
    "5:\n\t"                                                        \
    "bmi 4f\n\t"                                                    \
    "1:\n\t" TINYFUSE_PAIRED_FOUR(n)                                 \
    "2:\n\t" TINYFUSE_PAIRED_FOUR(n)                                 \
    "3:\n\t" TINYFUSE_PAIRED_FOUR(n)                                 \
    "4:\n\t" TINYFUSE_PAIRED_FOUR(n)                                 \
    "cmp r0, lr\n\t"                                                \
    "bne 1b\n\t"                                                    \
    "sub r2, r2, r3, lsl #16\n\t"                                   \
    "sub r4, r4, r5, lsl #16\n\t"                                   \
    "ldr r0, [sp]\n\t"
/* tinyfuse_requantize_single_rounding; r12 the rounding, r6 may change. */
#define TINYFUSE_PAIRED_HIGH(sum, bias, multiplier)               \
    "add " sum ", " bias ", " sum ", lsl #8\n\t"                  \
    "smull lr, " sum ", " sum ", " multiplier "\n\t"
#define TINYFUSE_PAIRED_OUTPUT(sum, bias, multiplier)             \
    TINYFUSE_PAIRED_HIGH(sum, bias, multiplier)                   \
    "add " sum ", r12\n\t" TINYFUSE_SINGLE_ROUNDING_SATURATE(sum)
/* tinyfuse_requantize_bounded; r6 bias, r7 multiplier, r8 shift, r9 rounding << shift. A rounded product takes the carry of
   its lower word. */
#define TINYFUSE_PAIRED_CHANNEL           \
    "ldm r1!, {r6, r7, r8}\n\t"           \
    "ldr r9, [r0, #12]\n\t"               \
    "lsl r9, r8\n\t"
#define TINYFUSE_PAIRED_BOUNDED(sum)             \
    "add " sum ", r6\n\t"                        \
    "smull lr, r12, " sum ", r7\n\t"             \
    "lsls lr, lr, #1\n\t"                        \
    "adc r12, r12, " sum "\n\t"                  \
    "add r12, r12, " sum ", asr #31\n\t"         \
    "add r12, r9\n\t"                            \
    "asr r12, r8\n\t"                            \
    "ssat " sum ", #8, r12, asr #1\n\t"
/* Requantizes the outputs of a pair, to r2 and r3, of a second pixel to r4 and r5. */
#define TINYFUSE_PAIRED_SINGLE_ROUNDING "ldm r1!, {r6, r7, r8, r9}\n\tldr r12, [r0, #12]\n\t"
#define TINYFUSE_PAIRED_ON_SINGLE_ROUNDING_1 \
    TINYFUSE_PAIRED_OUTPUT("r2", "r6", "r7") TINYFUSE_PAIRED_OUTPUT("r3", "r8", "r9")
#define TINYFUSE_PAIRED_OUTPUTS_SINGLE_ROUNDING_1 TINYFUSE_PAIRED_SINGLE_ROUNDING TINYFUSE_PAIRED_ON_SINGLE_ROUNDING_1
#define TINYFUSE_PAIRED_OUTPUTS_SINGLE_ROUNDING_2                                              \
    TINYFUSE_PAIRED_SINGLE_ROUNDING                                                           \
    TINYFUSE_PAIRED_OUTPUT("r4", "r6", "r7") TINYFUSE_PAIRED_OUTPUT("r5", "r8", "r9")    \
    TINYFUSE_PAIRED_ON_SINGLE_ROUNDING_1
#define TINYFUSE_PAIRED_OUTPUTS_BOUNDED_1                  \
    TINYFUSE_PAIRED_CHANNEL TINYFUSE_PAIRED_BOUNDED("r2")  \
    TINYFUSE_PAIRED_CHANNEL TINYFUSE_PAIRED_BOUNDED("r3")
#define TINYFUSE_PAIRED_OUTPUTS_BOUNDED_2                                               \
    TINYFUSE_PAIRED_CHANNEL TINYFUSE_PAIRED_BOUNDED("r2") TINYFUSE_PAIRED_BOUNDED("r4")  \
    TINYFUSE_PAIRED_CHANNEL TINYFUSE_PAIRED_BOUNDED("r3") TINYFUSE_PAIRED_BOUNDED("r5")
#define TINYFUSE_PAIRED_STORE_1  \
    "strb r2, [r10], #1\n\t"     \
    "strb r3, [r10], #1\n\t"
#define TINYFUSE_PAIRED_STORE_2  \
    "strb r4, [r10, r11]\n\t"    \
    "add r11, #1\n\t"            \
    "strb r5, [r10, r11]\n\t" TINYFUSE_PAIRED_STORE_1
/* The tinyfuse_paired is in r0. */
#define TINYFUSE_PAIRED_PAIRS_ASM(n, form)                \
    TINYFUSE_ASM_BEGIN                                    \
    "ldr r1, [r0, #28]\n\t"                               \
    "6:\n\t" TINYFUSE_PAIRED_SUMS(n)                      \
    TINYFUSE_PAIRED_OUTPUTS_##form##_##n                  \
    "ldrd r10, r11, [r0, #16]\n\t"                        \
    TINYFUSE_PAIRED_STORE_##n                             \
    "ldr r6, [r0, #24]\n\t"                               \
    "str r10, [r0, #16]\n\t"                              \
    "cmp r1, r6\n\t"                                      \
    "bne 6b\n\t" TINYFUSE_ASM_END

#endif

#if TINYFUSE_THUMB1 || TINYFUSE_THUMB2

typedef char tinyfuse_check_paired[offsetof(tinyfuse_paired, pairs) == 28 ? 1 : -1];
#define TINYFUSE_PAIRED_ASM(p, statement)                                                                         \
    {                                                                                                             \
        TINYFUSE_ARGUMENT(void *, arguments, p);                                                                  \
        __asm volatile(statement : : "r"(arguments) : TINYFUSE_ASM_CLOBBERS);                                     \
    }
/* Computes all pairs of a block in a form, SINGLE_ROUNDING or BOUNDED. */
#define TINYFUSE_PAIRED_PAIRS(p, n, form) TINYFUSE_PAIRED_ASM(p, TINYFUSE_PAIRED_PAIRS_ASM(n, form))

#else

/* Sums the products of the next pair for one or two pixels, without biases: upper sums of the pixels, then lower
   ones. */
TINYFUSE_INLINE void tinyfuse_paired_pair_c(tinyfuse_paired *s, int pixels, int32_t *sums)
{
    const int32_t *w = s->pairs, *x = s->columns;
    uint32_t all[2] = {0, 0}, upper[2] = {0, 0};
    int i;
    for (; x != s->columns_end; w += 2) {
        for (i = 0; i < pixels; ++i) {
            const uint32_t q = (uint32_t)x[0] * (uint32_t)w[0] + (uint32_t)x[1] * (uint32_t)w[1];
            all[i] += q;
            upper[i] += (uint32_t)((int32_t)(q + 0x8000u) >> 16);
            x += 2;
        }
    }
    for (i = 0; i < pixels; ++i) {
        sums[i] = (int32_t)upper[i];
        sums[2 + i] = (int32_t)(all[i] - (upper[i] << 16));
    }
    s->pairs = w;
}

/* Computes all pairs of a block; `form` is a constant. */
TINYFUSE_INLINE void tinyfuse_paired_pairs_c(tinyfuse_paired *s, int pixels, int form)
{
    while (s->pairs != s->pairs_end) {
        int32_t sums[4];
        int i, j;
        tinyfuse_paired_pair_c(s, pixels, sums);
        for (j = 0; j < 2; ++j) {
            const int32_t bias = tinyfuse_channel_bias(s->pairs, j, form);
            for (i = 0; i < pixels; ++i) {
                s->out[i * s->out_c + j] =
                    tinyfuse_channel_output(s->pairs, j, sums[2 * (1 - j) + i] + bias, s->rounding, form);
            }
        }
        s->pairs += 2 * tinyfuse_channel_bytes(form) / sizeof *s->pairs;
        s->out += 2;
    }
}
#define TINYFUSE_PAIRED_FORM_SINGLE_ROUNDING TINYFUSE_BYTES_SINGLE_ROUNDING
#define TINYFUSE_PAIRED_FORM_BOUNDED TINYFUSE_BYTES
#define TINYFUSE_PAIRED_PAIRS(p, n, form) tinyfuse_paired_pairs_c(p, n, TINYFUSE_PAIRED_FORM_##form);

#endif

#define TINYFUSE_PAIRED_FUNCTION(name, pixels, form)                                               \
    TINYFUSE_SHARED void name(tinyfuse_paired *s)                                                  \
    {                                                                                              \
        TINYFUSE_PAIRED_PAIRS(s, pixels, form)                                                     \
    }
TINYFUSE_PAIRED_FUNCTION(tinyfuse_paired_bytes_1, 1, BOUNDED)
TINYFUSE_PAIRED_FUNCTION(tinyfuse_paired_bytes_2, 2, BOUNDED)
TINYFUSE_PAIRED_FUNCTION(tinyfuse_paired_single_rounding_1, 1, SINGLE_ROUNDING)
TINYFUSE_PAIRED_FUNCTION(tinyfuse_paired_single_rounding_2, 2, SINGLE_ROUNDING)

/* Converts 4 * words inputs of a pixel to its column: two to each `step` words from `to`, with step = 2 * pixels.
   Returns the next place. */
TINYFUSE_SHARED int32_t *tinyfuse_paired_column(const int8_t *from, int32_t words, int32_t *to, int32_t step)
{
    for (; words > 0; --words) {
        to[0] = from[0];
        to[1] = from[1];
        to += step;
        to[0] = from[2];
        to[1] = from[3];
        to += step;
        from += 4;
    }
    return to;
}

/* Returns a layer of out_c channels and sums of `depth` products. */
TINYFUSE_INLINE tinyfuse_paired tinyfuse_paired_of(int32_t out_c, int32_t out_zero_point, const int32_t *columns,
                                                   int32_t depth, int form)
{
    tinyfuse_paired s;
    s.columns = columns;
    s.depth = depth;
    s.rounding = tinyfuse_matmul_rounding(out_zero_point, form);
    s.out_c = out_c;
    return s;
}

/* Computes the pairs that take `count` words from `pairs` on, for one or two pixels, to `out`. */
TINYFUSE_INLINE void tinyfuse_paired_some(tinyfuse_paired *s, const int32_t *pairs, int32_t count, int8_t *out,
                                          int32_t pixels, int form)
{
    s->out = out;
    s->pairs = pairs;
    s->pairs_end = pairs + count;
    if (form == TINYFUSE_BYTES) {
        (pixels == 2 ? tinyfuse_paired_bytes_2 : tinyfuse_paired_bytes_1)(s);
    } else {
        (pixels == 2 ? tinyfuse_paired_single_rounding_2 : tinyfuse_paired_single_rounding_1)(s);
    }
}

/* Computes all channels of one or two pixels, whose columns are filled, to out [pixels][out_c]. `form` is a constant. */
TINYFUSE_INLINE void tinyfuse_paired_pixels(tinyfuse_paired *s, const int32_t *pairs, int8_t *out, int32_t pixels,
                                            int form)
{
    /* not read again after the call: if it is an even constant, compilers know that nothing follows the pairs */
    const int32_t out_c = s->out_c;
    const int32_t pair = s->depth + 2 * (int32_t)(tinyfuse_channel_bytes(form) / sizeof *pairs);
    const int32_t even = out_c / 2 * pair;
    s->columns_end = s->columns + pixels * s->depth;
    tinyfuse_paired_some(s, pairs, even, out, pixels, form);
    if ((out_c & 1) != 0) {
        tinyfuse_paired_some(s, pairs + even, pair, out + out_c - 2, pixels, form);
    }
}

#endif
