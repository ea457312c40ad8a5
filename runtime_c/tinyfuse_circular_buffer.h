/* A window over the last frames of a stream. */
#ifndef TINYFUSE_CIRCULAR_BUFFER_H
#define TINYFUSE_CIRCULAR_BUFFER_H

#include "tinyfuse_common.h"

/* in [frame], frames [slots * frame] and out bytes: the oldest frame leaves, the new one comes last. 0, and the frames in
   out; or 1 where awaited[0] says that more frames are to come first, which counts down from `cycles`. */
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
