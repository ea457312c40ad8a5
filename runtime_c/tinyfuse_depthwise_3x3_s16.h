/* Depthwise 3x3 convolution of int16 data, NHWC, one output row a call: two channels at a time, whose rows are first
   regrouped so that values above each other share a word, where every sum, bias included, is proven to stay within
   int32. */
#ifndef TINYFUSE_DEPTHWISE_3X3_S16_H
#define TINYFUSE_DEPTHWISE_3X3_S16_H

#include "tinyfuse_conv.h"
#include "tinyfuse_matmul_s16.h"

/* Weights and constants of two channels, in the order in which assembly loads them. Each column of the kernel is four
   words: the weights of its upper two rows for the first channel and for the second, then of its last row (and 0). */
typedef struct {
    int32_t biases[2];
    int16_t weights[3][4][2];
    int32_t multipliers[2]; /* of tinyfuse_scale_s16 */
} tinyfuse_pair_3x3_s16;

/* Four words a column, of two channels: rows 0 and 1 of the first channel, and of the second; then row 2, in the lower
   half; what is in the upper one is multiplied by 0. */
typedef struct {
    uint32_t words[4];
} tinyfuse_column_s16;

/* The job of a row of two channels; assembly knows the offsets. */
typedef struct {
    int32_t out_step;  /* bytes from a pixel to the next */
    int32_t step;      /* bytes of columns from a window's end to the start of the next */
    const void *end;   /* of the last window, and a step */
    const tinyfuse_column_s16 *columns;
    const tinyfuse_pair_3x3_s16 *pair;
    int16_t *out;
} tinyfuse_windows_3x3_s16;

#if TINYFUSE_DSP
typedef char tinyfuse_check_windows_s16[offsetof(tinyfuse_windows_3x3_s16, out) == 20 ? 1 : -1];
#endif

/* The arguments of tinyfuse_regroup_s16 for assembly, which knows the offsets. */
typedef struct {
    const int8_t *rows[3];
    int32_t offset, step;
    tinyfuse_column_s16 *to, *end;
} tinyfuse_regrouping_s16;

#if TINYFUSE_DSP
typedef char tinyfuse_check_regrouping_s16[offsetof(tinyfuse_regrouping_s16, end) == 24 ? 1 : -1];
#endif

/* Makes the words of `count` columns. rows[i] + offset is a column's value of the first of two channels; the offset
   grows by `step` bytes. */
TINYFUSE_INLINE tinyfuse_column_s16 *tinyfuse_regroup_s16(const int8_t *const *rows, int32_t offset, int32_t step,
                                                          int32_t count, tinyfuse_column_s16 *to)
{
#if TINYFUSE_DSP
    if (count > 0) {
        const tinyfuse_regrouping_s16 job = {{rows[0], rows[1], rows[2]}, offset, step, to, to + count};
        TINYFUSE_ARGUMENT(const tinyfuse_regrouping_s16 *, arguments, &job);
        __asm volatile(TINYFUSE_ASM_BEGIN
                       "ldm r0, {r1, r2, r3, r4, r5, r6, r7}\n\t"
                       "1:\n\t"
                       "ldr r8, [r1, r4]\n\t"
                       "ldr r9, [r2, r4]\n\t"
                       "ldr r10, [r3, r4]\n\t"
                       "add r4, r4, r5\n\t"
                       "pkhbt r12, r8, r9, lsl #16\n\t"
                       "pkhtb r8, r9, r8, asr #16\n\t"
                       "lsr r9, r10, #16\n\t"
                       "strd r12, r8, [r6], #8\n\t"
                       "strd r10, r9, [r6], #8\n\t"
                       "cmp r6, r7\n\t"
                       "bne 1b\n\t" TINYFUSE_ASM_END
                       :
                       : "r"(arguments)
                       : TINYFUSE_ASM_CLOBBERS);
    }
    return to + count;
#else
    for (; count > 0; --count) {
        const uint32_t a = tinyfuse_load_u32(rows[0] + offset), b = tinyfuse_load_u32(rows[1] + offset);
        const uint32_t c = tinyfuse_load_u32(rows[2] + offset);
        to->words[0] = (a & 0xFFFFu) | b << 16;
        to->words[1] = a >> 16 | (b & 0xFFFF0000u);
        to->words[2] = c;
        to->words[3] = c >> 16;
        ++to;
        offset += step;
    }
    return to;
#endif
}

