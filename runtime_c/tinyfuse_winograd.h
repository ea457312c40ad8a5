/* 3x3 convolution with stride 1 by Winograd's minimal filtering F(2x2, 3x3), int8 NHWC, two output rows a call.
   For cores with the DSP extension: it takes weights of 16 bits. (Winograd 1980, "Arithmetic Complexity of
   Computations"; Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks", section 4.1.)

   A tile is 2x2 outputs; its patch are the 4x4 inputs d that they read. With filter g, per input channel,

       y = A [ (G g G') * (B d B') ] A'      * element by element, summed over the input channels

           1  0 -1  0        1    0    0
       B = 0  1  1  0    G = 1/2  1/2  1/2     A = 1  1  1  0
           0 -1  1  0        1/2 -1/2  1/2         0  1 -1 -1
           0  1  0 -1        0    0    1

   takes 16 multiplications where the four windows take 36. Everything here is integer: with 2G in the place of G, sums
   are exactly four times the convolution's. A transformed input lies within -512..511, a transformed weight within
   -1152..1152. Sums may leave int32 on their way, and wrap; in the end they are four times a convolution's sum, which
   the compiler has proven to lie within int32 (tinyfuse/kernels/layers/int8_dsp/winograd.py).

   Two tiles beside each other are a block: two rows of four outputs. Where the row's width is no multiple of four, the
   last block lies over a part of the one before.

   columns  [16][in_c / 4][2 tiles][4] int16: B d B', position (i, j) at 4 * i + (0, 1, 2, 3 for j = 1, 2, 0, 3); four
            inputs in the order 0 2 1 3. Aligned to 4.
   weights  [out_c / 2][16][in_c / 4][2][2 channels][2] int16: 2G g 2G' in the same order, less than 0 for j = 3: inputs
            0 2 of both channels, then inputs 1 3. Aligned to 4.
   sums     [4][2][2 channels][2 tiles] int32: row i of what is summed over positions, times A', one column of A' after
            the other. */
#ifndef TINYFUSE_WINOGRAD_H
#define TINYFUSE_WINOGRAD_H

#include "tinyfuse_conv.h"
#include "tinyfuse_matmul.h"

/* Outputs of a row of a block, and sums of a pair of channels. */
enum { TINYFUSE_WINOGRAD_BLOCK = 4, TINYFUSE_WINOGRAD_SUMS = 32 };

/* --- inputs ---------------------------------------------------------------------------------------- */

/* The addresses of a block's patches, two tiles beside each other: column by column, the inputs of its four rows. */
enum { TINYFUSE_WINOGRAD_PLACES = 24 };

#if TINYFUSE_DSP

/* Four channels at a time: B d of the six columns to the stack, then that times B'. r8 is the first of the channels.
   Columns: r9 places; r0 to r3 those of a column; r10, r11, r12, lr inputs 0 2 of its rows, r4 to r7 inputs 1 3.
   Rows: r9 is on the stack, r6 where position 0 goes, r7 bytes of a position; columns of the first tile in pairs of
   registers r0 r1, r2 r3, r4 r5, r10 r11, the second's go on at r4 r5; its positions from the last to the first. */
#define TINYFUSE_WINOGRAD_DOWN(at0, at1, at2, at3) \
    "ldm r9!,{r0-r3}\n"                            \
    "ldr r4,[r0,r8]\n"                             \
    "ldr r5,[r1,r8]\n"                             \
    "ldr r6,[r2,r8]\n"                             \
    "ldr r7,[r3,r8]\n"                             \
    "sxtb16 r10,r4\n"                              \
    "sxtb16 r11,r5\n"                              \
    "sxtb16 r12,r6\n"                              \
    "sxtb16 lr,r7\n"                               \
    "sxtb16 r4,r4,ror #8\n"                        \
    "sxtb16 r5,r5,ror #8\n"                        \
    "sxtb16 r6,r6,ror #8\n"                        \
    "sxtb16 r7,r7,ror #8\n"                        \
    "ssub16 r10,r10,r12\n"                         \
    "ssub16 r4,r4,r6\n"                            \
    "strd r10,r4,[sp,#" at0 "]\n"                  \
    "ssub16 lr,r11,lr\n"                           \
    "ssub16 r7,r5,r7\n"                            \
    "strd lr,r7,[sp,#" at3 "]\n"                   \
    "sadd16 r10,r11,r12\n"                         \
    "sadd16 r4,r5,r6\n"                            \
    "strd r10,r4,[sp,#" at1 "]\n"                  \
    "ssub16 r12,r12,r11\n"                         \
    "ssub16 r6,r6,r5\n"                            \
    "strd r12,r6,[sp,#" at2 "]\n"
