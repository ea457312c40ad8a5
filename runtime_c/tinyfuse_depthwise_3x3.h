/* Depthwise 3x3 convolution with depth multiplier 1 and dilation 1, int8 NHWC, one output row a call. Requantization
   is single rounding with one shift or per-channel shifts, where weights are times 256, or the bounded or the shifted
   form (tinyfuse_requantize.h). At least four channels; any stride and padding.

   Four channels (a quad) are computed at a time. First the three input rows are converted to int16 and regrouped
   column by column, so that the taps of the upper two rows are neighbours; then each output takes three columns. A
   column of a quad has twelve int16, for channels c..c+3 and rows 0..2. Rows 0 and 1 come first: {c r0, c r1, c+1 r0,
   c+1 r1, c+2 r0, c+2 r1, c+3 r0, c+3 r1}, then row 2: {c, c+2, c+1, c+3}. Converted weights have the same order. */
#ifndef TINYFUSE_DEPTHWISE_3X3_H
#define TINYFUSE_DEPTHWISE_3X3_H

#include "tinyfuse_conv.h"
#include "tinyfuse_half_even.h"

enum { TINYFUSE_COLUMN = 12 }; /* int16 of a column */

/* Weights and requantization of a quad, converted; the first pixel's columns follow. Assembly knows the offsets. */
typedef struct {
    int32_t bias[4];                      /* 0 */
    int16_t weights[3 * TINYFUSE_COLUMN]; /* 16 */
    int32_t multiplier[4];                /* 88 */
    int32_t rounding;                     /* 104: rounding of the form */
    int8_t *out;                          /* 108 */
    int32_t out_step;                     /* 112: bytes to the next pixel's output */
    int32_t column_step;                  /* bytes from after a pixel's columns to the next one's */
    const int16_t *end;                   /* first column of the pixel that is one too many */
    int32_t shift[4][2];                  /* 124: with two roundings: shift, rounding << shift to the right */
} tinyfuse_quad;

/* A tinyfuse_quad for per-channel shifts. */
typedef struct {
    int32_t bias[4];                      /* 0 */
    int16_t weights[3 * TINYFUSE_COLUMN]; /* 16 */
    int32_t multiplier[4];                /* 88 */
    int32_t shift[4];                     /* 104 */
    int8_t *out;                          /* 120 */
    int32_t out_step;                     /* 124 */
    int32_t column_step;
    const int16_t *end;
} tinyfuse_own_shifts_quad;

/* Forms of outputs, those of tinyfuse_requantize.h. */
enum {
    TINYFUSE_QUAD_BOUNDED = TINYFUSE_BOUNDED_FORM,
    TINYFUSE_QUAD_SINGLE_ROUNDING = TINYFUSE_SINGLE_ROUNDING_FORM,
    TINYFUSE_QUAD_OWN_SHIFTS = TINYFUSE_OWN_SHIFTS_FORM,
    TINYFUSE_QUAD_HALF_EVEN = TINYFUSE_HALF_EVEN_FORM,
    TINYFUSE_QUAD_SHIFTED = TINYFUSE_SHIFTED_FORM
};

enum { TINYFUSE_QUAD_BYTES = 156 }; /* bytes on a 32-bit core, as plans reserve them */
typedef char tinyfuse_check_quad[sizeof(tinyfuse_quad) == TINYFUSE_QUAD_BYTES || sizeof(void *) > 4 ? 1 : -1];

typedef char tinyfuse_check_own_shifts_quad
    [sizeof(tinyfuse_own_shifts_quad) <= TINYFUSE_QUAD_BYTES || sizeof(void *) > 4 ? 1 : -1];

/* The source of a quad; assembly knows the offsets. It has no array, so that compilers keep it in registers for the C
   twin. */
typedef struct {
    int32_t channel;           /* 0: the group's first */
    const int8_t *const *rows; /* three, whose columns are out_step apart, too */
    int16_t *inside;           /* the columns that come from the rows */
    int16_t *inside_end;       /* 12 */
    const int8_t *weights;     /* 16: nine words */
    const void *channels;      /* four biases, multipliers, and perhaps shifts; or four tinyfuse_requant */
    void *quad;                /* 24: tinyfuse_quad, or tinyfuse_own_shifts_quad */
} tinyfuse_quad_source;

#if TINYFUSE_DSP

typedef char tinyfuse_check_quad_shift[offsetof(tinyfuse_quad, shift) == 124 ? 1 : -1];
typedef char tinyfuse_check_own_shifts[offsetof(tinyfuse_own_shifts_quad, shift) == 104 ? 1 : -1];
typedef char tinyfuse_check_quad_source[offsetof(tinyfuse_quad_source, quad) == 24 ? 1 : -1];

