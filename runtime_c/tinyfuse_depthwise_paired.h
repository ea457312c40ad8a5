/* Depthwise convolution with depth multiplier 1 and no dilation of columns, int8 NHWC, single-rounding
   requantization, for cores without the DSP extension, one output row a call. A word holds two inputs of a channel:
   one multiplication gives two products.

   Outputs half a row apart have the same weights. A word is x + 65536 z, where x and z are the same channel's inputs
   of both outputs, so that its product with a weight has both products, as in tinyfuse_paired.h. Words lie in columns
   of kernel_h, as many as half a row's outputs read. A list of pointers gives the first channel's inputs of each
   word, so that padding is a pointer, too. */
#ifndef TINYFUSE_DEPTHWISE_PAIRED_H
#define TINYFUSE_DEPTHWISE_PAIRED_H

#include "tinyfuse_conv.h"
#include "tinyfuse_paired.h"

/* A channel of a row; assembly knows the offsets. */
typedef struct {
    int32_t *words;
    int32_t step;     /* 4: bytes from an output's words to the next one's */
    int32_t taps;     /* 8: rounded up to an even number */
    int32_t rounding; /* 12 */
    int8_t *out;      /* 16 */
    int32_t out_c;    /* 20 */
    int32_t apart;    /* 24: bytes from an output to the one half a row on */
    int32_t outputs;  /* 28: pairs of outputs */
    const int32_t *filter;     /* 32: the weights, then bias, multiplier, and a per-channel shift */
    const int32_t *filter_end; /* 36: of the weights */
    const int8_t *const *inputs;     /* 40: two for each word, an even number of words */
    const int8_t *const *inputs_end; /* 44 */
    int32_t channel; /* 48 */
} tinyfuse_depthwise_paired;

#if TINYFUSE_THUMB1 || TINYFUSE_THUMB2

typedef char tinyfuse_check_depthwise_paired[offsetof(tinyfuse_depthwise_paired, channel) == 48 ? 1 : -1];

/* A loop of eight taps. It is entered in its middle, by the bits of `taps`, so that only whole iterations remain. */
#define TINYFUSE_DEPTHWISE_TAPS(taps, end)                  \
    "lsls " taps ", " taps ", #30\n\t"                      \
    "bcc 5f\n\t"                                            \
    "bmi 2f\n\t"                                            \
    "b 3f\n\t"                                              \
    "5:\n\t"                                                \
    "bmi 4f\n\t"                                            \
    "1:\n\t" TINYFUSE_PAIRED_TWO_1                          \
    "2:\n\t" TINYFUSE_PAIRED_TWO_1                          \
    "3:\n\t" TINYFUSE_PAIRED_TWO_1                          \
    "4:\n\t" TINYFUSE_PAIRED_TWO_1                          \
    "cmp r1, " end "\n\t"                                   \
    "bne 1b\n\t"

#if TINYFUSE_THUMB1

/* First the words are made: r1; r2 inputs, r6 their end, r5 the channel. Then outputs. The loop of taps has r0 words,
   r1 filter, r3 its end, r2 upper sum, r8 sum of q; r9 the output's words, r10 outputs left, r11 out, r12 rounding,
   lr the tinyfuse_depthwise_paired. */
