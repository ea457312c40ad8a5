/* Fully connected layers of int8 with weights of int16 in flash, for cores with the DSP extension, requantized with a
   single rounding by one multiplier, in the bounded form (tinyfuse_requantize.h) or half to even. Inputs are converted into a
   column, then four outputs (a quad) are computed at a time from eight inputs in registers. The weights and constants
   of a quad come in one stream, in the order in which they are needed. */
#ifndef TINYFUSE_DENSE_INT16_WEIGHTS_H
#define TINYFUSE_DENSE_INT16_WEIGHTS_H

#include "tinyfuse_matmul.h"

/* How sums become outputs. */
enum { TINYFUSE_QUADS_BOUNDED, TINYFUSE_QUADS_SINGLE_ROUNDING, TINYFUSE_QUADS_HALF_EVEN };

/* `multiplier` and `rounding` of single rounding; 0 in the bounded form. Half to even `rounding` is the output zero
   point. */
typedef struct {
    int32_t batches, in_c, out_c, multiplier, rounding, act_min, act_max;
} tinyfuse_dense_int16_weights;

/* An output's requantization in the bounded form; `term` is rounding << shift. */
typedef struct {
    int32_t multiplier, shift, term;
} tinyfuse_dense_int16_weights_scale;

/* Some quads of outputs of a batch; assembly knows the offsets. A quad is the int32 biases of its outputs, then for
   each eight inputs [4][4][2] int16: an output's weights of inputs 0 2, 1 3, 4 6, 5 7, times 256 with a single
   rounding. The bounded form adds four tinyfuse_dense_int16_weights_scale, half to even four float32 scales. */
typedef struct {
    const int8_t *columns; /* each four inputs in the order 0 2 1 3, int16 */
    const int8_t *columns_end;
    int32_t steps; /* groups of eight inputs, the last one padded with zeros */
    int8_t *out;   /* 12 */
    const int32_t *end;
    int32_t multiplier; /* 20 */
    int32_t rounding;
    const int32_t *quads; /* 28 */
} tinyfuse_dense_int16_weights_1x4;

#if TINYFUSE_DSP

typedef char tinyfuse_check_dense_int16_weights_1x4[offsetof(tinyfuse_dense_int16_weights_1x4, quads) == 28 ? 1 : -1];

/* In the loop: r0 columns, r1 quads, r2 to r5 sums, r6 to r9 inputs, r10 to lr an output's weights. On the stack: the
   fields of tinyfuse_dense_int16_weights_1x4 up to the rounding, with the loop's entry in the place of `steps`: it is
   entered in its middle, so that only whole iterations remain. A step has 21 instructions of 32 bits. */
#define TINYFUSE_INT16_WEIGHTS_DENSE_OUTPUT(sum) \
    "ldm r1!, {r10, r11, r12, lr}\n\t"          \
    "smlad " sum ", r6, r10, " sum "\n\t"       \
    "smlad " sum ", r7, r11, " sum "\n\t"       \
    "smlad " sum ", r8, r12, " sum "\n\t"       \
    "smlad " sum ", r9, lr, " sum "\n\t"
#define TINYFUSE_INT16_WEIGHTS_DENSE_STEP                                        \
    "ldm r0!, {r6, r7, r8, r9}\n\t"                                              \
    TINYFUSE_INT16_WEIGHTS_DENSE_OUTPUT("r2") TINYFUSE_INT16_WEIGHTS_DENSE_OUTPUT("r3") \
    TINYFUSE_INT16_WEIGHTS_DENSE_OUTPUT("r4") TINYFUSE_INT16_WEIGHTS_DENSE_OUTPUT("r5")
#define TINYFUSE_INT16_WEIGHTS_DENSE_STEPS \
    TINYFUSE_INT16_WEIGHTS_DENSE_STEP TINYFUSE_INT16_WEIGHTS_DENSE_STEP \
    TINYFUSE_INT16_WEIGHTS_DENSE_STEP TINYFUSE_INT16_WEIGHTS_DENSE_STEP
