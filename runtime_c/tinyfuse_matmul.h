/* The inner product of convolutions and fully connected layers: columns of int16 inputs times packed int8 weights,
   requantized in a form of tinyfuse_requantize.h.

   A block computes 1, 2 or 3 output pixels, two output channels at a time, so that every weight is converted to int16
   once for all pixels.

   In lanes, two weights share 16 bits and only one of them is converted. The lane of weights v, w of inputs x, y
   holds w - 256 * v, so its low byte is w. Columns hold a = 256 * y + x + 128 and b = 127 - x. Then a * w + b * lane
   = 256 * (v * x + w * y) + 255 * w - 256 * 127 * v: the sum in 256ths, and a constant that is part of the bias. It
   needs weights v other than -128, and sums below 2^23.

   Weights of int4 stay two to a byte. A word has four weights of both channels of a pair; a nibble at the top of 16 bits
   is 4096 times its weight, so a shift and a mask make an operand of SMLAD, and sums, biases included, are in 4096ths.
   They must stay below 2^19 ones: the compiler proves it, or stores int8.

   Weights of int16 (TINYFUSE_W16) have at most 9 bits: those of uint8 models, less their zero point.

   Cores without the DSP extension multiply byte by byte and convert nothing.

   columns  Aligned to 4. In lanes [depth / 4][2][pixels][2] int16: b, b for the two pairs of four inputs of all
            pixels, then their a, a. A lane is multiplied by b as it lies in memory, then converted in place.
            In wide forms [depth / 4][pixels][4] int16, four inputs in the order 0 2 1 3, which SXTB16 makes of four
            bytes. For weights of int4 [depth / 4][inputs 0 2, inputs 1 3][pixels][2] int16. Forms of bytes have int8 in
            the order of the input.
   weights  [out_c / 2][depth / 4][2][4] int8, then [depth] for the last of an odd count of channels;
            zeros beyond the layer's own depth. Aligned to 4. Of int4 [ceil(out_c / 2)][depth / 4] words, from the lowest
            nibble on: input 0 of both channels, input 1 of both; in the upper half inputs 2 and 3. Of int16 [out_c /
            2][depth / 4][2][2][2], inputs 0 2 of both channels, then inputs 1 3; the last of an odd count of channels has
            the order 0 2 1 3.
   channels [out_c] tinyfuse_single_rounding, tinyfuse_signed_rounding, or tinyfuse_requant, in lanes for sums in 256ths.
            For weights of int4, the biases are those of sums in 4096ths.

   Outputs may pass through a lookup table of 256 results, one for all channels or one per channel: elementwise
   operators that follow a layer then need no pass of their own. A table is given by the address of the result of 0;
   those of -128 to -1 lie before it. With one table for all channels, requantization may be sign-dependent; the table
   then has 512 results and is indexed by outputs less their zero point. */
#ifndef TINYFUSE_MATMUL_H
#define TINYFUSE_MATMUL_H

#include "tinyfuse_half_even.h"

/* Forms of a layer. With the DSP extension: weights converted one by one or in lanes, requantized in the bounded
   form; or in lanes, with a single rounding. Without it: bytes, requantized in the bounded form or with a single
   rounding. tinyfuse_int16_weights.h has weights of int16. */
enum {
    TINYFUSE_WIDE,
    TINYFUSE_LANES,
    TINYFUSE_SINGLE_ROUNDING,
    TINYFUSE_BYTES,
    TINYFUSE_BYTES_SINGLE_ROUNDING,
    /* in lanes, with sign-dependent rounding and a lookup table of 512 results for all channels */
    TINYFUSE_SIGNED_ROUNDING,
    TINYFUSE_LOOKED_UP = 8, /* flag beside one of the first three or the last one: outputs pass through lookup tables */
    /* with weights in lanes, or as bytes; requantized by tinyfuse_requantize_shifted */
    TINYFUSE_SHIFTED = 16,
    TINYFUSE_BYTES_SHIFTED,
    /* with weights in lanes, sign-extended one by one, or as bytes; requantized by tinyfuse_requantize_half_even */
    TINYFUSE_HALF_EVEN,
    TINYFUSE_HALF_EVEN_WIDE,
    TINYFUSE_BYTES_HALF_EVEN,
    /* with weights of int4, requantized in the bounded form or with a single rounding */
    TINYFUSE_INT4,
    TINYFUSE_INT4_SINGLE_ROUNDING,
    /* with weights of int16, requantized in the bounded form */
    TINYFUSE_W16
};

/* Properties of a form, which is a constant. */
TINYFUSE_INLINE int tinyfuse_looks_up(int form)
{
    return (form & TINYFUSE_LOOKED_UP) != 0;
}

TINYFUSE_INLINE int tinyfuse_of_bytes(int form)
{
    return form == TINYFUSE_BYTES || form == TINYFUSE_BYTES_SINGLE_ROUNDING || form == TINYFUSE_BYTES_SHIFTED ||
           form == TINYFUSE_BYTES_HALF_EVEN;
}

TINYFUSE_INLINE int tinyfuse_of_wide(int form)
{
    return form == TINYFUSE_WIDE || form == TINYFUSE_HALF_EVEN_WIDE || form == TINYFUSE_W16;
}

TINYFUSE_INLINE int tinyfuse_of_int4(int form)
{
    return form == TINYFUSE_INT4 || form == TINYFUSE_INT4_SINGLE_ROUNDING;
}

TINYFUSE_INLINE int tinyfuse_is_half_even(int form)
{
    return form == TINYFUSE_HALF_EVEN || form == TINYFUSE_HALF_EVEN_WIDE || form == TINYFUSE_BYTES_HALF_EVEN;
}

TINYFUSE_INLINE int tinyfuse_on_single_rounding(int form)
{
    return form == TINYFUSE_SINGLE_ROUNDING || form == TINYFUSE_BYTES_SINGLE_ROUNDING ||
           form == TINYFUSE_INT4_SINGLE_ROUNDING;
}

/* Returns the bytes of four inputs in a column. */
TINYFUSE_INLINE int32_t tinyfuse_step_bytes(int form)
{
    return tinyfuse_of_bytes(form) ? 4 : 8;
}

/* Returns the bytes from a pixel's first word of four inputs to the next pixel's. */
TINYFUSE_INLINE int32_t tinyfuse_pixel_bytes(int form)
{
    return tinyfuse_of_wide(form) ? 8 : 4;
}

/* The job of a block; assembly knows the offsets. All fields but `out` serve every block of a layer. `before` and
   `last` are addresses of multipliers: of the channel before the first one, if there were one, and of the last pair's
   second channel. Assembly advances `out`. The fields from `table` on are set for forms with lookup tables alone:
   `table` is that of the next channel, and advances in assembly; the next channel's lies `table_bytes` on, 0 where
   one serves all. */
typedef struct {
    int32_t rounding; /* tinyfuse_matmul_rounding */
    uintptr_t before;
    int8_t *out; /* [pixels][out_c] */
    int32_t out_c;
#if TINYFUSE_DSP
    uintptr_t last;
#endif
    const int8_t *table;
    int32_t table_bytes;
    const int8_t *tables;
#if TINYFUSE_DSP
    /* with sign-dependent rounding, in the place of the fields above */
    struct {
        const int8_t *table;
        int8_t *out;
        int32_t out_c;
        uintptr_t last;
    } bent;
#endif
} tinyfuse_matmul;

#if TINYFUSE_DSP
typedef char tinyfuse_check_tables[offsetof(tinyfuse_matmul, table) == 20 ? 1 : -1];
typedef char tinyfuse_check_signed_rounding[offsetof(tinyfuse_matmul, bent) == 32 ? 1 : -1];
#endif

TINYFUSE_INLINE int32_t tinyfuse_matmul_rounding(int32_t out_zero_point, int form)
{
    return tinyfuse_on_single_rounding(form) || form == TINYFUSE_HALF_EVEN || form == TINYFUSE_BYTES_HALF_EVEN
               ? tinyfuse_single_rounding_rounding(out_zero_point)
           : tinyfuse_is_half_even(form) ? out_zero_point
                                         : 2 * out_zero_point + 1;
}

