/* Depthwise convolution with depth multiplier 1, stride 1 and dilation 1, int8 NHWC, for cores with the DSP
   extension: windows of k x 1 along the columns of an image, or of 1 x k along its rows ("lines"); at least four
   channels.

   Four channels of a line are computed at a time. First the line, padding included, is converted to int16 and
   regrouped, so that two consecutive pixels share a word. Then each channel is computed four outputs at a time: a
   step takes two taps for all of them, by four multiplications. Outputs that begin with a word's second pixel need
   taps shifted by one, so weights are stored twice. The loop over steps is entered in its middle, as the window's
   length needs. Outputs are collected in scratch, where those of four channels lie side by side, and are stored four
   at a time.

   A record has two consecutive pixels, int16 [4 channels][2].

   channels [ceil(in_c / 4)][4] of int32: TINYFUSE_DW_1D_HEAD words, which are

      shift, bias, multiplier, term

   then for step j the taps 2 j, 2 j + 1 and the taps 2 j - 1, 2 j, in a word each, 0 where there is none.

   With single rounding, weights are times 256, and the term is the rounding, or a per-channel shift is given. In the
   bounded form weights and bias are doubled, so that the multiplier is used as it is (tinyfuse_requantize_256ths),
   and the term is rounding << shift. The last four channels end at in_c. */
#ifndef TINYFUSE_DEPTHWISE_1D_H
#define TINYFUSE_DEPTHWISE_1D_H

#include "tinyfuse_conv.h"

enum { TINYFUSE_DW_1D_STEPS = 8 };   /* at most */
enum { TINYFUSE_DW_1D_TAPS = 15 };   /* at most, of a window */
enum { TINYFUSE_DW_1D_OUTPUTS = 4 }; /* at once */
enum { TINYFUSE_DW_1D_RECORD = 16 }; /* bytes of a record, and of the outputs of four pixels */
enum { TINYFUSE_DW_1D_HEAD = 4 };    /* words of a channel before its weights */

/* `lines` lines of in_n pixels give as many lines of out_n outputs. In both, pixels are `step` bytes apart; lines are
   in_line bytes apart in the input, out_line in the output. `pad` pixels of the input's zero point come before a
   line, and as many after it as windows need. */
typedef struct {
    int32_t in_n, out_n, taps, pad, step, lines, in_line, out_line, in_c;
    int32_t in_zero_point, out_zero_point, act_min, act_max;
} tinyfuse_dw_1d;

/* Four channels of a line; assembly knows the offsets. */
typedef struct {
    const int8_t *in; /* the first pixel */
    int32_t step;
    int8_t *inside;     /* 8: records with pixels of the line; with `lead` the first record's first pixel is padding */
    int8_t *inside_end; /* end of these; if `last` is set, one more follows, whose second pixel is padding */
    int8_t *last;       /* 16 */
    uint32_t zeros;     /* four times the input's zero point */
    int32_t lead;       /* 24 */
    int8_t *outputs_end;
    int32_t first_at; /* 32: of a channel's steps, the place of its first record */
    int32_t shift;    /* its place on the stack */
    int32_t steps;    /* 40 */
    int8_t *count_from;
    int8_t *outputs;         /* 48 */
    int32_t weights_at;      /* from behind a channel's head to what its weights count from */
    const int32_t *channels; /* 56 */
    int8_t *out;
    int32_t out_n; /* 64 */
} tinyfuse_dw_1d_quad;

#if TINYFUSE_DSP

typedef char tinyfuse_check_dw_1d[offsetof(tinyfuse_dw_1d_quad, out_n) == 64 && TINYFUSE_DW_1D_STEPS == 8 ? 1 : -1];

/* Step i, counted from the end. r0 the channel's records, r1 its weights, both advanced so that the last step's offset
   does not depend on the number of steps; r2 to r5 sums; `now` two pixels for the outputs in r2 and r3, `next` the two
   after, for those in r4 and r5. No instruction of 16 bits. */
