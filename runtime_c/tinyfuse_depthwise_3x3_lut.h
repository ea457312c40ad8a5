/* tinyfuse_depthwise_3x3.h with weights that are looked up (tinyfuse_lookup.h), all of them for every row. */
#ifndef TINYFUSE_DEPTHWISE_3X3_LUT_H
#define TINYFUSE_DEPTHWISE_3X3_LUT_H

#include "tinyfuse_depthwise_3x3.h"
#include "tinyfuse_lookup.h"

/* As tinyfuse_depthwise_3x3_row_s8. scratch, aligned to 16: groups * 36 weights, rounded up to a multiple of 16, then
   what that takes. */
TINYFUSE_INLINE void tinyfuse_depthwise_3x3_lut_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                       int8_t *out_row, const tinyfuse_compressed *w,
                                                       const void *channels, void *scratch, int32_t groups,
                                                       int form)
{
    void *const rest = tinyfuse_look_up_groups(w, groups, 36, 4, scratch);
    tinyfuse_depthwise_3x3_row_s8(p, in, y, out_row, (const int8_t *)scratch, channels, rest, form);
}

#endif