/* Returns the bytes from a channel's multiplier to the next one's. */
TINYFUSE_INLINE uintptr_t tinyfuse_channel_bytes(int form)
{
    return tinyfuse_on_single_rounding(form) ? sizeof(tinyfuse_single_rounding)
           : tinyfuse_is_half_even(form)     ? sizeof(tinyfuse_half_even)
           : form == TINYFUSE_SIGNED_ROUNDING     ? sizeof(tinyfuse_signed_rounding)
                                       : sizeof(tinyfuse_requant);
}

TINYFUSE_INLINE tinyfuse_matmul tinyfuse_matmul_of(int32_t out_c, int32_t out_zero_point,
                                                   const void *channels, int form)
{
    const uintptr_t first = (uintptr_t)channels + offsetof(tinyfuse_single_rounding, multiplier);
    tinyfuse_matmul m;
    m.rounding = tinyfuse_matmul_rounding(out_zero_point, form);
    m.before = first - tinyfuse_channel_bytes(form);
    m.out = NULL;
    m.out_c = out_c;
#if TINYFUSE_DSP
    m.last = m.before + (uintptr_t)(out_c & ~1) * tinyfuse_channel_bytes(form);
#endif
    return m;
}

TINYFUSE_INLINE tinyfuse_matmul tinyfuse_matmul_lut_of(int32_t out_c, int32_t out_zero_point, const void *channels,
                                                       const int8_t *tables, int32_t table_bytes, int form)
{
    tinyfuse_matmul m = tinyfuse_matmul_of(out_c, out_zero_point, channels, form);
    m.table = tables;
    m.table_bytes = table_bytes;
    m.tables = tables;
#if TINYFUSE_DSP
    m.bent.out_c = m.out_c;
    m.bent.last = m.last;
#endif
    return m;
}

/* Returns the channels, [out_c] tinyfuse_single_rounding or tinyfuse_requant. */
TINYFUSE_INLINE const void *tinyfuse_matmul_channels(const tinyfuse_matmul *p, int form)
{
    return (const void *)(p->before + tinyfuse_channel_bytes(form) - offsetof(tinyfuse_single_rounding, multiplier));
}

/* Copies four bytes, wherever they lie. */
TINYFUSE_INLINE void tinyfuse_copy_word(int8_t *to, const int8_t *from)
{
#if defined(__arm__) && !defined(__ARM_FEATURE_UNALIGNED)
    /* compilers would call memcpy here */
    to[0] = from[0];
    to[1] = from[1];
    to[2] = from[2];
    to[3] = from[3];
#else
    memcpy(to, from, 4);
#endif
}

/* Converts 4 * words bytes, words > 0, as columns have them: four inputs to each `step` bytes from `to`; in lanes the
   second half goes to the second half of these, as inputs 1 3 do for weights of int4. Returns the next place. */
TINYFUSE_INLINE int8_t *tinyfuse_widen(const int8_t *from, int32_t words, int8_t *to, int32_t step,
                                       int form)
{
#if TINYFUSE_DSP
    const int8_t *const end = from + 4 * words;
    const int32_t by = tinyfuse_of_wide(form) ? step : step / 2;
    uint32_t even, odd;
#define TINYFUSE_WIDEN_WIDE "ldr %[odd], [%[from]], #4\n\t" TINYFUSE_WIDEN_LOADED_WIDE
#define TINYFUSE_WIDEN_LOADED_WIDE       \
    "sxtb16 %[even], %[odd]\n\t"         \
    "sxtb16 %[odd], %[odd], ror #8\n\t"  \
    "strd %[even], %[odd], [%[to]]\n\t"  \
    "add %[to], %[by]\n\t"
#define TINYFUSE_WIDEN_LANES "ldr %[odd], [%[from]], #4\n\t" TINYFUSE_WIDEN_LOADED_LANES
#define TINYFUSE_WIDEN_LOADED_LANES           \
    "eor %[even], %[odd], #0x00800080\n\t"    \
    "eor %[odd], %[odd], #0x007F007F\n\t"     \
    "uxtb16 %[odd], %[odd]\n\t"               \
    "str %[odd], [%[to]]\n\t"                 \
    "str %[even], [%[to], %[by]]\n\t"         \
    "add %[to], %[to], %[by], lsl #1\n\t"
#define TINYFUSE_WIDEN_INT4 "ldr %[odd], [%[from]], #4\n\t" TINYFUSE_WIDEN_LOADED_INT4
#define TINYFUSE_WIDEN_LOADED_INT4            \
    "sxtb16 %[even], %[odd]\n\t"              \
    "sxtb16 %[odd], %[odd], ror #8\n\t"       \
    "str %[even], [%[to]]\n\t"                \
    "str %[odd], [%[to], %[by]]\n\t"          \
    "add %[to], %[to], %[by], lsl #1\n\t"
#define TINYFUSE_WIDEN(word)                                                                     \
    __asm volatile("tst %[words], #1\n\t"                                                        \
                   "bne 2f\n\t"                                                                  \
                   "1:\n\t" word "2:\n\t" word                                                   \
                   "cmp %[from], %[end]\n\t"                                                     \
                   "bne 1b"                                                                      \
                   : [from] "+&r"(from), [to] "+&r"(to), [even] "=&r"(even), [odd] "=&r"(odd)      \
                   : [words] "r"(words), [by] "r"(by), [end] "r"(end)                            \
                   : "cc", "memory")
    if (tinyfuse_of_wide(form) != 0) {
        TINYFUSE_WIDEN(TINYFUSE_WIDEN_WIDE);
        return to;
    }
    if (tinyfuse_of_int4(form) != 0) {
        TINYFUSE_WIDEN(TINYFUSE_WIDEN_INT4);
        return to;
    }
    if (tinyfuse_of_bytes(form) == 0) {
        TINYFUSE_WIDEN(TINYFUSE_WIDEN_LANES);
        return to;
    }
#endif
    for (; words > 0; --words) {
        if (tinyfuse_of_bytes(form) != 0) {
            tinyfuse_copy_word(to, from);
        } else if (tinyfuse_of_wide(form) != 0 || tinyfuse_of_int4(form) != 0) {
            const int16_t wide[4] = {from[0], from[2], from[1], from[3]};
            memcpy(to, wide, sizeof wide / 2);
            memcpy(to + (tinyfuse_of_wide(form) != 0 ? 4 : step / 2), wide + 2, sizeof wide / 2);
        } else {
            const int16_t b[2] = {(int16_t)(127 - from[0]), (int16_t)(127 - from[2])};
            const int16_t a[2] = {(int16_t)(256 * from[1] + from[0] + 128), (int16_t)(256 * from[3] + from[2] + 128)};
            memcpy(to, b, sizeof b);
            memcpy(to + step / 2, a, sizeof a);
        }
        from += 4;
        to += step;
    }
    return to;
}

/* Converts four bytes in a register as tinyfuse_widen does. Returns the next place. */
TINYFUSE_INLINE int8_t *tinyfuse_widen_word(uint32_t word, int8_t *to, int32_t step, int form)
{
#if TINYFUSE_DSP
    const int32_t by = tinyfuse_of_wide(form) ? step : step / 2;
    uint32_t even;
#define TINYFUSE_WIDEN_ONE(loaded)                                              \
    __asm volatile(loaded : [to] "+&r"(to), [even] "=&r"(even), [odd] "+&r"(word) \
                   : [by] "r"(by) : "memory")
    if (tinyfuse_of_wide(form) != 0) {
        TINYFUSE_WIDEN_ONE(TINYFUSE_WIDEN_LOADED_WIDE);
        return to;
    }
    if (tinyfuse_of_int4(form) != 0) {
        TINYFUSE_WIDEN_ONE(TINYFUSE_WIDEN_LOADED_INT4);
        return to;
    }
    if (tinyfuse_of_bytes(form) == 0) {
        TINYFUSE_WIDEN_ONE(TINYFUSE_WIDEN_LOADED_LANES);
        return to;
    }
#endif
    {
        int8_t bytes[4];
        memcpy(bytes, &word, sizeof bytes);
        return tinyfuse_widen(bytes, 1, to, step, form);
    }
}