/* First, weights (r1), requantization (r2) and so on go to the tinyfuse_quad (r3); r0 is the
   tinyfuse_quad_source. */
#define TINYFUSE_QUAD_EVEN_SINGLE_ROUNDING(to, from) "and " to ", lr, " from ", lsl #8\n\t"
#define TINYFUSE_QUAD_ODD_SINGLE_ROUNDING(to, from) "and " to ", lr, " from "\n\t"
#define TINYFUSE_QUAD_EVEN_BOUNDED(to, from) "sxtb16 " to ", " from "\n\t"
#define TINYFUSE_QUAD_ODD_BOUNDED(to, from) "sxtb16 " to ", " from ", ror #8\n\t"
#define TINYFUSE_QUAD_WEIGHTS_COLUMN(form)                                            \
    "ldm r1!, {r10, r11, r12}\n\t"                                                    \
    TINYFUSE_QUAD_EVEN_##form("r4", "r10") TINYFUSE_QUAD_ODD_##form("r5", "r10")      \
    TINYFUSE_QUAD_EVEN_##form("r6", "r11") TINYFUSE_QUAD_ODD_##form("r7", "r11")      \
    TINYFUSE_QUAD_EVEN_##form("r8", "r12") TINYFUSE_QUAD_ODD_##form("r9", "r12")      \
    "stm r3!, {r4, r5, r6, r7, r8, r9}\n\t"
#define TINYFUSE_QUAD_WEIGHTS(form)                                          \
    TINYFUSE_QUAD_WEIGHTS_COLUMN(form) TINYFUSE_QUAD_WEIGHTS_COLUMN(form)    \
    TINYFUSE_QUAD_WEIGHTS_COLUMN(form)
#define TINYFUSE_QUAD_LOAD_SINGLE_ROUNDING           \
    "ldm r2!, {r4, r5, r6, r7}\n\t"            \
    "stm r3!, {r4, r5, r6, r7}\n\t"            \
    "mov lr, #0xFF00FF00\n\t"                  \
    TINYFUSE_QUAD_WEIGHTS(SINGLE_ROUNDING)           \
    "ldm r2, {r4, r5, r6, r7}\n\t"             \
    "stm r3, {r4, r5, r6, r7}\n\t"
#define TINYFUSE_QUAD_LOAD_OWN_SHIFTS                    \
    "ldm r2!, {r4, r5, r6, r7}\n\t"                      \
    "stm r3!, {r4, r5, r6, r7}\n\t"                      \
    "mov lr, #0xFF00FF00\n\t"                            \
    TINYFUSE_QUAD_WEIGHTS(SINGLE_ROUNDING)                     \
    "ldm r2, {r4, r5, r6, r7, r8, r9, r10, r11}\n\t"     \
    "stm r3, {r4, r5, r6, r7, r8, r9, r10, r11}\n\t"
/* two tinyfuse_requant, lr rounding; offsets of bias, multiplier, shifts */
#define TINYFUSE_QUAD_REQUANTS(bias, multiplier, first, second)  \
    "ldm r2!, {r4, r5, r6, r7, r8, r9}\n\t"                      \
    "strd r4, r7, [r3, #" bias "]\n\t"                           \
    "strd r5, r8, [r3, #" multiplier "]\n\t"                     \
    "lsl r10, lr, r6\n\t"                                        \
    "strd r6, r10, [r3, #" first "]\n\t"                         \
    "lsl r10, lr, r9\n\t"                                        \
    "strd r9, r10, [r3, #" second "]\n\t"
#define TINYFUSE_QUAD_LOAD_BOUNDED                        \
    "ldr lr, [r3, #104]\n\t"                              \
    TINYFUSE_QUAD_REQUANTS("0", "88", "124", "132")       \
    TINYFUSE_QUAD_REQUANTS("8", "96", "140", "148")       \
    "adds r3, #16\n\t"                                    \
    TINYFUSE_QUAD_WEIGHTS(BOUNDED)

/* Then columns are converted and regrouped: r1 a column's offset in the rows r2, r3, r7; r11 step; r12 the
   destination; lr the end. */
#define TINYFUSE_QUAD_REGROUP                    \
    "ldr r9, [r2, r1]\n\t"                       \
    "ldr r10, [r3, r1]\n\t"                      \
    "pkhbt r5, r9, r10, lsl #16\n\t"             \
    "pkhtb r8, r10, r9, asr #16\n\t"             \
    "ldr r10, [r7, r1]\n\t"                      \
    "sxtb16 r4, r5\n\t"                          \
    "sxtb16 r5, r5, ror #8\n\t"                  \
    "sxtb16 r6, r8\n\t"                          \
    "sxtb16 r8, r8, ror #8\n\t"                  \
    "sxtb16 r9, r10\n\t"                         \
    "sxtb16 r10, r10, ror #8\n\t"                \
    "stm r12!, {r4, r5, r6, r8, r9, r10}\n\t"    \
    "add r1, r11\n\t"

