/* The inner product of 1x1 convolutions for Helium: four pixels of int8 inputs times two output channels. A channel's
   constants are scalars; both channels' outputs of four pixels are requantized and stored together.

   weights  [out_c / 2][ceil(depth / 16)][2][16], zeros beyond the depth
   channels [out_c][3] int32: bias with -zero point * sum of weights folded in, multiplier, shift (positive to the left);
            of a single rounding as tinyfuse_vector_output takes them. Where some channels round half to even, both of a pair
            do, or none. */
#ifndef TINYFUSE_MATMUL_4X2_MVE_H
#define TINYFUSE_MATMUL_4X2_MVE_H

#include "tinyfuse_conv.h"
#include "tinyfuse_half_even.h"

/* Sizes and clamp of a layer; `pitch`: bytes from a pixel's inputs to the next one's. */
typedef struct {
    int32_t depth, out_c, pitch, out_zero_point, act_min, act_max;
} tinyfuse_matmul_4x2_mve;

/* pixels at a time; channels at a time; inputs that are multiplied at once, and four times as many in an iteration */
enum { TINYFUSE_4X2_MVE_PIXELS = 4 };
enum { TINYFUSE_4X2_MVE_CHANNELS = 2 };
/* the most pixels that are computed one by one, eight channels at a time where these are a multiple of eight */
enum { TINYFUSE_4X2_MVE_ALONE = 2 };
enum { TINYFUSE_4X2_MVE_BLOCK = 16, TINYFUSE_4X2_MVE_ITERATION = 4 };
/* bytes of code of a block of inputs, and of the load in front of the first block */
enum { TINYFUSE_4X2_MVE_BLOCK_CODE = 56, TINYFUSE_4X2_MVE_WEIGHTS_CODE = 4 };

/* Forms of requantization. In forms whose name ends in SATURATED the clamp is all of int8. */
enum {
    TINYFUSE_4X2_MVE_EACH, /* two roundings, each channel shifted to the right by at least 1 */
    TINYFUSE_4X2_MVE_SATURATED,
    TINYFUSE_4X2_MVE_RECTIFIED, /* outputs from the zero point, -128, on: how negative halves round is irrelevant */
    TINYFUSE_4X2_MVE_HALF_EVEN,
    TINYFUSE_4X2_MVE_HALF_EVEN_SATURATED,
    TINYFUSE_4X2_MVE_SINGLE_ROUNDING,
    TINYFUSE_4X2_MVE_SINGLE_ROUNDING_SATURATED
};
/* Defines a kernel's functions, one a form, each of which links the assembly of its form alone. `body` is inlined
   into each; it has these parameters and, last, the form. */
