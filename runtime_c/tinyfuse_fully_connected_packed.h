/* Fully connected layer, int8: four outputs at a time from packed weights without zero point, in the
   forms TINYFUSE_WIDE, TINYFUSE_LANES and TINYFUSE_BYTES of tinyfuse_matmul.h. */
#ifndef TINYFUSE_FULLY_CONNECTED_PACKED_H
#define TINYFUSE_FULLY_CONNECTED_PACKED_H

#include "tinyfuse_matmul.h"

/* The bounded form's multiplier and shift (tinyfuse_requantize.h). */
typedef struct {
    int32_t multiplier, shift;
} tinyfuse_dense_scale;

/* `scale_step`: 1 where each output has a scale, 0 where one serves all. */
typedef struct {
    int32_t batches, in_c, out_c, scale_step, out_zero_point, act_min, act_max;
} tinyfuse_dense;

#if TINYFUSE_DSP

/* four inputs: i and j as tinyfuse_widen makes them */
#define TINYFUSE_DENSE_COLUMNS(form) "ldrd %[i], %[j], [%[x]], #8\n\t"
#define TINYFUSE_DENSE_BYTES(form) "ldr %[j], [%[x]], #4\n\t" TINYFUSE_DENSE_WIDEN_##form
#define TINYFUSE_DENSE_WIDEN_WIDE   \
    "sxtb16 %[i], %[j]\n\t"         \
    "sxtb16 %[j], %[j], ror #8\n\t"
#define TINYFUSE_DENSE_WIDEN_LANES          \
    "eor %[i], %[j], #0x00800080\n\t"       \
    "eor %[j], %[j], #0x007F007F\n\t"       \
    "uxtb16 %[j], %[j]\n\t"
#define TINYFUSE_DENSE_ODD_WIDE(weights) "sxtb16 " weights ", " weights ", ror #8\n\t"
#define TINYFUSE_DENSE_ODD_LANES(weights) ""
#define TINYFUSE_DENSE_OUTPUT(form, sum, weights)              \
    "sxtb16 %[e], " weights "\n\t"                             \
    TINYFUSE_DENSE_ODD_##form(weights)                         \
    "smlad %[" sum "], %[i], %[e], %[" sum "]\n\t"             \
    "smlad %[" sum "], %[j], " weights ", %[" sum "]\n\t"
#define TINYFUSE_DENSE_STEP(form, inputs)                     \
    inputs(form) "ldm %[w]!, {r8, r9, r10, r11}\n\t"          \
    TINYFUSE_DENSE_OUTPUT(form, "s0", "r8")                   \
    TINYFUSE_DENSE_OUTPUT(form, "s1", "r9")                   \
    TINYFUSE_DENSE_OUTPUT(form, "s2", "r10")                  \
    TINYFUSE_DENSE_OUTPUT(form, "s3", "r11")
/* tinyfuse_requantize_bounded: x scale, j bytes to the next one, e rounding, i output */
#define TINYFUSE_DENSE_SCALE_WIDE(sum) ""
#define TINYFUSE_DENSE_SCALE_LANES(sum) "asr %[" sum "], #8\n\t"
#define TINYFUSE_DENSE_STORE(form, sum)                             \
    "ldrd r9, r10, [%[x]]\n\t" TINYFUSE_DENSE_SCALE_##form(sum)     \
    "add %[x], %[j]\n\t"                                            \
    "lsl r8, %[e], r10\n\t"                                         \
    "add r8, %[" sum "]\n\t"                                        \
    "add r8, r8, %[" sum "], asr #31\n\t"                           \
    "smmlar %[" sum "], %[" sum "], r9, r8\n\t"                     \
    "asr %[" sum "], r10\n\t"                                       \
    "ssat %[" sum "], #8, %[" sum "], asr #1\n\t"                   \
    "strb %[" sum "], [%[i]], #1\n\t"
/* Four steps, with a label before each. */
#define TINYFUSE_DENSE_STEPS4(form, inputs, a, b, c, d)                                        \
    a ":\n\t" TINYFUSE_DENSE_STEP(form, inputs)                                                \
    b ":\n\t" TINYFUSE_DENSE_STEP(form, inputs)                                                \
    c ":\n\t" TINYFUSE_DENSE_STEP(form, inputs)                                                \
    d ":\n\t" TINYFUSE_DENSE_STEP(form, inputs)