/* Then one output pixel after the other: r0 columns, r1 in the tinyfuse_quad, r2 to r5 sums. The 18 words
   of three columns and of their weights come four by four. */
#define TINYFUSE_QUAD_FOUR "ldm r0!, {r6, r7, r8, r9}\n\tldm r1!, {r10, r11, r12, lr}\n\t"
#define TINYFUSE_QUAD_TWO "ldm r0!, {r6, r7}\n\tldm r1!, {r10, r11}\n\t"
/* rows 0 and 1 of a channel; row 2 of all four */
#define TINYFUSE_QUAD_UPPER(sum, x, w) "smlad " sum ", " x ", " w ", " sum "\n\t"
#define TINYFUSE_QUAD_LOWER(x0, w0, x1, w1)          \
    "smlabb r2, " x0 ", " w0 ", r2\n\t"              \
    "smlabb r3, " x1 ", " w1 ", r3\n\t"              \
    "smlatt r4, " x0 ", " w0 ", r4\n\t"              \
    "smlatt r5, " x1 ", " w1 ", r5\n\t"
#define TINYFUSE_QUAD_PRODUCTS                                                             \
    TINYFUSE_QUAD_FOUR                                                                     \
    TINYFUSE_QUAD_UPPER("r2", "r6", "r10") TINYFUSE_QUAD_UPPER("r3", "r7", "r11")          \
    TINYFUSE_QUAD_UPPER("r4", "r8", "r12") TINYFUSE_QUAD_UPPER("r5", "r9", "lr")           \
    TINYFUSE_QUAD_FOUR                                                                     \
    TINYFUSE_QUAD_LOWER("r6", "r10", "r7", "r11")                                          \
    TINYFUSE_QUAD_UPPER("r2", "r8", "r12") TINYFUSE_QUAD_UPPER("r3", "r9", "lr")           \
    TINYFUSE_QUAD_FOUR                                                                     \
    TINYFUSE_QUAD_UPPER("r4", "r6", "r10") TINYFUSE_QUAD_UPPER("r5", "r7", "r11")          \
    TINYFUSE_QUAD_LOWER("r8", "r12", "r9", "lr")                                           \
    TINYFUSE_QUAD_FOUR                                                                     \
    TINYFUSE_QUAD_UPPER("r2", "r6", "r10") TINYFUSE_QUAD_UPPER("r3", "r7", "r11")          \
    TINYFUSE_QUAD_UPPER("r4", "r8", "r12") TINYFUSE_QUAD_UPPER("r5", "r9", "lr")           \
    TINYFUSE_QUAD_TWO                                                                      \
    TINYFUSE_QUAD_LOWER("r6", "r10", "r7", "r11")
/* four multipliers and the rounding; the bounded form has one for each shift */
#define TINYFUSE_QUAD_SCALES "ldm r1!, {r6, r7, r8, r9, r10}\n\t"
#define TINYFUSE_QUAD_ON_SINGLE_ROUNDING(sum, multiplier) \
    "smmla " sum ", " sum ", " multiplier ", r10\n\t" TINYFUSE_SINGLE_ROUNDING_SATURATE(sum)
#define TINYFUSE_QUAD_OUTPUTS_SINGLE_ROUNDING                                                    \
    TINYFUSE_QUAD_SCALES                                                                   \
    TINYFUSE_QUAD_ON_SINGLE_ROUNDING("r2", "r6") TINYFUSE_QUAD_ON_SINGLE_ROUNDING("r3", "r7")          \
    TINYFUSE_QUAD_ON_SINGLE_ROUNDING("r4", "r8") TINYFUSE_QUAD_ON_SINGLE_ROUNDING("r5", "r9")
#define TINYFUSE_QUAD_REQUANTIZE(sum, multiplier, shift) \
    "ldrd r11, r12, [r1, #" shift "]\n\t"                \
    "add r12, " sum "\n\t"                               \
    "add r12, r12, " sum ", asr #31\n\t"                 \
    "smmlar " sum ", " sum ", " multiplier ", r12\n\t"   \
    "asr " sum ", r11\n\t"                               \
    "ssat " sum ", #8, " sum ", asr #1\n\t"
