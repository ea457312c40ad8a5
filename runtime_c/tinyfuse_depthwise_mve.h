/* Depthwise convolution with depth multiplier 1 for Helium, int8 NHWC, one output row a call: eight
   channels at a time, kernel taps in pairs. Any kernel, stride, dilation and padding.

   weights  [ceil(in_c / 8)][pairs of taps][2][8], none of them -128: so that the sum of two products
            fits int16
   channels [ceil(in_c / 8)][2][3][4] as in tinyfuse_matmul_mve.h: the even channels, then the odd
*/
#ifndef TINYFUSE_DEPTHWISE_MVE_H
#define TINYFUSE_DEPTHWISE_MVE_H

#include "tinyfuse_depthwise_packed.h"
#include "tinyfuse_matmul_mve.h"

#if TINYFUSE_MVE

/* Adds the products of eight channels from c on to the sums of the even and the odd ones. */
TINYFUSE_INLINE const int8_t *tinyfuse_depthwise_eight(const int8_t *const *taps, int32_t pairs,
                                                       int32_t c, const int8_t *w,
                                                       int32x4_t *even_sums, int32x4_t *odd_sums)
{
    int32x4_t even = *even_sums, odd = *odd_sums;
    int16x8_t x, y, u, v;
    const int8_t *a, *b;
    __asm volatile("dls lr, %[pairs]\n\t"
                   "1:\n\t"
                   "ldrd %[a], %[b], [%[taps]], #8\n\t"
                   "vldrb.s16 %q[u], [%[w]]\n\t"
                   "add %[a], %[c]\n\t"
                   "add %[b], %[c]\n\t"
                   "vldrb.s16 %q[x], [%[a]]\n\t"
                   "vmul.i16 %q[x], %q[x], %q[u]\n\t"
                   "vldrb.s16 %q[y], [%[b]]\n\t"
                   "vldrb.s16 %q[v], [%[w], #8]\n\t"
                   "vmul.i16 %q[y], %q[y], %q[v]\n\t"
                   "add %[w], #16\n\t"
                   "vadd.i16 %q[x], %q[x], %q[y]\n\t"
                   "vmovlb.s16 %q[u], %q[x]\n\t"
                   "vmovlt.s16 %q[v], %q[x]\n\t"
                   "vadd.i32 %q[even], %q[even], %q[u]\n\t"
                   "vadd.i32 %q[odd], %q[odd], %q[v]\n\t"
                   "le lr, 1b"
                   : [even] "+w"(even), [odd] "+w"(odd), [taps] "+r"(taps), [w] "+l"(w),
                     [a] "=&l"(a), [b] "=&l"(b), [x] "=&w"(x), [y] "=&w"(y), [u] "=&w"(u),
                     [v] "=&w"(v)
                   : [pairs] "r"(pairs), [c] "r"(c)
                   : "lr", "cc", "memory");
    *even_sums = even;
    *odd_sums = odd;
    return w;
}

/* The same of the last channels, fewer than eight. */
TINYFUSE_INLINE const int8_t *tinyfuse_depthwise_rest(const int8_t *const *taps, int32_t pairs,
                                                      int32_t c, const int8_t *w,
                                                      mve_pred16_t valid, int32x4_t *even_sums,
                                                      int32x4_t *odd_sums)
{
    for (; pairs > 0; --pairs) {
        const int16x8_t x = vmulq_s16(vldrbq_z_s16(taps[0] + c, valid), vldrbq_s16(w));
        const int16x8_t y = vmulq_s16(vldrbq_z_s16(taps[1] + c, valid), vldrbq_s16(w + 8));
        const int16x8_t both = vaddq_s16(x, y);
        *even_sums = vaddq_s32(*even_sums, vmovlbq_s16(both));
        *odd_sums = vaddq_s32(*odd_sums, vmovltq_s16(both));
        w += 16;
        taps += 2;
    }
    return w;
}

