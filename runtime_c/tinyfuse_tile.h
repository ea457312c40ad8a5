/* Tiles of columns, for chains of convolutions that are computed tile by tile: int8 NHWC.

   A tile has a few rows, each of as many columns as the windows of its outputs reach. Columns beside the image
   exist too, and hold padding. */
#ifndef TINYFUSE_TILE_H
#define TINYFUSE_TILE_H

#include "tinyfuse_rows.h"

/* A tile of rows x row_bytes bytes, of an image `width` pixels wide, and the windows that read it: `reach` columns
   from the first to the last, `stride` apart. The first window has `padding` columns to the left of the image.
   stride <= reach, padding < reach. */
typedef struct {
    int32_t rows, row_bytes, channels, width;
    int32_t reach, stride, padding, zero_point;
} tinyfuse_tile;

/* Number of image columns that the windows of the first `outputs` outputs need. */
TINYFUSE_INLINE int32_t tinyfuse_tile_end(const tinyfuse_tile *t, int32_t outputs)
{
    return outputs == 0 ? 0 : tinyfuse_min((outputs - 1) * t->stride - t->padding + t->reach, t->width);
}

/* Prepares a tile for the windows of outputs `from` to `to` - 1 after those of `before` to `from` - 1: moves
   columns that both read to the front, and fills those beside the image with padding. */
TINYFUSE_INLINE void tinyfuse_tile_begin(const tinyfuse_tile *t, int8_t *tile, int32_t before, int32_t from, int32_t to)
{
    const int32_t first = from * t->stride - t->padding;
    const int32_t end = (to - 1) * t->stride - t->padding + t->reach;
    int32_t row;
    if (from >= to) { /* no output is left */
        return;
    }
    for (row = 0; row < t->rows; ++row, tile += t->row_bytes) {
        if (from > before) {
            const int8_t *kept = tile + (from - before) * t->stride * t->channels;
            tinyfuse_move_down((uint8_t *)tile, (const uint8_t *)kept, (t->reach - t->stride) * t->channels);
        }
        if (first < 0) {
            memset(tile, t->zero_point, (size_t)(-first * t->channels));
        }
        if (end > t->width) {
            memset(tile + (t->width - first) * t->channels, t->zero_point, (size_t)((end - t->width) * t->channels));
        }
    }
}

#endif