#define TINYFUSE_QUAD_OUTPUTS_BY(requantize)                     \
    TINYFUSE_QUAD_SCALES                                         \
    requantize("r2", "r6", "16") requantize("r3", "r7", "24")    \
    requantize("r4", "r8", "32") requantize("r5", "r9", "40")
#define TINYFUSE_QUAD_OUTPUTS_BOUNDED TINYFUSE_QUAD_OUTPUTS_BY(TINYFUSE_QUAD_REQUANTIZE)
/* tinyfuse_requantize_shifted; r11: both shifts, of which register shifts take the lower byte */
#define TINYFUSE_QUAD_LOAD_SHIFTED TINYFUSE_QUAD_LOAD_BOUNDED
#define TINYFUSE_QUAD_REQUANTIZE_SHIFTED(sum, multiplier, shift) \
    "ldrd r11, r12, [r1, #" shift "]\n\t"                       \
    "lsr lr, r11, #8\n\t"                                       \
    "lsl " sum ", #1\n\t"                                       \
    "lsl " sum ", lr\n\t"                                       \
    "smmulr " sum ", " sum ", " multiplier "\n\t"               \
    "add r12, r12, " sum ", asr #31\n\t"                        \
    "add " sum ", r12, " sum ", lsl #1\n\t"                     \
    "asr " sum ", r11\n\t"                                      \
    "ssat " sum ", #8, " sum ", asr #1\n\t"
#define TINYFUSE_QUAD_OUTPUTS_SHIFTED TINYFUSE_QUAD_OUTPUTS_BY(TINYFUSE_QUAD_REQUANTIZE_SHIFTED)

/* four negated scales and the rounding: tinyfuse_requantize_half_even_256ths, of products below 2^30 */
#define TINYFUSE_QUAD_EVERY_FLOAT(do_it) do_it("s0", "s4") do_it("s1", "s5") do_it("s2", "s6") do_it("s3", "s7")
#define TINYFUSE_QUAD_TO_FLOAT(s, scale) "vcvt.f32.s32 " s ", " s "\n\t"
#define TINYFUSE_QUAD_TIMES(s, scale) "vnmul.f32 " s ", " s ", " scale "\n\t"
#define TINYFUSE_QUAD_TO_NEAREST(s, scale) "vcvtr.s32.f32 " s ", " s "\n\t"
#define TINYFUSE_QUAD_STORED(sum) "add " sum ", r10\n\tssat " sum ", #8, " sum "\n\t"
#define TINYFUSE_QUAD_LOAD_HALF_EVEN TINYFUSE_QUAD_LOAD_SINGLE_ROUNDING
#define TINYFUSE_QUAD_OUTPUTS_HALF_EVEN                                            \
    "vldm r1!, {s4, s5, s6, s7}\n\t"                                               \
    "ldr r10, [r1], #4\n\t" TINYFUSE_ZERO_POINT_OF("r10")                          \
    "vmov s0, s1, r2, r3\n\t"                                                      \
    "vmov s2, s3, r4, r5\n\t"                                                      \
    TINYFUSE_QUAD_EVERY_FLOAT(TINYFUSE_QUAD_TO_FLOAT)                              \
    TINYFUSE_QUAD_EVERY_FLOAT(TINYFUSE_QUAD_TIMES)                                 \
    TINYFUSE_QUAD_EVERY_FLOAT(TINYFUSE_QUAD_TO_NEAREST)                            \
    "vmov r2, r3, s0, s1\n\t"                                                      \
    "vmov r4, r5, s2, s3\n\t"                                                      \
    TINYFUSE_QUAD_STORED("r2") TINYFUSE_QUAD_STORED("r3") TINYFUSE_QUAD_STORED("r4") TINYFUSE_QUAD_STORED("r5")

/* four multipliers and four shifts */
#define TINYFUSE_QUAD_OUTPUTS_OWN_SHIFTS                                                                       \
    "ldm r1!, {r6, r7, r8, r9, r10, r11, r12, lr}\n\t"                                                         \
    TINYFUSE_OWN_SHIFT("r2", "r6", "r10") TINYFUSE_OWN_SHIFT("r3", "r7", "r11")                                \
    TINYFUSE_OWN_SHIFT("r4", "r8", "r12") TINYFUSE_OWN_SHIFT("r5", "r9", "lr")

#define TINYFUSE_QUAD_TARGETS "ldm r1, {r6, r7, r8, r9}\n\t"

