/* Layers whose biases are computed at run time: copies of their channel parameters that include the biases. */
#ifndef TINYFUSE_BIASES_H
#define TINYFUSE_BIASES_H

#include "tinyfuse_requantize_s16.h"

/* Writes `count` channels to scratch, aligned to 8: the layer's parameters with the biases filled in. */
#define TINYFUSE_DEFINE_BIASED(name, channel, bias_type)                                         \
    TINYFUSE_INLINE void tinyfuse_biased_##name(const channel *channels, const bias_type *biases, \
                                                void *scratch, int32_t count)                     \
    {                                                                                            \
        channel *const to = (channel *)scratch;                                                  \
        int32_t i;                                                                               \
        for (i = 0; i < count; ++i) {                                                            \
            to[i] = channels[i];                                                                 \
            to[i].bias = biases[i];                                                              \
        }                                                                                        \
    }

TINYFUSE_DEFINE_BIASED(s8, tinyfuse_requant, int32_t)
TINYFUSE_DEFINE_BIASED(s16_s16, tinyfuse_requant_s16, int16_t)
TINYFUSE_DEFINE_BIASED(s16_s32, tinyfuse_requant_s16, int32_t)
TINYFUSE_DEFINE_BIASED(s16_s64, tinyfuse_requant_s16, int64_t)

#endif
