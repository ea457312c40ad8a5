/* The inner product of convolutions and fully connected layers for Helium: two pixels (or batches) of
   int8 inputs times four output channels, or one pixel times eight. Requantization is the general form,
   four channels in a vector; left shifts are a form of their own.

   weights  [ceil(out_c / 4)] groups; a group is [depth / 16][4][16] and then [4][depth % 16]; zeros
            for channels beyond out_c; 16 bytes more at the end, which are read but don't count.
   channels [ceil(out_c / 4)][3][4] int32: of four channels the biases, with -zero point * sum of
            weights folded in; the multipliers; the shifts, positive to the left, or scales (tinyfuse_half_even.h) and zeros. With `one_scale`, a constant, all
            channels have one multiplier and shift: [4] multipliers, [4] shifts, [ceil(out_c / 4)][4] biases, groups
            being even in number

   Weights of int4 stay two to a byte. A byte has the weights v and w of two channels for one input, as 16 * w + v.
   Multiplied as it is, it adds up to 16 times the second channel's sum and the first one's; shifted left by four, to 16
   times the first one's. So one instruction widens 16 pairs, and both sums are separated once, after the loop. 16 times a
   sum with its bias must fit 32 bits, and 16 * w + v a byte; the compiler proves both. A group is [depth / 16][2 pairs of
   channels][16] and then [2][depth % 16]; of a pair the biases are 16 * b and 16 * c + b, where b and c are the
   channels' own. */
#ifndef TINYFUSE_MATMUL_2X4_MVE_H
#define TINYFUSE_MATMUL_2X4_MVE_H

#include "tinyfuse_half_even.h"

typedef struct {
    int32_t depth, out_c, out_zero_point, act_min, act_max;
} tinyfuse_matmul_2x4_mve;

/* Variants of requantization. Each channel has its own scale, except with ONE_SCALE. */
enum {
    TINYFUSE_MVE_EACH, /* two roundings, no left shifts */
    TINYFUSE_MVE_ONE_SCALE, /* one scale for all channels of a single vector */
    TINYFUSE_MVE_RECTIFIED, /* the clamp is all of int8, and the output zero point -128 */
    TINYFUSE_MVE_SHIFTED,   /* two roundings, shifts to the left or right */
    TINYFUSE_MVE_HALF_EVEN,
    TINYFUSE_MVE_ONE_SCALE_HALF_EVEN,
    TINYFUSE_MVE_HALF_EVEN_SATURATED, /* the clamp is all of int8 */
    TINYFUSE_MVE_INT4 /* weights of int4; two roundings, no left shifts */
};

TINYFUSE_INLINE int tinyfuse_mve_rounds_even(int form)
{
    return form == TINYFUSE_MVE_HALF_EVEN || form == TINYFUSE_MVE_HALF_EVEN_SATURATED ||
           form == TINYFUSE_MVE_ONE_SCALE_HALF_EVEN;
}

TINYFUSE_INLINE int tinyfuse_mve_has_one_scale(int form)
{
    return form == TINYFUSE_MVE_ONE_SCALE || form == TINYFUSE_MVE_ONE_SCALE_HALF_EVEN;
}

/* A run of inputs that are contiguous in memory, for two pixels. The assembly multiplies four blocks of sixteen per
   iteration; it skips the first `skip` bytes of code in the first iteration. It loads all fields by one LDM. */
typedef struct {
    const int8_t *x0, *x1;
    int32_t skip;
    int32_t iterations; /* twice the iterations after the first, and one more where another run follows */
} tinyfuse_mve_run;

/* bytes of a block's code, of two pixels, of one alone; blocks of an iteration */
enum { TINYFUSE_MVE_BLOCK_CODE = 56, TINYFUSE_MVE_ALONE_CODE = 68, TINYFUSE_MVE_ITERATION = 4 };

/* The job of a layer's pixels. The assembly advances the first three fields, which lie before those that it loads
   with them, and loads x0 and x1, act_min and act_max in pairs. */
typedef struct {
    int8_t *out0, *out1;
    int32_t channels_left, out_zero_point;
    int32_t multiplier, shift, lower; /* with one scale; `lower` is -1 where it shifts */
    tinyfuse_mve_run inputs; /* all of them */
    const tinyfuse_mve_run *runs;
    int32_t blocks, rest; /* blocks of 16 inputs; inputs after them, which no run counts */
    const int8_t *weights;
    const int32_t *bias;
    int32_t act_min, act_max;
    int32_t group_bytes; /* bytes of the weights of four channels */
    int32_t skip_alone, iterations_alone; /* as a run's, for eight channels of one pixel */
} tinyfuse_mve_job;

/* Sets a run's blocks of sixteen inputs, and whether another run follows. */
TINYFUSE_INLINE void tinyfuse_mve_count(tinyfuse_mve_run *run, int32_t blocks, int more)
{
    const int32_t iterations = tinyfuse_max(1, (blocks + TINYFUSE_MVE_ITERATION - 1) / TINYFUSE_MVE_ITERATION);
    run->skip = (TINYFUSE_MVE_ITERATION * iterations - blocks) * TINYFUSE_MVE_BLOCK_CODE;
    run->iterations = 2 * (iterations - 1) + more;
}

TINYFUSE_INLINE void tinyfuse_mve_start(tinyfuse_mve_job *job, const tinyfuse_matmul_2x4_mve *p,
                                        const int8_t *weights, const int32_t *channels, int form)
{
    const int one_scale = tinyfuse_mve_has_one_scale(form);
    job->out_zero_point = p->out_zero_point;
    tinyfuse_mve_count(&job->inputs, p->depth >> 4, 0);
    job->runs = &job->inputs;
    if (one_scale != 0) {
        job->multiplier = channels[0];
        job->shift = channels[4];
        job->lower = job->shift < 0 ? -1 : 0;
    }
    job->blocks = p->depth >> 4;
    job->rest = p->depth & 15;
    job->skip_alone = job->inputs.skip / TINYFUSE_MVE_BLOCK_CODE * TINYFUSE_MVE_ALONE_CODE;
    job->iterations_alone = job->inputs.iterations + (job->rest > 0);
    job->weights = weights;
    job->bias = one_scale ? channels + 8 : channels;
    job->act_min = p->act_min;
    job->act_max = p->act_max;
    job->group_bytes = (form == TINYFUSE_MVE_INT4 ? 2 : 4) * p->depth;
}

#if TINYFUSE_MVE

/* Rounds twice as tinyfuse_requantize does: VQRDMULH is the rounding doubling high multiply, VRSHL rounds halves up, so
   that a negative value that will be shifted is first lowered by one: `lower` is -1 if there is a shift, else 0. */
#define TINYFUSE_SCALE4(v, multiplier, lower, shift)                                               \
    "vqrdmulh.s32 " v ", " v ", " multiplier "\n\t"                                                \
    "vpt.s32 lt, " v ", zr\n\t"                                                                    \
    "vaddt.i32 " v ", " v ", " lower "\n\t"                                                        \
    "vrshl.s32 " v ", " shift "\n\t"
#define TINYFUSE_SCALE4_SHARED(v) TINYFUSE_SCALE4(v, "r8", "r12", "r10")

/* Loads four channels' multipliers and shifts. */
#define TINYFUSE_LOAD_SCALES(multiplier, shift, lower, at, multipliers, shifts)                    \
    "vldrw.s32 " multiplier ", [" at ", " multipliers "]\n\t"                                      \
    "vldrw.s32 " shift ", [" at ", " shifts "]\n\t"                                                \
    "vshr.s32 " lower ", " shift ", #31\n\t"