#define TINYFUSE_QUAD_ASM(source, form) \
    TINYFUSE_QUAD_WITH_ASM(source, TINYFUSE_QUAD_LOAD_##form, "112", TINYFUSE_QUAD_OUTPUTS_##form, "108")
#define TINYFUSE_QUAD_OWN_SHIFTS_ASM(source)                                                                        \
    TINYFUSE_QUAD_WITH_ASM(source, TINYFUSE_QUAD_LOAD_OWN_SHIFTS, "124", TINYFUSE_QUAD_OUTPUTS_OWN_SHIFTS, "120")
/* out, out_step: their offsets. */
#define TINYFUSE_QUAD_WITH_ASM(source, load, out_step, outputs, out)                         \
    {                                                                                        \
        TINYFUSE_ARGUMENT(const tinyfuse_quad_source *, arguments, source);                  \
        __asm volatile(TINYFUSE_ASM_BEGIN                                                    \
                       "ldrd r1, r2, [r0, #16]\n\t"                                          \
                       "ldr r3, [r0, #24]\n\t" load                                          \
                       "ldr r8, [r0, #24]\n\t"                                               \
                       "ldm r0, {r1, r7, r12, lr}\n\t"                                       \
                       "ldm r7, {r2, r3, r7}\n\t"                                            \
                       "ldr r11, [r8, #" out_step "]\n\t"                                    \
                       "subs r4, lr, r12\n\t" /* 24 times the columns */                     \
                       "beq 3f\n\t"                                                          \
                       "tst r4, #8\n\t"                                                      \
                       "bne 2f\n\t"                                                          \
                       "1:\n\t" TINYFUSE_QUAD_REGROUP                                        \
                       "2:\n\t" TINYFUSE_QUAD_REGROUP                                        \
                       "cmp r12, lr\n\t"                                                     \
                       "bne 1b\n\t"                                                          \
                       "3:\n\t"                                                              \
                       "ldr r1, [r0, #24]\n\t"                                               \
                       "add r0, r1, #156\n\t"                                                \
                       "4:\n\t"                                                              \
                       "ldm r1!, {r2, r3, r4, r5}\n\t" TINYFUSE_QUAD_PRODUCTS                \
                       outputs TINYFUSE_QUAD_TARGETS                                         \
                       "strb r2, [r6]\n\t"                                                   \
                       "strb r3, [r6, #1]\n\t"                                               \
                       "strb r4, [r6, #2]\n\t"                                               \
                       "strb r5, [r6, #3]\n\t"                                               \
                       "add r6, r7\n\t"                                                      \
                       "str r6, [r1], #-" out "\n\t"                                         \
                       "add r0, r8\n\t"                                                      \
                       "cmp r0, r9\n\t"                                                      \
                       "bne 4b\n\t" TINYFUSE_ASM_END                                         \
                       :                                                                     \
                       : "r"(arguments)                                                      \
                       : TINYFUSE_CLOBBERS_FPU TINYFUSE_ASM_CLOBBERS);                       \
    }

#if TINYFUSE_FPU
#define TINYFUSE_QUAD_HALF_EVEN_ASM(source) TINYFUSE_QUAD_ASM(source, HALF_EVEN)
#else
#define TINYFUSE_QUAD_HALF_EVEN_ASM(source) /* never reached */
#endif

/* One row of a group, in a form, which is a constant. The columns lie right after the tinyfuse_quad. */
TINYFUSE_INLINE void tinyfuse_quad_run_dsp(const tinyfuse_quad_source *source, const int16_t *columns, int form)
{
    (void)columns;
    if (form == TINYFUSE_QUAD_SINGLE_ROUNDING) {
        TINYFUSE_QUAD_ASM(source, SINGLE_ROUNDING)
    } else if (form == TINYFUSE_QUAD_OWN_SHIFTS) {
        TINYFUSE_QUAD_OWN_SHIFTS_ASM(source)
    } else if (form == TINYFUSE_QUAD_HALF_EVEN) {
        TINYFUSE_QUAD_HALF_EVEN_ASM(source)
    } else if (form == TINYFUSE_QUAD_SHIFTED) {
        TINYFUSE_QUAD_ASM(source, SHIFTED)
    } else {
        TINYFUSE_QUAD_ASM(source, BOUNDED)
    }
}

#endif

/* C twin of the assembly above, with the same results. */

/* Converts weights to int16, times `unit`. */
TINYFUSE_INLINE void tinyfuse_quad_weights(int16_t *to, const int8_t *weights, int unit)
{
    int i;
    for (i = 0; i < 3 * TINYFUSE_COLUMN; i += 4) {
        to[i] = (int16_t)(unit * weights[i]);
        to[i + 1] = (int16_t)(unit * weights[i + 2]);
        to[i + 2] = (int16_t)(unit * weights[i + 1]);
        to[i + 3] = (int16_t)(unit * weights[i + 3]);
    }
}

TINYFUSE_INLINE void tinyfuse_quad_load(tinyfuse_quad *q, const int8_t *weights,
                                        const void *channels, int single_rounding)
{
    const int32_t *const l = (const int32_t *)channels;
    const tinyfuse_requant *const r = (const tinyfuse_requant *)channels;
    int i;
    tinyfuse_quad_weights(q->weights, weights, single_rounding ? 256 : 1);
    for (i = 0; i < 4; ++i) {
        q->bias[i] = single_rounding ? l[i] : r[i].bias;
        q->multiplier[i] = single_rounding ? l[4 + i] : r[i].multiplier;
        q->shift[i][0] = single_rounding ? 0 : r[i].shift;
    }
}

TINYFUSE_INLINE void tinyfuse_quad_columns(const int8_t *a, const int8_t *b, const int8_t *d,
                                           int32_t step, int16_t *to, const int16_t *end)
{
    int i;
    for (; to != end; to += TINYFUSE_COLUMN) {
        for (i = 0; i < 4; ++i) {
            to[2 * i] = a[i];
            to[2 * i + 1] = b[i];
        }
        to[8] = d[0];
        to[9] = d[2];
        to[10] = d[1];
        to[11] = d[3];
        a += step;
        b += step;
        d += step;
    }
}

/* Sets s0 to s3 to the sums of an output of four channels, from columns at x and weights of a tinyfuse_quad or
   tinyfuse_own_shifts_quad. */
#define TINYFUSE_QUAD_SUMS(q, x)                                                \
    uint32_t s0 = (uint32_t)(q)->bias[0], s1 = (uint32_t)(q)->bias[1];          \
    uint32_t s2 = (uint32_t)(q)->bias[2], s3 = (uint32_t)(q)->bias[3];          \
    const int16_t *w = (q)->weights;                                            \
    const int16_t *const end = x + 3 * TINYFUSE_COLUMN;                         \
    for (; x != end; x += TINYFUSE_COLUMN) {                                    \
        s0 += (uint32_t)(x[0] * w[0] + x[1] * w[1] + x[8] * w[8]);              \
        s1 += (uint32_t)(x[2] * w[2] + x[3] * w[3] + x[10] * w[10]);            \
        s2 += (uint32_t)(x[4] * w[4] + x[5] * w[5] + x[9] * w[9]);              \
        s3 += (uint32_t)(x[6] * w[6] + x[7] * w[7] + x[11] * w[11]);            \
        w += TINYFUSE_COLUMN;                                                   \
    }

TINYFUSE_INLINE void tinyfuse_quad_row(tinyfuse_quad *q, const int16_t *columns, int form)
{
    const int32_t *const m = q->multiplier;
    const int32_t rounding = q->rounding;
    const int32_t step = 3 * TINYFUSE_COLUMN + q->column_step / 2;
    int8_t *out = q->out;
    for (; columns != q->end; columns += step) {
        const int16_t *x = columns;
        TINYFUSE_QUAD_SUMS(q, x)
#define TINYFUSE_QUAD_OUTPUT(i, sum)                                                            \
    out[i] = (int8_t)(form == TINYFUSE_QUAD_SINGLE_ROUNDING                                     \
                          ? tinyfuse_requantize_single_rounding((int32_t)(sum), m[i], rounding) \
                      : form == TINYFUSE_QUAD_HALF_EVEN                                         \
                          ? tinyfuse_requantize_single_or_half_even((int32_t)(sum), m[i], rounding) \
                      : form == TINYFUSE_QUAD_SHIFTED                                          \
                          ? tinyfuse_requantize_shifted((int32_t)(sum), m[i], q->shift[i][0], rounding) \
                          : tinyfuse_requantize_bounded((int32_t)(sum), m[i],                  \
                                                         q->shift[i][0], rounding))
        TINYFUSE_QUAD_OUTPUT(0, s0);
        TINYFUSE_QUAD_OUTPUT(1, s1);
        TINYFUSE_QUAD_OUTPUT(2, s2);
        TINYFUSE_QUAD_OUTPUT(3, s3);
        out += q->out_step;
    }
}

/* Computes a row of a quad with per-channel shifts. */
TINYFUSE_INLINE void tinyfuse_own_shifts_quad_row(const tinyfuse_own_shifts_quad *q, const int16_t *columns)
{
    const int32_t *const m = q->multiplier;
    const int32_t step = 3 * TINYFUSE_COLUMN + q->column_step / 2;
    int8_t *out = q->out;
    for (; columns != q->end; columns += step) {
        const int16_t *x = columns;
        TINYFUSE_QUAD_SUMS(q, x)
        out[0] = (int8_t)tinyfuse_requantize_own_shift((int32_t)s0, m[0], q->shift[0]);
        out[1] = (int8_t)tinyfuse_requantize_own_shift((int32_t)s1, m[1], q->shift[1]);
        out[2] = (int8_t)tinyfuse_requantize_own_shift((int32_t)s2, m[2], q->shift[2]);
        out[3] = (int8_t)tinyfuse_requantize_own_shift((int32_t)s3, m[3], q->shift[3]);
        out += q->out_step;
    }
}

TINYFUSE_INLINE void tinyfuse_quad_run_c(const tinyfuse_quad_source *source, const int16_t *columns, int form)
{
    const int8_t *const *const rows = source->rows;
    const int32_t c = source->channel;
    if (form == TINYFUSE_QUAD_OWN_SHIFTS) {
        tinyfuse_own_shifts_quad *const q = (tinyfuse_own_shifts_quad *)source->quad;
        const int32_t *const l = (const int32_t *)source->channels;
        int i;
        tinyfuse_quad_weights(q->weights, source->weights, 256);
        for (i = 0; i < 4; ++i) {
            q->bias[i] = l[i];
            q->multiplier[i] = l[4 + i];
            q->shift[i] = l[8 + i];
        }
        tinyfuse_quad_columns(rows[0] + c, rows[1] + c, rows[2] + c, q->out_step, source->inside, source->inside_end);
        tinyfuse_own_shifts_quad_row(q, columns);
    } else {
        tinyfuse_quad *const q = (tinyfuse_quad *)source->quad;
        tinyfuse_quad_load(q, source->weights, source->channels, !tinyfuse_form_rounds_twice(form));
        tinyfuse_quad_columns(rows[0] + c, rows[1] + c, rows[2] + c, q->out_step, source->inside, source->inside_end);
        tinyfuse_quad_row(q, columns, form);
    }
}

/* One row of a group, in assembly where there is some; an FPU's where outputs are rounded half to even. */
TINYFUSE_INLINE void tinyfuse_quad_run(const tinyfuse_quad_source *source, const int16_t *columns, int form)
{
#if TINYFUSE_DSP
    if (TINYFUSE_FPU || form != TINYFUSE_QUAD_HALF_EVEN) {
        tinyfuse_quad_run_dsp(source, columns, form);
        return;
    }
#endif
    tinyfuse_quad_run_c(source, columns, form);
}

/* Tells whether four channels of TINYFUSE_QUAD_HALF_EVEN have single rounding. On an FPU all do or none. */
TINYFUSE_INLINE int tinyfuse_quad_has_single_rounding(const void *channels)
{
    const int32_t *const scales = (const int32_t *)channels + 4;
    return TINYFUSE_FPU ? scales[0] >= 0 : (scales[0] | scales[1] | scales[2] | scales[3]) >= 0;
}

/* Computes output row y. Reads only the input rows of y's own window, writes only out_row. Weights are [ceil(in_c /
   4)][36], the last four channels ending at in_c; channels are as many int32[8], biases and multipliers, or
   int32[12], with shifts, or [in_c] tinyfuse_requant of a form with two roundings. scratch, aligned to 8: a
   tinyfuse_quad; (out_w - 1) * stride_w + 3 columns; in_w * in_c bytes for a row of padding where any window reaches
   above or below the image. */
TINYFUSE_INLINE void tinyfuse_depthwise_3x3_body(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                 int8_t *out_row, const int8_t *weights,
                                                 const void *channels, void *scratch, int form)
{
    const int own_shifts = form == TINYFUSE_QUAD_OWN_SHIFTS;
    const int32_t in_c = p->in_c, row_bytes = p->in_w * in_c;
    const int32_t columns = (p->out_w - 1) * p->stride_w + 3;
    /* columns left of the image, and in it */
    const int32_t left = tinyfuse_min(p->pad_left, columns);
    const int32_t inside = tinyfuse_clamp(columns - left, 0, p->in_w);
    tinyfuse_quad *const q = (tinyfuse_quad *)TINYFUSE_WITH_POINTERS(
        scratch, sizeof(tinyfuse_own_shifts_quad) > sizeof *q ? sizeof(tinyfuse_own_shifts_quad) : sizeof *q);
    tinyfuse_own_shifts_quad *const b = (tinyfuse_own_shifts_quad *)(void *)q;
    int16_t *const first = (int16_t *)(void *)((int8_t *)scratch + TINYFUSE_QUAD_BYTES);
    int8_t *const padding = (int8_t *)(first + TINYFUSE_COLUMN * columns);
    const int8_t *rows[3];
    tinyfuse_quad_source source;
    int32_t i, done;
    for (i = 0; i < 3; ++i) {
        const int32_t iy = y * p->stride_h - p->pad_top + i;
        if (iy >= 0 && iy < p->in_h) {
            rows[i] = tinyfuse_ring_row(in, iy, p->in_ring, row_bytes);
        } else {
            memset(padding, p->in_zero_point, (size_t)row_bytes);
            rows[i] = padding;
        }
    }
    for (i = 0; i < TINYFUSE_COLUMN * left; ++i) {
        first[i] = (int16_t)p->in_zero_point;
    }
    for (i = TINYFUSE_COLUMN * (left + inside); i < TINYFUSE_COLUMN * columns; ++i) {
        first[i] = (int16_t)p->in_zero_point;
    }
    if (own_shifts != 0) {
        b->out_step = in_c;
        b->column_step = (p->stride_w - 3) * TINYFUSE_COLUMN * 2;
        b->end = first + p->out_w * p->stride_w * TINYFUSE_COLUMN;
    } else {
        q->rounding = tinyfuse_form_rounding(p->out_zero_point, form);
        q->out_step = in_c;
        q->column_step = (p->stride_w - 3) * TINYFUSE_COLUMN * 2;
        q->end = first + p->out_w * p->stride_w * TINYFUSE_COLUMN;
    }
    source.rows = rows;
    source.inside = first + TINYFUSE_COLUMN * left;
    source.inside_end = source.inside + TINYFUSE_COLUMN * inside;
    source.weights = weights;
    source.quad = q;
    for (done = 0; done < in_c; done += 4) {
        const int32_t c = tinyfuse_min(done, in_c - 4);
        source.channel = c;
        source.channels = tinyfuse_form_rounds_twice(form)
                               ? (const void *)((const tinyfuse_requant *)channels + c)
                               : (const void *)((const int32_t *)channels + (own_shifts ? 3 : 2) * done);
        if (own_shifts != 0) {
            b->out = out_row + c;
        } else {
            q->out = out_row + c;
        }
        if (form == TINYFUSE_QUAD_HALF_EVEN && tinyfuse_quad_has_single_rounding(source.channels)) {
            tinyfuse_quad_run(&source, first, TINYFUSE_QUAD_SINGLE_ROUNDING); /* all four channels have it */
        } else {
            tinyfuse_quad_run(&source, first, form);
        }
        source.weights += 36;
    }
    tinyfuse_clamp_outputs(out_row, p->out_w * in_c, p->act_min, p->act_max);
}

#define TINYFUSE_DEPTHWISE_3X3(name, form)                                                              \
    TINYFUSE_SHARED void name(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,     \
                              const int8_t *weights, const void *channels, void *scratch)               \
    {                                                                                                   \
        tinyfuse_depthwise_3x3_body(p, in, y, out_row, weights, channels, scratch, form);               \
    }
TINYFUSE_DEPTHWISE_3X3(tinyfuse_depthwise_3x3_single_rounding, TINYFUSE_QUAD_SINGLE_ROUNDING)
TINYFUSE_DEPTHWISE_3X3(tinyfuse_depthwise_3x3_own_shifts, TINYFUSE_QUAD_OWN_SHIFTS)
TINYFUSE_DEPTHWISE_3X3(tinyfuse_depthwise_3x3_half_even, TINYFUSE_QUAD_HALF_EVEN)
TINYFUSE_DEPTHWISE_3X3(tinyfuse_depthwise_3x3_shifted, TINYFUSE_QUAD_SHIFTED)
TINYFUSE_DEPTHWISE_3X3(tinyfuse_depthwise_3x3_bounded, TINYFUSE_QUAD_BOUNDED)

/* Computes output row y as tinyfuse_depthwise_3x3_body does; `form` is a constant. */
TINYFUSE_INLINE void tinyfuse_depthwise_3x3_row_s8(const tinyfuse_conv *p, const int8_t *in,
                                                   int32_t y, int8_t *out_row,
                                                   const int8_t *weights, const void *channels,
                                                   void *scratch, int form)
{
    (form == TINYFUSE_SINGLE_ROUNDING_FORM    ? tinyfuse_depthwise_3x3_single_rounding
     : form == TINYFUSE_OWN_SHIFTS_FORM ? tinyfuse_depthwise_3x3_own_shifts
     : form == TINYFUSE_HALF_EVEN_FORM  ? tinyfuse_depthwise_3x3_half_even
     : form == TINYFUSE_SHIFTED_FORM    ? tinyfuse_depthwise_3x3_shifted
                                        : tinyfuse_depthwise_3x3_bounded)(p, in, y, out_row, weights, channels, scratch);
}

#endif