#define TINYFUSE_4X2_MVE_BY_FORM(name, body, parameters, ...)                                      \
    TINYFUSE_IN_FORM(name##_each, TINYFUSE_4X2_MVE_EACH, body, parameters, __VA_ARGS__)            \
    TINYFUSE_IN_FORM(name##_saturated, TINYFUSE_4X2_MVE_SATURATED, body, parameters, __VA_ARGS__)  \
    TINYFUSE_IN_FORM(name##_rectified, TINYFUSE_4X2_MVE_RECTIFIED, body, parameters, __VA_ARGS__)  \
    TINYFUSE_IN_FORM(name##_half_even, TINYFUSE_4X2_MVE_HALF_EVEN, body, parameters, __VA_ARGS__)  \
    TINYFUSE_IN_FORM(name##_half_even_saturated, TINYFUSE_4X2_MVE_HALF_EVEN_SATURATED, body, parameters, __VA_ARGS__) \
    TINYFUSE_IN_FORM(name##_single_rounding, TINYFUSE_4X2_MVE_SINGLE_ROUNDING, body, parameters, __VA_ARGS__) \
    TINYFUSE_IN_FORM(name##_single_rounding_saturated, TINYFUSE_4X2_MVE_SINGLE_ROUNDING_SATURATED, body, parameters, __VA_ARGS__)
/* Selects the function of a constant form. */
#define TINYFUSE_4X2_MVE_OF(form, name)                                                            \
    ((form) == TINYFUSE_4X2_MVE_RECTIFIED   ? name##_rectified                                     \
     : (form) == TINYFUSE_4X2_MVE_SATURATED ? name##_saturated                                     \
                                         : name##_each)
#define TINYFUSE_4X2_MVE_SINGLE_ROUNDING_OF(form, name)                                            \
    ((form) == TINYFUSE_4X2_MVE_SINGLE_ROUNDING             ? name##_single_rounding               \
     : (form) == TINYFUSE_4X2_MVE_SINGLE_ROUNDING_SATURATED ? name##_single_rounding_saturated     \
                                                  : TINYFUSE_4X2_MVE_OF(form, name))
#define TINYFUSE_4X2_MVE_EVEN_OF(form, name)                                                       \
    ((form) == TINYFUSE_4X2_MVE_HALF_EVEN             ? name##_half_even                           \
     : (form) == TINYFUSE_4X2_MVE_HALF_EVEN_SATURATED ? name##_half_even_saturated                 \
                                                      : TINYFUSE_4X2_MVE_SINGLE_ROUNDING_OF(form, name))
/* Helium without float vectors has no assembly that rounds half to even: C does it. */
#if TINYFUSE_MVE_FLOATS
#define TINYFUSE_4X2_MVE_THERE_OF TINYFUSE_4X2_MVE_EVEN_OF
#else
#define TINYFUSE_4X2_MVE_THERE_OF TINYFUSE_4X2_MVE_SINGLE_ROUNDING_OF
#endif

TINYFUSE_INLINE int tinyfuse_4x2_mve_is_half_even(int form)
{
    return form == TINYFUSE_4X2_MVE_HALF_EVEN || form == TINYFUSE_4X2_MVE_HALF_EVEN_SATURATED;
}

/* The rule of tinyfuse_vector_output. */
TINYFUSE_INLINE int tinyfuse_4x2_mve_rule(int form)
{
    return tinyfuse_4x2_mve_is_half_even(form) ? TINYFUSE_VECTORS_HALF_EVEN
           : form == TINYFUSE_4X2_MVE_SINGLE_ROUNDING || form == TINYFUSE_4X2_MVE_SINGLE_ROUNDING_SATURATED
               ? TINYFUSE_VECTORS_SINGLE_ROUNDING
               : TINYFUSE_VECTORS_BY_SHIFTS;
}

/* Some blocks of four pixels. The assembly loads fields by LDM in this order. */
typedef struct {
    int8_t *out; /* the first pixel's next two channels */
    const int32_t *channels, *channels_end;
    int32_t zero_point;
    const int8_t *x[4];   /* the pixels' inputs */
    int32_t entry;        /* address of code, for the assembly alone */
    int32_t skip;         /* bytes of code that the first iteration leaves out */
    int32_t pair_bytes;   /* bytes of the weights of two channels */
    uint16_t places[8];   /* offsets of both channels of each pixel, from `out` */
    int32_t act_min, act_max;
    const int8_t *weights;
    const int32_t *first_channels;
    int32_t rest;         /* inputs after the last whole sixteen */
    int32_t step;         /* from four pixels' inputs to the next ones' */
    int32_t out_step;     /* from the end of a pixel's outputs to the next four's */
    int32_t blocks;
    int32_t iterations_bytes;  /* bytes of two channels' weights without those of the rest */
    int32_t depth;
} tinyfuse_4x2_mve_job;

#if TINYFUSE_MVE

/* The registers of sums: four pixels of the first channel, then of the second one. VMLADAVA wants even registers. */
#define TINYFUSE_4X2_MVE_SUMS "{r0, r2, r4, r6, r8, r10, r12, lr}"
#define TINYFUSE_4X2_MVE_SUMS_TO_VECTORS                                                           \
    "vmov q0[2], q0[0], r0, r4\n\t"                                                                \
    "vmov q0[3], q0[1], r2, r6\n\t"                                                                \
    "vmov q1[2], q1[0], r8, r12\n\t"                                                               \
    "vmov q1[3], q1[1], r10, lr\n\t"

/* Requantizes the sums of q0 and q1 to 16-bit outputs in q0, which alternate. The register `channels` advances to the
   next two; `round` adds the biases r0 and r6, too. Uses q3. */
#define TINYFUSE_4X2_MVE_SCALE(channels, zero_point, round)                                        \
    "ldm " channels "!, {r0, r2, r4, r6, r8, r10}\n\t" TINYFUSE_4X2_MVE_SCALE_##round              \
    TINYFUSE_4X2_MVE_ZERO_POINT_##round(zero_point)
#define TINYFUSE_4X2_MVE_ZERO_POINT(zero_point) "vqadd.s16 q0, q0, " zero_point "\n\t"
#define TINYFUSE_4X2_MVE_ZERO_POINT_HALVES_UP TINYFUSE_4X2_MVE_ZERO_POINT
#define TINYFUSE_4X2_MVE_ZERO_POINT_HALVES_AWAY TINYFUSE_4X2_MVE_ZERO_POINT
/* Single rounding: VMLAS adds the bias to sums in 256ths, `ones` being a vector of 256s; the product is doubled. */
#define TINYFUSE_4X2_MVE_ROUND_ONCE(ones)                                                          \
    "vmlas.s32 q0, " ones ", r0\n\t"                                                               \
    "vmlas.s32 q1, " ones ", r6\n\t"                                                               \
    "vqdmulh.s32 q0, q0, r2\n\t"                                                                   \
    "vqdmulh.s32 q1, q1, r8\n\t"                                                                   \
    "vqrshrnb.s32 q0, q0, #12\n\t"                                                                 \
    "vqrshrnt.s32 q0, q1, #12\n\t"
#define TINYFUSE_4X2_MVE_ONES(v) "vmov.i32 " v ", #256\n\t"
/* The vector of 256s is q3 or q5, or made. */
#define TINYFUSE_4X2_MVE_SCALE_SINGLE_ROUNDING_BY_Q5 TINYFUSE_4X2_MVE_ROUND_ONCE("q5")
#define TINYFUSE_4X2_MVE_SCALE_SINGLE_ROUNDING TINYFUSE_4X2_MVE_ONES("q3") TINYFUSE_4X2_MVE_ROUND_ONCE("q3")
#define TINYFUSE_4X2_MVE_SCALE_SINGLE_ROUNDING_BY_Q3 TINYFUSE_4X2_MVE_ROUND_ONCE("q3")
#define TINYFUSE_4X2_MVE_ZERO_POINT_SINGLE_ROUNDING_BY_Q3(zero_point) ""
#define TINYFUSE_4X2_MVE_ZERO_POINT_SINGLE_ROUNDING_BY_Q5(zero_point) ""
#define TINYFUSE_4X2_MVE_ZERO_POINT_SINGLE_ROUNDING(zero_point) ""
/* Channels that round half to even (their shift is not 0) are computed elsewhere, and continue at label 7. */
#define TINYFUSE_4X2_MVE_SCALE_HALVES_EVEN "cbnz r4, 8f\n\t" TINYFUSE_4X2_MVE_SCALE_SINGLE_ROUNDING "7:\n\t"
#define TINYFUSE_4X2_MVE_SCALE_HALVES_EVEN_BY_Q5 "cbnz r4, 8f\n\t" TINYFUSE_4X2_MVE_SCALE_SINGLE_ROUNDING_BY_Q5 "7:\n\t"
#define TINYFUSE_4X2_MVE_SCALE_HALVES_EVEN_BY_Q3 "cbnz r4, 8f\n\t" TINYFUSE_4X2_MVE_SCALE_SINGLE_ROUNDING_BY_Q3 "7:\n\t"
#define TINYFUSE_4X2_MVE_ZERO_POINT_HALVES_EVEN(zero_point) ""
#define TINYFUSE_4X2_MVE_ZERO_POINT_HALVES_EVEN_BY_Q3(zero_point) ""
#define TINYFUSE_4X2_MVE_ZERO_POINT_HALVES_EVEN_BY_Q5(zero_point) ""
#define TINYFUSE_4X2_MVE_APART(zero_point)                                                         \
    "8:\n\t"                                                                                       \
    "vadd.i32 q0, q0, r0\n\t"                                                                      \
    "vadd.i32 q1, q1, r6\n\t" TINYFUSE_NEAREST4("q0", "r2") TINYFUSE_NEAREST4("q1", "r8")          \
    "vqmovnb.s32 q0, q0\n\t"                                                                       \
    "vqmovnt.s32 q0, q1\n\t" TINYFUSE_4X2_MVE_ZERO_POINT(zero_point)                               \
    "b 7b\n\t"
/* The code for these channels after a loop; it continues after the loop's end. */
#define TINYFUSE_4X2_MVE_BEHIND(zero_point)                                                        \
    "b 9f\n\t" TINYFUSE_4X2_MVE_APART(zero_point)                                                  \
    "9:\n\t"
#define TINYFUSE_4X2_MVE_SCALE_HALVES_UP                                                           \
    "vadd.i32 q0, q0, r0\n\t"                                                                      \
    "vqrdmulh.s32 q0, q0, r2\n\t"                                                                  \
    "vadd.i32 q1, q1, r6\n\t"                                                                      \
    "vqrdmulh.s32 q1, q1, r8\n\t"                                                                  \
    "vrshl.s32 q0, r4\n\t"                                                                         \
    "vrshl.s32 q1, r10\n\t"                                                                        \
    "vqmovnb.s32 q0, q0\n\t"                                                                       \
    "vqmovnt.s32 q0, q1\n\t"
/* VRSHL rounds halves up, so that a negative value is first lowered by one: what is multiplied is added to its sign. A
   value of 0 is lowered, too, where a negative sum gives it; any right shift makes that 0 again. */
#define TINYFUSE_4X2_MVE_SCALE_HALVES_AWAY                                                         \
    "vadd.i32 q1, q1, r6\n\t"                                                                      \
    "vadd.i32 q0, q0, r0\n\t"                                                                      \
    "vshr.s32 q3, q1, #31\n\t"                                                                     \
    "vqrdmlah.s32 q3, q1, r8\n\t"                                                                  \
    "vshr.s32 q1, q0, #31\n\t"                                                                     \
    "vqrdmlah.s32 q1, q0, r2\n\t"                                                                  \
    "vrshl.s32 q3, r10\n\t"                                                                        \
    "vrshl.s32 q1, r4\n\t"                                                                         \
    "vqmovnb.s32 q0, q1\n\t"                                                                       \
    "vqmovnt.s32 q0, q3\n\t"
/* VRSHL rounds halves up, so that a negative value is first lowered by one. */
#define TINYFUSE_4X2_MVE_ROUND_AWAY(v)                                                             \
    "vshr.s32 " v ", q0, #31\n\t"                                                                  \
    "vadd.i32 q0, q0, " v "\n\t"                                                                   \
    "vshr.s32 " v ", q1, #31\n\t"                                                                  \
    "vadd.i32 q1, q1, " v "\n\t"
/* Saturating is the whole clamp. */
#define TINYFUSE_4X2_MVE_SATURATE "vqmovnb.s16 q0, q0\n\t"
#define TINYFUSE_4X2_MVE_CLAMP                                                                     \
    "vmax.s16 q0, q0, q5\n\t"                                                                      \
    "vmin.s16 q0, q0, q6\n\t"

/* Multiplies sixteen inputs: TINYFUSE_4X2_MVE_BLOCK_CODE bytes of code. Loads and products alternate, because
   Cortex-M55 overlaps two vector instructions only if they use different pipelines. q0: the first channel's weights, which
   `next` loads for the next sixteen inputs. */
#define TINYFUSE_4X2_MVE_WEIGHTS "vldrb.8 q0, [r5], #16\n\t"
#define TINYFUSE_4X2_MVE_DOT_ALL(next)                                                             \
    "vldrb.8 q2, [r1], #16\n\t"                                                                    \
    "vmladava.s8 r0, q2, q0\n\t"                                                                   \
    "vldrb.8 q1, [r5], #16\n\t"                                                                    \
    "vmladava.s8 r8, q2, q1\n\t"                                                                   \
    "vldrb.8 q3, [r3], #16\n\t"                                                                    \
    "vmladava.s8 r2, q3, q0\n\t"                                                                   \
    "vldrb.8 q2, [r7], #16\n\t"                                                                    \
    "vmladava.s8 r10, q3, q1\n\t"                                                                  \
    "vldrb.8 q3, [r9], #16\n\t"                                                                    \
    "vmladava.s8 r4, q2, q0\n\t"                                                                   \
    "vmladava.s8 r12, q2, q1\n\t"                                                                  \
    "vmladava.s8 r6, q3, q0\n\t" next                                                             \
    "vmladava.s8 lr, q3, q1\n\t"
/* Multiplies as many inputs as P0 says. */
#define TINYFUSE_4X2_MVE_DOT_REST                                                                  \
    "vldrb.8 q0, [r5], #16\n\t"                                                                    \
    "vpstttt\n\t"                                                                                  \
    "vldrbt.8 q2, [r1]\n\t"                                                                        \
    "vmladavat.s8 r0, q2, q0\n\t"                                                                  \
    "vldrbt.8 q3, [r3]\n\t"                                                                        \
    "vmladavat.s8 r2, q3, q0\n\t"                                                                  \
    "vldrb.8 q1, [r5], #16\n\t"                                                                    \
    "vmladava.s8 r8, q2, q1\n\t"                                                                   \
    "vpstttt\n\t"                                                                                  \
    "vldrbt.8 q2, [r7]\n\t"                                                                        \
    "vmladavat.s8 r10, q3, q1\n\t"                                                                 \
    "vldrbt.8 q3, [r9]\n\t"                                                                        \
    "vmladavat.s8 r4, q2, q0\n\t"                                                                  \
    "vmladava.s8 r12, q2, q1\n\t"                                                                  \
    "vmladava.s8 r6, q3, q0\n\t"                                                                   \
    "vmladava.s8 lr, q3, q1\n\t"

#define TINYFUSE_4X2_MVE_FIELD(field) [field] "i"(offsetof(tinyfuse_4x2_mve_job, field))
#define TINYFUSE_4X2_MVE_OPERANDS                                                                          \
    "r"(arguments), TINYFUSE_4X2_MVE_FIELD(x), TINYFUSE_4X2_MVE_FIELD(places), TINYFUSE_4X2_MVE_FIELD(act_min), \
        TINYFUSE_4X2_MVE_FIELD(weights), TINYFUSE_4X2_MVE_FIELD(first_channels), TINYFUSE_4X2_MVE_FIELD(rest), \
        TINYFUSE_4X2_MVE_FIELD(step), TINYFUSE_4X2_MVE_FIELD(blocks), TINYFUSE_4X2_MVE_FIELD(iterations_bytes) \
        : TINYFUSE_ASM_CLOBBERS, TINYFUSE_CLOBBERS_P0 "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7"

/* Continues with the next four pixels after the last channels; r1 points after their outputs. `left` counts the blocks
   down. r11: the job. */
#define TINYFUSE_4X2_MVE_MOVE(left)                                                                \
    "ldrd r4, r6, [r11, %[step]]\n\t"                                                              \
    "vldrw.u32 q0, [r11, %[x]]\n\t"                                                                \
    "add r1, r6\n\t"                                                                               \
    "vadd.i32 q0, q0, r4\n\t"                                                                      \
    "ldrd r5, r3, [r11, %[weights]]\n\t" /* and first_channels */                                  \
    "vstrw.32 q0, [r11, %[x]]\n\t" left
#define TINYFUSE_4X2_MVE_NEXT                                                                      \
    TINYFUSE_4X2_MVE_MOVE("ldr r8, [r11, %[blocks]]\n\t"                                           \
                        "subs r8, #1\n\t"                                                          \
                        "str r8, [r11, %[blocks]]\n\t")

/* Multiplies any depth, first as many inputs by sixteen as `entry` says. `last` is beside the last product of the fourth
   sixteen, `more` goes back to 3 while there are others, multiplies the rest, and loads the job to r11. `next` uses r12. r1, r3,
   r7 and r9: inputs of four pixels; q4: places; q5 and q6: the clamp; q7: where two channels' iterations of weights
      end. `apart` is code that is only reached by jumps; `ends` sets up q5 and q6. */
#define TINYFUSE_4X2_MVE_DEEP_BEGIN                                                                \
    "clrm " TINYFUSE_4X2_MVE_SUMS "\n\t"                                                           \
    "ldm r11, {r1, r3, r7, r9, r11}\n\t" TINYFUSE_4X2_MVE_WEIGHTS                                  \
    "mov pc, r11\n\t"
#define TINYFUSE_4X2_MVE_DEEP(last, more, next, ends, stored, apart)                               \
    __asm volatile(TINYFUSE_ASM_BEGIN                                                              \
                   "mov r11, r0\n\t"                                                               \
                   "vldrw.u32 q4, [r11, %[places]]\n\t" ends                                       \
                   "ldr r0, [r11, %[skip]]\n\t"                                                    \
                   "adr.w r1, 3f\n\t"                                                              \
                   "add r0, r1\n\t"                                                                \
                   "str r0, [r11, %[entry]]\n\t"                                                   \
                   "ldr r5, [r11, %[weights]]\n\t"                                                 \
                   "ldr r0, [r11, %[rest]]\n\t"                                                    \
                   "vctp.8 r0\n\t"                                                                 \
                   "1:\n\t"                                                                        \
                   "ldr r0, [r11, %[iterations_bytes]]\n\t"                                        \
                   "add r0, r5\n\t"                                                                \
                   "vdup.32 q7, r0\n\t"                                                            \
                   "add r11, r11, %[x]\n\t" TINYFUSE_4X2_MVE_DEEP_BEGIN                            \
                   ".p2align 2\n\t" /* ADR counts from words */                                 \
                   "3:\n\t" TINYFUSE_4X2_MVE_WEIGHTS                                               \
                   TINYFUSE_4X2_MVE_DOT_ALL(TINYFUSE_4X2_MVE_WEIGHTS)                              \
                   TINYFUSE_4X2_MVE_DOT_ALL(TINYFUSE_4X2_MVE_WEIGHTS)                              \
                   TINYFUSE_4X2_MVE_DOT_ALL(TINYFUSE_4X2_MVE_WEIGHTS)                              \
                   TINYFUSE_4X2_MVE_DOT_ALL(last) more                                             \
                   "vmov q0[2], q0[0], r0, r4\n\t"                                                 \
                   "ldm r11!, {r1, r3, r7, r9}\n\t"                                                \
                   "vmov q0[3], q0[1], r2, r6\n\t"                                                 \
                   "vmov q1[2], q1[0], r8, r12\n\t" next                                           \
                   "vmov q1[3], q1[1], r10, lr\n\t" stored                                         \
                   "adds r0, r1, #2\n\t"                                                           \
                   "strd r0, r3, [r11, #-16]\n\t"                                                  \
                   "cmp r3, r7\n\t"                                                                \
                   "vstrb.16 q0, [r1, q4]\n\t"                                                     \
                   "beq 2f\n\t" TINYFUSE_4X2_MVE_DEEP_BEGIN apart                                  \
                   "2:\n\t"                                                                        \
                   "ldr r11, [sp]\n\t"                                                             \
                   "mov r1, r0\n\t" TINYFUSE_4X2_MVE_NEXT                                          \
                   "strd r1, r3, [r11]\n\t"                                                        \
                   "bne 1b\n\t" TINYFUSE_ASM_END                                                   \
                   :                                                                               \
                   : TINYFUSE_4X2_MVE_FIELD(skip), TINYFUSE_4X2_MVE_FIELD(entry),                  \
                     [pair_bytes] "i"(offsetof(tinyfuse_4x2_mve_job, pair_bytes) - offsetof(tinyfuse_4x2_mve_job, x)), \
                     TINYFUSE_4X2_MVE_OPERANDS)

#define TINYFUSE_4X2_MVE_JOB "ldr r11, [sp]\n\t"
#define TINYFUSE_4X2_MVE_ENDS                                                                      \
    "ldrd r0, r1, [r11, %[act_min]]\n\t"                                                           \
    "vdup.16 q5, r0\n\t"                                                                           \
    "vdup.16 q6, r1\n\t"
#define TINYFUSE_4X2_MVE_ONCE(ends, round, clamp, apart)                                           \
    TINYFUSE_4X2_MVE_DEEP(TINYFUSE_4X2_MVE_JOB, "", "", ends, TINYFUSE_4X2_MVE_SCALE("r3", "r9", round) clamp, apart)
#define TINYFUSE_4X2_MVE_WHOLE(rest_of, ends, round, clamp, apart)                                 \
    TINYFUSE_4X2_MVE_DEEP("vmov.32 r11, q7[0]\n\t",                                                \
                          "cmp r5, r11\n\t"                                                        \
                          "bne 3b\n\t" rest_of TINYFUSE_4X2_MVE_JOB,                               \
                          "ldr r12, [r11, %[pair_bytes]]\n\t"                                      \
                          "vadd.i32 q7, q7, r12\n\t",                                              \
                          ends, TINYFUSE_4X2_MVE_SCALE("r3", "r9", round) clamp, apart)
#define TINYFUSE_4X2_MVE_REST                                                                      \
    TINYFUSE_4X2_MVE_JOB                                                                           \
    "ldr r11, [r11, %[rest]]\n\t"                                                                  \
    "cmp r11, #0\n\t"                                                                              \
    "beq 4f\n\t" TINYFUSE_4X2_MVE_DOT_REST                                                         \
    "4:\n\t"

/* For at most sixteen inputs: the setup of all blocks, and the loads of a block's four pixels. */
#define TINYFUSE_4X2_MVE_FEW_CHANNELS_BEGIN                                                              \
    "mov r11, r0\n\t"                                                                              \
    "vldrw.u32 q2, [r11, %[places]]\n\t"                                                           \
    "ldr r0, [r11, %[rest]]\n\t"                                                                   \
    "ldr r5, [r11, %[weights]]\n\t"                                                                \
    "vctp.8 r0\n\t"                                                                                \
    "ldm r11, {r1, r3, r7, r9}\n\t"
#define TINYFUSE_4X2_MVE_FEW_CHANNELS_PIXELS                                                             \
    "ldrd r0, r2, [r11, %[x]]\n\t"                                                                 \
    "ldrd r4, r6, [r11, %[x] + 8]\n\t"                                                             \
    "vpstttt\n\t"                                                                                  \
    "vldrbt.8 q4, [r0]\n\t" /* zeros after the inputs */                                           \
    "vldrbt.8 q5, [r2]\n\t"                                                                        \
    "vldrbt.8 q6, [r4]\n\t"                                                                        \
    "vldrbt.8 q7, [r6]\n\t"

/* Multiplies at most sixteen inputs, which stay in q4 to q7 for all channels. q2: places; r1: out; r3: channels; r7:
   their end; r9: the zero point; r11: the job, or, where there is a clamp, both its ends in 16 bits. */
#define TINYFUSE_4X2_MVE_FEW_CHANNELS(begin, round, clamp, behind)                                 \
    __asm volatile(TINYFUSE_ASM_BEGIN TINYFUSE_4X2_MVE_FEW_CHANNELS_BEGIN                                \
                   "1:\n\t" TINYFUSE_4X2_MVE_FEW_CHANNELS_PIXELS begin                                   \
                   "2:\n\t"                                                                        \
                   "vldrb.8 q0, [r5], #16\n\t"                                                     \
                   "vmladav.s8 r0, q4, q0\n\t"                                                     \
                   "vldrb.8 q1, [r5], #16\n\t"                                                     \
                   "vmladav.s8 r2, q5, q0\n\t"                                                     \
                   "vmladav.s8 r8, q4, q1\n\t"                                                     \
                   "vmladav.s8 r10, q5, q1\n\t"                                                    \
                   "vmladav.s8 r4, q6, q0\n\t"                                                     \
                   "vmladav.s8 r12, q6, q1\n\t"                                                    \
                   "vmladav.s8 r6, q7, q0\n\t"                                                     \
                   "vmladav.s8 lr, q7, q1\n\t"                                                     \
                   TINYFUSE_4X2_MVE_SUMS_TO_VECTORS                                                \
                   TINYFUSE_4X2_MVE_SCALE("r3", "r9", round) clamp                                 \
                   "vstrb.16 q0, [r1, q2]\n\t"                                                     \
                   "adds r1, #2\n\t"                                                               \
                   "cmp r3, r7\n\t"                                                                \
                   "bne 2b\n\t"                                                                    \
                   TINYFUSE_4X2_MVE_NEXT                                                           \
                   "bne 1b\n\t" behind TINYFUSE_ASM_END                                            \
                   :                                                                               \
                   : TINYFUSE_4X2_MVE_OPERANDS)

/* Sums are clamped by what a vector of each end has: q3. */
#define TINYFUSE_4X2_MVE_CLAMP_FEW_CHANNELS                                                              \
    "ldrd r0, r2, [r11, %[act_min]]\n\t"                                                           \
    "vdup.16 q3, r0\n\t"                                                                           \
    "vmax.s16 q0, q0, q3\n\t"                                                                      \
    "vdup.16 q3, r2\n\t"                                                                           \
    "vmin.s16 q0, q0, q3\n\t"

/* A pixel alone, eight channels at a time, `blocks` of them. r1, r3, r7 and r9: weights of two channels each; r5: inputs;
   r11: inputs left; q4: where the constants of channels 0, 2, 4 and 6 lie. */
#define TINYFUSE_4X2_MVE_ONE(round, clamp)                                                         \
    TINYFUSE_4X2_MVE_ONE_OF("",                                                                    \
                            "vqrdmulh.s32 q0, q0, q2\n\t"                                          \
                            "vqrdmulh.s32 q1, q1, q3\n\t" round                                    \
                            "vldrw.u32 q2, [q4, #8]\n\t"                                           \
                            "vldrw.u32 q3, [q4, #20]\n\t"                                          \
                            "vrshl.s32 q0, q0, q2\n\t"                                             \
                            "vrshl.s32 q1, q1, q3\n\t"                                             \
                            "vqmovnb.s32 q0, q0\n\t"                                               \
                            "vqmovnt.s32 q0, q1\n\t",                                              \
                            "ldr r0, [r11, %[zero_point]]\n\t"                                     \
                            "vqadd.s16 q0, q0, r0\n\t" clamp)
/* `before` is in front of the sum with the biases, q0 with q2 and q1 with q3; `narrow` makes 16-bit outputs in q0 of what
   the multipliers q2 and q3 are for. */
#define TINYFUSE_4X2_MVE_ONE_OF(before, narrow, clamp)                                             \
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
                   "clrm " TINYFUSE_4X2_MVE_SUMS "\n\t"                                            \
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
                   "mov r1, r9\n\t" TINYFUSE_4X2_MVE_SUMS_TO_VECTORS                               \
                   "ldr r11, [sp]\n\t" before                                                      \
                   "vldrw.u32 q2, [q4]\n\t"                                                        \
                   "vldrw.u32 q3, [q4, #12]\n\t"                                                   \
                   "vadd.i32 q0, q0, q2\n\t"                                                       \
                   "vadd.i32 q1, q1, q3\n\t"                                                       \
                   "vldrw.u32 q2, [q4, #4]\n\t"                                                    \
                   "vldrw.u32 q3, [q4, #16]\n\t"                                                   \
                   narrow                                                                          \
                   "ldr r2, [r11]\n\t"                                                             \
                   "mov r6, #96\n\t" clamp                                                         \
                   "vadd.i32 q4, q4, r6\n\t"                                                       \
                   "ldr r8, [r11, %[blocks]]\n\t"                                                  \
                   "vstrb.16 q0, [r2], #8\n\t"                                                     \
                   "str r2, [r11]\n\t"                                                             \
                   "subs r8, #1\n\t"                                                               \
                   "str r8, [r11, %[blocks]]\n\t"                                                  \
                   "bne 1b\n\t" TINYFUSE_ASM_END                                                   \
                   :                                                                               \
                   : TINYFUSE_4X2_MVE_FIELD(zero_point), TINYFUSE_4X2_MVE_FIELD(pair_bytes),               \
                     TINYFUSE_4X2_MVE_FIELD(depth), TINYFUSE_4X2_MVE_OPERANDS)

#define TINYFUSE_4X2_MVE_FUNCTION(name, code)                                                      \
    TINYFUSE_ASM_FUNCTION(tinyfuse_4x2_mve_##name, tinyfuse_4x2_mve_job, code)

TINYFUSE_4X2_MVE_FUNCTION(one_each, TINYFUSE_4X2_MVE_ONE(TINYFUSE_4X2_MVE_ROUND_AWAY("q2"), TINYFUSE_4X2_MVE_CLAMP))
TINYFUSE_4X2_MVE_FUNCTION(one_saturated, TINYFUSE_4X2_MVE_ONE(TINYFUSE_4X2_MVE_ROUND_AWAY("q2"), TINYFUSE_4X2_MVE_SATURATE))
TINYFUSE_4X2_MVE_FUNCTION(one_rectified, TINYFUSE_4X2_MVE_ONE("", TINYFUSE_4X2_MVE_SATURATE))


#define TINYFUSE_4X2_MVE_ONE_SINGLE_ROUNDING(clamp)                                                \
    TINYFUSE_4X2_MVE_ONE_OF("vshl.i32 q0, q0, #8\n\t"                                              \
                            "vshl.i32 q1, q1, #8\n\t",                                             \
                            "vqdmulh.s32 q0, q0, q2\n\t"                                           \
                            "vqdmulh.s32 q1, q1, q3\n\t"                                           \
                            "vqrshrnb.s32 q0, q0, #12\n\t"                                         \
                            "vqrshrnt.s32 q0, q1, #12\n\t",                                        \
                            clamp)

TINYFUSE_4X2_MVE_FUNCTION(one_single_rounding, TINYFUSE_4X2_MVE_ONE_SINGLE_ROUNDING(TINYFUSE_4X2_MVE_CLAMP))
TINYFUSE_4X2_MVE_FUNCTION(one_single_rounding_saturated, TINYFUSE_4X2_MVE_ONE_SINGLE_ROUNDING(TINYFUSE_4X2_MVE_SATURATE))

#if TINYFUSE_MVE_FLOATS

/* Where some channels round half to even: shifts of 0, of single rounding, choose the lanes that are in 256ths. */
#define TINYFUSE_4X2_MVE_ONE_TO_256THS(v, shifts)                                                  \
    "vldrw.u32 q7, [q4, " shifts "]\n\t"                                                           \
    "vpt.i32 eq, q7, zr\n\t"                                                                       \
    "vshlt.i32 " v ", " v ", #8\n\t"
#define TINYFUSE_4X2_MVE_ONE_SINGLE_OR_HALF_EVEN(v, scale, shifts)                                 \
    "vldrw.u32 q7, [q4, " shifts "]\n\t"                                                           \
    "vpttee.i32 eq, q7, zr\n\t"                                                                    \
    "vqdmulht.s32 " v ", " v ", " scale "\n\t"                                                     \
    "vrshrt.s32 " v ", " v ", #12\n\t"                                                             \
    "vcvte.f32.s32 " v ", " v "\n\t"                                                               \
    "vmule.f32 " v ", " v ", " scale "\n\t"                                                        \
    "vptt.i32 ne, q7, zr\n\t"                                                                      \
    "vcvtnt.s32.f32 " v ", " v "\n\t"                                                              \
    "vqaddt.s32 " v ", " v ", r0\n\t"
#define TINYFUSE_4X2_MVE_ONE_EVEN(clamp)                                                           \
    TINYFUSE_4X2_MVE_ONE_OF(TINYFUSE_4X2_MVE_ONE_TO_256THS("q0", "#8")                             \
                            TINYFUSE_4X2_MVE_ONE_TO_256THS("q1", "#20"),                           \
                            "ldr r0, [r11, %[zero_point]]\n\t"                                     \
                            TINYFUSE_4X2_MVE_ONE_SINGLE_OR_HALF_EVEN("q0", "q2", "#8")             \
                            TINYFUSE_4X2_MVE_ONE_SINGLE_OR_HALF_EVEN("q1", "q3", "#20")            \
                            "vqmovnb.s32 q0, q0\n\t"                                               \
                            "vqmovnt.s32 q0, q1\n\t",                                              \
                            clamp)

TINYFUSE_4X2_MVE_FUNCTION(one_half_even, TINYFUSE_4X2_MVE_ONE_EVEN(TINYFUSE_4X2_MVE_CLAMP))
TINYFUSE_4X2_MVE_FUNCTION(one_half_even_saturated, TINYFUSE_4X2_MVE_ONE_EVEN(TINYFUSE_4X2_MVE_SATURATE))

#endif

/* All channels, `blocks` of eight, of the job's first pixel. */
TINYFUSE_INLINE void tinyfuse_4x2_mve_one_mve(tinyfuse_4x2_mve_job *job, int form)
{
    TINYFUSE_4X2_MVE_THERE_OF(form, tinyfuse_4x2_mve_one)(job);
}

/* Defines three functions of a form for more than sixteen inputs. `deep`: any depth; `whole`: a multiple of sixteen;
   `once`: at most one iteration over blocks of sixteen. */
#define TINYFUSE_4X2_MVE_DEEP_FUNCTIONS(form, ends, round, clamp, apart)                           \
    TINYFUSE_4X2_MVE_FUNCTION(deep_##form, TINYFUSE_4X2_MVE_WHOLE(TINYFUSE_4X2_MVE_REST, ends, round, clamp, apart)) \
    TINYFUSE_4X2_MVE_FUNCTION(whole_##form, TINYFUSE_4X2_MVE_WHOLE("", ends, round, clamp, apart)) \
    TINYFUSE_4X2_MVE_FUNCTION(once_##form, TINYFUSE_4X2_MVE_ONCE(ends, round, clamp, apart))

TINYFUSE_4X2_MVE_DEEP_FUNCTIONS(each, TINYFUSE_4X2_MVE_ENDS, HALVES_AWAY, TINYFUSE_4X2_MVE_CLAMP, "")
TINYFUSE_4X2_MVE_DEEP_FUNCTIONS(saturated, TINYFUSE_4X2_MVE_ENDS, HALVES_AWAY, TINYFUSE_4X2_MVE_SATURATE, "")
TINYFUSE_4X2_MVE_DEEP_FUNCTIONS(rectified, TINYFUSE_4X2_MVE_ENDS, HALVES_UP, TINYFUSE_4X2_MVE_SATURATE, "")
TINYFUSE_4X2_MVE_DEEP_FUNCTIONS(single_rounding, TINYFUSE_4X2_MVE_ENDS, SINGLE_ROUNDING, TINYFUSE_4X2_MVE_CLAMP, "")
TINYFUSE_4X2_MVE_DEEP_FUNCTIONS(single_rounding_saturated, TINYFUSE_4X2_MVE_ONES("q5"), SINGLE_ROUNDING_BY_Q5,
                                TINYFUSE_4X2_MVE_SATURATE, "")

#define TINYFUSE_4X2_MVE_FEW_CHANNELS_FUNCTION(form, begin, round, clamp, behind)                  \
    TINYFUSE_4X2_MVE_FUNCTION(few_channels_##form, TINYFUSE_4X2_MVE_FEW_CHANNELS(begin, round, clamp, behind))

TINYFUSE_4X2_MVE_FEW_CHANNELS_FUNCTION(each, "", HALVES_AWAY, TINYFUSE_4X2_MVE_CLAMP_FEW_CHANNELS, "")
TINYFUSE_4X2_MVE_FEW_CHANNELS_FUNCTION(saturated, "", HALVES_AWAY, TINYFUSE_4X2_MVE_SATURATE, "")
TINYFUSE_4X2_MVE_FEW_CHANNELS_FUNCTION(rectified, "", HALVES_UP, TINYFUSE_4X2_MVE_SATURATE, "")
TINYFUSE_4X2_MVE_FEW_CHANNELS_FUNCTION(single_rounding, "", SINGLE_ROUNDING, TINYFUSE_4X2_MVE_CLAMP_FEW_CHANNELS, "")
TINYFUSE_4X2_MVE_FEW_CHANNELS_FUNCTION(single_rounding_saturated, TINYFUSE_4X2_MVE_ONES("q3"), SINGLE_ROUNDING_BY_Q3,
                                       TINYFUSE_4X2_MVE_SATURATE, "")

#if TINYFUSE_MVE_FLOATS
TINYFUSE_4X2_MVE_DEEP_FUNCTIONS(half_even, TINYFUSE_4X2_MVE_ENDS, HALVES_EVEN, TINYFUSE_4X2_MVE_CLAMP,
                                TINYFUSE_4X2_MVE_APART("r9"))
TINYFUSE_4X2_MVE_DEEP_FUNCTIONS(half_even_saturated, TINYFUSE_4X2_MVE_ONES("q5"), HALVES_EVEN_BY_Q5,
                                TINYFUSE_4X2_MVE_SATURATE, TINYFUSE_4X2_MVE_APART("r9"))
TINYFUSE_4X2_MVE_FEW_CHANNELS_FUNCTION(half_even, "", HALVES_EVEN, TINYFUSE_4X2_MVE_CLAMP_FEW_CHANNELS,
                                       TINYFUSE_4X2_MVE_BEHIND("r9"))
TINYFUSE_4X2_MVE_FEW_CHANNELS_FUNCTION(half_even_saturated, TINYFUSE_4X2_MVE_ONES("q3"), HALVES_EVEN_BY_Q3,
                                       TINYFUSE_4X2_MVE_SATURATE, TINYFUSE_4X2_MVE_BEHIND("r9"))
#endif

/* All channels of the job's pixels. */
TINYFUSE_INLINE void tinyfuse_4x2_mve_run_mve(tinyfuse_4x2_mve_job *job, int form)
{
    const int32_t depth = job->depth;
    if (depth <= TINYFUSE_4X2_MVE_BLOCK) {
        TINYFUSE_4X2_MVE_THERE_OF(form, tinyfuse_4x2_mve_few_channels)(job);
    } else if (job->rest > 0) {
        TINYFUSE_4X2_MVE_THERE_OF(form, tinyfuse_4x2_mve_deep)(job);
    } else if (depth <= TINYFUSE_4X2_MVE_ITERATION * TINYFUSE_4X2_MVE_BLOCK) {
        TINYFUSE_4X2_MVE_THERE_OF(form, tinyfuse_4x2_mve_once)(job);
    } else {
        TINYFUSE_4X2_MVE_THERE_OF(form, tinyfuse_4x2_mve_whole)(job);
    }
}

#endif

/* C twin of the assembly above, with the same results. */
TINYFUSE_SHARED void tinyfuse_4x2_mve_run_c(tinyfuse_4x2_mve_job *job, int form)
{
    const int32_t depth = job->depth;
    const int32_t padded = (depth + TINYFUSE_4X2_MVE_BLOCK - 1) / TINYFUSE_4X2_MVE_BLOCK * TINYFUSE_4X2_MVE_BLOCK;
    int32_t i, k, o;
    for (; job->blocks > 0; --job->blocks) {
        const int8_t *weights = job->weights;
        for (job->channels = job->first_channels; job->channels != job->channels_end; job->channels += 6) {
            for (i = 0; i < TINYFUSE_4X2_MVE_PIXELS * TINYFUSE_4X2_MVE_CHANNELS; ++i) {
                const int32_t *const channel = job->channels + 3 * (i & 1);
                uint32_t sum = 0; /* wraps */
                for (k = 0; k < depth; ++k) {
                    o = k / TINYFUSE_4X2_MVE_BLOCK * TINYFUSE_4X2_MVE_CHANNELS + (i & 1);
                    sum += (uint32_t)(job->x[i >> 1][k] *
                                      weights[o * TINYFUSE_4X2_MVE_BLOCK + k % TINYFUSE_4X2_MVE_BLOCK]);
                }
                k = tinyfuse_vector_output(sum, channel, job->zero_point, tinyfuse_4x2_mve_rule(form));
                job->out[job->places[i]] = (int8_t)tinyfuse_clamp(k, job->act_min, job->act_max);
            }
            weights += TINYFUSE_4X2_MVE_CHANNELS * padded;
            job->out += TINYFUSE_4X2_MVE_CHANNELS;
        }
        job->out += job->out_step;
        for (i = 0; i < TINYFUSE_4X2_MVE_PIXELS; ++i) {
            job->x[i] += job->step;
        }
    }
}

/* All channels, `blocks` of eight, of the job's first pixel. */
TINYFUSE_INLINE void tinyfuse_4x2_mve_one_c(tinyfuse_4x2_mve_job *job, int form)
{
    int32_t i;
    for (i = 0; i < TINYFUSE_4X2_MVE_PIXELS; ++i) {
        job->x[i] = job->x[0];
        job->places[2 * i] = 0;
        job->places[2 * i + 1] = 1;
    }
    job->blocks = 1;
    tinyfuse_4x2_mve_run_c(job, form);
}

/* All channels of the job's pixels, on vectors where there are some of what the form takes. */
TINYFUSE_INLINE void tinyfuse_4x2_mve_run(tinyfuse_4x2_mve_job *job, int form)
{
#if TINYFUSE_MVE
    if (TINYFUSE_MVE_FLOATS || !tinyfuse_4x2_mve_is_half_even(form)) {
        tinyfuse_4x2_mve_run_mve(job, form);
        return;
    }
#endif
    tinyfuse_4x2_mve_run_c(job, form);
}

TINYFUSE_INLINE void tinyfuse_4x2_mve_one(tinyfuse_4x2_mve_job *job, int form)
{
#if TINYFUSE_MVE
    if (TINYFUSE_MVE_FLOATS || !tinyfuse_4x2_mve_is_half_even(form)) {
        tinyfuse_4x2_mve_one_mve(job, form);
        return;
    }
#endif
    tinyfuse_4x2_mve_one_c(job, form);
}

/* Sets up `pixels` pixels, 1 to 4, to `out`; the last one is repeated up to four. */
TINYFUSE_INLINE void tinyfuse_4x2_mve_place(tinyfuse_4x2_mve_job *job, const tinyfuse_matmul_4x2_mve *p,
                                            const int8_t *in, int32_t pixels, int8_t *out)
{
    int32_t i;
    for (i = 0; i < TINYFUSE_4X2_MVE_PIXELS; ++i) {
        const int32_t pixel = tinyfuse_min(i, pixels - 1);
        job->x[i] = in + pixel * p->pitch;
        job->places[2 * i] = (uint16_t)(pixel * p->out_c);
        job->places[2 * i + 1] = (uint16_t)(pixel * p->out_c + 1);
    }
    job->out = out;
    job->channels = job->first_channels;
}

/* Computes what tinyfuse_pointwise_4x2_mve_s8 does. */
TINYFUSE_INLINE void tinyfuse_pointwise_4x2_mve(const tinyfuse_matmul_4x2_mve *p, const int8_t *in, int32_t pixels,
                                                int8_t *out, const int8_t *weights, const int32_t *channels, int form)
{
    const int32_t vectors = (p->depth + TINYFUSE_4X2_MVE_BLOCK - 1) / TINYFUSE_4X2_MVE_BLOCK;
    const int32_t whole = p->depth / TINYFUSE_4X2_MVE_BLOCK;
    tinyfuse_4x2_mve_job job;
    job.zero_point = p->out_zero_point;
    job.act_min = p->act_min;
    job.act_max = p->act_max;
    job.weights = weights;
    job.first_channels = channels;
    job.channels_end = channels + 3 * p->out_c;
    job.pair_bytes = TINYFUSE_4X2_MVE_CHANNELS * TINYFUSE_4X2_MVE_BLOCK * vectors;
    job.iterations_bytes = TINYFUSE_4X2_MVE_CHANNELS * TINYFUSE_4X2_MVE_BLOCK * whole;
    job.depth = p->depth;
    job.rest = p->depth <= TINYFUSE_4X2_MVE_BLOCK ? p->depth : p->depth % TINYFUSE_4X2_MVE_BLOCK;
    job.skip = (-whole & (TINYFUSE_4X2_MVE_ITERATION - 1)) * TINYFUSE_4X2_MVE_BLOCK_CODE + TINYFUSE_4X2_MVE_WEIGHTS_CODE;
    job.step = TINYFUSE_4X2_MVE_PIXELS * p->pitch;
    job.out_step = (TINYFUSE_4X2_MVE_PIXELS - 1) * p->out_c;
    while (pixels > 0) {
        int32_t some = tinyfuse_min(pixels, TINYFUSE_4X2_MVE_PIXELS); /* pixels of each block */
        if (some <= TINYFUSE_4X2_MVE_ALONE && p->out_c % 8 == 0) {
            job.x[0] = in;
            job.out = out;
            job.blocks = p->out_c / 8;
            tinyfuse_4x2_mve_one(&job, form);
            some = 1;
        } else {
            job.blocks = pixels / some;
            tinyfuse_4x2_mve_place(&job, p, in, some, out);
            some *= job.blocks;
            tinyfuse_4x2_mve_run(&job, form);
        }
        in += some * p->pitch;
        out += some * p->out_c;
        pixels -= some;
    }
}

TINYFUSE_4X2_MVE_BY_FORM(tinyfuse_pointwise_4x2_mve, tinyfuse_pointwise_4x2_mve,
                         (const tinyfuse_matmul_4x2_mve *p, const int8_t *in, int32_t pixels, int8_t *out,
                          const int8_t *weights, const int32_t *channels),
                         p, in, pixels, out, weights, channels)

/* Computes a layer, in [pixels] inputs, `pitch` bytes from each pixel's to the next one's, to out [pixels][out_c],
   forward by four pixels: their outputs must not overlap them or later ones. out_c is even, `form` a constant. */
TINYFUSE_INLINE void tinyfuse_pointwise_4x2_mve_s8(const tinyfuse_matmul_4x2_mve *p, const int8_t *in,
                                                   int32_t pixels, int8_t *out, const int8_t *weights,
                                                   const int32_t *channels, int form)
{
    TINYFUSE_4X2_MVE_EVEN_OF(form, tinyfuse_pointwise_4x2_mve)(p, in, pixels, out, weights, channels);
}

/* Computes output row y of a 1x1 convolution with strides and without padding. Reads only the input row of y's
   window, writes only the out_w * out_c bytes of out_row, which must not overlap it. */
TINYFUSE_INLINE void tinyfuse_pointwise_4x2_strided_mve_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                               int8_t *out_row, const int8_t *weights,
                                                               const int32_t *channels, int form)
{
    const tinyfuse_matmul_4x2_mve m = {p->in_c,          p->out_c,   p->stride_w * p->in_c,
                                 p->out_zero_point, p->act_min, p->act_max};
    tinyfuse_pointwise_4x2_mve_s8(&m,
                                   tinyfuse_ring_row(in, y * p->stride_h, p->in_ring, p->in_w * p->in_c) -
                                       p->pad_left * p->in_c,
                                   p->out_w, out_row, weights, channels, form);
}

#endif