/* Shifts `v` left where `shift` is positive, and sets `shift` to the right shifts that remain. A left shift wraps, as
   in tinyfuse_requantize. */
#define TINYFUSE_SHIFT4_LEFT(v, shift)                                                             \
    "vptt.s32 gt, " shift ", zr\n\t"                                                               \
    "vshlt.s32 " v ", " v ", " shift "\n\t"                                                        \
    "vmovt.i32 " shift ", #0\n\t"

/* Scales a vector with the multipliers and shifts of four channels whose biases lie at `at`. `left`: the instructions that
   shift `v` by q3 to the left, or none. */
#define TINYFUSE_SCALE4_AT(v, at, left)                                                            \
    "vldrw.s32 q2, [" at ", #16]\n\t"                                                              \
    "vldrw.s32 q3, [" at ", #32]\n\t" left                                                         \
    "vqrdmulh.s32 " v ", " v ", q2\n\t"                                                            \
    "vshr.s32 q2, q3, #31\n\t"                                                                     \
    "vpt.s32 lt, " v ", zr\n\t"                                                                    \
    "vaddt.i32 " v ", " v ", q2\n\t"                                                               \
    "vrshl.s32 " v ", " v ", q3\n\t"
#define TINYFUSE_SCALE4_FIRST(left) "ldr r1, [r7, %[bias]]\n\t" TINYFUSE_SCALE4_AT("q0", "r1", left)
#define TINYFUSE_SCALE4_SECOND(left) TINYFUSE_SCALE4_AT("q1", "r11", left)

#define TINYFUSE_NEAREST4_FIRST                                                                    \
    "ldr r1, [r7, %[bias]]\n\t"                                                                    \
    "vldrw.s32 q2, [r1, #16]\n\t" TINYFUSE_NEAREST4("q0", "q2")
#define TINYFUSE_NEAREST4_SECOND "vldrw.s32 q2, [r11, #16]\n\t" TINYFUSE_NEAREST4("q1", "q2")

/* Multiplies a block of sixteen inputs by eight channels' weights. Registers: see TINYFUSE_DOT_TWO_GROUPS. The code takes
   TINYFUSE_MVE_ALONE_CODE bytes. */
#define TINYFUSE_MATMUL_ALONE_BLOCK                                                                \
    "vldrb.8 q3, [r3, #16]\n\t"                                                                    \
    "vldrb.8 q0, [r1], #16\n\t"                                                                    \
    "vmladava.s8 r2, q0, q3\n\t"                                                                   \
    "vldrb.8 q2, [r3, #32]\n\t"                                                                    \
    "vmladava.s8 r4, q0, q2\n\t"                                                                   \
    "vldrb.8 q3, [r3, #48]\n\t"                                                                    \
    "vmladava.s8 r6, q0, q3\n\t"                                                                   \
    "vldrb.8 q2, [r3], #64\n\t"                                                                    \
    "vmladava.s8 r0, q0, q2\n\t"                                                                   \
    "vldrb.8 q3, [r5, #16]\n\t"                                                                    \
    "vmladava.s8 r10, q0, q3\n\t"                                                                  \
    "vldrb.8 q2, [r5, #32]\n\t"                                                                    \
    "vmladava.s8 r12, q0, q2\n\t"                                                                  \
    "vldrb.8 q3, [r5, #48]\n\t"                                                                    \
    "vmladava.s8 lr, q0, q3\n\t"                                                                   \
    "vldrb.8 q2, [r5], #64\n\t"                                                                    \
    "vmladava.s8 r8, q0, q2\n\t"

/* Sets q0 and q1 to eight channels' sums of the inputs at r1. Four channels have their weights at r3 and sums in r0, r2,
   r4 and r6; the others have weights at r5 and sums in r8, r10, r12 and lr (VMLADAVA needs even registers). r3 and r5
   move to the end of the weights. r9: number of blocks of 16 inputs. */
#define TINYFUSE_DOT_TWO_GROUPS                                                                    \
    "subs r9, #1\n\t"                                                                              \
    "bmi 3f\n\t"                                                                                   \
    "2:\n\t" TINYFUSE_MATMUL_ALONE_BLOCK                                                           \
    "subs r9, #1\n\t"                                                                              \
    "bpl 2b\n\t"                                                                                   \
    "3:\n\t"                                                                                       \
    "ldr r9, [r7, %[rest]]\n\t"                                                                    \
    "cmp r9, #0\n\t"                                                                               \
    "beq 4f\n\t" TINYFUSE_REST_OF_GROUPS                                                           \
    "4:\n\t" TINYFUSE_SUMS_TO_VECTORS
/* Multiplies the r9 inputs after the last block. */
#define TINYFUSE_REST_OF_GROUPS                                                                    \
    "vctp.8 r9\n\t"                                                                                \
    "vpst\n\t"                                                                                     \
    "vldrbt.8 q0, [r1]\n\t"                                                                        \
    TINYFUSE_REST_OF("r3", "r0") TINYFUSE_REST_OF("r3", "r2")                                      \
    TINYFUSE_REST_OF("r3", "r4") TINYFUSE_REST_OF("r3", "r6")                                      \
    TINYFUSE_REST_OF("r5", "r8") TINYFUSE_REST_OF("r5", "r10")                                     \
    TINYFUSE_REST_OF("r5", "r12") TINYFUSE_REST_OF("r5", "lr")
#define TINYFUSE_REST_OF(weights, sum)                                                             \
    "vldrb.8 q2, [" weights "]\n\t"                                                                \
    "add " weights ", r9\n\t"                                                                      \
    "vmladava.s8 " sum ", q0, q2\n\t"

#define TINYFUSE_SUMS_TO_VECTORS                                                                   \
    "vmov q0[2], q0[0], r0, r4\n\t"                                                                \
    "vmov q0[3], q0[1], r2, r6\n\t"                                                                \
    "vmov q1[2], q1[0], r8, r12\n\t"                                                               \
    "vmov q1[3], q1[1], r10, lr\n\t"

/* r7: the job; r5: the weights; q4 and q5: the clamp. */
#define TINYFUSE_MATMUL_BEGIN                                                                      \
    TINYFUSE_ASM_BEGIN                                                                             \
    "mov r7, r0\n\t"                                                                                \
    "ldr r5, [r7, %[weights]]\n\t"                                                                 \
    "ldrd r0, r2, [r7, %[act_min]]\n\t"                                                            \
    "vdup.16 q4, r0\n\t"                                                                           \
    "vdup.16 q5, r2\n\t"

/* What the statements name: the job, and where its fields lie in it. */
#define TINYFUSE_MVE_JOB(field) [field] "i"(offsetof(tinyfuse_mve_job, field))

#define TINYFUSE_MATMUL_OPERANDS                                                                   \
    "r"(arguments), [x0] "i"(offsetof(tinyfuse_mve_job, inputs)), TINYFUSE_MVE_JOB(blocks), TINYFUSE_MVE_JOB(rest),\
        TINYFUSE_MVE_JOB(weights), TINYFUSE_MVE_JOB(bias), TINYFUSE_MVE_JOB(act_min),              \
        TINYFUSE_MVE_JOB(channels_left), TINYFUSE_MVE_JOB(group_bytes)                             \
    : TINYFUSE_ASM_CLOBBERS, TINYFUSE_CLOBBERS_P0 "q0", "q1", "q2", "q3", "q4", "q5", "q6"