#define TINYFUSE_WINOGRAD_ACROSS                   \
    "2:\n"                                         \
    "ldm r9!,{r0-r5,r10,r11}\n"                    \
    "sadd16 r12,r2,r4\n"                           \
    "sadd16 lr,r3,r5\n"                            \
    "strd r12,lr,[r6]\n"                           \
    "add r6,r7\n"                                  \
    "ssub16 r12,r4,r2\n"                           \
    "ssub16 lr,r5,r3\n"                            \
    "strd r12,lr,[r6]\n"                           \
    "add r6,r7\n"                                  \
    "ssub16 r0,r0,r4\n"                            \
    "ssub16 r1,r1,r5\n"                            \
    "strd r0,r1,[r6]\n"                            \
    "add r6,r7\n"                                  \
    "ssub16 r2,r2,r10\n"                           \
    "ssub16 r3,r3,r11\n"                           \
    "strd r2,r3,[r6]\n"                            \
    "ldm r9!,{r0-r3}\n"                            \
    "ssub16 r2,r10,r2\n"                           \
    "ssub16 r3,r11,r3\n"                           \
    "strd r2,r3,[r6,#8]\n"                         \
    "sub r6,r6,r7\n"                               \
    "ssub16 r4,r4,r0\n"                            \
    "ssub16 r5,r5,r1\n"                            \
    "strd r4,r5,[r6,#8]\n"                         \
    "sub r6,r6,r7\n"                               \
    "ssub16 r12,r0,r10\n"                          \
    "ssub16 lr,r1,r11\n"                           \
    "strd r12,lr,[r6,#8]\n"                        \
    "sub r6,r6,r7\n"                               \
    "sadd16 r12,r10,r0\n"                          \
    "sadd16 lr,r11,r1\n"                           \
    "strd r12,lr,[r6,#8]\n"                        \
    "add r6,r6,r7,lsl #2\n"                        \
    "add r12,sp,#192\n"                            \
    "cmp r9,r12\n"                                 \
    "bne 2b\n"

/* Computes the columns of a block. */
TINYFUSE_SHARED void tinyfuse_winograd_columns(const int8_t *const *places, int32_t in_c, int16_t *columns)
{
    register const int8_t *const *r0 __asm("r0") = places;
    register int32_t r1 __asm("r1") = in_c;
    register int16_t *r2 __asm("r2") = columns;
    __asm volatile("push {r0-r11,lr}\n"
                   "sub sp,#192\n"
                   "mov r8,#0\n"
                   "1:\n"
                   "ldr r9,[sp,#192]\n"
                   TINYFUSE_WINOGRAD_DOWN("0", "48", "96", "144")
                   TINYFUSE_WINOGRAD_DOWN("8", "56", "104", "152")
                   TINYFUSE_WINOGRAD_DOWN("16", "64", "112", "160")
                   TINYFUSE_WINOGRAD_DOWN("24", "72", "120", "168")
                   TINYFUSE_WINOGRAD_DOWN("32", "80", "128", "176")
                   TINYFUSE_WINOGRAD_DOWN("40", "88", "136", "184")
                   "ldrd r7,r6,[sp,#196]\n"
                   "mov r9,sp\n"
                   "add r6,r6,r8,lsl #2\n"
                   "lsl r7,r7,#2\n"
                   TINYFUSE_WINOGRAD_ACROSS
                   "ldr r12,[sp,#196]\n"
                   "add r8,#4\n"
                   "cmp r8,r12\n"
                   "bne 1b\n"
                   "add sp,#192\n"
                   "pop {r0-r11,lr}\n"
                   :
                   : "r"(r0), "r"(r1), "r"(r2)
                   : "r12", "cc", "memory");
}

#else

