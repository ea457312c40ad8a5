/* The inner product of convolutions and fully connected layers: columns of int16 inputs times packed
   int8 weights, requantized in one of two forms (tinyfuse_requantize.h).

   A block computes 1, 2 or 3 output pixels, two output channels at a time, so that every weight is
   widened once for all pixels.

   In lanes, two weights share 16 bits and only one of them has to be widened. The lane of weights v, w
   of inputs x, y holds w - 256 * v, so its low byte is w; the columns hold a = 256 * y + x + 128 and
   b = 127 - x. Then a * w + b * lane = 256 * (v * x + w * y) + 255 * w - 256 * 127 * v: the sum in
   256ths, and a constant that is part of the bias. It needs no weight v of -128, and sums below 2^23.

   Unpacked weights are int16 in flash and multiplied as they are, 256 times the weight for the line.

   Cores without the DSP extension multiply byte by byte and widen nothing.

   columns  [depth / 4][pixels][4] int16, aligned to 4. In lanes a, a, b, b for the two pairs of four
            inputs; else the four inputs in the order 0 2 1 3, which is what SXTB16 makes of four bytes.
            Forms of bytes have int8 in the order of the input.
   weights  [out_c / 2][depth / 4][2][4] int8, then [depth] for the last of an odd count of channels;
            zeros beyond the layer's own depth. Aligned to 4. Unpacked ones: [out_c / 2][depth / 4][2][2][2]
            int16, inputs 0 2 of both channels, then inputs 1 3; the last channel in the order 0 2 1 3.
   channels [out_c] tinyfuse_line or tinyfuse_requant.
*/
#ifndef TINYFUSE_MATMUL_H
#define TINYFUSE_MATMUL_H

#include "tinyfuse_requantize.h"

/* How a layer is computed. With the DSP extension: weights widened one by one or in lanes, requantized
   in the bounded form; or in lanes or unpacked, requantized along a line. Without: bytes, requantized
   in the bounded form or along a line. */
enum {
    TINYFUSE_WIDE,
    TINYFUSE_LANES,
    TINYFUSE_LINE,
    TINYFUSE_UNPACKED,
    TINYFUSE_BYTES,
    TINYFUSE_BYTES_LINE
};

/* Forms are constants; these say what a form is. */
TINYFUSE_INLINE int tinyfuse_of_bytes(int form)
{
    return form == TINYFUSE_BYTES || form == TINYFUSE_BYTES_LINE;
}

TINYFUSE_INLINE int tinyfuse_on_line(int form)
{
    return form == TINYFUSE_LINE || form == TINYFUSE_UNPACKED || form == TINYFUSE_BYTES_LINE;
}

/* Whether columns hold inputs as they are, widened. */
TINYFUSE_INLINE int tinyfuse_of_inputs(int form)
{
    return form == TINYFUSE_WIDE || form == TINYFUSE_UNPACKED;
}

/* Bytes of four weights of a channel. */
TINYFUSE_INLINE int32_t tinyfuse_weights_bytes(int form)
{
    return form == TINYFUSE_UNPACKED ? 8 : 4;
}

/* Bytes of four inputs in a column. */
TINYFUSE_INLINE int32_t tinyfuse_step_bytes(int form)
{
    return tinyfuse_of_bytes(form) ? 4 : 8;
}

/* `depth` is a multiple of 4; `rounding` as tinyfuse_matmul_rounding gives it. */
typedef struct {
    int32_t depth, out_c, rounding;
} tinyfuse_matmul;

TINYFUSE_INLINE int32_t tinyfuse_matmul_rounding(int32_t out_zero_point, int form)
{
    return tinyfuse_on_line(form) ? tinyfuse_line_rounding(out_zero_point) : 2 * out_zero_point + 1;
}

/* Widens 4 * words bytes, words > 0, as columns want them: four inputs to each `step` bytes from
   `to`. Returns the next place. */
