/* Shared by all kernels: attributes, unaligned access, and the row of a ring. C99 and C++. */
#ifndef TINYFUSE_COMMON_H
#define TINYFUSE_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Arithmetic right shifts of negative numbers are implementation-defined in C; every compiler for
   Arm and x86 shifts in the sign, and the kernels rely on it. */
typedef char tinyfuse_check_arithmetic_shift[((-1 >> 1) == -1) ? 1 : -1];

/* Attribute of every function that isn't inlined, for example a section in fast memory. A module sets it to its own
   NAME_CODE_ATTR. */
#ifndef TINYFUSE_CODE_ATTR
#define TINYFUSE_CODE_ATTR
#endif

/* Inlining of kernels. TINYFUSE_SHARED functions, the inner blocks that many layers share, have one copy in the module
   and are never inlined; they cause no warning if no layer uses them. TINYFUSE_INLINE functions are inlined, so that
   each layer's parameters become constants.

   Without optimization nothing would become constant, a module would take half a megabyte of code and kilobytes of
   stack: there each kernel is one copy. The same holds for hosts of 64 bits (TINYFUSE_WITH_POINTERS). A build with
   other needs, such as sanitizers, may define TINYFUSE_INLINE as `static inline` too. */
#if defined(__GNUC__)
#define TINYFUSE_SHARED TINYFUSE_CODE_ATTR static __attribute__((noinline, unused))
#else
#define TINYFUSE_SHARED TINYFUSE_CODE_ATTR static
#endif
/* A model's groups are inlined into the calling function, unless their loops would then compete for registers. */
#if defined(__GNUC__)
#define TINYFUSE_APART __attribute__((noinline))
#else
#define TINYFUSE_APART
#endif
#if defined(TINYFUSE_INLINE)
#elif defined(__GNUC__) && defined(__OPTIMIZE__) && UINTPTR_MAX <= 0xFFFFFFFFu
#define TINYFUSE_INLINE static inline __attribute__((always_inline))
#else
#define TINYFUSE_INLINE TINYFUSE_CODE_ATTR static inline
#endif

/* Defines the function `name`, which calls the inline function `body` with a constant `form` as the last argument.
   `parameters`: the function's parameter list; `...`: the names in it. */
#define TINYFUSE_IN_FORM(name, form, body, parameters, ...)                                        \
    TINYFUSE_SHARED void name parameters                                                           \
    {                                                                                              \
        body(__VA_ARGS__, form);                                                                   \
    }

/* Frame of a large block of assembly. It compiles with any flags, and needs no more registers than a call. The
   asm statement has one to four operands, in r0 to r3 like a call's arguments; most have one, the address of a
   struct. The block pushes r4 to r11, lr and the operands that it will change; then it may use r0 to r12 and
   lr, and at the end it pops the same registers. Results go where the arguments point. No operand is in
   memory, because compilers address memory operands by the stack pointer, which the pushes move. Vector
   registers are clobbered by name. With one operand:

       TINYFUSE_ARGUMENT(const some_struct *, arguments, &s);
       __asm volatile(TINYFUSE_ASM_BEGIN "..." TINYFUSE_ASM_END : : "r"(arguments) : TINYFUSE_ASM_CLOBBERS);

   The variables of operands are set right before the statement, only from variables: a computation between
   them might use their registers.

   During the block r9 has arbitrary contents. If interrupt handlers rely on r9 (position-independent data:
   Clang's -frwpi, which is recognized; GCC's -ffixed-r9 and -msingle-pic-base, which cannot be), define
   TINYFUSE_NO_ASM. */
#define TINYFUSE_ARGUMENT(type, name, value) register type name __asm("r0") = (value)
#define TINYFUSE_ASM_BEGIN "push {r0, r4-r11, lr}\n\t"
#define TINYFUSE_ASM_END "pop {r0, r4-r11, lr}\n\t"
#define TINYFUSE_ASM_CLOBBERS "r1", "r2", "r3", "r12", "cc", "memory"

/* Defines a function with one parameter, the address of a struct. Its body is the asm statement `code`. */
#define TINYFUSE_ASM_FUNCTION(name, type, code)                                                    \
    TINYFUSE_SHARED void name(type *job)                                                           \
    {                                                                                              \
        TINYFUSE_ARGUMENT(type *, arguments, job);                                                 \
        code;                                                                                      \
    }

/* Selects blocks in Armv7E-M assembly. Their C twins have the same results; define TINYFUSE_NO_ASM to use them. */
#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__) && defined(__thumb2__) && !defined(__ARM_RWPI) && \
    !defined(TINYFUSE_NO_ASM)
#define TINYFUSE_DSP 1
#else
#define TINYFUSE_DSP 0
#endif

/* Selects assembly for a single-precision FPU. TINYFUSE_CLOBBERS_FPU: the registers that it clobbers, with a comma. */
#if defined(__arm__) && defined(__ARM_FP) && defined(__GNUC__) && !defined(TINYFUSE_NO_ASM)
#define TINYFUSE_FPU ((__ARM_FP & 4) != 0)
#else
#define TINYFUSE_FPU 0
#endif
#if TINYFUSE_FPU
#define TINYFUSE_CLOBBERS_FPU "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7",
#else
#define TINYFUSE_CLOBBERS_FPU
#endif

/* Selects Helium assembly and intrinsics. Every core with Helium has the DSP extension too. Clang has no name for
   the predicate P0, so assembly that writes P0 is kept in functions that use no other predicate. */
#if defined(__ARM_FEATURE_MVE) && TINYFUSE_DSP
#define TINYFUSE_MVE 1
#include <arm_mve.h>
#else
#define TINYFUSE_MVE 0
#endif
/* Tells whether Helium also computes float32. */
#if TINYFUSE_MVE
#define TINYFUSE_MVE_FLOATS ((__ARM_FEATURE_MVE & 2) != 0)
#else
#define TINYFUSE_MVE_FLOATS 0
#endif
#if defined(__clang__)
#define TINYFUSE_CLOBBERS_P0
#else
#define TINYFUSE_CLOBBERS_P0 "p0",
#endif

/* Memory for `bytes` bytes of scratch that contain pointers. Plans are made for 32-bit cores, where a pointer takes
   TINYFUSE_POINTER_BYTES. On a 64-bit host, which runs a module's tests, this memory is on the stack instead, and
   its place in scratch stays unused. Functions that use it are not forced inline on such a host: the stack must be
   free again when the kernel returns, or a loop over rows would take more of it in each iteration. */
enum { TINYFUSE_POINTER_BYTES = 4 };
#if UINTPTR_MAX > 0xFFFFFFFFu
#define TINYFUSE_WITH_POINTERS(scratch, bytes) __builtin_alloca(bytes)
#else
#define TINYFUSE_WITH_POINTERS(scratch, bytes) (scratch)
#endif

/* Returns row `y` of a tensor in a ring of `ring` rows of `row_bytes` bytes (ring == height for a whole tensor). */
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