/* The same in C. */
TINYFUSE_SHARED void tinyfuse_winograd_columns(const int8_t *const *places, int32_t in_c, int16_t *columns)
{
    static const int32_t order[4] = {1, 2, 0, 3}, channel[4] = {0, 2, 1, 3};
    const int32_t position = 2 * in_c;
    int32_t c, k, i, j, tile;
    for (c = 0; c < in_c; c += 4) {
        for (k = 0; k < 4; ++k) {
            const int32_t at = c + channel[k];
            int32_t down[4][6];
            for (j = 0; j < 6; ++j) {
                const int8_t *const *const place = places + 4 * j;
                down[0][j] = place[0][at] - place[2][at];
                down[1][j] = place[1][at] + place[2][at];
                down[2][j] = place[2][at] - place[1][at];
                down[3][j] = place[1][at] - place[3][at];
            }
            for (i = 0; i < 4; ++i) {
                for (tile = 0; tile < 2; ++tile) {
                    const int32_t *const d = down[i] + 2 * tile;
                    const int32_t across[4] = {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]};
                    for (j = 0; j < 4; ++j) {
                        columns[(4 * i + j) * position + 2 * c + 4 * tile + k] = (int16_t)across[order[j]];
                    }
                }
            }
        }
    }
}

#endif

/* Lists the addresses of a block whose patches begin with input column x. rows[4] point to input rows; NULL is
   padding, whose in_c inputs lie at `padding`. */
TINYFUSE_INLINE void tinyfuse_winograd_places(const int8_t *const *rows, int32_t x, int32_t in_w, int32_t in_c,
                                              const int8_t *padding, const int8_t **places)
{
    int32_t r, j;
    for (r = 0; r < 4; ++r) {
        for (j = 0; j < 6; ++j) {
            const int there = rows[r] != NULL && x + j >= 0 && x + j < in_w;
            places[4 * j + r] = there ? rows[r] + (x + j) * in_c : padding;
        }
    }
}

/* --- sums ------------------------------------------------------------------------------------------ */

#if TINYFUSE_DSP

/* Computes the 16 positions of a block for a pair of channels; returns the weights of the next pair. A step
   multiplies four inputs of a position: r0 columns, r1 weights; sums of the first channel's tiles in r2 and r3, of
   the second's in r4 and r5; r6, r7 and r12, lr inputs of the two tiles; r8 to r11 weights. A row's position 1 is
   summed first. With position 2 added, that is the sum of both; twice the first less that, the difference. Position 0
   is added to the sum, and position 3 subtracted from the difference. (Short lines: a string of C99 has 4,095
   characters.)

   On the stack: four sums; from byte 16 the destination of sums, the end of the columns, of this position, bytes of a
   position. */
#define TINYFUSE_WINOGRAD_STEP                \
    "ldm r1!,{r8-r11}\n"                     \
    "ldm r0!,{r6,r7,r12,lr}\n"               \
    "smlad r2,r6,r8,r2\n"                    \
    "smlad r4,r6,r9,r4\n"                    \
    "smlad r3,r12,r8,r3\n"                   \
    "smlad r5,r12,r9,r5\n"                   \
    "smlad r2,r7,r10,r2\n"                   \
    "smlad r4,r7,r11,r4\n"                   \
    "smlad r3,lr,r10,r3\n"                   \
    "smlad r5,lr,r11,r5\n"
#define TINYFUSE_WINOGRAD_STEPS_1 TINYFUSE_WINOGRAD_STEP
#define TINYFUSE_WINOGRAD_STEPS_2 TINYFUSE_WINOGRAD_STEP TINYFUSE_WINOGRAD_STEP
#define TINYFUSE_WINOGRAD_STEPS_4 TINYFUSE_WINOGRAD_STEPS_2 TINYFUSE_WINOGRAD_STEPS_2
#define TINYFUSE_WINOGRAD_LOOP(steps)         \
    "2:\n\t" steps                            \
    "ldrd r6, r7, [sp, #24]\n\t"              \
    "cmp r0, r6\n\t"                          \
    "bne 2b\n\t"                              \
    "add r6, r7\n\t"                          \
    "str r6, [sp, #24]\n\t"
#define TINYFUSE_WINOGRAD_PUT                 \
    "ldr r12, [sp, #16]\n\t"                  \
    "stm r12!, {r2, r3, r4, r5}\n\t"          \
    "str r12, [sp, #16]\n\t"
