/* Depthwise 3x3 convolution with depth multiplier 1 and dilation 1, int8 NHWC, one output row a call,
   requantized in the bounded form. At least four channels; any stride and padding.

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
    int32_t requant[4][3];                /* 88: multiplier, shift, rounding << shift */
    int8_t *out;                          /* 136 */
    int32_t out_step;                     /* 140: bytes to the next pixel's output */
    int32_t column_step;                  /* bytes from behind a pixel's columns to the next one's */
    const int16_t *end;                   /* first column of the pixel that is one too many */
} tinyfuse_quad;

#if TINYFUSE_DSP

/* Loads weights (nine words) and requantization of four channels. */
TINYFUSE_INLINE void tinyfuse_quad_load(tinyfuse_quad *q, const int8_t *weights,
                                        const tinyfuse_requant *channels, int32_t rounding)
{
    int32_t *bias = q->bias;
    int16_t *to = q->weights;
#define TINYFUSE_QUAD_COLUMN             \
    "ldm %[w]!, {r4, r5, r6}\n\t"        \
    "sxtb16 r8, r4\n\t"                  \
    "sxtb16 r9, r4, ror #8\n\t"          \
    "sxtb16 r10, r5\n\t"                 \
    "sxtb16 r12, r5, ror #8\n\t"         \
    "stm %[to]!, {r8, r9, r10, r12}\n\t" \
    "sxtb16 r8, r6\n\t"                  \
    "sxtb16 r9, r6, ror #8\n\t"          \
    "stm %[to]!, {r8, r9}\n\t"
#define TINYFUSE_QUAD_CHANNEL                 \
    "ldm %[c]!, {r4, r5, r6}\n\t"             \
    "lsl r8, %[rounding], r6\n\t"             \
    "str r4, [%[bias]], #4\n\t"               \
    "stm %[to]!, {r5, r6, r8}\n\t"
    __asm volatile(TINYFUSE_QUAD_COLUMN TINYFUSE_QUAD_COLUMN TINYFUSE_QUAD_COLUMN
                       TINYFUSE_QUAD_CHANNEL TINYFUSE_QUAD_CHANNEL TINYFUSE_QUAD_CHANNEL
                           TINYFUSE_QUAD_CHANNEL
                   : [w] "+r"(weights), [c] "+r"(channels), [to] "+r"(to), [bias] "+r"(bias)
                   : [rounding] "r"(rounding)
                   : "r4", "r5", "r6", "r8", "r9", "r10", "r12", "memory");
}