/* Computes all channels of one pixel, inputs x0 to outputs out0, eight at a time. `dots` makes the sums. If four or fewer
   channels are left, both halves compute the same ones. Advances the job's pointer to biases. q6: offsets of the eight
   outputs, one of each half in turn. `left0`, `left1`: see TINYFUSE_SCALE4_AT. */
#define TINYFUSE_MATMUL_ONE(dots, left0, left1)                                                    \
    TINYFUSE_MATMUL_ONE_BY(dots, TINYFUSE_SCALE4_FIRST(left0) TINYFUSE_SCALE4_SECOND(left1))
#define TINYFUSE_MATMUL_ONE_BY(dots, scale)                                                        \
    __asm volatile(TINYFUSE_MATMUL_BEGIN                                                           \
                   "movs r2, #0\n\t"                                                               \
                   "mov.w r3, #0x00010001\n\t"                                                     \
                   "mov.w r4, #0x00040000\n\t"                                                     \
                   "vidup.u32 q6, r2, #1\n\t"                                                      \
                   "vmul.i32 q6, q6, r3\n\t"                                                       \
                   "vadd.i32 q6, q6, r4\n\t"                                                       \
                   "ldr r11, [r7, %[bias]]\n\t"                                                    \
                   "1:\n\t"                                                                        \
                   "ldr r9, [r7, %[channels_left]]\n\t"                                            \
                   "ldr r1, [r7, %[group_bytes]]\n\t"                                              \
                   "ldm r11, {r0, r2, r4, r6}\n\t"                                                 \
                   "mov r3, r5\n\t"                                                                \
                   "cmp r9, #4\n\t"                                                                \
                   "itt gt\n\t"                                                                    \
                   "addgt r5, r1\n\t"                                                              \
                   "addgt r11, #48\n\t"                                                            \
                   "ldm r11, {r8, r10, r12, lr}\n\t"                                               \
                   "ldr r1, [r7, %[x0]]\n\t"                                                       \
                   "ldr r9, [r7, %[blocks]]\n\t"                                                   \
                   dots                                                                            \
                   "ldm r7, {r0, r2, r4, r6}\n\t"                                                  \
                   scale                                                                           \
                   "add r11, #48\n\t"                                                              \
                   "str r11, [r7, %[bias]]\n\t"                                                    \
                   "vqmovnb.s32 q0, q0\n\t"                                                        \
                   "vqmovnt.s32 q0, q1\n\t"                                                        \
                   "vqadd.s16 q0, q0, r6\n\t"                                                      \
                   "vmax.s16 q0, q0, q4\n\t"                                                       \
                   "vmin.s16 q0, q0, q5\n\t"                                                       \
                   "ssat r6, #16, r4\n\t"                                                          \
                   "vpt.s16 lt, q6, r6\n\t"                                                        \
                   "vstrbt.16 q0, [r0, q6]\n\t"                                                    \
                   "adds r0, #8\n\t"                                                               \
                   "subs r4, #8\n\t"                                                               \
                   "stm r7, {r0, r2, r4}\n\t"                                                      \
                   "bgt 1b\n\t"                                                                    \
                   TINYFUSE_ASM_END                                                                \
                   :                                                                               \
                   : TINYFUSE_MATMUL_OPERANDS)

/* TINYFUSE_MATMUL_ONE with one scale, for groups that come by two: one's weights begin where the other's end.
   `iterations_alone` is as a run's iterations, one more where there is a rest. Even channels' sums go to q0, odd ones' to
   q1, so that narrowing puts them side by side. */
#define TINYFUSE_MATMUL_ALONE(scale)                                                               \
    __asm volatile(TINYFUSE_MATMUL_BEGIN                                                           \
                   "ldr r11, [r7, %[bias]]\n\t"                                                    \
                   "push {r7}\n\t"                                                                 \
                   "1:\n\t"                                                                        \
                   "ldr r1, [r7, %[x0]]\n\t"                                                       \
                   "ldr r9, [r7, %[group_bytes]]\n\t"                                              \
                   "mov r3, r5\n\t"                                                                \
                   "add r5, r9\n\t"                                                                \
                   "ldr r9, [r7, %[skip_alone]]\n\t"                                               \
                   "ldr r7, [r7, %[iterations_alone]]\n\t"                                         \
                   "ldm r11!, {r0, r2, r4, r6, r8, r10, r12, lr}\n\t"                              \
                   "add pc, r9\n\t"                                                                \
                   "nop\n\t"                                                                       \
                   "2:\n\t"                                                                        \
                   TINYFUSE_MATMUL_ALONE_BLOCK TINYFUSE_MATMUL_ALONE_BLOCK                         \
                   TINYFUSE_MATMUL_ALONE_BLOCK TINYFUSE_MATMUL_ALONE_BLOCK                         \
                   "subs r7, #2\n\t"                                                               \
                   "bpl 2b\n\t"                                                                    \
                   "adds r7, #1\n\t"                                                               \
                   "bmi 3f\n\t"                                                                    \
                   "ldr r7, [sp]\n\t"                                                              \
                   "ldr r9, [r7, %[rest]]\n\t"                                                     \
                   TINYFUSE_REST_OF_GROUPS                                                         \
                   "3:\n\t"                                                                        \
                   "vmov q0[2], q0[0], r0, r8\n\t"                                                 \
                   "vmov q0[3], q0[1], r4, r12\n\t"                                                \
                   "vmov q1[2], q1[0], r2, r10\n\t"                                                \
                   "vmov q1[3], q1[1], r6, lr\n\t"                                                 \
                   "ldr r7, [sp]\n\t"                                                              \
                   "ldm r7, {r0, r2, r4, r6, r8, r10, r12}\n\t"                                    \
                   scale                                                                           \
                   "vqmovnb.s32 q0, q0\n\t"                                                        \
                   "vqmovnt.s32 q0, q1\n\t"                                                        \
                   "vqadd.s16 q0, q0, r6\n\t"                                                      \
                   "vmax.s16 q0, q0, q4\n\t"                                                       \
                   "vmin.s16 q0, q0, q5\n\t"                                                       \
                   "vctp.16 r4\n\t"                                                                \
                   "vpst\n\t"                                                                      \
                   "vstrbt.16 q0, [r0], #8\n\t"                                                    \
                   "subs r4, #8\n\t"                                                               \
                   "stm r7, {r0, r2, r4}\n\t"                                                      \
                   "bgt 1b\n\t"                                                                    \
                   "pop {r7}\n\t"                                                                  \
                   TINYFUSE_ASM_END                                                                \
                   :                                                                               \
                   : TINYFUSE_MVE_JOB(skip_alone), TINYFUSE_MVE_JOB(iterations_alone), TINYFUSE_MATMUL_OPERANDS)

