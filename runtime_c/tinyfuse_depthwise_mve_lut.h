/* tinyfuse_depthwise_mve.h with weights that are looked up (tinyfuse_lookup.h), all of them for every row. */
#ifndef TINYFUSE_DEPTHWISE_MVE_LUT_H
#define TINYFUSE_DEPTHWISE_MVE_LUT_H

#include "tinyfuse_depthwise_mve.h"
#include "tinyfuse_lookup.h"

/* As tinyfuse_depthwise_mve_row_s8. scratch, aligned to 16: groups * group_bytes weights, then what that takes;
   group_bytes: sixteen times the taps, of which there is an even number. */
TINYFUSE_INLINE void tinyfuse_depthwise_mve_lut_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                       int8_t *out_row, const tinyfuse_compressed *w,
                                                       const int32_t *channels, void *scratch, int32_t groups,
                                                       int form)
{
    const int32_t group_bytes = 16 * ((p->kernel_h * p->kernel_w + 1) & ~1);
    void *const rest = tinyfuse_look_up_groups(w, groups, group_bytes, 16, scratch);
    tinyfuse_depthwise_mve_row_s8(p, in, y, out_row, (const int8_t *)scratch, channels, rest, form);
}

#endif