#if TINYFUSE_DSP

/* r0 columns, r1 the pair, r2, r3 sums, r12 out; the rest is loaded when it is needed. */
#define TINYFUSE_COLUMN_3X3_S16          \
    "ldm r0!, {r4, r5, r6, r7}\n\t"      \
    "ldm r1!, {r8, r9, r10, r11}\n\t"    \
    "smlad r2, r4, r8, r2\n\t"           \
    "smlad r3, r5, r9, r3\n\t"           \
    "smlad r2, r6, r10, r2\n\t"          \
    "smlad r3, r7, r11, r3\n\t"
#define TINYFUSE_WINDOWS_3X3_S16(saturate)                                                          \
    __asm volatile(TINYFUSE_ASM_BEGIN                                                               \
                   "mov lr, r0\n\t"                                                                 \
                   "ldrd r0, r1, [lr, #12]\n\t"                                                     \
                   "ldr r12, [lr, #20]\n\t"                                                         \
                   "1:\n\t"                                                                         \
                   "ldm r1!, {r2, r3}\n\t" TINYFUSE_COLUMN_3X3_S16 TINYFUSE_COLUMN_3X3_S16          \
                   TINYFUSE_COLUMN_3X3_S16                                                          \
                   "ldm r1, {r4, r5}\n\t"                                                           \
                   "ldm lr, {r6, r7, r8}\n\t"                                                       \
                   "sub r1, r1, #56\n\t"                                                            \
                   "smmulr r2, r2, r4\n\t"                                                          \
                   "smmulr r3, r3, r5\n\t"                                                          \
                   "add r0, r0, r7\n\t" saturate("r2") saturate("r3")                               \
                   "pkhbt r2, r2, r3, lsl #16\n\t"                                                  \
                   "cmp r0, r8\n\t"                                                                 \
                   "str r2, [r12]\n\t"                                                              \
                   "add r12, r12, r6\n\t"                                                           \
                   "bne 1b\n\t" TINYFUSE_ASM_END                                                    \
                   :                                                                                \
                   : "r"(arguments)                                                                 \
                   : TINYFUSE_ASM_CLOBBERS)
#define TINYFUSE_SIGNED_3X3_S16(s) "ssat " s ", #16, " s "\n\t"
#define TINYFUSE_POSITIVE_3X3_S16(s) "usat " s ", #15, " s "\n\t"

TINYFUSE_INLINE void tinyfuse_windows_of_pair_s16(const tinyfuse_windows_3x3_s16 *p, int positive)
{
    TINYFUSE_ARGUMENT(const tinyfuse_windows_3x3_s16 *, arguments, p);
    if (positive != 0) {
        TINYFUSE_WINDOWS_3X3_S16(TINYFUSE_POSITIVE_3X3_S16);
    } else {
        TINYFUSE_WINDOWS_3X3_S16(TINYFUSE_SIGNED_3X3_S16);
    }
}

#else

/* Returns the lower and the upper half of a column's word times two weights, summed. */
TINYFUSE_INLINE int32_t tinyfuse_half_products(uint32_t word, const int16_t *weights)
{
    return (int16_t)word * weights[0] + (int16_t)(word >> 16) * weights[1];
}

TINYFUSE_INLINE void tinyfuse_windows_of_pair_s16(const tinyfuse_windows_3x3_s16 *p, int positive)
{
    const uint8_t *at = (const uint8_t *)p->columns;
    uint8_t *out = (uint8_t *)p->out;
    int32_t kx, i;
    while (at != p->end) {
        int32_t sums[2];
        int16_t scaled[2];
        memcpy(sums, p->pair->biases, sizeof sums);
        for (kx = 0; kx < 3; ++kx) {
            tinyfuse_column_s16 column;
            memcpy(&column, at, sizeof column);
            for (i = 0; i < 2; ++i) {
                sums[i] += tinyfuse_half_products(column.words[i], p->pair->weights[kx][i]);
                sums[i] += tinyfuse_half_products(column.words[2 + i], p->pair->weights[kx][2 + i]);
            }
            at += sizeof column;
        }
        for (i = 0; i < 2; ++i) {
            const int32_t high = tinyfuse_high_multiply_add(0, sums[i], p->pair->multipliers[i]);
            scaled[i] = (int16_t)tinyfuse_clamp(high, positive ? 0 : -32768, 32767);
        }
        memcpy(out, scaled, sizeof scaled);
        out += p->out_step;
        at += p->step;
    }
}

