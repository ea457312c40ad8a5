/* Row streaming: when may a stage of a fusion group compute its next row? */
#ifndef TINYFUSE_ROWS_H
#define TINYFUSE_ROWS_H

#include "tinyfuse_common.h"

/* How many input rows, from row 0, must exist before output row `y` can be computed: a window of
   `kernel` rows (dilation included) that starts at y * stride - pad_top, in a tensor of `height`
   rows. Rows outside the tensor are padding and need not exist. */
TINYFUSE_INLINE int32_t tinyfuse_rows_needed(int32_t y, int32_t kernel, int32_t stride,
                                             int32_t pad_top, int32_t height)
{
    const int32_t end = y * stride - pad_top + kernel;
    return tinyfuse_min(tinyfuse_max(end, 0), height);
}

#endif
