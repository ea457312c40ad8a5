/* Depthwise convolution with depth multiplier 1, int8 NHWC, one output row a call: four channels at a
   time, kernel taps in pairs, requantized in the bounded form or along a line, whose weights are widened
   to 256ths (tinyfuse_requantize.h). Any kernel, stride, dilation and padding; at least four channels. */
#ifndef TINYFUSE_DEPTHWISE_PACKED_H
#define TINYFUSE_DEPTHWISE_PACKED_H

#include "tinyfuse_conv.h"

/* Four neighbouring channels at a time, `fours` > 0 times from channel c on: sums over pairs of taps,
   where tap t of channel c is taps[t][c], requantized to out[c]. `channels` begins with channel c:
   `fours` times four biases and four multipliers of lines (`line`, a constant), or tinyfuse_requant. Weights:
   [fours][pairs][8], for channels c..c+3 and taps t, u of a pair
   {c t, c+1 t, c u, c+1 u, c+2 t, c+3 t, c+2 u, c+3 u}. */
#if TINYFUSE_DSP

#define TINYFUSE_TAPS_EVEN_BOUNDED(to, from) "sxtb16 " to ", " from "\n\t"
#define TINYFUSE_TAPS_ODD_BOUNDED(to) "sxtb16 " to ", " to ", ror #8\n\t"
#define TINYFUSE_TAPS_EVEN_LINE(to, from) "and " to ", %[mask], " from ", lsl #8\n\t"
#define TINYFUSE_TAPS_ODD_LINE(to) "and " to ", %[mask]\n\t"
/* the biases, where a has the channels */
#define TINYFUSE_TAPS_BIAS_BOUNDED         \
    "ldr %[s0], [%[a]]\n\t"                \
    "ldr %[s1], [%[a], #12]\n\t"           \
    "ldr %[s2], [%[a], #24]\n\t"           \
    "ldr %[s3], [%[a], #36]\n\t"
#define TINYFUSE_TAPS_BIAS_LINE            \
    "ldrd %[s0], %[s1], [%[a]]\n\t"        \
    "ldrd %[s2], %[s3], [%[a], #8]\n\t"
/* the outputs: a channels, d rounding, t output */
#define TINYFUSE_TAPS_STORE(sum, channel, byte)        \
    "ldrd %[u], %[v], [%[a], #" channel "]\n\t"        \
    "lsl %[b], %[d], %[v]\n\t"                         \
    "add %[b], %[" sum "]\n\t"                         \
    "add %[b], %[b], %[" sum "], asr #31\n\t"          \
    "smmlar %[" sum "], %[" sum "], %[u], %[b]\n\t"    \
    "asr %[" sum "], %[v]\n\t"                         \
    "ssat %[" sum "], #8, %[" sum "], asr #1\n\t"      \
    "strb %[" sum "], [%[t], #" byte "]\n\t"
#define TINYFUSE_TAPS_OUTPUT_BOUNDED                                                 \
    TINYFUSE_TAPS_STORE("s0", "4", "0") TINYFUSE_TAPS_STORE("s1", "16", "1")         \
    TINYFUSE_TAPS_STORE("s2", "28", "2") TINYFUSE_TAPS_STORE("s3", "40", "3")        \
    "add %[a], #48\n\t"
#define TINYFUSE_TAPS_ON_LINE(sum, multiplier, byte)             \
    "smmla %[" sum "], %[" sum "], %[" multiplier "], %[d]\n\t"  \
    TINYFUSE_LINE_SATURATE("%[" sum "]")                         \
    "strb %[" sum "], [%[t], #" byte "]\n\t"
#define TINYFUSE_TAPS_OUTPUT_LINE                                                    \
    "ldrd %[u], %[v], [%[a], #16]\n\t"                                               \
    TINYFUSE_TAPS_ON_LINE("s0", "u", "0") TINYFUSE_TAPS_ON_LINE("s1", "v", "1")      \
    "ldrd %[u], %[v], [%[a], #24]\n\t"                                               \
    TINYFUSE_TAPS_ON_LINE("s2", "u", "2") TINYFUSE_TAPS_ON_LINE("s3", "v", "3")      \
    "add %[a], #32\n\t"
