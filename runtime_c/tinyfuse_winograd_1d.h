/* 3x1 and 1x3 convolutions with stride 1 by Winograd's minimal filtering F(2, 3), int8 NHWC, for cores with the DSP extension:
   one dimension of tinyfuse_winograd.h, whose B, G and A they have.

   A tile is two outputs beside each other, or above each other; its patch are the four inputs d that they read. With filter g,
   per input channel,

       y = A [ (G g) * (B d) ]               * element by element, summed over the input channels

   takes four multiplications where the two windows take six. With 2G in the place of G, sums are exactly twice the
   convolution's, which the compiler has proven to lie within int32. A transformed input lies within -256..255, a transformed
   weight within -384..384.

   Two tiles are a block: four outputs of a row, or two columns of two rows. Where there are fewer, they lie over one another.

   columns  [4][in_c / 4][2 tiles][4] int16: B d, positions in the order 1 2 0 3; four inputs in the order 0 2 1 3. Aligned to 4.
   weights  [out_c / 2][4][in_c / 4][2][2 channels][2] int16: 2G g in the same order, less than 0 for position 3: inputs 0 2 of
            both channels, then inputs 1 3. Aligned to 4.
   sums     [2][2 channels][2 tiles] int32: the first output of each, then the second. */
#ifndef TINYFUSE_WINOGRAD_1D_H
#define TINYFUSE_WINOGRAD_1D_H

#include "tinyfuse_winograd.h"

/* A block's counts: addresses of its patches, tile by tile, and sums of a pair of channels. */
enum { TINYFUSE_WINOGRAD_1D_PLACES = 8, TINYFUSE_WINOGRAD_1D_SUMS = 8 };

#if TINYFUSE_DSP

/* Four channels of a tile at a time: r8 is the first, r9 places, r0 where position 0 of them goes, r1 bytes of a position;
   r10, r11, r12, lr inputs 0 2 of the patch, r4 to r7 inputs 1 3. */
#define TINYFUSE_WINOGRAD_1D_TILE(at)              \
    "ldm r9!,{r0-r3}\n"                            \
    "ldr r4,[r0,r8]\n"                             \
    "ldr r5,[r1,r8]\n"                             \
    "ldr r6,[r2,r8]\n"                             \
    "ldr r7,[r3,r8]\n"                             \
    "ldrd r1,r0,[sp,#4]\n"                         \
    "sxtb16 r10,r4\n"                              \
    "sxtb16 r11,r5\n"                              \
    "sxtb16 r12,r6\n"                              \
    "sxtb16 lr,r7\n"                               \
    "sxtb16 r4,r4,ror #8\n"                        \
    "sxtb16 r5,r5,ror #8\n"                        \
    "sxtb16 r6,r6,ror #8\n"                        \
    "sxtb16 r7,r7,ror #8\n"                        \
    "add r0,r0,r8,lsl #2\n"                        \
    "lsl r1,r1,#2\n"                               \
    "sadd16 r2,r11,r12\n"                          \
    "sadd16 r3,r5,r6\n"                            \
    "strd r2,r3,[r0,#" at "]\n"                    \
    "add r0,r1\n"                                  \
    "ssub16 r2,r12,r11\n"                          \
    "ssub16 r3,r6,r5\n"                            \
    "strd r2,r3,[r0,#" at "]\n"                    \
    "add r0,r1\n"                                  \
    "ssub16 r2,r10,r12\n"                          \
    "ssub16 r3,r4,r6\n"                            \
    "strd r2,r3,[r0,#" at "]\n"                    \
    "add r0,r1\n"                                  \
    "ssub16 r2,r11,lr\n"                           \
    "ssub16 r3,r5,r7\n"                            \
    "strd r2,r3,[r0,#" at "]\n"