/* A block of sixteen inputs of both pixels, for four channels: TINYFUSE_MVE_BLOCK_CODE bytes of code. */
#define TINYFUSE_DOT_BLOCK                                                                         \
    "vldrb.8 q2, [r5, #16]\n\t"                                                                    \
    "vldrb.8 q0, [r1], #16\n\t"                                                                    \
    "vldrb.8 q1, [r3], #16\n\t"                                                                    \
    "vmladava.s8 r2, q0, q2\n\t"                                                                   \
    "vldrb.8 q3, [r5, #32]\n\t"                                                                    \
    "vmladava.s8 r10, q1, q2\n\t"                                                                  \
    "vldrb.8 q2, [r5, #48]\n\t"                                                                    \
    "vmladava.s8 r4, q0, q3\n\t"                                                                   \
    "vmladava.s8 r12, q1, q3\n\t"                                                                  \
    "vldrb.8 q3, [r5], #64\n\t"                                                                    \
    "vmladava.s8 r6, q0, q2\n\t"                                                                   \
    "vmladava.s8 lr, q1, q2\n\t"                                                                   \
    "vmladava.s8 r0, q0, q3\n\t"                                                                   \
    "vmladava.s8 r8, q1, q3\n\t"

/* Computes all channels of two pixels over all runs of inputs. Their outputs lie less than 64 KB apart. One pixel's sums
   are in r0, r2, r4 and r6, the other's in r8, r10, r12 and lr. The stack has the address of the channels (biases,
   multipliers, shifts) and of the job.
   begin   code before the loop over channels
   scale   scales the sums in q0 and q1 by the multipliers q2 and the shifts at r11 - 16; r6: the zero point
   clamp   clamps q0, whose 16-bit lanes are outputs of both pixels in turn */
#define TINYFUSE_MATMUL_RUNS(begin, scale, clamp)                                                  \
    __asm volatile(TINYFUSE_ASM_BEGIN                                                              \
                   "mov r9, r0\n\t"                                                                \
                   "ldrd r0, r1, [r9]\n\t"                                                         \
                   "subs r1, r1, r0\n\t"                                                           \
                   "lsls r1, r1, #16\n\t"                                                          \
                   "movs r2, #0\n\t"                                                               \
                   "mov.w r3, #0x00010001\n\t"                                                     \
                   "vidup.u32 q4, r2, #1\n\t"                                                      \
                   "vmul.i32 q4, q4, r3\n\t"                                                       \
                   "vadd.i32 q4, q4, r1\n\t" begin                                                 \
                   "ldr r5, [r9, %[weights]]\n\t"                                                  \
                   "ldr r11, [r9, %[bias]]\n\t"                                                    \
                   "push {r11}\n\t"                                                                \
                   "1:\n\t"                                                                        \
                   "ldm r11, {r0, r2, r4, r6}\n\t"                                                 \
                   "ldm r11, {r8, r10, r12, lr}\n\t"                                               \
                   "ldr r11, [r9, %[runs]]\n\t"                                                    \
                   "2:\n\t"                                                                        \
                   "ldm r11!, {r1, r3, r7, r9}\n\t"                                                \
                   "add pc, r7\n\t"                                                                \
                   "nop\n\t"                                                                       \
                   "3:\n\t"                                                                        \
                   TINYFUSE_DOT_BLOCK TINYFUSE_DOT_BLOCK TINYFUSE_DOT_BLOCK TINYFUSE_DOT_BLOCK     \
                   "subs r9, #2\n\t"                                                               \
                   "bpl 3b\n\t"                                                                    \
                   "cmn r9, #1\n\t"                                                                \
                   "beq 2b\n\t"                                                                    \
                   "ldrd r11, r9, [sp]\n\t"                                                        \
                   "ldr r7, [r9, %[rest]]\n\t"                                                     \
                   "cbz r7, 4f\n\t"                                                                \
                   "vctp.8 r7\n\t"                                                                 \
                   "vpstt\n\t"                                                                     \
                   "vldrbt.8 q0, [r1]\n\t" /* zeros after the inputs */                            \
                   "vldrbt.8 q1, [r3]\n\t"                                                         \
                   TINYFUSE_REST_OF_BOTH("r0", "r8") TINYFUSE_REST_OF_BOTH("r2", "r10")            \
                   TINYFUSE_REST_OF_BOTH("r4", "r12") TINYFUSE_REST_OF_BOTH("r6", "lr")            \
                   "4:\n\t" TINYFUSE_SUMS_TO_VECTORS                                               \
                   "ldm r9, {r0, r1, r2, r6}\n\t"                                                  \
                   "vldrw.s32 q2, [r11, #16]\n\t"                                                  \
                   "adds r11, #48\n\t"                                                             \
                   "str r11, [sp]\n\t" scale                                                       \
                   "vqmovnb.s32 q0, q0\n\t"                                                        \
                   "vqmovnt.s32 q0, q1\n\t"                                                        \
                   "vqadd.s16 q0, q0, r6\n\t" clamp                                                \
                   "lsls r7, r2, #1\n\t"                                                           \
                   "vctp.16 r7\n\t"                                                                \
                   "vpst\n\t"                                                                      \
                   "vstrbt.16 q0, [r0, q4]\n\t"                                                    \
                   "adds r0, #4\n\t"                                                               \
                   "subs r2, #4\n\t"                                                               \
                   "stm r9, {r0, r1, r2}\n\t"                                                      \
                   "bgt 1b\n\t"                                                                    \
                   "pop {r11}\n\t"                                                                 \
                   TINYFUSE_ASM_END                                                                \
                   :                                                                               \
                   : "r"(arguments), TINYFUSE_MVE_JOB(weights), TINYFUSE_MVE_JOB(bias),            \
                     TINYFUSE_MVE_JOB(runs), TINYFUSE_MVE_JOB(rest), TINYFUSE_MVE_JOB(act_min),    \
                     TINYFUSE_MVE_JOB(channels_left)                                               \
                   : TINYFUSE_ASM_CLOBBERS, TINYFUSE_CLOBBERS_P0 "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7")
#define TINYFUSE_REST_OF_BOTH(sum0, sum1)                                                          \
    "vldrb.8 q2, [r5]\n\t"                                                                         \
    "add r5, r7\n\t"                                                                               \
    "vmladava.s8 " sum0 ", q0, q2\n\t"                                                             \
    "vmladava.s8 " sum1 ", q1, q2\n\t"

#define TINYFUSE_MATMUL_SHIFTS "vldrw.s32 q3, [r11, #-16]\n\t"
#define TINYFUSE_MATMUL_ENDS                                                                       \
    "ldrd r0, r2, [r9, %[act_min]]\n\t"                                                            \
    "vdup.16 q5, r0\n\t"                                                                           \
    "vdup.16 q6, r2\n\t"
#define TINYFUSE_MATMUL_CLAMP                                                                      \
    "vmax.s16 q0, q0, q5\n\t"                                                                      \
    "vmin.s16 q0, q0, q6\n\t"
#define TINYFUSE_MATMUL_RUNS_EACH(left)                                                            \
    TINYFUSE_MATMUL_RUNS(TINYFUSE_MATMUL_ENDS,                                                     \
                         TINYFUSE_MATMUL_SHIFTS left "vshr.s32 q7, q3, #31\n\t"                    \
                         TINYFUSE_SCALE4("q0", "q2", "q7", "q0, q3")                               \
                         TINYFUSE_SCALE4("q1", "q2", "q7", "q1, q3"),                              \
                         TINYFUSE_MATMUL_CLAMP)

#define TINYFUSE_MVE_FUNCTION(name, code) TINYFUSE_ASM_FUNCTION(name, tinyfuse_mve_job, code)
TINYFUSE_MVE_FUNCTION(tinyfuse_runs_two, TINYFUSE_MATMUL_RUNS_EACH(""))
/* Sums of channels may be shifted left. */
TINYFUSE_MVE_FUNCTION(tinyfuse_shifted_two, TINYFUSE_MATMUL_RUNS_EACH("vpttt.s32 gt, q3, zr\n\t"
                                                                      "vshlt.s32 q0, q0, q3\n\t"
                                                                      "vshlt.s32 q1, q1, q3\n\t"
                                                                      "vmovt.i32 q3, #0\n\t"))
