/* The input rows of a few output rows, for library functions that only accept whole images: the rows are passed as
   an image of their own whose upper padding is that of the first output row. */
#ifndef TINYFUSE_WINDOW_H
#define TINYFUSE_WINDOW_H

#include "tinyfuse_common.h"

/* `first`: first input row that exists; `rows`: number of existing rows, 0 if all is padding; `pad_top`: kernel
   rows above the image, at most the kernel's height. Rows below the image shorten the window. */
typedef struct {
    int32_t first;
    int32_t rows;
    int32_t pad_top;
} tinyfuse_window;

/* Input rows of `count` output rows from row `y` on: `kernel` rows (dilation included) from y * stride - pad_top
   on, and `stride` more for each further output row, in an image of `height` rows. If `count` > 1, each output row
   must read a row that exists. */
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
