/* Depthwise convolution with depth multiplier 1 for Helium, int8 NHWC, one output row a call, for windows of at most
   three rows and four columns: eight outputs and sixteen channels at a time, or eight channels with half the scratch.
   The rows of a column are interleaved, so that a channel's window is four words, one per column. A gathering load
   fetches them into a vector that one VMLADAV multiplies.

   weights  [in_c][4 columns][4 rows], zeros where the window has none
   channels [in_c][3] int32: bias with -zero point * sum of weights folded in, multiplier, shift (positive to the left);
            of a single rounding as tinyfuse_vector_output takes them */
#ifndef TINYFUSE_DEPTHWISE_INTERLEAVED_MVE_H
#define TINYFUSE_DEPTHWISE_INTERLEAVED_MVE_H

#include "tinyfuse_conv.h"
#include "tinyfuse_half_even.h"

/* at most, of a window: rows, columns */
enum { TINYFUSE_INTERLEAVED_ROWS = 3 };
enum { TINYFUSE_INTERLEAVED_WIDTH = 4 };
/* the most planes; a plane's columns are `stride_w` apart */
enum { TINYFUSE_INTERLEAVED_PLANES = 2 };
/* at a time: outputs of a row; channels, and fewer of them */
enum { TINYFUSE_INTERLEAVED_OUTPUTS = 8 };
enum { TINYFUSE_INTERLEAVED_CHANNELS = 16 };
enum { TINYFUSE_INTERLEAVED_FEWER = 8 };
/* bytes in scratch of a tinyfuse_interleaved_job without its planes, of a plane, and of a word of a column: four rows of a
   channel */
enum { TINYFUSE_INTERLEAVED_JOB_BYTES = 60 };
enum { TINYFUSE_INTERLEAVED_PLANE_BYTES = 32 };
enum { TINYFUSE_INTERLEAVED_WORD = 4 };

/* Forms of requantization. In forms whose name ends in SATURATED the clamp is all of int8. */
enum {
    TINYFUSE_INTERLEAVED_EACH, /* two roundings, each channel shifted to the right by at least 1 */
    TINYFUSE_INTERLEAVED_SATURATED,
    TINYFUSE_INTERLEAVED_RECTIFIED, /* outputs from the zero point, -128, on: how negative halves round is irrelevant */
    TINYFUSE_INTERLEAVED_SHIFTED,   /* two roundings, any shifts, also to the left */
    TINYFUSE_INTERLEAVED_HALF_EVEN,
    TINYFUSE_INTERLEAVED_HALF_EVEN_SATURATED,
    TINYFUSE_INTERLEAVED_SINGLE_ROUNDING,
    TINYFUSE_INTERLEAVED_SINGLE_ROUNDING_SATURATED
};

TINYFUSE_INLINE int tinyfuse_interleaved_round_even(int form)
{
    return form == TINYFUSE_INTERLEAVED_HALF_EVEN || form == TINYFUSE_INTERLEAVED_HALF_EVEN_SATURATED;
}

/* The rule of tinyfuse_vector_output. */
TINYFUSE_INLINE int tinyfuse_interleaved_rule(int form)
{
    return tinyfuse_interleaved_round_even(form) ? TINYFUSE_VECTORS_HALF_EVEN
           : form == TINYFUSE_INTERLEAVED_SINGLE_ROUNDING || form == TINYFUSE_INTERLEAVED_SINGLE_ROUNDING_SATURATED
               ? TINYFUSE_VECTORS_SINGLE_ROUNDING
               : TINYFUSE_VECTORS_BY_SHIFTS;
}

/* The columns of a window that are `stride_w` apart and inside the image. The assembly loads all fields by one LDM. */
typedef struct {
    const int8_t *rows[TINYFUSE_INTERLEAVED_ROWS]; /* the first one's first channel */
    int32_t steps[TINYFUSE_INTERLEAVED_ROWS];      /* from a column to the next, in bytes */
    int8_t *to;
    int32_t count;
} tinyfuse_interleaved_plane;

/* The job of a chunk of outputs. The assembly loads the first three fields by one LDM and uses up four, and loads
   `act_min` and `act_max` as a pair. */
typedef struct {
    int8_t *out; /* the first one, of the first channel */
    const int8_t *weights;
    const int32_t *channels;
    int32_t channels_left;
    int32_t outputs; /* at most eight, `in_c` bytes from one to the next */
    int32_t in_c, out_zero_point, act_min, act_max;
    const int8_t *columns;
    int32_t offsets[TINYFUSE_INTERLEAVED_WIDTH]; /* offsets of the first window's columns, from `columns` */
    const tinyfuse_interleaved_plane *planes_end;
    tinyfuse_interleaved_plane planes[TINYFUSE_INTERLEAVED_PLANES]; /* scratch holds as many as the layer has */
} tinyfuse_interleaved_job;

#if UINTPTR_MAX <= 0xFFFFFFFFu
typedef char tinyfuse_check_columns[offsetof(tinyfuse_interleaved_job, planes) == TINYFUSE_INTERLEAVED_JOB_BYTES ? 1 : -1];
typedef char tinyfuse_check_plane[sizeof(tinyfuse_interleaved_plane) == TINYFUSE_INTERLEAVED_PLANE_BYTES ? 1 : -1];
#endif

