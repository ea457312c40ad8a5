/* What every kernel shares: attributes, unaligned access, and the row of a ring. C99 and C++. */
#ifndef TINYFUSE_COMMON_H
#define TINYFUSE_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Arithmetic right shifts of negative numbers are implementation-defined in C; every compiler for
   Arm and x86 shifts in the sign, and the kernels rely on it. */
typedef char tinyfuse_check_arithmetic_shift[((-1 >> 1) == -1) ? 1 : -1];

/* Inner blocks that many layers share: one copy in the module, never inlined, and no warning where
   no layer uses them. Kernels are inlined, so that what a layer fixes becomes constant in them. Without
   optimization nothing would: there each is one copy, or a module would take half a megabyte of code and
   kilobytes of stack. A build that has other worries, say sanitizers, may define TINYFUSE_INLINE as
   `static inline` too. */
#if defined(__GNUC__)
#define TINYFUSE_SHARED static __attribute__((noinline, unused))
#else
#define TINYFUSE_SHARED static
#endif
#if defined(TINYFUSE_INLINE)
#elif defined(__GNUC__) && defined(__OPTIMIZE__)
#define TINYFUSE_INLINE static inline __attribute__((always_inline))
#else
#define TINYFUSE_INLINE static inline
#endif

/* Whether blocks in Armv7E-M assembly are used; else their C twins, with the same results. They take
   nearly every register: without optimization a compiler keeps a frame pointer, and Clang cannot
   address their operands in memory by the stack pointer. Define TINYFUSE_NO_ASM to get the twins. */
#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__OPTIMIZE__) && defined(__thumb__) && !defined(TINYFUSE_NO_ASM)
#define TINYFUSE_DSP 1
#else
#define TINYFUSE_DSP 0
#endif

/* Row `y` of a tensor that lies in a ring of `ring` rows of `row_bytes` bytes (ring == height for a
   whole tensor). */
TINYFUSE_INLINE const int8_t *tinyfuse_ring_row(const int8_t *memory, int32_t y, int32_t ring,
                                                int32_t row_bytes)
{
    return memory + (ptrdiff_t)(y % ring) * row_bytes;
}

TINYFUSE_INLINE uint32_t tinyfuse_load_u32(const void *from)
{
    uint32_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

TINYFUSE_INLINE int32_t tinyfuse_min(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

TINYFUSE_INLINE int32_t tinyfuse_max(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

#endif
