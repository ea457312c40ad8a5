/* Port for the machine that runs tinyfuse, under AddressSanitizer. */
#include "port.h"

#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>

void port_write(const char *text, size_t length)
{
    (void)fwrite(text, 1, length, stdout);
}

void port_exit(int code)
{
    exit(code);
}

int port_run_for_stack(run_function run, RUN_PARAMETERS, int64_t *stack_bytes)
{
    *stack_bytes = NOT_MEASURED;
    return run(RUN_ARGUMENTS);
}

int port_run_for_ticks(run_function run, RUN_PARAMETERS, int64_t *ticks)
{
    *ticks = NOT_MEASURED;
    return run(RUN_ARGUMENTS);
}

int port_run_interrupted(run_function run, RUN_PARAMETERS, void (*within)(void), uint32_t turn, uint32_t *late)
{
    (void)within;
    (void)turn;
    *late = 0;
    return run(RUN_ARGUMENTS);
}

/* AddressSanitizer watches instead. */
void port_watch(void)
{
}

const char *port_changed(uintptr_t *address)
{
    *address = 0;
    return NULL;
}

uint32_t port_sum_of_variables(void)
{
    return 0;
}

uint32_t port_sum_of_system(void)
{
    return 0;
}

void port_forbid(const void *start, size_t bytes)
{
    ASAN_POISON_MEMORY_REGION(start, bytes);
}

void port_allow(const void *start, size_t bytes)
{
    ASAN_UNPOISON_MEMORY_REGION(start, bytes);
}