/* The steps of one turn, entered where the number of all steps (e: 16 times that) says: the first turn
   makes what the others leave. Widened inputs take four steps a turn. */
#define TINYFUSE_DENSE_STEPS_COLUMNS(form)                                                     \
    "lsls %[e], %[e], #27\n\t" /* two steps, one */                                            \
    "bcc 5f\n\t"                                                                               \
    "bmi 2f\n\t"                                                                               \
    "b 3f\n\t"                                                                                 \
    "5:\n\t"                                                                                   \
    "bmi 4f\n\t" TINYFUSE_DENSE_STEPS4(form, TINYFUSE_DENSE_COLUMNS, "1", "2", "3", "4")
/* Bytes take eight. */
#define TINYFUSE_DENSE_STEPS_BYTES(form)                                                       \
    "lsls %[e], %[e], #26\n\t" /* four steps */                                                \
    "bcs 5f\n\t"                                                                               \
    "lsls %[e], %[e], #1\n\t" /* two, one */                                                   \
    "bcs 9f\n\t"                                                                               \
    "bmi 18f\n\t"                                                                              \
    "b 1f\n\t"                                                                                 \
    "9:\n\t"                                                                                   \
    "bmi 16f\n\t"                                                                              \
    "b 17f\n\t"                                                                                \
    "5:\n\t"                                                                                   \
    "lsls %[e], %[e], #1\n\t"                                                                  \
    "bcs 9f\n\t"                                                                               \
    "bmi 14f\n\t"                                                                              \
    "b 15f\n\t"                                                                                \
    "9:\n\t"                                                                                   \
    "bmi 12f\n\t"                                                                              \
    "b 13f\n\t" TINYFUSE_DENSE_STEPS4(form, TINYFUSE_DENSE_BYTES, "1", "12", "13", "14")       \
        TINYFUSE_DENSE_STEPS4(form, TINYFUSE_DENSE_BYTES, "15", "16", "17", "18")