#define TINYFUSE_DW_1D_STEP(i, now, next)             \
    "ldr r8, [r1, #64 - 8 * " i "]\n\t"               \
    "ldr r9, [r1, #68 - 8 * " i "]\n\t"               \
    "ldr.w " next ", [r0, #128 - 16 * " i "]\n\t"     \
    "smlad r2, " now ", r8, r2\n\t"                   \
    "smlad r3, " now ", r9, r3\n\t"                   \
    "smlad r4, " next ", r8, r4\n\t"                  \
    "smlad r5, " next ", r9, r5\n\t"
#define TINYFUSE_DW_1D_TWO(i, j) TINYFUSE_DW_1D_STEP(i, "r7", "r6") TINYFUSE_DW_1D_STEP(j, "r6", "r7")
#define TINYFUSE_DW_1D_BYTES "28"
/* r8 shift, r11 multiplier, r12 term; uses r9 */
#define TINYFUSE_DW_1D_OUTPUT_SINGLE_ROUNDING(s) "smmla " s ", " s ", r11, r12\n\t" TINYFUSE_SINGLE_ROUNDING_SATURATE(s)
#define TINYFUSE_DW_1D_OUTPUT_OWN_SHIFTS(s) TINYFUSE_OWN_SHIFT(s, "r11", "r8")
#define TINYFUSE_DW_1D_OUTPUT_BOUNDED(s)    \
    "sub r9, r12, " s ", lsr #31\n\t"       \
    "smmlar " s ", " s ", r11, r9\n\t"      \
    "asr " s ", r8\n\t"                     \
    "ssat " s ", #8, " s ", asr #1\n\t"
#define TINYFUSE_DW_1D_OUTPUTS(form)                                                   \
    TINYFUSE_DW_1D_OUTPUT_##form("r2") TINYFUSE_DW_1D_OUTPUT_##form("r3")              \
    TINYFUSE_DW_1D_OUTPUT_##form("r4") TINYFUSE_DW_1D_OUTPUT_##form("r5")
/* On the stack, while channels are computed: the end of the channel's outputs, first_at, shift, where steps are entered,
   the records and the outputs of the channel, weights_at. */
