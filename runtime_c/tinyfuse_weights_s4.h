/* Weights of int4 that a call expands to int8 in scratch before it reads them, where few of them serve many outputs.

   words  [blocks][4]: byte i of a block's 16, the lowest of a word first, has 8 + weight i in its low bits and
          8 + weight 16 + i in its high ones. */
#ifndef TINYFUSE_WEIGHTS_S4_H
#define TINYFUSE_WEIGHTS_S4_H

#include "tinyfuse_common.h"

enum { TINYFUSE_BLOCK_S4 = 32 /* weights of a block, and bytes of them */ };

/* Returns four weights of -8 to 7 from bytes that exceed them by 8: 0x78 to 0x87 with 0x78 added, without carries. */
TINYFUSE_INLINE uint32_t tinyfuse_four_weights_s4(uint32_t bytes)
{
    return ((bytes & 0x0F0F0F0Fu) + 0x78787878u) ^ 0x80808080u;
}

/* Expands blocks, more than 0, into 32 bytes each at `weights`, aligned to 4. Returns the place after them. */
TINYFUSE_SHARED void *tinyfuse_widen_weights_s4(const uint32_t *words, int32_t blocks, void *weights)
{
    uint32_t *to = (uint32_t *)weights;
    do {
        const uint32_t a = words[0], b = words[1], c = words[2], d = words[3];
        to[0] = tinyfuse_four_weights_s4(a);
        to[1] = tinyfuse_four_weights_s4(b);
        to[2] = tinyfuse_four_weights_s4(c);
        to[3] = tinyfuse_four_weights_s4(d);
        to[4] = tinyfuse_four_weights_s4(a >> 4);
        to[5] = tinyfuse_four_weights_s4(b >> 4);
        to[6] = tinyfuse_four_weights_s4(c >> 4);
        to[7] = tinyfuse_four_weights_s4(d >> 4);
        to += 8;
        words += 4;
    } while (--blocks > 0);
    return to;
}

#endif