/* The columns of a block. */
TINYFUSE_SHARED void tinyfuse_winograd_1d_columns(const int8_t *const *places, int32_t in_c, int16_t *columns)
{
    register const int8_t *const *r0 __asm("r0") = places;
    register int32_t r1 __asm("r1") = in_c;
    register int16_t *r2 __asm("r2") = columns;
    __asm volatile("push {r0-r11,lr}\n"
                   "mov r8,#0\n"
                   "1:\n"
                   "ldr r9,[sp]\n"
                   TINYFUSE_WINOGRAD_1D_TILE("0")
                   TINYFUSE_WINOGRAD_1D_TILE("8")
                   "ldr r12,[sp,#4]\n"
                   "add r8,#4\n"
                   "cmp r8,r12\n"
                   "bne 1b\n"
                   "pop {r0-r11,lr}\n"
                   :
                   : "r"(r0), "r"(r1), "r"(r2)
                   : "r12", "cc", "memory");
}

/* Computes the positions of a block for a pair of channels; returns the weights of the next pair. `steps` is a
   constant. */
TINYFUSE_WINOGRAD_FUNCTION(tinyfuse_winograd_1d_sums, "0")

/* Stores the outputs of a channel, whose sums lie from byte `at` on (r0): both tiles' second outputs to r2, then
   their first ones to r1, lr from a tile to the other. Other registers as in tinyfuse_winograd.h. */
#define TINYFUSE_WINOGRAD_1D_SINGLE_ROUNDING(s)     \
    "add " s ", r9, " s ", lsl #7\n\t"        \
    "smmla " s ", " s ", r10, r11\n\t"        \
    TINYFUSE_SINGLE_ROUNDING_SATURATE(s)
#define TINYFUSE_WINOGRAD_1D_BOUNDED(s)       \
    "add " s ", r9, " s ", asr #1\n\t"        \
    "add r7, " s ", r12\n\t"                  \
    "add r7, r7, " s ", asr #31\n\t"          \
    "smmlar " s ", " s ", r10, r7\n\t"        \
    "asr " s ", r11\n\t"                      \
    "ssat " s ", #8, " s ", asr #1\n\t"
#define TINYFUSE_WINOGRAD_1D_PUT(at, next_at, output)            \
    "ldrd r3, r4, [r0, #" at "]\n\t"                             \
    "ldrd r5, r6, [r0, #" next_at "]\n\t"                        \
    output("r3") output("r4") output("r5") output("r6")          \
    "strb r5, [r2]\n\t"                                          \
    "strb r6, [r2, lr]\n\t"                                      \
    "strb r3, [r1]\n\t"                                          \
    "strb r4, [r1, lr]\n\t"
#define TINYFUSE_WINOGRAD_1D_OUTPUTS(first, second, output)                                        \
    {                                                                                              \
        TINYFUSE_ARGUMENT(const tinyfuse_winograd_outputs *, arguments, s);                        \
        __asm volatile(TINYFUSE_ASM_BEGIN                                                          \
                       "ldm r0, {r4, r8, r9, r10, r11, r12}\n\t"                                   \
                       "mov r0, r9\n\t"                                                            \
                       "mov r1, r10\n\t"                                                           \
                       "mov r2, r11\n\t"                                                           \
                       "mov lr, r12\n\t" first                                                     \
                       TINYFUSE_WINOGRAD_1D_PUT("0", "16", output)                                 \
                       "adds r1, r1, #1\n\t"                                                       \
                       "adds r2, r2, #1\n\t" second                                                \
                       TINYFUSE_WINOGRAD_1D_PUT("8", "24", output) TINYFUSE_ASM_END                \
                       :                                                                           \
                       : "r"(arguments)                                                            \
                       : TINYFUSE_ASM_CLOBBERS);                                                   \
    }

#else

/* The same in C. */
TINYFUSE_SHARED void tinyfuse_winograd_1d_columns(const int8_t *const *places, int32_t in_c, int16_t *columns)
{
    static const int32_t channel[4] = {0, 2, 1, 3};
    int32_t c, k, tile;
    for (c = 0; c < in_c; c += 4) {
        for (tile = 0; tile < 2; ++tile) {
            const int8_t *const *const d = places + 4 * tile;
            int16_t *to = columns + 2 * c + 4 * tile;
            for (k = 0; k < 4; ++k) {
                const int32_t at = c + channel[k];
                to[k] = (int16_t)(d[1][at] + d[2][at]);
                to[k + 2 * in_c] = (int16_t)(d[2][at] - d[1][at]);
                to[k + 4 * in_c] = (int16_t)(d[0][at] - d[2][at]);
                to[k + 6 * in_c] = (int16_t)(d[1][at] - d[3][at]);
            }
        }
    }
}