#define TINYFUSE_DW_1D_ASM(four, form)                                                          \
    {                                                                                           \
        TINYFUSE_ARGUMENT(const tinyfuse_dw_1d_quad *, arguments, four);                        \
        __asm volatile(TINYFUSE_ASM_BEGIN                                                       \
                       "ldm r0, {r1, r2, r3, r12, lr}\n\t"                                      \
                       "ldrd r4, r6, [r0, #20]\n\t"                                             \
                       "cmp r6, #0\n\t"                                                         \
                       "beq 3f\n\t"                                                             \
                       "ldr r5, [r1]\n\t"                                                       \
                       "add r1, r2\n\t"                                                         \
                       "b 2f\n\t"                                                               \
                       "1:\n\t"                                                                 \
                       "ldr r4, [r1]\n\t"                                                       \
                       "ldr r5, [r1, r2]\n\t"                                                   \
                       "add r1, r1, r2, lsl #1\n\t"                                             \
                       "2:\n\t"                                                                 \
                       "pkhbt r6, r4, r5, lsl #16\n\t"                                          \
                       "pkhtb r8, r5, r4, asr #16\n\t"                                          \
                       "sxtb16 r7, r6, ror #8\n\t"                                              \
                       "sxtb16 r6, r6\n\t"                                                      \
                       "sxtb16 r9, r8, ror #8\n\t"                                              \
                       "sxtb16 r8, r8\n\t"                                                      \
                       "stm r3!, {r6, r7, r8, r9}\n\t"                                          \
                       "3:\n\t"                                                                 \
                       "cmp r3, r12\n\t"                                                        \
                       "bne 1b\n\t"                                                             \
                       "cmp r12, lr\n\t"                                                        \
                       "beq 4f\n\t"                                                             \
                       "ldr r4, [r1]\n\t"                                                       \
                       "ldr r5, [r0, #20]\n\t"                                                  \
                       "mov r12, lr\n\t"                                                        \
                       "b 2b\n\t"                                                               \
                       "4:\n\t"                                                                 \
                       "add r4, r0, #28\n\t"                                                    \
                       "ldm r4, {r5, r6, r7, r8, r9, r10, r11}\n\t"                             \
                       "ldr r1, [r0, #56]\n\t"                                                  \
                       "adr.w r4, 7f\n\t"                                                       \
                       "mov r3, #" TINYFUSE_DW_1D_BYTES "\n\t"                                  \
                       "mls r8, r8, r3, r4\n\t"                                                 \
                       "orr r8, #1\n\t"                                                         \
                       "push {r5, r6, r7, r8, r9, r10, r11}\n\t"                                \
                       "mov r0, r9\n\t"                                                         \
                       "mov lr, r10\n\t"                                                        \
                       "5:\n\t"                                                                 \
                       "ldm r1!, {r8, r10, r11, r12}\n\t"                                       \
                       "ldr r2, [sp, #24]\n\t"                                                  \
                       "ldr r7, [sp, #4]\n\t"                                                   \
                       "str r8, [sp, #8]\n\t"                                                   \
                       "add r1, r2\n\t"                                                         \
                       "6:\n\t"                                                                 \
                       "mov r2, r10\n\t"                                                        \
                       "mov r3, r10\n\t"                                                        \
                       "mov r4, r10\n\t"                                                        \
                       "mov r5, r10\n\t"                                                        \
                       "ldr r6, [r0, r7]\n\t"                                                   \
                       "mov r7, r6\n\t"                                                         \
                       "ldr pc, [sp, #12]\n\t"                                                  \
                       ".p2align 2\n\t" /* ADR counts from words */                             \
                       TINYFUSE_DW_1D_TWO("8", "7") TINYFUSE_DW_1D_TWO("6", "5")                \
                       TINYFUSE_DW_1D_TWO("4", "3") TINYFUSE_DW_1D_TWO("2", "1")                \
                       "7:\n\t"                                                                 \
                       "ldm sp, {r6, r7, r8}\n\t" TINYFUSE_DW_1D_OUTPUTS(form)                  \
                       "strb r2, [lr], #4\n\t"                                                  \
                       "strb r3, [lr], #4\n\t"                                                  \
                       "strb r4, [lr], #4\n\t"                                                  \
                       "strb r5, [lr], #4\n\t"                                                  \
                       "adds r0, #32\n\t"                                                       \
                       "cmp lr, r6\n\t"                                                         \
                       "bne 6b\n\t"                                                             \
                       "ldrd r0, lr, [sp, #16]\n\t"                                             \
                       "adds r1, #64\n\t"                                                       \
                       "adds r6, #1\n\t"                                                        \
                       "str r6, [sp]\n\t"                                                       \
                       "adds r0, #4\n\t"                                                        \
                       "add lr, #1\n\t"                                                         \
                       "strd r0, lr, [sp, #16]\n\t"                                             \
                       "tst lr, #3\n\t"                                                         \
                       "bne 5b\n\t"                                                             \
                       "add sp, #28\n\t"                                                        \
                       "sub r0, lr, #4\n\t"                                                     \
                       "ldr r1, [sp]\n\t"                                                       \
                       "ldrd r2, r6, [r1, #60]\n\t"                                             \
                       "ldr r3, [r1, #4]\n\t"                                                   \
                       "bic r7, r6, #1\n\t"                                                     \
                       "add r7, r0, r7, lsl #2\n\t"                                             \
                       "b 2f\n\t"                                                               \
                       "1:\n\t"                                                                 \
                       "ldrd r4, r5, [r0], #8\n\t"                                              \
                       "str r4, [r2]\n\t"                                                       \
                       "str r5, [r2, r3]\n\t"                                                   \
                       "add r2, r2, r3, lsl #1\n\t"                                             \
                       "2:\n\t"                                                                 \
                       "cmp r0, r7\n\t"                                                         \
                       "bne 1b\n\t"                                                             \
                       "tst r6, #1\n\t"                                                         \
                       "beq 3f\n\t"                                                             \
                       "ldr r4, [r0]\n\t"                                                       \
                       "str r4, [r2]\n\t"                                                       \
                       "3:\n\t" TINYFUSE_ASM_END                                                \
                       :                                                                        \
                       : "r"(arguments)                                                         \
                       : TINYFUSE_ASM_CLOBBERS);                                                \
    }

#else