#define TINYFUSE_TAPS_ASM(form)                                                              \
    __asm volatile("6:\n\t"                                                                  \
                   "ldr %[a], %[channels]\n\t"                                               \
                   "ldr %[at], %[first]\n\t" TINYFUSE_TAPS_BIAS_##form                       \
                   "1:\n\t"                                                                  \
                   "ldrd %[a], %[b], [%[at]], #8\n\t"                                        \
                   "ldr %[a], [%[a], %[c]]\n\t"                                              \
                   "ldr %[b], [%[b], %[c]]\n\t"                                              \
                   "ldrd %[u], %[v], [%[w]], #8\n\t"                                         \
                   "pkhbt %[d], %[a], %[b], lsl #16\n\t"                                     \
                   "pkhtb %[a], %[b], %[a], asr #16\n\t"                                     \
                   "sxtb16 %[b], %[d]\n\t" TINYFUSE_TAPS_EVEN_##form("%[t]", "%[u]")         \
                   "smlad %[s0], %[b], %[t], %[s0]\n\t"                                      \
                   "sxtb16 %[d], %[d], ror #8\n\t" TINYFUSE_TAPS_ODD_##form("%[u]")          \
                   "smlad %[s1], %[d], %[u], %[s1]\n\t"                                      \
                   "sxtb16 %[b], %[a]\n\t" TINYFUSE_TAPS_EVEN_##form("%[t]", "%[v]")         \
                   "smlad %[s2], %[b], %[t], %[s2]\n\t"                                      \
                   "sxtb16 %[a], %[a], ror #8\n\t" TINYFUSE_TAPS_ODD_##form("%[v]")          \
                   "smlad %[s3], %[a], %[v], %[s3]\n\t"                                      \
                   "ldr %[t], %[end]\n\t"                                                    \
                   "cmp %[at], %[t]\n\t"                                                     \
                   "bne 1b\n\t"                                                              \
                   "ldr %[a], %[channels]\n\t"                                               \
                   "ldr %[d], %[rounding]\n\t"                                               \
                   "ldr %[t], %[out]\n\t"                                                    \
                   "add %[t], %[c]\n\t" TINYFUSE_TAPS_OUTPUT_##form                          \
                   "str %[a], %[channels]\n\t"                                               \
                   "ldr %[b], %[left]\n\t"                                                   \
                   "add %[c], #4\n\t"                                                        \
                   "subs %[b], #1\n\t"                                                       \
                   "str %[b], %[left]\n\t"                                                   \
                   "bne 6b"                                                                  \
                   : [w] "+r"(w), [c] "+r"(c), [channels] "+m"(channels), [left] "+m"(fours), \
                     [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3),         \
                     [at] "=&r"(at), [a] "=&r"(a), [b] "=&r"(b), [d] "=&r"(d),               \
                     [u] "=&r"(u), [v] "=&r"(v), [t] "=&r"(t)                                \
                   : [end] "m"(end), [first] "m"(taps), [rounding] "m"(rounding),            \
                     [out] "m"(out) TINYFUSE_TAPS_MASK_##form                                \
                   : "cc", "memory")
#define TINYFUSE_TAPS_MASK_LINE , [mask] "r"(0xFF00FF00u)
#define TINYFUSE_TAPS_MASK_BOUNDED

TINYFUSE_INLINE void tinyfuse_depthwise_fours(const int8_t *const *taps, int32_t pairs, int32_t c,
                                              int32_t fours, const int8_t *w, const void *channels,
                                              int32_t rounding, int8_t *out, int line)
{
    const int8_t *const *const end = taps + 2 * pairs;
    uint32_t s0, s1, s2, s3, at, a, b, d, u, v, t;
    if (line) {
        TINYFUSE_TAPS_ASM(LINE);
    } else {
        TINYFUSE_TAPS_ASM(BOUNDED);
    }
}