/* Returns `sum` plus the products of four inputs of a column with four weights of int16, two at w and two `apart`
   bytes on. Sums may wrap on their way. */
TINYFUSE_INLINE int32_t tinyfuse_products_w16(int32_t sum, const void *column, const void *w, int32_t apart)
{
    int16_t x[4], even[2], odd[2];
    uint32_t total = (uint32_t)sum;
    memcpy(x, column, sizeof x);
    memcpy(even, w, sizeof even);
    memcpy(odd, (const int8_t *)w + apart, sizeof odd);
    total += (uint32_t)(x[0] * even[0]) + (uint32_t)(x[1] * even[1]);
    total += (uint32_t)(x[2] * odd[0]) + (uint32_t)(x[3] * odd[1]);
    return (int32_t)total;
}

/* Returns `sum` plus the products of four inputs with the four weights of a channel in a form; a pixel's column has
   `step` bytes a step. */
TINYFUSE_INLINE int32_t tinyfuse_products(int32_t sum, const void *column, int32_t step, const int8_t *w, int form)
{
    const int16_t *const x = (const int16_t *)column;
    const int8_t *const b = (const int8_t *)column;
    uint32_t total = (uint32_t)sum;
    if (tinyfuse_of_bytes(form) != 0) {
        return sum + b[0] * w[0] + b[1] * w[1] + b[2] * w[2] + b[3] * w[3];
    }
    if (tinyfuse_of_wide(form) != 0) {
        total += (uint32_t)(x[0] * w[0] + x[1] * w[2] + x[2] * w[1] + x[3] * w[3]);
    } else {
        const int32_t first = 256 * w[1] + (uint8_t)w[0], second = 256 * w[3] + (uint8_t)w[2];
        const int16_t *const a = x + step / 4;
        /* unsigned sums: with -Og -fsanitize=undefined gcc 12 underestimates the length of int32 ones, and branches
           over them too far */
        total += (uint32_t)(x[0] * first) + (uint32_t)(a[0] * w[0]);
        total += (uint32_t)(x[1] * second) + (uint32_t)(a[1] * w[2]);
    }
    return (int32_t)total;
}

/* Returns the weight in the lowest nibble. */
TINYFUSE_INLINE int32_t tinyfuse_nibble(uint32_t word)
{
    return (int32_t)((word & 15u) ^ 8u) - 8;
}

/* Returns what tinyfuse_products does, with the weights of the first or the second channel of a pair, which are at w. */
TINYFUSE_INLINE int32_t tinyfuse_pair_products(int32_t sum, const void *column, int32_t step, const int8_t *w, int second,
                                               int form)
{
    if (tinyfuse_of_int4(form) != 0) {
        const int16_t *const even = (const int16_t *)column, *const odd = even + step / 4;
        const uint32_t word = tinyfuse_load_u32(w) >> 4 * second;
        const int32_t products = even[0] * tinyfuse_nibble(word) + odd[0] * tinyfuse_nibble(word >> 8) +
                                 even[1] * tinyfuse_nibble(word >> 16) + odd[1] * tinyfuse_nibble(word >> 24);
        return (int32_t)((uint32_t)sum + 4096u * (uint32_t)products);
    }
    if (form == TINYFUSE_W16) {
        return tinyfuse_products_w16(sum, column, w + 4 * second, 8);
    }
    return tinyfuse_products(sum, column, step, w + 4 * second, form);
}

/* Returns the value that a channel's sum begins with. */
TINYFUSE_INLINE int32_t tinyfuse_channel_bias(const void *channels, int32_t channel, int form)
{
    if (form == TINYFUSE_BYTES_SINGLE_ROUNDING || form == TINYFUSE_BYTES_HALF_EVEN) {
        return 0; /* a bias of single rounding is in 256ths, the sum is not */
    }
    if (form == TINYFUSE_SIGNED_ROUNDING) {
        return ((const tinyfuse_signed_rounding *)channels)[channel].bias;
    }
    if (tinyfuse_is_half_even(form) != 0) {
        return ((const tinyfuse_half_even *)channels)[channel].bias;
    }
    return tinyfuse_on_single_rounding(form) ? ((const tinyfuse_single_rounding *)channels)[channel].bias
                                  : ((const tinyfuse_requant *)channels)[channel].bias;
}

/* Returns the stored output of a sum in a form with two roundings. */
TINYFUSE_INLINE int8_t tinyfuse_scaled_output(int32_t sum, int32_t multiplier, int32_t shift, int32_t rounding,
                                              int form)
{
    if (form == TINYFUSE_SHIFTED || form == TINYFUSE_BYTES_SHIFTED) {
        const int32_t value = form == TINYFUSE_SHIFTED ? sum >> 8 : sum;
        return (int8_t)tinyfuse_requantize_shifted(value, multiplier, shift, rounding);
    }
    if (form == TINYFUSE_INT4) {
        sum >>= 12;
    }
    return (int8_t)(form == TINYFUSE_LANES ? tinyfuse_requantize_256ths(sum, multiplier, shift, rounding)
                                           : tinyfuse_requantize_bounded(sum, multiplier, shift, rounding));
}

/* Returns the stored output of a channel's sum. */
TINYFUSE_INLINE int8_t tinyfuse_channel_output(const void *channels, int32_t channel, int32_t sum,
                                               int32_t rounding, int form)
{
    if (tinyfuse_on_single_rounding(form) != 0) {
        const tinyfuse_single_rounding *const l = (const tinyfuse_single_rounding *)channels + channel;
        const int32_t value = tinyfuse_of_bytes(form)  ? (int32_t)(256u * (uint32_t)sum + (uint32_t)l->bias)
                              : tinyfuse_of_int4(form) ? sum >> 4
                                                       : sum;
        return (int8_t)tinyfuse_requantize_single_rounding(value, l->multiplier, rounding);
    } else if (form == TINYFUSE_BYTES_HALF_EVEN) {
        const tinyfuse_half_even *const l = (const tinyfuse_half_even *)channels + channel;
        return (int8_t)tinyfuse_requantize_plain_single_or_half_even(sum, l, rounding);
    } else if (tinyfuse_is_half_even(form) != 0) {
        const int32_t scale = ((const tinyfuse_half_even *)channels)[channel].scale;
        return (int8_t)(form == TINYFUSE_HALF_EVEN ? tinyfuse_requantize_single_or_half_even(sum, scale, rounding)
                                                   : tinyfuse_requantize_half_even(sum, scale, rounding));
    } else {
        const tinyfuse_requant *const r = (const tinyfuse_requant *)channels + channel;
        return tinyfuse_scaled_output(sum, r->multiplier, r->shift, rounding, form);
    }
}

/* Returns the stored output of a channel's sum, mapped by a lookup table where the form has one. */
TINYFUSE_INLINE int8_t tinyfuse_matmul_output(const tinyfuse_matmul *p, const void *channels, int32_t channel,
                                              int32_t sum, int32_t rounding, int form)
{
    const int plain = form & ~TINYFUSE_LOOKED_UP;
    if (plain == TINYFUSE_SIGNED_ROUNDING) {
        const tinyfuse_signed_rounding *const l = (const tinyfuse_signed_rounding *)channels + channel;
        return p->tables[tinyfuse_requantize_signed_rounding(sum, l->multiplier, l->bend)];
    } else {
        const int8_t output = tinyfuse_channel_output(channels, channel, sum, rounding, plain);
        return tinyfuse_looks_up(form) ? p->tables[channel * p->table_bytes + output] : output;
    }
}

#if TINYFUSE_DSP

/* Computes pairs of channels for a constant count of pixels. The loop of a pair has
     r0       columns of four inputs; r1 weights of two channels
     r2 to r7 sums: those of the pixels' first channel are r2, r4, r6, of the second r3, r5, r7
     r10, r11 the two channels' lanes, then their low bytes, converted; else weights of inputs 1 3, and
     r8, r9   those of inputs 0 2
     r12, lr  a pixel's inputs; with two pixels r6 and r7 have the first one's
     In lanes r8, r9 and r12 have inputs of the pixels, with two r6 to r9, and lr the end of the columns.
     With weights of int4 r8 is a channel's operand, r10 the word, r11 the mask of the top of 16 bits; r9, r12 and lr have
     inputs of the pixels, with two r6, r7, r9 and r12, with one r9 and r12.

   On the stack, in words from the stack pointer: columns, depth, end of the columns, `before`, tinyfuse_matmul. */
