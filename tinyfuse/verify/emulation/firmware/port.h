/* Interface of the machine that the verification firmware runs on: port_cortex_m.c or port_host.c. */
#ifndef TINYFUSE_PORT_H
#define TINYFUSE_PORT_H

#include <stddef.h>
#include <stdint.h>

#define NOT_MEASURED INT64_MIN

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)

/* Type of the arena argument of the module's functions. ARENA_PARTS is defined if the arena is divided: a list of
   PART(number, bytes). */
#ifdef ARENA_PARTS
struct PASTE(MODULE_NAME, arena_parts);
typedef const struct PASTE(MODULE_NAME, arena_parts) *arena_pointer;
#else
typedef void *arena_pointer;
#endif

/* FRAMES is defined if the module has a state, which is then an argument of its run function. */
#ifdef FRAMES
#define RUN_PARAMETERS arena_pointer arena, void *state
#define RUN_ARGUMENTS arena, state
#else
#define RUN_PARAMETERS arena_pointer arena
#define RUN_ARGUMENTS arena
#endif

typedef int (*run_function)(RUN_PARAMETERS);

/* Writes text to the console. */
void port_write(const char *text, size_t length);

/* Ends the firmware; does not return. */
void port_exit(int code) __attribute__((noreturn));

/* Calls run(arena) or run(arena, state) and returns its status. Stores the bytes of stack that it took, or the
   thousandths of ticks of the port's clock that it took beyond a function of one instruction. A port that cannot
   measure these stores NOT_MEASURED. */
int port_run_for_stack(run_function run, RUN_PARAMETERS, int64_t *stack_bytes);
int port_run_for_ticks(run_function run, RUN_PARAMETERS, int64_t *ticks);

/* Calls run(arena) or run(arena, state) and returns its status, while interrupts, if the port can make them, overwrite
   the memory below the stack pointer: interrupt n comes about n * n / 2 ticks after the first one. That of number
   `turn`, counted from 1, calls `within`. Stores the most ticks that one of them came late. */
int port_run_interrupted(run_function run, RUN_PARAMETERS, void (*within)(void), uint32_t turn, uint32_t *late);

/* Fills unused memory, and starts to watch it and everything else that the module must not write. */
void port_watch(void);

/* Name of a watched memory that was written since; NULL if none was. Stores the first address, or 0 if it is
   not known. */
const char *port_changed(uintptr_t *address);

/* Sum over all static variables except the arena and the state; the module has none. */
uint32_t port_sum_of_variables(void);

/* Sum over registers of the system that a module must not change. */
uint32_t port_sum_of_system(void);

/* Makes accesses to memory fault, if the port can, and allows them again. */
void port_forbid(const void *start, size_t bytes);
void port_allow(const void *start, size_t bytes);

int main(void);

#endif
