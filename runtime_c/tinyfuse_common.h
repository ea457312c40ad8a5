/* What every kernel shares: attributes, unaligned access, and the row of a ring. C99 and C++. */
#ifndef TINYFUSE_COMMON_H
#define TINYFUSE_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Arithmetic right shifts of negative numbers are implementation-defined in C; every compiler for
   Arm and x86 shifts in the sign, and the kernels rely on it. */
typedef char tinyfuse_check_arithmetic_shift[((-1 >> 1) == -1) ? 1 : -1];

/* What stands before every function that isn't inlined: a section, say, to put the kernels into fast
   memory. A module sets it to its own NAME_CODE_ATTR. */
#ifndef TINYFUSE_CODE_ATTR
#define TINYFUSE_CODE_ATTR
#endif

/* Inner blocks that many layers share: one copy in the module, never inlined, and no warning where
   no layer uses them. Kernels are inlined, so that what a layer fixes becomes constant in them. Without
   optimization nothing would: there each is one copy, or a module would take half a megabyte of code and
   kilobytes of stack; nor on a host of 64 bits (TINYFUSE_WITH_POINTERS). A build that has other worries, say
   sanitizers, may define TINYFUSE_INLINE as `static inline` too. */
#if defined(__GNUC__)
#define TINYFUSE_SHARED TINYFUSE_CODE_ATTR static __attribute__((noinline, unused))
#else
#define TINYFUSE_SHARED TINYFUSE_CODE_ATTR static
#endif
/* A group of a model is inlined where it is called, but where its loops would have to share registers there. */
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

/* How a large block of assembly is written, so that it compiles with any flags and needs no more registers
   than a call does: an asm statement with one to four operands, in r0 to r3, as a call has its arguments;
   most have one, the address of a struct. It pushes r4 to r11 and lr and what operands it will change,
   from there on r0 to r12 and lr are its own, and in the end it pops the same. Results go where the
   arguments say. No operand is in memory: compilers address those by the stack pointer, which has moved.
   Vector registers are clobbered by name. With one operand:

       TINYFUSE_ARGUMENT(const some_struct *, arguments, &s);
       __asm volatile(TINYFUSE_ASM_BEGIN "..." TINYFUSE_ASM_END : : "r"(arguments) : TINYFUSE_ASM_CLOBBERS);

   The variables of operands are set right before the statement, from variables alone: what is computed
   between them might take their registers.

   In the middle of a statement r9 holds anything. Where interrupt handlers expect something there
   (position-independent data: Clang's -frwpi, which is recognized; GCC's -ffixed-r9 and
   -msingle-pic-base, which can't be), define TINYFUSE_NO_ASM. */
#define TINYFUSE_ARGUMENT(type, name, value) register type name __asm("r0") = (value)
#define TINYFUSE_ASM_BEGIN "push {r0, r4-r11, lr}\n\t"
#define TINYFUSE_ASM_END "pop {r0, r4-r11, lr}\n\t"
#define TINYFUSE_ASM_CLOBBERS "r1", "r2", "r3", "r12", "cc", "memory"

/* Whether blocks in Armv7E-M assembly are used; else their C twins, with the same results. Define
   TINYFUSE_NO_ASM to get the twins. */
#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__) && defined(__thumb2__) && !defined(__ARM_RWPI) && \
    !defined(TINYFUSE_NO_ASM)
#define TINYFUSE_DSP 1
#else
#define TINYFUSE_DSP 0
#endif

/* Whether assembly may use an FPU of single precision; what it clobbers then, and a comma. */
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

/* Whether Helium is used, in assembly and intrinsics: every core that has it has the DSP extension too.
   Clang has no name for the predicate P0: what writes it stands in a function of its own, where nothing
   else uses a predicate. */
#if defined(__ARM_FEATURE_MVE) && TINYFUSE_DSP
#define TINYFUSE_MVE 1
#include <arm_mve.h>
#else
#define TINYFUSE_MVE 0
#endif
/* Whether Helium computes float32, too. */
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

/* What a kernel keeps in scratch and has pointers in it: `bytes` of it. Plans are made for cores of 32 bits, where a
   pointer takes TINYFUSE_POINTER_BYTES; on a host of 64, which runs a module's tests, it lies on the stack and its
   place in scratch stays empty. The stack is free again when the kernel returns, which is not forced to be inlined
   there: else a loop over rows would take more of it in each iteration. */
enum { TINYFUSE_POINTER_BYTES = 4 };
#if UINTPTR_MAX > 0xFFFFFFFFu
#define TINYFUSE_WITH_POINTERS(scratch, bytes) __builtin_alloca(bytes)
#else
#define TINYFUSE_WITH_POINTERS(scratch, bytes) (scratch)
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
