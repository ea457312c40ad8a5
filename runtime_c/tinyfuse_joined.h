/* The inner product of layers for cores without the DSP extension, two channels' weights in a word of flash: one
   multiplication is two.

   The word of weights v, w of an input x is v + 65536 w, so that its product with x is v x + 65536 w x. The sum of two
   such products, q, has sums of two products in its halves: that in the lower half lies within -2^15..2^15 - 1, for the
   compiler has proven that no two weights are -128 (tinyfuse/kernels/joined.py), so that (q + 2^15) >> 16 is the upper
   one exactly. These are added up, and so are the q, which may wrap: less 65536 times the upper sum they are the lower
   one.

   weights  [out_c / 2][depth] int32; depth is a multiple of 4, out_c of 2
   columns  [depth / 2][pixels][2] int32, the inputs of one or two pixels
   channels [out_c] tinyfuse_step_line or tinyfuse_requant, of forms of bytes (tinyfuse_matmul.h) */
#ifndef TINYFUSE_JOINED_H
#define TINYFUSE_JOINED_H

#include "tinyfuse_matmul.h"

/* A pair of channels of one or two pixels; assembly knows the offsets. */
typedef struct {
    const int32_t *columns;
    const int32_t *weights;     /* 4: of the pair; then of the next one */
    const int32_t *columns_end; /* 8 */
    int32_t depth;              /* 12 */
    int32_t sums[4];            /* 16: of the upper channel, of each of two pixels; then of the lower one */
} tinyfuse_joined;

#if TINYFUSE_THUMB1

/* In the loop: r0 columns, r1 weights, r2 and r3 upper sums of two pixels, r8 and r9 sums of q; r4, r5 weights, r6, r7
   inputs; r10 the end of the columns. The shift leaves bit 15 in the carry, which ADCS adds. */
#define TINYFUSE_JOINED_PIXEL(all, upper)  \
    "ldmia r0!, {r6, r7}\n\t"              \
    "muls r6, r4, r6\n\t"                  \
    "muls r7, r5, r7\n\t"                  \
    "adds r6, r6, r7\n\t"                  \
    "add " all ", r6\n\t"                  \
    "asrs r6, r6, #16\n\t"                 \
    "adcs " upper ", r6\n\t"
#define TINYFUSE_JOINED_TWO_1 "ldmia r1!, {r4, r5}\n\t" TINYFUSE_JOINED_PIXEL("r8", "r2")
#define TINYFUSE_JOINED_TWO_2 TINYFUSE_JOINED_TWO_1 TINYFUSE_JOINED_PIXEL("r9", "r3")
#define TINYFUSE_JOINED_ASM(n, p)                                                      \
    {                                                                                  \
        TINYFUSE_ARGUMENT(tinyfuse_joined *, arguments, p);                            \
        __asm volatile(".syntax unified\n\t"                                           \
                       "push {r0, r4-r7}\n\t"                                          \
                       "mov r4, r8\n\t"                                                \
                       "mov r5, r9\n\t"                                                \
                       "mov r6, r10\n\t"                                               \
                       "push {r4-r6}\n\t"                                              \
                       "ldmia r0!, {r1, r2, r3, r4}\n\t"                               \
                       "mov r0, r1\n\t"                                                \
                       "mov r1, r2\n\t"                                                \
                       "mov r10, r3\n\t"                                               \
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
                       "1:\n\t" TINYFUSE_JOINED_TWO_##n TINYFUSE_JOINED_TWO_##n        \
                       "2:\n\t" TINYFUSE_JOINED_TWO_##n TINYFUSE_JOINED_TWO_##n        \
                       "3:\n\t" TINYFUSE_JOINED_TWO_##n TINYFUSE_JOINED_TWO_##n        \
                       "4:\n\t" TINYFUSE_JOINED_TWO_##n TINYFUSE_JOINED_TWO_##n        \
                       "cmp r0, r10\n\t"                                               \
                       "bne 1b\n\t"                                                    \
                       "mov r4, r8\n\t"                                                \
                       "lsls r6, r2, #16\n\t"                                          \
                       "subs r4, r4, r6\n\t"                                           \
                       "mov r5, r9\n\t"                                                \
                       "lsls r6, r3, #16\n\t"                                          \
                       "subs r5, r5, r6\n\t"                                           \
                       "ldr r0, [sp, #12]\n\t"                                         \
                       "str r1, [r0, #4]\n\t"                                          \
                       "adds r0, #16\n\t"                                              \
                       "stmia r0!, {r2, r3, r4, r5}\n\t"                               \
                       "pop {r4-r6}\n\t"                                               \
                       "mov r8, r4\n\t"                                                \
                       "mov r9, r5\n\t"                                                \
                       "mov r10, r6\n\t"                                               \
                       "pop {r0, r4-r7}\n\t"                                           \
                       :                                                               \
                       : "r"(arguments)                                                \
                       : "r1", "r2", "r3", "cc", "memory");                            \
    }