#define TINYFUSE_WEIGHTS_WIDE             \
    "ldrd r10, r11, [r1], #8\n\t"         \
    "sxtb16 r8, r10\n\t"                  \
    "sxtb16 r9, r11\n\t"                  \
    "sxtb16 r10, r10, ror #8\n\t"         \
    "sxtb16 r11, r11, ror #8\n\t"
#define TINYFUSE_WEIGHTS_W16 "ldm r1!, {r8, r9, r10, r11}\n\t"
#define TINYFUSE_PRODUCTS(even, odd, first, second)        \
    "smlad " first ", " even ", r8, " first "\n\t"         \
    "smlad " second ", " even ", r9, " second "\n\t"       \
    "smlad " first ", " odd ", r10, " first "\n\t"         \
    "smlad " second ", " odd ", r11, " second "\n\t"
#define TINYFUSE_PIXEL(first, second) \
    "ldrd r12, lr, [r0], #8\n\t" TINYFUSE_PRODUCTS("r12", "lr", first, second)
#define TINYFUSE_STEP_1 TINYFUSE_PIXEL("r2", "r3")
#define TINYFUSE_STEP_2                   \
    "ldm r0!, {r6, r7, r12, lr}\n\t"      \
    TINYFUSE_PRODUCTS("r6", "r7", "r2", "r3") TINYFUSE_PRODUCTS("r12", "lr", "r4", "r5")
#define TINYFUSE_STEP_3 TINYFUSE_PIXEL("r2", "r3") TINYFUSE_PIXEL("r4", "r5") TINYFUSE_PIXEL("r6", "r7")
#define TINYFUSE_LANE(inputs, first, second)                \
    "smlad " first ", " inputs ", r10, " first "\n\t"       \
    "smlad " second ", " inputs ", r11, " second "\n\t"
#define TINYFUSE_WEIGHTS_LANES "ldrd r10, r11, [r1], #8\n\t"
#define TINYFUSE_LOW_BYTES "sxtb16 r10, r10\n\tsxtb16 r11, r11\n\t"
#define TINYFUSE_LANES_1                                                                   \
    TINYFUSE_WEIGHTS_LANES "ldrd r8, r9, [r0], #8\n\t" TINYFUSE_LANE("r8", "r2", "r3")     \
    TINYFUSE_LOW_BYTES TINYFUSE_LANE("r9", "r2", "r3")
#define TINYFUSE_LANES_2                                                                   \
    TINYFUSE_WEIGHTS_LANES "ldm r0!, {r6, r7, r8, r9}\n\t"                                 \
    TINYFUSE_LANE("r6", "r2", "r3") TINYFUSE_LANE("r7", "r4", "r5") TINYFUSE_LOW_BYTES     \
    TINYFUSE_LANE("r8", "r2", "r3") TINYFUSE_LANE("r9", "r4", "r5")
#define TINYFUSE_LANES_OF_3                                                                \
    "ldm r0!, {r8, r9, r12}\n\t" TINYFUSE_LANE("r8", "r2", "r3")                           \
    TINYFUSE_LANE("r9", "r4", "r5") TINYFUSE_LANE("r12", "r6", "r7")
#define TINYFUSE_LANES_3 TINYFUSE_WEIGHTS_LANES TINYFUSE_LANES_OF_3 TINYFUSE_LOW_BYTES TINYFUSE_LANES_OF_3

#define TINYFUSE_INT4_MAC(sum, input) "smlad " sum ", " input ", r8, " sum "\n\t"
#define TINYFUSE_INT4_OF(shift) "and r8, r11, r10" shift "\n\t"
#define TINYFUSE_INT4_HALF_1(x, first, second)                                        \
    TINYFUSE_INT4_OF(first) TINYFUSE_INT4_MAC("r2", x)                                \
    TINYFUSE_INT4_OF(second) TINYFUSE_INT4_MAC("r3", x)
#define TINYFUSE_INT4_HALF_2(x, y, first, second)                                     \
    TINYFUSE_INT4_OF(first) TINYFUSE_INT4_MAC("r2", x) TINYFUSE_INT4_MAC("r4", y)     \
    TINYFUSE_INT4_OF(second) TINYFUSE_INT4_MAC("r3", x) TINYFUSE_INT4_MAC("r5", y)
#define TINYFUSE_INT4_HALF_3(first, second)                                           \
    "ldm r0!, {r9, r12, lr}\n\t"                                                      \
    TINYFUSE_INT4_OF(first) TINYFUSE_INT4_MAC("r2", "r9")                             \
    TINYFUSE_INT4_MAC("r4", "r12") TINYFUSE_INT4_MAC("r6", "lr")                      \
    TINYFUSE_INT4_OF(second) TINYFUSE_INT4_MAC("r3", "r9")                            \
    TINYFUSE_INT4_MAC("r5", "r12") TINYFUSE_INT4_MAC("r7", "lr")
#define TINYFUSE_INT4_1                                                               \
    "ldr r10, [r1], #4\n\tldrd r9, r12, [r0], #8\n\t"                                 \
    TINYFUSE_INT4_HALF_1("r9", ", lsl #12", ", lsl #8") TINYFUSE_INT4_HALF_1("r12", ", lsl #4", "")
#define TINYFUSE_INT4_2                                                               \
    "ldr r10, [r1], #4\n\tldm r0!, {r6, r7, r9, r12}\n\t"                             \
    TINYFUSE_INT4_HALF_2("r6", "r7", ", lsl #12", ", lsl #8") TINYFUSE_INT4_HALF_2("r9", "r12", ", lsl #4", "")
#define TINYFUSE_INT4_3                                                               \
    "ldr r10, [r1], #4\n\t"                                                           \
    TINYFUSE_INT4_HALF_3(", lsl #12", ", lsl #8") TINYFUSE_INT4_HALF_3(", lsl #4", "")

#define TINYFUSE_EVERY_1(do_it, a, b, c) do_it(a)
#define TINYFUSE_EVERY_2(do_it, a, b, c) do_it(a) do_it(b)
#define TINYFUSE_EVERY_3(do_it, a, b, c) do_it(a) do_it(b) do_it(c)

/* Initial sums of a pair, and their outputs. r0 is the tinyfuse_matmul, r9 the multiplier of the channel before the
   pair, and then of its second channel; in the end r10 out, r11 out_c, r12 last. TINYFUSE_OUTPUT_SINGLE_ROUNDING:
   tinyfuse_requantize_single_rounding; r8 rounding, lr the multiplier. */
#define TINYFUSE_BIASES_SINGLE_ROUNDING "ldr r2, [r9, #4]\n\tldr r3, [r9, #12]\n\t"
#define TINYFUSE_ON_SINGLE_ROUNDING(s) "smmla " s ", " s ", lr, r8\n\t" TINYFUSE_SINGLE_ROUNDING_SATURATE(s)
#define TINYFUSE_OUTPUT_SINGLE_ROUNDING(n)                                                   \
    "ldm r0, {r8, r9, r10, r11, r12}\n\t"                                              \
    "ldr lr, [r9, #8]\n\t" TINYFUSE_EVERY_##n(TINYFUSE_ON_SINGLE_ROUNDING, "r2", "r4", "r6") \
    "ldr lr, [r9, #16]!\n\t" TINYFUSE_EVERY_##n(TINYFUSE_ON_SINGLE_ROUNDING, "r3", "r5", "r7")
/* tinyfuse_requantize_bounded: r8 rounding, r10 multiplier, r11 shift, r12 rounding << shift. */
#define TINYFUSE_BIASES_WIDE "ldr r2, [r9, #8]\n\tldr r3, [r9, #20]\n\t"
#define TINYFUSE_BOUNDED(s)               \
    "add lr, " s ", r12\n\t"              \
    "add lr, lr, " s ", asr #31\n\t"      \
    "smmlar " s ", " s ", r10, lr\n\t"    \
    "asr " s ", r11\n\t"                  \
    "ssat " s ", #8, " s ", asr #1\n\t"
