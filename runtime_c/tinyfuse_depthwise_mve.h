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

/* One output pixel, all channels; taps as tinyfuse_depthwise_taps fills them. */
TINYFUSE_SHARED void tinyfuse_depthwise_pixel_mve(const tinyfuse_conv *p, const int8_t *const *taps,
                                                  int32_t pairs, const int8_t *weights,
                                                  const int32_t *channels, int8_t *out)
{
    int32_t c, i;
    for (c = 0; c < p->in_c; c += 8) {
#if TINYFUSE_MVE
        const mve_pred16_t valid = vctp16q((uint32_t)(p->in_c - c));
        const int8_t *const *tap = taps;
        int32x4_t even = vldrwq_s32(channels), odd = vldrwq_s32(channels + 12);
        int16x8_t both;
        for (i = 0; i < pairs; ++i) {
            both = vmulq_s16(vldrbq_z_s16(tap[0] + c, valid), vldrbq_s16(weights));
            both = vaddq_s16(
                both, vmulq_s16(vldrbq_z_s16(tap[1] + c, valid), vldrbq_s16(weights + 8)));
            even = vaddq_s32(even, vmovlbq_s16(both));
            odd = vaddq_s32(odd, vmovltq_s16(both));
            weights += 16;
            tap += 2;
        }
        even = tinyfuse_requantize4(even, channels + 4, channels + 8);
        odd = tinyfuse_requantize4(odd, channels + 16, channels + 20);
        /* saturating to int16 comes to the same as clamping later */
        both = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), even), odd);
        both = vqaddq_n_s16(both, (int16_t)p->out_zero_point);
        both = vmaxq_s16(both, vdupq_n_s16((int16_t)p->act_min));
        both = vminq_s16(both, vdupq_n_s16((int16_t)p->act_max));
        vstrbq_p_s16(out + c, both, valid);
#else
        int32_t k;
        for (i = 0; i < 8 && c + i < p->in_c; ++i) {
            const int32_t *const r = channels + 12 * (i & 1) + (i >> 1);
            uint32_t sum = (uint32_t)r[0]; /* wraps */
            for (k = 0; k < 2 * pairs; ++k) {
                sum += (uint32_t)(taps[k][c + i] * weights[8 * k + i]);
            }
            out[c + i] = (int8_t)tinyfuse_clamp(
                tinyfuse_requantize((int32_t)sum, r[4], r[8]) +
                    p->out_zero_point,
                p->act_min, p->act_max);
        }
        weights += 16 * pairs;
#endif
        channels += 24;
    }
}

/* Output row y. Reads only the input rows of y's own window, writes only out_row. scratch, aligned to
   pointers: 2 * pairs pointers, then in_c bytes. */
TINYFUSE_SHARED void tinyfuse_depthwise_mve_row_s8(const tinyfuse_conv *p, const int8_t *in,
                                                   int32_t y, int8_t *out_row,
                                                   const int8_t *weights,
                                                   const int32_t *channels,
                                                   void *scratch)
{
    const int32_t pairs = (p->kernel_h * p->kernel_w + 1) / 2;
    const int8_t **const taps = (const int8_t **)scratch;
    int8_t *const padding = (int8_t *)(taps + 2 * pairs);
    int32_t x;
    memset(padding, p->in_zero_point, (size_t)p->in_c);
    for (x = 0; x < p->out_w; ++x) {
        tinyfuse_depthwise_taps(p, in, y, x, padding, taps);
        tinyfuse_depthwise_pixel_mve(p, taps, pairs, weights, channels, out_row);
        out_row += p->in_c;
    }
}

#endif