#endif

/* Computes one row of two channels. */
TINYFUSE_INLINE void tinyfuse_depthwise_pair_s16(const tinyfuse_conv *p, const int8_t *const *rows, int32_t channel,
                                                 const tinyfuse_pair_3x3_s16 *pair, tinyfuse_column_s16 *columns,
                                                 int16_t *out_row, int positive)
{
    const int32_t count = (p->out_w - 1) * p->stride_w + 3, step = 2 * p->in_c;
    const int32_t before = tinyfuse_min(tinyfuse_max(p->pad_left, 0), count);
    const int32_t inside = tinyfuse_max(tinyfuse_min(p->in_w - tinyfuse_max(-p->pad_left, 0), count - before), 0);
    tinyfuse_column_s16 *to = columns;
    tinyfuse_windows_3x3_s16 w;
    memset(to, 0, (size_t)before * sizeof *to);
    to = tinyfuse_regroup_s16(rows, tinyfuse_max(-p->pad_left, 0) * step + 2 * channel, step, inside, to + before);
    memset(to, 0, (size_t)(count - before - inside) * sizeof *to);
    w.out_step = 2 * p->out_c;
    w.step = (p->stride_w - 3) * (int32_t)sizeof *columns;
    w.end = (const uint8_t *)columns + (ptrdiff_t)(p->out_w * p->stride_w) * (int32_t)sizeof *columns;
    w.columns = columns;
    w.pair = pair;
    w.out = out_row + channel;
    tinyfuse_windows_of_pair_s16(&w, positive);
}

#define TINYFUSE_DEPTHWISE_PAIR_S16(name, positive)                                                                \
    TINYFUSE_SHARED void name(const tinyfuse_conv *p, const int8_t *const *rows, int32_t channel,                  \
                              const tinyfuse_pair_3x3_s16 *pair, tinyfuse_column_s16 *columns, int16_t *out_row)   \
    {                                                                                                              \
        tinyfuse_depthwise_pair_s16(p, rows, channel, pair, columns, out_row, positive);                           \
    }
TINYFUSE_DEPTHWISE_PAIR_S16(tinyfuse_depthwise_pair_signed_s16, 0)
TINYFUSE_DEPTHWISE_PAIR_S16(tinyfuse_depthwise_pair_positive_s16, 1)

/* Computes output row y; in_c is at least 2, dilation_w is 1. Reads only the input rows of y's own window, writes
   only out_row. `pairs` of channels, the last one ending at in_c; `form`, a constant, is TINYFUSE_ONCE or
   TINYFUSE_ONCE_POSITIVE. scratch, aligned to 8: (out_w - 1) * stride_w + 3 tinyfuse_column_s16, then in_w * in_c
   zeros where any window reaches above or below the image. */
TINYFUSE_INLINE void tinyfuse_depthwise_3x3_row_s16(const tinyfuse_conv *p, const int16_t *in, int32_t y,
                                                    int16_t *out_row, const tinyfuse_pair_3x3_s16 *pairs,
                                                    void *scratch, int form)
{
    tinyfuse_column_s16 *const columns = (tinyfuse_column_s16 *)scratch;
    const int32_t row_bytes = 2 * p->in_w * p->in_c;
    int8_t *const padding = (int8_t *)(columns + (p->out_w - 1) * p->stride_w + 3);
    const int8_t *rows[3];
    int32_t ky, channel;
    int padded = 0;
    for (ky = 0; ky < 3; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        const int inside = iy >= 0 && iy < p->in_h;
        rows[ky] = inside ? (const int8_t *)in + (ptrdiff_t)(iy % p->in_ring) * row_bytes : padding;
        padded |= !inside;
    }
    if (padded != 0) {
        memset(padding, 0, (size_t)row_bytes);
    }
    for (channel = 0; channel < p->in_c; channel += 2) {
        const int32_t from = tinyfuse_min(channel, p->in_c - 2);
        if (tinyfuse_positive(form) != 0) {
            tinyfuse_depthwise_pair_positive_s16(p, rows, from, pairs++, columns, out_row);
        } else {
            tinyfuse_depthwise_pair_signed_s16(p, rows, from, pairs++, columns, out_row);
        }
    }
    if (tinyfuse_narrower_s16(p->act_min, p->act_max, form) != 0) {
        tinyfuse_clamp_row_s16(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
    }
}

#endif