#define TINYFUSE_OUTPUTS_BOUNDED(n, output)                                    \
    "ldrd r8, r9, [r0]\n\t"                                                    \
    "ldrd r10, r11, [r9, #12]\n\t"                                             \
    "lsl r12, r8, r11\n\t" TINYFUSE_EVERY_##n(output, "r2", "r4", "r6")        \
    "ldrd r10, r11, [r9, #24]!\n\t"                                            \
    "lsl r12, r8, r11\n\t" TINYFUSE_EVERY_##n(output, "r3", "r5", "r7")        \
    "ldrd r10, r11, [r0, #8]\n\t"                                              \
    "ldr r12, [r0, #16]\n\t"
#define TINYFUSE_OUTPUT_WIDE(n) TINYFUSE_OUTPUTS_BOUNDED(n, TINYFUSE_BOUNDED)
#define TINYFUSE_BIASES_LANES TINYFUSE_BIASES_WIDE
/* tinyfuse_requantize_256ths, in the same registers. */
#define TINYFUSE_BOUNDED_256THS(s)          \
    "asr " s ", #7\n\t"                     \
    "sub lr, r12, " s ", lsr #31\n\t"       \
    "smmlar " s ", " s ", r10, lr\n\t"      \
    "asr " s ", r11\n\t"                    \
    "ssat " s ", #8, " s ", asr #1\n\t"
#define TINYFUSE_OUTPUT_LANES(n) TINYFUSE_OUTPUTS_BOUNDED(n, TINYFUSE_BOUNDED_256THS)
/* with weights of int4, of sums in 4096ths */
#define TINYFUSE_INT4_MASK "mov r11, #0xF000F000\n\t"
#define TINYFUSE_BIASES_INT4 TINYFUSE_BIASES_WIDE TINYFUSE_INT4_MASK
#define TINYFUSE_BIASES_INT4_SINGLE_ROUNDING TINYFUSE_BIASES_SINGLE_ROUNDING TINYFUSE_INT4_MASK
#define TINYFUSE_TO_ONES(s) "asr " s ", #12\n\t"
#define TINYFUSE_TO_256THS(s) "asr " s ", #4\n\t"
#define TINYFUSE_OUTPUT_INT4(n)                                      \
    TINYFUSE_EVERY_##n(TINYFUSE_TO_ONES, "r2", "r4", "r6")           \
    TINYFUSE_EVERY_##n(TINYFUSE_TO_ONES, "r3", "r5", "r7") TINYFUSE_OUTPUT_WIDE(n)
#define TINYFUSE_OUTPUT_INT4_SINGLE_ROUNDING(n)                      \
    TINYFUSE_EVERY_##n(TINYFUSE_TO_256THS, "r2", "r4", "r6")         \
    TINYFUSE_EVERY_##n(TINYFUSE_TO_256THS, "r3", "r5", "r7") TINYFUSE_OUTPUT_SINGLE_ROUNDING(n)
/* tinyfuse_requantize_shifted, in the same registers; shifts by registers take the lowest byte. */
#define TINYFUSE_BIASES_SHIFTED TINYFUSE_BIASES_WIDE
#define TINYFUSE_EITHER_WAY(s)              \
    "asr " s ", #7\n\t"                     \
    "lsr lr, r11, #8\n\t"                   \
    "lsl " s ", lr\n\t"                     \
    "smmulr " s ", " s ", r10\n\t"          \
    "add lr, r12, " s ", asr #31\n\t"       \
    "add " s ", lr, " s ", lsl #1\n\t"      \
    "asr " s ", r11\n\t"                    \
    "ssat " s ", #8, " s ", asr #1\n\t"
#define TINYFUSE_OUTPUT_SHIFTED(n) TINYFUSE_OUTPUTS_BOUNDED(n, TINYFUSE_EITHER_WAY)

/* tinyfuse_requantize_half_even, of products below 2^30: r8 the output zero point, s6 and s7 the scales. */
#define TINYFUSE_BIASES_HALF_EVEN TINYFUSE_BIASES_SINGLE_ROUNDING
#define TINYFUSE_BIASES_HALF_EVEN_WIDE TINYFUSE_BIASES_SINGLE_ROUNDING
#define TINYFUSE_TO_FLOATS(s) "vcvt.f32.s32 " s ", " s "\n\t"
#define TINYFUSE_TO_NEAREST(s) "vcvtr.s32.f32 " s ", " s "\n\t"
#define TINYFUSE_FLOATS_AT(do_it, first, second) do_it(first) do_it(second)
#define TINYFUSE_HALF_EVEN_BY(multiply, a, b, first, second)    \
    "vmov " a ", " b ", " first ", " second "\n\t"              \
    TINYFUSE_FLOATS_AT(TINYFUSE_TO_FLOATS, a, b)                \
    multiply ".f32 " a ", " a ", s6\n\t"                        \
    multiply ".f32 " b ", " b ", s7\n\t"                        \
    TINYFUSE_FLOATS_AT(TINYFUSE_TO_NEAREST, a, b)
#define TINYFUSE_HALF_EVEN_PIXEL(a, b, first, second) TINYFUSE_HALF_EVEN_BY("vmul", a, b, first, second)
/* of scales that are negated */
#define TINYFUSE_HALF_EVEN_NEGATED(a, b, first, second) TINYFUSE_HALF_EVEN_BY("vnmul", a, b, first, second)
#define TINYFUSE_ADD_AND_SATURATE(s) "add " s ", r8\n\tssat " s ", #8, " s "\n\t"
#define TINYFUSE_HALF_EVEN_STORED(a, b, first, second)     \
    "vmov " first ", " second ", " a ", " b "\n\t"         \
    TINYFUSE_ADD_AND_SATURATE(first) TINYFUSE_ADD_AND_SATURATE(second)
#define TINYFUSE_HALF_EVEN_1(do_it) do_it("s0", "s1", "r2", "r3")
#define TINYFUSE_HALF_EVEN_2(do_it) TINYFUSE_HALF_EVEN_1(do_it) do_it("s2", "s3", "r4", "r5")
#define TINYFUSE_HALF_EVEN_3(do_it) TINYFUSE_HALF_EVEN_2(do_it) do_it("s4", "s5", "r6", "r7")
#define TINYFUSE_HALF_EVEN_PAIR(n, pixel)                   \
    "vldr.32 s6, [r9, #8]\n\t"                              \
    "vldr.32 s7, [r9, #16]\n\t"                             \
    TINYFUSE_HALF_EVEN_##n(pixel)                           \
    TINYFUSE_HALF_EVEN_##n(TINYFUSE_HALF_EVEN_STORED)       \
    "add r9, #16\n\t"
#define TINYFUSE_OUTPUT_HALF_EVEN_WIDE(n) \
    "ldm r0, {r8, r9, r10, r11, r12}\n\t" TINYFUSE_HALF_EVEN_PAIR(n, TINYFUSE_HALF_EVEN_PIXEL)
/* tinyfuse_requantize_single_or_half_even, as the first channel of the pair says */
#define TINYFUSE_OUTPUT_HALF_EVEN(n)                                                         \
    "ldm r0, {r8, r9, r10, r11, r12}\n\t"                                                    \
    "ldr lr, [r9, #8]\n\t"                                                                   \
    "cmp lr, #0\n\t"                                                                         \
    "bmi 8f\n\t" TINYFUSE_EVERY_##n(TINYFUSE_ON_SINGLE_ROUNDING, "r2", "r4", "r6")           \
    "ldr lr, [r9, #16]!\n\t" TINYFUSE_EVERY_##n(TINYFUSE_ON_SINGLE_ROUNDING, "r3", "r5", "r7") \
    "b 9f\n\t"                                                                               \
    "8:\n\t" TINYFUSE_ZERO_POINT_OF("r8") TINYFUSE_HALF_EVEN_PAIR(n, TINYFUSE_HALF_EVEN_NEGATED) \
    "9:\n\t"

