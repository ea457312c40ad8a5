/* Startup for a Cortex-M4 with newlib and semihosting: vector table, memory, FPU, then main(). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void);
void initialise_monitor_handles(void); /* newlib's semihosting library: opens stdin, stdout, stderr */

/* mps2-an386.ld */
extern uint32_t stack_top[], data_load[], data_start[], data_end[], bss_start[], bss_end[];

#define CPACR (*(volatile uint32_t *)0xE000ED88u)

void reset_handler(void) __attribute__((noreturn));
void fault_handler(void) __attribute__((noreturn));
void systick_handler(void); /* clock.c has another one */

void reset_handler(void)
{
    CPACR |= 0xFu << 20; /* full access to coprocessors 10 and 11, the FPU */
    __asm volatile("dsb\n\tisb" ::: "memory");
    memcpy(data_start, data_load, (size_t)((char *)data_end - (char *)data_start));
    memset(bss_start, 0, (size_t)((char *)bss_end - (char *)bss_start));
    initialise_monitor_handles();
    exit(main());
}

/* Any fault or unexpected interrupt ends the emulation, with a status that main() never returns. */
void fault_handler(void)
{
    static const char message[] = "fault: the firmware stopped\n";

    (void)write(STDOUT_FILENO, message, sizeof message - 1);
    _exit(3);
}

__attribute__((weak)) void systick_handler(void)
{
    fault_handler();
}

/* The initial stack pointer and the 15 exceptions of the architecture; no other interrupt is used. */
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[16] = {
    (uintptr_t)stack_top,     (uintptr_t)reset_handler, (uintptr_t)fault_handler, (uintptr_t)fault_handler,
    (uintptr_t)fault_handler, (uintptr_t)fault_handler, (uintptr_t)fault_handler, (uintptr_t)fault_handler,
    (uintptr_t)fault_handler, (uintptr_t)fault_handler, (uintptr_t)fault_handler, (uintptr_t)fault_handler,
    (uintptr_t)fault_handler, (uintptr_t)fault_handler, (uintptr_t)fault_handler, (uintptr_t)systick_handler,
};
