/* The input rows of a few output rows, for library functions that know only whole images: they are
   given the rows' windows as an image of its own, whose upper padding is what the first row has. */
#ifndef TINYFUSE_WINDOW_H
#define TINYFUSE_WINDOW_H

#include "tinyfuse_common.h"

/* `first`: the first row that exists; `rows`: how many exist, 0 where all is padding; `pad_top`:
   kernel rows above the image, at most the kernel's. Rows below the image end the window early. */
typedef struct {
    int32_t first;
    int32_t rows;
    int32_t pad_top;
} tinyfuse_window;

/* The windows of `count` output rows from row `y` on: `kernel` rows (dilation included) from
   y * stride - pad_top on, and `stride` rows more for each further one, in an image of `height`
   rows. Of several output rows, each reads a row that exists. */
TINYFUSE_INLINE tinyfuse_window tinyfuse_window_at(int32_t y, int32_t count, int32_t stride,
                                                   int32_t pad_top, int32_t kernel, int32_t height)
{
    const int32_t start = y * stride - pad_top;
    const int32_t end = start + (count - 1) * stride + kernel;
    tinyfuse_window window;

    window.first = tinyfuse_min(tinyfuse_max(start, 0), height);
    window.rows = tinyfuse_max(tinyfuse_min(end, height) - window.first, 0);
    window.pad_top = tinyfuse_min(tinyfuse_max(-start, 0), kernel);
    return window;
}

#endif