/* The clamp is all of int8 from the zero point on. Saturation does it, because only outputs below it are rounded in
   another way. */
TINYFUSE_MVE_FUNCTION(tinyfuse_rectified_two, TINYFUSE_MATMUL_RUNS("",
                                                                   TINYFUSE_MATMUL_SHIFTS
                                                                   "vqrdmulh.s32 q0, q0, q2\n\t"
                                                                   "vqrdmulh.s32 q1, q1, q2\n\t"
                                                                   "vrshl.s32 q0, q0, q3\n\t"
                                                                   "vrshl.s32 q1, q1, q3\n\t",
                                                                   "vqmovnb.s16 q0, q0\n\t"))
TINYFUSE_MVE_FUNCTION(tinyfuse_matmul_one, TINYFUSE_MATMUL_ONE(TINYFUSE_DOT_TWO_GROUPS, "", ""))
TINYFUSE_MVE_FUNCTION(tinyfuse_shifted_one, TINYFUSE_MATMUL_ONE(TINYFUSE_DOT_TWO_GROUPS, TINYFUSE_SHIFT4_LEFT("q0", "q3"),
                                                                TINYFUSE_SHIFT4_LEFT("q1", "q3")))
TINYFUSE_MVE_FUNCTION(tinyfuse_one_scale_one, TINYFUSE_MATMUL_ALONE(TINYFUSE_SCALE4_SHARED("q0") TINYFUSE_SCALE4_SHARED("q1")))

/* Separates the sums of a pair of channels. Before, the first register has 16 times the first channel's sum, the second
   one the first channel's plus 16 times the second channel's. */
#define TINYFUSE_S4_APART(first, second)          \
    "asr " first ", " first ", #4\n\t"            \
    "sub " second ", " second ", " first "\n\t"   \
    "asr " second ", " second ", #4\n\t"
#define TINYFUSE_S4_ALL_APART                                        \
    TINYFUSE_S4_APART("r0", "r2") TINYFUSE_S4_APART("r4", "r6")      \
    TINYFUSE_S4_APART("r8", "r10") TINYFUSE_S4_APART("r12", "lr")

/* The weights of a pair in q2 times the inputs of two pixels. */
#define TINYFUSE_S4_TWO(first, second, other_first, other_second) \
    "vmladava.s8 " second ", q0, q2\n\t"                          \
    "vshl.i8 q3, q2, #4\n\t"                                      \
    "vmladava.s8 " other_second ", q1, q2\n\t"                    \
    "vmladava.s8 " first ", q0, q3\n\t"                           \
    "vmladava.s8 " other_first ", q1, q3\n\t"
/* Sets q0 and q1 to four channels' sums of the inputs at r1 and at r3. r5: the weights, and afterwards their end; r9:
   number of blocks of 16 inputs. */
#define TINYFUSE_S4_DOT_TWO_PIXELS                               \
    "subs r9, #1\n\t"                                            \
    "bmi 3f\n\t"                                                 \
    "2:\n\t"                                                     \
    "vldrb.8 q2, [r5], #16\n\t"                                  \
    "vldrb.8 q0, [r1], #16\n\t"                                  \
    "vldrb.8 q1, [r3], #16\n\t"                                  \
    TINYFUSE_S4_TWO("r0", "r2", "r8", "r10")                     \
    "vldrb.8 q2, [r5], #16\n\t"                                  \
    "subs r9, #1\n\t"                                            \
    TINYFUSE_S4_TWO("r4", "r6", "r12", "lr")                     \
    "bpl 2b\n\t"                                                 \
    "3:\n\t"                                                     \
    "ldr r9, [r7, %[rest]]\n\t"                                  \
    "cmp r9, #0\n\t"                                             \
    "beq 4f\n\t"                                                 \
    "vctp.8 r9\n\t"                                              \
    "vpstt\n\t"                                                  \
    "vldrbt.8 q0, [r1]\n\t" /* zeros after the inputs */         \
    "vldrbt.8 q1, [r3]\n\t"                                      \
    "vldrb.8 q2, [r5]\n\t"                                       \
    "add r5, r9\n\t"                                             \
    TINYFUSE_S4_TWO("r0", "r2", "r8", "r10")                     \
    "vldrb.8 q2, [r5]\n\t"                                       \
    "add r5, r9\n\t"                                             \
    TINYFUSE_S4_TWO("r4", "r6", "r12", "lr")                     \
    "4:\n\t" TINYFUSE_S4_ALL_APART TINYFUSE_SUMS_TO_VECTORS

/* The next pair of weights at a pointer, which moves on by `step`, times the inputs of a pixel. */
#define TINYFUSE_S4_ONE(at, step, first, second) \
    "vldrb.8 q2, [" at "]" step                  \
    "vmladava.s8 " second ", q0, q2\n\t"         \
    "vshl.i8 q3, q2, #4\n\t"                     \
    "vmladava.s8 " first ", q0, q3\n\t"
#define TINYFUSE_S4_NEXT ", #16\n\t"
#define TINYFUSE_S4_REST(at) "\n\tadd " at ", r9\n\t"
/* Does the same as TINYFUSE_DOT_TWO_GROUPS for pairs of int4 weights. */
#define TINYFUSE_S4_DOT_TWO_GROUPS                                                                               \
    "subs r9, #1\n\t"                                                                                            \
    "bmi 3f\n\t"                                                                                                 \
    "2:\n\t"                                                                                                     \
    "vldrb.8 q0, [r1], #16\n\t"                                                                                  \
    TINYFUSE_S4_ONE("r3", TINYFUSE_S4_NEXT, "r0", "r2") TINYFUSE_S4_ONE("r3", TINYFUSE_S4_NEXT, "r4", "r6")      \
    TINYFUSE_S4_ONE("r5", TINYFUSE_S4_NEXT, "r8", "r10") TINYFUSE_S4_ONE("r5", TINYFUSE_S4_NEXT, "r12", "lr")    \
    "subs r9, #1\n\t"                                                                                            \
    "bpl 2b\n\t"                                                                                                 \
    "3:\n\t"                                                                                                     \
    "ldr r9, [r7, %[rest]]\n\t"                                                                                  \
    "cmp r9, #0\n\t"                                                                                             \
    "beq 4f\n\t"                                                                                                 \
    "vctp.8 r9\n\t"                                                                                              \
    "vpst\n\t"                                                                                                   \
    "vldrbt.8 q0, [r1]\n\t"                                                                                      \
    TINYFUSE_S4_ONE("r3", TINYFUSE_S4_REST("r3"), "r0", "r2")                                                    \
    TINYFUSE_S4_ONE("r3", TINYFUSE_S4_REST("r3"), "r4", "r6")                                                    \
    TINYFUSE_S4_ONE("r5", TINYFUSE_S4_REST("r5"), "r8", "r10")                                                   \
    TINYFUSE_S4_ONE("r5", TINYFUSE_S4_REST("r5"), "r12", "lr")                                                   \
    "4:\n\t" TINYFUSE_S4_ALL_APART TINYFUSE_SUMS_TO_VECTORS

