/* Depthwise 3x3 convolution with depth multiplier 1, dilation 1 and stride 1 or 2 along a row, int8 NHWC,
   single-rounding requantization, one output row a call, for cores with the DSP extension: a channel's weights stay
   in registers for a row. At least four channels; any padding, any stride of rows.

   Four channels are computed at a time. First the three input rows are converted to int16 and regrouped, two columns
   to a record, so that taps above each other in the upper two rows, and beside each other in the lower one, share a
   word. Then each channel goes from record to record: five multiplications an output, and with stride 1 two outputs
   per record. Outputs are collected in the record, where those of four channels lie side by side, and are stored four
   at a time.

   A record: [4] of int16 {row 0, row 1 of the left column}, {row 0, row 1 of the right one}, {row 2 of both}; then
   the four outputs of each of two pixels. */
#ifndef TINYFUSE_DEPTHWISE_WEIGHT_STATIONARY_H
#define TINYFUSE_DEPTHWISE_WEIGHT_STATIONARY_H

#include "tinyfuse_conv.h"

enum { TINYFUSE_DW_WEIGHT_STATIONARY_RECORD = 56 };  /* bytes of a record */
enum { TINYFUSE_DW_WEIGHT_STATIONARY_OUTPUTS = 48 }; /* where its outputs are */

/* A row, and where its groups of four channels come from and go; assembly knows the offsets. `channel`, `channels` and
   `out` go from group to group. */
typedef struct {
    int32_t channel; /* the group's first */
    const int8_t *row0, *row1, *row2;
    int32_t step;       /* 16: bytes from a pixel to the next one, of input and output */
    int8_t *inside;     /* records with columns of the image; with `lead` the first record's left column is padding */
    int8_t *inside_end; /* 24: end of these; if `last` is set, one more follows, whose right column is padding */
    int8_t *last;
    uint32_t zeros; /* 32: four times the input zero point */
    int32_t lead;
    int8_t *records;         /* 40 */
    /* [4][7]: weights of the columns 0, 1, 2 of the upper rows, of the columns 0 1 and 1 2 of the lower one, each times
       256; bias and multiplier; or [4][8], with a shift */
    const int32_t *channels;
    int8_t *end;             /* 48: the record after those of whole steps */
    int32_t odd;             /* whether one pixel is left then */
    int32_t rounding;        /* 56 */
    int8_t *out;             /* 60 */
    int32_t last_channel;    /* the last group's: groups may overlap with it */
} tinyfuse_dw_weight_stationary;

#if TINYFUSE_DSP

typedef char tinyfuse_check_weight_stationary[offsetof(tinyfuse_dw_weight_stationary, out) == 60 ? 1 : -1];

/* Regrouping: r1 offset of a column in the rows r2, r3, r7; r11 step; r12 the record; lr the end; r4, r5, r9 the left
   column, r6, r8, r10 the right one. */
#define TINYFUSE_DW_WEIGHT_STATIONARY_REGROUP \
    "pkhbt r0, r4, r5, lsl #16\n\t"   \
    "pkhtb r5, r5, r4, asr #16\n\t"   \
    "pkhbt r4, r6, r8, lsl #16\n\t"   \
    "pkhtb r8, r8, r6, asr #16\n\t"   \
    "pkhbt r6, r9, r10, lsl #16\n\t"  \
    "pkhtb r10, r10, r9, asr #16\n\t" \
    "sxtb16 r9, r0\n\t"               \
    "str r9, [r12], #4\n\t"           \
    "sxtb16 r9, r4\n\t"               \
    "str r9, [r12], #4\n\t"           \
    "sxtb16 r9, r6\n\t"               \
    "str r9, [r12], #4\n\t"           \
    "sxtb16 r0, r0, ror #8\n\t"       \
    "sxtb16 r4, r4, ror #8\n\t"       \
    "sxtb16 r6, r6, ror #8\n\t"       \
    "stm r12!, {r0, r4, r6}\n\t"      \
    "sxtb16 r0, r5\n\t"               \
    "sxtb16 r4, r8\n\t"               \
    "sxtb16 r6, r10\n\t"              \
    "stm r12!, {r0, r4, r6}\n\t"      \
    "sxtb16 r5, r5, ror #8\n\t"       \
    "sxtb16 r8, r8, ror #8\n\t"       \
    "sxtb16 r10, r10, ror #8\n\t"     \
    "stm r12!, {r5, r8, r10}\n\t"     \
    "add r12, #8\n\t"

