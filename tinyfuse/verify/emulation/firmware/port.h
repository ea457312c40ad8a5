/* What the verification firmware needs of the machine it runs on: port_cortex_m.c or port_host.c. */
#ifndef TINYFUSE_PORT_H
#define TINYFUSE_PORT_H

#include <stddef.h>
#include <stdint.h>

#define NOT_MEASURED INT64_MIN

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)

/* What the module's functions take for an arena. ARENA_PARTS is defined where that is in parts: a list of
   PART(number, bytes). */
#ifdef ARENA_PARTS
struct PASTE(MODULE_NAME, arena_parts);
typedef const struct PASTE(MODULE_NAME, arena_parts) *arena_pointer;
#else
typedef void *arena_pointer;
#endif

/* FRAMES is defined where the module has a state, which its run function then takes. */
#ifdef FRAMES
#define RUN_PARAMETERS arena_pointer arena, void *state
#define RUN_ARGUMENTS arena, state
#else
#define RUN_PARAMETERS arena_pointer arena
#define RUN_ARGUMENTS arena
#endif

typedef int (*run_function)(RUN_PARAMETERS);

/* Writes text to whoever runs the firmware. */
void port_write(const char *text, size_t length);

/* Ends the firmware; does not return. */
void port_exit(int code) __attribute__((noreturn));

/* Calls run(arena) or run(arena, state) and returns its status. Stores the bytes of stack it took, or how many ticks of
   the port's clock, in thousandths, it took more than a function of one instruction; a port that
   can't tell stores NOT_MEASURED. */
int port_run_for_stack(run_function run, RUN_PARAMETERS, int64_t *stack_bytes);
int port_run_for_ticks(run_function run, RUN_PARAMETERS, int64_t *ticks);

/* Begins to watch what the module may neither write nor rely on: the memory that nobody uses is filled. */
void port_watch(void);

/* A name for what was written of it since, NULL where nothing was; stores the first address, or 0 where
   it can't be told. */
const char *port_changed(uintptr_t *address);

/* A sum over all static variables but the arena and the state: they are not the module's. */
uint32_t port_sum_of_variables(void);

/* Makes accesses to memory faults where the port can, and allows them again. */
void port_forbid(const void *start, size_t bytes);
void port_allow(const void *start, size_t bytes);

int main(void);

#endif