#define TINYFUSE_DEPTHWISE_ON_SINGLE_ROUNDING TINYFUSE_PAIRED_OUTPUT("0")
#define TINYFUSE_DEPTHWISE_OWN_SHIFTS TINYFUSE_PAIRED_SHIFTED("0", "ldr r0, [r1, #8]\n\tasrs r4, r0\n\t")
#define TINYFUSE_DEPTHWISE_PAIRED_ASM(output)           \
    TINYFUSE_THUMB1_BEGIN                               \
    "mov lr, r0\n\t"                                    \
    "ldr r1, [r0]\n\t"                                  \
    "mov r9, r1\n\t"                                    \
    "ldr r2, [r0, #40]\n\t"                             \
    "ldr r6, [r0, #44]\n\t"                             \
    "ldr r5, [r0, #48]\n\t"                             \
    "ldr r4, [r0, #12]\n\t"                             \
    "mov r12, r4\n\t"                                   \
    "ldr r4, [r0, #16]\n\t"                             \
    "mov r11, r4\n\t"                                   \
    "ldr r4, [r0, #28]\n\t"                             \
    "mov r10, r4\n\t"                                   \
    "1:\n\t"                                            \
    "ldmia r2!, {r0, r3, r4, r7}\n\t"                   \
    "ldrsb r0, [r0, r5]\n\t"                            \
    "ldrsb r3, [r3, r5]\n\t"                            \
    "ldrsb r4, [r4, r5]\n\t"                            \
    "ldrsb r7, [r7, r5]\n\t"                            \
    "lsls r3, r3, #16\n\t"                              \
    "adds r0, r0, r3\n\t"                               \
    "lsls r7, r7, #16\n\t"                              \
    "adds r3, r4, r7\n\t"                               \
    "stmia r1!, {r0, r3}\n\t"                           \
    "cmp r2, r6\n\t"                                    \
    "bne 1b\n\t"                                        \
    "6:\n\t"                                            \
    "mov r4, lr\n\t"                                    \
    "ldr r1, [r4, #32]\n\t"                             \
    "ldr r3, [r4, #36]\n\t"                             \
    "ldr r4, [r4, #8]\n\t"                              \
    "mov r0, r9\n\t"                                    \
    "movs r2, #0\n\t"                                   \
    "mov r8, r2\n\t" TINYFUSE_DEPTHWISE_TAPS("r4", "r3") \
    TINYFUSE_PAIRED_LOWER_1                             \
    "mov r8, r2\n\t" TINYFUSE_PAIRED_MULTIPLIER("4")    \
    output                                              \
    "mov r0, r11\n\t"                                   \
    "strb r7, [r0]\n\t"                                 \
    "mov r4, r8\n\t" output                             \
    "mov r4, lr\n\t"                                    \
    "ldr r0, [r4, #24]\n\t"                             \
    "add r0, r11\n\t"                                   \
    "strb r7, [r0]\n\t"                                 \
    "ldr r5, [r4, #4]\n\t"                              \
    "add r9, r5\n\t"                                    \
    "ldr r5, [r4, #20]\n\t"                             \
    "add r11, r5\n\t"                                   \
    "mov r5, r10\n\t"                                   \
    "subs r5, #1\n\t"                                   \
    "mov r10, r5\n\t"                                   \
    "beq 7f\n\t"                                        \
    "b 6b\n\t"                                          \
    "7:\n\t" TINYFUSE_THUMB1_END

#else

/* First the words are made: r1; r2 inputs, r6 their end, r5 the channel. Then outputs: r0 to r3, r6 to r9, r12 and lr
   as in the loop of tinyfuse_paired.h; r4 the output's words, r5 out, r10 outputs left, r11 the
   tinyfuse_depthwise_paired. */
#define TINYFUSE_DEPTHWISE_ON_SINGLE_ROUNDING \
    "ldr r12, [r11, #12]\n\t" TINYFUSE_PAIRED_OUTPUT("r2", "r6", "r7") TINYFUSE_PAIRED_OUTPUT("r3", "r6", "r7")
#define TINYFUSE_DEPTHWISE_OWN_SHIFTS                                             \
    "ldr r12, [r1, #8]\n\t"                                                       \
    TINYFUSE_PAIRED_HIGH("r2", "r6", "r7") TINYFUSE_PAIRED_HIGH("r3", "r6", "r7") \
    "asr r2, r12\n\tssat r2, #8, r2\n\t"                                          \
    "asr r3, r12\n\tssat r3, #8, r3\n\t"
