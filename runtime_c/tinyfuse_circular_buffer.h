/* CIRCULAR_BUFFER: a window over the last frames of a stream. */
#ifndef TINYFUSE_CIRCULAR_BUFFER_H
#define TINYFUSE_CIRCULAR_BUFFER_H

#include "tinyfuse_common.h"

/* in [frame], frames [slots * frame], out [slots * frame]: drops the oldest frame and appends the new one. Returns
   0 and writes `out`, or returns 1 while awaited[0], which counts down from `cycles`, says that more frames must
   come first. */
TINYFUSE_INLINE int tinyfuse_circular_buffer(const int8_t *in, int8_t *frames, int32_t *awaited, int8_t *out,
                                             int32_t slots, int32_t frame, int32_t cycles)
{
    const size_t kept = (size_t)(slots - 1) * (size_t)frame;
    memmove(frames, frames + frame, kept);
    memcpy(frames + kept, in, (size_t)frame);
    *awaited -= 1;
    if (*awaited != 0) {
        return 1;
    }
    *awaited = cycles;
    memcpy(out, frames, kept + (size_t)frame);
    return 0;
}

#endif