TINYFUSE_INLINE int8_t *tinyfuse_widen(const int8_t *from, int32_t words, int8_t *to, int32_t step,
                                       int form)
{
#if TINYFUSE_DSP
    const int8_t *const end = from + 4 * words;
    uint32_t even, odd;
#define TINYFUSE_WIDEN_WIDE              \
    "ldr %[odd], [%[from]], #4\n\t"      \
    "sxtb16 %[even], %[odd]\n\t"         \
    "sxtb16 %[odd], %[odd], ror #8\n\t"  \
    "strd %[even], %[odd], [%[to]]\n\t"  \
    "add %[to], %[step]\n\t"
#define TINYFUSE_WIDEN_LANES                  \
    "ldr %[odd], [%[from]], #4\n\t"           \
    "eor %[even], %[odd], #0x00800080\n\t"    \
    "eor %[odd], %[odd], #0x007F007F\n\t"     \
    "uxtb16 %[odd], %[odd]\n\t"               \
    "strd %[even], %[odd], [%[to]]\n\t"       \
    "add %[to], %[step]\n\t"
#define TINYFUSE_WIDEN(word)                                                                     \
    __asm volatile("tst %[words], #1\n\t"                                                        \
                   "bne 2f\n\t"                                                                  \
                   "1:\n\t" word "2:\n\t" word                                                   \
                   "cmp %[from], %[end]\n\t"                                                     \
                   "bne 1b"                                                                      \
                   : [from] "+r"(from), [to] "+r"(to), [even] "=&r"(even), [odd] "=&r"(odd)      \
                   : [words] "r"(words), [step] "r"(step), [end] "r"(end)                        \
                   : "cc", "memory")
    if (tinyfuse_of_inputs(form)) {
        TINYFUSE_WIDEN(TINYFUSE_WIDEN_WIDE);
        return to;
    }
    if (!tinyfuse_of_bytes(form)) {
        TINYFUSE_WIDEN(TINYFUSE_WIDEN_LANES);
        return to;
    }
#endif
    for (; words > 0; --words) {
        if (tinyfuse_of_bytes(form)) {
            memcpy(to, from, 4);
        } else {
            int16_t wide[4];
            if (tinyfuse_of_inputs(form)) {
                wide[0] = from[0];
                wide[1] = from[2];
                wide[2] = from[1];
                wide[3] = from[3];
            } else {
                wide[0] = (int16_t)(256 * from[1] + from[0] + 128);
                wide[1] = (int16_t)(256 * from[3] + from[2] + 128);
                wide[2] = (int16_t)(127 - from[0]);
                wide[3] = (int16_t)(127 - from[2]);
            }
            memcpy(to, wide, sizeof wide);
        }
        from += 4;
        to += step;
    }
    return to;
}

/* `sum` plus the products of four inputs of a column with the four weights of a channel: those at w,
   or unpacked two at w and two `apart` bytes on. Sums may pass beyond int32 on their way. */
TINYFUSE_INLINE int32_t tinyfuse_products(int32_t sum, const void *column, const int8_t *w,
                                          int32_t apart, int form)
{
    const int16_t *const x = (const int16_t *)column;
    const int8_t *const b = (const int8_t *)column;
    uint32_t total = (uint32_t)sum;
    if (tinyfuse_of_bytes(form)) {
        return sum + b[0] * w[0] + b[1] * w[1] + b[2] * w[2] + b[3] * w[3];
    }
    if (form == TINYFUSE_UNPACKED) {
        int16_t even[2], odd[2];
        memcpy(even, w, 4);
        memcpy(odd, w + apart, 4);
        total += (uint32_t)(x[0] * even[0]) + (uint32_t)(x[1] * even[1]);
        total += (uint32_t)(x[2] * odd[0]) + (uint32_t)(x[3] * odd[1]);
    } else if (form == TINYFUSE_WIDE) {
        total += (uint32_t)(x[0] * w[0] + x[1] * w[2] + x[2] * w[1] + x[3] * w[3]);
    } else {
        const int32_t first = 256 * w[1] + (uint8_t)w[0], second = 256 * w[3] + (uint8_t)w[2];
        total += (uint32_t)(x[0] * w[0] + x[2] * first);
        total += (uint32_t)(x[1] * w[2] + x[3] * second);
    }
    return (int32_t)total;
}

/* What a channel's sum begins with. */
TINYFUSE_INLINE int32_t tinyfuse_channel_bias(const void *channels, int32_t channel, int form)
{
    if (form == TINYFUSE_BYTES_LINE) {
        return 0; /* the bias is in 256ths, the sum is not */
    }
    return tinyfuse_on_line(form) ? ((const tinyfuse_line *)channels)[channel].bias
                                  : ((const tinyfuse_requant *)channels)[channel].bias;
}