/* The loop of channel c: r0 the record, r1 and lr sums, r2 to r6 weights, r7 bias, r8 multiplier, r9 rounding or
   shift, r10 to r12 what the record has of the channel. On the stack the ends of the four channels, then the
   tinyfuse_dw_weight_stationary's address. */
#define TINYFUSE_DW_WEIGHT_STATIONARY_NEXT "adds r0, #56\n\t"
#define TINYFUSE_DW_WEIGHT_STATIONARY_LOAD "ldm r0, {r10, r11, r12}\n\t"
#define TINYFUSE_DW_WEIGHT_STATIONARY_SCALE(sum) "smmla " sum ", " sum ", r8, r9\n\t"
#define TINYFUSE_DW_WEIGHT_STATIONARY_PUT(sum, at) "strb " sum ", [r0, #-(" at " + 11 * \\c)]\n\t"
#define TINYFUSE_DW_WEIGHT_STATIONARY_OUTPUT_SINGLE_ROUNDING \
    TINYFUSE_DW_WEIGHT_STATIONARY_SCALE("r1") TINYFUSE_SINGLE_ROUNDING_SATURATE("r1") \
    TINYFUSE_DW_WEIGHT_STATIONARY_PUT("r1", "8")
#define TINYFUSE_DW_WEIGHT_STATIONARY_OUTPUTS_SINGLE_ROUNDING                                      \
    TINYFUSE_DW_WEIGHT_STATIONARY_SCALE("r1") TINYFUSE_DW_WEIGHT_STATIONARY_SCALE("lr")            \
    TINYFUSE_SINGLE_ROUNDING_SATURATE("r1") TINYFUSE_SINGLE_ROUNDING_SATURATE("lr")                \
    TINYFUSE_DW_WEIGHT_STATIONARY_PUT("r1", "8") TINYFUSE_DW_WEIGHT_STATIONARY_PUT("lr", "4")
#define TINYFUSE_DW_WEIGHT_STATIONARY_OUTPUT_OWN_SHIFTS \
    TINYFUSE_OWN_SHIFT("r1", "r8", "r9") TINYFUSE_DW_WEIGHT_STATIONARY_PUT("r1", "8")
#define TINYFUSE_DW_WEIGHT_STATIONARY_OUTPUTS_OWN_SHIFTS \
    TINYFUSE_DW_WEIGHT_STATIONARY_OUTPUT_OWN_SHIFTS \
    TINYFUSE_OWN_SHIFT("lr", "r8", "r9") TINYFUSE_DW_WEIGHT_STATIONARY_PUT("lr", "4")
#define TINYFUSE_DW_WEIGHT_STATIONARY_ONE(form) \
    "smlad r1, r10, r2, r7\n\t" TINYFUSE_DW_WEIGHT_STATIONARY_NEXT \
    "smlad r1, r11, r3, r1\n\t"    \
    "smlad r1, r12, r5, r1\n\t" TINYFUSE_DW_WEIGHT_STATIONARY_LOAD \
    "smlad r1, r10, r4, r1\n\t"    \
    "smlabt r1, r12, r6, r1\n\t" TINYFUSE_DW_WEIGHT_STATIONARY_OUTPUT_##form