#if TINYFUSE_MVE

/* Interleaves the columns of some channels, the r12th and those after, as many as `predicate` has lanes. r0: the job;
   r10 to r11: the planes; r1 to r3: rows; r4 to r6: steps; r7: where columns go. */
#define TINYFUSE_INTERLEAVED_VECTOR(predicate, column)                                             \
    "ldr r10, [r0, %[channels_left]]\n\t"                                                          \
    "ldr r11, [r0, %[planes_end]]\n\t"                                                             \
    predicate " r10\n\t"                                                                           \
    "add r10, r0, %[planes]\n\t"                                                                   \
    "2:\n\t"                                                                                       \
    "ldm r10!, {r1-r8}\n\t"                                                                        \
    "add r1, r12\n\t"                                                                              \
    "add r2, r12\n\t"                                                                              \
    "add r3, r12\n\t"                                                                              \
    "wls lr, r8, 4f\n\t"                                                                           \
    "3:\n\t" column                                                                                \
    "le lr, 3b\n\t"                                                                                \
    "4:\n\t"                                                                                       \
    "cmp r10, r11\n\t"                                                                             \
    "bne 2b\n\t"

/* Interleaves a column. The fourth byte of a word may be anything, for its weight is zero. */
#define TINYFUSE_COLUMN_OF_SIXTEEN                                                                 \
    "vpsttt\n\t"                                                                                   \
    "vldrbt.8 q0, [r1]\n\t"                                                                        \
    "vldrbt.8 q1, [r2]\n\t"                                                                        \
    "vldrbt.8 q2, [r3]\n\t"                                                                        \
    "add r1, r4\n\t"                                                                               \
    "vst40.8 {q0, q1, q2, q3}, [r7]\n\t"                                                           \
    "add r2, r5\n\t"                                                                               \
    "vst41.8 {q0, q1, q2, q3}, [r7]\n\t"                                                           \
    "add r3, r6\n\t"                                                                               \
    "vst42.8 {q0, q1, q2, q3}, [r7]\n\t"                                                           \
    "vst43.8 {q0, q1, q2, q3}, [r7]!\n\t"
#define TINYFUSE_COLUMN_OF_EIGHT                                                                   \
    "vpsttt\n\t"                                                                                   \
    "vldrbt.u16 q0, [r1]\n\t"                                                                      \
    "vldrbt.u16 q2, [r2]\n\t"                                                                      \
    "vldrbt.u16 q1, [r3]\n\t"                                                                      \
    "add r1, r4\n\t"                                                                               \
    "vsli.16 q0, q2, #8\n\t"                                                                       \
    "add r2, r5\n\t"                                                                               \
    "vst20.16 {q0, q1}, [r7]\n\t"                                                                  \
    "add r3, r6\n\t"                                                                               \
    "vst21.16 {q0, q1}, [r7]!\n\t"

/* A channel's sums of eight outputs, whose first columns lie as far apart as a column of sixteen or eight channels is
   long. The first output's is the last one, and goes on to the next channel's word. An output's vector is loaded in front of
   the product of the one before. */
#define TINYFUSE_INTERLEAVED_LOAD(v, at) "vldrw.u32 " v ", [q7, #" at "\n\t"
#define TINYFUSE_INTERLEAVED_DOT(v, sum) "vmladav.s8 " sum ", " v ", q1\n\t"
#define TINYFUSE_DOTS_OF_SIXTEEN                                                                   \
    TINYFUSE_INTERLEAVED_LOAD("q2", "452]")                                                        \
    TINYFUSE_INTERLEAVED_LOAD("q0", "388]") TINYFUSE_INTERLEAVED_DOT("q2", "lr")                   \
    TINYFUSE_INTERLEAVED_LOAD("q2", "324]") TINYFUSE_INTERLEAVED_DOT("q0", "r12")                  \
    TINYFUSE_INTERLEAVED_LOAD("q0", "260]") TINYFUSE_INTERLEAVED_DOT("q2", "r10")                  \
    TINYFUSE_INTERLEAVED_LOAD("q2", "196]") TINYFUSE_INTERLEAVED_DOT("q0", "r8")                   \
    TINYFUSE_INTERLEAVED_LOAD("q0", "132]") TINYFUSE_INTERLEAVED_DOT("q2", "r6")                   \
    TINYFUSE_INTERLEAVED_LOAD("q2", "68]") TINYFUSE_INTERLEAVED_DOT("q0", "r4")                    \
    TINYFUSE_INTERLEAVED_LOAD("q0", "4]!") TINYFUSE_INTERLEAVED_DOT("q2", "r2")                    \
    TINYFUSE_INTERLEAVED_DOT("q0", "r0")
