/* tinyfuse_depthwise_mve.h with weights that are looked up (tinyfuse_palette.h), all of them for every row. */
#ifndef TINYFUSE_DEPTHWISE_MVE_PALETTIZED_H
#define TINYFUSE_DEPTHWISE_MVE_PALETTIZED_H

#include "tinyfuse_depthwise_mve.h"
#include "tinyfuse_palette.h"

/* As tinyfuse_depthwise_mve_row_s8. scratch, aligned to 16: groups * group_bytes weights, then what that takes;
   group_bytes: sixteen times the taps, of which there is an even number. */
TINYFUSE_INLINE void tinyfuse_depthwise_mve_palettized_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                       int8_t *out_row, const tinyfuse_palettized *w,
                                                       const int32_t *channels, void *scratch, int32_t groups)
{
    const int32_t group_bytes = 16 * ((p->kernel_h * p->kernel_w + 1) & ~1);
    void *const rest = tinyfuse_expand_palette_groups(w, groups, group_bytes, 16, scratch);
    tinyfuse_depthwise_mve_row_s8(p, in, y, out_row, (const int8_t *)scratch, channels, rest);
}

#endif