#define TINYFUSE_DW_WEIGHT_STATIONARY_TWO(form) \
    "smlad r1, r10, r2, r7\n\t" TINYFUSE_DW_WEIGHT_STATIONARY_NEXT \
    "smlad lr, r11, r2, r7\n\t"  \
    "smlad r1, r11, r3, r1\n\t"  \
    "smlatb lr, r12, r5, lr\n\t" \
    "smlad r1, r12, r5, r1\n\t" TINYFUSE_DW_WEIGHT_STATIONARY_LOAD \
    "smlad r1, r10, r4, r1\n\t"  \
    "smlad lr, r10, r3, lr\n\t"  \
    "smlabt r1, r12, r6, r1\n\t" \
    "smlad lr, r11, r4, lr\n\t"  \
    "smlad lr, r12, r6, lr\n\t" TINYFUSE_DW_WEIGHT_STATIONARY_OUTPUTS_##form
#define TINYFUSE_DW_WEIGHT_STATIONARY_BYTES_SINGLE_ROUNDING "28"
#define TINYFUSE_DW_WEIGHT_STATIONARY_BYTES_OWN_SHIFTS "32"
#define TINYFUSE_DW_WEIGHT_STATIONARY_LOAD_SINGLE_ROUNDING "ldm r1, {r2, r3, r4, r5, r6, r7, r8}\n\t"
#define TINYFUSE_DW_WEIGHT_STATIONARY_LOAD_OWN_SHIFTS "ldm r1, {r2, r3, r4, r5, r6, r7, r8, r9}\n\t"
#define TINYFUSE_DW_WEIGHT_STATIONARY_WEIGHTS(form)                   \
    "ldr r2, [sp, #16]\n\t"                                     \
    "ldrd r0, r1, [r2, #40]\n\t"                                \
    "add r0, #12 * \\c\n\t"                                     \
    "add r1, #" TINYFUSE_DW_WEIGHT_STATIONARY_BYTES_##form " * \\c\n\t" \
    TINYFUSE_DW_WEIGHT_STATIONARY_LOAD_##form                         \
    "ldm r0, {r10, r11, r12}\n\t"                               \
    "ldr lr, [sp, #4 * \\c]\n\t"                                \
    "subs r1, lr, r0\n\t"                                       \
    "beq 2f\n\t"                                                \
    "lsls r1, r1, #28\n\t" /* 56 times an odd count has bit 3 */ \
    "bmi 4f\n\t"
/* Two records an iteration; the first iteration of an odd count does one. */
#define TINYFUSE_DW_WEIGHT_STATIONARY_CHANNEL_1(form) \
    TINYFUSE_DW_WEIGHT_STATIONARY_WEIGHTS(form) \
    "1:\n\t" TINYFUSE_DW_WEIGHT_STATIONARY_TWO(form) \
    "4:\n\t" TINYFUSE_DW_WEIGHT_STATIONARY_TWO(form) \
    "ldr r1, [sp, #4 * \\c]\n\t"   \
    "cmp r0, r1\n\t"               \
    "bne 1b\n\t"                   \
    "2:\n\t"                       \
    "ldr r1, [sp, #16]\n\t"        \
    "ldr r1, [r1, #52]\n\t"        \
    "cmp r1, #0\n\t"               \
    "beq 3f\n\t" TINYFUSE_DW_WEIGHT_STATIONARY_ONE(form) "3:\n\t"
#define TINYFUSE_DW_WEIGHT_STATIONARY_CHANNEL_2(form) \
    TINYFUSE_DW_WEIGHT_STATIONARY_WEIGHTS(form) \
    "1:\n\t" TINYFUSE_DW_WEIGHT_STATIONARY_ONE(form) \
    "4:\n\t" TINYFUSE_DW_WEIGHT_STATIONARY_ONE(form) \
    "cmp r0, lr\n\t"                     \
    "bne 1b\n\t"                         \
    "2:\n\t"