TINYFUSE_INLINE const int16_t *tinyfuse_winograd_1d_sums(const int16_t *columns, const int16_t *weights, int32_t *sums,
                                                         int32_t steps)
{
    return tinyfuse_winograd_sums_c(columns, weights, sums, steps, 1);
}

/* Returns the output of twice a convolution's sum. */
TINYFUSE_INLINE int8_t tinyfuse_winograd_1d_output(const void *channels, int32_t channel, int32_t twice,
                                                   int32_t rounding, int form)
{
    const uint32_t bias = (uint32_t)tinyfuse_channel_bias(channels, channel, form);
    const uint32_t sum = form == TINYFUSE_SINGLE_ROUNDING ? (uint32_t)twice << 7 : (uint32_t)(twice >> 1);
    return tinyfuse_channel_output(channels, channel, (int32_t)(bias + sum), rounding, form);
}

#endif

/* Stores a block's outputs of a pair of channels: the tiles' first ones to `out`, their second ones to `next`, `two`
   bytes from a tile to the other. */
TINYFUSE_INLINE void tinyfuse_winograd_1d_put(const tinyfuse_winograd_outputs *s, int form)
{
#if TINYFUSE_DSP
    if (form == TINYFUSE_SINGLE_ROUNDING) {
        TINYFUSE_WINOGRAD_1D_OUTPUTS(TINYFUSE_WINOGRAD_FIRST_LINE, TINYFUSE_WINOGRAD_SECOND_LINE,
                                       TINYFUSE_WINOGRAD_1D_SINGLE_ROUNDING)
    } else {
        TINYFUSE_WINOGRAD_1D_OUTPUTS(TINYFUSE_WINOGRAD_FIRST_BOUNDED, TINYFUSE_WINOGRAD_SECOND_BOUNDED,
                                       TINYFUSE_WINOGRAD_1D_BOUNDED)
    }
#else
    int32_t channel, tile;
    for (channel = 0; channel < 2; ++channel) {
        const int32_t *const at = s->sums + 2 * channel;
        for (tile = 0; tile < 2; ++tile) {
            s->next[channel + tile * s->two] = tinyfuse_winograd_1d_output(s->channels, channel, at[4 + tile], s->rounding, form);
        }
        for (tile = 0; tile < 2; ++tile) {
            s->out[channel + tile * s->two] = tinyfuse_winograd_1d_output(s->channels, channel, at[tile], s->rounding, form);
        }
    }
#endif
}

TINYFUSE_SHARED void tinyfuse_winograd_1d_put_single_rounding(const tinyfuse_winograd_outputs *s)
{
    tinyfuse_winograd_1d_put(s, TINYFUSE_SINGLE_ROUNDING);
}

TINYFUSE_SHARED void tinyfuse_winograd_1d_put_bounded(const tinyfuse_winograd_outputs *s)
{
    tinyfuse_winograd_1d_put(s, TINYFUSE_WIDE);
}

/* Lists the four inputs of the patch of a tile that begins with output column x, below one another (`down`) or
   beside: columns from `columns` on. Inputs outside of `rows`, NULL being padding, lie at `padding`. */
TINYFUSE_INLINE void tinyfuse_winograd_1d_places(const tinyfuse_conv *p, const int8_t *const *rows, int32_t x, int down,
                                                 int32_t columns, const int8_t *padding, const int8_t **places)
{
    int32_t j;
    for (j = 0; j < 4; ++j) {
        const int8_t *const row = rows[down ? j : 0];
        const int32_t column = x - p->pad_left + (down ? 0 : j);
        places[j] = row != NULL && column >= 0 && column < columns ? row + column * p->in_c : padding;
    }
}

