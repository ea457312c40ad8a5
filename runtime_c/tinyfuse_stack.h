/* A stack of rings of rows in one buffer: ring i begins at byte at[i], and at[rings] is the end of the last ring.
   All offsets and sizes are multiples of 4 bytes. */
#ifndef TINYFUSE_STACK_H
#define TINYFUSE_STACK_H

#include "tinyfuse_rows.h"

/* Moves `bytes` bytes, a multiple of 4, up, the last words first. Both addresses are aligned to 4. */
TINYFUSE_SHARED void tinyfuse_move_up(uint8_t *to, const uint8_t *from, int32_t bytes)
{
#if defined(__GNUC__)
#define TINYFUSE_WORD(pointer) __builtin_assume_aligned(pointer, 4)
#else
#define TINYFUSE_WORD(pointer) (pointer)
#endif
    uint32_t a, b, c, d;
    for (to += bytes, from += bytes; bytes >= 16; bytes -= 16) {
        to -= 16;
        from -= 16;
        memcpy(&a, TINYFUSE_WORD(from + 12), 4);
        memcpy(&b, TINYFUSE_WORD(from + 8), 4);
        memcpy(&c, TINYFUSE_WORD(from + 4), 4);
        memcpy(&d, TINYFUSE_WORD(from), 4);
        memcpy(TINYFUSE_WORD(to + 12), &a, 4);
        memcpy(TINYFUSE_WORD(to + 8), &b, 4);
        memcpy(TINYFUSE_WORD(to + 4), &c, 4);
        memcpy(TINYFUSE_WORD(to), &d, 4);
    }
    for (; bytes > 0; bytes -= 4) {
        to -= 4;
        from -= 4;
        memcpy(&a, TINYFUSE_WORD(from), 4);
        memcpy(TINYFUSE_WORD(to), &a, 4);
    }
#undef TINYFUSE_WORD
}

/* Makes room for `bytes` bytes below ring i: moves it and all rings above it up. */
TINYFUSE_SHARED void tinyfuse_stack_open(uint8_t *stack, int32_t *at, int32_t rings, int32_t i, int32_t bytes)
{
    if (bytes == 0) {
        return;
    }
    tinyfuse_move_up(stack + at[i] + bytes, stack + at[i], at[rings] - at[i]);
    for (; i <= rings; ++i) {
        at[i] += bytes;
    }
}

/* Drops the rows `first` to `oldest` - 1 at the start of ring i and moves down everything above them. `taken` bytes
   of the dropped rows remain in use by the ring below. Returns the row with which the ring begins now. */
TINYFUSE_SHARED int32_t tinyfuse_stack_drop(uint8_t *stack, int32_t *at, int32_t rings, int32_t i, int32_t first,
                                            int32_t oldest, int32_t row_bytes, int32_t taken)
{
    const int32_t from = at[i] + (oldest - first) * row_bytes, to = at[i] + taken;
    if (oldest <= first) {
        return first;
    }
    at[i] = to;
    if (from > to) {
        tinyfuse_move_down(stack + to, stack + from, at[rings] - from);
        while (++i <= rings) {
            at[i] -= from - to;
        }
    }
    return oldest;
}

/* Address of scratch memory on top of the stack, aligned to 16 as the stack is. */
TINYFUSE_INLINE uint8_t *tinyfuse_stack_top(uint8_t *stack, const int32_t *at, int32_t rings)
{
    return stack + ((at[rings] + 15) & ~15);
}

#endif