#elif TINYFUSE_THUMB2

/* In the loop: r0 columns, r1 weights; r2, r3 sum of q and upper sum of a pixel, r4, r5 of another one; r6, r7 weights,
   r8 to r11 inputs; r12 2^15, lr the end of the columns. Sums of q begin with what the 2^15 will add. */
#define TINYFUSE_JOINED_PIXEL(a, b, all, upper)          \
    "mla " a ", " a ", r6, r12\n\t"                      \
    "mla " a ", " b ", r7, " a "\n\t"                    \
    "add " all ", " a "\n\t"                             \
    "add " upper ", " upper ", " a ", asr #16\n\t"
#define TINYFUSE_JOINED_TWO_1 \
    "ldm r1!, {r6, r7}\n\tldm r0!, {r8, r9}\n\t" TINYFUSE_JOINED_PIXEL("r8", "r9", "r2", "r3")
#define TINYFUSE_JOINED_TWO_2                                                                           \
    "ldm r1!, {r6, r7}\n\tldm r0!, {r8, r9, r10, r11}\n\t" TINYFUSE_JOINED_PIXEL("r8", "r9", "r2", "r3") \
    TINYFUSE_JOINED_PIXEL("r10", "r11", "r4", "r5")
#define TINYFUSE_JOINED_ASM(n, p)                                                      \
    {                                                                                  \
        TINYFUSE_ARGUMENT(tinyfuse_joined *, arguments, p);                            \
        __asm volatile(TINYFUSE_ASM_BEGIN                                              \
                       "ldrd lr, r6, [r0, #8]\n\t"                                     \
                       "ldrd r0, r1, [r0]\n\t"                                         \
                       "lsl r2, r6, #14\n\t"                                           \
                       "rsb r2, r2, #0\n\t"                                            \
                       "mov r4, r2\n\t"                                                \
                       "mov r3, #0\n\t"                                                \
                       "mov r5, #0\n\t"                                                \
                       "mov r12, #0x8000\n\t"                                          \
                       "lsls r6, r6, #29\n\t"                                          \
                       "bcc 5f\n\t"                                                    \
                       "bmi 2f\n\t"                                                    \
                       "b 3f\n\t"                                                      \
                       "5:\n\t"                                                        \
                       "bmi 4f\n\t"                                                    \
                       "1:\n\t" TINYFUSE_JOINED_TWO_##n TINYFUSE_JOINED_TWO_##n        \
                       "2:\n\t" TINYFUSE_JOINED_TWO_##n TINYFUSE_JOINED_TWO_##n        \
                       "3:\n\t" TINYFUSE_JOINED_TWO_##n TINYFUSE_JOINED_TWO_##n        \
                       "4:\n\t" TINYFUSE_JOINED_TWO_##n TINYFUSE_JOINED_TWO_##n        \
                       "cmp r0, lr\n\t"                                                \
                       "bne 1b\n\t"                                                    \
                       "ldr r0, [sp]\n\t"                                              \
                       "sub r2, r2, r3, lsl #16\n\t"                                   \
                       "sub r4, r4, r5, lsl #16\n\t"                                   \
                       "str r1, [r0, #4]\n\t"                                          \
                       "strd r3, r5, [r0, #16]\n\t"                                    \
                       "strd r2, r4, [r0, #24]\n\t" TINYFUSE_ASM_END                   \
                       :                                                               \
                       : "r"(arguments)                                                \
                       : TINYFUSE_ASM_CLOBBERS);                                       \
    }

#else

