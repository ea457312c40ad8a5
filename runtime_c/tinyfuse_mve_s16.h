/* Layers of int16 data and int8 weights for Helium. Every sum, bias included, is proven to fit int32, and is
   requantized as int64 sums are (TINYFUSE_ONCE in tinyfuse_matmul_s16.h). */
#ifndef TINYFUSE_MVE_S16_H
#define TINYFUSE_MVE_S16_H

#include "tinyfuse_conv_2x4_mve.h"
#include "tinyfuse_depthwise_packed.h"
#include "tinyfuse_requantize_s16.h"

/* weights [ceil(out_c / 4)][ceil(depth / 8)][4][8], zeros beyond the layer's own; channels [ceil(out_c / 4)][2][4]:
   the biases of four channels, then their multipliers (from tinyfuse_scale_s16) */
typedef struct {
    int32_t depth, out_c, act_min, act_max;
} tinyfuse_matmul_mve_s16;

#if TINYFUSE_MVE

/* The sums of four channels of two pixels. Assembly uses the offsets of these fields. */
typedef struct {
    int32_t sums[8];
    const int16_t *x, *y;
    const int8_t *weights;
    int32_t blocks; /* of 8 inputs */
} tinyfuse_mve_sums_s16;
typedef char tinyfuse_check_mve_sums_s16[offsetof(tinyfuse_mve_sums_s16, blocks) == 44 ? 1 : -1];

/* Products of one block of 8 inputs. */
#define TINYFUSE_MVE_BLOCK_S16     \
    "vldrb.s16 q2, [r5, #8]\n\t"   \
    "vldrh.u16 q0, [r1], #16\n\t"  \
    "vldrh.u16 q1, [r3], #16\n\t"  \
    "vmladava.s16 r2, q0, q2\n\t"  \
    "vldrb.s16 q3, [r5, #16]\n\t"  \
    "vmladava.s16 r10, q1, q2\n\t" \
    "vldrb.s16 q2, [r5, #24]\n\t"  \
    "vmladava.s16 r4, q0, q3\n\t"  \
    "vmladava.s16 r12, q1, q3\n\t" \
    "vldrb.s16 q3, [r5], #32\n\t"  \
    "vmladava.s16 r6, q0, q2\n\t"  \
    "vmladava.s16 lr, q1, q2\n\t"  \
    "vmladava.s16 r0, q0, q3\n\t"  \
    "vmladava.s16 r8, q1, q3\n\t"

/* Adds the products of x to sums[c] and those of y to sums[4 + c]. Sums are in even registers, as VMLADAVA
   requires. The remainder of blocks modulo four is processed first. */
TINYFUSE_INLINE void tinyfuse_mve_add_products_s16(tinyfuse_mve_sums_s16 *p)
{
    TINYFUSE_ARGUMENT(tinyfuse_mve_sums_s16 *, arguments, p);
    __asm volatile(TINYFUSE_ASM_BEGIN
                   "mov r7, r0\n\t"
                   "ldrd r1, r3, [r7, #32]\n\t"
                   "ldrd r5, r9, [r7, #40]\n\t"
                   "ldm r7, {r0, r2, r4, r6, r8, r10, r12, lr}\n\t"
                   "asr r11, r9, #2\n\t"
                   "ands r9, r9, #3\n\t"
                   "beq 2f\n\t"
                   "1:\n\t" TINYFUSE_MVE_BLOCK_S16
                   "subs r9, #1\n\t"
                   "bne 1b\n\t"
                   "2:\n\t"
                   "cmp r11, #0\n\t"
                   "beq 4f\n\t"
                   "3:\n\t" TINYFUSE_MVE_BLOCK_S16 TINYFUSE_MVE_BLOCK_S16
                       TINYFUSE_MVE_BLOCK_S16 TINYFUSE_MVE_BLOCK_S16
                   "subs r11, #1\n\t"
                   "bne 3b\n\t"
                   "4:\n\t"
                   "stm r7, {r0, r2, r4, r6, r8, r10, r12, lr}\n\t" TINYFUSE_ASM_END
                   :
                   : "r"(arguments)
                   : TINYFUSE_ASM_CLOBBERS, "q0", "q1", "q2", "q3");
}

#endif

/* Computes all channels of one pixel at x, or of two pixels (`two`, a constant). The second pixel's inputs are
   `depth` elements after the first one's, its outputs out_c elements. */