/* Computes all channels of two pixels: inputs x0 give out0, inputs x1 give out1. */
TINYFUSE_SHARED void tinyfuse_two_s4(tinyfuse_mve_job *job)
{
    TINYFUSE_ARGUMENT(tinyfuse_mve_job *, arguments, job);
    __asm volatile(TINYFUSE_ASM_BEGIN
                   "mov r7, r0\n\t"
                   "ldr r5, [r7, %[weights]]\n\t"
                   "ldrd r0, r2, [r7, %[act_min]]\n\t"
                   "vdup.32 q4, r0\n\t"
                   "vdup.32 q5, r2\n\t"
                   "ldr r11, [r7, %[bias]]\n\t"
                   "1:\n\t"
                   "ldrd r1, r3, [r7, %[x0]]\n\t"
                   "ldr r9, [r7, %[blocks]]\n\t"
                   "ldm r11, {r0, r2, r4, r6}\n\t"
                   "ldm r11!, {r8, r10, r12, lr}\n\t"
                   TINYFUSE_S4_DOT_TWO_PIXELS
                   "ldm r7, {r0, r2, r4, r6}\n\t"
                   "vldrw.s32 q2, [r11], #16\n\t"
                   "vldrw.s32 q3, [r11], #16\n\t"
                   "vshr.s32 q6, q3, #31\n\t"
                   TINYFUSE_SCALE4("q0", "q2", "q6", "q0, q3") TINYFUSE_SCALE4("q1", "q2", "q6", "q1, q3")
                   "vadd.i32 q0, q0, r6\n\t"
                   "vadd.i32 q1, q1, r6\n\t"
                   "vmax.s32 q0, q0, q4\n\t"
                   "vmax.s32 q1, q1, q4\n\t"
                   "vmin.s32 q0, q0, q5\n\t"
                   "vmin.s32 q1, q1, q5\n\t"
                   "vctp.32 r4\n\t"
                   "vpstt\n\t"
                   "vstrbt.32 q0, [r0], #4\n\t"
                   "vstrbt.32 q1, [r2], #4\n\t"
                   "subs r4, #4\n\t"
                   "stm r7, {r0, r2, r4}\n\t"
                   "bgt 1b\n\t"
                   TINYFUSE_ASM_END
                   :
                   : TINYFUSE_MATMUL_OPERANDS);
}

TINYFUSE_MVE_FUNCTION(tinyfuse_one_s4, TINYFUSE_MATMUL_ONE(TINYFUSE_S4_DOT_TWO_GROUPS, "", ""))

#if TINYFUSE_MVE_FLOATS
#define TINYFUSE_MATMUL_NEAREST TINYFUSE_NEAREST4("q0", "q2") TINYFUSE_NEAREST4("q1", "q2")
TINYFUSE_MVE_FUNCTION(tinyfuse_half_even_two,
                      TINYFUSE_MATMUL_RUNS(TINYFUSE_MATMUL_ENDS, TINYFUSE_MATMUL_NEAREST, TINYFUSE_MATMUL_CLAMP))
/* The clamp is all of int8. */
TINYFUSE_MVE_FUNCTION(tinyfuse_half_even_saturated_two,
                      TINYFUSE_MATMUL_RUNS("", TINYFUSE_MATMUL_NEAREST, "vqmovnb.s16 q0, q0\n\t"))
TINYFUSE_MVE_FUNCTION(tinyfuse_half_even_one, TINYFUSE_MATMUL_ONE_BY(TINYFUSE_DOT_TWO_GROUPS, TINYFUSE_NEAREST4_FIRST
                                                                     TINYFUSE_NEAREST4_SECOND))
TINYFUSE_MVE_FUNCTION(tinyfuse_one_scale_half_even_one,
                      TINYFUSE_MATMUL_ALONE(TINYFUSE_NEAREST4("q0", "r8") TINYFUSE_NEAREST4("q1", "r8")))
#endif

#endif

#if !TINYFUSE_MVE_FLOATS

/* The k-th input of pixel `second` (0 or 1), counted over all runs. */
TINYFUSE_INLINE int8_t tinyfuse_mve_input(const tinyfuse_mve_job *job, int32_t k, int second)
{
    const tinyfuse_mve_run *run = job->runs;
    while ((run->iterations & 1) != 0) {
        const int32_t blocks = TINYFUSE_MVE_ITERATION * (run->iterations / 2 + 1) - run->skip / TINYFUSE_MVE_BLOCK_CODE;
        if (k < 16 * blocks) {
            break;
        }
        k -= 16 * blocks;
        ++run;
    }
    return (second ? run->x1 : run->x0)[k];
}

/* Returns the sum of channel `o` of a group with weights of int4. */
TINYFUSE_INLINE int32_t tinyfuse_mve_sum_s4(const tinyfuse_mve_job *job, const int8_t *weights, const int32_t *bias, int32_t o,
                                            int second)
{
    const int32_t blocks = job->blocks, rest = job->rest, pair = o >> 1;
    int32_t both = bias[2 * pair + 1], sum = bias[2 * pair], k;
    for (k = 0; k < 16 * blocks + rest; ++k) {
        const int8_t w = weights[k < 16 * blocks ? (k >> 4) * 32 + pair * 16 + (k & 15) : blocks * 32 + pair * rest + (k & 15)];
        const int32_t x = tinyfuse_mve_input(job, k, second);
        both += x * w;
        sum += x * (int8_t)(uint8_t)((uint8_t)w << 4);
    }
    sum >>= 4;
    return (o & 1) != 0 ? (both - sum) >> 4 : sum;
}

/* All channels of a pixel to out. */
TINYFUSE_SHARED void tinyfuse_mve_pixel(const tinyfuse_mve_job *job, int second, int form)
{
    const int one_scale = tinyfuse_mve_has_one_scale(form);
    const int32_t blocks = job->blocks, rest = job->rest, depth = 16 * blocks + rest;
    int8_t *const out = second ? job->out1 : job->out0;
    const int8_t *weights = job->weights;
    const int32_t *bias = job->bias;
    int32_t c, o, k;
    for (c = 0; c < job->channels_left; c += 4) {
        for (o = 0; o < 4 && c + o < job->channels_left; ++o) {
            const int32_t multiplier = one_scale ? job->multiplier : bias[4 + o];
            const int32_t shift = one_scale ? job->shift : bias[8 + o];
            uint32_t sum = (uint32_t)bias[o]; /* wraps */
            for (k = 0; k < (form == TINYFUSE_MVE_INT4 ? 0 : depth); ++k) {
                sum += (uint32_t)(tinyfuse_mve_input(job, k, second) *
                                  (k < 16 * blocks ? weights[(k >> 4) * 64 + o * 16 + (k & 15)]
                                                   : weights[blocks * 64 + o * rest + (k & 15)]));
            }
            if (form == TINYFUSE_MVE_INT4) {
                sum = (uint32_t)tinyfuse_mve_sum_s4(job, weights, bias, o, second);
            }
            out[c + o] = (int8_t)tinyfuse_clamp(
                (tinyfuse_mve_rounds_even(form) ? tinyfuse_scale_half_even((int32_t)sum, multiplier)
                                                    : tinyfuse_requantize((int32_t)sum, multiplier, shift)) +
                    job->out_zero_point,
                job->act_min, job->act_max);
        }
        weights += job->group_bytes;
        bias += one_scale ? 4 : 12;
    }
}

#endif

