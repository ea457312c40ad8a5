/* Depthwise 3x3 convolution with depth multiplier 1 and dilation 1, int8 NHWC, one output row a call,
   in two forms: requantized along a line, weights widened to 256ths; or in the bounded form
   (tinyfuse_requantize.h). At least four channels; any stride and padding.

   Four channels are computed at a time. First the three input rows are widened and regrouped, column
   by column, so that the taps of the upper two rows are neighbours; then each output takes three
   columns. A column of a group has twelve int16, for channels c..c+3 and rows 0..2:
   c0 c1 of row 0 and 1: {c r0, c r1, c+1 r0, c+1 r1, c+2 r0, c+2 r1, c+3 r0, c+3 r1}, then row 2:
   {c, c+2, c+1, c+3}. Weights have the same order once widened. */
#ifndef TINYFUSE_DEPTHWISE_3X3_H
#define TINYFUSE_DEPTHWISE_3X3_H

#include "tinyfuse_conv.h"

enum { TINYFUSE_COLUMN = 12 }; /* int16 of a column */

/* What computing one group of four channels needs; assembly knows the offsets. */
typedef struct {
    int32_t bias[4];                      /* 0 */
    int16_t weights[3 * TINYFUSE_COLUMN]; /* 16 */
    int32_t multiplier[4];                /* 88 */
    int32_t rounding;                     /* 104: of the line */
    int8_t *out;                          /* 108 */
    int32_t out_step;                     /* 112: bytes to the next pixel's output */
    int32_t column_step;                  /* bytes from behind a pixel's columns to the next one's */
    const int16_t *end;                   /* first column of the pixel that is one too many */
    int32_t shift[4][2];                  /* 124: of the bounded form: shift, rounding << shift */
} tinyfuse_quad;

#if TINYFUSE_DSP

/* Loads weights (nine words) and requantization of four channels: four biases and four
   multipliers of lines (`line`, a constant), or four tinyfuse_requant. */
TINYFUSE_INLINE void tinyfuse_quad_load(tinyfuse_quad *q, const int8_t *weights,
                                        const void *channels, int32_t rounding, int line)
{
    int16_t *to = q->weights;
#define TINYFUSE_QUAD_LINE(to, from)                    \
    "and " to ", r11, " from ", lsl #8\n\t"
#define TINYFUSE_QUAD_LINE_ODD(to, from) "and " to ", r11, " from "\n\t"
#define TINYFUSE_QUAD_BOUNDED(to, from) "sxtb16 " to ", " from "\n\t"
#define TINYFUSE_QUAD_BOUNDED_ODD(to, from) "sxtb16 " to ", " from ", ror #8\n\t"
#define TINYFUSE_QUAD_COLUMN(form)                      \
    "ldm %[w]!, {r4, r5, r6}\n\t"                       \
    TINYFUSE_QUAD_##form("r8", "r4")                    \
    TINYFUSE_QUAD_##form##_ODD("r9", "r4")              \
    TINYFUSE_QUAD_##form("r10", "r5")                   \
    TINYFUSE_QUAD_##form##_ODD("r12", "r5")             \
    "stm %[to]!, {r8, r9, r10, r12}\n\t"                \
    TINYFUSE_QUAD_##form("r8", "r6")                    \
    TINYFUSE_QUAD_##form##_ODD("r9", "r6")              \
    "stm %[to]!, {r8, r9}\n\t"
#define TINYFUSE_QUAD_COLUMNS(form) \
    TINYFUSE_QUAD_COLUMN(form) TINYFUSE_QUAD_COLUMN(form) TINYFUSE_QUAD_COLUMN(form)
    if (line) {
        __asm volatile("mov r11, #0xFF00FF00\n\t" TINYFUSE_QUAD_COLUMNS(LINE)
                       "ldm %[c]!, {r4, r5, r6, r8, r9, r10, r11, r12}\n\t"
                       "stm %[to], {r9, r10, r11, r12}\n\t"
                       "sub %[to], #88\n\t"
                       "stm %[to], {r4, r5, r6, r8}\n\t"
                       : [w] "+r"(weights), [c] "+r"(channels), [to] "+r"(to)
                       :
                       : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "memory");
        (void)rounding;
    } else {
        const tinyfuse_requant *const r = (const tinyfuse_requant *)channels;
        int i;
        __asm volatile(TINYFUSE_QUAD_COLUMNS(BOUNDED)
                       : [w] "+r"(weights), [to] "+r"(to)
                       :
                       : "r4", "r5", "r6", "r8", "r9", "r10", "r12", "memory");
        for (i = 0; i < 4; ++i) {
            q->bias[i] = r[i].bias;
            q->multiplier[i] = r[i].multiplier;
            q->shift[i][0] = r[i].shift;
            q->shift[i][1] = (int32_t)((uint32_t)rounding << r[i].shift);
        }
    }
}

