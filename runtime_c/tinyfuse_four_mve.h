/* The inner product of 1x1 convolutions for Helium: four pixels of int8 inputs times two output channels. A channel's
   constants are scalars, and both channels' outputs of four pixels are requantized and stored together.

   weights  [out_c / 2][ceil(depth / 16)][2][16], zeros beyond the depth
   channels [out_c][3] int32: bias with -zero point * sum of weights folded in, multiplier, shift (at most 0)

   Where outputs are looked up as they are stored:

   channels [out_c / 2][7] int32: those of both channels, then where their tables begin: of the first one in bits 0 to 15,
            of the second one in the others, in 256ths of `tables`
   tables   [tables][256], of values from 0 to 127, then from -128 to -1
*/
#ifndef TINYFUSE_FOUR_MVE_H
#define TINYFUSE_FOUR_MVE_H

#include "tinyfuse_conv.h"
#include "tinyfuse_half_even.h"

/* in depth, out_c and out's clamp; `pitch`: bytes from a pixel's inputs to the next one's */
typedef struct {
    int32_t depth, out_c, pitch, out_zero_point, act_min, act_max;
} tinyfuse_four_mve;

/* pixels at a time; channels at a time; inputs that are multiplied at once, and four times as many in an iteration */
enum { TINYFUSE_FOUR_PIXELS = 4 };
enum { TINYFUSE_FOUR_CHANNELS = 2 };
/* pixels at most that are computed one by one, eight channels at a time where these are a multiple of eight */
enum { TINYFUSE_FOUR_ALONE = 2 };
enum { TINYFUSE_FOUR_BLOCK = 16, TINYFUSE_FOUR_ITERATION = 4 };
enum { TINYFUSE_FOUR_BLOCK_CODE = 56 }; /* bytes */

/* Constants that say how a layer is requantized: by any clamp, where no channel's shift is 0; the same where the clamp is
   all of int8; the clamp being all of int8 from the zero point on; as SATURATED, and looked up in tables; the same of at
   most sixteen inputs and a multiple of four channels, whose tables are of outputs less their zero point, which then is
   0; half to even, by any clamp, or by one that is all of int8. */