#define TINYFUSE_DEPTHWISE_PAIRED_ASM(outputs)          \
    TINYFUSE_ASM_BEGIN                                  \
    "mov r11, r0\n\t"                                   \
    "ldr r1, [r0]\n\t"                                  \
    "ldrd r2, r6, [r0, #40]\n\t"                        \
    "ldr r5, [r0, #48]\n\t"                             \
    "1:\n\t"                                            \
    "ldm r2!, {r3, r4, r7, r8}\n\t"                     \
    "ldrsb r3, [r3, r5]\n\t"                            \
    "ldrsb r4, [r4, r5]\n\t"                            \
    "ldrsb r7, [r7, r5]\n\t"                            \
    "ldrsb r8, [r8, r5]\n\t"                            \
    "add r3, r3, r4, lsl #16\n\t"                       \
    "add r4, r7, r8, lsl #16\n\t"                       \
    "strd r3, r4, [r1], #8\n\t"                         \
    "cmp r2, r6\n\t"                                    \
    "bne 1b\n\t"                                        \
    "ldr r4, [r0]\n\t"                                  \
    "ldr r5, [r0, #16]\n\t"                             \
    "ldr r10, [r0, #28]\n\t"                            \
    "6:\n\t"                                            \
    "mov r0, r4\n\t"                                    \
    "ldrd r1, lr, [r11, #32]\n\t"                       \
    "ldr r6, [r11, #8]\n\t"                             \
    "mov r12, #0x8000\n\t"                              \
    "mov r3, #0\n\t"                                    \
    "sub r2, r3, r6, lsl #14\n\t"                       \
    TINYFUSE_DEPTHWISE_TAPS("r6", "lr")                 \
    "sub r2, r2, r3, lsl #16\n\t"                       \
    "ldrd r6, r7, [r1]\n\t"                             \
    outputs                                             \
    "ldrd r6, r7, [r11, #20]\n\t"                       \
    "strb r2, [r5]\n\t"                                 \
    "strb r3, [r5, r7]\n\t"                             \
    "add r5, r6\n\t"                                    \
    "ldr r6, [r11, #4]\n\t"                             \
    "add r4, r6\n\t"                                    \
    "subs r10, #1\n\t"                                  \
    "bne 6b\n\t" TINYFUSE_ASM_END

#endif
#endif

/* Computes all outputs of a channel; `form` is a constant. */
TINYFUSE_INLINE void tinyfuse_depthwise_paired_outputs(tinyfuse_depthwise_paired *s, int form)
{
#if TINYFUSE_THUMB1 || TINYFUSE_THUMB2
    if (form == TINYFUSE_SINGLE_ROUNDING_FORM) {
        TINYFUSE_PAIRED_ASM(s, TINYFUSE_DEPTHWISE_PAIRED_ASM(TINYFUSE_DEPTHWISE_ON_SINGLE_ROUNDING))
    } else {
        TINYFUSE_PAIRED_ASM(s, TINYFUSE_DEPTHWISE_PAIRED_ASM(TINYFUSE_DEPTHWISE_OWN_SHIFTS))
    }
#else
    const int8_t *const *inputs = s->inputs;
    int32_t *words = s->words;
    int8_t *out = s->out;
    int32_t i, k;
    for (; inputs != s->inputs_end; inputs += 2) {
        *words++ = inputs[0][s->channel] + 65536 * inputs[1][s->channel];
    }
    for (i = 0; i < s->outputs; ++i) {
        const int32_t *const x = s->words + i * s->step / 4;
        uint32_t all = 0, upper = 0;
        for (k = 0; k < s->taps; k += 2) {
            const uint32_t q = (uint32_t)x[k] * (uint32_t)s->filter[k] + (uint32_t)x[k + 1] * (uint32_t)s->filter[k + 1];
            all += q;
            upper += (uint32_t)((int32_t)(q + 0x8000u) >> 16);
        }
        for (k = 0; k < 2; ++k) {
            const uint32_t sum = k == 0 ? all - (upper << 16) : upper;
            const int32_t value = (int32_t)(256u * sum + (uint32_t)s->filter_end[0]);
            out[k * s->apart] =
                (int8_t)(form == TINYFUSE_SINGLE_ROUNDING_FORM
                             ? tinyfuse_requantize_single_rounding(value, s->filter_end[1], s->rounding)
                             : tinyfuse_requantize_own_shift(value, s->filter_end[1], s->filter_end[2]));
        }
        out += s->out_c;
    }
#endif
}

TINYFUSE_SHARED void tinyfuse_depthwise_paired_channel(tinyfuse_depthwise_paired *s)
{
    tinyfuse_depthwise_paired_outputs(s, TINYFUSE_SINGLE_ROUNDING_FORM);
}

TINYFUSE_SHARED void tinyfuse_depthwise_paired_own_shift(tinyfuse_depthwise_paired *s)
{
    tinyfuse_depthwise_paired_outputs(s, TINYFUSE_OWN_SHIFTS_FORM);
}