/* Widens and regroups `count` columns of rows a, b, d, `step` bytes apart. */
TINYFUSE_INLINE void tinyfuse_quad_columns(const int8_t *a, const int8_t *b, const int8_t *d,
                                           int32_t count, int32_t step, int16_t *to)
{
    int16_t *const end = to + TINYFUSE_COLUMN * count;
    int32_t at = 0;
    uint32_t u, v, w, x;
    __asm volatile("1:\n\t"
                   "ldr %[u], [%[a], %[at]]\n\t"
                   "ldr %[v], [%[b], %[at]]\n\t"
                   "pkhbt %[w], %[u], %[v], lsl #16\n\t"
                   "pkhtb %[x], %[v], %[u], asr #16\n\t"
                   "sxtb16 %[u], %[w]\n\t"
                   "sxtb16 %[v], %[w], ror #8\n\t"
                   "strd %[u], %[v], [%[to]], #8\n\t"
                   "sxtb16 %[u], %[x]\n\t"
                   "sxtb16 %[v], %[x], ror #8\n\t"
                   "strd %[u], %[v], [%[to]], #8\n\t"
                   "ldr %[w], [%[d], %[at]]\n\t"
                   "sxtb16 %[u], %[w]\n\t"
                   "sxtb16 %[v], %[w], ror #8\n\t"
                   "strd %[u], %[v], [%[to]], #8\n\t"
                   "add %[at], %[step]\n\t"
                   "cmp %[to], %[end]\n\t"
                   "bne 1b"
                   : [to] "+r"(to), [at] "+r"(at), [u] "=&r"(u), [v] "=&r"(v), [w] "=&r"(w),
                     [x] "=&r"(x)
                   : [a] "r"(a), [b] "r"(b), [d] "r"(d), [step] "r"(step), [end] "r"(end)
                   : "cc", "memory");
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
#define TINYFUSE_QUAD_REQUANTIZE(sum, ramp)  \
    "ldm r1!, {r6, r8, r9}\n\t"              \
    "add r9, " sum "\n\t" ramp(sum)          \
    "smmlar " sum ", " sum ", r6, r9\n\t"    \
    "asr " sum ", " sum ", r8\n\t"           \
    "ssat " sum ", #8, " sum ", asr #1\n\t"
#define TINYFUSE_QUAD_RAMP(sum) ""
#define TINYFUSE_QUAD_SIGN(sum) "add r9, r9, " sum ", asr #31\n\t"
/* One row: r0 columns, r1 the tinyfuse_quad, r2 to r5 sums. */
TINYFUSE_INLINE void tinyfuse_quad_row(tinyfuse_quad *q, const int16_t *columns, int ramp)
{
    register const int16_t *r0 __asm("r0") = columns;
    register tinyfuse_quad *r1 __asm("r1") = q;
#define TINYFUSE_QUAD_LOOP(ramp)                                                           \
    "1:\n\t"                                                                               \
    "ldm r1!, {r2, r3, r4, r5}\n\t" TINYFUSE_QUAD_PRODUCTS TINYFUSE_QUAD_PRODUCTS          \
        TINYFUSE_QUAD_PRODUCTS TINYFUSE_QUAD_REQUANTIZE("r2", ramp)                        \
            TINYFUSE_QUAD_REQUANTIZE("r3", ramp) TINYFUSE_QUAD_REQUANTIZE("r4", ramp)      \
                TINYFUSE_QUAD_REQUANTIZE("r5", ramp)                                       \
    "ldm r1, {r6, r8, r9, r10}\n\t"                                                        \
    "strb r2, [r6]\n\t"                                                                    \
    "strb r3, [r6, #1]\n\t"                                                                \
    "strb r4, [r6, #2]\n\t"                                                                \
    "strb r5, [r6, #3]\n\t"                                                                \
    "add r6, r8\n\t"                                                                       \
    "str r6, [r1], #-136\n\t"                                                              \
    "add r0, r9\n\t"                                                                       \
    "cmp r0, r10\n\t"                                                                      \
    "bne 1b"
    if (ramp) {
        __asm volatile(TINYFUSE_QUAD_LOOP(TINYFUSE_QUAD_RAMP)
                       : "+r"(r0), "+r"(r1)
                       :
                       : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr",
                         "cc", "memory");
    } else {
        __asm volatile(TINYFUSE_QUAD_LOOP(TINYFUSE_QUAD_SIGN)
                       : "+r"(r0), "+r"(r1)
                       :
                       : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr",
                         "cc", "memory");
    }
}

#else

TINYFUSE_INLINE void tinyfuse_quad_load(tinyfuse_quad *q, const int8_t *weights,
                                        const tinyfuse_requant *channels, int32_t rounding)
{
    int i;
    for (i = 0; i < 3 * TINYFUSE_COLUMN; i += 4) {
        q->weights[i] = weights[i];
        q->weights[i + 1] = weights[i + 2];
        q->weights[i + 2] = weights[i + 1];
        q->weights[i + 3] = weights[i + 3];
    }
    for (i = 0; i < 4; ++i) {
        q->bias[i] = channels[i].bias;
        q->requant[i][0] = channels[i].multiplier;
        q->requant[i][1] = channels[i].shift;
        q->requant[i][2] = rounding;
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

TINYFUSE_INLINE void tinyfuse_quad_row(tinyfuse_quad *q, const int16_t *columns, int ramp)
{
    static const int8_t lower[4] = {8, 10, 9, 11};
    int i, k;
    while (columns != q->end) {
        for (i = 0; i < 4; ++i) {
            const int32_t *r = q->requant[i];
            int32_t sum = q->bias[i];
            for (k = 0; k < 3 * TINYFUSE_COLUMN; k += TINYFUSE_COLUMN) {
                const int16_t *x = columns + k, *w = q->weights + k;
                sum += x[2 * i] * w[2 * i] + x[2 * i + 1] * w[2 * i + 1] +
                       x[lower[i]] * w[lower[i]];
            }
            q->out[i] = (int8_t)tinyfuse_requantize_bounded(sum, r[0], r[1], r[2], ramp);
        }
        q->out += q->out_step;
        columns += 3 * TINYFUSE_COLUMN + q->column_step / 2;
    }
}

#endif

/* Output row y. Reads only the input rows of y's own window, writes only out_row. Weights:
   [ceil(in_c / 4)][36], the last four channels ending at in_c. scratch, aligned to 8: a
   tinyfuse_quad; (out_w - 1) * stride_w + 3 columns; in_w * in_c bytes for a row of padding. */
TINYFUSE_INLINE void tinyfuse_depthwise_3x3_body(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                 int8_t *out_row, const int8_t *weights,
                                                 const tinyfuse_requant *channels, void *scratch,
                                                 int ramp)
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
    q->out_step = in_c;
    q->column_step = (p->stride_w - 3) * TINYFUSE_COLUMN * 2;
    q->end = first + p->out_w * p->stride_w * TINYFUSE_COLUMN;
    for (done = 0; done < in_c; done += 4) {
        const int32_t c = tinyfuse_min(done, in_c - 4);
        q->out = out_row + c;
        tinyfuse_quad_load(q, weights, channels + c, 2 * p->out_zero_point + 1);
        weights += 36;
        if (inside > 0) {
            tinyfuse_quad_columns(rows[0] + c, rows[1] + c, rows[2] + c, inside, in_c,
                                  first + TINYFUSE_COLUMN * left);
        }
        tinyfuse_quad_row(q, first, ramp);
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(out_row, p->out_w * in_c, p->act_min, p->act_max);
    }
}

TINYFUSE_SHARED void tinyfuse_depthwise_3x3_ramp(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                 int8_t *out_row, const int8_t *weights,
                                                 const tinyfuse_requant *channels, void *scratch)
{
    tinyfuse_depthwise_3x3_body(p, in, y, out_row, weights, channels, scratch, 1);
}

TINYFUSE_SHARED void tinyfuse_depthwise_3x3_plain(const tinyfuse_conv *p, const int8_t *in,
                                                  int32_t y, int8_t *out_row, const int8_t *weights,
                                                  const tinyfuse_requant *channels, void *scratch)
{
    tinyfuse_depthwise_3x3_body(p, in, y, out_row, weights, channels, scratch, 0);
}

/* Output row y, as tinyfuse_depthwise_3x3_body; `ramp` (a constant): act_min is not below the output
   zero point. */
TINYFUSE_INLINE void tinyfuse_depthwise_3x3_row_s8(const tinyfuse_conv *p, const int8_t *in,
                                                   int32_t y, int8_t *out_row,
                                                   const int8_t *weights,
                                                   const tinyfuse_requant *channels, void *scratch,
                                                   int ramp)
{
    (ramp ? tinyfuse_depthwise_3x3_ramp : tinyfuse_depthwise_3x3_plain)(p, in, y, out_row, weights,
                                                                        channels, scratch);
}

#endif
