/* Tiles of an image's columns, between convolutions that are computed a tile after the other: int8 NHWC.

   A tile has some rows, each of as many columns as the windows of a tile's outputs reach: from the first column of
   the first window on. Columns beside the image are there, too, and hold padding. */
#ifndef TINYFUSE_TILE_H
#define TINYFUSE_TILE_H

#include "tinyfuse_rows.h"

/* A tile of rows x row_bytes bytes, of an image `width` pixels wide, and the windows that read it: `reach` columns
   from the first to the last, `stride` apart, `padding` columns of which the first one has to the left of the image.
   stride <= reach, padding < reach. */
typedef struct {
    int32_t rows, row_bytes, channels, width;
    int32_t reach, stride, padding, zero_point;
} tinyfuse_tile;

/* How many columns of the image the windows of the first `outputs` outputs need. */
TINYFUSE_INLINE int32_t tinyfuse_tile_end(const tinyfuse_tile *t, int32_t outputs)
{
    return outputs == 0 ? 0 : tinyfuse_min((outputs - 1) * t->stride - t->padding + t->reach, t->width);
}

/* Makes a tile ready for the windows of outputs `from` to `to` - 1, where it was so for those from `before` to
   `from` - 1: columns that both see move to the front, and those beside the image are filled. */
TINYFUSE_INLINE void tinyfuse_tile_begin(const tinyfuse_tile *t, int8_t *tile, int32_t before, int32_t from, int32_t to)
{
    const int32_t first = from * t->stride - t->padding;
    const int32_t end = (to - 1) * t->stride - t->padding + t->reach;
    int32_t row;
    if (from >= to) { /* of what is left, nobody needs more */
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