#else

TINYFUSE_INLINE void tinyfuse_depthwise_fours(const int8_t *const *taps, int32_t pairs, int32_t c,
                                              int32_t fours, const int8_t *w, const void *channels,
                                              int32_t rounding, int8_t *out, int line)
{
    const int32_t *l = (const int32_t *)channels;
    const tinyfuse_requant *r = (const tinyfuse_requant *)channels;
    const int32_t unit = line ? 256 : 1;
    for (; fours > 0; --fours) {
        int32_t s[4], i;
        for (i = 0; i < 4; ++i) {
            s[i] = 0;
        }
        for (i = 0; i < pairs; ++i) {
            const int8_t *a = taps[2 * i] + c;
            const int8_t *b = taps[2 * i + 1] + c;
            s[0] += a[0] * w[0] + b[0] * w[2];
            s[1] += a[1] * w[1] + b[1] * w[3];
            s[2] += a[2] * w[4] + b[2] * w[6];
            s[3] += a[3] * w[5] + b[3] * w[7];
            w += 8;
        }
        for (i = 0; i < 4; ++i) {
            const uint32_t bias = (uint32_t)(line ? l[i] : r[i].bias);
            const int32_t sum = (int32_t)((uint32_t)s[i] * (uint32_t)unit + bias);
            out[c + i] = (int8_t)(line ? tinyfuse_requantize_line(sum, l[4 + i], rounding)
                                       : tinyfuse_requantize_bounded(sum, r[i].multiplier,
                                                                     r[i].shift, rounding));
        }
        l += 8;
        r += 4;
        c += 4;
    }
}

#endif

/* One output pixel, all channels: in fours, the last four overlapping those before where `channels`
   is no multiple of 4. `line` is a constant. */
TINYFUSE_INLINE void tinyfuse_depthwise_pixel_body(const int8_t *const *taps, int32_t pairs,
                                                   int32_t in_c, const int8_t *weights,
                                                   const void *channels, int32_t rounding,
                                                   int8_t *out, int line)
{
    const int32_t fours = in_c / 4, last = in_c - 4;
    tinyfuse_depthwise_fours(taps, pairs, 0, fours, weights, channels, rounding, out, line);
    if ((in_c & 3) != 0) {
        tinyfuse_depthwise_fours(taps, pairs, last, 1, weights + 8 * pairs * fours,
                                 line ? (const void *)((const int32_t *)channels + 8 * fours)
                                      : (const void *)((const tinyfuse_requant *)channels + last),
                                 rounding, out, line);
    }
}

TINYFUSE_SHARED void tinyfuse_depthwise_pixel_line(const int8_t *const *taps, int32_t pairs,
                                                   int32_t in_c, const int8_t *weights,
                                                   const void *channels, int32_t rounding,
                                                   int8_t *out)
{
    tinyfuse_depthwise_pixel_body(taps, pairs, in_c, weights, channels, rounding, out, 1);
}

TINYFUSE_SHARED void tinyfuse_depthwise_pixel_bounded(const int8_t *const *taps, int32_t pairs,
                                                      int32_t in_c, const int8_t *weights,
                                                      const void *channels, int32_t rounding,
                                                      int8_t *out)
{
    tinyfuse_depthwise_pixel_body(taps, pairs, in_c, weights, channels, rounding, out, 0);
}

/* Fills taps[2 * pairs] for output pixel (y, x); taps in the padding point to `padding`: in_c bytes of
   the input zero point. The one that makes their count even, whose weights are zeros, repeats the
   first. */