/* Computes what both functions below do; `down` is a constant. */
TINYFUSE_INLINE void tinyfuse_winograd_1d(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out,
                                          int8_t *next, const int8_t *weights, const void *channels, void *scratch,
                                          int form, int down)
{
    const size_t channel_bytes = tinyfuse_channel_bytes(form);
    /* columns of a tile, where the last one begins, and the columns that are read */
    const int32_t tile = down ? 1 : 2, last = tinyfuse_max(p->out_w - tile, 0);
    const int32_t columns = tinyfuse_min(p->in_w, p->out_w - 1 + p->kernel_w - p->pad_left);
    const int32_t reads = down ? 3 + (next != out) : 1;
    int16_t *const transformed = (int16_t *)scratch;
    int8_t *const padding = (int8_t *)scratch + 16 * p->in_c;
    const int8_t *places[TINYFUSE_WINOGRAD_1D_PLACES];
    int32_t sums[TINYFUSE_WINOGRAD_1D_SUMS];
    const int8_t *rows[4] = {NULL, NULL, NULL, NULL};
    tinyfuse_winograd_outputs s;
    int32_t r, x;
    for (r = 0; r < reads; ++r) {
        const int32_t iy = y - p->pad_top + r;
        if (iy >= 0 && iy < p->in_h) {
            rows[r] = tinyfuse_ring_row(in, iy, p->in_ring, p->in_w * p->in_c);
        }
    }
    memset(padding, p->in_zero_point, (size_t)p->in_c);
    s.rounding = tinyfuse_matmul_rounding(p->out_zero_point, form);
    s.sums = sums;
    for (x = 0; x < p->out_w; x += 2 * tile) {
        const int32_t from = tinyfuse_min(x, last), second = tinyfuse_min(x + tile, last);
        const int16_t *w = (const int16_t *)(const void *)weights;
        int8_t *const end = out + (from + 1) * p->out_c;
        tinyfuse_winograd_1d_places(p, rows, from, down, columns, padding, places);
        tinyfuse_winograd_1d_places(p, rows, second, down, columns, padding, places + 4);
        tinyfuse_winograd_1d_columns(places, p->in_c, transformed);
        s.channels = channels;
        s.two = (second - from) * p->out_c;
        s.next = down ? next + from * p->out_c : out + tinyfuse_min(from + 1, p->out_w - 1) * p->out_c;
        for (s.out = out + from * p->out_c; s.out != end; s.out += 2) {
            w = tinyfuse_winograd_1d_sums(transformed, w, sums, p->in_c / 4);
            if (form == TINYFUSE_SINGLE_ROUNDING) {
                tinyfuse_winograd_1d_put_single_rounding(&s);
            } else {
                tinyfuse_winograd_1d_put_bounded(&s);
            }
            s.channels = (const int8_t *)s.channels + 2 * channel_bytes;
            s.next += 2;
        }
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(out, p->out_w * p->out_c, p->act_min, p->act_max);
        if (down != 0) {
            tinyfuse_clamp_row(next, p->out_w * p->out_c, p->act_min, p->act_max);
        }
    }
}

/* Computes output rows y and y + 1 of a 3x1 convolution to `out` and `next`; where there is no row y + 1, `next` is
   `out`. in_c is a multiple of 4, out_c of 2. `form` is TINYFUSE_SINGLE_ROUNDING, with tinyfuse_single_rounding
   channels, or TINYFUSE_WIDE, with tinyfuse_requant of the bounded form. Reads only the input rows of the windows of
   y and y + 1 that exist, writes only the out_w * out_c bytes of each row. scratch, aligned to 4: 17 * in_c bytes. */
TINYFUSE_INLINE void tinyfuse_winograd_down_rows_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out,
                                                    int8_t *next, const int8_t *weights, const void *channels,
                                                    void *scratch, int form)
{
    tinyfuse_winograd_1d(p, in, y, out, next, weights, channels, scratch, form, 1);
}

/* Computes output row y of a 1x3 convolution under the same conditions. */
TINYFUSE_INLINE void tinyfuse_winograd_along_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out,
                                                    const int8_t *weights, const void *channels, void *scratch,
                                                    int form)
{
    tinyfuse_winograd_1d(p, in, y, out, out, weights, channels, scratch, form, 0);
}

#endif
