/* Layers whose window is as high as the image, computed row by row: accumulators replace the stored rows. */
#ifndef TINYFUSE_ROW_MACS_H
#define TINYFUSE_ROW_MACS_H

#include "tinyfuse_requantize.h"

/* Sizes in elements along a row. `units`: accumulators for each output column. Padded positions add nothing. */
typedef struct {
    int32_t in_w, in_c, out_w, units;
    int32_t kernel_w, stride_w, dilation_w, pad_left;
    int32_t in_zero_point;
} tinyfuse_row_macs;

/* sums[column][unit] = previous[column][unit] (0 if that is NULL) + the products of a row [in_w][in_c] with its
   weights [kernel_w][units][in_c]. `sums` may be `previous`. */
TINYFUSE_INLINE void tinyfuse_row_macs_s8(const tinyfuse_row_macs *p, const int8_t *in, const int8_t *weights,
                                          const int32_t *previous, int32_t *sums)
{
    int32_t x, k, u, i;
    for (x = 0; x < p->out_w; ++x) {
        for (u = 0; u < p->units; ++u) {
            uint32_t sum = previous == NULL ? 0u : (uint32_t)previous[x * p->units + u]; /* wraps around */
            for (k = 0; k < p->kernel_w; ++k) {
                const int32_t at = x * p->stride_w - p->pad_left + k * p->dilation_w;
                const int8_t *const from = in + at * p->in_c;
                const int8_t *const w = weights + (k * p->units + u) * p->in_c;
                if (at < 0 || at >= p->in_w) {
                    continue;
                }
                for (i = 0; i < p->in_c; ++i) {
                    sum += (uint32_t)((from[i] - p->in_zero_point) * w[i]);
                }
            }
            sums[x * p->units + u] = (int32_t)sum;
        }
    }
}

/* tinyfuse_row_macs_s8 for depthwise layers: unit u reads only input channel u / (units / in_c). Weights
   [kernel_w][units]. */
TINYFUSE_INLINE void tinyfuse_row_macs_depthwise_s8(const tinyfuse_row_macs *p, const int8_t *in,
                                                    const int8_t *weights, const int32_t *previous,
                                                    int32_t *sums)
{
    const int32_t multiplier = p->units / p->in_c;
    int32_t x, k, u;
    for (x = 0; x < p->out_w; ++x) {
        for (u = 0; u < p->units; ++u) {
            uint32_t sum = previous == NULL ? 0u : (uint32_t)previous[x * p->units + u]; /* wraps around */
            for (k = 0; k < p->kernel_w; ++k) {
                const int32_t at = x * p->stride_w - p->pad_left + k * p->dilation_w;
                if (at < 0 || at >= p->in_w) {
                    continue;
                }
                sum += (uint32_t)((in[at * p->in_c + u / multiplier] - p->in_zero_point) *
                                  weights[k * p->units + u]);
            }
            sums[x * p->units + u] = (int32_t)sum;
        }
    }
}

typedef struct {
    int32_t columns, units;
    int32_t out_zero_point, act_min, act_max;
} tinyfuse_output_of_sums_params;

/* Requantizes sums as TensorFlow Lite Micro does; `channels` has one entry for each unit. */
TINYFUSE_INLINE void tinyfuse_output_of_sums(const tinyfuse_output_of_sums_params *p, const int32_t *sums,
                                             const tinyfuse_requant *channels, int8_t *out)
{
    int32_t x, u;
    for (x = 0; x < p->columns; ++x) {
        for (u = 0; u < p->units; ++u) {
            const int32_t sum = (int32_t)((uint32_t)*sums++ + (uint32_t)channels[u].bias);
            const int32_t scaled = tinyfuse_requantize(sum, channels[u].multiplier, channels[u].shift);
            *out++ = (int8_t)tinyfuse_clamp(scaled + p->out_zero_point, p->act_min, p->act_max);
        }
    }
}

/* Rescales sums of stored values less `offset`, the sum of their zero points; the multiplier includes the division. */
TINYFUSE_INLINE void tinyfuse_mean_of_sum(const int32_t *sums, int8_t *out, int32_t channels, int32_t offset,
                                          int32_t multiplier, int32_t shift, int32_t out_zero_point)
{
    int32_t c;
    for (c = 0; c < channels; ++c) {
        const int32_t scaled = tinyfuse_requantize(sums[c] - offset, multiplier, shift);
        out[c] = (int8_t)tinyfuse_clamp(scaled + out_zero_point, -128, 127);
    }
}

#endif
