/* Fully connected layer, int8, four outputs at a time from packed weights without zero point, in the forms
   TINYFUSE_WIDE, TINYFUSE_LANES and TINYFUSE_BYTES of tinyfuse_matmul.h, and in those for left and right shifts. */
#ifndef TINYFUSE_DENSE_H
#define TINYFUSE_DENSE_H

#include "tinyfuse_matmul.h"

/* Multiplier and shift of the bounded form; in lanes, those for sums in 256ths (tinyfuse_requantize.h). */
typedef struct {
    int32_t multiplier, shift;
} tinyfuse_dense_scale;

/* `scale_step`: 1 if each output has a scale, 0 if all outputs share one. */
typedef struct {
    int32_t batches, in_c, out_c, scale_step, out_zero_point, act_min, act_max;
} tinyfuse_dense;

/* `quads` groups of four outputs of `depth` inputs, then `rest` outputs, fewer than four, one by one. Assembly knows
   the offsets. The calls advance `scales`, `out`, `biases`, `quads` and `rest`. */
typedef struct {
    int32_t rounding;
    int32_t scale_bytes; /* to the next output's scale */
    const tinyfuse_dense_scale *scales; /* 8 */
    int8_t *out;
    int32_t quads;
    const int32_t *biases; /* 20 */
    const void *inputs;    /* 24: converted for the form, or bytes */
    int32_t depth;         /* a multiple of 4 */
    const int8_t *weights; /* 32 */
    int32_t rest;
} tinyfuse_dense_1x4;

#if TINYFUSE_DSP

typedef char tinyfuse_check_dense_1x4[offsetof(tinyfuse_dense_1x4, weights) == 32 ? 1 : -1];

/* In the loop over inputs:
   r0       inputs; r1 weights, lr their end
   r2 to r5 sums
   r6, r7   four inputs as tinyfuse_widen makes them
   r8 to r11 weights of the four outputs; r12 low bytes, widened
   On the stack: the tinyfuse_dense_1x4, which is r0 between the loops. */
#define TINYFUSE_DENSE_COLUMNS(form) TINYFUSE_DENSE_COLUMNS_##form
#define TINYFUSE_DENSE_COLUMNS_WIDE "ldrd r6, r7, [r0], #8\n\t"
#define TINYFUSE_DENSE_COLUMNS_LANES "ldrd r7, r6, [r0], #8\n\t"
#define TINYFUSE_DENSE_COLUMNS_SHIFTED TINYFUSE_DENSE_COLUMNS_LANES
#define TINYFUSE_DENSE_COLUMNS_HALF_EVEN TINYFUSE_DENSE_COLUMNS_LANES
#define TINYFUSE_DENSE_COLUMNS_HALF_EVEN_WIDE TINYFUSE_DENSE_COLUMNS_WIDE
#define TINYFUSE_DENSE_BYTES(form) "ldr r7, [r0], #4\n\t" TINYFUSE_DENSE_WIDEN_##form
#define TINYFUSE_DENSE_WIDEN_WIDE   \
    "sxtb16 r6, r7\n\t"             \
    "sxtb16 r7, r7, ror #8\n\t"
#define TINYFUSE_DENSE_WIDEN_LANES      \
    "eor r6, r7, #0x00800080\n\t"       \
    "eor r7, r7, #0x007F007F\n\t"       \
    "uxtb16 r7, r7\n\t"
#define TINYFUSE_DENSE_WIDEN_SHIFTED TINYFUSE_DENSE_WIDEN_LANES
#define TINYFUSE_DENSE_WIDEN_HALF_EVEN TINYFUSE_DENSE_WIDEN_LANES
#define TINYFUSE_DENSE_WIDEN_HALF_EVEN_WIDE TINYFUSE_DENSE_WIDEN_WIDE
#define TINYFUSE_DENSE_ODD_WIDE(weights) "sxtb16 " weights ", " weights ", ror #8\n\t"
#define TINYFUSE_DENSE_ODD_LANES(weights) ""
#define TINYFUSE_DENSE_ODD_SHIFTED(weights) ""
#define TINYFUSE_DENSE_ODD_HALF_EVEN(weights) ""
#define TINYFUSE_DENSE_ODD_HALF_EVEN_WIDE(weights) TINYFUSE_DENSE_ODD_WIDE(weights)
#define TINYFUSE_DENSE_OUTPUT(form, sum, weights)              \
    "sxtb16 r12, " weights "\n\t"                              \
    TINYFUSE_DENSE_ODD_##form(weights)                         \
    "smlad " sum ", r6, r12, " sum "\n\t"                      \
    "smlad " sum ", r7, " weights ", " sum "\n\t"
