/* Rows of a streamed tensor, and rings whose rows are contiguous and slide down. */
#ifndef TINYFUSE_ROWS_H
#define TINYFUSE_ROWS_H

#include "tinyfuse_common.h"

/* How many of the first `count` rows exist; 0 if `count` is negative. */
TINYFUSE_INLINE int32_t tinyfuse_rows_within(int32_t count, int32_t height)
{
    return count < 0 ? 0 : tinyfuse_min(count, height);
}

/* Address at which row 0 of contiguous rows would lie if row `first` lies at `memory`. Only rows from `first` on
   may be accessed. */
TINYFUSE_INLINE const void *tinyfuse_rows_start(const void *memory, int32_t first, int32_t row_bytes)
{
    return (const void *)((uintptr_t)memory - (uintptr_t)(uint32_t)(first * row_bytes));
}

/* Moves `bytes` bytes down to `to`, which lies before `from`. */
#if TINYFUSE_MVE /* with -Os compilers don't vectorize this loop */
TINYFUSE_SHARED void tinyfuse_move_down(uint8_t *to, const uint8_t *from, int32_t bytes)
{
    for (int32_t vectors = bytes >> 4; vectors > 0; --vectors, to += 16, from += 16) {
        vstrbq_u8(to, vldrbq_u8(from));
    }
    if ((bytes & 15) != 0) {
        const mve_pred16_t there = vctp8q((uint32_t)bytes & 15u);
        vstrbq_p_u8(to, vldrbq_z_u8(from, there), there);
    }
}
#else
TINYFUSE_SHARED void tinyfuse_move_down(uint8_t *to, const uint8_t *from, int32_t bytes)
{
#if defined(__arm__) && !defined(__ARM_FEATURE_UNALIGNED)
    /* this core can only load and store aligned words */
#define TINYFUSE_WORD(pointer) __builtin_assume_aligned(pointer, 4)
    if ((((uintptr_t)to | (uintptr_t)from) & 3u) == 0u)
#else
#define TINYFUSE_WORD(pointer) (pointer)
#endif
    for (; bytes >= 16; bytes -= 16, to += 16, from += 16) {
        const uint32_t a = tinyfuse_load_u32(TINYFUSE_WORD(from)), b = tinyfuse_load_u32(TINYFUSE_WORD(from + 4));
        const uint32_t c = tinyfuse_load_u32(TINYFUSE_WORD(from + 8)), d = tinyfuse_load_u32(TINYFUSE_WORD(from + 12));
        memcpy(TINYFUSE_WORD(to), &a, 4);
        memcpy(TINYFUSE_WORD(to + 4), &b, 4);
        memcpy(TINYFUSE_WORD(to + 8), &c, 4);
        memcpy(TINYFUSE_WORD(to + 12), &d, 4);
    }
#undef TINYFUSE_WORD
    for (; bytes > 0; --bytes) {
        *to++ = *from++;
    }
}
#endif

/* Slides contiguous rows `first` to `made` - 1 at `memory`: drops those before `oldest` and moves the others down.
   Returns the row that is now at `memory`. */
TINYFUSE_INLINE int32_t tinyfuse_rows_slide(void *memory, int32_t first, int32_t oldest, int32_t made,
                                            int32_t row_bytes)
{
    if (oldest > first) {
        const uint8_t *from = (const uint8_t *)memory + (ptrdiff_t)(oldest - first) * row_bytes;
        tinyfuse_move_down((uint8_t *)memory, from, (made - oldest) * row_bytes);
        return oldest;
    }
    return first;
}

#endif