/* Widens and regroups `count` > 0 columns of rows a, b, d, `step` bytes apart. */
TINYFUSE_INLINE void tinyfuse_quad_columns(const int8_t *a, const int8_t *b, const int8_t *d,
                                           int32_t count, int32_t step, int16_t *to)
{
    int16_t *const end = to + TINYFUSE_COLUMN * count;
    int32_t at = 0;
#define TINYFUSE_QUAD_REGROUP                    \
    "ldr r9, [%[a], %[at]]\n\t"                  \
    "ldr r10, [%[b], %[at]]\n\t"                 \
    "pkhbt r5, r9, r10, lsl #16\n\t"             \
    "pkhtb r8, r10, r9, asr #16\n\t"             \
    "ldr r10, [%[d], %[at]]\n\t"                 \
    "sxtb16 r4, r5\n\t"                          \
    "sxtb16 r5, r5, ror #8\n\t"                  \
    "sxtb16 r6, r8\n\t"                          \
    "sxtb16 r8, r8, ror #8\n\t"                  \
    "sxtb16 r9, r10\n\t"                         \
    "sxtb16 r10, r10, ror #8\n\t"                \
    "stm %[to]!, {r4, r5, r6, r8, r9, r10}\n\t"  \
    "add %[at], %[step]\n\t"
    __asm volatile("tst %[count], #1\n\t"
                   "bne 2f\n\t"
                   "1:\n\t" TINYFUSE_QUAD_REGROUP "2:\n\t" TINYFUSE_QUAD_REGROUP
                   "cmp %[to], %[end]\n\t"
                   "bne 1b"
                   : [to] "+r"(to), [at] "+r"(at)
                   : [a] "r"(a), [b] "r"(b), [d] "r"(d), [step] "r"(step), [end] "r"(end),
                     [count] "r"(count)
                   : "r4", "r5", "r6", "r8", "r9", "r10", "cc", "memory");
}

#define TINYFUSE_QUAD_PRODUCTS               \
    "ldm r0!, {r6, r8, r9, r10}\n\t"         \
    "ldm r1!, {r11, r12, lr}\n\t"            \
    "smlad r2, r6, r11, r2\n\t"              \
    "smlad r3, r8, r12, r3\n\t"              \
    "smlad r4, r9, lr, r4\n\t"               \
    "ldm r1!, {r11, r12, lr}\n\t"            \
    "smlad r5, r10, r11, r5\n\t"             \
    "ldm r0!, {r6, r8}\n\t"                  \
    "smlabb r2, r6, r12, r2\n\t"             \
    "smlabb r3, r8, lr, r3\n\t"              \
    "smlatt r4, r6, r12, r4\n\t"             \
    "smlatt r5, r8, lr, r5\n\t"
#define TINYFUSE_QUAD_ON_LINE(sum, multiplier) \
    "smmla " sum ", " sum ", " multiplier ", r11\n\t" TINYFUSE_LINE_SATURATE(sum)
#define TINYFUSE_QUAD_OUTPUTS_LINE                              \
    "ldm r1!, {r6, r8, r9, r10, r11}\n\t"                       \
    TINYFUSE_QUAD_ON_LINE("r2", "r6") TINYFUSE_QUAD_ON_LINE("r3", "r8") \
    TINYFUSE_QUAD_ON_LINE("r4", "r9") TINYFUSE_QUAD_ON_LINE("r5", "r10")
#define TINYFUSE_QUAD_REQUANTIZE(sum, multiplier, shift) \
    "ldrd r11, r12, [r1, #" shift "]\n\t"                \
    "add r12, " sum "\n\t"                               \
    "add r12, r12, " sum ", asr #31\n\t"                 \
    "smmlar " sum ", " sum ", " multiplier ", r12\n\t"   \
    "asr " sum ", " sum ", r11\n\t"                      \
    "ssat " sum ", #8, " sum ", asr #1\n\t"
#define TINYFUSE_QUAD_OUTPUTS_BOUNDED                                                            \
    "ldm r1!, {r6, r8, r9, r10, r11}\n\t"                                                        \
    TINYFUSE_QUAD_REQUANTIZE("r2", "r6", "16") TINYFUSE_QUAD_REQUANTIZE("r3", "r8", "24")        \
    TINYFUSE_QUAD_REQUANTIZE("r4", "r9", "32") TINYFUSE_QUAD_REQUANTIZE("r5", "r10", "40")