#define TINYFUSE_DENSE_STEP(form, inputs)                     \
    inputs(form) "ldm r1!, {r8, r9, r10, r11}\n\t"            \
    TINYFUSE_DENSE_OUTPUT(form, "r2", "r8")                   \
    TINYFUSE_DENSE_OUTPUT(form, "r3", "r9")                   \
    TINYFUSE_DENSE_OUTPUT(form, "r4", "r10")                  \
    TINYFUSE_DENSE_OUTPUT(form, "r5", "r11")
/* Requantizes as tinyfuse_requantize_bounded, in lanes as tinyfuse_requantize_256ths or tinyfuse_requantize_shifted.
   r6 rounding, r7 bytes to the next scale, r8 scale, r9 output; r11 multiplier, r12 shift, lr rounding << shift */
#define TINYFUSE_DENSE_SCALE_WIDE(sum)          \
    "lsl lr, r6, r12\n\t"                       \
    "add lr, " sum "\n\t"                       \
    "add lr, lr, " sum ", asr #31\n\t"          \
    "smmlar " sum ", " sum ", r11, lr\n\t"
#define TINYFUSE_DENSE_SCALE_LANES(sum)         \
    "lsl lr, r6, r12\n\t"                       \
    "asr " sum ", #7\n\t"                       \
    "sub lr, lr, " sum ", lsr #31\n\t"          \
    "smmlar " sum ", " sum ", r11, lr\n\t"
#define TINYFUSE_DENSE_SCALE_SHIFTED(sum)       \
    "asr " sum ", #7\n\t"                       \
    "lsr lr, r12, #8\n\t"                       \
    "lsl " sum ", lr\n\t"                       \
    "smmulr " sum ", " sum ", r11\n\t"          \
    "lsl lr, r6, r12\n\t"                       \
    "add lr, lr, " sum ", asr #31\n\t"          \
    "add " sum ", lr, " sum ", lsl #1\n\t"
#define TINYFUSE_DENSE_FIXED(form, sum)                             \
    "ldrd r11, r12, [r8]\n\t"                                       \
    "add r8, r7\n\t" TINYFUSE_DENSE_SCALE_##form(sum)               \
    "asr " sum ", r12\n\t"                                          \
    "ssat " sum ", #8, " sum ", asr #1\n\t"                         \
    "strb " sum ", [r9], #1\n\t"
#define TINYFUSE_DENSE_STORE(form, sum) TINYFUSE_DENSE_STORE_##form(sum)
#define TINYFUSE_DENSE_STORE_WIDE(sum) TINYFUSE_DENSE_FIXED(WIDE, sum)
#define TINYFUSE_DENSE_STORE_LANES(sum) TINYFUSE_DENSE_FIXED(LANES, sum)
#define TINYFUSE_DENSE_STORE_SHIFTED(sum) TINYFUSE_DENSE_FIXED(SHIFTED, sum)
/* tinyfuse_requantize_half_even, of products below 2^30: r6 the output zero point */
#define TINYFUSE_DENSE_STORE_HALF_EVEN(sum)                         \
    "vmov s0, " sum "\n\t"                                          \
    "vldr.32 s1, [r8]\n\t"                                          \
    "vcvt.f32.s32 s0, s0\n\t"                                       \
    "add r8, r7\n\t"                                                \
    "vmul.f32 s0, s0, s1\n\t"                                       \
    "vcvtr.s32.f32 s0, s0\n\t"                                      \
    "vmov " sum ", s0\n\t"                                          \
    "add " sum ", r6\n\t"                                           \
    "ssat " sum ", #8, " sum "\n\t"                                 \
    "strb " sum ", [r9], #1\n\t"