/* The stored output of a channel's sum. */
TINYFUSE_INLINE int8_t tinyfuse_channel_output(const void *channels, int32_t channel, int32_t sum,
                                               int32_t rounding, int form)
{
    if (tinyfuse_on_line(form)) {
        const tinyfuse_line *const l = (const tinyfuse_line *)channels + channel;
        const int32_t value =
            tinyfuse_of_bytes(form) ? (int32_t)(256u * (uint32_t)sum + (uint32_t)l->bias) : sum;
        return (int8_t)tinyfuse_requantize_line(value, l->multiplier, rounding);
    } else {
        const tinyfuse_requant *const r = (const tinyfuse_requant *)channels + channel;
        const int32_t value = form == TINYFUSE_LANES ? sum >> 8 : sum;
        return (int8_t)tinyfuse_requantize_bounded(value, r->multiplier, r->shift, rounding);
    }
}

/* One pair of channels after the other, for a constant count of pixels. The sums of the pixels' first
   channel are s0, s2, s4, those of the second s1, s3, s5. */
#if TINYFUSE_DSP

/* w: weights of two channels; e, f: the widened low bytes of their lanes; wa, wb: the lanes, or their
   widened high bytes. */
#define TINYFUSE_WEIGHTS_LANES                   \
    "ldrd %[wa], %[wb], [%[w]], #8\n\t"          \
    "sxtb16 %[e], %[wa]\n\t"                     \
    "sxtb16 %[f], %[wb]\n\t"
#define TINYFUSE_WEIGHTS_WIDE                    \
    TINYFUSE_WEIGHTS_LANES                       \
    "sxtb16 %[wa], %[wa], ror #8\n\t"            \
    "sxtb16 %[wb], %[wb], ror #8\n\t"
/* int16 weights: e and f of inputs 0 2, wa and wb of inputs 1 3 */
#define TINYFUSE_WEIGHTS_UNPACKED "ldm %[w]!, {r8, r9, r10, r11}\n\t"
#define TINYFUSE_PRODUCTS(even, odd, a, b)             \
    "smlad %[" a "], %[" even "], %[e], %[" a "]\n\t"  \
    "smlad %[" b "], %[" even "], %[f], %[" b "]\n\t"  \
    "smlad %[" a "], %[" odd "], %[wa], %[" a "]\n\t"  \
    "smlad %[" b "], %[" odd "], %[wb], %[" b "]\n\t"
#define TINYFUSE_PIXEL(a, b) "ldrd %[i], %[j], [%[x]], #8\n\t" TINYFUSE_PRODUCTS("i", "j", a, b)
#define TINYFUSE_STEP_1 TINYFUSE_PIXEL("s0", "s1")
#define TINYFUSE_STEP_2                          \
    "ldm %[x]!, {r8, r9, r10, r11}\n\t"          \
    TINYFUSE_PRODUCTS("i", "j", "s0", "s1") TINYFUSE_PRODUCTS("k", "l", "s2", "s3")
#define TINYFUSE_STEP_2_UNPACKED TINYFUSE_PIXEL("s0", "s1") TINYFUSE_PIXEL("s2", "s3")
#define TINYFUSE_STEP_3 \
    TINYFUSE_PIXEL("s0", "s1") TINYFUSE_PIXEL("s2", "s3") TINYFUSE_PIXEL("s4", "s5")

#define TINYFUSE_EVERY_1(do_it, a, b, c) do_it(a)
#define TINYFUSE_EVERY_2(do_it, a, b, c) do_it(a) do_it(b)
#define TINYFUSE_EVERY_2_UNPACKED TINYFUSE_EVERY_2
#define TINYFUSE_EVERY_3(do_it, a, b, c) do_it(a) do_it(b) do_it(c)

/* A form's bytes from a channel to the next, and how its sums become outputs; x channels, e rounding.
   TINYFUSE_OUTPUT_LINE: tinyfuse_requantize_line, wa multiplier of the first channel, wb the second's. */
#define TINYFUSE_CHANNEL_LINE "8"
#define TINYFUSE_LINE_FIRST(s) \
    "smmla %[" s "], %[" s "], %[wa], %[e]\n\t" TINYFUSE_LINE_SATURATE("%[" s "]")
#define TINYFUSE_LINE_SECOND(s) \
    "smmla %[" s "], %[" s "], %[wb], %[e]\n\t" TINYFUSE_LINE_SATURATE("%[" s "]")