/* From the records r0 to the output row r1, r2 bytes a pixel; r3 the end. */
#define TINYFUSE_DW_WEIGHT_STATIONARY_STORE_1 \
    "ldr r6, [r4, #52]\n\t"      \
    "cmp r0, r3\n\t"             \
    "beq 2f\n\t"                 \
    "1:\n\t"                     \
    "ldrd r4, r5, [r0], #56\n\t" \
    "str r4, [r1]\n\t"           \
    "str r5, [r1, r2]\n\t"       \
    "add r1, r1, r2, lsl #1\n\t" \
    "cmp r0, r3\n\t"             \
    "bne 1b\n\t"                 \
    "2:\n\t"                     \
    "cmp r6, #0\n\t"             \
    "beq 3f\n\t"                 \
    "ldr r4, [r0]\n\t"           \
    "str r4, [r1]\n\t"           \
    "3:\n\t"
#define TINYFUSE_DW_WEIGHT_STATIONARY_STORE_2 \
    "1:\n\t"                     \
    "ldr r4, [r0], #56\n\t"      \
    "str r4, [r1]\n\t"           \
    "add r1, r2\n\t"             \
    "cmp r0, r3\n\t"             \
    "bne 1b\n\t"
#define TINYFUSE_DW_WEIGHT_STATIONARY_ASM(job, stride, form)                                              \
    {                                                                                               \
        TINYFUSE_ARGUMENT(tinyfuse_dw_weight_stationary *, arguments, job);                               \
        __asm volatile(TINYFUSE_ASM_BEGIN                                                           \
                       "9:\n\t"                                                                     \
                       "ldm r0, {r1, r2, r3, r7, r11, r12, lr}\n\t"                                 \
                       "ldrd r4, r6, [r0, #32]\n\t"                                                 \
                       "cmp r6, #0\n\t"                                                             \
                       "beq 3f\n\t"                                                                 \
                       "mov r5, r4\n\t"                                                             \
                       "mov r9, r4\n\t"                                                             \
                       "b 2f\n\t"                                                                   \
                       "1:\n\t"                                                                     \
                       "ldr r4, [r2, r1]\n\t"                                                       \
                       "ldr r5, [r3, r1]\n\t"                                                       \
                       "ldr r9, [r7, r1]\n\t"                                                       \
                       "add r1, r11\n\t"                                                            \
                       "2:\n\t"                                                                     \
                       "ldr r6, [r2, r1]\n\t"                                                       \
                       "ldr r8, [r3, r1]\n\t"                                                       \
                       "ldr r10, [r7, r1]\n\t"                                                      \
                       "add r1, r11\n\t"                                                            \
                       "4:\n\t" TINYFUSE_DW_WEIGHT_STATIONARY_REGROUP                                     \
                       "3:\n\t"                                                                     \
                       "cmp r12, lr\n\t"                                                            \
                       "bne 1b\n\t"                                                                 \
                       "ldr r0, [sp]\n\t"                                                           \
                       "ldr lr, [r0, #28]\n\t"                                                      \
                       "cmp r12, lr\n\t"                                                            \
                       "beq 5f\n\t"                                                                 \
                       "ldr r4, [r2, r1]\n\t"                                                       \
                       "ldr r5, [r3, r1]\n\t"                                                       \
                       "ldr r9, [r7, r1]\n\t"                                                       \
                       "ldr r6, [r0, #32]\n\t"                                                      \
                       "mov r8, r6\n\t"                                                             \
                       "mov r10, r6\n\t"                                                            \
                       "b 4b\n\t"                                                                   \
                       "5:\n\t"                                                                     \
                       "ldr r1, [r0, #48]\n\t"                                                      \
                       "ldr r9, [r0, #56]\n\t"                                                      \
                       "add r2, r1, #12\n\t"                                                        \
                       "add r3, r1, #24\n\t"                                                        \
                       "add r4, r1, #36\n\t"                                                        \
                       "push {r1, r2, r3, r4}\n\t"                                                  \
                       ".irp c, 0, 1, 2, 3\n\t" /* the assembler repeats it: a string has an end */ \
                       TINYFUSE_DW_WEIGHT_STATIONARY_CHANNEL_##stride(form) ".endr\n\t"                   \
                       "pop {r1, r2, r3, r4}\n\t"                                                   \
                       "add r3, r1, #48\n\t"                                                        \
                       "ldr r4, [sp]\n\t"                                                           \
                       "ldr r0, [r4, #40]\n\t"                                                      \
                       "add r0, #48\n\t"                                                            \
                       "ldr r1, [r4, #60]\n\t"                                                      \
                       "ldr r2, [r4, #16]\n\t"                                                      \
                       TINYFUSE_DW_WEIGHT_STATIONARY_STORE_##stride                                       \
                       "ldr r0, [sp]\n\t"                                                           \
                       "ldr r1, [r0]\n\t"                                                           \
                       "ldr r2, [r0, #64]\n\t"                                                      \
                       "subs r2, r2, r1\n\t"                                                        \
                       "beq 8f\n\t"                                                                 \
                       "cmp r2, #4\n\t"                                                             \
                       "it gt\n\t"                                                                  \
                       "movgt r2, #4\n\t"                                                           \
                       "add r1, r2\n\t"                                                             \
                       "ldr r3, [r0, #44]\n\t"                                                      \
                       "ldr r4, [r0, #60]\n\t"                                                      \
                       "add r3, #4 * " TINYFUSE_DW_WEIGHT_STATIONARY_BYTES_##form "\n\t"                  \
                       "add r4, r2\n\t"                                                             \
                       "str r1, [r0]\n\t"                                                           \
                       "str r3, [r0, #44]\n\t"                                                      \
                       "str r4, [r0, #60]\n\t"                                                      \
                       "b 9b\n\t"                                                                   \
                       "8:\n\t" TINYFUSE_ASM_END                                                    \
                       :                                                                            \
                       : "r"(arguments)                                                             \
                       : TINYFUSE_ASM_CLOBBERS);                                                    \
    }