/* tinyfuse_requantize_bounded: r6 multiplier, r7 shift, r8 rounding << shift; r9 out */
#define TINYFUSE_INT16_WEIGHTS_DENSE_STORE(sum)         \
    "ldm r1!, {r6, r7, r8}\n\t"                         \
    "add r8, " sum "\n\t"                               \
    "add r8, r8, " sum ", asr #31\n\t"                  \
    "smmlar " sum ", " sum ", r6, r8\n\t"               \
    "asr " sum ", r7\n\t"                               \
    "ssat " sum ", #8, " sum ", asr #1\n\t"             \
    "strb " sum ", [r9], #1\n\t"
#define TINYFUSE_INT16_WEIGHTS_DENSE_BOUNDED                                         \
    TINYFUSE_INT16_WEIGHTS_DENSE_STORE("r2") TINYFUSE_INT16_WEIGHTS_DENSE_STORE("r3") \
    TINYFUSE_INT16_WEIGHTS_DENSE_STORE("r4") TINYFUSE_INT16_WEIGHTS_DENSE_STORE("r5")
/* tinyfuse_requantize_single_rounding: r6 multiplier, r7 rounding; r9 out */
#define TINYFUSE_INT16_WEIGHTS_DENSE_STORE_SINGLE_ROUNDING(sum)                      \
    "smmla " sum ", " sum ", r6, r7\n\t" TINYFUSE_SINGLE_ROUNDING_SATURATE(sum)            \
    "strb " sum ", [r9], #1\n\t"
#define TINYFUSE_INT16_WEIGHTS_DENSE_SINGLE_ROUNDING                                 \
    "ldrd r6, r7, [sp, #20]\n\t"                                                     \
    TINYFUSE_INT16_WEIGHTS_DENSE_STORE_SINGLE_ROUNDING("r2") TINYFUSE_INT16_WEIGHTS_DENSE_STORE_SINGLE_ROUNDING("r3") \
    TINYFUSE_INT16_WEIGHTS_DENSE_STORE_SINGLE_ROUNDING("r4") TINYFUSE_INT16_WEIGHTS_DENSE_STORE_SINGLE_ROUNDING("r5")
/* tinyfuse_requantize_half_even: s4 to s7 scales, r7 output zero point; r9 out */
#define TINYFUSE_INT16_WEIGHTS_DENSE_STORE_HALF_EVEN(sum) \
    "add " sum ", r7\n\t"                                 \
    "ssat " sum ", #8, " sum "\n\t"                       \
    "strb " sum ", [r9], #1\n\t"
#define TINYFUSE_INT16_WEIGHTS_DENSE_HALF_EVEN                                       \
    "vldm r1!, {s4-s7}\n\t"                                                          \
    "vmov s0, s1, r2, r3\n\t"                                                        \
    "vmov s2, s3, r4, r5\n\t"                                                        \
    TINYFUSE_FLOATS_AT(TINYFUSE_TO_FLOATS, "s0", "s1") TINYFUSE_FLOATS_AT(TINYFUSE_TO_FLOATS, "s2", "s3") \
    "vmul.f32 s0, s0, s4\n\t"                                                        \
    "vmul.f32 s1, s1, s5\n\t"                                                        \
    "vmul.f32 s2, s2, s6\n\t"                                                        \
    "vmul.f32 s3, s3, s7\n\t"                                                        \
    TINYFUSE_FLOATS_AT(TINYFUSE_TO_NEAREST, "s0", "s1") TINYFUSE_FLOATS_AT(TINYFUSE_TO_NEAREST, "s2", "s3") \
    "vmov r2, r3, s0, s1\n\t"                                                        \
    "vmov r4, r5, s2, s3\n\t"                                                        \
    "ldr r7, [sp, #24]\n\t"                                                          \
    TINYFUSE_INT16_WEIGHTS_DENSE_STORE_HALF_EVEN("r2") TINYFUSE_INT16_WEIGHTS_DENSE_STORE_HALF_EVEN("r3") \
    TINYFUSE_INT16_WEIGHTS_DENSE_STORE_HALF_EVEN("r4") TINYFUSE_INT16_WEIGHTS_DENSE_STORE_HALF_EVEN("r5")