/* tinyfuse_requantize_signed_rounding: lr the multiplier, r8 the bend, r12 what is added of it. r0 is the tinyfuse_matmul's
   `bent`; in the end r8 is the first channel's table, r10 to r12 as above. */
#define TINYFUSE_BIASES_SIGNED_ROUNDING TINYFUSE_BIASES_WIDE
#define TINYFUSE_ON_SIGNED_ROUNDING(s)         \
    "bic r12, r8, " s ", asr #31\n\t"        \
    "smmla " s ", " s ", lr, r12\n\t" TINYFUSE_SIGNED_ROUNDING_SATURATE(s)
#define TINYFUSE_OUTPUTS_SIGNED_ROUNDING(n)                                                              \
    "ldrd lr, r8, [r9, #12]\n\t" TINYFUSE_EVERY_##n(TINYFUSE_ON_SIGNED_ROUNDING, "r2", "r4", "r6")       \
    "ldrd lr, r8, [r9, #24]!\n\t" TINYFUSE_EVERY_##n(TINYFUSE_ON_SIGNED_ROUNDING, "r3", "r5", "r7")      \
    "ldm r0, {r8, r10, r11, r12}\n\t"

/* For a count of pixels: the end (r4) of the columns (r2), depth being r3; copies of the biases; stores, which leave
   r10 at the pair after. */
#define TINYFUSE_END_1 "add r4, r2, r3, lsl #1\n\t"
#define TINYFUSE_END_2 "add r4, r2, r3, lsl #2\n\t"
#define TINYFUSE_END_3 "add r4, r3, r3, lsl #1\n\tadd r4, r2, r4, lsl #1\n\t"
#define TINYFUSE_COPY_1 ""
#define TINYFUSE_COPY_2 "mov r4, r2\n\tmov r5, r3\n\t"
#define TINYFUSE_COPY_3 TINYFUSE_COPY_2 "mov r6, r2\n\tmov r7, r3\n\t"
#define TINYFUSE_PUT_1 "bfi r2, r3, #8, #8\n\tstrh r2, [r10], #2\n\t"
#define TINYFUSE_PUT_2 "bfi r4, r5, #8, #8\n\tstrh r4, [r10, r11]\n\t" TINYFUSE_PUT_1
#define TINYFUSE_PUT_3 "bfi r6, r7, #8, #8\n\tstrh r6, [r10, r11, lsl #1]\n\t" TINYFUSE_PUT_2

/* Maps the outputs of a count of pixels, of both channels, by tables. */
#define TINYFUSE_RESULT_OF(s) "ldrb " s ", [r8, " s "]\n\t"
#define TINYFUSE_LOOK_UP_PAIR(n)                                    \
    "ldrd r8, lr, [r0, #20]\n\t"                                    \
    TINYFUSE_EVERY_##n(TINYFUSE_RESULT_OF, "r2", "r4", "r6")          \
    "add r8, lr\n\t"                                               \
    TINYFUSE_EVERY_##n(TINYFUSE_RESULT_OF, "r3", "r5", "r7")          \
    "add r8, lr\n\t"                                               \
    "str r8, [r0, #20]\n\t"

/* Maps outputs by one table, at r8. */
#define TINYFUSE_LOOK_UP_ONE(n)                               \
    TINYFUSE_EVERY_##n(TINYFUSE_RESULT_OF, "r2", "r4", "r6")  \
    TINYFUSE_EVERY_##n(TINYFUSE_RESULT_OF, "r3", "r5", "r7")

/* A loop of four steps. It is entered in its middle, so that only whole iterations remain: the bits of depth that
   count single steps and pairs of them go to N and C. */
#define TINYFUSE_UNTIL_WIDE "ldr r12, [sp, #8]\n\tcmp r0, r12\n\t"
#define TINYFUSE_UNTIL_LANES "cmp r0, lr\n\t"
#define TINYFUSE_UNTIL_SINGLE_ROUNDING TINYFUSE_UNTIL_LANES
#define TINYFUSE_UNTIL_SHIFTED TINYFUSE_UNTIL_LANES
#define TINYFUSE_UNTIL_HALF_EVEN TINYFUSE_UNTIL_LANES
#define TINYFUSE_UNTIL_HALF_EVEN_WIDE TINYFUSE_UNTIL_WIDE
#define TINYFUSE_UNTIL_INT4 TINYFUSE_UNTIL_WIDE
#define TINYFUSE_UNTIL_INT4_SINGLE_ROUNDING TINYFUSE_UNTIL_WIDE
#define TINYFUSE_PAIRS_ASM(n, step, form) TINYFUSE_PAIRS_THEN_ASM(n, step, form, "")
#define TINYFUSE_PAIRS_THEN_ASM(n, step, form, then)                                           \
    TINYFUSE_PAIRS_WITH_ASM(n, step, form, p, "4", "ldr r0, [sp, #16]\n\t", TINYFUSE_OUTPUT_##form(n), \
                            then, "strd r9, r10, [r0, #4]\n\t",                                \
                            "pop {r2, r3, r4, r9}\n\tstr r9, [r0, #4]\n\t")
/* With sign-dependent rounding the multiplier before the pair stays on the stack. */
#define TINYFUSE_SIGNED_ROUNDING_PAIRS_ASM(n)                                                                        \
    TINYFUSE_PAIRS_WITH_ASM(n, TINYFUSE_LANES_##n, SIGNED_ROUNDING, &p->bent, "-28", "ldrd r9, r0, [sp, #12]\n\t", \
                            TINYFUSE_OUTPUTS_SIGNED_ROUNDING(n), TINYFUSE_LOOK_UP_ONE(n),                            \
                            "str r9, [sp, #12]\n\tstm r0, {r8, r10}\n\t", "add sp, #16\n\t")
/* Arguments: `job` is what r0 points to, `before` the offset of tinyfuse_matmul's `before` from there; `begin`,
   `outputs` and `then` are code of a pair's sums, `finish` and the rest of all. */
#define TINYFUSE_PAIRS_WITH_ASM(n, step, form, job, before, begin, outputs, then, finish, end) \
    {                                                                                        \
        register void *r0 __asm("r0") = job;                                                 \
        register const int8_t *r1 __asm("r1") = weights;                                     \
        register const int8_t *r2 __asm("r2") = columns;                                     \
        register int32_t r3 __asm("r3") = depth;                                             \
        __asm volatile("push {r0, r2-r11, lr}\n\t"                                           \
                       "ldr r9, [r0, #" before "]\n\t" TINYFUSE_END_##n                      \
                       "push {r2, r3, r4, r9}\n\t"                                           \
                       "b 6f\n\t"                                                            \
                       "5:\n\t"                                                              \
                       "bmi 2f\n\t"                                                          \
                       "b 3f\n\t"                                                            \
                       "6:\n\t" TINYFUSE_BIASES_##form                                       \
                       "ldm sp, {r0, r9, lr}\n\t" TINYFUSE_COPY_##n                          \
                       "lsls r9, r9, #29\n\t"                                                \
                       "bcs 5b\n\t"                                                          \
                       "bmi 4f\n\t"                                                          \
                       "1:\n\t" step                                                         \
                       "2:\n\t" step                                                         \
                       "3:\n\t" step                                                         \
                       "4:\n\t" step TINYFUSE_UNTIL_##form                                   \
                       "bne 1b\n\t" begin outputs                                            \
                       "cmp r9, r12\n\t" /* nothing below sets flags */                      \
                       then TINYFUSE_PUT_##n finish                                          \
                       "bne 6b\n\t" end                                                      \
                       "pop {r0, r2-r11, lr}\n\t"                                            \
                       : "+r"(r1)                                                            \
                       : "r"(r0), "r"(r2), "r"(r3)                                           \
                       : "r12", TINYFUSE_CLOBBERS_FPU "cc", "memory");                       \
    }