enum {
    TINYFUSE_FOUR_EACH,
    TINYFUSE_FOUR_SATURATED,
    TINYFUSE_FOUR_RECTIFIED,
    TINYFUSE_FOUR_TABLES,
    TINYFUSE_FOUR_LEVELS,
    TINYFUSE_FOUR_HALF_EVEN,
    TINYFUSE_FOUR_HALF_EVEN_SATURATED
};
/* Of the functions of a name that the forms have, the one of a constant form. */
#define TINYFUSE_FOUR_OF(form, name)                                                               \
    ((form) == TINYFUSE_FOUR_RECTIFIED   ? name##_rectified                                        \
     : (form) == TINYFUSE_FOUR_SATURATED ? name##_saturated                                        \
                                         : name##_each)
#define TINYFUSE_FOUR_EVEN_OF(form, name)                                                          \
    ((form) == TINYFUSE_FOUR_HALF_EVEN             ? name##_half_even                              \
     : (form) == TINYFUSE_FOUR_HALF_EVEN_SATURATED ? name##_half_even_saturated                    \
                                                   : TINYFUSE_FOUR_OF(form, name))
/* On vectors of integers alone C rounds half to even. */
#if TINYFUSE_MVE_FLOATS
#define TINYFUSE_FOUR_THERE_OF TINYFUSE_FOUR_EVEN_OF
#else
#define TINYFUSE_FOUR_THERE_OF TINYFUSE_FOUR_OF
#endif
#define TINYFUSE_FOUR_ANY_OF(form, name)                                                           \
    ((form) == TINYFUSE_FOUR_TABLES ? name##_tables : TINYFUSE_FOUR_THERE_OF(form, name))

TINYFUSE_INLINE int tinyfuse_four_looks_up(int form)
{
    return form == TINYFUSE_FOUR_TABLES || form == TINYFUSE_FOUR_LEVELS;
}

TINYFUSE_INLINE int tinyfuse_four_is_half_even(int form)
{
    return form == TINYFUSE_FOUR_HALF_EVEN || form == TINYFUSE_FOUR_HALF_EVEN_SATURATED;
}

/* Some blocks of four pixels. The assembly loads fields by LDM in this order. */
typedef struct {
    int8_t *out; /* the first pixel's next two channels */
    const int32_t *channels, *channels_end;
    union {
        int32_t zero_point;
        const int8_t *tables; /* the zero point is act_max then */
    } to;
    int32_t pair_bytes;   /* of the weights of two channels */
    const int8_t *x[4];   /* the pixels' inputs */
    int32_t skip;         /* bytes of code that the first iteration leaves out */
    uint16_t places[8];   /* of both channels of each pixel, from `out` */
    int32_t act_min, act_max;
    const int8_t *weights;
    const int32_t *first_channels;
    int32_t rest;         /* inputs after the last sixteen */
    int32_t step;         /* from four pixels' inputs to the next ones' */
    int32_t out_step;     /* from the end of a pixel's outputs to the next four's */
    int32_t blocks;
    int32_t iterations_bytes;  /* of weights of two channels, without those of the rest */
    int32_t depth;
    int32_t iterations;        /* over the channels, where outputs are looked up */
} tinyfuse_fours;

#if TINYFUSE_MVE

/* Where a sum is: of the first channel of four pixels, of the second one; VMLADAVA wants even registers. */
#define TINYFUSE_FOUR_SUMS "{r0, r2, r4, r6, r8, r10, r12, lr}"
#define TINYFUSE_FOUR_SUMS_TO_VECTORS                                                              \
    "vmov q0[2], q0[0], r0, r4\n\t"                                                                \
    "vmov q0[3], q0[1], r2, r6\n\t"                                                                \
    "vmov q1[2], q1[0], r8, r12\n\t"                                                               \
    "vmov q1[3], q1[1], r10, lr\n\t"

/* Sums of q0 and q1 to outputs in 16 bits, in turn, in q0. The register `channels` goes on to the next two; `round`: AWAY
   or HALVES_UP, what halves are rounded to. Uses q3. */
#define TINYFUSE_FOUR_SCALE(channels, zero_point, round)                                           \
    "ldm " channels "!, {r0, r2, r4, r6, r8, r10}\n\t"                                             \
    "vadd.i32 q0, q0, r0\n\t"                                                                      \
    "vadd.i32 q1, q1, r6\n\t" TINYFUSE_FOUR_SCALE_##round                                          \
    "vqadd.s16 q0, q0, " zero_point "\n\t"
#define TINYFUSE_FOUR_SCALE_HALVES_UP                                                              \
    "vqrdmulh.s32 q0, q0, r2\n\t"                                                                  \
    "vqrdmulh.s32 q1, q1, r8\n\t"                                                                  \
    "vrshl.s32 q0, r4\n\t"                                                                         \
    "vrshl.s32 q1, r10\n\t"                                                                        \
    "vqmovnb.s32 q0, q0\n\t"                                                                       \
    "vqmovnt.s32 q0, q1\n\t"
/* VRSHL rounds halves up, so that a negative value is first lowered by one: what is multiplied is added to its sign. A
   value of 0 is lowered, too, where a negative sum gives it; any right shift makes that 0 again. */
#define TINYFUSE_FOUR_SCALE_HALVES_AWAY                                                            \
    "vshr.s32 q3, q1, #31\n\t"                                                                     \
    "vqrdmlah.s32 q3, q1, r8\n\t"                                                                  \
    "vshr.s32 q1, q0, #31\n\t"                                                                     \
    "vqrdmlah.s32 q1, q0, r2\n\t"                                                                  \
    "vrshl.s32 q3, r10\n\t"                                                                        \
    "vrshl.s32 q1, r4\n\t"                                                                         \
    "vqmovnb.s32 q0, q1\n\t"                                                                       \
    "vqmovnt.s32 q0, q3\n\t"
#define TINYFUSE_FOUR_SCALE_HALVES_EVEN                                                            \
    TINYFUSE_FOUR_NEAREST("r2", "r8")                                                              \
    "vqmovnb.s32 q0, q0\n\t"                                                                       \
    "vqmovnt.s32 q0, q1\n\t"
#define TINYFUSE_FOUR_NEAREST(scale0, scale1) TINYFUSE_NEAREST4("q0", scale0) TINYFUSE_NEAREST4("q1", scale1)
/* VRSHL rounds halves up, so that a negative value is first lowered by one. */
#define TINYFUSE_FOUR_ROUND_AWAY(v)                                                                \
    "vshr.s32 " v ", q0, #31\n\t"                                                                  \
    "vadd.i32 q0, q0, " v "\n\t"                                                                   \
    "vshr.s32 " v ", q1, #31\n\t"                                                                  \
    "vadd.i32 q1, q1, " v "\n\t"
/* Saturating is the whole clamp. */
#define TINYFUSE_FOUR_SATURATE "vqmovnb.s16 q0, q0\n\t"
#define TINYFUSE_FOUR_CLAMP                                                                        \
    "vmax.s16 q0, q0, q5\n\t"                                                                      \
    "vmin.s16 q0, q0, q6\n\t"

#define TINYFUSE_FOUR_STORED(round, clamp) TINYFUSE_FOUR_SCALE("r3", "r9", round) clamp

/* The same, looked up in the tables that the register `tables` points to: narrowed bytes leave the others as they are,
   which say where a channel's table begins. `stored`: what makes stored values of outputs less their zero point. */
#define TINYFUSE_FOUR_LOOKED_UP(tables, stored)                                                    \
    "ldm r3!, {r0, r2, r4, r6, r8, r10, r12}\n\t"                                                  \
    "vadd.i32 q0, q0, r0\n\t"                                                                      \
    "vadd.i32 q1, q1, r6\n\t" TINYFUSE_FOUR_SCALE_HALVES_AWAY                                      \
    "vdup.32 q1, r12\n\t" stored                                                                   \
    "vqmovnb.s16 q1, q0\n\t"                                                                       \
    "vldrb.u16 q0, [" tables ", q1]\n\t"
#define TINYFUSE_FOUR_FROM(zero_point) "vqadd.s16 q0, q0, " zero_point "\n\t"

/* Sixteen inputs: TINYFUSE_FOUR_BLOCK_CODE bytes of code. */
#define TINYFUSE_FOUR_DOT(load0, load1, load2, load3)                                              \
    "vldrb.8 q2, [r5], #16\n\t" load0                                                              \
    "vldrb.8 q3, [r5], #16\n\t" load1                                                              \
    "vmladava.s8 r0, q0, q2\n\t"                                                                   \
    "vmladava.s8 r8, q0, q3\n\t"                                                                   \
    "vmladava.s8 r2, q1, q2\n\t"                                                                   \
    "vmladava.s8 r10, q1, q3\n\t" load2 load3                                                      \
    "vmladava.s8 r4, q0, q2\n\t"                                                                   \
    "vmladava.s8 r12, q0, q3\n\t"                                                                  \
    "vmladava.s8 r6, q1, q2\n\t"                                                                   \
    "vmladava.s8 lr, q1, q3\n\t"
#define TINYFUSE_FOUR_DOT_ALL                                                                      \
    TINYFUSE_FOUR_DOT("vldrb.8 q0, [r1], #16\n\t", "vldrb.8 q1, [r3], #16\n\t",                    \
                      "vldrb.8 q0, [r7], #16\n\t", "vldrb.8 q1, [r9], #16\n\t")
/* As many inputs as P0 says. */
#define TINYFUSE_FOUR_DOT_REST                                                                     \
    TINYFUSE_FOUR_DOT("", "vpstt\n\t" "vldrbt.8 q0, [r1]\n\t" "vldrbt.8 q1, [r3]\n\t",             \
                      "vpstt\n\t" "vldrbt.8 q0, [r7]\n\t", "vldrbt.8 q1, [r9]\n\t")

#define TINYFUSE_FOURS_FIELD(field) [field] "i"(offsetof(tinyfuse_fours, field))
#define TINYFUSE_FOURS_OPERANDS                                                                            \
    "r"(arguments), TINYFUSE_FOURS_FIELD(x), TINYFUSE_FOURS_FIELD(places), TINYFUSE_FOURS_FIELD(act_min),  \
        TINYFUSE_FOURS_FIELD(weights), TINYFUSE_FOURS_FIELD(first_channels), TINYFUSE_FOURS_FIELD(rest),   \
        TINYFUSE_FOURS_FIELD(step), TINYFUSE_FOURS_FIELD(blocks), TINYFUSE_FOURS_FIELD(iterations_bytes)   \
        : TINYFUSE_ASM_CLOBBERS, TINYFUSE_CLOBBERS_P0 "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7"

/* After the last channels of four pixels, r1 being after their outputs: to the next four, `left` of which is counted down;
   r11: the job. */
#define TINYFUSE_FOURS_MOVE(left)                                                                  \
    "ldrd r4, r6, [r11, %[step]]\n\t"                                                              \
    "vldrw.u32 q0, [r11, %[x]]\n\t"                                                                \
    "add r1, r6\n\t"                                                                               \
    "vadd.i32 q0, q0, r4\n\t"                                                                      \
    "ldrd r5, r3, [r11, %[weights]]\n\t" /* and first_channels */                                  \
    "vstrw.32 q0, [r11, %[x]]\n\t" left
#define TINYFUSE_FOURS_NEXT                                                                        \
    TINYFUSE_FOURS_MOVE("ldr r8, [r11, %[blocks]]\n\t"                                             \
                        "subs r8, #1\n\t"                                                          \
                        "str r8, [r11, %[blocks]]\n\t")

/* Any depth: `iteration` goes back to 3 while there are inputs by sixteen, `rest` multiplies those after them. Of x, r1, r3,
   r7 and r9 are of four pixels; q4: places; q5 and q6: the clamp; q7: where two channels' iterations of weights end. */
#define TINYFUSE_FOURS_DEEP(iteration, next, rest_of, stored)                                      \
    __asm volatile(TINYFUSE_ASM_BEGIN                                                              \
                   "mov r11, r0\n\t"                                                               \
                   "vldrw.u32 q4, [r11, %[places]]\n\t"                                            \
                   "ldrd r0, r1, [r11, %[act_min]]\n\t"                                            \
                   "vdup.16 q5, r0\n\t"                                                            \
                   "vdup.16 q6, r1\n\t"                                                            \
                   "ldr r5, [r11, %[weights]]\n\t"                                                 \
                   "ldr r0, [r11, %[rest]]\n\t"                                                    \
                   "vctp.8 r0\n\t"                                                                 \
                   "1:\n\t"                                                                        \
                   "ldr r0, [r11, %[iterations_bytes]]\n\t"                                        \
                   "add r0, r5\n\t"                                                                \
                   "vdup.32 q7, r0\n\t"                                                            \
                   "add r11, r11, %[x]\n\t"                                                        \
                   "2:\n\t"                                                                        \
                   "clrm " TINYFUSE_FOUR_SUMS "\n\t"                                               \
                   "ldm r11, {r1, r3, r7, r9, r11}\n\t"                                            \
                   "add pc, r11\n\t"                                                               \
                   "nop\n\t"                                                                       \
                   "3:\n\t"                                                                        \
                   TINYFUSE_FOUR_DOT_ALL TINYFUSE_FOUR_DOT_ALL                                     \
                   TINYFUSE_FOUR_DOT_ALL TINYFUSE_FOUR_DOT_ALL iteration rest_of                   \
                   TINYFUSE_FOUR_SUMS_TO_VECTORS                                                   \
                   "ldr r11, [sp]\n\t"                                                             \
                   "ldm r11!, {r1, r3, r7, r9, r12}\n\t" next                                      \
                   stored                                                                          \
                   "vstrb.16 q0, [r1, q4]\n\t"                                                     \
                   "adds r1, #2\n\t"                                                               \
                   "strd r1, r3, [r11, #-20]\n\t"                                                  \
                   "cmp r3, r7\n\t"                                                                \
                   "bne 2b\n\t"                                                                    \
                   "ldr r11, [sp]\n\t" TINYFUSE_FOURS_NEXT                                         \
                   "strd r1, r3, [r11]\n\t"                                                        \
                   "bne 1b\n\t" TINYFUSE_ASM_END                                                   \
                   :                                                                               \
                   : TINYFUSE_FOURS_OPERANDS)

#define TINYFUSE_FOUR_MORE                                                                         \
    "vmov.32 r11, q7[0]\n\t"                                                                       \
    "cmp r5, r11\n\t"                                                                              \
    "bne 3b\n\t"
#define TINYFUSE_FOUR_NEXT_ITERATIONS "vadd.i32 q7, q7, r12\n\t"
#define TINYFUSE_FOUR_REST                                                                         \
    "ldr r11, [sp]\n\t"                                                                            \
    "ldr r11, [r11, %[rest]]\n\t"                                                                  \
    "cmp r11, #0\n\t"                                                                              \
    "beq 4f\n\t" TINYFUSE_FOUR_DOT_REST                                                            \
    "4:\n\t"

/* Of at most sixteen inputs: what all blocks have in common, and four pixels of one. */
#define TINYFUSE_FOURS_FEW_CHANNELS_BEGIN                                                                \
    "mov r11, r0\n\t"                                                                              \
    "vldrw.u32 q2, [r11, %[places]]\n\t"                                                           \
    "ldr r0, [r11, %[rest]]\n\t"                                                                   \
    "ldr r5, [r11, %[weights]]\n\t"                                                                \
    "vctp.8 r0\n\t"                                                                                \
    "ldm r11, {r1, r3, r7, r9}\n\t"
#define TINYFUSE_FOURS_FEW_CHANNELS_PIXELS                                                               \
    "ldrd r0, r2, [r11, %[x]]\n\t"                                                                 \
    "ldrd r4, r6, [r11, %[x] + 8]\n\t"                                                             \
    "vpstttt\n\t"                                                                                  \
    "vldrbt.8 q4, [r0]\n\t" /* zeros after the inputs */                                           \
    "vldrbt.8 q5, [r2]\n\t"                                                                        \
    "vldrbt.8 q6, [r4]\n\t"                                                                        \
    "vldrbt.8 q7, [r6]\n\t"

/* At most sixteen inputs, which stay in q4 to q7 for all channels. q2: places; r1: out; r3: channels; r7: their end; r9:
   the zero point; r11: the job, or, where there is a clamp, both its ends in 16 bits. */
#define TINYFUSE_FOURS_FEW_CHANNELS(begin, round, clamp)                                                 \
    __asm volatile(TINYFUSE_ASM_BEGIN TINYFUSE_FOURS_FEW_CHANNELS_BEGIN                                  \
                   "1:\n\t" TINYFUSE_FOURS_FEW_CHANNELS_PIXELS begin                                     \
                   "2:\n\t"                                                                        \
                   "vldrb.8 q0, [r5], #16\n\t"                                                     \
                   "vldrb.8 q1, [r5], #16\n\t"                                                     \
                   "vmladav.s8 r0, q4, q0\n\t"                                                     \
                   "vmladav.s8 r8, q4, q1\n\t"                                                     \
                   "vmladav.s8 r2, q5, q0\n\t"                                                     \
                   "vmladav.s8 r10, q5, q1\n\t"                                                    \
                   "vmladav.s8 r4, q6, q0\n\t"                                                     \
                   "vmladav.s8 r12, q6, q1\n\t"                                                    \
                   "vmladav.s8 r6, q7, q0\n\t"                                                     \
                   "vmladav.s8 lr, q7, q1\n\t"                                                     \
                   TINYFUSE_FOUR_SUMS_TO_VECTORS                                                   \
                   TINYFUSE_FOUR_SCALE("r3", "r9", round) clamp                                    \
                   "vstrb.16 q0, [r1, q2]\n\t"                                                     \
                   "adds r1, #2\n\t"                                                               \
                   "cmp r3, r7\n\t"                                                                \
                   "bne 2b\n\t"                                                                    \
                   TINYFUSE_FOURS_NEXT                                                             \
                   "bne 1b\n\t" TINYFUSE_ASM_END                                                   \
                   :                                                                               \
                   : TINYFUSE_FOURS_OPERANDS)

/* Sums are clamped by what a vector of each end has: q3. */
#define TINYFUSE_FOUR_CLAMP_FEW_CHANNELS                                                                 \
    "ldrd r0, r2, [r11, %[act_min]]\n\t"                                                           \
    "vdup.16 q3, r0\n\t"                                                                           \
    "vmax.s16 q0, q0, q3\n\t"                                                                      \
    "vdup.16 q3, r2\n\t"                                                                           \
    "vmin.s16 q0, q0, q3\n\t"

/* At most sixteen inputs, and outputs that are looked up: the sums of one channel, then of the other, in four registers,
   which leaves LR to count pairs of channels. r9: tables. */
#define TINYFUSE_FOURS_PAIR(stored)                                                                \
    "vldrb.8 q0, [r5], #16\n\t"                                                                    \
    "vldrb.8 q1, [r5], #16\n\t"                                                                    \
    "vmladav.s8 r0, q4, q0\n\t"                                                                    \
    "vmladav.s8 r2, q5, q0\n\t"                                                                    \
    "vmladav.s8 r4, q6, q0\n\t"                                                                    \
    "vmladav.s8 r6, q7, q0\n\t"                                                                    \
    "vmov q0[2], q0[0], r0, r4\n\t"                                                                \
    "vmladav.s8 r0, q4, q1\n\t"                                                                    \
    "vmov q0[3], q0[1], r2, r6\n\t"                                                                \
    "vmladav.s8 r2, q5, q1\n\t"                                                                    \
    "vmladav.s8 r4, q6, q1\n\t"                                                                    \
    "vmladav.s8 r6, q7, q1\n\t"                                                                    \
    "vmov q1[2], q1[0], r0, r4\n\t"                                                                \
    "vmov q1[3], q1[1], r2, r6\n\t" TINYFUSE_FOUR_LOOKED_UP("r9", stored)                          \
    "vstrb.16 q0, [r1, q2]\n\t"                                                                    \
    "adds r1, #2\n\t"
/* `pairs`: what an iteration computes; r7: `held`, a field. */
#define TINYFUSE_FOURS_FEW_CHANNELS_PAIRS(held, pairs, next)                                             \
    __asm volatile(TINYFUSE_ASM_BEGIN TINYFUSE_FOURS_FEW_CHANNELS_BEGIN                                  \
                   "ldr r7, [r11, " held "]\n\t"                                                   \
                   "1:\n\t" TINYFUSE_FOURS_FEW_CHANNELS_PIXELS                                           \
                   "ldr r0, [r11, %[iterations]]\n\t"                                              \
                   "dls lr, r0\n\t"                                                                \
                   "2:\n\t" pairs                                                                  \
                   "le lr, 2b\n\t" next                                                            \
                   "bne 1b\n\t" TINYFUSE_ASM_END                                                   \
                   :                                                                               \
                   : TINYFUSE_FOURS_FIELD(iterations), TINYFUSE_FOURS_OPERANDS)

/* A pixel alone, eight channels at a time, `blocks` of them. r1, r3, r7 and r9: weights of two channels each; r5: inputs;
   r11: inputs left; q4: where the constants of channels 0, 2, 4 and 6 lie. */
#define TINYFUSE_FOURS_ONE(round, clamp)                                                           \
    TINYFUSE_FOURS_ONE_BY("vqrdmulh.s32 q0, q0, q2\n\t"                                            \
                          "vqrdmulh.s32 q1, q1, q3\n\t" round                                      \
                          "vldrw.u32 q2, [q4, #8]\n\t"                                             \
                          "vldrw.u32 q3, [q4, #20]\n\t"                                            \
                          "vrshl.s32 q0, q0, q2\n\t"                                               \
                          "vrshl.s32 q1, q1, q3\n\t", clamp)
#define TINYFUSE_FOURS_ONE_BY(scale, clamp)                                                        \
    __asm volatile(TINYFUSE_ASM_BEGIN                                                              \
                   "mov r11, r0\n\t"                                                               \
                   "ldrd r0, r1, [r11, %[act_min]]\n\t"                                            \
                   "vdup.16 q5, r0\n\t"                                                            \
                   "vdup.16 q6, r1\n\t"                                                            \
                   "ldr r1, [r11, %[first_channels]]\n\t"                                          \
                   "movs r2, #0\n\t"                                                               \
                   "vidup.u32 q4, r2, #8\n\t"                                                      \
                   "movs r2, #3\n\t"                                                               \
                   "vmul.i32 q4, q4, r2\n\t"                                                       \
                   "vadd.i32 q4, q4, r1\n\t"                                                       \
                   "ldr r1, [r11, %[weights]]\n\t"                                                 \
                   "1:\n\t"                                                                        \
                   "clrm " TINYFUSE_FOUR_SUMS "\n\t"                                               \
                   "ldr r9, [r11, %[pair_bytes]]\n\t"                                              \
                   "ldr r5, [r11, %[x]]\n\t"                                                       \
                   "ldr r11, [r11, %[depth]]\n\t"                                                  \
                   "add r3, r1, r9\n\t"                                                            \
                   "add r7, r3, r9\n\t"                                                            \
                   "add r9, r7, r9\n\t"                                                            \
                   "2:\n\t"                                                                        \
                   "vctp.8 r11\n\t"                                                                \
                   "vldrb.8 q1, [r1], #16\n\t"                                                     \
                   "vpst\n\t"                                                                      \
                   "vldrbt.8 q0, [r5], #16\n\t" /* zeros after the inputs */                       \
                   "vldrb.8 q2, [r1], #16\n\t"                                                     \
                   "vmladava.s8 r0, q0, q1\n\t"                                                    \
                   "vldrb.8 q3, [r3], #16\n\t"                                                     \
                   "vmladava.s8 r8, q0, q2\n\t"                                                    \
                   "vldrb.8 q1, [r3], #16\n\t"                                                     \
                   "vmladava.s8 r2, q0, q3\n\t"                                                    \
                   "vldrb.8 q2, [r7], #16\n\t"                                                     \
                   "vmladava.s8 r10, q0, q1\n\t"                                                   \
                   "vldrb.8 q3, [r7], #16\n\t"                                                     \
                   "vmladava.s8 r4, q0, q2\n\t"                                                    \
                   "vldrb.8 q1, [r9], #16\n\t"                                                     \
                   "vmladava.s8 r12, q0, q3\n\t"                                                   \
                   "vldrb.8 q2, [r9], #16\n\t"                                                     \
                   "vmladava.s8 r6, q0, q1\n\t"                                                    \
                   "subs r11, #16\n\t"                                                             \
                   "vmladava.s8 lr, q0, q2\n\t"                                                    \
                   "bgt 2b\n\t"                                                                    \
                   "mov r1, r9\n\t" TINYFUSE_FOUR_SUMS_TO_VECTORS                                  \
                   "ldr r11, [sp]\n\t"                                                             \
                   "vldrw.u32 q2, [q4]\n\t"                                                        \
                   "vldrw.u32 q3, [q4, #12]\n\t"                                                   \
                   "vadd.i32 q0, q0, q2\n\t"                                                       \
                   "vadd.i32 q1, q1, q3\n\t"                                                       \
                   "vldrw.u32 q2, [q4, #4]\n\t"                                                    \
                   "vldrw.u32 q3, [q4, #16]\n\t"                                                   \
                   scale                                                                           \
                   "vqmovnb.s32 q0, q0\n\t"                                                        \
                   "vqmovnt.s32 q0, q1\n\t"                                                        \
                   "ldr r2, [r11]\n\t"                                                             \
                   "ldr r0, [r11, %[to]]\n\t"                                                      \
                   "mov r6, #96\n\t"                                                               \
                   "vqadd.s16 q0, q0, r0\n\t" clamp                                                \
                   "vadd.i32 q4, q4, r6\n\t"                                                       \
                   "ldr r8, [r11, %[blocks]]\n\t"                                                  \
                   "vstrb.16 q0, [r2], #8\n\t"                                                     \
                   "str r2, [r11]\n\t"                                                             \
                   "subs r8, #1\n\t"                                                               \
                   "str r8, [r11, %[blocks]]\n\t"                                                  \
                   "bne 1b\n\t" TINYFUSE_ASM_END                                                   \
                   :                                                                               \
                   : TINYFUSE_FOURS_FIELD(to), TINYFUSE_FOURS_FIELD(pair_bytes),                   \
                     TINYFUSE_FOURS_FIELD(depth), TINYFUSE_FOURS_OPERANDS)

TINYFUSE_SHARED void tinyfuse_fours_one_each(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_ONE(TINYFUSE_FOUR_ROUND_AWAY("q2"), TINYFUSE_FOUR_CLAMP);
}

TINYFUSE_SHARED void tinyfuse_fours_one_saturated(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_ONE(TINYFUSE_FOUR_ROUND_AWAY("q2"), TINYFUSE_FOUR_SATURATE);
}

TINYFUSE_SHARED void tinyfuse_fours_one_rectified(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_ONE("", TINYFUSE_FOUR_SATURATE);
}

#if TINYFUSE_MVE_FLOATS

TINYFUSE_SHARED void tinyfuse_fours_one_half_even(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_ONE_BY(TINYFUSE_FOUR_NEAREST("q2", "q3"), TINYFUSE_FOUR_CLAMP);
}

TINYFUSE_SHARED void tinyfuse_fours_deep_half_even(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP(TINYFUSE_FOUR_MORE, TINYFUSE_FOUR_NEXT_ITERATIONS, TINYFUSE_FOUR_REST,
                        TINYFUSE_FOUR_STORED(HALVES_EVEN, TINYFUSE_FOUR_CLAMP));
}

TINYFUSE_SHARED void tinyfuse_fours_whole_half_even(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP(TINYFUSE_FOUR_MORE, TINYFUSE_FOUR_NEXT_ITERATIONS, "",
                        TINYFUSE_FOUR_STORED(HALVES_EVEN, TINYFUSE_FOUR_CLAMP));
}

TINYFUSE_SHARED void tinyfuse_fours_once_half_even(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP("", "", "",
                        TINYFUSE_FOUR_STORED(HALVES_EVEN, TINYFUSE_FOUR_CLAMP));
}

TINYFUSE_SHARED void tinyfuse_fours_few_channels_half_even(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_FEW_CHANNELS("", HALVES_EVEN, TINYFUSE_FOUR_CLAMP_FEW_CHANNELS);
}

TINYFUSE_SHARED void tinyfuse_fours_one_half_even_saturated(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_ONE_BY(TINYFUSE_FOUR_NEAREST("q2", "q3"), TINYFUSE_FOUR_SATURATE);
}

TINYFUSE_SHARED void tinyfuse_fours_deep_half_even_saturated(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP(TINYFUSE_FOUR_MORE, TINYFUSE_FOUR_NEXT_ITERATIONS, TINYFUSE_FOUR_REST,
                        TINYFUSE_FOUR_STORED(HALVES_EVEN, TINYFUSE_FOUR_SATURATE));
}

TINYFUSE_SHARED void tinyfuse_fours_whole_half_even_saturated(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP(TINYFUSE_FOUR_MORE, TINYFUSE_FOUR_NEXT_ITERATIONS, "",
                        TINYFUSE_FOUR_STORED(HALVES_EVEN, TINYFUSE_FOUR_SATURATE));
}

TINYFUSE_SHARED void tinyfuse_fours_once_half_even_saturated(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP("", "", "",
                        TINYFUSE_FOUR_STORED(HALVES_EVEN, TINYFUSE_FOUR_SATURATE));
}

TINYFUSE_SHARED void tinyfuse_fours_few_channels_half_even_saturated(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_FEW_CHANNELS("", HALVES_EVEN, TINYFUSE_FOUR_SATURATE);
}

#endif

/* All channels, `blocks` of eight, of the job's first pixel. */
TINYFUSE_INLINE void tinyfuse_fours_one_mve(tinyfuse_fours *job, int form)
{
    TINYFUSE_FOUR_THERE_OF(form, tinyfuse_fours_one)(job);
}

TINYFUSE_SHARED void tinyfuse_fours_deep_each(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP(TINYFUSE_FOUR_MORE, TINYFUSE_FOUR_NEXT_ITERATIONS, TINYFUSE_FOUR_REST,
                        TINYFUSE_FOUR_STORED(HALVES_AWAY, TINYFUSE_FOUR_CLAMP));
}

TINYFUSE_SHARED void tinyfuse_fours_deep_saturated(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP(TINYFUSE_FOUR_MORE, TINYFUSE_FOUR_NEXT_ITERATIONS, TINYFUSE_FOUR_REST,
                        TINYFUSE_FOUR_STORED(HALVES_AWAY, TINYFUSE_FOUR_SATURATE));
}

TINYFUSE_SHARED void tinyfuse_fours_deep_rectified(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP(TINYFUSE_FOUR_MORE, TINYFUSE_FOUR_NEXT_ITERATIONS, TINYFUSE_FOUR_REST,
                        TINYFUSE_FOUR_STORED(HALVES_UP, TINYFUSE_FOUR_SATURATE));
}

/* A multiple of sixteen inputs. */
TINYFUSE_SHARED void tinyfuse_fours_whole_each(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP(TINYFUSE_FOUR_MORE, TINYFUSE_FOUR_NEXT_ITERATIONS, "",
                        TINYFUSE_FOUR_STORED(HALVES_AWAY, TINYFUSE_FOUR_CLAMP));
}

TINYFUSE_SHARED void tinyfuse_fours_whole_saturated(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP(TINYFUSE_FOUR_MORE, TINYFUSE_FOUR_NEXT_ITERATIONS, "",
                        TINYFUSE_FOUR_STORED(HALVES_AWAY, TINYFUSE_FOUR_SATURATE));
}

TINYFUSE_SHARED void tinyfuse_fours_whole_rectified(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP(TINYFUSE_FOUR_MORE, TINYFUSE_FOUR_NEXT_ITERATIONS, "",
                        TINYFUSE_FOUR_STORED(HALVES_UP, TINYFUSE_FOUR_SATURATE));
}

/* The same, at most an iteration. */
TINYFUSE_SHARED void tinyfuse_fours_once_each(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP("", "", "",
                        TINYFUSE_FOUR_STORED(HALVES_AWAY, TINYFUSE_FOUR_CLAMP));
}

TINYFUSE_SHARED void tinyfuse_fours_once_saturated(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP("", "", "",
                        TINYFUSE_FOUR_STORED(HALVES_AWAY, TINYFUSE_FOUR_SATURATE));
}

TINYFUSE_SHARED void tinyfuse_fours_once_rectified(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP("", "", "",
                        TINYFUSE_FOUR_STORED(HALVES_UP, TINYFUSE_FOUR_SATURATE));
}

TINYFUSE_SHARED void tinyfuse_fours_few_channels_each(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_FEW_CHANNELS("", HALVES_AWAY, TINYFUSE_FOUR_CLAMP_FEW_CHANNELS);
}

TINYFUSE_SHARED void tinyfuse_fours_few_channels_saturated(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_FEW_CHANNELS("", HALVES_AWAY, TINYFUSE_FOUR_SATURATE);
}

TINYFUSE_SHARED void tinyfuse_fours_few_channels_rectified(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_FEW_CHANNELS("", HALVES_UP, TINYFUSE_FOUR_SATURATE);
}

TINYFUSE_SHARED void tinyfuse_fours_deep_tables(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP(TINYFUSE_FOUR_MORE, TINYFUSE_FOUR_NEXT_ITERATIONS, TINYFUSE_FOUR_REST,
                        TINYFUSE_FOUR_LOOKED_UP("r9", TINYFUSE_FOUR_FROM("q6")));
}

TINYFUSE_SHARED void tinyfuse_fours_whole_tables(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP(TINYFUSE_FOUR_MORE, TINYFUSE_FOUR_NEXT_ITERATIONS, "",
                        TINYFUSE_FOUR_LOOKED_UP("r9", TINYFUSE_FOUR_FROM("q6")));
}

TINYFUSE_SHARED void tinyfuse_fours_once_tables(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_DEEP("", "", "", TINYFUSE_FOUR_LOOKED_UP("r9", TINYFUSE_FOUR_FROM("q6")));
}

TINYFUSE_SHARED void tinyfuse_fours_few_channels_tables(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_FEW_CHANNELS_PAIRS("%[act_min] + 4", TINYFUSE_FOURS_PAIR(TINYFUSE_FOUR_FROM("r7")), TINYFUSE_FOURS_NEXT);
}

TINYFUSE_SHARED void tinyfuse_fours_few_channels_levels(tinyfuse_fours *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_fours *, arguments, job);
    TINYFUSE_FOURS_FEW_CHANNELS_PAIRS("%[blocks]", TINYFUSE_FOURS_PAIR("") TINYFUSE_FOURS_PAIR(""),
                                TINYFUSE_FOURS_MOVE("subs r7, #1\n\t"));
}

/* All channels of the job's pixels. */
TINYFUSE_INLINE void tinyfuse_fours_run_mve(tinyfuse_fours *job, int form)
{
    const int32_t depth = job->depth;
    if (form == TINYFUSE_FOUR_LEVELS) {
        tinyfuse_fours_few_channels_levels(job);
    } else if (depth <= TINYFUSE_FOUR_BLOCK) {
        TINYFUSE_FOUR_ANY_OF(form, tinyfuse_fours_few_channels)(job);
    } else if (job->rest > 0) {
        TINYFUSE_FOUR_ANY_OF(form, tinyfuse_fours_deep)(job);
    } else if (depth <= TINYFUSE_FOUR_ITERATION * TINYFUSE_FOUR_BLOCK) {
        TINYFUSE_FOUR_ANY_OF(form, tinyfuse_fours_once)(job);
    } else {
        TINYFUSE_FOUR_ANY_OF(form, tinyfuse_fours_whole)(job);
    }
}

#endif

/* The same in C. */
TINYFUSE_SHARED void tinyfuse_fours_run_c(tinyfuse_fours *job, int form)
{
    const int32_t depth = job->depth;
    const int32_t padded = (depth + TINYFUSE_FOUR_BLOCK - 1) / TINYFUSE_FOUR_BLOCK * TINYFUSE_FOUR_BLOCK;
    const int looked_up = tinyfuse_four_looks_up(form);
    const int32_t words = looked_up ? 7 : 6, zero_point = looked_up ? job->act_max : job->to.zero_point;
    const int32_t low = looked_up ? -128 : job->act_min, high = looked_up ? 127 : job->act_max;
    int32_t i, k, o;
    for (; job->blocks > 0; --job->blocks) {
        const int8_t *weights = job->weights;
        for (job->channels = job->first_channels; job->channels != job->channels_end; job->channels += words) {
            for (i = 0; i < TINYFUSE_FOUR_PIXELS * TINYFUSE_FOUR_CHANNELS; ++i) {
                const int32_t *const channel = job->channels + 3 * (i & 1);
                uint32_t sum = (uint32_t)channel[0]; /* wraps */
                for (k = 0; k < depth; ++k) {
                    o = k / TINYFUSE_FOUR_BLOCK * TINYFUSE_FOUR_CHANNELS + (i & 1);
                    sum += (uint32_t)(job->x[i >> 1][k] *
                                      weights[o * TINYFUSE_FOUR_BLOCK + k % TINYFUSE_FOUR_BLOCK]);
                }
                k = tinyfuse_four_is_half_even(form) ? tinyfuse_scale_half_even((int32_t)sum, channel[1])
                                                     : tinyfuse_requantize((int32_t)sum, channel[1], channel[2]);
                k = tinyfuse_clamp(k + zero_point, low, high);
                if (looked_up) {
                    k = job->to.tables[((uint32_t)job->channels[6] >> 16 * (i & 1) & 0xff00) + (uint8_t)k];
                }
                job->out[job->places[i]] = (int8_t)k;
            }
            weights += TINYFUSE_FOUR_CHANNELS * padded;
            job->out += TINYFUSE_FOUR_CHANNELS;
        }
        job->out += job->out_step;
        for (i = 0; i < TINYFUSE_FOUR_PIXELS; ++i) {
            job->x[i] += job->step;
        }
    }
}

/* All channels, `blocks` of eight, of the job's first pixel. */
TINYFUSE_INLINE void tinyfuse_fours_one_c(tinyfuse_fours *job, int form)
{
    int32_t i;
    for (i = 0; i < TINYFUSE_FOUR_PIXELS; ++i) {
        job->x[i] = job->x[0];
        job->places[2 * i] = 0;
        job->places[2 * i + 1] = 1;
    }
    job->blocks = 1;
    tinyfuse_fours_run_c(job, form);
}

/* All channels of the job's pixels, on vectors where there are some of what the form takes. */
TINYFUSE_INLINE void tinyfuse_fours_run(tinyfuse_fours *job, int form)
{
#if TINYFUSE_MVE
    if (TINYFUSE_MVE_FLOATS || !tinyfuse_four_is_half_even(form)) {
        tinyfuse_fours_run_mve(job, form);
        return;
    }
#endif
    tinyfuse_fours_run_c(job, form);
}

TINYFUSE_INLINE void tinyfuse_fours_one(tinyfuse_fours *job, int form)
{
#if TINYFUSE_MVE
    if (TINYFUSE_MVE_FLOATS || !tinyfuse_four_is_half_even(form)) {
        tinyfuse_fours_one_mve(job, form);
        return;
    }
#endif
    tinyfuse_fours_one_c(job, form);
}

/* So many pixels, 1 to 4, to `out`; a pixel that isn't there is the last one again. */
TINYFUSE_INLINE void tinyfuse_fours_place(tinyfuse_fours *job, const tinyfuse_four_mve *p, const int8_t *in,
                                          int32_t pixels, int8_t *out)
{
    int32_t i;
    for (i = 0; i < TINYFUSE_FOUR_PIXELS; ++i) {
        const int32_t pixel = tinyfuse_min(i, pixels - 1);
        job->x[i] = in + pixel * p->pitch;
        job->places[2 * i] = (uint16_t)(pixel * p->out_c);
        job->places[2 * i + 1] = (uint16_t)(pixel * p->out_c + 1);
    }
    job->out = out;
    job->channels = job->first_channels;
}

/* As tinyfuse_pointwise_four_mve_s8; `tables`: those of forms that look up. */
TINYFUSE_INLINE void tinyfuse_pointwise_fours(const tinyfuse_four_mve *p, const int8_t *in, int32_t pixels, int8_t *out,
                                              const int8_t *weights, const int32_t *channels, const int8_t *tables,
                                              int form)
{
    const int32_t vectors = (p->depth + TINYFUSE_FOUR_BLOCK - 1) / TINYFUSE_FOUR_BLOCK;
    const int32_t whole = p->depth / TINYFUSE_FOUR_BLOCK;
    const int looks_up = tinyfuse_four_looks_up(form);
    tinyfuse_fours job;
    if (looks_up) {
        job.to.tables = tables;
        job.iterations = p->out_c / (form == TINYFUSE_FOUR_LEVELS ? 2 * TINYFUSE_FOUR_CHANNELS : TINYFUSE_FOUR_CHANNELS);
    } else {
        job.to.zero_point = p->out_zero_point;
    }
    job.act_min = p->act_min;
    job.act_max = looks_up ? p->out_zero_point : p->act_max;
    job.weights = weights;
    job.first_channels = channels;
    job.channels_end = channels + (looks_up ? 7 * (p->out_c / TINYFUSE_FOUR_CHANNELS) : 3 * p->out_c);
    job.pair_bytes = TINYFUSE_FOUR_CHANNELS * TINYFUSE_FOUR_BLOCK * vectors;
    job.iterations_bytes = TINYFUSE_FOUR_CHANNELS * TINYFUSE_FOUR_BLOCK * whole;
    job.depth = p->depth;
    job.rest = p->depth <= TINYFUSE_FOUR_BLOCK ? p->depth : p->depth % TINYFUSE_FOUR_BLOCK;
    job.skip = (-whole & (TINYFUSE_FOUR_ITERATION - 1)) * TINYFUSE_FOUR_BLOCK_CODE;
    job.step = TINYFUSE_FOUR_PIXELS * p->pitch;
    job.out_step = (TINYFUSE_FOUR_PIXELS - 1) * p->out_c;
    while (pixels > 0) {
        int32_t some = tinyfuse_min(pixels, TINYFUSE_FOUR_PIXELS); /* of each block */
        if (!looks_up && some <= TINYFUSE_FOUR_ALONE && p->out_c % 8 == 0) {
            job.x[0] = in;
            job.out = out;
            job.blocks = p->out_c / 8;
            tinyfuse_fours_one(&job, form);
            some = 1;
        } else {
            job.blocks = pixels / some;
            tinyfuse_fours_place(&job, p, in, some, out);
            some *= job.blocks;
            tinyfuse_fours_run(&job, form);
        }
        in += some * p->pitch;
        out += some * p->out_c;
        pixels -= some;
    }
}

/* in [pixels] inputs, `pitch` bytes from each pixel's to the next one's, to out [pixels][out_c], forward by four pixels:
   their outputs must not lie over them or later ones. out_c is even. `form`, a constant. */
TINYFUSE_SHARED void tinyfuse_pointwise_four_mve_s8(const tinyfuse_four_mve *p, const int8_t *in, int32_t pixels,
                                                    int8_t *out, const int8_t *weights, const int32_t *channels,
                                                    int form)
{
    tinyfuse_pointwise_fours(p, in, pixels, out, weights, channels, NULL, form);
}

/* The same with outputs that are looked up, as `form`, a constant, says; p's clamp isn't read. */
TINYFUSE_SHARED void tinyfuse_pointwise_four_tables_mve_s8(const tinyfuse_four_mve *p, const int8_t *in,
                                                           int32_t pixels, int8_t *out, const int8_t *weights,
                                                           const int32_t *channels, const int8_t *tables, int form)
{
    tinyfuse_pointwise_fours(p, in, pixels, out, weights, channels, tables, form);
}

/* Output row y of a 1x1 convolution with strides and without padding. Reads only the input row of y's window, writes only
   the out_w * out_c bytes of out_row, which must not overlap it. */
TINYFUSE_INLINE void tinyfuse_pointwise_strided_mve_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                           int8_t *out_row, const int8_t *weights,
                                                           const int32_t *channels, int form)
{
    const tinyfuse_four_mve m = {p->in_c,          p->out_c,   p->stride_w * p->in_c,
                                 p->out_zero_point, p->act_min, p->act_max};
    tinyfuse_pointwise_four_mve_s8(&m,
                                   tinyfuse_ring_row(in, y * p->stride_h, p->in_ring, p->in_w * p->in_c) -
                                       p->pad_left * p->in_c,
                                   p->out_w, out_row, weights, channels, form);
}

#endif