#define TINYFUSE_DOTS_OF_EIGHT                                                                     \
    TINYFUSE_INTERLEAVED_LOAD("q2", "228]")                                                        \
    TINYFUSE_INTERLEAVED_LOAD("q0", "196]") TINYFUSE_INTERLEAVED_DOT("q2", "lr")                   \
    TINYFUSE_INTERLEAVED_LOAD("q2", "164]") TINYFUSE_INTERLEAVED_DOT("q0", "r12")                  \
    TINYFUSE_INTERLEAVED_LOAD("q0", "132]") TINYFUSE_INTERLEAVED_DOT("q2", "r10")                  \
    TINYFUSE_INTERLEAVED_LOAD("q2", "100]") TINYFUSE_INTERLEAVED_DOT("q0", "r8")                   \
    TINYFUSE_INTERLEAVED_LOAD("q0", "68]") TINYFUSE_INTERLEAVED_DOT("q2", "r6")                    \
    TINYFUSE_INTERLEAVED_LOAD("q2", "36]") TINYFUSE_INTERLEAVED_DOT("q0", "r4")                    \
    TINYFUSE_INTERLEAVED_LOAD("q0", "4]!") TINYFUSE_INTERLEAVED_DOT("q2", "r2")                    \
    TINYFUSE_INTERLEAVED_DOT("q0", "r0")

/* q2 + r0, and q3 + r0, times r2, shifted by r4, to 16 bits in q2. VRSHL rounds halves up, so that a negative value is first
   lowered by one (tinyfuse_matmul_4x2_mve.h). */
#define TINYFUSE_INTERLEAVED_ROUND_UP                                                              \
    "vadd.i32 q2, q2, r0\n\t"                                                                      \
    "vqrdmulh.s32 q2, q2, r2\n\t"                                                                  \
    "vadd.i32 q3, q3, r0\n\t"                                                                      \
    "vqrdmulh.s32 q3, q3, r2\n\t"                                                                  \
    "vrshl.s32 q2, r4\n\t"                                                                         \
    "vrshl.s32 q3, r4\n\t"                                                                         \
    "vqmovnb.s32 q2, q2\n\t"                                                                       \
    "vqmovnt.s32 q2, q3\n\t"
#define TINYFUSE_INTERLEAVED_ROUND_AWAY                                                            \
    "vadd.i32 q2, q2, r0\n\t"                                                                      \
    "vshr.s32 q0, q2, #31\n\t"                                                                     \
    "vqrdmlah.s32 q0, q2, r2\n\t"                                                                  \
    "vadd.i32 q3, q3, r0\n\t"                                                                      \
    "vshr.s32 q2, q3, #31\n\t"                                                                     \
    "vqrdmlah.s32 q2, q3, r2\n\t" TINYFUSE_INTERLEAVED_SHIFT_RIGHT
#define TINYFUSE_INTERLEAVED_SHIFT_RIGHT                                                           \
    "vrshl.s32 q0, r4\n\t"                                                                         \
    "vrshl.s32 q2, r4\n\t"                                                                         \
    "vqmovnt.s32 q2, q2\n\t"                                                                       \
    "vqmovnb.s32 q2, q0\n\t"
/* ROUND_AWAY for any shifts: with a shift of 0 nothing is lowered, and left shifts come before the product. r6 is the
   left shift; r8 is 1 if there is a right shift, else 0. */
#define TINYFUSE_INTERLEAVED_ROUND_SHIFTED                                                         \
    "vadd.i32 q2, q2, r0\n\t"                                                                      \
    "bic r6, r4, r4, asr #31\n\t"                                                                  \
    "lsr r8, r4, #31\n\t"                                                                          \
    "vadd.i32 q3, q3, r0\n\t"                                                                      \
    "and r4, r4, r4, asr #31\n\t"                                                                  \
    "vshl.s32 q2, r6\n\t"                                                                          \
    "vshl.s32 q3, r6\n\t"                                                                          \
    "vshr.s32 q0, q2, #31\n\t"                                                                     \
    "vmul.i32 q0, q0, r8\n\t"                                                                      \
    "vqrdmlah.s32 q0, q2, r2\n\t"                                                                  \
    "vshr.s32 q2, q3, #31\n\t"                                                                     \
    "vmul.i32 q2, q2, r8\n\t"                                                                      \
    "vqrdmlah.s32 q2, q3, r2\n\t" TINYFUSE_INTERLEAVED_SHIFT_RIGHT

/* A single rounding: VMLAS adds the bias to sums in 256ths, `ones` being a vector of 256s; the product is doubled. */
#define TINYFUSE_INTERLEAVED_ROUND_ONCE(ones)                                                      \
    "vmlas.s32 q2, " ones ", r0\n\t"                                                               \
    "vmlas.s32 q3, " ones ", r0\n\t"                                                               \
    "vqdmulh.s32 q2, q2, r2\n\t"                                                                   \
    "vqdmulh.s32 q3, q3, r2\n\t"                                                                   \
    "vqrshrnb.s32 q2, q2, #12\n\t"                                                                 \
    "vqrshrnt.s32 q2, q3, #12\n\t"
#define TINYFUSE_INTERLEAVED_ONES(v) "vmov.i32 " v ", #256\n\t"
/* A channel that rounds half to even, whose shift is not 0, is computed apart, and goes on at 7: q2 + r0, and q3 + r0,
   times the scale r2, with the zero point, saturated to 16 bits in q2. */