#define TINYFUSE_DENSE_BEGIN_WIDE ""
#define TINYFUSE_DENSE_BEGIN_LANES ""
#define TINYFUSE_DENSE_BEGIN_SHIFTED ""
#define TINYFUSE_DENSE_BEGIN_HALF_EVEN "asr r6, r6, #1\n\t"
#define TINYFUSE_DENSE_BEGIN_HALF_EVEN_WIDE TINYFUSE_DENSE_BEGIN_HALF_EVEN
#define TINYFUSE_DENSE_STORE_HALF_EVEN_WIDE(sum) TINYFUSE_DENSE_STORE_HALF_EVEN(sum)
#if TINYFUSE_FPU
#define TINYFUSE_DENSE_HALF_EVEN_ASM(form, inputs) TINYFUSE_DENSE_ASM(form, inputs)
#else
#define TINYFUSE_DENSE_HALF_EVEN_ASM(form, inputs) /* never reached */
#endif
/* Each iteration does four steps. The loop is entered in its middle, so that only whole iterations remain. */
#define TINYFUSE_DENSE_ASM(form, inputs)                                                     \
    {                                                                                        \
        TINYFUSE_ARGUMENT(tinyfuse_dense_1x4 *, arguments, p);                               \
        __asm volatile(TINYFUSE_ASM_BEGIN                                                    \
                       "ldr r1, [r0, #32]\n\t"                                               \
                       "6:\n\t"                                                              \
                       "ldr r6, [r0, #20]\n\t"                                               \
                       "ldm r6!, {r2, r3, r4, r5}\n\t"                                       \
                       "str r6, [r0, #20]\n\t"                                               \
                       "ldrd r0, r12, [r0, #24]\n\t"                                         \
                       "add lr, r1, r12, lsl #2\n\t"                                         \
                       "lsls r12, r12, #29\n\t" /* C: two steps; N: one */                   \
                       "bcs 5f\n\t"                                                          \
                       "bmi 4f\n\t"                                                          \
                       "1:\n\t" TINYFUSE_DENSE_STEP(form, TINYFUSE_DENSE_##inputs)           \
                       "2:\n\t" TINYFUSE_DENSE_STEP(form, TINYFUSE_DENSE_##inputs)           \
                       "3:\n\t" TINYFUSE_DENSE_STEP(form, TINYFUSE_DENSE_##inputs)           \
                       "4:\n\t" TINYFUSE_DENSE_STEP(form, TINYFUSE_DENSE_##inputs)           \
                       "cmp r1, lr\n\t"                                                      \
                       "bne 1b\n\t"                                                          \
                       "ldr r0, [sp]\n\t"                                                    \
                       "ldm r0, {r6, r7, r8, r9, r10}\n\t" TINYFUSE_DENSE_BEGIN_##form        \
                       TINYFUSE_DENSE_STORE(form, "r2") TINYFUSE_DENSE_STORE(form, "r3")     \
                       TINYFUSE_DENSE_STORE(form, "r4") TINYFUSE_DENSE_STORE(form, "r5")     \
                       "subs r10, #1\n\t"                                                    \
                       "strd r8, r9, [r0, #8]\n\t"                                           \
                       "str r10, [r0, #16]\n\t"                                              \
                       "bne 6b\n\t"                                                          \
                       "b 7f\n\t"                                                            \
                       "5:\n\t"                                                              \
                       "bmi 2b\n\t"                                                          \
                       "b 3b\n\t"                                                            \
                       "7:\n\t" TINYFUSE_ASM_END                                             \
                       :                                                                     \
                       : "r"(arguments)                                                      \
                       : TINYFUSE_CLOBBERS_FPU TINYFUSE_ASM_CLOBBERS);                       \
    }

/* Computes the groups of four outputs. `columns` and `form` (TINYFUSE_WIDE, TINYFUSE_LANES or TINYFUSE_SHIFTED) are
   constants. */
TINYFUSE_INLINE void tinyfuse_dense_1x4_dsp(tinyfuse_dense_1x4 *p, int columns, int form)
{
    if (columns && form == TINYFUSE_LANES) {
        TINYFUSE_DENSE_ASM(LANES, COLUMNS)
    } else if (columns && form == TINYFUSE_SHIFTED) {
        TINYFUSE_DENSE_ASM(SHIFTED, COLUMNS)
    } else if (columns && form == TINYFUSE_HALF_EVEN) {
        TINYFUSE_DENSE_HALF_EVEN_ASM(HALF_EVEN, COLUMNS)
    } else if (columns && form == TINYFUSE_HALF_EVEN_WIDE) {
        TINYFUSE_DENSE_HALF_EVEN_ASM(HALF_EVEN_WIDE, COLUMNS)
    } else if (columns != 0) {
        TINYFUSE_DENSE_ASM(WIDE, COLUMNS)
    } else if (form == TINYFUSE_LANES) {
        TINYFUSE_DENSE_ASM(LANES, BYTES)
    } else if (form == TINYFUSE_SHIFTED) {
        TINYFUSE_DENSE_ASM(SHIFTED, BYTES)
    } else if (form == TINYFUSE_HALF_EVEN) {
        TINYFUSE_DENSE_HALF_EVEN_ASM(HALF_EVEN, BYTES)
    } else if (form == TINYFUSE_HALF_EVEN_WIDE) {
        TINYFUSE_DENSE_HALF_EVEN_ASM(HALF_EVEN_WIDE, BYTES)
    } else {
        TINYFUSE_DENSE_ASM(WIDE, BYTES)
    }
}

#endif

/* A stored output. */
TINYFUSE_INLINE int8_t tinyfuse_dense_output(int32_t sum, const tinyfuse_dense_scale *scale, int32_t rounding, int form)
{
    if (form == TINYFUSE_HALF_EVEN) {
        return (int8_t)tinyfuse_requantize_half_even_256ths(sum, scale->multiplier, rounding >> 1);
    }
    return tinyfuse_is_half_even(form)
               ? (int8_t)tinyfuse_requantize_half_even(sum, scale->multiplier, rounding >> 1)
               : tinyfuse_scaled_output(sum, scale->multiplier, scale->shift, rounding, form);
}

/* Computes the groups of four outputs in C. Values that the inner loop doesn't need stay in memory: copies would take
   stack. */
TINYFUSE_INLINE void tinyfuse_dense_1x4_c(tinyfuse_dense_1x4 *p, int columns, int form)
{
    const int32_t rounding = p->rounding;
    const tinyfuse_dense_scale *scales = p->scales;
    const int32_t *biases = p->biases;
    const int8_t *weights = p->weights;
    int8_t *out = p->out;
    int32_t quads;
    for (quads = p->quads; quads > 0; --quads) {
        const int8_t *x = (const int8_t *)p->inputs;
        const int8_t *const end = weights + 4 * p->depth;
        int32_t s0 = biases[0], s1 = biases[1], s2 = biases[2], s3 = biases[3];
        for (; weights != end; weights += 16) {
#define TINYFUSE_DENSE_BYTE(j)             \
    {                                      \
        const int32_t v = x[j];            \
        s0 += v * weights[j];              \
        s1 += v * weights[4 + (j)];        \
        s2 += v * weights[8 + (j)];        \
        s3 += v * weights[12 + (j)];       \
    }
            if (tinyfuse_of_bytes(form) != 0) {
                TINYFUSE_DENSE_BYTE(0)
                TINYFUSE_DENSE_BYTE(1)
                TINYFUSE_DENSE_BYTE(2)
                TINYFUSE_DENSE_BYTE(3)
            } else {
                int8_t widened[8];
                if (columns != 0) {
                    memcpy(widened, x, sizeof widened);
                } else {
                    (void)tinyfuse_widen(x, 1, widened, 8, form);
                }
                s0 = tinyfuse_products(s0, widened, 8, weights, form);
                s1 = tinyfuse_products(s1, widened, 8, weights + 4, form);
                s2 = tinyfuse_products(s2, widened, 8, weights + 8, form);
                s3 = tinyfuse_products(s3, widened, 8, weights + 12, form);
            }
            x += columns ? tinyfuse_step_bytes(form) : 4;
        }
#define TINYFUSE_DENSE_STORE_C(sum)                                                                    \
    {                                                                                                  \
        *out++ = tinyfuse_dense_output(sum, scales, rounding, form);                                   \
        scales = (const tinyfuse_dense_scale *)((uintptr_t)scales + (uintptr_t)p->scale_bytes);        \
    }
        TINYFUSE_DENSE_STORE_C(s0)
        TINYFUSE_DENSE_STORE_C(s1)
        TINYFUSE_DENSE_STORE_C(s2)
        TINYFUSE_DENSE_STORE_C(s3)
        biases += 4;
    }
    p->scales = scales;
    p->biases = biases;
    p->out = out;
}

#if TINYFUSE_DSP

/* A sum of one output: four inputs in `even` and `odd`, as tinyfuse_widen makes them, times the weights of a word. */
#define TINYFUSE_DENSE_ONE_COLUMNS_WIDE "ldrd %[even], %[odd], [%[x]], #8\n\t"
#define TINYFUSE_DENSE_ONE_COLUMNS_LANES "ldrd %[odd], %[even], [%[x]], #8\n\t"
#define TINYFUSE_DENSE_ONE_BYTES_WIDE             \
    "ldr %[odd], [%[x]], #4\n\t"                  \
    "sxtb16 %[even], %[odd]\n\t"                  \
    "sxtb16 %[odd], %[odd], ror #8\n\t"
#define TINYFUSE_DENSE_ONE_BYTES_LANES            \
    "ldr %[odd], [%[x]], #4\n\t"                  \
    "eor %[even], %[odd], #0x00800080\n\t"        \
    "eor %[odd], %[odd], #0x007F007F\n\t"         \
    "uxtb16 %[odd], %[odd]\n\t"
#define TINYFUSE_DENSE_ONE(form, inputs)                                                              \
    __asm volatile("1:\n\t" TINYFUSE_DENSE_ONE_##inputs##_##form                                      \
                   "ldr %[word], [%[weights]], #4\n\t"                                                \
                   "sxtb16 %[low], %[word]\n\t" TINYFUSE_DENSE_ODD_##form("%[word]")                  \
                   "smlad %[sum], %[even], %[low], %[sum]\n\t"                                        \
                   "smlad %[sum], %[odd], %[word], %[sum]\n\t"                                        \
                   "cmp %[weights], %[end]\n\t"                                                       \
                   "bne 1b"                                                                           \
                   : [x] "+&r"(x), [weights] "+&r"(weights), [sum] "+&r"(sum), [even] "=&r"(even),    \
                     [odd] "=&r"(odd), [word] "=&r"(word), [low] "=&r"(low)                           \
                   : [end] "r"(weights + depth)                                                       \
                   : "cc", "memory")

/* Returns `sum` plus the products of one output. */
TINYFUSE_INLINE int32_t tinyfuse_dense_sum_dsp(int32_t sum, const int8_t *x, const int8_t *weights, int32_t depth,
                                               int columns, int form)
{
    const int lanes = form == TINYFUSE_LANES || form == TINYFUSE_SHIFTED || form == TINYFUSE_HALF_EVEN;
    uint32_t even, odd, word, low;
    if (columns && lanes) {
        TINYFUSE_DENSE_ONE(LANES, COLUMNS);
    } else if (columns != 0) {
        TINYFUSE_DENSE_ONE(WIDE, COLUMNS);
    } else if (lanes != 0) {
        TINYFUSE_DENSE_ONE(LANES, BYTES);
    } else {
        TINYFUSE_DENSE_ONE(WIDE, BYTES);
    }
    return sum;
}

#endif

/* C twin of the assembly above, with the same results. */
TINYFUSE_INLINE int32_t tinyfuse_dense_sum_c(int32_t sum, const int8_t *x, const int8_t *weights, int32_t depth,
                                             int columns, int form)
{
    const int8_t *const end = weights + depth;
    for (; weights != end; weights += 4) {
        int8_t widened[8];
        if (columns || tinyfuse_of_bytes(form)) {
            sum = tinyfuse_products(sum, x, 8, weights, form);
        } else {
            (void)tinyfuse_widen(x, 1, widened, 8, form);
            sum = tinyfuse_products(sum, widened, 8, weights, form);
        }
        x += columns ? tinyfuse_step_bytes(form) : 4;
    }
    return sum;
}

#if TINYFUSE_DSP
#define TINYFUSE_DENSE_FORM(function, ...)                                                   \
    (tinyfuse_of_bytes(form) || (tinyfuse_is_half_even(form) && !TINYFUSE_FPU) ? function##_c(__VA_ARGS__) : function##_dsp(__VA_ARGS__))
#else
#define TINYFUSE_DENSE_FORM(function, ...) function##_c(__VA_ARGS__)
#endif

/* Computes all outputs of a batch. `columns` and `form` are constants. */
TINYFUSE_INLINE void tinyfuse_dense_run(tinyfuse_dense_1x4 *p, int columns, int form)
{
    const int8_t *weights = p->weights + 4 * p->quads * p->depth;
    if (p->quads > 0) {
        TINYFUSE_DENSE_FORM(tinyfuse_dense_1x4, p, columns, form);
    }
    for (; p->rest > 0; --p->rest) {
        const int32_t sum = TINYFUSE_DENSE_FORM(tinyfuse_dense_sum, *p->biases++, (const int8_t *)p->inputs, weights,
                                                p->depth, columns, form);
        *p->out++ = tinyfuse_dense_output(sum, p->scales, p->rounding, form);
        p->scales = (const tinyfuse_dense_scale *)((uintptr_t)p->scales + (uintptr_t)p->scale_bytes);
        weights += p->depth;
    }
}

#define TINYFUSE_DENSE(name, columns, form)                       \
    TINYFUSE_SHARED void name(tinyfuse_dense_1x4 *p)              \
    {                                                             \
        tinyfuse_dense_run(p, columns, form);                     \
    }
TINYFUSE_DENSE(tinyfuse_dense_columns_wide, 1, TINYFUSE_WIDE)
TINYFUSE_DENSE(tinyfuse_dense_columns_lanes, 1, TINYFUSE_LANES)
TINYFUSE_DENSE(tinyfuse_dense_bytes_wide, 0, TINYFUSE_WIDE)
TINYFUSE_DENSE(tinyfuse_dense_bytes_lanes, 0, TINYFUSE_LANES)
TINYFUSE_DENSE(tinyfuse_dense_bytes_bytes, 0, TINYFUSE_BYTES)
TINYFUSE_DENSE(tinyfuse_dense_columns_shifted, 1, TINYFUSE_SHIFTED)
TINYFUSE_DENSE(tinyfuse_dense_bytes_shifted, 0, TINYFUSE_SHIFTED)
TINYFUSE_DENSE(tinyfuse_dense_bytes_bytes_shifted, 0, TINYFUSE_BYTES_SHIFTED)
TINYFUSE_DENSE(tinyfuse_dense_columns_half_even, 1, TINYFUSE_HALF_EVEN)
TINYFUSE_DENSE(tinyfuse_dense_columns_half_even_wide, 1, TINYFUSE_HALF_EVEN_WIDE)
TINYFUSE_DENSE(tinyfuse_dense_bytes_half_even, 0, TINYFUSE_HALF_EVEN)
TINYFUSE_DENSE(tinyfuse_dense_bytes_half_even_wide, 0, TINYFUSE_HALF_EVEN_WIDE)
TINYFUSE_DENSE(tinyfuse_dense_bytes_bytes_half_even, 0, TINYFUSE_BYTES_HALF_EVEN)

/* Selects the function of a form, which is a constant, for inputs in columns and for bytes. */
#define TINYFUSE_DENSE_OF_COLUMNS(form)                                      \
    ((form) == TINYFUSE_BYTES           ? tinyfuse_dense_bytes_bytes         \
     : (form) == TINYFUSE_BYTES_SHIFTED ? tinyfuse_dense_bytes_bytes_shifted \
     : (form) == TINYFUSE_LANES         ? tinyfuse_dense_columns_lanes       \
     : (form) == TINYFUSE_SHIFTED       ? tinyfuse_dense_columns_shifted     \
     : (form) == TINYFUSE_HALF_EVEN       ? tinyfuse_dense_columns_half_even       \
     : (form) == TINYFUSE_HALF_EVEN_WIDE  ? tinyfuse_dense_columns_half_even_wide  \
     : (form) == TINYFUSE_BYTES_HALF_EVEN ? tinyfuse_dense_bytes_bytes_half_even   \
                                        : tinyfuse_dense_columns_wide)
#define TINYFUSE_DENSE_OF_BYTES(form)                                        \
    ((form) == TINYFUSE_BYTES           ? tinyfuse_dense_bytes_bytes         \
     : (form) == TINYFUSE_BYTES_SHIFTED ? tinyfuse_dense_bytes_bytes_shifted \
     : (form) == TINYFUSE_LANES         ? tinyfuse_dense_bytes_lanes         \
     : (form) == TINYFUSE_SHIFTED       ? tinyfuse_dense_bytes_shifted       \
     : (form) == TINYFUSE_HALF_EVEN       ? tinyfuse_dense_bytes_half_even         \
     : (form) == TINYFUSE_HALF_EVEN_WIDE  ? tinyfuse_dense_bytes_half_even_wide    \
     : (form) == TINYFUSE_BYTES_HALF_EVEN ? tinyfuse_dense_bytes_bytes_half_even   \
                                        : tinyfuse_dense_bytes_wide)

typedef void (*tinyfuse_dense_block)(tinyfuse_dense_1x4 *p);

/* Computes all batches by `block`. Inputs are first converted for the form into `columns` unless that is NULL. */
TINYFUSE_SHARED void tinyfuse_dense_batches(const tinyfuse_dense *p, const int8_t *in, int8_t *out,
                                            const int8_t *weights, const int32_t *biases,
                                            const tinyfuse_dense_scale *scales, int8_t *columns, int form,
                                            tinyfuse_dense_block block)
{
    const int32_t words = p->in_c / 4, in_rest = p->in_c & 3, depth = (p->in_c + 3) & ~3;
    int8_t *const first = out;
    tinyfuse_dense_1x4 job;
    int32_t b;
    job.rounding = 2 * p->out_zero_point + 1;
    job.scale_bytes = p->scale_step * (int32_t)sizeof(tinyfuse_dense_scale);
    job.depth = depth;
    for (b = 0; b < p->batches; ++b) {
        const void *inputs = in;
        if (columns != NULL) {
            const int32_t step = tinyfuse_step_bytes(form);
            int8_t *to = columns;
            if (words > 0) {
                to = tinyfuse_widen(in, words, to, step, form);
            }
            if (in_rest > 0) {
                int8_t tail[4] = {0, 0, 0, 0};
                memcpy(tail, in + 4 * words, (size_t)in_rest);
                (void)tinyfuse_widen(tail, 1, to, step, form);
            }
            inputs = columns;
        }
        job.inputs = inputs;
        job.scales = scales;
        job.out = out;
        job.quads = p->out_c / 4;
        job.biases = biases;
        job.weights = weights;
        job.rest = p->out_c & 3;
        block(&job);
        in += p->in_c;
        out += p->out_c;
    }
    tinyfuse_clamp_outputs(first, p->batches * p->out_c, p->act_min, p->act_max);
}

/* Computes a layer, in [batches][in_c] to out [batches][out_c]. Weights are [out_c / 4][depth / 4][4][4], then [out_c
   % 4][depth], zeros beyond the layer's inputs, in the form (tinyfuse_matmul.h), a constant, with depth = in_c
   rounded up to a multiple of 4. There are out_c biases, and one scale or as many. scratch, aligned to 8: a column of
   `depth` inputs. out may overlap batches of in that were read already, the one that is computed included. */
TINYFUSE_INLINE void tinyfuse_dense_wide_s8(const tinyfuse_dense *p, const int8_t *in, int8_t *out,
                                            const int8_t *weights, const int32_t *biases,
                                            const tinyfuse_dense_scale *scales, int form, void *scratch)
{
    tinyfuse_dense_batches(p, in, out, weights, biases, scales, (int8_t *)scratch, form,
                           TINYFUSE_DENSE_OF_COLUMNS(form));
}

/* Computes a layer as tinyfuse_dense_wide_s8 does, without scratch. in_c is a multiple of 4, and out must not overlap
   the batch that is computed. */
TINYFUSE_INLINE void tinyfuse_dense_s8(const tinyfuse_dense *p, const int8_t *in, int8_t *out,
                                       const int8_t *weights, const int32_t *biases,
                                       const tinyfuse_dense_scale *scales, int form)
{
    tinyfuse_dense_batches(p, in, out, weights, biases, scales, NULL, form,
                           TINYFUSE_DENSE_OF_BYTES(form));
}

#endif