/* Writes the record of two pixels, whose four channels lie at `left` and `right`. */
TINYFUSE_INLINE void tinyfuse_dw_1d_regroup(const int8_t *left, const int8_t *right, int8_t *record)
{
    int32_t c;
    for (c = 0; c < 4; ++c) {
        const int16_t values[2] = {left[c], right[c]};
        memcpy(record + 4 * c, values, sizeof values);
    }
}

TINYFUSE_INLINE void tinyfuse_dw_1d_records(const tinyfuse_dw_1d_quad *f)
{
    const int8_t *in = f->in;
    int8_t padding[4], *record = f->inside;
    int32_t lead = f->lead;
    memcpy(padding, &f->zeros, sizeof padding);
    for (; record != f->last; record += TINYFUSE_DW_1D_RECORD) {
        const int8_t *const left = lead ? padding : in;
        const int8_t *const right = record == f->inside_end ? padding : in + (lead ? 0 : f->step);
        tinyfuse_dw_1d_regroup(left, right, record);
        in += record == f->inside_end ? 0 : (lead ? 1 : 2) * f->step;
        lead = 0;
    }
}

/* Returns output i of a channel, whose pairs of pixels lie at `pairs`, a record apart. */
TINYFUSE_INLINE int8_t tinyfuse_dw_1d_output(const int8_t *pairs, const int32_t *channel, int32_t steps, int32_t i,
                                             int form)
{
    const int32_t *const words = channel + TINYFUSE_DW_1D_HEAD + (i & 1);
    uint32_t sum = (uint32_t)channel[1];
    int32_t j, value;
    for (j = 0; j < steps; ++j) {
        int16_t x[2], w[2];
        memcpy(x, pairs + (i / 2 + j) * TINYFUSE_DW_1D_RECORD, sizeof x);
        memcpy(w, words + 2 * j, sizeof w);
        sum += (uint32_t)(x[0] * w[0]) + (uint32_t)(x[1] * w[1]);
    }
    value = (int32_t)sum;
    return (int8_t)(form == TINYFUSE_SINGLE_ROUNDING_FORM ? tinyfuse_requantize_single_rounding(value, channel[2], channel[3])
                    : form == TINYFUSE_OWN_SHIFTS_FORM
                        ? tinyfuse_requantize_own_shift(value, channel[2], channel[0])
                        : tinyfuse_halve_to_int8(tinyfuse_high_multiply_add(channel[3] - (value < 0 ? 1 : 0), value,
                                                                            channel[2]) >>
                                                 channel[0]));
}

#endif

/* Computes four channels of a line; the form is a constant. */
TINYFUSE_INLINE void tinyfuse_dw_1d_run(const tinyfuse_dw_1d_quad *f, const int8_t *records, int form)
{
#if TINYFUSE_DSP
    (void)records;
    if (form == TINYFUSE_SINGLE_ROUNDING_FORM) {
        TINYFUSE_DW_1D_ASM(f, SINGLE_ROUNDING)
    } else if (form == TINYFUSE_OWN_SHIFTS_FORM) {
        TINYFUSE_DW_1D_ASM(f, OWN_SHIFTS)
    } else {
        TINYFUSE_DW_1D_ASM(f, BOUNDED)
    }
#else
    int32_t c, i;
    tinyfuse_dw_1d_records(f);
    for (c = 0; c < 4; ++c) {
        const int32_t *const channel = f->channels + c * (TINYFUSE_DW_1D_HEAD + 2 * f->steps);
        for (i = 0; i < f->out_n; ++i) {
            f->out[i * f->step + c] = tinyfuse_dw_1d_output(records + 4 * c, channel, f->steps, i, form);
        }
    }
#endif
}

#define TINYFUSE_DW_1D_RUN(name, form)                                                            \
    TINYFUSE_SHARED void name(const tinyfuse_dw_1d_quad *f, const int8_t *records)                \
    {                                                                                             \
        tinyfuse_dw_1d_run(f, records, form);                                                     \
    }
TINYFUSE_DW_1D_RUN(tinyfuse_dw_1d_on_single_rounding, TINYFUSE_SINGLE_ROUNDING_FORM)
TINYFUSE_DW_1D_RUN(tinyfuse_dw_1d_own_shifts, TINYFUSE_OWN_SHIFTS_FORM)
TINYFUSE_DW_1D_RUN(tinyfuse_dw_1d_bounded, TINYFUSE_BOUNDED_FORM)