#define TINYFUSE_INTERLEAVED_SINGLE_OR_HALF_EVEN(line) "cbnz r4, 8f\n\t" line "7:\n\t"
#define TINYFUSE_INTERLEAVED_APART(zero_point)                                                     \
    "8:\n\t"                                                                                       \
    "vadd.i32 q2, q2, r0\n\t"                                                                      \
    "vadd.i32 q3, q3, r0\n\t" TINYFUSE_NEAREST4("q2", "r2") TINYFUSE_NEAREST4("q3", "r2")          \
    "vqmovnb.s32 q2, q2\n\t"                                                                       \
    "vqmovnt.s32 q2, q3\n\t" zero_point                                                            \
    "b 7b\n\t"

/* The outputs of 1 to 16 channels. r3: out; r5: weights; r7: channels; r9: the load of the last output that is there; r11:
   the last channel's weights' end. q1: a channel's weights; q4: where the outputs lie; q7: a word before the first
   window's columns. Of fewer than eight outputs, the first product is of any values, and is not stored. */
#define TINYFUSE_INTERLEAVED_BEGIN_CHANNEL                                                         \
    "vldrb.8 q1, [r5], #16\n\t"                                                                    \
    "mov pc, r9\n\t"
#define TINYFUSE_INTERLEAVED_CHANNEL(dots, round, store)                                           \
    dots                                                                                           \
    "vmov q3[3], q3[1], r6, lr\n\t"                                                                \
    "vmov q2[3], q2[1], r4, r12\n\t"                                                               \
    "vmov q3[2], q3[0], r2, r10\n\t"                                                               \
    "vmov q2[2], q2[0], r0, r8\n\t"                                                                \
    "ldm r7!, {r0, r2, r4}\n\t" round store                                                        \
    "vpst\n\t"                                                                                     \
    "vstrbt.16 q2, [r3, q4]\n\t"                                                                   \
    "adds r3, #1\n\t"
/* `apart` is code that is only reached by jumps. */
#define TINYFUSE_INTERLEAVED_CHUNK(most, channel, apart)                                           \
    "ldr r10, [r0, %[outputs]]\n\t"                                                                \
    "ldr r2, [r0, %[channels_left]]\n\t"                                                           \
    "ldm r0, {r3, r5, r7}\n\t"                                                                     \
    "vctp.16 r10\n\t"                                                                              \
    "cmp r2, #" most "\n\t"                                                                        \
    "it gt\n\t"                                                                                    \
    "movgt r2, #" most "\n\t"                                                                      \
    "add r11, r5, r2, lsl #4\n\t" TINYFUSE_INTERLEAVED_BEGIN_CHANNEL                               \
    ".p2align 2\n\t" /* ADR counts from words */                                                \
    "5:\n\t" channel                                                                               \
    "cmp r5, r11\n\t"                                                                              \
    "beq 6f\n\t" TINYFUSE_INTERLEAVED_BEGIN_CHANNEL apart                                          \
    "6:\n\t"

#define TINYFUSE_INTERLEAVED_FIELD(field) [field] "i"(offsetof(tinyfuse_interleaved_job, field))

/* Computes all channels, `most` at a time, whose words take `column_bytes`. `begin` precedes the loop over them,
   `channel` computes one. On the stack: the zero point, the channels that are done, the job. */
#define TINYFUSE_INTERLEAVED_ALL(most, column_bytes, interleave, begin, channel, apart)            \
    __asm volatile(TINYFUSE_ASM_BEGIN                                                              \
                   "ldr r4, [r0, %[in_c]]\n\t"                                                     \
                   "movs r2, #0\n\t"                                                               \
                   "vidup.u16 q4, r2, #1\n\t"                                                      \
                   "vmul.i16 q4, q4, r4\n\t"                                                       \
                   "ldr r4, [r0, %[columns]]\n\t"                                                  \
                   "add r6, r0, %[offsets]\n\t"                                                    \
                   "vldrw.u32 q7, [r6]\n\t"                                                        \
                   "subs r4, #4\n\t"                                                               \
                   "vadd.i32 q7, q7, r4\n\t"                                                       \
                   "ldr r9, [r0, %[outputs]]\n\t"                                                  \
                   "adr.w r2, 5f\n\t"                                                              \
                   "rsb r9, r9, #8\n\t"                                                            \
                   "lsls r9, r9, #3\n\t" /* bytes of code, a load and a product, that are skipped for each missing output */\
                   "it ne\n\t"                                                                     \
                   "subne r9, #4\n\t" /* the first load is alone */                                \
                   "add r9, r2\n\t"                                                                \
                   "ldr r2, [r0, %[out_zero_point]]\n\t"                                           \
                   "movs r12, #0\n\t" begin                                                        \
                   "push {r2, r12}\n\t"                                                            \
                   "1:\n\t" interleave TINYFUSE_INTERLEAVED_CHUNK(most, channel, apart)            \
                   "ldrd r12, r0, [sp, #4]\n\t"                                                    \
                   "ldr r1, [r0, %[channels_left]]\n\t"                                            \
                   "movs r2, #" column_bytes "\n\t"                                                \
                   "stm r0, {r3, r5, r7}\n\t"                                                      \
                   "vsub.i32 q7, q7, r2\n\t"                                                       \
                   "adds r12, #" most "\n\t"                                                       \
                   "str r12, [sp, #4]\n\t"                                                         \
                   "subs r1, #" most "\n\t"                                                        \
                   "str r1, [r0, %[channels_left]]\n\t"                                            \
                   "bgt 1b\n\t"                                                                    \
                   "pop {r2, r12}\n\t" TINYFUSE_ASM_END                                            \
                   :                                                                               \
                   : "r"(arguments), TINYFUSE_INTERLEAVED_FIELD(offsets), TINYFUSE_INTERLEAVED_FIELD(in_c),\
                     TINYFUSE_INTERLEAVED_FIELD(out_zero_point), TINYFUSE_INTERLEAVED_FIELD(act_min),\
                     TINYFUSE_INTERLEAVED_FIELD(outputs), TINYFUSE_INTERLEAVED_FIELD(channels_left),\
                     TINYFUSE_INTERLEAVED_FIELD(columns), TINYFUSE_INTERLEAVED_FIELD(planes),      \
                     TINYFUSE_INTERLEAVED_FIELD(planes_end)                                        \
                   : TINYFUSE_ASM_CLOBBERS, TINYFUSE_CLOBBERS_P0 "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7")
