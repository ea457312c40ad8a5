/* tinyfuse_depthwise_3x3.h with int4 weights, which every call expands for its row. */
#ifndef TINYFUSE_DEPTHWISE_3X3_S4_H
#define TINYFUSE_DEPTHWISE_3X3_S4_H

#include "tinyfuse_depthwise_3x3.h"
#include "tinyfuse_weights_s4.h"

/* Computes what tinyfuse_depthwise_3x3_row_s8 does. scratch: 32 * blocks bytes of expanded weights, then that of
   tinyfuse_depthwise_3x3_row_s8. */
TINYFUSE_INLINE void tinyfuse_depthwise_3x3_row_s4(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                                                   const uint32_t *weights, const void *channels, void *scratch,
                                                   int32_t blocks, int form)
{
    void *const rest = tinyfuse_widen_weights_s4(weights, blocks, scratch);
    tinyfuse_depthwise_3x3_row_s8(p, in, y, out_row, (const int8_t *)scratch, channels, rest, form);
}

#endif