#else

/* Writes one record: a left and a right column of four channels of each row. */
TINYFUSE_INLINE void tinyfuse_dw_weight_stationary_regroup(const int8_t *const *left, const int8_t *const *right,
                                                           int8_t *record)
{
    int32_t c;
    for (c = 0; c < 4; ++c) {
        const int16_t values[6] = {left[0][c], left[1][c], right[0][c], right[1][c], left[2][c], right[2][c]};
        memcpy(record + 12 * c, values, sizeof values);
    }
}

TINYFUSE_INLINE void tinyfuse_dw_weight_stationary_columns(const tinyfuse_dw_weight_stationary *h)
{
    const int8_t *const rows[3] = {h->row0 + h->channel, h->row1 + h->channel, h->row2 + h->channel};
    const int8_t *left[3], *right[3];
    int8_t padding[4], *record = h->inside;
    int32_t i, offset = 0, lead = h->lead;
    memcpy(padding, &h->zeros, sizeof padding);
    for (; record != h->last; record += TINYFUSE_DW_WEIGHT_STATIONARY_RECORD) {
        for (i = 0; i < 3; ++i) {
            left[i] = lead ? padding : rows[i] + offset;
            right[i] = record == h->inside_end ? padding : rows[i] + offset + (lead ? 0 : h->step);
        }
        tinyfuse_dw_weight_stationary_regroup(left, right, record);
        offset += lead ? h->step : 2 * h->step;
        lead = 0;
    }
}