/* Defines a kernel's functions, one for each form with a scale per channel, so that a module links only the assembly of
   the forms that it uses. Arguments: see TINYFUSE_IN_FORM. */
#define TINYFUSE_MVE_BY_FORM(name, body, parameters, ...)                                          \
    TINYFUSE_IN_FORM(name##_each, TINYFUSE_MVE_EACH, body, parameters, __VA_ARGS__)                \
    TINYFUSE_IN_FORM(name##_rectified, TINYFUSE_MVE_RECTIFIED, body, parameters, __VA_ARGS__)      \
    TINYFUSE_IN_FORM(name##_shifted, TINYFUSE_MVE_SHIFTED, body, parameters, __VA_ARGS__)          \
    TINYFUSE_IN_FORM(name##_half_even, TINYFUSE_MVE_HALF_EVEN, body, parameters, __VA_ARGS__)      \
    TINYFUSE_IN_FORM(name##_half_even_saturated, TINYFUSE_MVE_HALF_EVEN_SATURATED, body, parameters, __VA_ARGS__)
/* Selects the function for a constant form. */
#define TINYFUSE_MVE_OF(form, name)                                                                \
    ((form) == TINYFUSE_MVE_RECTIFIED             ? name##_rectified                               \
     : (form) == TINYFUSE_MVE_SHIFTED             ? name##_shifted                                 \
     : (form) == TINYFUSE_MVE_HALF_EVEN           ? name##_half_even                               \
     : (form) == TINYFUSE_MVE_HALF_EVEN_SATURATED ? name##_half_even_saturated                     \
                                                  : name##_each)

/* Computes all channels of the job's two pixels. */
TINYFUSE_INLINE void tinyfuse_mve_two(tinyfuse_mve_job *job, int form)
{
#if TINYFUSE_MVE_FLOATS
    (form == TINYFUSE_MVE_HALF_EVEN             ? tinyfuse_half_even_two
     : form == TINYFUSE_MVE_HALF_EVEN_SATURATED ? tinyfuse_half_even_saturated_two
     : form == TINYFUSE_MVE_RECTIFIED           ? tinyfuse_rectified_two
     : form == TINYFUSE_MVE_SHIFTED             ? tinyfuse_shifted_two
     : form == TINYFUSE_MVE_INT4                ? tinyfuse_two_s4
                                                : tinyfuse_runs_two)(job);
#elif TINYFUSE_MVE
    if (tinyfuse_mve_rounds_even(form)) {
        tinyfuse_mve_pixel(job, 0, form);
        tinyfuse_mve_pixel(job, 1, form);
    } else {
        (form == TINYFUSE_MVE_RECTIFIED ? tinyfuse_rectified_two
         : form == TINYFUSE_MVE_SHIFTED ? tinyfuse_shifted_two
         : form == TINYFUSE_MVE_INT4    ? tinyfuse_two_s4
                                        : tinyfuse_runs_two)(job);
    }
#else
    tinyfuse_mve_pixel(job, 0, form);
    tinyfuse_mve_pixel(job, 1, form);
#endif
}

/* Computes all channels of the job's only pixel. */
TINYFUSE_INLINE void tinyfuse_mve_one(tinyfuse_mve_job *job, int form)
{
#if TINYFUSE_MVE_FLOATS
    (form == TINYFUSE_MVE_ONE_SCALE_HALF_EVEN ? tinyfuse_one_scale_half_even_one
     : tinyfuse_mve_rounds_even(form)         ? tinyfuse_half_even_one
     : form == TINYFUSE_MVE_ONE_SCALE         ? tinyfuse_one_scale_one
     : form == TINYFUSE_MVE_SHIFTED           ? tinyfuse_shifted_one
     : form == TINYFUSE_MVE_INT4              ? tinyfuse_one_s4
                                              : tinyfuse_matmul_one)(job);
#elif TINYFUSE_MVE
    if (tinyfuse_mve_rounds_even(form)) {
        tinyfuse_mve_pixel(job, 0, form);
    } else {
        (form == TINYFUSE_MVE_ONE_SCALE ? tinyfuse_one_scale_one
         : form == TINYFUSE_MVE_SHIFTED ? tinyfuse_shifted_one
         : form == TINYFUSE_MVE_INT4    ? tinyfuse_one_s4
                                        : tinyfuse_matmul_one)(job);
    }
#else
    tinyfuse_mve_pixel(job, 0, form);
#endif
}

/* All channels of `pixels`, one or two, whose inputs and outputs lie side by side. */
TINYFUSE_INLINE void tinyfuse_mve_pixels(tinyfuse_mve_job *job, const tinyfuse_matmul_2x4_mve *p,
                                         const int8_t *in, int32_t pixels, int8_t *out, int form)
{
    job->inputs.x0 = in;
    job->out0 = out;
    job->channels_left = p->out_c;
    if (pixels > 1) {
        job->inputs.x1 = in + p->depth;
        job->out1 = out + p->out_c;
        tinyfuse_mve_two(job, form);
    } else {
        tinyfuse_mve_one(job, form);
    }
}

TINYFUSE_INLINE void tinyfuse_mve_all(const tinyfuse_matmul_2x4_mve *p, const int8_t *in, int32_t pixels, int8_t *out,
                                      const int8_t *weights, const int32_t *channels, int form)
{
    tinyfuse_mve_job job;
    tinyfuse_mve_start(&job, p, weights, channels, form);
    if (!tinyfuse_mve_has_one_scale(form)) {
        for (; pixels > 1; pixels -= 2) {
            tinyfuse_mve_pixels(&job, p, in, 2, out, form);
            in += 2 * p->depth;
            out += 2 * p->out_c;
        }
    }
    if (pixels > 0) {
        tinyfuse_mve_pixels(&job, p, in, 1, out, form);
    }
}
#define TINYFUSE_MATMUL_ALL(name, form)                                                            \
    TINYFUSE_IN_FORM(name, form, tinyfuse_mve_all,                                                 \
                     (const tinyfuse_matmul_2x4_mve *p, const int8_t *in, int32_t pixels, int8_t *out, \
                      const int8_t *weights, const int32_t *channels),                             \
                     p, in, pixels, out, weights, channels)
TINYFUSE_MATMUL_ALL(tinyfuse_matmul_all, TINYFUSE_MVE_EACH)
TINYFUSE_MATMUL_ALL(tinyfuse_one_scale_all, TINYFUSE_MVE_ONE_SCALE)
TINYFUSE_MATMUL_ALL(tinyfuse_rectified_all, TINYFUSE_MVE_RECTIFIED)
TINYFUSE_MATMUL_ALL(tinyfuse_half_even_all, TINYFUSE_MVE_HALF_EVEN)
TINYFUSE_MATMUL_ALL(tinyfuse_half_even_saturated_all, TINYFUSE_MVE_HALF_EVEN_SATURATED)
TINYFUSE_MATMUL_ALL(tinyfuse_one_scale_half_even_all, TINYFUSE_MVE_ONE_SCALE_HALF_EVEN)
TINYFUSE_MATMUL_ALL(tinyfuse_shifted_all, TINYFUSE_MVE_SHIFTED)
TINYFUSE_MATMUL_ALL(tinyfuse_int4_all, TINYFUSE_MVE_INT4)

/* in [pixels][depth] to out [pixels][out_c], forward by two pixels: their outputs must not lie over them or
   later ones. */
TINYFUSE_INLINE void tinyfuse_pointwise_2x4_mve_s8(const tinyfuse_matmul_2x4_mve *p, const int8_t *in,
                                                   int32_t pixels, int8_t *out, const int8_t *weights,
                                                   const int32_t *channels, int form)
{
    (form == TINYFUSE_MVE_ONE_SCALE             ? tinyfuse_one_scale_all
     : form == TINYFUSE_MVE_RECTIFIED           ? tinyfuse_rectified_all
     : form == TINYFUSE_MVE_HALF_EVEN           ? tinyfuse_half_even_all
     : form == TINYFUSE_MVE_HALF_EVEN_SATURATED ? tinyfuse_half_even_saturated_all
     : form == TINYFUSE_MVE_ONE_SCALE_HALF_EVEN ? tinyfuse_one_scale_half_even_all
     : form == TINYFUSE_MVE_SHIFTED             ? tinyfuse_shifted_all
                                                : tinyfuse_matmul_all)(p, in, pixels, out, weights, channels);
}

/* Computes the same from weights of int4. */
TINYFUSE_INLINE void tinyfuse_pointwise_mve_s4(const tinyfuse_matmul_2x4_mve *p, const int8_t *in, int32_t pixels, int8_t *out,
                                               const int8_t *weights, const int32_t *channels)
{
    tinyfuse_int4_all(p, in, pixels, out, weights, channels);
}

/* Returns sum + x[0] * w[0] + ... over `count` > 0 inputs; it wraps. */
TINYFUSE_INLINE int32_t tinyfuse_mve_dot(int32_t sum, const int8_t *x, const int8_t *w, int32_t count)
{
#if TINYFUSE_MVE
    /* VMLADAVA wants an even register */
    __asm volatile("mov r0, %[sum]\n\t"
                   "dlstp.8 lr, %[count]\n\t"
                   "1:\n\t"
                   "vldrb.8 q0, [%[x]], #16\n\t"
                   "vldrb.8 q1, [%[w]], #16\n\t"
                   "vmladava.s8 r0, q0, q1\n\t"
                   "letp lr, 1b\n\t"
                   "mov %[sum], r0"
                   : [sum] "+&r"(sum), [x] "+&r"(x), [w] "+&r"(w)
                   : [count] "r"(count)
                   : "r0", "lr", "cc", "memory", "q0", "q1");
    return sum;
#else
    uint32_t total = (uint32_t)sum;
    for (; count > 0; --count) {
        total += (uint32_t)(*x++ * *w++);
    }
    return (int32_t)total;
#endif
}

/* Computes a layer of one vector, in [depth] to out [out_c], where out_c is no multiple of four; out must not overlap
   in. Weights and channels are those of the groups of four channels, as above, then for each other channel its
   [depth] weights, and its bias, multiplier and shift. `all` computes the groups of four. */
#define TINYFUSE_DENSE_ONE_MVE(name, all)                                                              \
    TINYFUSE_SHARED void name(const tinyfuse_matmul_2x4_mve *p, const int8_t *in, int8_t *out,     \
                              const int8_t *weights, const int32_t *channels)                      \
    {                                                                                              \
        tinyfuse_matmul_2x4_mve quads = *p;                                                        \
        int32_t c;                                                                                 \
        quads.out_c &= ~3;                                                                         \
        if (quads.out_c > 0) {                                                                     \
            all(&quads, in, 1, out, weights, channels);                                            \
        }                                                                                          \
        weights += quads.out_c * p->depth;                                                         \
        channels += quads.out_c * 3;                                                               \
        for (c = quads.out_c; c < p->out_c; ++c) {                                                 \
            const int32_t sum = tinyfuse_mve_dot(channels[0], in, weights, p->depth);              \
            out[c] = (int8_t)tinyfuse_clamp(                                                       \
                tinyfuse_requantize(sum, channels[1], channels[2]) + p->out_zero_point,            \
                p->act_min, p->act_max);                                                           \
            weights += p->depth;                                                                   \
            channels += 3;                                                                         \
        }                                                                                          \
    }
TINYFUSE_DENSE_ONE_MVE(tinyfuse_dense_one_vector_each, tinyfuse_matmul_all)
TINYFUSE_DENSE_ONE_MVE(tinyfuse_dense_one_vector_shifted, tinyfuse_shifted_all)

/* `form`: TINYFUSE_MVE_EACH or TINYFUSE_MVE_SHIFTED. */
TINYFUSE_INLINE void tinyfuse_dense_one_vector_mve_s8(const tinyfuse_matmul_2x4_mve *p, const int8_t *in,
                                                      int8_t *out, const int8_t *weights, const int32_t *channels,
                                                      int form)
{
    (form == TINYFUSE_MVE_SHIFTED ? tinyfuse_dense_one_vector_shifted : tinyfuse_dense_one_vector_each)(p, in, out, weights, channels);
}

TINYFUSE_INLINE void tinyfuse_mve_copy(int8_t *to, const int8_t *from, int32_t bytes)
{
#if TINYFUSE_MVE
    __asm volatile("wlstp.8 lr, %[bytes], 2f\n\t"
                   "1:\n\t"
                   "vldrb.8 q0, [%[from]], #16\n\t"
                   "vstrb.8 q0, [%[to]], #16\n\t"
                   "letp lr, 1b\n\t"
                   "2:\n\t"
                   : [to] "+r"(to), [from] "+r"(from)
                   : [bytes] "r"(bytes)
                   : "lr", "cc", "memory", "q0");
#else
    memcpy(to, from, (size_t)bytes);
#endif
}

TINYFUSE_INLINE void tinyfuse_pointwise_2x4_buffered_mve_in_form(const tinyfuse_matmul_2x4_mve *p, const int8_t *in,
                                                                 int32_t pixels, int8_t *out, const int8_t *weights,
                                                                 const int32_t *channels, void *scratch, int form)
{
    int8_t *const copy = (int8_t *)scratch;
    tinyfuse_mve_job job;
    tinyfuse_mve_start(&job, p, weights, channels, form);
    for (; pixels > 0; pixels -= 2) {
        const int32_t some = tinyfuse_min(pixels, 2);
        tinyfuse_mve_copy(copy, in, some * p->depth);
        tinyfuse_mve_pixels(&job, p, copy, some, out, form);
        in += 2 * p->depth;
        out += 2 * p->out_c;
    }
}
TINYFUSE_MVE_BY_FORM(tinyfuse_pointwise_2x4_buffered_mve, tinyfuse_pointwise_2x4_buffered_mve_in_form,
                     (const tinyfuse_matmul_2x4_mve *p, const int8_t *in, int32_t pixels, int8_t *out,
                      const int8_t *weights, const int32_t *channels, void *scratch),
                     p, in, pixels, out, weights, channels, scratch)

/* Computes a layer as tinyfuse_pointwise_2x4_mve_s8 does, but copies two pixels to scratch, 2 * depth bytes, before
   it writes their outputs: these may overlap the two pixels, not later ones. */
TINYFUSE_INLINE void tinyfuse_pointwise_2x4_buffered_mve_s8(const tinyfuse_matmul_2x4_mve *p, const int8_t *in,
                                                            int32_t pixels, int8_t *out, const int8_t *weights,
                                                            const int32_t *channels, void *scratch, int form)
{
    TINYFUSE_MVE_OF(form, tinyfuse_pointwise_2x4_buffered_mve)(p, in, pixels, out, weights, channels, scratch);
}

#endif