#define TINYFUSE_WINOGRAD_ASM(rows, position)                                         \
    "push {r0, r2-r11, lr}\n\t"                                                       \
    "lsl r5, r3, #4\n\t"                                                              \
    "add r4, r0, r5\n\t"                                                              \
    "add r3, r0, r5, lsl #2 + " rows "\n\t"                                           \
    "push {r2, r3, r4, r5}\n\t"                                                       \
    "sub sp, #16\n\t"                                                                 \
    "1:\n\t"                                                                          \
    "movs r2, #0\n\t"                                                                 \
    "movs r3, #0\n\t"                                                                 \
    "movs r4, #0\n\t"                                                                 \
    "movs r5, #0\n\t" position                                                        \
    "stm sp, {r2, r3, r4, r5}\n\t" position                                           \
    "ldm sp, {r8, r9, r10, r11}\n\t"                                                  \
    "rsb r8, r2, r8, lsl #1\n\t"                                                      \
    "rsb r9, r3, r9, lsl #1\n\t"                                                      \
    "rsb r10, r4, r10, lsl #1\n\t"                                                    \
    "rsb r11, r5, r11, lsl #1\n\t"                                                    \
    "stm sp, {r8, r9, r10, r11}\n\t" position TINYFUSE_WINOGRAD_PUT                   \
    "ldm sp, {r2, r3, r4, r5}\n\t" position TINYFUSE_WINOGRAD_PUT                     \
    "ldr r12, [sp, #20]\n\t"                                                          \
    "cmp r0, r12\n\t"                                                                 \
    "bne 1b\n\t"                                                                      \
    "add sp, #32\n\t"                                                                 \
    "pop {r0, r2-r11, lr}\n\t"

/* `steps` is in_c / 4, for positions in loops any multiple of what an iteration takes; `rows` of positions: four ("2"), or
   one ("0", tinyfuse_winograd_1d.h). The statement is that of tinyfuse_common.h with three operands more. */
#define TINYFUSE_WINOGRAD_SUMS_OF(name, rows, position)                                                 \
    TINYFUSE_SHARED const int16_t *name(const int16_t *columns, const int16_t *weights, int32_t *sums,  \
                                        int32_t steps)                                                  \
    {                                                                                                   \
        register const int16_t *r0 __asm("r0") = columns;                                               \
        register const int16_t *r1 __asm("r1") = weights;                                               \
        register int32_t *r2 __asm("r2") = sums;                                                        \
        register int32_t r3 __asm("r3") = steps;                                                        \
        __asm volatile(TINYFUSE_WINOGRAD_ASM(rows, position)                                            \
                       : "+r"(r1)                                                                       \
                       : "r"(r0), "r"(r2), "r"(r3)                                                      \
                       : "r12", "cc", "memory");                                                        \
        return r1;                                                                                      \
    }

/* Defines the function of that name for any number of steps, a constant. Exactly four, as 16 input channels have,
   need no loop. */