/* Returns a pixel of a channel, whose window begins in the left or, `right` being 1, in the right column of a record. */
TINYFUSE_INLINE int8_t tinyfuse_dw_weight_stationary_output(const tinyfuse_dw_weight_stationary *h,
                                                            const int8_t *record, const int32_t *channel, int right,
                                                            int form)
{
    int16_t x[12], w[10];
    uint32_t sum = (uint32_t)channel[5];
    int i;
    memcpy(x, record, 12);
    memcpy(x + 6, record + TINYFUSE_DW_WEIGHT_STATIONARY_RECORD, 12);
    memcpy(w, channel, sizeof w);
    for (i = 0; i < 3; ++i) {
        const int column = right + i;
        const int16_t *const at = x + 6 * (column / 2);
        sum += (uint32_t)(at[2 * (column & 1)] * w[2 * i] + at[2 * (column & 1) + 1] * w[2 * i + 1]);
        sum += (uint32_t)(at[4 + (column & 1)] * (i < 2 ? w[6 + i] : w[9]));
    }
    return (int8_t)(form == TINYFUSE_SINGLE_ROUNDING_FORM
                        ? tinyfuse_requantize_single_rounding((int32_t)sum, channel[6], h->rounding)
                        : tinyfuse_requantize_own_shift((int32_t)sum, channel[6], channel[7]));
}

#endif

/* Computes all groups of a row; `stride`, 1 or 2, and `form` are constants. */
TINYFUSE_INLINE void tinyfuse_dw_weight_stationary_run(tinyfuse_dw_weight_stationary *h, int32_t stride, int form)
{
#if TINYFUSE_DSP
    if (form == TINYFUSE_SINGLE_ROUNDING_FORM) {
        if (stride == 1) {
            TINYFUSE_DW_WEIGHT_STATIONARY_ASM(h, 1, SINGLE_ROUNDING)
        } else {
            TINYFUSE_DW_WEIGHT_STATIONARY_ASM(h, 2, SINGLE_ROUNDING)
        }
    } else if (stride == 1) {
        TINYFUSE_DW_WEIGHT_STATIONARY_ASM(h, 1, OWN_SHIFTS)
    } else {
        TINYFUSE_DW_WEIGHT_STATIONARY_ASM(h, 2, OWN_SHIFTS)
    }
#else
    const int32_t words = form == TINYFUSE_OWN_SHIFTS_FORM ? 8 : 7;
    for (;;) {
        const int8_t *record;
        int8_t *out = h->out;
        const int32_t step = tinyfuse_min(h->last_channel - h->channel, 4);
        int32_t c, i;
        tinyfuse_dw_weight_stationary_columns(h);
        for (record = h->records; record != h->end + h->odd * TINYFUSE_DW_WEIGHT_STATIONARY_RECORD;
             record += TINYFUSE_DW_WEIGHT_STATIONARY_RECORD) {
            const int32_t pixels = stride == 1 && record != h->end ? 2 : 1;
            for (i = 0; i < pixels; ++i) {
                for (c = 0; c < 4; ++c) {
                    out[c] = tinyfuse_dw_weight_stationary_output(h, record + 12 * c, h->channels + words * c, (int)i, form);
                }
                out += h->step;
            }
        }
        if (step == 0) {
            return;
        }
        h->channel += step;
        h->out += step;
        h->channels += 4 * words;
    }
#endif
}

#define TINYFUSE_DW_WEIGHT_STATIONARY_RUN(name, stride, form)   \
    TINYFUSE_SHARED void name(tinyfuse_dw_weight_stationary *h) \
    {                                                     \
        tinyfuse_dw_weight_stationary_run(h, stride, form);     \
    }
TINYFUSE_DW_WEIGHT_STATIONARY_RUN(tinyfuse_dw_weight_stationary_1, 1, TINYFUSE_SINGLE_ROUNDING_FORM)
TINYFUSE_DW_WEIGHT_STATIONARY_RUN(tinyfuse_dw_weight_stationary_2, 2, TINYFUSE_SINGLE_ROUNDING_FORM)
TINYFUSE_DW_WEIGHT_STATIONARY_RUN(tinyfuse_dw_weight_stationary_own_shifts_1, 1, TINYFUSE_OWN_SHIFTS_FORM)
TINYFUSE_DW_WEIGHT_STATIONARY_RUN(tinyfuse_dw_weight_stationary_own_shifts_2, 2, TINYFUSE_OWN_SHIFTS_FORM)

