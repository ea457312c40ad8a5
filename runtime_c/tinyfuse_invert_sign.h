/* Conversion between int8 and uint8 with zero points 128 apart: inverts the sign bit of each byte. */
#ifndef TINYFUSE_INVERT_SIGN_H
#define TINYFUSE_INVERT_SIGN_H

#include "tinyfuse_common.h"

/* Goes forward: `out` may begin where `in` does, or below it. */
TINYFUSE_INLINE void tinyfuse_invert_sign(const void *in, void *out, int32_t count)
{
    const uint8_t *from = (const uint8_t *)in;
    uint8_t *to = (uint8_t *)out;
    for (; count >= 4; count -= 4) {
        uint32_t word;
        memcpy(&word, from, 4);
        word ^= 0x80808080u;
        memcpy(to, &word, 4);
        from += 4;
        to += 4;
    }
    for (; count > 0; --count) {
        *to++ = (uint8_t)(*from++ ^ 0x80u);
    }
}

#endif
