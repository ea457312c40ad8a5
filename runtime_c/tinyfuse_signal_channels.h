/* Whether a filter bank whose channels a run computed stays within its energies and weights. */
#ifndef TINYFUSE_SIGNAL_CHANNELS_H
#define TINYFUSE_SIGNAL_CHANNELS_H

#include "tinyfuse_common.h"

/* bins, starts, widths [channels + 1] as tinyfuse_signal_filter_bank reads them, of `energies` energies and `weights`
   weights. Not 0: a channel reads others. */
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
