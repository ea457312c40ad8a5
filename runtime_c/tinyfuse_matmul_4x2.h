/* Convolutions of int8 by blocks of up to four pixels, for cores with the DSP extension: the lanes of
   tinyfuse_matmul.h, but each weight is loaded from flash a quarter fewer times than with three pixels. The sums of
   four pixels and two channels leave no register for the columns' end, and inputs come two by two: no fewer
   instructions, but fewer cycles where flash is slow. out_c is even. */
#ifndef TINYFUSE_MATMUL_4X2_H
#define TINYFUSE_MATMUL_4X2_H

#include "tinyfuse_conv_packed.h"
#include "tinyfuse_pointwise.h"

#if TINYFUSE_DSP

/* Registers as in tinyfuse_matmul.h, but with sums in r2 to r9, lanes in r10 and r11, inputs in r12 and lr. */
#define TINYFUSE_4X2_FIRST TINYFUSE_LANE("r12", "r2", "r3") TINYFUSE_LANE("lr", "r4", "r5")
#define TINYFUSE_4X2_SECOND(then) \
    "ldrd r12, lr, [r0], #8\n\t" TINYFUSE_LANE("r12", "r6", "r7") then TINYFUSE_LANE("lr", "r8", "r9")
/* Weights and inputs load one by one: each load right behind another takes one cycle less than a pair. `then` follows the
   last product of r12. */
#define TINYFUSE_4X2_STEP(then)                                                             \
    "ldr r11, [r1, #4]\n\t"                                                                 \
    "ldr r10, [r1], #8\n\t"                                                                 \
    "ldr lr, [r0, #4]\n\t"                                                                  \
    "ldr r12, [r0], #8\n\t" TINYFUSE_4X2_FIRST TINYFUSE_4X2_SECOND("") TINYFUSE_LOW_BYTES   \
    "ldrd r12, lr, [r0], #8\n\t" TINYFUSE_4X2_FIRST TINYFUSE_4X2_SECOND(then)
#define TINYFUSE_4X2_EVERY(do_it, a, b, c, d) do_it(a) do_it(b) do_it(c) do_it(d)
/* r0 is the tinyfuse_matmul; leaves in lr the multiplier of the pair's second channel */
#define TINYFUSE_4X2_ON_SINGLE_ROUNDING(s) "smmla " s ", " s ", r12, r10\n\t" TINYFUSE_SINGLE_ROUNDING_SATURATE(s)
#define TINYFUSE_4X2_OUTPUT_SINGLE_ROUNDING                                              \
    "ldrd r10, lr, [r0]\n\t"                                                        \
    "ldr r12, [lr, #8]\n\t"                                                         \
    TINYFUSE_4X2_EVERY(TINYFUSE_4X2_ON_SINGLE_ROUNDING, "r2", "r4", "r6", "r8")         \
    "ldr r12, [lr, #16]!\n\t"                                                       \
    TINYFUSE_4X2_EVERY(TINYFUSE_4X2_ON_SINGLE_ROUNDING, "r3", "r5", "r7", "r9")
#define TINYFUSE_4X2_OUTPUT_LANES                                                  \
    "ldrd r12, r0, [r0]\n\t"                                                        \
    "ldrd r10, r11, [r0, #12]\n\t"                                                  \
    "lsl r12, r12, r11\n\t"                                                         \
    TINYFUSE_4X2_EVERY(TINYFUSE_BOUNDED_256THS, "r2", "r4", "r6", "r8")            \
    "ldr r12, [sp, #16]\n\t"                                                        \
    "ldr r12, [r12]\n\t"                                                            \
    "ldrd r10, r11, [r0, #24]!\n\t"                                                 \
    "lsl r12, r12, r11\n\t"                                                         \
    TINYFUSE_4X2_EVERY(TINYFUSE_BOUNDED_256THS, "r3", "r5", "r7", "r9")            \
    "mov lr, r0\n\t"                                                                \
    "ldr r0, [sp, #16]\n\t"