#if TINYFUSE_FPU
#define TINYFUSE_INT16_WEIGHTS_DENSE_HALF_EVEN_ASM(p) TINYFUSE_INT16_WEIGHTS_DENSE_ASM(HALF_EVEN, p)
#else
#define TINYFUSE_INT16_WEIGHTS_DENSE_HALF_EVEN_ASM(p) (void)(p); /* never reached */
#endif
#define TINYFUSE_INT16_WEIGHTS_DENSE_ASM(form, p)                                             \
    {                                                                                         \
        TINYFUSE_ARGUMENT(const tinyfuse_dense_int16_weights_1x4 *, arguments, p);            \
        __asm volatile(TINYFUSE_ASM_BEGIN                                                     \
                       "ldm r0, {r2, r3, r4, r5, r6, r7, r8}\n\t"                             \
                       "ldr r1, [r0, #28]\n\t"                                                \
                       "adr.w r9, 3f\n\t"                                                     \
                       "sub r4, #1\n\t"                                                       \
                       "and r4, #3\n\t"                                                       \
                       "add r4, #1\n\t"                                                       \
                       "mov r10, #84\n\t"                                                     \
                       "mls r4, r4, r10, r9\n\t"                                              \
                       "orr r4, #1\n\t"                                                       \
                       "push {r2, r3, r4, r5, r6, r7, r8}\n\t"                                \
                       "1:\n\t"                                                               \
                       "ldm r1!, {r2, r3, r4, r5}\n\t"                                        \
                       "ldr r0, [sp]\n\t"                                                     \
                       "ldr pc, [sp, #8]\n\t"                                                 \
                       ".p2align 2\n\t" /* ADR counts from words */                           \
                       "2:\n\t" TINYFUSE_INT16_WEIGHTS_DENSE_STEPS                            \
                       "3:\n\t"                                                               \
                       "ldr r12, [sp, #4]\n\t"                                                \
                       "cmp r0, r12\n\t"                                                      \
                       "bne 2b\n\t"                                                           \
                       "ldrd r9, r10, [sp, #12]\n\t" TINYFUSE_INT16_WEIGHTS_DENSE_##form      \
                       "str r9, [sp, #12]\n\t"                                                \
                       "cmp r1, r10\n\t"                                                      \
                       "bne 1b\n\t"                                                           \
                       "add sp, #28\n\t" TINYFUSE_ASM_END                                     \
                       :                                                                      \
                       : "r"(arguments)                                                       \
                       : TINYFUSE_CLOBBERS_FPU TINYFUSE_ASM_CLOBBERS);                        \
    }

#endif

/* Returns the words of a quad's multipliers, shifts and terms. */
TINYFUSE_INLINE int32_t tinyfuse_dense_int16_weights_scale_words(int form)
{
    return form == TINYFUSE_QUADS_BOUNDED ? 12 : form == TINYFUSE_QUADS_HALF_EVEN ? 4 : 0;
}

/* Computes all quads of a batch; there is at least one. `form` is a constant. */
TINYFUSE_INLINE void tinyfuse_dense_int16_weights_1x4_run(const tinyfuse_dense_int16_weights_1x4 *p, int form)
{
#if TINYFUSE_DSP
    if (form == TINYFUSE_QUADS_SINGLE_ROUNDING) {
        TINYFUSE_INT16_WEIGHTS_DENSE_ASM(SINGLE_ROUNDING, p)
    } else if (form == TINYFUSE_QUADS_HALF_EVEN) {
        TINYFUSE_INT16_WEIGHTS_DENSE_HALF_EVEN_ASM(p)
    } else {
        TINYFUSE_INT16_WEIGHTS_DENSE_ASM(BOUNDED, p)
    }
#else
    const int32_t *four = p->quads;
    int8_t *out = p->out;
    while (four != p->end) {
        const int32_t *const weights = four + 4;
        const int32_t *const scales = weights + 16 * p->steps;
        int32_t i, k;
        for (i = 0; i < 4; ++i) {
            int32_t sum = four[i];
            for (k = 0; k < 2 * p->steps; ++k) {
                sum = tinyfuse_products_w16(sum, p->columns + 8 * k, weights + 16 * (k / 2) + 4 * i + 2 * (k & 1), 4);
            }
            if (form == TINYFUSE_QUADS_HALF_EVEN) {
                *out++ = (int8_t)tinyfuse_requantize_half_even(sum, scales[i], p->rounding);
            } else if (form == TINYFUSE_QUADS_SINGLE_ROUNDING) {
                *out++ = (int8_t)tinyfuse_requantize_single_rounding(sum, p->multiplier, p->rounding);
            } else {
                sum = tinyfuse_high_multiply_add(sum + scales[3 * i + 2] + (sum >> 31), sum, scales[3 * i]);
                *out++ = (int8_t)tinyfuse_halve_to_int8(sum >> scales[3 * i + 1]);
            }
        }
        four = scales + tinyfuse_dense_int16_weights_scale_words(form);
    }
#endif
}