/* The same in C. */
TINYFUSE_INLINE void tinyfuse_joined_sums_c(tinyfuse_joined *s, int pixels)
{
    const int32_t *w = s->weights;
    uint32_t all[2] = {0, 0}, upper[2] = {0, 0};
    const int32_t *x = s->columns;
    int32_t i;
    for (; x != s->columns_end; w += 2) {
        for (i = 0; i < pixels; ++i) {
            const uint32_t q = (uint32_t)x[0] * (uint32_t)w[0] + (uint32_t)x[1] * (uint32_t)w[1];
            all[i] += q;
            upper[i] += (uint32_t)((int32_t)(q + 0x8000u) >> 16);
            x += 2;
        }
    }
    for (i = 0; i < pixels; ++i) {
        s->sums[i] = (int32_t)upper[i];
        s->sums[2 + i] = (int32_t)(all[i] - (upper[i] << 16));
    }
    s->weights = w;
}
#define TINYFUSE_JOINED_ASM(n, p) tinyfuse_joined_sums_c(p, n);

#endif

#if TINYFUSE_THUMB1 || TINYFUSE_THUMB2
typedef char tinyfuse_check_joined[offsetof(tinyfuse_joined, sums) == 16 ? 1 : -1];
#endif

/* The next pair of channels of so many pixels. */
TINYFUSE_SHARED void tinyfuse_joined_1(tinyfuse_joined *s)
{
    TINYFUSE_JOINED_ASM(1, s)
}

TINYFUSE_SHARED void tinyfuse_joined_2(tinyfuse_joined *s)
{
    TINYFUSE_JOINED_ASM(2, s)
}

/* 4 * words inputs of a pixel to its column: two to each `step` words from `to`, with step = 2 * pixels. Returns the next
   place. */
TINYFUSE_SHARED int32_t *tinyfuse_joined_column(const int8_t *from, int32_t words, int32_t *to, int32_t step)
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

/* All channels of one or two pixels, whose columns are filled, to out [pixels][out_c]. `form` is a constant. */
TINYFUSE_INLINE void tinyfuse_joined_block(tinyfuse_joined *s, const int32_t *weights, const void *channels,
                                           int8_t *out, int32_t out_c, int32_t rounding, int32_t pixels, int form)
{
    int32_t o;
    s->weights = weights;
    s->columns_end = s->columns + pixels * s->depth;
    for (o = 0; o < out_c; o += 2) {
        const int32_t lower = tinyfuse_channel_bias(channels, o, form);
        const int32_t upper = tinyfuse_channel_bias(channels, o + 1, form);
        if (pixels == 2) {
            tinyfuse_joined_2(s);
            out[out_c] = tinyfuse_channel_output(channels, o, s->sums[3] + lower, rounding, form);
            out[out_c + 1] = tinyfuse_channel_output(channels, o + 1, s->sums[1] + upper, rounding, form);
        } else {
            tinyfuse_joined_1(s);
        }
        out[0] = tinyfuse_channel_output(channels, o, s->sums[2] + lower, rounding, form);
        out[1] = tinyfuse_channel_output(channels, o + 1, s->sums[0] + upper, rounding, form);
        out += 2;
    }
}

#define TINYFUSE_JOINED_BLOCK(name, form)                                                                       \
    TINYFUSE_SHARED void name(tinyfuse_joined *s, const int32_t *weights, const void *channels, int8_t *out,    \
                              int32_t out_c, int32_t rounding, int32_t pixels)                                  \
    {                                                                                                           \
        tinyfuse_joined_block(s, weights, channels, out, out_c, rounding, pixels, form);                        \
    }
TINYFUSE_JOINED_BLOCK(tinyfuse_joined_block_bytes, TINYFUSE_BYTES)
TINYFUSE_JOINED_BLOCK(tinyfuse_joined_block_step_line, TINYFUSE_BYTES_STEP_LINE)

/* The same by the function of a form. */
TINYFUSE_INLINE void tinyfuse_joined_pixels(tinyfuse_joined *s, const int32_t *weights, const void *channels,
                                            int8_t *out, int32_t out_c, int32_t rounding, int32_t pixels, int form)
{
    if (form == TINYFUSE_BYTES) {
        tinyfuse_joined_block_bytes(s, weights, channels, out, out_c, rounding, pixels);
    } else {
        tinyfuse_joined_block_step_line(s, weights, channels, out, out_c, rounding, pixels);
    }
}

#endif