TINYFUSE_INLINE void tinyfuse_mve_pixels_s16(const tinyfuse_matmul_mve_s16 *p, const int16_t *x, int16_t *out,
                                             const int8_t *weights, const int32_t *channels, int two)
{
#if TINYFUSE_MVE
    const int32x4_t low = vdupq_n_s32(p->act_min), high = vdupq_n_s32(p->act_max);
    const mve_pred16_t rest = vctp16q((uint32_t)(p->depth & 7));
    tinyfuse_mve_sums_s16 of = {{0, 0, 0, 0, 0, 0, 0, 0}, x, x, weights, p->depth >> 3};
    const int16_t *const x_rest = x + (p->depth & ~7);
    int32_t c, i;
    if (two != 0) {
        of.y = x + p->depth;
    }
    for (c = 0; c < p->out_c; c += 4) {
        const mve_pred16_t some = vctp32q((uint32_t)(p->out_c - c));
        const int32x4_t biases = vldrwq_s32(channels), multipliers = vldrwq_s32(channels + 4);
        int32x4_t sums;
        of.weights = weights;
        weights += 4 * (p->depth & ~7);
        if (two != 0) {
            vstrwq_s32(of.sums, biases);
            vstrwq_s32(of.sums + 4, biases);
            tinyfuse_mve_add_products_s16(&of);
        } else {
            int32_t s0 = channels[0], s1 = channels[1], s2 = channels[2], s3 = channels[3];
            const int16_t *from = x;
            const int8_t *w = of.weights;
            for (i = 0; i < of.blocks; ++i) {
                const int16x8_t v = vldrhq_s16(from);
                s0 = vmladavaq_s16(s0, v, vldrbq_s16(w));
                s1 = vmladavaq_s16(s1, v, vldrbq_s16(w + 8));
                s2 = vmladavaq_s16(s2, v, vldrbq_s16(w + 16));
                s3 = vmladavaq_s16(s3, v, vldrbq_s16(w + 24));
                from += 8;
                w += 32;
            }
            of.sums[0] = s0;
            of.sums[1] = s1;
            of.sums[2] = s2;
            of.sums[3] = s3;
        }
        if ((p->depth & 7) != 0) {
            const int16x8_t v = vldrhq_z_s16(x_rest, rest);
            for (i = 0; i < 4; ++i) {
                of.sums[i] = vmladavaq_s16(of.sums[i], v, vldrbq_s16(weights + 8 * i));
            }
            if (two != 0) {
                const int16x8_t u = vldrhq_z_s16(x_rest + p->depth, rest);
                for (i = 0; i < 4; ++i) {
                    of.sums[4 + i] = vmladavaq_s16(of.sums[4 + i], u, vldrbq_s16(weights + 8 * i));
                }
            }
            weights += 32;
        }
        sums = vrmulhq_s32(vldrwq_s32(of.sums), multipliers);
        vstrhq_p_s32(out + c, vminq_s32(vmaxq_s32(sums, low), high), some);
        if (two != 0) {
            sums = vrmulhq_s32(vldrwq_s32(of.sums + 4), multipliers);
            vstrhq_p_s32(out + p->out_c + c, vminq_s32(vmaxq_s32(sums, low), high), some);
        }
        channels += 8;
    }
#else
    const int32_t blocks = (p->depth + 7) >> 3;
    int32_t i, c, k;
    for (i = 0; i <= (two ? 1 : 0); ++i) {
        for (c = 0; c < p->out_c; ++c) {
            const int8_t *const w = weights + (c >> 2) * 32 * blocks + 8 * (c & 3);
            const int32_t *const channel = channels + (c >> 2) * 8 + (c & 3);
            int32_t sum = channel[0];
            for (k = 0; k < p->depth; ++k) {
                sum += x[k] * w[(k >> 3) * 32 + (k & 7)];
            }
            out[c] = (int16_t)tinyfuse_clamp(tinyfuse_high_multiply_add(0, sum, channel[4]), p->act_min, p->act_max);
        }
        x += p->depth;
        out += p->out_c;
    }
#endif
}

/* Computes a layer from in [pixels][depth] to out [pixels][out_c], forward, two pixels at a time. These two are
   read again for every four channels: their outputs must not overlap them or later pixels. */
TINYFUSE_SHARED void tinyfuse_pointwise_mve_s16(const tinyfuse_matmul_mve_s16 *p, const int16_t *in, int32_t pixels,
                                                int16_t *out, const int8_t *weights, const int32_t *channels)
{
    for (; pixels > 1; pixels -= 2) {
        tinyfuse_mve_pixels_s16(p, in, out, weights, channels, 1);
        in += 2 * p->depth;
        out += 2 * p->out_c;
    }
    if (pixels > 0) {
        tinyfuse_mve_pixels_s16(p, in, out, weights, channels, 0);
    }
}

/* Computes output row y of a convolution of one group. Reads only the input rows of y's window, writes only
   out_row. scratch, aligned to 4: kernel_h pointers of 4 bytes, then two windows of kernel_h * kernel_w * in_c
   inputs, rounded up to a multiple of 8. The weights of the added inputs are zeros. */
