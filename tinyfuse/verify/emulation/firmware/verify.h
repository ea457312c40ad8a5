/* What verify.c and interface.c, which is generated for each module (tinyfuse/verify/emulation/interface.py), have of
   each other. */
#ifndef TINYFUSE_VERIFY_H
#define TINYFUSE_VERIFY_H

#include "port.h"

/* Writes a record where the module doesn't keep a promise of its header; `text` says which. */
void promise(int kept, const char *text);
#define PROMISE(condition) promise((condition) != 0, #condition)

/* Writes what is called next: the log's last words, should the module not survive it. */
void trying(const char *call);
#define REFUSED(call, expected) (trying(#call), promise((call) == (expected), #call " == " #expected))

/* The three below are weak: a firmware without them is linked to measure the module's size. */
#define WEAK __attribute__((weak))

/* Macros and accessors against the plan, what init and reset refuse, and what a reset leaves after. The
   arena is aligned as promised and no better; the state, NULL where there is none, is overwritten. */
WEAK void check_interface(arena_pointer arena, uint8_t *state);

/* Inferences without an arena or a state: after the runs, as a module that lets them pass may destroy all. */
WEAK void check_refusals(arena_pointer arena, uint8_t *state);

/* The module's STACK_BYTES without optimization where this is compiled with it, and the reverse (other_levels.c). */
extern const uintptr_t stack_bytes_otherwise;

/* Every array of NAME_weights.c with the CRC-32 of the plan's bytes; the last one has no start. */
struct weights {
    const uint8_t *start;
    uintptr_t bytes, crc;
    const char *name;
};
WEAK extern const struct weights tinyfuse_weights[];

#endif
