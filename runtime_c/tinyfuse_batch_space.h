/* SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: every block-th row and column becomes an image of its own, and back. */
#ifndef TINYFUSE_BATCH_SPACE_H
#define TINYFUSE_BATCH_SPACE_H

#include "tinyfuse_common.h"

/* `images` images of dim[0] rows and dim[1] columns, `bytes` bytes a pixel, and a batch of images of count[0] rows
   and count[1] columns. Batch image (h * block[1] + w) * images + n holds pixels of image n: its pixel (y, x) is in row
   y * block[0] + h - before[0] and column x * block[1] + w - before[1]. */
typedef struct {
    int32_t images, bytes;
    int32_t dim[2], count[2], block[2], before[2];
} tinyfuse_blocks;

/* Byte offset of row `y` of a batch image in its source image; negative if the row lies outside. `first`: row and
   column of the block at which the batch image begins. */
TINYFUSE_INLINE int32_t tinyfuse_blocks_row(const tinyfuse_blocks *p, int32_t first, int32_t y)
{
    const int32_t row = y * p->block[0] + first - p->before[0];
    return row >= 0 && row < p->dim[0] ? row * p->dim[1] * p->bytes : -1;
}

/* Copies one row of a batch image from `in_row`, or writes zeros if that is NULL. Returns the end of `to`. */
TINYFUSE_INLINE uint8_t *tinyfuse_space_to_batch_row(const tinyfuse_blocks *p, int32_t first, const uint8_t *in_row,
                                                     uint8_t *to)
{
    int32_t i, x = first - p->before[1];
    for (i = 0; i < p->count[1]; ++i) {
        if (in_row != NULL && x >= 0 && x < p->dim[1]) {
            memcpy(to, in_row + x * p->bytes, (size_t)p->bytes);
        } else {
            memset(to, 0, (size_t)p->bytes);
        }
        to += p->bytes;
        x += p->block[1];
    }
    return to;
}

TINYFUSE_SHARED void tinyfuse_space_to_batch(const tinyfuse_blocks *p, const void *in, void *out)
{
    uint8_t *to = (uint8_t *)out;
    int32_t h, w, n, y;
    for (h = 0; h < p->block[0]; ++h) {
        for (w = 0; w < p->block[1]; ++w) {
            const uint8_t *image = (const uint8_t *)in;
            for (n = 0; n < p->images; ++n) {
                for (y = 0; y < p->count[0]; ++y) {
                    const int32_t row = tinyfuse_blocks_row(p, h, y);
                    to = tinyfuse_space_to_batch_row(p, w, row < 0 ? NULL : image + row, to);
                }
                image += p->dim[0] * p->dim[1] * p->bytes;
            }
        }
    }
}

/* Writes a row of a batch image to its places in `out_row`; columns outside are dropped. */
TINYFUSE_INLINE void tinyfuse_batch_to_space_row(const tinyfuse_blocks *p, int32_t first, const uint8_t *from,
                                                 uint8_t *out_row)
{
    int32_t i, x = first - p->before[1];
    for (i = 0; i < p->count[1]; ++i) {
        if (x >= 0 && x < p->dim[1]) {
            memcpy(out_row + x * p->bytes, from, (size_t)p->bytes);
        }
        from += p->bytes;
        x += p->block[1];
    }
}

TINYFUSE_SHARED void tinyfuse_batch_to_space(const tinyfuse_blocks *p, const void *in, void *out)
{
    const uint8_t *from = (const uint8_t *)in;
    int32_t h, w, n, y;
    for (h = 0; h < p->block[0]; ++h) {
        for (w = 0; w < p->block[1]; ++w) {
            uint8_t *image = (uint8_t *)out;
            for (n = 0; n < p->images; ++n) {
                for (y = 0; y < p->count[0]; ++y) {
                    const int32_t row = tinyfuse_blocks_row(p, h, y);
                    if (row >= 0) {
                        tinyfuse_batch_to_space_row(p, w, from, image + row);
                    }
                    from += p->count[1] * p->bytes;
                }
                image += p->dim[0] * p->dim[1] * p->bytes;
            }
        }
    }
}

#endif