/* One row: r0 columns, r1 the tinyfuse_quad, r2 to r5 sums. */
TINYFUSE_INLINE void tinyfuse_quad_row(tinyfuse_quad *q, const int16_t *columns, int line)
{
    register const int16_t *r0 __asm("r0") = columns;
    register tinyfuse_quad *r1 __asm("r1") = q;
#define TINYFUSE_QUAD_LOOP(outputs)                                                        \
    __asm volatile("1:\n\t"                                                                \
                   "ldm r1!, {r2, r3, r4, r5}\n\t" TINYFUSE_QUAD_PRODUCTS                  \
                   TINYFUSE_QUAD_PRODUCTS TINYFUSE_QUAD_PRODUCTS outputs                   \
                   "ldm r1, {r6, r8, r9, r10}\n\t"                                         \
                   "strb r2, [r6]\n\t"                                                     \
                   "strb r3, [r6, #1]\n\t"                                                 \
                   "strb r4, [r6, #2]\n\t"                                                 \
                   "strb r5, [r6, #3]\n\t"                                                 \
                   "add r6, r8\n\t"                                                        \
                   "str r6, [r1], #-108\n\t"                                               \
                   "add r0, r9\n\t"                                                        \
                   "cmp r0, r10\n\t"                                                       \
                   "bne 1b"                                                                \
                   : "+r"(r0), "+r"(r1)                                                    \
                   :                                                                       \
                   : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr",  \
                     "cc", "memory")
    if (line) {
        TINYFUSE_QUAD_LOOP(TINYFUSE_QUAD_OUTPUTS_LINE);
    } else {
        TINYFUSE_QUAD_LOOP(TINYFUSE_QUAD_OUTPUTS_BOUNDED);
    }
}

#else

TINYFUSE_INLINE void tinyfuse_quad_load(tinyfuse_quad *q, const int8_t *weights,
                                        const void *channels, int32_t rounding, int line)
{
    const int32_t *const l = (const int32_t *)channels;
    const tinyfuse_requant *const r = (const tinyfuse_requant *)channels;
    const int unit = line ? 256 : 1;
    int i;
    for (i = 0; i < 3 * TINYFUSE_COLUMN; i += 4) {
        q->weights[i] = (int16_t)(unit * weights[i]);
        q->weights[i + 1] = (int16_t)(unit * weights[i + 2]);
        q->weights[i + 2] = (int16_t)(unit * weights[i + 1]);
        q->weights[i + 3] = (int16_t)(unit * weights[i + 3]);
    }
    for (i = 0; i < 4; ++i) {
        q->bias[i] = line ? l[i] : r[i].bias;
        q->multiplier[i] = line ? l[4 + i] : r[i].multiplier;
        q->shift[i][0] = line ? 0 : r[i].shift;
        q->shift[i][1] = rounding;
    }
}

TINYFUSE_INLINE void tinyfuse_quad_columns(const int8_t *a, const int8_t *b, const int8_t *d,
                                           int32_t count, int32_t step, int16_t *to)
{
    int i;
    for (; count > 0; --count) {
        for (i = 0; i < 4; ++i) {
            to[2 * i] = a[i];
            to[2 * i + 1] = b[i];
        }
        to[8] = d[0];
        to[9] = d[2];
        to[10] = d[1];
        to[11] = d[3];
        to += TINYFUSE_COLUMN;
        a += step;
        b += step;
        d += step;
    }
}

TINYFUSE_INLINE void tinyfuse_quad_row(tinyfuse_quad *q, const int16_t *columns, int line)
{
    const int32_t *const m = q->multiplier;
    const int32_t rounding = q->rounding, out_step = q->out_step;
    const int32_t step = 3 * TINYFUSE_COLUMN + q->column_step / 2;
    const int16_t *const last = q->end;
    int8_t *out = q->out;
    for (; columns != last; columns += step) {
        uint32_t s0 = (uint32_t)q->bias[0], s1 = (uint32_t)q->bias[1];
        uint32_t s2 = (uint32_t)q->bias[2], s3 = (uint32_t)q->bias[3];
        const int16_t *x = columns, *w = q->weights;
        const int16_t *const end = x + 3 * TINYFUSE_COLUMN;
        for (; x != end; x += TINYFUSE_COLUMN) {
            s0 += (uint32_t)(x[0] * w[0] + x[1] * w[1] + x[8] * w[8]);
            s1 += (uint32_t)(x[2] * w[2] + x[3] * w[3] + x[10] * w[10]);
            s2 += (uint32_t)(x[4] * w[4] + x[5] * w[5] + x[9] * w[9]);
            s3 += (uint32_t)(x[6] * w[6] + x[7] * w[7] + x[11] * w[11]);
            w += TINYFUSE_COLUMN;
        }
#define TINYFUSE_QUAD_OUTPUT(i, sum)                                                   \
    out[i] = (int8_t)(line ? tinyfuse_requantize_line((int32_t)(sum), m[i], rounding)  \
                           : tinyfuse_requantize_bounded((int32_t)(sum), m[i],         \
                                                         q->shift[i][0], q->shift[i][1]))
        TINYFUSE_QUAD_OUTPUT(0, s0);
        TINYFUSE_QUAD_OUTPUT(1, s1);
        TINYFUSE_QUAD_OUTPUT(2, s2);
        TINYFUSE_QUAD_OUTPUT(3, s3);
        out += out_step;
    }
}

#endif

/* Output row y. Reads only the input rows of y's own window, writes only out_row. Weights:
   [ceil(in_c / 4)][36], the last four channels ending at in_c; channels as many
   int32_t[8], the biases and multipliers of their lines, or [in_c] tinyfuse_requant. scratch, aligned to 8:
   a tinyfuse_quad; (out_w - 1) * stride_w + 3 columns; in_w * in_c bytes for a row of padding where any
   window reaches above or below the image. */
TINYFUSE_INLINE void tinyfuse_depthwise_3x3_body(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                 int8_t *out_row, const int8_t *weights,
                                                 const void *channels, void *scratch, int line)
{
    const int32_t in_c = p->in_c, row_bytes = p->in_w * in_c;
    const int32_t columns = (p->out_w - 1) * p->stride_w + 3;
    /* columns left of the image, and in it */
    const int32_t left = tinyfuse_min(p->pad_left, columns);
    const int32_t inside = tinyfuse_clamp(columns - left, 0, p->in_w);
    tinyfuse_quad *const q = (tinyfuse_quad *)scratch;
    int16_t *const first = (int16_t *)(void *)(q + 1);
    int8_t *const padding = (int8_t *)(first + TINYFUSE_COLUMN * columns);
    const int8_t *rows[3];
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
    q->rounding = tinyfuse_line_rounding(p->out_zero_point);
    q->out_step = in_c;
    q->column_step = (p->stride_w - 3) * TINYFUSE_COLUMN * 2;
    q->end = first + p->out_w * p->stride_w * TINYFUSE_COLUMN;
    for (done = 0; done < in_c; done += 4) {
        const int32_t c = tinyfuse_min(done, in_c - 4);
        q->out = out_row + c;
        tinyfuse_quad_load(q, weights,
                           line ? (const void *)((const int32_t *)channels + 2 * done)
                                : (const void *)((const tinyfuse_requant *)channels + c),
                           2 * p->out_zero_point + 1, line);
        weights += 36;
        if (inside > 0) {
            tinyfuse_quad_columns(rows[0] + c, rows[1] + c, rows[2] + c, inside, in_c,
                                  first + TINYFUSE_COLUMN * left);
        }
        tinyfuse_quad_row(q, first, line);
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(out_row, p->out_w * in_c, p->act_min, p->act_max);
    }
}

TINYFUSE_SHARED void tinyfuse_depthwise_3x3_line(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                 int8_t *out_row, const int8_t *weights,
                                                 const void *channels, void *scratch)
{
    tinyfuse_depthwise_3x3_body(p, in, y, out_row, weights, channels, scratch, 1);
}

TINYFUSE_SHARED void tinyfuse_depthwise_3x3_bounded(const tinyfuse_conv *p, const int8_t *in,
                                                    int32_t y, int8_t *out_row,
                                                    const int8_t *weights, const void *channels,
                                                    void *scratch)
{
    tinyfuse_depthwise_3x3_body(p, in, y, out_row, weights, channels, scratch, 0);
}

/* Output row y, as tinyfuse_depthwise_3x3_body; `line` is a constant. */
TINYFUSE_INLINE void tinyfuse_depthwise_3x3_row_s8(const tinyfuse_conv *p, const int8_t *in,
                                                   int32_t y, int8_t *out_row,
                                                   const int8_t *weights, const void *channels,
                                                   void *scratch, int line)
{
    (line ? tinyfuse_depthwise_3x3_line : tinyfuse_depthwise_3x3_bounded)(p, in, y, out_row, weights,
                                                                          channels, scratch);
}

#endif