/* Returns the address of the first channel's inputs, or `zeros` for padding, which is reported in `padded`. Addresses
   don't tell: where no window reaches outside, `zeros` is one past the scratch, and the input may begin there. */
TINYFUSE_INLINE const int8_t *tinyfuse_depthwise_paired_input(const tinyfuse_conv *p, const int8_t *row, int32_t column,
                                                              const int8_t *zeros, int *padded)
{
    if (row != NULL && column >= 0 && column < p->in_w) {
        return row + column * p->in_c;
    }
    *padded = 1;
    return zeros;
}

/* Computes output row y. It is shared; where all layers of a module have one form, compilers specialize it. */
TINYFUSE_SHARED void tinyfuse_depthwise_paired_row(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                                   const int32_t *filters, void *scratch, int form)
{
    const int32_t half = (p->out_w + 1) / 2, apart = p->out_w - half;
    const int32_t columns = (half - 1) * p->stride_w + p->kernel_w, count = columns * p->kernel_h;
    const int32_t words = (count + 1) & ~1;
    const int8_t **const inputs =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, 2 * (size_t)words * sizeof *inputs);
    int8_t *const zeros = (int8_t *)scratch + 2 * TINYFUSE_POINTER_BYTES * words + 4 * ((count + 2) & ~1);
    int32_t ky, x, channel;
    int padded = 0;
    tinyfuse_depthwise_paired s;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        const int8_t *const row =
            iy >= 0 && iy < p->in_h ? tinyfuse_ring_row(in, iy, p->in_ring, p->in_w * p->in_c) : NULL;
        const int8_t **to = inputs + 2 * ky;
        for (x = 0; x < columns; ++x) {
            const int32_t column = x - p->pad_left;
            to[0] = tinyfuse_depthwise_paired_input(p, row, column, zeros, &padded);
            to[1] = tinyfuse_depthwise_paired_input(p, row, column + apart * p->stride_w, zeros, &padded);
            to += 2 * p->kernel_h;
        }
    }
    if (words > count) {
        inputs[2 * count] = inputs[2 * count + 1] = inputs[0];
    }
    if (padded != 0) {
        memset(zeros, p->in_zero_point, (size_t)p->in_c);
    }
    s.words = (int32_t *)(void *)((int8_t *)scratch + 2 * TINYFUSE_POINTER_BYTES * words);
    s.words[(count + 2) / 2 * 2 - 1] = 0;
    s.words[(count + 2) / 2 * 2 - 2] = 0;
    s.step = 4 * p->stride_w * p->kernel_h;
    s.taps = (p->kernel_h * p->kernel_w + 1) & ~1;
    s.rounding = tinyfuse_form_rounding(p->out_zero_point, form);
    s.out_c = p->in_c;
    s.apart = apart * p->in_c;
    s.outputs = half;
    s.inputs = inputs;
    s.inputs_end = inputs + 2 * words;
    for (channel = 0; channel < p->in_c; ++channel) {
        s.filter = filters;
        s.filter_end = filters + s.taps;
        s.out = out_row + channel;
        s.channel = channel;
        (form == TINYFUSE_SINGLE_ROUNDING_FORM ? tinyfuse_depthwise_paired_channel : tinyfuse_depthwise_paired_own_shift)(&s);
        filters = s.filter_end + (form == TINYFUSE_SINGLE_ROUNDING_FORM ? 2 : 3);
    }
    tinyfuse_clamp_outputs(out_row, p->out_w * p->in_c, p->act_min, p->act_max);
}

/* Computes output row y. Reads only the input rows of y's own window, writes only out_row. `form`, a constant, isn't
   TINYFUSE_BOUNDED_FORM. filters [in_c] of: int32 weights [kernel_w][kernel_h], with a zero after an odd number of
   them; bias, multiplier, and a per-channel shift if the form has them. scratch, aligned to 8, for n = ((ceil(out_w /
   2) - 1) * stride_w + kernel_w) * kernel_h words: two pointers of 4 bytes for each, n rounded up to an even number;
   4 bytes for n + 1, rounded up as well; in_c bytes where any window reaches outside. */
TINYFUSE_INLINE void tinyfuse_depthwise_paired_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                      int8_t *out_row, const int32_t *filters, void *scratch, int form)
{
    tinyfuse_depthwise_paired_row(p, in, y, out_row, filters, scratch, form);
}

#endif