/* Computes output row y. Reads only the input rows of y's own window, writes only out_row. stride_w is 1 or 2.
   `form`, a constant, isn't TINYFUSE_BOUNDED_FORM. Channels are [ceil(in_c / 4)][4][7 or, with per-channel shifts,
   8], the last four ending at in_c. scratch, aligned to 8: a record for each two columns of ((out_w - 1) * stride_w +
   3), and in_w * in_c bytes for a row of padding where any window reaches above or below the image. */
TINYFUSE_INLINE void tinyfuse_depthwise_weight_stationary_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                                 int8_t *out_row, const int32_t *channels,
                                                                 void *scratch, int form)
{
    const int32_t in_c = p->in_c, row_bytes = p->in_w * in_c;
    const int32_t columns = (p->out_w - 1) * p->stride_w + 3, records = (columns + 1) / 2;
    /* columns left of the image, and in it */
    const int32_t left = tinyfuse_min(p->pad_left, columns);
    const int32_t inside = tinyfuse_clamp(columns - left, 0, p->in_w);
    int8_t *const padding = (int8_t *)scratch + records * TINYFUSE_DW_WEIGHT_STATIONARY_RECORD;
    const int32_t steps = p->stride_w == 1 ? p->out_w / 2 : p->out_w;
    const int16_t zero = (int16_t)p->in_zero_point;
    const int8_t *rows[3];
    int8_t *record;
    tinyfuse_dw_weight_stationary h;
    int32_t i;
    for (i = 0; i < 3; ++i) {
        const int32_t iy = y * p->stride_h - p->pad_top + i;
        if (iy >= 0 && iy < p->in_h) {
            rows[i] = tinyfuse_ring_row(in, iy, p->in_ring, row_bytes);
        } else {
            memset(padding, p->in_zero_point, (size_t)row_bytes);
            rows[i] = padding;
        }
    }
    h.row0 = rows[0];
    h.row1 = rows[1];
    h.row2 = rows[2];
    h.step = in_c;
    h.records = (int8_t *)scratch;
    h.lead = inside > 0 ? left & 1 : 0;
    h.inside = h.records + left / 2 * TINYFUSE_DW_WEIGHT_STATIONARY_RECORD;
    h.inside_end = h.inside + (inside + h.lead) / 2 * TINYFUSE_DW_WEIGHT_STATIONARY_RECORD;
    h.last = h.inside_end + ((inside + h.lead) & 1) * TINYFUSE_DW_WEIGHT_STATIONARY_RECORD;
    h.zeros = 0x01010101u * (uint8_t)p->in_zero_point;
    h.end = h.records + steps * TINYFUSE_DW_WEIGHT_STATIONARY_RECORD;
    h.odd = p->stride_w == 1 ? p->out_w & 1 : 0;
    h.rounding = tinyfuse_form_rounding(p->out_zero_point, form);
    for (record = h.records; record != padding; record += TINYFUSE_DW_WEIGHT_STATIONARY_RECORD) {
        if (record == h.inside) {
            record = h.last;
            if (record == padding) {
                break;
            }
        }
        for (i = 0; i < TINYFUSE_DW_WEIGHT_STATIONARY_OUTPUTS; i += 2) {
            memcpy(record + i, &zero, sizeof zero);
        }
    }
    h.channel = 0;
    h.last_channel = in_c - 4;
    h.channels = channels;
    h.out = out_row;
    if (p->stride_w == 1) {
        (form == TINYFUSE_SINGLE_ROUNDING_FORM ? tinyfuse_dw_weight_stationary_1
                                               : tinyfuse_dw_weight_stationary_own_shifts_1)(&h);
    } else {
        (form == TINYFUSE_SINGLE_ROUNDING_FORM ? tinyfuse_dw_weight_stationary_2
                                               : tinyfuse_dw_weight_stationary_own_shifts_2)(&h);
    }
    tinyfuse_clamp_outputs(out_row, p->out_w * in_c, p->act_min, p->act_max);
}

#endif