/* One output pixel, all channels; taps as tinyfuse_depthwise_taps fills them. */
TINYFUSE_SHARED void tinyfuse_depthwise_pixel_mve(const tinyfuse_conv *p, const int8_t *const *taps,
                                                  int32_t pairs, const int8_t *weights,
                                                  const int32_t *channels, int8_t *out)
{
    const int16x8_t low = vdupq_n_s16((int16_t)p->act_min);
    const int16x8_t high = vdupq_n_s16((int16_t)p->act_max);
    const int32_t in_c = p->in_c;
    int32_t c;
    for (c = 0; c < in_c; c += 8) {
        const mve_pred16_t valid = vctp16q((uint32_t)(in_c - c));
        int32x4_t even = vldrwq_s32(channels), odd = vldrwq_s32(channels + 12);
        int16x8_t both;
        if (in_c - c >= 8) {
            weights = tinyfuse_depthwise_eight(taps, pairs, c, weights, &even, &odd);
        } else {
            weights = tinyfuse_depthwise_rest(taps, pairs, c, weights, valid, &even, &odd);
        }
        even = tinyfuse_requantize4(even, channels + 4, channels + 8);
        odd = tinyfuse_requantize4(odd, channels + 16, channels + 20);
        /* saturating to int16 comes to the same as clamping later */
        both = vqmovntq_s32(vqmovnbq_s32(low, even), odd);
        both = vqaddq_n_s16(both, (int16_t)p->out_zero_point);
        both = vminq_s16(vmaxq_s16(both, low), high);
        vstrbq_p_s16(out + c, both, valid);
        channels += 24;
    }
}

#else

TINYFUSE_SHARED void tinyfuse_depthwise_pixel_mve(const tinyfuse_conv *p, const int8_t *const *taps,
                                                  int32_t pairs, const int8_t *weights,
                                                  const int32_t *channels, int8_t *out)
{
    int32_t c, i, k;
    for (c = 0; c < p->in_c; c += 8) {
        for (i = 0; i < 8 && c + i < p->in_c; ++i) {
            const int32_t *const r = channels + 12 * (i & 1) + (i >> 1);
            uint32_t sum = (uint32_t)r[0]; /* wraps */
            for (k = 0; k < 2 * pairs; ++k) {
                sum += (uint32_t)(taps[k][c + i] * weights[8 * k + i]);
            }
            out[c + i] = (int8_t)tinyfuse_clamp(
                tinyfuse_requantize((int32_t)sum, r[4], r[8]) + p->out_zero_point, p->act_min,
                p->act_max);
        }
        weights += 16 * pairs;
        channels += 24;
    }
}

#endif

/* Output row y. Reads only the input rows of y's own window, writes only out_row. scratch, aligned to
   pointers: 2 * pairs pointers, then in_c bytes where any window reaches into the padding. */
TINYFUSE_SHARED void tinyfuse_depthwise_mve_row_s8(const tinyfuse_conv *p, const int8_t *in,
                                                   int32_t y, int8_t *out_row,
                                                   const int8_t *weights,
                                                   const int32_t *channels,
                                                   void *scratch)
{
    const int32_t pairs = (p->kernel_h * p->kernel_w + 1) / 2;
    const int8_t **const taps = (const int8_t **)scratch;
    int8_t *const padding = (int8_t *)(taps + 2 * pairs);
    const int rows_inside = tinyfuse_depthwise_rows_inside(p, y);
    int32_t x;
    if (!rows_inside || !tinyfuse_depthwise_columns_inside(p)) {
        memset(padding, p->in_zero_point, (size_t)p->in_c);
    }
    for (x = 0; x < p->out_w; ++x) {
        tinyfuse_depthwise_next_taps(p, in, y, x, padding, taps, rows_inside);
        tinyfuse_depthwise_pixel_mve(p, taps, pairs, weights, channels, out_row);
        out_row += p->in_c;
    }
}

#endif