#define TINYFUSE_WINOGRAD_FUNCTION(name, rows)                                                          \
    TINYFUSE_WINOGRAD_SUMS_OF(name##_four, rows, TINYFUSE_WINOGRAD_STEPS_4)                             \
    TINYFUSE_WINOGRAD_SUMS_OF(name##_by_4, rows, TINYFUSE_WINOGRAD_LOOP(TINYFUSE_WINOGRAD_STEPS_4))     \
    TINYFUSE_WINOGRAD_SUMS_OF(name##_by_2, rows, TINYFUSE_WINOGRAD_LOOP(TINYFUSE_WINOGRAD_STEPS_2))     \
    TINYFUSE_WINOGRAD_SUMS_OF(name##_by_1, rows, TINYFUSE_WINOGRAD_LOOP(TINYFUSE_WINOGRAD_STEPS_1))     \
    TINYFUSE_INLINE const int16_t *name(const int16_t *columns, const int16_t *weights, int32_t *sums,  \
                                        int32_t steps)                                                  \
    {                                                                                                   \
        if (steps == 4) {                                                                               \
            return name##_four(columns, weights, sums, steps);                                          \
        }                                                                                               \
        if (steps % 4 == 0) {                                                                           \
            return name##_by_4(columns, weights, sums, steps);                                          \
        }                                                                                               \
        if (steps % 2 == 0) {                                                                           \
            return name##_by_2(columns, weights, sums, steps);                                          \
        }                                                                                               \
        return name##_by_1(columns, weights, sums, steps);                                              \
    }
TINYFUSE_WINOGRAD_FUNCTION(tinyfuse_winograd_sums, "2")

#else

/* Computes the positions of a block for a pair of channels in C, for `rows` rows of positions. */
TINYFUSE_SHARED const int16_t *tinyfuse_winograd_sums_c(const int16_t *columns, const int16_t *weights, int32_t *sums,
                                                        int32_t steps, int32_t rows)
{
    int32_t i, j, step, channel, tile, k;
    for (i = 0; i < rows; ++i) {
        uint32_t at[4][4]; /* sums of a position: the tiles of each channel */
        memset(at, 0, sizeof at);
        for (j = 0; j < 4; ++j) {
            for (step = 0; step < steps; ++step) {
                for (channel = 0; channel < 2; ++channel) {
                    for (tile = 0; tile < 2; ++tile) {
                        const int16_t *const x = columns + 4 * tile, *const w = weights + 2 * channel;
                        for (k = 0; k < 4; ++k) {
                            at[j][2 * channel + tile] += (uint32_t)(x[k] * w[k / 2 * 4 + k % 2]);
                        }
                    }
                }
                columns += 8;
                weights += 8;
            }
        }
        for (k = 0; k < 4; ++k) {
            sums[k] = (int32_t)(at[0][k] + at[1][k] + at[2][k]);
            sums[4 + k] = (int32_t)(at[0][k] - at[1][k] + at[3][k]);
        }
        sums += 8;
    }
    return weights;
}

TINYFUSE_INLINE const int16_t *tinyfuse_winograd_sums(const int16_t *columns, const int16_t *weights, int32_t *sums,
                                                      int32_t steps)
{
    return tinyfuse_winograd_sums_c(columns, weights, sums, steps, 4);
}

#endif

/* --- outputs --------------------------------------------------------------------------------------- */

/* The job of a pair of channels' outputs; assembly knows the offsets. `next` may be `out`, which is written after it:
   then the lower row is lost. */
typedef struct {
    int32_t rounding; /* tinyfuse_matmul_rounding */
    const void *channels;
    const int32_t *sums;
    int8_t *out;
    int8_t *next;
    int32_t two; /* bytes from an output to the next but one */
} tinyfuse_winograd_outputs;

#if TINYFUSE_DSP

typedef char tinyfuse_check_winograd_outputs[offsetof(tinyfuse_winograd_outputs, two) == 20 ? 1 : -1];
/* Requantizes the outputs of one column of each tile, in both rows, from the channel's sums at byte `at` (r0): r3 and
   r4 are the upper row's, r5 and r6 the lower row's. r1 and r2 are the destinations, lr is two outputs. r9 bias, r10
   multiplier; with single rounding r11 rounding, else r11 shift, r12 rounding << shift. */
#define TINYFUSE_WINOGRAD_UP(at0, at1, at2, at3, output)         \
    "ldrd r3, r4, [r0, #" at0 "]\n\t"                            \
    "ldrd r5, r6, [r0, #" at1 "]\n\t"                            \
    "ldrd r7, r8, [r0, #" at2 "]\n\t"                            \
    "add r3, r5\n\t"                                             \
    "add r4, r6\n\t"                                             \
    "add r3, r7\n\t"                                             \
    "add r4, r8\n\t"                                             \
    "subs r5, r5, r7\n\t"                                        \
    "sub r6, r8\n\t"                                             \
    "ldrd r7, r8, [r0, #" at3 "]\n\t"                            \
    "subs r5, r5, r7\n\t"                                        \
    "sub r6, r8\n\t" output("r5") output("r6") output("r3") output("r4") \
    "strb r5, [r2]\n\t"                                          \
    "strb r6, [r2, lr]\n\t"                                      \
    "strb r3, [r1]\n\t"                                          \
    "strb r4, [r1, lr]\n\t"
#define TINYFUSE_WINOGRAD_SINGLE_ROUNDING(s)        \
    "add " s ", r9, " s ", lsl #6\n\t"        \
    "smmla " s ", " s ", r10, r11\n\t"        \
    TINYFUSE_SINGLE_ROUNDING_SATURATE(s)
#define TINYFUSE_WINOGRAD_BOUNDED(s)          \
    "add " s ", r9, " s ", asr #2\n\t"        \
    "add r7, " s ", r12\n\t"                  \
    "add r7, r7, " s ", asr #31\n\t"          \
    "smmlar " s ", " s ", r10, r7\n\t"        \
    "asr " s ", r11\n\t"                      \
    "ssat " s ", #8, " s ", asr #1\n\t"
/* The first channel's columns, then the second's from the right. */
#define TINYFUSE_WINOGRAD_OUTPUTS(first, second, output)                                           \
    {                                                                                              \
        TINYFUSE_ARGUMENT(const tinyfuse_winograd_outputs *, arguments, s);                        \
        __asm volatile(TINYFUSE_ASM_BEGIN                                                          \
                       "ldm r0, {r4, r8, r9, r10, r11, r12}\n\t"                                   \
                       "mov r0, r9\n\t"                                                            \
                       "mov r1, r10\n\t"                                                           \
                       "mov r2, r11\n\t"                                                           \
                       "mov lr, r12\n\t" first                                                     \
                       TINYFUSE_WINOGRAD_UP("0", "32", "64", "96", output)                         \
                       "add r1, r1, lr, lsr #1\n\t"                                                \
                       "add r2, r2, lr, lsr #1\n\t"                                                \
                       TINYFUSE_WINOGRAD_UP("16", "48", "80", "112", output)                       \
                       "adds r1, r1, #1\n\t"                                                       \
                       "adds r2, r2, #1\n\t" second                                                \
                       TINYFUSE_WINOGRAD_UP("24", "56", "88", "120", output)                       \
                       "sub r1, r1, lr, lsr #1\n\t"                                                \
                       "sub r2, r2, lr, lsr #1\n\t"                                                \
                       TINYFUSE_WINOGRAD_UP("8", "40", "72", "104", output) TINYFUSE_ASM_END       \
                       :                                                                           \
                       : "r"(arguments)                                                            \
                       : TINYFUSE_ASM_CLOBBERS);                                                   \
    }
/* Constants of both channels: r4 is the rounding, r8 the pair's channels; the second's come from the argument. */
#define TINYFUSE_WINOGRAD_FIRST_LINE "mov r11, r4\n\tldrd r9, r10, [r8]\n\t"
#define TINYFUSE_WINOGRAD_SECOND_LINE "ldr r8, [sp]\n\tldr r8, [r8, #4]\n\tldrd r9, r10, [r8, #8]\n\t"
#define TINYFUSE_WINOGRAD_FIRST_BOUNDED "ldm r8, {r9, r10, r11}\n\tlsl r12, r4, r11\n\t"
#define TINYFUSE_WINOGRAD_SECOND_BOUNDED \
    "ldr r8, [sp]\n\tldrd r4, r8, [r8]\n\tadd r8, #12\n\t" TINYFUSE_WINOGRAD_FIRST_BOUNDED

#else

/* Returns the output of four times a convolution's sum. */
TINYFUSE_INLINE int8_t tinyfuse_winograd_output(const void *channels, int32_t channel, uint32_t four_times,
                                                int32_t rounding, int form)
{
    const uint32_t bias = (uint32_t)tinyfuse_channel_bias(channels, channel, form);
    const uint32_t sum = form == TINYFUSE_SINGLE_ROUNDING ? four_times << 6 : (uint32_t)((int32_t)four_times >> 2);
    return tinyfuse_channel_output(channels, channel, (int32_t)(bias + sum), rounding, form);
}

#endif

/* Stores two rows of a block's outputs of a pair of channels. */
TINYFUSE_INLINE void tinyfuse_winograd_put(const tinyfuse_winograd_outputs *s, int form)
{
#if TINYFUSE_DSP
    if (form == TINYFUSE_SINGLE_ROUNDING) {
        TINYFUSE_WINOGRAD_OUTPUTS(TINYFUSE_WINOGRAD_FIRST_LINE, TINYFUSE_WINOGRAD_SECOND_LINE,
                                  TINYFUSE_WINOGRAD_SINGLE_ROUNDING)
    } else {
        TINYFUSE_WINOGRAD_OUTPUTS(TINYFUSE_WINOGRAD_FIRST_BOUNDED, TINYFUSE_WINOGRAD_SECOND_BOUNDED,
                                  TINYFUSE_WINOGRAD_BOUNDED)
    }
#else
    int32_t x, channel;
    for (x = 0; x < TINYFUSE_WINOGRAD_BLOCK; ++x) {
        for (channel = 0; channel < 2; ++channel) {
            const int32_t *const at = s->sums + x % 2 * 4 + 2 * channel + x / 2;
            const uint32_t a = (uint32_t)at[0], b = (uint32_t)at[8], c = (uint32_t)at[16], d = (uint32_t)at[24];
            const int32_t to = x * (s->two / 2) + channel;
            s->next[to] = tinyfuse_winograd_output(s->channels, channel, b - c - d, s->rounding, form);
            s->out[to] = tinyfuse_winograd_output(s->channels, channel, a + b + c, s->rounding, form);
        }
    }
#endif
}

TINYFUSE_SHARED void tinyfuse_winograd_put_single_rounding(const tinyfuse_winograd_outputs *s)
{
    tinyfuse_winograd_put(s, TINYFUSE_SINGLE_ROUNDING);
}

TINYFUSE_SHARED void tinyfuse_winograd_put_bounded(const tinyfuse_winograd_outputs *s)
{
    tinyfuse_winograd_put(s, TINYFUSE_WIDE);
}

/* --- rows ------------------------------------------------------------------------------------------ */

/* Computes output rows y and y + 1 to `out` and `next`; where there is no row y + 1, `next` is `out`. in_c is a
   multiple of 4, out_c of 2, out_w at least 4. `form` is TINYFUSE_SINGLE_ROUNDING, with tinyfuse_single_rounding
   channels, or TINYFUSE_WIDE, with tinyfuse_requant of the bounded form. Reads only the input rows of the windows of
   y and y + 1 that exist, writes only the out_w * out_c bytes of each row. scratch, aligned to 4: 65 * in_c bytes. */
TINYFUSE_INLINE void tinyfuse_winograd_rows_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out,
                                               int8_t *next, const int8_t *weights, const void *channels,
                                               void *scratch, int form)
{
    const size_t channel_bytes = tinyfuse_channel_bytes(form);
    int16_t *const columns = (int16_t *)scratch;
    int8_t *const padding = (int8_t *)scratch + 64 * p->in_c;
    const int8_t *places[TINYFUSE_WINOGRAD_PLACES];
    int32_t sums[TINYFUSE_WINOGRAD_SUMS];
    const int8_t *rows[4];
    tinyfuse_winograd_outputs s;
    int32_t r, x;
    for (r = 0; r < 4; ++r) {
        const int32_t iy = y - p->pad_top + r;
        const int read = r < 3 || next != out;
        rows[r] = read && iy >= 0 && iy < p->in_h ? tinyfuse_ring_row(in, iy, p->in_ring, p->in_w * p->in_c) : NULL;
    }
    memset(padding, p->in_zero_point, (size_t)p->in_c);
    s.rounding = tinyfuse_matmul_rounding(p->out_zero_point, form);
    s.sums = sums;
    s.two = 2 * p->out_c;
    for (x = 0; x < p->out_w; x += TINYFUSE_WINOGRAD_BLOCK) {
        const int32_t from = tinyfuse_min(x, p->out_w - TINYFUSE_WINOGRAD_BLOCK);
        const int16_t *w = (const int16_t *)(const void *)weights;
        int8_t *const end = out + (from + 1) * p->out_c;
        tinyfuse_winograd_places(rows, from - p->pad_left, p->in_w, p->in_c, padding, places);
        tinyfuse_winograd_columns(places, p->in_c, columns);
        s.channels = channels;
        s.next = next + from * p->out_c;
        for (s.out = out + from * p->out_c; s.out != end; s.out += 2) {
            w = tinyfuse_winograd_sums(columns, w, sums, p->in_c / 4);
            if (form == TINYFUSE_SINGLE_ROUNDING) {
                tinyfuse_winograd_put_single_rounding(&s);
            } else {
                tinyfuse_winograd_put_bounded(&s);
            }
            s.channels = (const int8_t *)s.channels + 2 * channel_bytes;
            s.next += 2;
        }
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(out, p->out_w * p->out_c, p->act_min, p->act_max);
        tinyfuse_clamp_row(next, p->out_w * p->out_c, p->act_min, p->act_max);
    }
}

#endif