/* `round` precedes the store of 16-bit values in q2, `store`. */
#define TINYFUSE_INTERLEAVED_BY_SIXTEEN(begin, round, store, apart)                                \
    TINYFUSE_INTERLEAVED_ALL("16", "64", TINYFUSE_INTERLEAVED_VECTOR("vctp.8", TINYFUSE_COLUMN_OF_SIXTEEN),\
                         begin, TINYFUSE_INTERLEAVED_CHANNEL(TINYFUSE_DOTS_OF_SIXTEEN, round, store), apart)
#define TINYFUSE_INTERLEAVED_BY_EIGHT(begin, round, store, apart)                                  \
    TINYFUSE_INTERLEAVED_ALL("8", "32", TINYFUSE_INTERLEAVED_VECTOR("vctp.16", TINYFUSE_COLUMN_OF_EIGHT),\
                         begin, TINYFUSE_INTERLEAVED_CHANNEL(TINYFUSE_DOTS_OF_EIGHT, round, store), apart)

/* Forms in which saturating to int8 is the whole clamp. */
#define TINYFUSE_INTERLEAVED_SATURATE(by, round)                                                   \
    by("vdup.16 q5, r2\n\t", round,                                                                \
       "vqadd.s16 q2, q2, q5\n\t"                                                                  \
       "vqmovnb.s16 q2, q2\n\t", "")
#define TINYFUSE_INTERLEAVED_SATURATE_SINGLE_ROUNDING(by)                                          \
    by(TINYFUSE_INTERLEAVED_ONES("q6"), TINYFUSE_INTERLEAVED_ROUND_ONCE("q6"),                     \
       "vqmovnb.s16 q2, q2\n\t", "")
#define TINYFUSE_INTERLEAVED_SATURATE_EVEN(by)                                                     \
    by("vdup.16 q5, r2\n\t" TINYFUSE_INTERLEAVED_ONES("q6"),                                       \
       TINYFUSE_INTERLEAVED_SINGLE_OR_HALF_EVEN(TINYFUSE_INTERLEAVED_ROUND_ONCE("q6")),            \
       "vqmovnb.s16 q2, q2\n\t", TINYFUSE_INTERLEAVED_APART("vqadd.s16 q2, q2, q5\n\t"))

/* Any outputs. */
#define TINYFUSE_INTERLEAVED_CLAMP(by, round)                                                      \
    by(TINYFUSE_INTERLEAVED_ENDS, round, TINYFUSE_INTERLEAVED_ZERO_POINT TINYFUSE_INTERLEAVED_TO_ENDS, "")
#define TINYFUSE_INTERLEAVED_CLAMP_SINGLE_ROUNDING(by)                                             \
    by(TINYFUSE_INTERLEAVED_ENDS, TINYFUSE_INTERLEAVED_ONES("q0") TINYFUSE_INTERLEAVED_ROUND_ONCE("q0"), \
       TINYFUSE_INTERLEAVED_TO_ENDS, "")
#define TINYFUSE_INTERLEAVED_CLAMP_EVEN(by)                                                        \
    by(TINYFUSE_INTERLEAVED_ENDS,                                                                  \
       TINYFUSE_INTERLEAVED_SINGLE_OR_HALF_EVEN(TINYFUSE_INTERLEAVED_ONES("q0") TINYFUSE_INTERLEAVED_ROUND_ONCE("q0")), \
       TINYFUSE_INTERLEAVED_TO_ENDS, TINYFUSE_INTERLEAVED_APART(TINYFUSE_INTERLEAVED_ZERO_POINT))
#define TINYFUSE_INTERLEAVED_ENDS                                                                  \
    "ldrd r3, r4, [r0, %[act_min]]\n\t"                                                            \
    "vdup.16 q5, r3\n\t"                                                                           \
    "vdup.16 q6, r4\n\t"
