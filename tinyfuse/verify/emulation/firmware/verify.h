/* Interface between verify.c and interface.c, which is generated for each module
   (tinyfuse/verify/emulation/interface.py). */
#ifndef TINYFUSE_VERIFY_H
#define TINYFUSE_VERIFY_H

#include "port.h"

/* Writes a record if the module does not keep a promise of its header, which `text` states. */
void promise(int kept, const char *text);
#define PROMISE(condition) promise((condition) != 0, #condition)

/* Writes the next call, so that the log names it if the module does not survive it. */
void trying(const char *call);
#define REFUSED(call, expected) (trying(#call), promise((call) == (expected), #call " == " #expected))

/* These are weak: a firmware without them is linked to measure the module's size. */
#define WEAK __attribute__((weak))

/* Compares macros and accessors with the plan, and tests what init and reset refuse and what a reset leaves. The arena
   has exactly the promised alignment. The state, NULL if there is none, is overwritten. */
WEAK void check_interface(arena_pointer arena, uint8_t *state);

/* Tries inferences before weights are bound, in a module with a blob of weights. */
WEAK void check_unbound(arena_pointer arena, uint8_t *state);

/* Tries inferences without an arena or a state. They come last, because a faulty module may destroy everything. */
WEAK void check_refusals(arena_pointer arena, uint8_t *state);

/* The module's STACK_BYTES without optimization if this is compiled with it, and the reverse (other_levels.c). */
extern const uintptr_t stack_bytes_otherwise;

/* Arrays of NAME_weights.c with the CRC-32 of the plan's bytes; start is NULL in the last entry. */
struct weights {
    const uint8_t *start;
    uintptr_t bytes, crc;
    const char *name;
};
WEAK extern const struct weights tinyfuse_weights[];

#endif
