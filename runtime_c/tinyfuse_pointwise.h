/* 1x1 convolution with stride 1, int8: consecutive pixels times packed weights. */
#ifndef TINYFUSE_POINTWISE_H
#define TINYFUSE_POINTWISE_H

#include "tinyfuse_matmul.h"

/* Sizes; in_c is a multiple of 4, and `block` pixels are computed together, 2 or 3. */
typedef struct {
    int32_t in_c, out_c, out_zero_point, act_min, act_max, block;
} tinyfuse_pointwise;

/* Computes all pixels by blocks. `m`: the layer, with lookup tables where `form` has them. */
TINYFUSE_INLINE void tinyfuse_pointwise_blocks(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels,
                                               tinyfuse_matmul *m, int8_t *out, const int8_t *weights, void *scratch,
                                               int form)
{
    int8_t *const columns = (int8_t *)scratch;
    const int plain = form & ~TINYFUSE_LOOKED_UP;
    const int32_t step = tinyfuse_step_bytes(plain), pixel = tinyfuse_pixel_bytes(plain);
    int8_t *const first = out;
    int32_t left = pixels;
    while (left > 0) {
        const int32_t block = tinyfuse_block_pixels(left, p->block);
        int32_t i;
        for (i = 0; i < block; ++i) {
            (void)tinyfuse_widen(in, p->in_c / 4, columns + pixel * i, step * block, plain);
            in += p->in_c;
        }
        tinyfuse_matmul_pixels(m, weights, columns, p->in_c, out, p->out_c, block, form);
        out += block * p->out_c;
        left -= block;
    }
    tinyfuse_clamp_outputs(first, pixels * p->out_c, p->act_min, p->act_max);
}

TINYFUSE_INLINE void tinyfuse_pointwise_body(const tinyfuse_pointwise *p, const int8_t *in,
                                             int32_t pixels, int8_t *out, const int8_t *weights,
                                             const void *channels, void *scratch, int form)
{
    tinyfuse_matmul m = tinyfuse_matmul_of(p->out_c, p->out_zero_point, channels, form);
    tinyfuse_pointwise_blocks(p, in, pixels, &m, out, weights, scratch, form);
}

#define TINYFUSE_POINTWISE(name, form)                                                            \
    TINYFUSE_SHARED void name(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels,      \
                              int8_t *out, const int8_t *weights, const void *channels,           \
                              void *scratch)                                                      \
    {                                                                                             \
        tinyfuse_pointwise_body(p, in, pixels, out, weights, channels, scratch, form);            \
    }
TINYFUSE_POINTWISE(tinyfuse_pointwise_wide, TINYFUSE_WIDE)
TINYFUSE_POINTWISE(tinyfuse_pointwise_lanes, TINYFUSE_LANES)
TINYFUSE_POINTWISE(tinyfuse_pointwise_single_rounding, TINYFUSE_SINGLE_ROUNDING)
TINYFUSE_POINTWISE(tinyfuse_pointwise_bytes, TINYFUSE_BYTES)
TINYFUSE_POINTWISE(tinyfuse_pointwise_bytes_single_rounding, TINYFUSE_BYTES_SINGLE_ROUNDING)
TINYFUSE_POINTWISE(tinyfuse_pointwise_shifted, TINYFUSE_SHIFTED)
TINYFUSE_POINTWISE(tinyfuse_pointwise_bytes_shifted, TINYFUSE_BYTES_SHIFTED)
TINYFUSE_POINTWISE(tinyfuse_pointwise_half_even, TINYFUSE_HALF_EVEN)
TINYFUSE_POINTWISE(tinyfuse_pointwise_half_even_wide, TINYFUSE_HALF_EVEN_WIDE)
TINYFUSE_POINTWISE(tinyfuse_pointwise_bytes_half_even, TINYFUSE_BYTES_HALF_EVEN)
TINYFUSE_POINTWISE(tinyfuse_pointwise_int4, TINYFUSE_INT4)
TINYFUSE_POINTWISE(tinyfuse_pointwise_int4_single_rounding, TINYFUSE_INT4_SINGLE_ROUNDING)

/* Computes a layer, in [pixels][in_c] to out [pixels][out_c], forward by blocks of pixels: out may overlap pixels
   that were read already, those of the block included. Weights and channels are packed for tinyfuse_matmul.h, whose
   `form` is a constant. scratch, aligned to 8: columns of block * in_c inputs. */
TINYFUSE_INLINE void tinyfuse_pointwise_s8(const tinyfuse_pointwise *p, const int8_t *in,
                                           int32_t pixels, int8_t *out, const int8_t *weights,
                                           const void *channels, void *scratch, int form)
{
    TINYFUSE_OF_FORM(form, tinyfuse_pointwise, )(p, in, pixels, out, weights, channels, scratch);
}

/* Computes what tinyfuse_pointwise_s8 does, from int4 weights. */
TINYFUSE_INLINE void tinyfuse_pointwise_s4(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels, int8_t *out,
                                           const int8_t *weights, const void *channels, void *scratch, int form)
{
    TINYFUSE_OF_FORM(form, tinyfuse_pointwise, )(p, in, pixels, out, weights, channels, scratch);
}

#define TINYFUSE_POINTWISE_LUT(name, form)                                                               \
    TINYFUSE_SHARED void name(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels,             \
                              int8_t *out, const int8_t *weights, const void *channels,                  \
                              void *scratch, const int8_t *tables, int32_t table_bytes)                  \
    {                                                                                                    \
        tinyfuse_matmul m =                                                                       \
            tinyfuse_matmul_lut_of(p->out_c, p->out_zero_point, channels, tables, table_bytes, form);    \
        tinyfuse_pointwise_blocks(p, in, pixels, &m, out, weights, scratch,                       \
                                  (form) | TINYFUSE_LOOKED_UP);                                          \
    }
TINYFUSE_POINTWISE_LUT(tinyfuse_pointwise_lut_wide, TINYFUSE_WIDE)
TINYFUSE_POINTWISE_LUT(tinyfuse_pointwise_lut_lanes, TINYFUSE_LANES)
TINYFUSE_POINTWISE_LUT(tinyfuse_pointwise_lut_single_rounding, TINYFUSE_SINGLE_ROUNDING)
TINYFUSE_POINTWISE_LUT(tinyfuse_pointwise_lut_signed_rounding, TINYFUSE_SIGNED_ROUNDING)

/* Computes a layer as tinyfuse_pointwise_s8 does and maps each output by a lookup table: one table, or one per
   channel, `table_bytes` apart (tinyfuse_matmul.h). */
TINYFUSE_INLINE void tinyfuse_pointwise_lut_s8(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels,
                                               int8_t *out, const int8_t *weights, const void *channels, void *scratch,
                                               const int8_t *tables, int32_t table_bytes, int form)
{
    TINYFUSE_OF_LUT(form, tinyfuse_pointwise, )(p, in, pixels, out, weights, channels, scratch, tables,
                                                   table_bytes);
}

#endif