#define TINYFUSE_INTERLEAVED_ZERO_POINT                                                            \
    "ldr r0, [sp]\n\t"                                                                             \
    "vqadd.s16 q2, q2, r0\n\t"
#define TINYFUSE_INTERLEAVED_TO_ENDS                                                               \
    "vmax.s16 q2, q2, q5\n\t"                                                                      \
    "vmin.s16 q2, q2, q6\n\t"

#define TINYFUSE_INTERLEAVED_FUNCTION(name, code) TINYFUSE_ASM_FUNCTION(name, tinyfuse_interleaved_job, code)
#define TINYFUSE_INTERLEAVED_FORMS(name, by)                                                       \
    TINYFUSE_INTERLEAVED_FUNCTION(name##_each, TINYFUSE_INTERLEAVED_CLAMP(by, TINYFUSE_INTERLEAVED_ROUND_AWAY)) \
    TINYFUSE_INTERLEAVED_FUNCTION(name##_shifted, TINYFUSE_INTERLEAVED_CLAMP(by, TINYFUSE_INTERLEAVED_ROUND_SHIFTED)) \
    TINYFUSE_INTERLEAVED_FUNCTION(name##_saturated, TINYFUSE_INTERLEAVED_SATURATE(by, TINYFUSE_INTERLEAVED_ROUND_AWAY)) \
    TINYFUSE_INTERLEAVED_FUNCTION(name##_rectified, TINYFUSE_INTERLEAVED_SATURATE(by, TINYFUSE_INTERLEAVED_ROUND_UP)) \
    TINYFUSE_INTERLEAVED_FUNCTION(name##_single_rounding, TINYFUSE_INTERLEAVED_CLAMP_SINGLE_ROUNDING(by)) \
    TINYFUSE_INTERLEAVED_FUNCTION(name##_single_rounding_saturated, TINYFUSE_INTERLEAVED_SATURATE_SINGLE_ROUNDING(by))
TINYFUSE_INTERLEAVED_FORMS(tinyfuse_interleaved, TINYFUSE_INTERLEAVED_BY_SIXTEEN)
TINYFUSE_INTERLEAVED_FORMS(tinyfuse_fewer_columns, TINYFUSE_INTERLEAVED_BY_EIGHT)

#if TINYFUSE_MVE_FLOATS
#define TINYFUSE_INTERLEAVED_EVEN_FORMS(name, by)                                                  \
    TINYFUSE_INTERLEAVED_FUNCTION(name##_half_even, TINYFUSE_INTERLEAVED_CLAMP_EVEN(by))           \
    TINYFUSE_INTERLEAVED_FUNCTION(name##_half_even_saturated, TINYFUSE_INTERLEAVED_SATURATE_EVEN(by))
TINYFUSE_INTERLEAVED_EVEN_FORMS(tinyfuse_interleaved, TINYFUSE_INTERLEAVED_BY_SIXTEEN)
TINYFUSE_INTERLEAVED_EVEN_FORMS(tinyfuse_fewer_columns, TINYFUSE_INTERLEAVED_BY_EIGHT)
#define TINYFUSE_INTERLEAVED_EVEN_OF(form, name)                                                       \
    ((form) == TINYFUSE_INTERLEAVED_HALF_EVEN             ? name##_half_even                           \
     : (form) == TINYFUSE_INTERLEAVED_HALF_EVEN_SATURATED ? name##_half_even_saturated                 \
                                                      : TINYFUSE_INTERLEAVED_OF(form, name))
#else
#define TINYFUSE_INTERLEAVED_EVEN_OF(form, name) TINYFUSE_INTERLEAVED_OF(form, name)
#endif

/* Selects the function of a constant form. */
#define TINYFUSE_INTERLEAVED_OF(form, name)                                                        \
    ((form) == TINYFUSE_INTERLEAVED_RECTIFIED   ? name##_rectified                                 \
     : (form) == TINYFUSE_INTERLEAVED_SATURATED ? name##_saturated                                 \
     : (form) == TINYFUSE_INTERLEAVED_SHIFTED   ? name##_shifted                                   \
     : (form) == TINYFUSE_INTERLEAVED_SINGLE_ROUNDING     ? name##_single_rounding                 \
     : (form) == TINYFUSE_INTERLEAVED_SINGLE_ROUNDING_SATURATED ? name##_single_rounding_saturated \
                                                : name##_each)

TINYFUSE_INLINE void tinyfuse_interleaved_chunk_mve(tinyfuse_interleaved_job *job, int32_t at_once, int form)
{
    if (at_once == TINYFUSE_INTERLEAVED_CHANNELS) {
        TINYFUSE_INTERLEAVED_EVEN_OF(form, tinyfuse_interleaved)(job);
    } else {
        TINYFUSE_INTERLEAVED_EVEN_OF(form, tinyfuse_fewer_columns)(job);
    }
}

/* Fills `count` columns with a value. */
TINYFUSE_INLINE void tinyfuse_interleaved_pad(int8_t *columns, int32_t value, int32_t count, int32_t column_bytes)
{
    int32_t left = count * column_bytes;
    if (left > 0) {
        __asm volatile("vdup.8 q0, %[value]\n\t"
                       "wlstp.8 lr, %[left], 2f\n\t"
                       "1:\n\t"
                       "vstrb.8 q0, [%[columns]], #16\n\t"
                       "letp lr, 1b\n\t"
                       "2:\n\t"
                       : [columns] "+r"(columns)
                       : [value] "r"(value), [left] "r"(left)
                       : "lr", "cc", "memory", "q0");
    }
}

#endif

/* Interleaves the columns of a plane for `channels` channels from the c-th on. */
TINYFUSE_INLINE void tinyfuse_interleave_columns(const tinyfuse_interleaved_plane *plane, int32_t c, int32_t channels,
                                                 int32_t column_bytes)
{
    int32_t x, i, r;
    for (x = 0; x < plane->count; ++x) {
        for (i = 0; i < channels; ++i) {
            for (r = 0; r < TINYFUSE_INTERLEAVED_ROWS; ++r) {
                plane->to[x * column_bytes + TINYFUSE_INTERLEAVED_WORD * i + r] =
                    plane->rows[r][x * plane->steps[r] + c + i];
            }
        }
    }
}

TINYFUSE_INLINE int8_t tinyfuse_interleaved_output(const tinyfuse_interleaved_job *job, const int32_t *channel, int32_t x,
                                               int32_t i, int32_t column_bytes, int rule)
{
    const int8_t *const weights = job->weights + TINYFUSE_INTERLEAVED_WIDTH * TINYFUSE_INTERLEAVED_WORD * i;
    uint32_t sum = 0; /* wraps */
    int32_t k, r;
    for (k = 0; k < TINYFUSE_INTERLEAVED_WIDTH; ++k) {
        const int8_t *const column =
            job->columns + job->offsets[k] + x * column_bytes + TINYFUSE_INTERLEAVED_WORD * i;
        for (r = 0; r < TINYFUSE_INTERLEAVED_ROWS; ++r) {
            sum += (uint32_t)(column[r] * weights[TINYFUSE_INTERLEAVED_WORD * k + r]);
        }
    }
    k = tinyfuse_vector_output(sum, channel, job->out_zero_point, rule);
    return (int8_t)tinyfuse_clamp(k, job->act_min, job->act_max);
}

TINYFUSE_SHARED void tinyfuse_interleaved_chunk_c(tinyfuse_interleaved_job *job, int32_t at_once, int form)
{
    const int32_t column_bytes = TINYFUSE_INTERLEAVED_WORD * at_once;
    const tinyfuse_interleaved_plane *plane;
    const int rule = tinyfuse_interleaved_rule(form);
    int32_t c, i, x;
    for (c = 0; job->channels_left > 0; c += at_once) {
        const int32_t channels = tinyfuse_min(job->channels_left, at_once);
        for (plane = job->planes; plane != job->planes_end; ++plane) {
            tinyfuse_interleave_columns(plane, c, channels, column_bytes);
        }
        for (i = 0; i < channels; ++i) {
            const int32_t *const channel = job->channels + 3 * i;
            for (x = 0; x < job->outputs; ++x) {
                job->out[x * job->in_c + i] =
                    tinyfuse_interleaved_output(job, channel, x, i, column_bytes, rule);
            }
        }
        job->out += channels;
        job->weights += TINYFUSE_INTERLEAVED_WIDTH * TINYFUSE_INTERLEAVED_WORD * channels;
        job->channels += 3 * channels;
        job->channels_left -= at_once;
    }
}

TINYFUSE_INLINE void tinyfuse_interleaved_chunk(tinyfuse_interleaved_job *job, int32_t at_once, int form)
{
#if TINYFUSE_MVE
    if (TINYFUSE_MVE_FLOATS || !tinyfuse_interleaved_round_even(form)) {
        tinyfuse_interleaved_chunk_mve(job, at_once, form);
        return;
    }
#endif
    tinyfuse_interleaved_chunk_c(job, at_once, form);
}

#if !TINYFUSE_MVE

/* Fills `count` columns of `column_bytes` bytes with a value. */
TINYFUSE_INLINE void tinyfuse_interleaved_pad(int8_t *columns, int32_t value, int32_t count, int32_t column_bytes)
{
    if (count > 0) {
        memset(columns, value, (size_t)(count * column_bytes));
    }
}

#endif

/* Sets up a plane: among the columns that the windows of `outputs` output columns from x on read, those `number`
   after a multiple of stride_w. It finds which lie in the image, and pads the others. `columns`: where they go;
   `stood`: the column that the plane's rows point to. */
TINYFUSE_INLINE void tinyfuse_interleaved_place(const tinyfuse_conv *p, int32_t x, int32_t outputs, int32_t number,
                                                int8_t *columns, int32_t column_bytes,
                                                tinyfuse_interleaved_plane *plane, int32_t *stood)
{
    const int32_t stride = p->stride_w, column = x * stride - p->pad_left + number;
    const int32_t all = outputs + (p->kernel_w - 1 - number) / stride;
    /* the first one inside, the first one after the image */
    const int32_t first = column >= 0 ? 0 : tinyfuse_min(all, (stride - 1 - column) / stride);
    const int32_t inside = p->in_w - column, after = inside <= 0 ? 0 : (inside + stride - 1) / stride;
    const int32_t last = tinyfuse_max(first, tinyfuse_min(all, after));
    int32_t r;
    tinyfuse_interleaved_pad(columns, p->in_zero_point, first, column_bytes);
    tinyfuse_interleaved_pad(columns + last * column_bytes, p->in_zero_point, all - last, column_bytes);
    if (last > first) {
        const int32_t start = column + first * stride;
        for (r = 0; r < TINYFUSE_INTERLEAVED_ROWS; ++r) {
            if (plane->steps[r] != 0) {
                plane->rows[r] += (start - *stood) * p->in_c;
            }
        }
        *stood = start;
    }
    plane->to = columns + first * column_bytes;
    plane->count = last - first;
}

/* Lists the rows of output row y's window from column 0 on, `padding` for those outside of the image. */
TINYFUSE_INLINE void tinyfuse_interleaved_window(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *padding,
                                                 tinyfuse_interleaved_plane *plane)
{
    int32_t r, outside = 0;
    for (r = 0; r < TINYFUSE_INTERLEAVED_ROWS; ++r) {
        const int32_t iy = y * p->stride_h - p->pad_top + r * p->dilation_h;
        const int inside = iy >= 0 && iy < p->in_h;
        plane->rows[r] = padding;
        plane->steps[r] = 0;
        if (r >= p->kernel_h) { /* any bytes, times zero */
            plane->rows[r] = plane->rows[0];
            plane->steps[r] = plane->steps[0];
        } else if (inside != 0) {
            plane->rows[r] = tinyfuse_ring_row(in, iy, p->in_ring, p->in_w * p->in_c);
            plane->steps[r] = p->stride_w * p->in_c;
        } else {
            ++outside;
        }
    }
    if (outside > 0) {
        memset(padding, p->in_zero_point, (size_t)p->in_c);
    }
}

/* Computes output row y. Reads only the input rows of y's own window, writes only out_row, which must not overlap
   them. `at_once`, the channels at a time, and `form` are constants. scratch, aligned to 4: a
   tinyfuse_interleaved_job with its planes, `stride_w` of them, but at most `kernel_w` and two; then for each plane
   the outputs + (kernel_w - 1) / stride_w columns that a chunk of outputs reads, a word for each of `at_once`
   channels. */
TINYFUSE_SHARED void tinyfuse_depthwise_interleaved_mve_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                               int8_t *out_row, const int8_t *weights,
                                                               const int32_t *channels, void *scratch, int32_t at_once,
                                                               int form)
{
    tinyfuse_interleaved_job *const job = (tinyfuse_interleaved_job *)TINYFUSE_WITH_POINTERS(scratch, sizeof *job);
    const int32_t stride = p->stride_w, planes = tinyfuse_min(stride, p->kernel_w);
    int8_t *const columns =
        (int8_t *)scratch + TINYFUSE_INTERLEAVED_JOB_BYTES + planes * TINYFUSE_INTERLEAVED_PLANE_BYTES;
    const int32_t plane_columns = tinyfuse_min(TINYFUSE_INTERLEAVED_OUTPUTS, p->out_w) + (p->kernel_w - 1) / stride;
    const int32_t column_bytes = TINYFUSE_INTERLEAVED_WORD * at_once, plane_bytes = plane_columns * column_bytes;
    int32_t stood[TINYFUSE_INTERLEAVED_PLANES] = {0, 0};
    int32_t x, k, at;
    /* the last output's place holds padding: a channel's value is read before its output is written */
    tinyfuse_interleaved_window(p, in, y, out_row + (p->out_w - 1) * p->in_c, job->planes);
    if (planes > 1) {
        job->planes[1] = job->planes[0];
    }
    for (k = 0, x = 0, at = 0; k < TINYFUSE_INTERLEAVED_WIDTH; ++k) {
        job->offsets[k] = k < p->kernel_w ? x * plane_bytes + at : 0; /* beyond the window: any value, times zero */
        if (++x == stride) {
            x = 0;
            at += column_bytes;
        }
    }
    job->columns = columns;
    job->planes_end = job->planes + planes;
    job->in_c = p->in_c;
    job->out_zero_point = p->out_zero_point;
    job->act_min = p->act_min;
    job->act_max = p->act_max;
    for (x = 0; x < p->out_w; x += TINYFUSE_INTERLEAVED_OUTPUTS) {
        job->out = out_row + x * p->in_c;
        job->weights = weights;
        job->channels = channels;
        job->channels_left = p->in_c;
        job->outputs = tinyfuse_min(TINYFUSE_INTERLEAVED_OUTPUTS, p->out_w - x);
        for (k = 0; k < planes; ++k) {
            tinyfuse_interleaved_place(p, x, job->outputs, k, columns + k * plane_bytes, column_bytes, job->planes + k,
                                   stood + k);
        }
        tinyfuse_interleaved_chunk(job, at_once, form);
    }
}

#endif