#define TINYFUSE_OUTPUT_LINE(n)                               \
    "ldr %[wa], [%[x], #4]\n\t"                               \
    "ldr %[wb], [%[x], #12]\n\t"                              \
    TINYFUSE_EVERY_##n(TINYFUSE_LINE_FIRST, "s0", "s2", "s4") \
    TINYFUSE_EVERY_##n(TINYFUSE_LINE_SECOND, "s1", "s3", "s5")
/* tinyfuse_requantize_bounded: wa multiplier, wb shift, f rounding << shift. */
#define TINYFUSE_CHANNEL_WIDE "12"
#define TINYFUSE_BOUNDED(s)                      \
    "add %[i], %[" s "], %[f]\n\t"               \
    "add %[i], %[i], %[" s "], asr #31\n\t"      \
    "smmlar %[" s "], %[" s "], %[wa], %[i]\n\t" \
    "asr %[" s "], %[wb]\n\t"                    \
    "ssat %[" s "], #8, %[" s "], asr #1\n\t"
#define TINYFUSE_OUTPUTS_BOUNDED(n, output)                                               \
    "ldrd %[wa], %[wb], [%[x], #4]\n\t"                                                   \
    "lsl %[f], %[e], %[wb]\n\t" TINYFUSE_EVERY_##n(output, "s0", "s2", "s4")              \
    "ldrd %[wa], %[wb], [%[x], #16]\n\t"                                                  \
    "lsl %[f], %[e], %[wb]\n\t" TINYFUSE_EVERY_##n(output, "s1", "s3", "s5")
#define TINYFUSE_OUTPUT_WIDE(n) TINYFUSE_OUTPUTS_BOUNDED(n, TINYFUSE_BOUNDED)
#define TINYFUSE_CHANNEL_LANES "12"
#define TINYFUSE_BOUNDED_256THS(s) "asr %[" s "], #8\n\t" TINYFUSE_BOUNDED(s)
#define TINYFUSE_OUTPUT_LANES(n) TINYFUSE_OUTPUTS_BOUNDED(n, TINYFUSE_BOUNDED_256THS)

#define TINYFUSE_COPY_1 ""
#define TINYFUSE_COPY_2 "mov %[s2], %[s0]\n\tmov %[s3], %[s1]\n\t"
#define TINYFUSE_COPY_3 TINYFUSE_COPY_2 "mov %[s4], %[s0]\n\tmov %[s5], %[s1]\n\t"
#define TINYFUSE_COPY_2_UNPACKED TINYFUSE_COPY_2
#define TINYFUSE_PUT_1 "strb %[s0], [%[x]]\n\tstrb %[s1], [%[x], #1]\n\t"
#define TINYFUSE_PUT_2 \
    TINYFUSE_PUT_1 "add %[f], %[x], %[i]\n\tstrb %[s2], [%[f]]\n\tstrb %[s3], [%[f], #1]\n\t"
#define TINYFUSE_PUT_2_UNPACKED TINYFUSE_PUT_2
#define TINYFUSE_PUT_3 \
    TINYFUSE_PUT_2 "add %[f], %[i]\n\tstrb %[s4], [%[f]]\n\tstrb %[s5], [%[f], #1]\n\t"

/* `bytes` is what a pair's weights take: steps of 8 bytes, or 16. The loop takes four steps; the first
   time it is entered so far from its end that whole loops remain: the bits that count single steps
   and pairs of them go to N and C (`to_flags` is how far up). */
#define TINYFUSE_PAIRS(n, step, to_flags, channel, output)                                           \
    "6:\n\t"                                                                                 \
    "ldr %[i], %[channels]\n\t"                                                              \
    "ldr %[f], %[bytes]\n\t"                                                                 \
    "ldr %[s0], [%[i]]\n\t"                                                                  \
    "ldr %[s1], [%[i], #" channel "]\n\t"                                                    \
    "ldr %[x], %[columns]\n\t"                                                               \
    "add %[i], %[w], %[f]\n\t"                                                               \
    "str %[i], %[end]\n\t" TINYFUSE_COPY_##n                                                 \
    "lsls %[f], %[f], #" to_flags "\n\t"                                                               \
    "bcc 5f\n\t"                                                                             \
    "bmi 2f\n\t"                                                                             \
    "b 3f\n\t"                                                                               \
    "5:\n\t"                                                                                 \
    "bmi 4f\n\t"                                                                             \
    "1:\n\t" step                                                                            \
    "2:\n\t" step                                                                            \
    "3:\n\t" step                                                                            \
    "4:\n\t" step                                                                            \
    "ldr %[f], %[end]\n\t"                                                                   \
    "cmp %[w], %[f]\n\t"                                                                     \
    "bne 1b\n\t"                                                                             \
    "ldr %[x], %[channels]\n\t"                                                              \
    "ldr %[e], %[rounding]\n\t" output                                                       \
    "add %[x], #2 * " channel "\n\t"                                                         \
    "ldr %[i], %[last]\n\t"                                                                  \
    "str %[x], %[channels]\n\t"                                                              \
    "cmp %[x], %[i]\n\t" /* nothing below sets flags */                                      \
    "ldr %[x], %[out]\n\t"                                                                   \
    "ldr %[i], %[out_c]\n\t" TINYFUSE_PUT_##n                                                \
    "add %[x], #2\n\t"                                                                       \
    "str %[x], %[out]\n\t"                                                                   \
    "bne 6b"
