/* Depthwise convolution with depth multiplier 1, int8 NHWC, one output row a call: four channels at a
   time, kernel taps in pairs, requantized in the bounded form. Any kernel, stride, dilation and
   padding; at least four channels. */
#ifndef TINYFUSE_DEPTHWISE_PACKED_H
#define TINYFUSE_DEPTHWISE_PACKED_H

#include "tinyfuse_conv.h"

/* The sums of four neighbouring channels over pairs of taps: tap t of channel c is taps[t][c].
   Weights: [pairs][8] int8, for channels c..c+3 and taps t, u of a pair
   {c t, c+1 t, c u, c+1 u, c+2 t, c+3 t, c+2 u, c+3 u}. */
TINYFUSE_INLINE void tinyfuse_depthwise_quad(int32_t *s, const int8_t *const *taps, int32_t pairs,
                                             int32_t c, const int8_t *w)
{
#if TINYFUSE_DSP
    const int8_t *const *const end = taps + 2 * pairs;
    int32_t s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
    uint32_t a, b, d, u, v, t;
    __asm volatile("1:\n\t"
                   "ldrd %[a], %[b], [%[taps]], #8\n\t"
                   "ldr %[a], [%[a], %[c]]\n\t"
                   "ldr %[b], [%[b], %[c]]\n\t"
                   "ldrd %[u], %[v], [%[w]], #8\n\t"
                   "pkhbt %[d], %[a], %[b], lsl #16\n\t"
                   "pkhtb %[a], %[b], %[a], asr #16\n\t"
                   "sxtb16 %[b], %[d]\n\t"
                   "sxtb16 %[t], %[u]\n\t"
                   "smlad %[s0], %[b], %[t], %[s0]\n\t"
                   "sxtb16 %[d], %[d], ror #8\n\t"
                   "sxtb16 %[u], %[u], ror #8\n\t"
                   "smlad %[s1], %[d], %[u], %[s1]\n\t"
                   "sxtb16 %[b], %[a]\n\t"
                   "sxtb16 %[t], %[v]\n\t"
                   "smlad %[s2], %[b], %[t], %[s2]\n\t"
                   "sxtb16 %[a], %[a], ror #8\n\t"
                   "sxtb16 %[v], %[v], ror #8\n\t"
                   "smlad %[s3], %[a], %[v], %[s3]\n\t"
                   "cmp %[taps], %[end]\n\t"
                   "bne 1b"
                   : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [w] "+r"(w),
                     [taps] "+r"(taps), [a] "=&r"(a), [b] "=&r"(b), [d] "=&r"(d), [u] "=&r"(u),
                     [v] "=&r"(v), [t] "=&r"(t)
                   : [c] "r"(c), [end] "r"(end)
                   : "cc", "memory");
    s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3;
#else
    int32_t i;
    for (i = 0; i < pairs; ++i) {
        const int8_t *a = taps[2 * i] + c;
        const int8_t *b = taps[2 * i + 1] + c;
        s[0] += a[0] * w[0] + b[0] * w[2];
        s[1] += a[1] * w[1] + b[1] * w[3];
        s[2] += a[2] * w[4] + b[2] * w[6];
        s[3] += a[3] * w[5] + b[3] * w[7];
        w += 8;
    }
#endif
}

/* One output pixel, all channels: in fours, the last four overlapping those before where `channels`
   is no multiple of 4. `ramp` is a constant. */
TINYFUSE_INLINE void tinyfuse_depthwise_pixel_body(const int8_t *const *taps, int32_t pairs,
                                                   int32_t channels, const int8_t *weights,
                                                   const tinyfuse_requant *requant,
                                                   int32_t rounding, int8_t *out, int ramp)
{
    int32_t done = 0;
    while (done < channels) {
        const int32_t c = tinyfuse_min(done, channels - 4);
        const tinyfuse_requant *const r = requant + c;
        int32_t s[4];
        int i;
        for (i = 0; i < 4; ++i) {
            s[i] = r[i].bias;
        }
        tinyfuse_depthwise_quad(s, taps, pairs, c, weights);
        weights += 8 * pairs;
        for (i = 0; i < 4; ++i) {
            out[c + i] = (int8_t)tinyfuse_requantize_bounded(s[i], r[i].multiplier, r[i].shift,
                                                             rounding, ramp);
        }
        done += 4;
    }
}

TINYFUSE_SHARED void tinyfuse_depthwise_pixel_ramp(const int8_t *const *taps, int32_t pairs,
                                                   int32_t channels, const int8_t *weights,
                                                   const tinyfuse_requant *requant,
                                                   int32_t rounding, int8_t *out)
{
    tinyfuse_depthwise_pixel_body(taps, pairs, channels, weights, requant, rounding, out, 1);
}

TINYFUSE_SHARED void tinyfuse_depthwise_pixel(const int8_t *const *taps, int32_t pairs,
                                              int32_t channels, const int8_t *weights,
                                              const tinyfuse_requant *requant, int32_t rounding,
                                              int8_t *out)
{
    tinyfuse_depthwise_pixel_body(taps, pairs, channels, weights, requant, rounding, out, 0);
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

/* Output row y. Reads only the input rows of y's own window, writes only out_row. Weights:
   [ceil(in_c / 4)][pairs] groups of eight as tinyfuse_depthwise_quad takes them, the last four
   channels ending at in_c. scratch, aligned to pointers: 2 * pairs pointers, then in_c bytes. */
TINYFUSE_INLINE void tinyfuse_depthwise_packed_row_s8(const tinyfuse_conv *p, const int8_t *in,
                                                      int32_t y, int8_t *out_row,
                                                      const int8_t *weights,
                                                      const tinyfuse_requant *channels,
                                                      void *scratch, int ramp)
{
    const int32_t pairs = (p->kernel_h * p->kernel_w + 1) / 2;
    const int8_t **const taps = (const int8_t **)scratch;
    int8_t *const padding = (int8_t *)(taps + 2 * pairs);
    const int32_t rounding = 2 * p->out_zero_point + 1;
    int8_t *out = out_row;
    const int rows_inside = tinyfuse_depthwise_rows_inside(p, y);
    int32_t x;
    memset(padding, p->in_zero_point, (size_t)p->in_c);
    for (x = 0; x < p->out_w; ++x) {
        tinyfuse_depthwise_next_taps(p, in, y, x, padding, taps, rows_inside);
        (ramp ? tinyfuse_depthwise_pixel_ramp : tinyfuse_depthwise_pixel)(
            taps, pairs, p->in_c, weights, channels, rounding, out);
        out += p->in_c;
    }
    if (p->act_min > -128 || p->act_max < 127) {
        tinyfuse_clamp_row(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
    }
}

#endif