#define TINYFUSE_DENSE_INT16_WEIGHTS_1X4(name, form)                                               \
    TINYFUSE_IN_FORM(name, form, tinyfuse_dense_int16_weights_1x4_run, (const tinyfuse_dense_int16_weights_1x4 *p), p)
TINYFUSE_DENSE_INT16_WEIGHTS_1X4(tinyfuse_dense_int16_weights_1x4_bounded, TINYFUSE_QUADS_BOUNDED)
TINYFUSE_DENSE_INT16_WEIGHTS_1X4(tinyfuse_dense_int16_weights_1x4_single_rounding, TINYFUSE_QUADS_SINGLE_ROUNDING)
TINYFUSE_DENSE_INT16_WEIGHTS_1X4(tinyfuse_dense_int16_weights_1x4_half_even, TINYFUSE_QUADS_HALF_EVEN)

typedef void (*tinyfuse_dense_int16_weights_1x4_block)(const tinyfuse_dense_int16_weights_1x4 *p);

TINYFUSE_SHARED void tinyfuse_dense_int16_weights_layer(const tinyfuse_dense_int16_weights *p, const int8_t *in,
                                                        int8_t *out, const int32_t *quads, int8_t *columns,
                                                        tinyfuse_dense_int16_weights_1x4_block block,
                                                        int32_t scale_words)
{
    const int32_t words = p->in_c / 4, rest = p->in_c & 3, steps = (p->in_c + 7) / 8, out_rest = p->out_c & 3;
    const int32_t size = 16 * steps + 4 + scale_words;
    const int32_t *const last_quad = quads + p->out_c / 4 * size;
    int8_t *const first = out;
    tinyfuse_dense_int16_weights_1x4 job;
    int32_t b;
    job.columns = columns;
    job.columns_end = columns + 16 * steps;
    job.steps = steps;
    job.multiplier = p->multiplier;
    job.rounding = p->rounding;
    memset(columns + 16 * steps - 8, 0, 8);
    for (b = 0; b < p->batches; ++b) {
        int8_t *to = columns;
        if (words > 0) {
            to = tinyfuse_widen(in, words, to, 8, TINYFUSE_WIDE);
        }
        if (rest > 0) {
            int8_t tail[4] = {0, 0, 0, 0};
            memcpy(tail, in + 4 * words, (size_t)rest);
            (void)tinyfuse_widen(tail, 1, to, 8, TINYFUSE_WIDE);
        }
        if (p->out_c > 3) {
            job.quads = quads;
            job.end = last_quad;
            job.out = out;
            block(&job);
        }
        if (out_rest > 0) {
            int8_t last[4];
            job.quads = last_quad;
            job.end = last_quad + size;
            job.out = last;
            block(&job);
            memcpy(out + (p->out_c & ~3), last, (size_t)out_rest);
        }
        in += p->in_c;
        out += p->out_c;
    }
    tinyfuse_clamp_outputs(first, p->batches * p->out_c, p->act_min, p->act_max);
}

/* Computes a layer, in [batches][in_c] to out [batches][out_c], by the quads of all outputs, the last one padded.
   scratch, aligned to 8: in_c inputs of 2 bytes, rounded up to a multiple of 8. `form` is a constant. out
   may overlap batches of in that were read already, the one that is computed included. */
TINYFUSE_INLINE void tinyfuse_dense_int16_weights_s8(const tinyfuse_dense_int16_weights *p, const int8_t *in,
                                                     int8_t *out, const int32_t *quads, int form,
                                                     void *scratch)
{
    tinyfuse_dense_int16_weights_layer(p, in, out, quads, (int8_t *)scratch,
                                       form == TINYFUSE_QUADS_SINGLE_ROUNDING
                                           ? tinyfuse_dense_int16_weights_1x4_single_rounding
                                       : form == TINYFUSE_QUADS_HALF_EVEN ? tinyfuse_dense_int16_weights_1x4_half_even
                                                                          : tinyfuse_dense_int16_weights_1x4_bounded,
                                       tinyfuse_dense_int16_weights_scale_words(form));
}

#endif