#define TINYFUSE_4X2_ASM(form)                                                             \
    {                                                                                       \
        register tinyfuse_matmul *r0 __asm("r0") = p;                                       \
        register const int8_t *r1 __asm("r1") = weights;                                    \
        register const int8_t *r2 __asm("r2") = columns;                                    \
        register int32_t r3 __asm("r3") = depth;                                            \
        __asm volatile("push {r0, r2-r11, lr}\n\t"                                          \
                       "ldr r9, [r0, #4]\n\t"                                               \
                       "add r4, r2, r3, lsl #3\n\t"                                         \
                       "push {r2, r3, r4, r9}\n\t"                                          \
                       "b 6f\n\t"                                                           \
                       "5:\n\t"                                                             \
                       "bmi 2f\n\t"                                                         \
                       "b 3f\n\t"                                                           \
                       "6:\n\t" TINYFUSE_BIASES_##form                                      \
                       "ldr r0, [sp]\n\t"                                                  \
                       "ldr r12, [sp, #4]\n\t" TINYFUSE_COPY_3                             \
                       "mov r8, r2\n\t"                                                     \
                       "mov r9, r3\n\t"                                                     \
                       "lsls r12, r12, #29\n\t"                                             \
                       "bcs 5b\n\t"                                                         \
                       "bmi 4f\n\t"                                                         \
                       "1:\n\t" TINYFUSE_4X2_STEP("")                                      \
                       "2:\n\t" TINYFUSE_4X2_STEP("")                                      \
                       "3:\n\t" TINYFUSE_4X2_STEP("")                                      \
                       "4:\n\t" TINYFUSE_4X2_STEP("ldr r12, [sp, #8]\n\t")                 \
                       "cmp r0, r12\n\t"                                                    \
                       "bne 1b\n\t"                                                         \
                       "ldr r0, [sp, #16]\n\t" TINYFUSE_4X2_OUTPUT_##form                  \
                       "ldrd r10, r11, [r0, #8]\n\t"                                        \
                       "add r12, r11, r11, lsl #1\n\t"                                      \
                       "bfi r8, r9, #8, #8\n\t"                                             \
                       "strh r8, [r10, r12]\n\t" TINYFUSE_PUT_3                             \
                       "mov r9, lr\n\t"                                                     \
                       "strd r9, r10, [r0, #4]\n\t"                                         \
                       "ldr r12, [r0, #16]\n\t"                                             \
                       "cmp r9, r12\n\t"                                                    \
                       "bne 6b\n\t"                                                         \
                       "pop {r2, r3, r4, r9}\n\t"                                           \
                       "str r9, [r0, #4]\n\t"                                               \
                       "pop {r0, r2-r11, lr}\n\t"                                           \
                       : "+r"(r1)                                                           \
                       : "r"(r0), "r"(r2), "r"(r3)                                          \
                       : "r12", "cc", "memory");                                            \
    }

#endif

/* Computes all channels of four pixels; `form` is TINYFUSE_SINGLE_ROUNDING or TINYFUSE_LANES, a constant. */
TINYFUSE_INLINE void tinyfuse_4x2_pairs(tinyfuse_matmul *p, const int8_t *weights, const int8_t *columns, int32_t depth,
                                        int form)
{
#if TINYFUSE_DSP
    if (form == TINYFUSE_SINGLE_ROUNDING) {
        TINYFUSE_4X2_ASM(SINGLE_ROUNDING)
    } else {
        TINYFUSE_4X2_ASM(LANES)
    }
#else
    const void *const channels = tinyfuse_matmul_channels(p, form);
    int32_t o, i, k;
    for (o = 0; o < p->out_c; ++o) {
        const int8_t *const w = weights + (o & ~1) * depth + 4 * (o & 1);
        for (i = 0; i < 4; ++i) {
            int32_t sum = tinyfuse_channel_bias(channels, o, form);
            for (k = 0; k < depth / 4; ++k) {
                sum = tinyfuse_products(sum, columns + 32 * k + 4 * i, 32, w + 8 * k, form);
            }
            p->out[i * p->out_c + o] = tinyfuse_matmul_output(p, channels, o, sum, p->rounding, form);
        }
    }
#endif
}

#define TINYFUSE_4X2(name, form)                                                                                   \
    TINYFUSE_SHARED void name(tinyfuse_matmul *p, const int8_t *weights, const int8_t *columns, int32_t depth)         \
    {                                                                                                                  \
        tinyfuse_4x2_pairs(p, weights, columns, depth, form);                                                      \
    }
TINYFUSE_4X2(tinyfuse_4x2_lanes, TINYFUSE_LANES)
TINYFUSE_4X2(tinyfuse_4x2_single_rounding, TINYFUSE_SINGLE_ROUNDING)

/* Computes a block as tinyfuse_matmul_pixels does, for up to four pixels. */
TINYFUSE_INLINE void tinyfuse_4x2_pixels(tinyfuse_matmul *p, const int8_t *weights, const int8_t *columns,
                                         int32_t depth, int8_t *out, int32_t pixels, int form)
{
    p->out = out;
    if (pixels == 4) {
        (form == TINYFUSE_SINGLE_ROUNDING ? tinyfuse_4x2_single_rounding : tinyfuse_4x2_lanes)(p, weights, columns, depth);
    } else if (pixels == 3) {
        TINYFUSE_MATMUL_OF(form, _3)(p, weights, columns, depth);
    } else if (pixels == 2) {
        TINYFUSE_MATMUL_OF(form, _2)(p, weights, columns, depth);
    } else {
        TINYFUSE_MATMUL_OF(form, _1)(p, weights, columns, depth);
    }
}