TINYFUSE_SHARED void tinyfuse_depthwise_taps(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                             int32_t x, const int8_t *padding, const int8_t **taps)
{
    const int32_t row_bytes = p->in_w * p->in_c;
    const int8_t **const first = taps;
    int32_t ky, kx;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        const int inside = iy >= 0 && iy < p->in_h;
        const int8_t *row = inside ? tinyfuse_ring_row(in, iy, p->in_ring, row_bytes) : padding;
        int32_t ix = x * p->stride_w - p->pad_left;
        for (kx = 0; kx < p->kernel_w; ++kx) {
            *taps++ = inside && ix >= 0 && ix < p->in_w ? row + ix * p->in_c : padding;
            ix += p->dilation_w;
        }
    }
    if ((p->kernel_h * p->kernel_w) & 1) {
        *taps = *first;
    }
}

/* The same for a pixel whose left neighbour's taps are in `taps`: where no tap of both is in the
   padding, they only move. `rows_inside`: no row of y's window is in the padding. */
TINYFUSE_INLINE void tinyfuse_depthwise_next_taps(const tinyfuse_conv *p, const int8_t *in,
                                                  int32_t y, int32_t x, const int8_t *padding,
                                                  const int8_t **taps, int rows_inside)
{
    const int32_t from = x * p->stride_w - p->pad_left;
    const int32_t span = (p->kernel_w - 1) * p->dilation_w + 1;
    if (x > 0 && rows_inside && from >= p->stride_w && from + span <= p->in_w) {
        const int32_t step = p->stride_w * p->in_c;
        int32_t i;
        for (i = (p->kernel_h * p->kernel_w + 1) / 2; i > 0; --i) {
            taps[0] += step;
            taps[1] += step;
            taps += 2;
        }
    } else {
        tinyfuse_depthwise_taps(p, in, y, x, padding, taps);
    }
}

/* Whether no row of the window of output row y is in the padding. */
TINYFUSE_INLINE int tinyfuse_depthwise_rows_inside(const tinyfuse_conv *p, int32_t y)
{
    const int32_t from = y * p->stride_h - p->pad_top;
    return from >= 0 && from + (p->kernel_h - 1) * p->dilation_h < p->in_h;
}

/* Whether no column of any window is in the padding. */
TINYFUSE_INLINE int tinyfuse_depthwise_columns_inside(const tinyfuse_conv *p)
{
    const int32_t last = (p->out_w - 1) * p->stride_w + (p->kernel_w - 1) * p->dilation_w;
    return p->pad_left <= 0 && last - p->pad_left < p->in_w;
}

/* Output row y. Reads only the input rows of y's own window, writes only out_row. Weights:
   [ceil(in_c / 4)][pairs] groups of eight as tinyfuse_depthwise_fours takes them, the last four
   channels ending at in_c; channels as many int32_t[8], the biases and multipliers of their lines
   (`line`, a constant), or [in_c] tinyfuse_requant. scratch, aligned to pointers: 2 * pairs pointers, then
   in_c bytes where any window reaches into the padding. */
TINYFUSE_INLINE void tinyfuse_depthwise_packed_row_s8(const tinyfuse_conv *p, const int8_t *in,
                                                      int32_t y, int8_t *out_row,
                                                      const int8_t *weights,
                                                      const void *channels, void *scratch,
                                                      int line)
{
    const int32_t pairs = (p->kernel_h * p->kernel_w + 1) / 2;
    const int8_t **const taps = (const int8_t **)scratch;
    int8_t *const padding = (int8_t *)(taps + 2 * pairs);
    const int32_t rounding =
        line ? tinyfuse_line_rounding(p->out_zero_point) : 2 * p->out_zero_point + 1;
    int8_t *out = out_row;
    const int rows_inside = tinyfuse_depthwise_rows_inside(p, y);
    int32_t x;
    if (!rows_inside || !tinyfuse_depthwise_columns_inside(p)) {
        memset(padding, p->in_zero_point, (size_t)p->in_c);
    }
    for (x = 0; x < p->out_w; ++x) {
        tinyfuse_depthwise_next_taps(p, in, y, x, padding, taps, rows_inside);
        (line ? tinyfuse_depthwise_pixel_line : tinyfuse_depthwise_pixel_bounded)(
            taps, pairs, p->in_c, weights, channels, rounding, out);
        out += p->in_c;
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
    }
}

#endif