#define TINYFUSE_UNTIL_SIGNED_ROUNDING TINYFUSE_UNTIL_LANES
#define TINYFUSE_PAIRS_FORMS(n, then)                                                         \
    if (plain == TINYFUSE_SINGLE_ROUNDING) {                                                        \
        TINYFUSE_PAIRS_THEN_ASM(n, TINYFUSE_LANES_##n, SINGLE_ROUNDING, then)                       \
    } else if (plain == TINYFUSE_LANES) {                                                     \
        TINYFUSE_PAIRS_THEN_ASM(n, TINYFUSE_LANES_##n, LANES, then)                               \
    } else {                                                                                  \
        TINYFUSE_PAIRS_THEN_ASM(n, TINYFUSE_WEIGHTS_WIDE TINYFUSE_STEP_##n, WIDE, then)       \
    }
#if TINYFUSE_FPU
#define TINYFUSE_PAIRS_HALF_EVEN_ASM(n, step, form) TINYFUSE_PAIRS_ASM(n, step, form)
#else
#define TINYFUSE_PAIRS_HALF_EVEN_ASM(n, step, form) /* never reached */
#endif
#define TINYFUSE_PAIRS_OF(n)                                                                           \
    if (plain == TINYFUSE_SIGNED_ROUNDING) {                                                           \
        TINYFUSE_SIGNED_ROUNDING_PAIRS_ASM(n)                                                          \
    } else if (plain == TINYFUSE_SHIFTED) {                                                            \
        TINYFUSE_PAIRS_ASM(n, TINYFUSE_LANES_##n, SHIFTED)                                             \
    } else if (plain == TINYFUSE_INT4) {                                                               \
        TINYFUSE_PAIRS_ASM(n, TINYFUSE_INT4_##n, INT4)                                                 \
    } else if (plain == TINYFUSE_INT4_SINGLE_ROUNDING) {                                               \
        TINYFUSE_PAIRS_ASM(n, TINYFUSE_INT4_##n, INT4_SINGLE_ROUNDING)                                 \
    } else if (plain == TINYFUSE_W16) {                                                                \
        TINYFUSE_PAIRS_ASM(n, TINYFUSE_WEIGHTS_W16 TINYFUSE_STEP_##n, WIDE)                            \
    } else if (plain == TINYFUSE_HALF_EVEN) {                                                          \
        TINYFUSE_PAIRS_HALF_EVEN_ASM(n, TINYFUSE_LANES_##n, HALF_EVEN)                                 \
    } else if (plain == TINYFUSE_HALF_EVEN_WIDE) {                                                     \
        TINYFUSE_PAIRS_HALF_EVEN_ASM(n, TINYFUSE_WEIGHTS_WIDE TINYFUSE_STEP_##n, HALF_EVEN_WIDE)       \
    } else if (tinyfuse_looks_up(form) != 0) {                                                         \
        TINYFUSE_PAIRS_FORMS(n, TINYFUSE_LOOK_UP_PAIR(n))                                              \
    } else {                                                 \
        TINYFUSE_PAIRS_FORMS(n, "")                          \
    }

/* Computes all channels but the last of an odd count, for `pixels` pixels; p->out_c > 1. The statements are those of
   tinyfuse_common.h with three operands more, which fit the registers of a call's arguments. */
TINYFUSE_INLINE void tinyfuse_matmul_pairs_dsp(tinyfuse_matmul *p, const int8_t *weights,
                                               const int8_t *columns, int32_t depth, int pixels, int form)
{
    const int plain = form & ~TINYFUSE_LOOKED_UP;
    if (pixels == 3) {
        TINYFUSE_PAIRS_OF(3)
    } else if (pixels == 2) {
        TINYFUSE_PAIRS_OF(2)
    } else {
        TINYFUSE_PAIRS_OF(1)
    }
}

#endif

/* Computes all channels but the last of an odd count in C. Sums are no array, and bytes are multiplied in this order,
   so that compilers keep all values of the loop in registers. */
TINYFUSE_INLINE void tinyfuse_matmul_pairs_c(const tinyfuse_matmul *p, const int8_t *w, const int8_t *columns,
                                             int32_t depth, int pixels, int form_of_outputs)
{
    const int form = form_of_outputs & ~TINYFUSE_LOOKED_UP;
    const int32_t pixel = tinyfuse_pixel_bytes(form), step = pixels * tinyfuse_step_bytes(form);
    const int32_t pair = tinyfuse_of_int4(form) ? 4 : form == TINYFUSE_W16 ? 16 : 8; /* bytes of the weights of four inputs */
    const void *const channels = tinyfuse_matmul_channels(p, form);
    const int32_t rounding = p->rounding;
    const int32_t out_c = p->out_c;
    /* The address of outputs. Armv6-M has eight registers for the loop: there it is read again after it. */
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
#define TINYFUSE_MATMUL_OUT p->out
#else
    int8_t *const out = p->out;
#define TINYFUSE_MATMUL_OUT out
#endif
    int32_t o;
    for (o = 0; o + 1 < out_c; o += 2) {
        const int8_t *x = columns;
        const int8_t *const end = w + pair * depth / 4;
        int32_t s0 = tinyfuse_channel_bias(channels, o, form), s2 = s0, s4 = s0;
        int32_t s1 = tinyfuse_channel_bias(channels, o + 1, form), s3 = s1, s5 = s1;
        int8_t *to;
        for (; w != end; w += pair) {
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
            if (tinyfuse_of_bytes(form) != 0) {
                TINYFUSE_BYTE_PRODUCTS(0)
                TINYFUSE_BYTE_PRODUCTS(1)
                TINYFUSE_BYTE_PRODUCTS(2)
                TINYFUSE_BYTE_PRODUCTS(3)
            } else {
                s0 = tinyfuse_pair_products(s0, x, step, w, 0, form);
                s1 = tinyfuse_pair_products(s1, x, step, w, 1, form);
                if (pixels > 1) {
                    s2 = tinyfuse_pair_products(s2, x + pixel, step, w, 0, form);
                    s3 = tinyfuse_pair_products(s3, x + pixel, step, w, 1, form);
                }
                if (pixels > 2) {
                    s4 = tinyfuse_pair_products(s4, x + 2 * pixel, step, w, 0, form);
                    s5 = tinyfuse_pair_products(s5, x + 2 * pixel, step, w, 1, form);
                }
            }
            x += step;
        }
        to = TINYFUSE_MATMUL_OUT + o;
        to[0] = tinyfuse_matmul_output(p, channels, o, s0, rounding, form_of_outputs);
        to[1] = tinyfuse_matmul_output(p, channels, o + 1, s1, rounding, form_of_outputs);
        if (pixels > 1) {
            to += out_c;
            to[0] = tinyfuse_matmul_output(p, channels, o, s2, rounding, form_of_outputs);
            to[1] = tinyfuse_matmul_output(p, channels, o + 1, s3, rounding, form_of_outputs);
        }
        if (pixels > 2) {
            to += out_c;
            to[0] = tinyfuse_matmul_output(p, channels, o, s4, rounding, form_of_outputs);
            to[1] = tinyfuse_matmul_output(p, channels, o + 1, s5, rounding, form_of_outputs);
        }
    }
}

TINYFUSE_INLINE void tinyfuse_matmul_pairs(tinyfuse_matmul *p, const int8_t *weights,
                                           const int8_t *columns, int32_t depth, int pixels, int form)
{
#if TINYFUSE_DSP
    if (!tinyfuse_of_bytes(form) && (TINYFUSE_FPU || !tinyfuse_is_half_even(form))) {
        tinyfuse_matmul_pairs_dsp(p, weights, columns, depth, pixels, form);
        return;
    }
#endif
    tinyfuse_matmul_pairs_c(p, weights, columns, depth, pixels, form);
}

/* Computes the last of an odd count of channels. */
TINYFUSE_INLINE void tinyfuse_matmul_odd(const tinyfuse_matmul *p, const int8_t *weights,
                                         const int8_t *columns, int32_t depth, int32_t pixels,
                                         int form_of_outputs)
{
    const int form = form_of_outputs & ~TINYFUSE_LOOKED_UP;
    const int32_t last = p->out_c - 1, step = pixels * tinyfuse_step_bytes(form);
    const int8_t *const w = weights + depth * (tinyfuse_of_int4(form) ? last / 2 : form == TINYFUSE_W16 ? 2 * last : last);
    const void *const channels = tinyfuse_matmul_channels(p, form);
    int8_t *const out = p->out;
    int32_t i;
    for (i = 0; i < pixels; ++i) {
        const int8_t *x = columns + tinyfuse_pixel_bytes(form) * i;
        int32_t k, sum = tinyfuse_channel_bias(channels, last, form);
        for (k = 0; k < depth; k += 4) {
            sum = form == TINYFUSE_W16 ? tinyfuse_products_w16(sum, x, w + 2 * k, 4)
                                       : tinyfuse_pair_products(sum, x, step, w + k, 0, form);
            x += step;
        }
        out[i * p->out_c + last] = tinyfuse_matmul_output(p, channels, last, sum, p->rounding, form_of_outputs);
    }
}

#define TINYFUSE_MATMUL(name, form)                                                                  \
    TINYFUSE_SHARED void name##_odd(const tinyfuse_matmul *p, const int8_t *weights,                 \
                                    const int8_t *columns, int32_t depth, int32_t pixels)            \
    {                                                                                                \
        tinyfuse_matmul_odd(p, weights, columns, depth, pixels, form);                               \
    }                                                                                                \
    TINYFUSE_MATMUL_PAIRS(name, 1, form)                                                             \
    TINYFUSE_MATMUL_PAIRS(name, 2, form)                                                             \
    TINYFUSE_MATMUL_PAIRS(name, 3, form)
#define TINYFUSE_MATMUL_PAIRS(name, pixels, form)                                                    \
    TINYFUSE_SHARED void name##_##pixels(tinyfuse_matmul *p, const int8_t *weights,                  \
                                         const int8_t *columns, int32_t depth)                       \
    {                                                                                                \
        tinyfuse_matmul_pairs(p, weights, columns, depth, pixels, form);                             \
    }
TINYFUSE_MATMUL(tinyfuse_matmul_wide, TINYFUSE_WIDE)
TINYFUSE_MATMUL(tinyfuse_matmul_lanes, TINYFUSE_LANES)
TINYFUSE_MATMUL(tinyfuse_matmul_single_rounding, TINYFUSE_SINGLE_ROUNDING)
TINYFUSE_MATMUL(tinyfuse_matmul_bytes, TINYFUSE_BYTES)
TINYFUSE_MATMUL(tinyfuse_matmul_bytes_single_rounding, TINYFUSE_BYTES_SINGLE_ROUNDING)
TINYFUSE_MATMUL(tinyfuse_matmul_shifted, TINYFUSE_SHIFTED)
TINYFUSE_MATMUL(tinyfuse_matmul_bytes_shifted, TINYFUSE_BYTES_SHIFTED)
TINYFUSE_MATMUL(tinyfuse_matmul_half_even, TINYFUSE_HALF_EVEN)
TINYFUSE_MATMUL(tinyfuse_matmul_half_even_wide, TINYFUSE_HALF_EVEN_WIDE)
TINYFUSE_MATMUL(tinyfuse_matmul_bytes_half_even, TINYFUSE_BYTES_HALF_EVEN)
TINYFUSE_MATMUL(tinyfuse_matmul_int4, TINYFUSE_INT4)
TINYFUSE_MATMUL(tinyfuse_matmul_int4_single_rounding, TINYFUSE_INT4_SINGLE_ROUNDING)
TINYFUSE_MATMUL(tinyfuse_matmul_w16, TINYFUSE_W16)
TINYFUSE_MATMUL(tinyfuse_matmul_lut_wide, TINYFUSE_WIDE | TINYFUSE_LOOKED_UP)
TINYFUSE_MATMUL(tinyfuse_matmul_lut_lanes, TINYFUSE_LANES | TINYFUSE_LOOKED_UP)
TINYFUSE_MATMUL(tinyfuse_matmul_lut_single_rounding, TINYFUSE_SINGLE_ROUNDING | TINYFUSE_LOOKED_UP)
TINYFUSE_MATMUL(tinyfuse_matmul_lut_signed_rounding, TINYFUSE_SIGNED_ROUNDING | TINYFUSE_LOOKED_UP)

/* Returns how many of `left` pixels the next block takes, at most `most` (2 or 3). With 3, a row of two or more
   leaves no single pixel for its end. */
TINYFUSE_INLINE int32_t tinyfuse_block_pixels(int32_t left, int32_t most)
{
    return tinyfuse_min(left == 4 ? 2 : left, most);
}

/* Selects the function of a form; the function's name begins with `name` and ends with `of`. */
#define TINYFUSE_OF_FORM(form, name, of)                               \
    ((form) == TINYFUSE_SINGLE_ROUNDING ? name##_single_rounding##of               \
     : (form) == TINYFUSE_LANES ? name##_lanes##of                     \
     : (form) == TINYFUSE_BYTES_SINGLE_ROUNDING ? name##_bytes_single_rounding##of \
     : (form) == TINYFUSE_SHIFTED ? name##_shifted##of                 \
     : (form) == TINYFUSE_BYTES_SHIFTED ? name##_bytes_shifted##of     \
     : (form) == TINYFUSE_HALF_EVEN ? name##_half_even##of             \
     : (form) == TINYFUSE_HALF_EVEN_WIDE ? name##_half_even_wide##of   \
     : (form) == TINYFUSE_BYTES_HALF_EVEN ? name##_bytes_half_even##of \
     : (form) == TINYFUSE_INT4 ? name##_int4##of                       \
     : (form) == TINYFUSE_INT4_SINGLE_ROUNDING ? name##_int4_single_rounding##of \
     : (form) == TINYFUSE_BYTES ? name##_bytes##of : name##_wide##of)

/* Selects the function of a form with lookup tables; `form` has no flag. */
#define TINYFUSE_OF_LUT(form, name, of)                              \
    ((form) == TINYFUSE_SINGLE_ROUNDING ? name##_lut_single_rounding##of      \
     : (form) == TINYFUSE_SIGNED_ROUNDING ? name##_lut_signed_rounding##of              \
     : (form) == TINYFUSE_LANES ? name##_lut_lanes##of : name##_lut_wide##of)

#define TINYFUSE_MATMUL_OF(form, of)                                                                 \
    (tinyfuse_looks_up(form) ? TINYFUSE_OF_LUT((form) & ~TINYFUSE_LOOKED_UP, tinyfuse_matmul, of)    \
     : (form) == TINYFUSE_W16 ? tinyfuse_matmul_w16##of                                              \
                             : TINYFUSE_OF_FORM(form, tinyfuse_matmul, of))

/* Sets the address of the next block, and its first channel's table. */
TINYFUSE_INLINE void tinyfuse_matmul_to(tinyfuse_matmul *p, int8_t *out, int form)
{
    p->out = out;
    if (tinyfuse_looks_up(form) != 0) {
        p->table = p->tables;
#if TINYFUSE_DSP
        if ((form & ~TINYFUSE_LOOKED_UP) == TINYFUSE_SIGNED_ROUNDING) {
            p->bent.table = p->tables;
            p->bent.out = out;
        }
#endif
    }
}

/* Computes one block: all out_c channels, as `p` has them, of 1 to 3 pixels to `out`. `depth` is a multiple of 4,
   `form` a constant. If out_c is constant, too, half of this is never compiled. */
TINYFUSE_INLINE void tinyfuse_matmul_pixels(tinyfuse_matmul *p, const int8_t *weights, const int8_t *columns,
                                            int32_t depth, int8_t *out, int32_t out_c, int32_t pixels, int form)
{
    tinyfuse_matmul_to(p, out, form);
    if (out_c == 1) {
    } else if (pixels == 3) {
        TINYFUSE_MATMUL_OF(form, _3)(p, weights, columns, depth);
    } else if (pixels == 2) {
        TINYFUSE_MATMUL_OF(form, _2)(p, weights, columns, depth);
    } else {
        TINYFUSE_MATMUL_OF(form, _1)(p, weights, columns, depth);
    }
    if ((out_c & 1) != 0) {
        p->out = out; /* assembly moves it on */
        TINYFUSE_MATMUL_OF(form, _odd)(p, weights, columns, depth, pixels);
    }
}

#endif