#define TINYFUSE_DENSE_LOOP(form, inputs)                                                      \
    __asm volatile("6:\n\t"                                                                    \
                   "ldr %[i], %[biases]\n\t"                                                   \
                   "ldr %[e], %[bytes]\n\t"                                                    \
                   "ldr %[x], %[columns]\n\t"                                                  \
                   "ldrd %[s0], %[s1], [%[i]], #8\n\t"                                         \
                   "ldrd %[s2], %[s3], [%[i]], #8\n\t"                                         \
                   "str %[i], %[biases]\n\t"                                                   \
                   "add %[j], %[w], %[e]\n\t"                                                  \
                   "str %[j], %[end]\n\t" TINYFUSE_DENSE_STEPS_##inputs(form)                  \
                   "ldr %[i], %[end]\n\t"                                                      \
                   "cmp %[w], %[i]\n\t"                                                        \
                   "bne 1b\n\t"                                                                \
                   "ldr %[x], %[scales]\n\t"                                                   \
                   "ldr %[j], %[step]\n\t"                                                     \
                   "ldr %[e], %[rounding]\n\t"                                                 \
                   "ldr %[i], %[out]\n\t" TINYFUSE_DENSE_STORE(form, "s0")                     \
                       TINYFUSE_DENSE_STORE(form, "s1") TINYFUSE_DENSE_STORE(form, "s2")       \
                           TINYFUSE_DENSE_STORE(form, "s3")                                    \
                   "str %[x], %[scales]\n\t"                                                   \
                   "ldr %[j], %[fours]\n\t"                                                    \
                   "str %[i], %[out]\n\t"                                                      \
                   "subs %[j], #1\n\t"                                                         \
                   "str %[j], %[fours]\n\t"                                                    \
                   "bne 6b"                                                                    \
                   : [w] "+r"(weights), [biases] "+m"(biases), [scales] "+m"(scales),          \
                     [out] "+m"(out), [fours] "+m"(fours), [end] "=m"(end), [s0] "=&r"(s0),    \
                     [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [x] "=&r"(x),             \
                     [e] "=&r"(e), [i] "=&r"(i), [j] "=&r"(j)                                  \
                   : [columns] "m"(inputs_at), [bytes] "m"(bytes), [rounding] "m"(rounding),   \
                     [step] "m"(step)                                                          \
                   : "r8", "r9", "r10", "r11", "cc", "memory")

/* fours > 0 times four outputs from `depth` inputs: widened for the form (`columns`), or bytes.
   `columns` and `form` (TINYFUSE_WIDE, TINYFUSE_LANES or TINYFUSE_BYTES) are constants. */
TINYFUSE_INLINE void tinyfuse_dense_fours_dsp(const void *inputs_at, int32_t depth,
                                          const int8_t *weights, const int32_t *biases,
                                          const tinyfuse_dense_scale *scales, int32_t scale_step,
                                          int32_t rounding, int32_t fours, int8_t *out,
                                          int columns, int form)
{
    const int32_t bytes = 4 * depth, step = 8 * scale_step;
    const int8_t *end;
    int32_t s0, s1, s2, s3;
    uint32_t x, e, i, j;
    if (columns && form == TINYFUSE_LANES) {
        TINYFUSE_DENSE_LOOP(LANES, COLUMNS);
    } else if (columns) {
        TINYFUSE_DENSE_LOOP(WIDE, COLUMNS);
    } else if (form == TINYFUSE_LANES) {
        TINYFUSE_DENSE_LOOP(LANES, BYTES);
    } else {
        TINYFUSE_DENSE_LOOP(WIDE, BYTES);
    }
}

#endif

/* The same in C. */
TINYFUSE_INLINE void tinyfuse_dense_fours_c(const void *inputs_at, int32_t depth,
                                          const int8_t *weights, const int32_t *biases,
                                          const tinyfuse_dense_scale *scales, int32_t scale_step,
                                          int32_t rounding, int32_t fours, int8_t *out,
                                          int columns, int form)
{
    for (; fours > 0; --fours) {
        const int8_t *x = (const int8_t *)inputs_at;
        const int8_t *const end = weights + 4 * depth;
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
            if (tinyfuse_of_bytes(form)) {
                TINYFUSE_DENSE_BYTE(0)
                TINYFUSE_DENSE_BYTE(1)
                TINYFUSE_DENSE_BYTE(2)
                TINYFUSE_DENSE_BYTE(3)
            } else {
                int8_t widened[8];
                if (columns) {
                    memcpy(widened, x, sizeof widened);
                } else {
                    (void)tinyfuse_widen(x, 1, widened, 8, form);
                }
                s0 = tinyfuse_products(s0, widened, weights, 16, form);
                s1 = tinyfuse_products(s1, widened, weights + 4, 16, form);
                s2 = tinyfuse_products(s2, widened, weights + 8, 16, form);
                s3 = tinyfuse_products(s3, widened, weights + 12, 16, form);
            }
            x += columns ? tinyfuse_step_bytes(form) : 4;
        }
#define TINYFUSE_DENSE_STORE_C(sum)                                                                \
    {                                                                                              \
        *out++ = (int8_t)tinyfuse_requantize_bounded(form == TINYFUSE_LANES ? (sum) >> 8 : (sum),  \
                                                     scales->multiplier, scales->shift, rounding); \
        scales += scale_step;                                                                      \
    }
        TINYFUSE_DENSE_STORE_C(s0)
        TINYFUSE_DENSE_STORE_C(s1)
        TINYFUSE_DENSE_STORE_C(s2)
        TINYFUSE_DENSE_STORE_C(s3)
        biases += 4;
    }
}

TINYFUSE_INLINE void tinyfuse_dense_fours(const void *inputs_at, int32_t depth,
                                          const int8_t *weights, const int32_t *biases,
                                          const tinyfuse_dense_scale *scales, int32_t scale_step,
                                          int32_t rounding, int32_t fours, int8_t *out,
                                          int columns, int form)
{
#if TINYFUSE_DSP
    if (!tinyfuse_of_bytes(form)) {
        tinyfuse_dense_fours_dsp(inputs_at, depth, weights, biases, scales, scale_step, rounding,
                                 fours, out, columns, form);
        return;
    }
#endif
    tinyfuse_dense_fours_c(inputs_at, depth, weights, biases, scales, scale_step, rounding, fours,
                           out, columns, form);
}

