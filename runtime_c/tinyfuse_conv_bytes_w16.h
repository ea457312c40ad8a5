/* Convolution of one group with weights of 9 bits stored in bytes, for cores with the DSP extension. Columns also
   hold the sums of their inputs. */
#ifndef TINYFUSE_CONV_BYTES_W16_H
#define TINYFUSE_CONV_BYTES_W16_H

#include "tinyfuse_conv_packed.h"

/* A stored byte is a weight less `offset`, which is the same for the whole layer. So each sum lacks offset * (sum of
   the window's inputs), which is the same for all channels. */

enum { TINYFUSE_W16_GROUPS = 128 }; /* groups of four inputs whose bytes sum to int16 */

/* Returns the groups of four sums that follow a column of `groups` groups of inputs. */
TINYFUSE_INLINE int32_t tinyfuse_sum_groups(int32_t groups)
{
    return 2 * ((groups + TINYFUSE_W16_GROUPS - 1) / TINYFUSE_W16_GROUPS);
}

/* Returns bytes 0 and 2 of a word of int8, each plus 128. */
TINYFUSE_INLINE uint32_t tinyfuse_lifted_bytes(uint32_t word)
{
    return (word ^ 0x00800080u) & 0x00FF00FFu;
}

/* Appends the sums of a column's groups, two groups of sums for each TINYFUSE_W16_GROUPS: of the inputs in the first
   word of a group, and of those in its second, each plus 128. In TINYFUSE_LANES and TINYFUSE_SINGLE_ROUNDING the
   inputs of lanes' upper halves are stored as 127 less each, those of the lower halves as 128 more. Biases and
   weights take that into account (tinyfuse/kernels/layers/uint8_weights16/portable.py). */
TINYFUSE_INLINE void tinyfuse_append_sums(int8_t *column, int32_t groups, int32_t step, int form)
{
    const int32_t half = form == TINYFUSE_WIDE ? 4 : step / 2;
    int8_t *to = column + groups * step;
    while (groups > 0) {
        int32_t some = tinyfuse_min(groups, TINYFUSE_W16_GROUPS);
        uint32_t first = 0, second = 0;
        const uint32_t nothing = 0;
        groups -= some;
        for (; some > 0; --some) {
            const uint32_t a = tinyfuse_load_u32(column), b = tinyfuse_load_u32(column + half);
            first += form == TINYFUSE_WIDE ? tinyfuse_lifted_bytes(a) : a;
            second += tinyfuse_lifted_bytes(form == TINYFUSE_WIDE ? b : b >> 8);
            column += step;
        }
        memcpy(to, &first, 4);
        memcpy(to + half, &nothing, 4);
        memcpy(to + step, &second, 4);
        memcpy(to + step + half, &nothing, 4);
        to += 2 * step;
    }
}

/* Computes output row y of a convolution of one group by the loop of int8 weights. Weights and channels are those of
   tinyfuse_matmul.h in `form`, a constant: weights less `offset`, and the offset with its sign for the sums that
   tinyfuse_append_sums appends. `block_pixels` (2 or 3) are computed together. scratch, aligned to 8: kernel_h
   pointers of 4 bytes, columns of 2 * block_pixels * (depth + 8 * sums) bytes, then `depth` bytes where in_c is no
   multiple of 4, with depth = kernel_h * kernel_w * in_c rounded up to a multiple of 4, and sums = depth / 4 over
   TINYFUSE_W16_GROUPS, rounded up. */
TINYFUSE_INLINE void tinyfuse_conv_bytes_row_w16(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                                 const int8_t *weights, const void *channels, void *scratch,
                                                 int32_t block_pixels, int form)
{
    const int32_t depth = (p->kernel_h * p->kernel_w * p->in_c + 3) & ~3;
    const int32_t with_sums = depth + 4 * tinyfuse_sum_groups(depth / 4);
    const int8_t **const rows =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)p->kernel_h * sizeof *rows);
    int8_t *const columns = (int8_t *)scratch + p->kernel_h * TINYFUSE_POINTER_BYTES;
    int8_t *const bytes = columns + 2 * block_pixels * with_sums;
    tinyfuse_matmul m = tinyfuse_matmul_of(p->out_c, p->out_zero_point, channels, form);
    const int inside = tinyfuse_window_rows(p, in, y, rows);
    int32_t x, i, block;
    for (x = 0; x < p->out_w; x += block) {
        block = tinyfuse_block_pixels(p->out_w - x, block_pixels);
        tinyfuse_windows(p, p, rows, inside, x, block, columns, bytes, form);
        for (i = 0; i < block; ++i) {
            tinyfuse_append_sums(columns + tinyfuse_pixel_bytes(form) * i, depth / 4, 8 * block, form);
        }
        tinyfuse_matmul_pixels(&m, weights, columns, with_sums, out_row + x * p->out_c, p->out_c, block, form);
    }
    tinyfuse_clamp_outputs(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
}

#endif