#define TINYFUSE_PAIRS_ASM(n, step, to_flags, form)                                        \
    __asm volatile(TINYFUSE_PAIRS(n, step, to_flags, TINYFUSE_CHANNEL_##form,              \
                                  TINYFUSE_OUTPUT_##form(n))                               \
                   : [w] "+r"(w), [channels] "+m"(channels), [out] "+m"(out),              \
                     [end] "=m"(end), [s0] "=&r"(s0),                                      \
                     [s1] "=&r"(s1), [x] "=&r"(x), [wa] "=&r"(wa), [wb] "=&r"(wb),         \
                     [e] "=&r"(e), [f] "=&r"(f), [i] "=&r"(i),                             \
                     [j] "=&r"(j)TINYFUSE_SUMS_##n                                         \
                   : [columns] "m"(columns), [bytes] "m"(bytes), [rounding] "m"(rounding), \
                     [out_c] "m"(out_c), [last] "m"(last)                                  \
                   : "cc", "memory")
#define TINYFUSE_PAIRS_FORMS(n)                                \
    if (form == TINYFUSE_LINE) {                               \
        TINYFUSE_PAIRS_ASM(n, TINYFUSE_WEIGHTS_LANES TINYFUSE_STEP_##n, "28", LINE);   \
    } else if (form == TINYFUSE_LANES) {                       \
        TINYFUSE_PAIRS_ASM(n, TINYFUSE_WEIGHTS_LANES TINYFUSE_STEP_##n, "28", LANES);  \
    } else {                                                   \
        TINYFUSE_PAIRS_ASM(n, TINYFUSE_WEIGHTS_WIDE TINYFUSE_STEP_##n, "28", WIDE);    \
    }
#define TINYFUSE_SUMS_1
#define TINYFUSE_SUMS_2 , [s2] "=&r"(s2), [s3] "=&r"(s3), [k] "=&r"(k), [l] "=&r"(l)
#define TINYFUSE_SUMS_2_UNPACKED , [s2] "=&r"(s2), [s3] "=&r"(s3)
#define TINYFUSE_SUMS_3 \
    , [s2] "=&r"(s2), [s3] "=&r"(s3), [s4] "=&r"(s4), [s5] "=&r"(s5)

/* All channels but the last of an odd count, for `pixels` pixels; returns the weights behind. */
TINYFUSE_INLINE const int8_t *tinyfuse_matmul_pairs_dsp(const tinyfuse_matmul *p,
                                                        const int8_t *columns, const int8_t *w,
                                                        const void *channels, int8_t *out,
                                                        int pixels, int form)
{
    const int32_t bytes = p->depth / 2 * tinyfuse_weights_bytes(form);
    const int32_t out_c = p->out_c, rounding = p->rounding;
    const int8_t *end;
    const int8_t *const last =
        (const int8_t *)channels + (out_c & ~1) * (tinyfuse_on_line(form) ? 8 : 12);
    int32_t s0, s1, s2, s3, s4, s5;
    uint32_t x;
    if (out_c < 2) {
        return w;
    }
    if (form == TINYFUSE_UNPACKED) {
        register uint32_t e __asm("r8");
        register uint32_t f __asm("r9");
        register uint32_t wa __asm("r10");
        register uint32_t wb __asm("r11");
        uint32_t i, j;
        if (pixels == 3) {
            TINYFUSE_PAIRS_ASM(3, TINYFUSE_WEIGHTS_UNPACKED TINYFUSE_STEP_3, "27", LINE);
        } else if (pixels == 2) {
            TINYFUSE_PAIRS_ASM(2_UNPACKED, TINYFUSE_WEIGHTS_UNPACKED TINYFUSE_STEP_2_UNPACKED, "27",
                               LINE);
        } else {
            TINYFUSE_PAIRS_ASM(1, TINYFUSE_WEIGHTS_UNPACKED TINYFUSE_STEP_1, "27", LINE);
        }
    } else if (pixels == 2) {
        uint32_t wa, wb, e, f;
        register uint32_t i __asm("r8");
        register uint32_t j __asm("r9");
        register uint32_t k __asm("r10");
        register uint32_t l __asm("r11");
        TINYFUSE_PAIRS_FORMS(2)
    } else {
        uint32_t wa, wb, e, f, i, j;
        if (pixels == 3) {
            TINYFUSE_PAIRS_FORMS(3)
        } else {
            TINYFUSE_PAIRS_FORMS(1)
        }
    }
    return w;
}

#endif

/* The same in C. Sums are no array, and bytes are multiplied in this order, so that compilers keep all
   that the loop needs in registers. */
TINYFUSE_INLINE const int8_t *tinyfuse_matmul_pairs_c(const tinyfuse_matmul *p,
                                                      const int8_t *columns, const int8_t *w,
                                                      const void *channels, int8_t *out,
                                                      int pixels, int form)
{
    const int32_t step = tinyfuse_step_bytes(form), four = tinyfuse_weights_bytes(form);
    const int32_t out_c = p->out_c, rounding = p->rounding;
    /* from a channel's weights to the next one's */
    const int32_t next = form == TINYFUSE_UNPACKED ? 4 : four;
    int32_t o;
    for (o = 0; o + 1 < out_c; o += 2) {
        const int8_t *x = columns;
        const int8_t *const end = w + p->depth / 2 * four;
        int32_t s0 = tinyfuse_channel_bias(channels, o, form), s2 = s0, s4 = s0;
        int32_t s1 = tinyfuse_channel_bias(channels, o + 1, form), s3 = s1, s5 = s1;
        int8_t *to = out + o;
        for (; w != end; w += 2 * four) {
#define TINYFUSE_BYTE_PRODUCTS(j)              \
    {                                          \
        const int32_t v = w[j], u = w[4 + (j)]; \
        s0 += x[j] * v;                        \
        s1 += x[j] * u;                        \
        if (pixels > 1) {                      \
            s2 += x[4 + (j)] * v;              \
            s3 += x[4 + (j)] * u;              \
        }                                      \
        if (pixels > 2) {                      \
            s4 += x[8 + (j)] * v;              \
            s5 += x[8 + (j)] * u;              \
        }                                      \
    }
            if (tinyfuse_of_bytes(form)) {
                TINYFUSE_BYTE_PRODUCTS(0)
                TINYFUSE_BYTE_PRODUCTS(1)
                TINYFUSE_BYTE_PRODUCTS(2)
                TINYFUSE_BYTE_PRODUCTS(3)
            } else {
                s0 = tinyfuse_products(s0, x, w, 8, form);
                s1 = tinyfuse_products(s1, x, w + next, 8, form);
                if (pixels > 1) {
                    s2 = tinyfuse_products(s2, x + step, w, 8, form);
                    s3 = tinyfuse_products(s3, x + step, w + next, 8, form);
                }
                if (pixels > 2) {
                    s4 = tinyfuse_products(s4, x + 2 * step, w, 8, form);
                    s5 = tinyfuse_products(s5, x + 2 * step, w + next, 8, form);
                }
            }
            x += pixels * step;
        }
        to[0] = tinyfuse_channel_output(channels, o, s0, rounding, form);
        to[1] = tinyfuse_channel_output(channels, o + 1, s1, rounding, form);
        if (pixels > 1) {
            to += out_c;
            to[0] = tinyfuse_channel_output(channels, o, s2, rounding, form);
            to[1] = tinyfuse_channel_output(channels, o + 1, s3, rounding, form);
        }
        if (pixels > 2) {
            to += out_c;
            to[0] = tinyfuse_channel_output(channels, o, s4, rounding, form);
            to[1] = tinyfuse_channel_output(channels, o + 1, s5, rounding, form);
        }
    }
    return w;
}

TINYFUSE_INLINE const int8_t *tinyfuse_matmul_pairs(const tinyfuse_matmul *p,
                                                    const int8_t *columns, const int8_t *w,
                                                    const void *channels, int8_t *out,
                                                    int pixels, int form)
{
#if TINYFUSE_DSP
    if (!tinyfuse_of_bytes(form)) {
        return tinyfuse_matmul_pairs_dsp(p, columns, w, channels, out, pixels, form);
    }
#endif
    return tinyfuse_matmul_pairs_c(p, columns, w, channels, out, pixels, form);
}

/* One block: all channels of `pixels` (a constant) pixels, to out[pixels][out_c]. */
TINYFUSE_INLINE void tinyfuse_matmul_block(const tinyfuse_matmul *p, const int8_t *columns,
                                           const int8_t *weights, const void *channels, int8_t *out,
                                           int pixels, int form)
{
    const int8_t *w = tinyfuse_matmul_pairs(p, columns, weights, channels, out, pixels, form);
    if (p->out_c & 1) {
        const int32_t last = p->out_c - 1;
        int i;
        for (i = 0; i < pixels; ++i) {
            const int32_t step = tinyfuse_step_bytes(form);
            const int8_t *x = columns + step * i;
            int32_t k, sum = tinyfuse_channel_bias(channels, last, form);
            for (k = 0; k < p->depth; k += 4) {
                sum = tinyfuse_products(sum, x, w + k / 4 * tinyfuse_weights_bytes(form), 4, form);
                x += step * pixels;
            }
            out[i * p->out_c + last] =
                tinyfuse_channel_output(channels, last, sum, p->rounding, form);
        }
    }
}

#define TINYFUSE_MATMUL(name, pixels, form)                                                        \
    TINYFUSE_SHARED void name(const tinyfuse_matmul *p, const int8_t *columns,                    \
                              const int8_t *weights, const void *channels, int8_t *out)            \
    {                                                                                              \
        tinyfuse_matmul_block(p, columns, weights, channels, out, pixels, form);                   \
    }
#define TINYFUSE_MATMUL_FORMS(name, pixels)            \
    TINYFUSE_MATMUL(name##_wide, pixels, TINYFUSE_WIDE)   \
    TINYFUSE_MATMUL(name##_lanes, pixels, TINYFUSE_LANES) \
    TINYFUSE_MATMUL(name##_line, pixels, TINYFUSE_LINE)   \
    TINYFUSE_MATMUL(name##_unpacked, pixels, TINYFUSE_UNPACKED) \
    TINYFUSE_MATMUL(name##_bytes, pixels, TINYFUSE_BYTES) \
    TINYFUSE_MATMUL(name##_bytes_line, pixels, TINYFUSE_BYTES_LINE)
TINYFUSE_MATMUL_FORMS(tinyfuse_matmul_1, 1)
TINYFUSE_MATMUL_FORMS(tinyfuse_matmul_2, 2)
TINYFUSE_MATMUL_FORMS(tinyfuse_matmul_3, 3)

/* How many of `left` pixels the next block takes, at most `most` (2 or 3); with 3, a row of two or more
   leaves no single pixel for its end. */
TINYFUSE_INLINE int32_t tinyfuse_block_pixels(int32_t left, int32_t most)
{
    return left == 4 ? 2 : tinyfuse_min(left, most);
}

/* The function of a form. */
#define TINYFUSE_OF_FORM(form, name)                        \
    ((form) == TINYFUSE_LINE ? name##_line                  \
     : (form) == TINYFUSE_LANES ? name##_lanes              \
     : (form) == TINYFUSE_UNPACKED ? name##_unpacked        \
     : (form) == TINYFUSE_BYTES_LINE ? name##_bytes_line    \
     : (form) == TINYFUSE_BYTES ? name##_bytes : name##_wide)

/* One block of 1 to 3 pixels; `form` is a constant. */
TINYFUSE_INLINE void tinyfuse_matmul_pixels(const tinyfuse_matmul *p, const int8_t *columns,
                                            const int8_t *weights, const void *channels, int8_t *out,
                                            int32_t pixels, int form)
{
    if (pixels == 3) {
        TINYFUSE_OF_FORM(form, tinyfuse_matmul_3)(p, columns, weights, channels, out);
    } else if (pixels == 2) {
        TINYFUSE_OF_FORM(form, tinyfuse_matmul_2)(p, columns, weights, channels, out);
    } else {
        TINYFUSE_OF_FORM(form, tinyfuse_matmul_1)(p, columns, weights, channels, out);
    }
}

#endif