/* Returns how many of `left` pixels the next block takes. A row of two or more leaves no single pixel for its end. */
TINYFUSE_INLINE int32_t tinyfuse_4x2_block(int32_t left)
{
    return left == 5 ? 3 : tinyfuse_min(left, 4);
}

TINYFUSE_INLINE void tinyfuse_pointwise_4x2_body(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels,
                                                 int8_t *out, const int8_t *weights, const void *channels,
                                                 void *scratch, int form)
{
    tinyfuse_matmul m = tinyfuse_matmul_of(p->out_c, p->out_zero_point, channels, form);
    int8_t *const columns = (int8_t *)scratch, *const first = out;
    int32_t left = pixels;
    while (left > 0) {
        const int32_t block = tinyfuse_4x2_block(left);
        int32_t i;
        for (i = 0; i < block; ++i) {
            (void)tinyfuse_widen(in, p->in_c / 4, columns + 4 * i, 8 * block, form);
            in += p->in_c;
        }
        tinyfuse_4x2_pixels(&m, weights, columns, p->in_c, out, block, form);
        out += block * p->out_c;
        left -= block;
    }
    tinyfuse_clamp_outputs(first, pixels * p->out_c, p->act_min, p->act_max);
}

TINYFUSE_INLINE void tinyfuse_conv_4x2_body(const tinyfuse_conv *p, const tinyfuse_conv *shared, const int8_t *in,
                                            int32_t y, int8_t *out_row, const int8_t *weights, const void *channels, void *scratch, int form)
{
    tinyfuse_matmul m = tinyfuse_matmul_of(p->out_c, p->out_zero_point, channels, form);
    const int32_t depth = (p->kernel_h * p->kernel_w * p->in_c + 3) & ~3;
    const int8_t **const rows = (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int8_t *const columns = (int8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES;
    int8_t *const bytes = columns + 8 * depth;
    const int inside = tinyfuse_window_rows(p, in, y, rows);
    int8_t *out = out_row;
    int32_t x;
    for (x = 0; x < p->out_w;) {
        const int32_t block = tinyfuse_4x2_block(p->out_w - x);
        tinyfuse_windows(p, shared, rows, inside, x, block, columns, bytes, form);
        tinyfuse_4x2_pixels(&m, weights, columns, depth, out, block, form);
        out += block * p->out_c;
        x += block;
    }
    tinyfuse_clamp_outputs(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
}

#define TINYFUSE_FUNCTIONS_4X2(of, form)                                                                           \
    TINYFUSE_SHARED void tinyfuse_pointwise_4x2_##of(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels, \
                                                      int8_t *out, const int8_t *weights, const void *channels,        \
                                                      void *scratch)                                                   \
    {                                                                                                                  \
        tinyfuse_pointwise_4x2_body(p, in, pixels, out, weights, channels, scratch, form);                         \
    }                                                                                                                  \
    TINYFUSE_SHARED void tinyfuse_conv_4x2_##of(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row, \
                                                 const int8_t *weights, const void *channels, void *scratch)           \
    {                                                                                                                  \
        tinyfuse_conv_4x2_body(p, p, in, y, out_row, weights, channels, scratch, form);                            \
    }
TINYFUSE_FUNCTIONS_4X2(lanes, TINYFUSE_LANES)
TINYFUSE_FUNCTIONS_4X2(single_rounding, TINYFUSE_SINGLE_ROUNDING)

/* Computes what tinyfuse_pointwise_s8 does by up to four pixels: p->block is 4, `form`, a constant, is
   TINYFUSE_SINGLE_ROUNDING or TINYFUSE_LANES. */
TINYFUSE_INLINE void tinyfuse_pointwise_4x2_s8(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels,
                                               int8_t *out, const int8_t *weights, const void *channels, void *scratch,
                                               int form)
{
    (form == TINYFUSE_SINGLE_ROUNDING ? tinyfuse_pointwise_4x2_single_rounding : tinyfuse_pointwise_4x2_lanes)(
        p, in, pixels, out, weights, channels, scratch);
}

/* Computes what tinyfuse_conv_packed_row_s8 does by up to four pixels: block_pixels is 4, `form` as in
   tinyfuse_pointwise_4x2_s8. */
TINYFUSE_INLINE void tinyfuse_conv_4x2_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                              const int8_t *weights, const void *channels, void *scratch,
                                              int32_t block_pixels, int form)
{
    const tinyfuse_conv own = *p;
    (void)block_pixels;
    if (tinyfuse_short_rows(p) != 0) {
        tinyfuse_conv_4x2_body(&own, p, in, y, out_row, weights, channels, scratch, form);
    } else {
        (form == TINYFUSE_SINGLE_ROUNDING ? tinyfuse_conv_4x2_single_rounding : tinyfuse_conv_4x2_lanes)(
            p, in, y, out_row, weights, channels, scratch);
    }
}

#endif
