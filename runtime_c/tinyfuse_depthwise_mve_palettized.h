/* tinyfuse_depthwise_mve.h with palettized weights (tinyfuse_palette.h), which every call expands for its row. */
#ifndef TINYFUSE_DEPTHWISE_MVE_PALETTIZED_H
#define TINYFUSE_DEPTHWISE_MVE_PALETTIZED_H

#include "tinyfuse_depthwise_mve.h"
#include "tinyfuse_palette.h"

/* Computes what tinyfuse_depthwise_mve_row_s8 does. scratch, aligned to 16: groups * group_bytes weights, then that
   of tinyfuse_depthwise_mve_row_s8. group_bytes: sixteen times the taps, an even number of them. */
TINYFUSE_INLINE void tinyfuse_depthwise_mve_palettized_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                              int8_t *out_row, const tinyfuse_palettized *w,
                                                              const int32_t *channels, void *scratch, int32_t groups,
                                                              int form)
{
    const int32_t group_bytes = 16 * ((p->kernel_h * p->kernel_w + 1) & ~1);
    void *const rest = tinyfuse_expand_palette_groups(w, groups, group_bytes, 16, scratch);
    tinyfuse_depthwise_mve_row_s8(p, in, y, out_row, (const int8_t *)scratch, channels, rest, form);
}

#endif
