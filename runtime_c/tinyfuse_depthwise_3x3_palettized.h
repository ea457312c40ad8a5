/* tinyfuse_depthwise_3x3.h with palettized weights (tinyfuse_palette.h), which every call expands for its row. */
#ifndef TINYFUSE_DEPTHWISE_3X3_PALETTIZED_H
#define TINYFUSE_DEPTHWISE_3X3_PALETTIZED_H

#include "tinyfuse_depthwise_3x3.h"
#include "tinyfuse_palette.h"

/* Computes what tinyfuse_depthwise_3x3_row_s8 does. scratch, aligned to 16: groups * 36 weights, rounded up to a
   multiple of 16, then that of tinyfuse_depthwise_3x3_row_s8. */
TINYFUSE_INLINE void tinyfuse_depthwise_3x3_palettized_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                              int8_t *out_row, const tinyfuse_palettized *w,
                                                              const void *channels, void *scratch, int32_t groups,
                                                              int form)
{
    void *const rest = tinyfuse_expand_palette_groups(w, groups, 36, 4, scratch);
    tinyfuse_depthwise_3x3_row_s8(p, in, y, out_row, (const int8_t *)scratch, channels, rest, form);
}

#endif
