/* Checks a filter bank with computed channels: all reads must stay within energies and weights. */
#ifndef TINYFUSE_SIGNAL_CHANNELS_H
#define TINYFUSE_SIGNAL_CHANNELS_H

#include "tinyfuse_common.h"

/* bins, starts, widths [channels + 1] as in tinyfuse_signal_filter_bank, for `energies` energies and `weights`
   weights. Returns not 0 if a channel reads beyond them. */
TINYFUSE_INLINE int32_t tinyfuse_signal_channels_outside(const int16_t *bins, const int16_t *starts,
                                                         const int16_t *widths, int32_t channels, int32_t energies,
                                                         int32_t weights)
{
    int32_t c;
    for (c = 0; c <= channels; ++c) {
        if (widths[c] > 0 && (bins[c] < 0 || bins[c] + widths[c] > energies || starts[c] < 0 ||
                              starts[c] + widths[c] > weights)) {
            return 1;
        }
    }
    return 0;
}

#endif