/* Copies `words` words, a multiple of four. Returns their new place. A library's memcpy may copy byte by byte. */
TINYFUSE_INLINE const int32_t *tinyfuse_dw_1d_copy(const int32_t *from, int32_t words, int32_t *to)
{
    int32_t i;
    for (i = 0; i < words; i += 4) {
        const int32_t a = from[i], b = from[i + 1], c = from[i + 2], d = from[i + 3];
        to[i] = a;
        to[i + 1] = b;
        to[i + 2] = c;
        to[i + 3] = d;
    }
    return to;
}

/* Computes the outputs of all lines, which must not overlap the input. `form` is a constant. scratch, aligned to 8,
   with steps = taps / 2 + 1 and blocks = ceil(out_n / 4): 2 * blocks + steps - 1 records, `blocks` more for the
   outputs, and with several blocks a copy of four channels' words. */
TINYFUSE_INLINE void tinyfuse_depthwise_1d_s8(const tinyfuse_dw_1d *p, const int8_t *in, int8_t *out,
                                              const int32_t *channels, void *scratch, int form)
{
    const int32_t steps = p->taps / 2 + 1;
    const int32_t blocks = (p->out_n + TINYFUSE_DW_1D_OUTPUTS - 1) / TINYFUSE_DW_1D_OUTPUTS;
    const int32_t words = 4 * (TINYFUSE_DW_1D_HEAD + 2 * steps);
    /* pixels before the line, and in it */
    const int32_t pixels = p->out_n - 1 + p->taps, before = tinyfuse_min(p->pad, pixels);
    const int32_t inside = tinyfuse_clamp(pixels - before, 0, p->in_n);
    int8_t *const records = (int8_t *)scratch;
    const int16_t zero = (int16_t)p->in_zero_point;
    tinyfuse_dw_1d_quad f;
    int32_t channel, line;
    int8_t *record;
    f.step = p->step;
    f.lead = inside > 0 ? before & 1 : 0;
    f.inside = records + before / 2 * TINYFUSE_DW_1D_RECORD;
    f.inside_end = f.inside + (inside + f.lead) / 2 * TINYFUSE_DW_1D_RECORD;
    f.last = f.inside_end + ((inside + f.lead) & 1) * TINYFUSE_DW_1D_RECORD;
    f.zeros = 0x01010101u * (uint8_t)p->in_zero_point;
    f.outputs = records + (2 * blocks + steps - 1) * TINYFUSE_DW_1D_RECORD;
    f.outputs_end = f.outputs + blocks * TINYFUSE_DW_1D_RECORD;
    f.first_at = (TINYFUSE_DW_1D_STEPS - 1 - steps) * TINYFUSE_DW_1D_RECORD;
    f.shift = 0;
    f.steps = steps;
    f.count_from = (int8_t *)((uintptr_t)records - (uintptr_t)f.first_at);
    f.weights_at = 8 * (steps - TINYFUSE_DW_1D_STEPS);
    f.out_n = p->out_n;
    for (record = records; record != f.outputs; record += 2) {
        if (record == f.inside) {
            record = f.last;
            if (record == f.outputs) {
                break;
            }
        }
        memcpy(record, &zero, sizeof zero);
    }
    for (channel = 0; channel < p->in_c; channel += 4) {
        const int32_t first = tinyfuse_min(channel, p->in_c - 4);
        f.channels = blocks > 1 ? tinyfuse_dw_1d_copy(channels, words, (int32_t *)(void *)f.outputs_end) : channels;
        for (line = 0; line < p->lines; ++line) {
            f.in = in + line * p->in_line + first;
            f.out = out + line * p->out_line + first;
            (form == TINYFUSE_SINGLE_ROUNDING_FORM    ? tinyfuse_dw_1d_on_single_rounding
             : form == TINYFUSE_OWN_SHIFTS_FORM ? tinyfuse_dw_1d_own_shifts
                                                : tinyfuse_dw_1d_bounded)(&f, records);
        }
        channels += words;
    }
    tinyfuse_clamp_outputs(out, p->lines * p->out_n * p->in_c, p->act_min, p->act_max);
}

#endif
