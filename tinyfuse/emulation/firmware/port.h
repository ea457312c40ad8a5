/* What the verification firmware needs of the machine it runs on: port_cortex_m.c or port_host.c. */
#ifndef TINYFUSE_PORT_H
#define TINYFUSE_PORT_H

#include <stddef.h>
#include <stdint.h>

#define NOT_MEASURED (-1)

/* FRAMES is defined where the module has a state, which its run function then takes. */
#ifdef FRAMES
#define RUN_PARAMETERS void *arena, void *state
#define RUN_ARGUMENTS arena, state
#else
#define RUN_PARAMETERS void *arena
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

/* Makes accesses to memory faults where the port can, and allows them again. */
void port_forbid(const void *start, size_t bytes);
void port_allow(const void *start, size_t bytes);

int main(void);

#endif