#define TINYFUSE_DENSE(name, columns, form)                                                       \
    TINYFUSE_SHARED void name(const void *inputs, int32_t depth, const int8_t *weights,           \
                              const int32_t *biases, const tinyfuse_dense_scale *scales,          \
                              int32_t scale_step, int32_t rounding, int32_t fours, int8_t *out)   \
    {                                                                                             \
        tinyfuse_dense_fours(inputs, depth, weights, biases, scales, scale_step, rounding, fours, \
                             out, columns, form);                                                 \
    }
TINYFUSE_DENSE(tinyfuse_dense_columns_wide, 1, TINYFUSE_WIDE)
TINYFUSE_DENSE(tinyfuse_dense_columns_lanes, 1, TINYFUSE_LANES)
TINYFUSE_DENSE(tinyfuse_dense_bytes_wide, 0, TINYFUSE_WIDE)
TINYFUSE_DENSE(tinyfuse_dense_bytes_lanes, 0, TINYFUSE_LANES)
TINYFUSE_DENSE(tinyfuse_dense_bytes_bytes, 0, TINYFUSE_BYTES)

typedef void (*tinyfuse_dense_block)(const void *inputs, int32_t depth, const int8_t *weights,
                                     const int32_t *biases, const tinyfuse_dense_scale *scales,
                                     int32_t scale_step, int32_t rounding, int32_t fours,
                                     int8_t *out);

/* All batches by `block`; inputs are first widened for the form into `columns` unless that is NULL. */
TINYFUSE_SHARED void tinyfuse_dense_batches(const tinyfuse_dense *p, const int8_t *in, int8_t *out,
                                            const int8_t *weights, const int32_t *biases,
                                            const tinyfuse_dense_scale *scales, int8_t *columns, int form,
                                            tinyfuse_dense_block block)
{
    const int32_t words = p->in_c / 4, in_rest = p->in_c & 3, depth = (p->in_c + 3) & ~3;
    const int32_t fours = p->out_c / 4, out_rest = p->out_c & 3;
    const int32_t rounding = 2 * p->out_zero_point + 1;
    int8_t *const first = out;
    int32_t b;
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
        if (fours > 0) {
            block(inputs, depth, weights, biases, scales, p->scale_step, rounding, fours, out);
        }
        if (out_rest > 0) {
            int8_t last[4];
            block(inputs, depth, weights + 4 * fours * depth, biases + 4 * fours,
                  scales + 4 * fours * p->scale_step, p->scale_step, rounding, 1, last);
            memcpy(out + 4 * fours, last, (size_t)out_rest);
        }
        in += p->in_c;
        out += p->out_c;
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(first, p->batches * p->out_c, p->act_min, p->act_max);
    }
}

/* in [batches][in_c] to out [batches][out_c]. Weights: [ceil(out_c / 4)][depth / 4][4][4], zeros
   beyond the layer, in the form (tinyfuse_matmul.h), a constant, with depth =
   in_c rounded up to a multiple of 4; ceil(out_c / 4) * 4 biases, and one scale or as many. scratch,
   aligned to 8: a column of `depth` inputs. out may lie over batches of in that are read already, the one
   that is computed included. */
TINYFUSE_INLINE void tinyfuse_dense_wide_s8(const tinyfuse_dense *p, const int8_t *in, int8_t *out,
                                            const int8_t *weights, const int32_t *biases,
                                            const tinyfuse_dense_scale *scales, int form, void *scratch)
{
    tinyfuse_dense_batches(p, in, out, weights, biases, scales, (int8_t *)scratch, form,
                           form == TINYFUSE_BYTES   ? tinyfuse_dense_bytes_bytes
                           : form == TINYFUSE_LANES ? tinyfuse_dense_columns_lanes
                                                    : tinyfuse_dense_columns_wide);
}

/* The same without scratch; in_c is a multiple of 4, and out must not lie over the batch that is computed. */
TINYFUSE_INLINE void tinyfuse_dense_s8(const tinyfuse_dense *p, const int8_t *in, int8_t *out,
                                       const int8_t *weights, const int32_t *biases,
                                       const tinyfuse_dense_scale *scales, int form)
{
    tinyfuse_dense_batches(p, in, out, weights, biases, scales, NULL, form,
                           form == TINYFUSE_BYTES   ? tinyfuse_dense_bytes_bytes
                           : form == TINYFUSE_LANES ? tinyfuse_dense_bytes_lanes
                                                    : tinyfuse_dense_bytes_wide);
}

#endif