TINYFUSE_SHARED void tinyfuse_conv_mve_row_s16(const tinyfuse_conv *p, const int16_t *in, int32_t y, int16_t *out_row,
                                               const int8_t *weights, const int32_t *channels, void *scratch)
{
    const tinyfuse_matmul_mve_s16 m = {(p->kernel_h * p->kernel_w * p->in_c + 7) & ~7, p->out_c, p->act_min,
                                       p->act_max};
    const int8_t **const rows =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int8_t *const windows = (int8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES;
    tinyfuse_conv bytes = *p; /* tinyfuse_window_mve counts in bytes */
    int32_t x, ky;
#if !TINYFUSE_MVE
    memset(windows, 0, 4 * (size_t)m.depth); /* only for sanitizers: the weights of these elements are zeros */
#endif
    bytes.in_c = 2 * p->in_c;
    bytes.in_zero_point = 0;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        rows[ky] = iy >= 0 && iy < p->in_h
                       ? tinyfuse_ring_row((const int8_t *)in, iy, p->in_ring, p->in_w * bytes.in_c)
                       : NULL;
    }
    for (x = 0; x + 1 < p->out_w; x += 2) {
        tinyfuse_window_mve(&bytes, rows, x, windows);
        tinyfuse_window_mve(&bytes, rows, x + 1, windows + 2 * m.depth);
        tinyfuse_mve_pixels_s16(&m, (const int16_t *)(const void *)windows, out_row, weights, channels, 1);
        out_row += 2 * p->out_c;
    }
    if (x < p->out_w) {
        tinyfuse_window_mve(&bytes, rows, x, windows);
        tinyfuse_mve_pixels_s16(&m, (const int16_t *)(const void *)windows, out_row, weights, channels, 0);
    }
}

/* Computes one pixel of a depthwise convolution of at least eight channels, eight at a time; the last eight end at
   in_c. Tap t of channel c lies at taps[t] + 2 * c. Weights [ceil(in_c / 8)][taps][8]; channels [ceil(in_c /
   8)][4][4]: biases of the even channels, biases of the odd ones, then their multipliers in this order. */
TINYFUSE_INLINE void tinyfuse_depthwise_mve_pixel_s16(const tinyfuse_conv *p, const int8_t *const *taps, int32_t count,
                                                      const int8_t *weights, const int32_t *channels, int16_t *out)
{
    int32_t c, t;
    for (c = 0; c < p->in_c; c += 8) {
        const int32_t from = tinyfuse_min(c, p->in_c - 8);
#if TINYFUSE_MVE
        int32x4_t even = vldrwq_s32(channels), odd = vldrwq_s32(channels + 4);
        int16x8_t stored = vdupq_n_s16(0);
        for (t = 0; t < count; ++t) {
            const int16x8_t v = vldrhq_s16((const int16_t *)(const void *)taps[t] + from);
            const int16x8_t w = vldrbq_s16(weights);
            even = vaddq_s32(even, vmullbq_int_s16(v, w));
            odd = vaddq_s32(odd, vmulltq_int_s16(v, w));
            weights += 8;
        }
        stored = vqmovnbq_s32(stored, vrmulhq_s32(even, vldrwq_s32(channels + 8)));
        stored = vqmovntq_s32(stored, vrmulhq_s32(odd, vldrwq_s32(channels + 12)));
        stored = vmaxq_s16(stored, vdupq_n_s16((int16_t)p->act_min));
        vstrhq_s16(out + from, vminq_s16(stored, vdupq_n_s16((int16_t)p->act_max)));
#else
        int32_t i;
        for (i = 0; i < 8; ++i) {
            const int32_t *const channel = channels + 4 * (i & 1) + i / 2;
            int32_t sum = channel[0];
            for (t = 0; t < count; ++t) {
                sum += ((const int16_t *)(const void *)taps[t])[from + i] * weights[8 * t + i];
            }
            sum = tinyfuse_high_multiply_add(0, sum, channel[8]);
            out[from + i] = (int16_t)tinyfuse_clamp(sum, p->act_min, p->act_max);
        }
        weights += 8 * count;
#endif
        channels += 16;
    }
}

/* Computes output row y of a depthwise convolution. Reads only the input rows of y's window, writes only out_row.
   scratch, aligned to 8: 2 * pairs pointers of 4 bytes, with pairs = ceil(taps / 2), then in_c zeros if any window
   reaches into the padding. */
TINYFUSE_SHARED void tinyfuse_depthwise_mve_row_s16(const tinyfuse_conv *p, const int16_t *in, int32_t y,
                                                    int16_t *out_row, const int8_t *weights, const int32_t *channels,
                                                    void *scratch)
{
    const int32_t count = p->kernel_h * p->kernel_w, pairs = (count + 1) / 2;
    const int8_t **const taps =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, 2 * (size_t)pairs * sizeof *taps);
    int8_t *const padding = (int8_t *)scratch + 2 * pairs * TINYFUSE_POINTER_BYTES;
    const int rows_inside = tinyfuse_depthwise_rows_inside(p, y);
    tinyfuse_conv bytes = *p; /* tinyfuse_depthwise_taps counts in bytes */
    int32_t x;
    bytes.in_c = 2 * p->in_c;
    if (!rows_inside || !tinyfuse_depthwise_columns_inside(p)) {
        memset(padding, 0, (size_t)bytes.in_c);
    }
    for (x = 0; x < p->out_w; ++x) {
        tinyfuse_depthwise_next_taps(&bytes, (const int8_t *)in, y, x, padding, taps, rows_inside);
        tinyfuse_depthwise_mve_pixel_s16(p, taps, count, weights, channels, out_row);
        out_row += p->in_c;
    }
}

#endif
