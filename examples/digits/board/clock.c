#include "clock.h"

#define SYST_CSR (*(volatile uint32_t *)0xE000E010u) /* control */
#define SYST_RVR (*(volatile uint32_t *)0xE000E014u) /* what it counts down from */
#define SYST_CVR (*(volatile uint32_t *)0xE000E018u) /* where it is */

enum { TICKS = 25 /* a microsecond: the board's clock */, RUN_BY_CORE_WITH_INTERRUPT = 7 };

static uint32_t period; /* microseconds */
static volatile uint32_t periods;

void systick_handler(void);

void systick_handler(void)
{
    ++periods;
    clock_interrupt();
}

void clock_start(uint32_t microseconds)
{
    SYST_CSR = 0;
    period = microseconds;
    periods = 0;
    SYST_RVR = period * TICKS - 1u;
    SYST_CVR = 0; /* any value: it begins anew */
    SYST_CSR = RUN_BY_CORE_WITH_INTERRUPT;
}

uint32_t clock_now(void)
{
    uint32_t before, left;

    do { /* again where the interrupt came between */
        before = periods;
        left = SYST_CVR;
        __asm volatile("isb" ::: "memory");
    } while (before != periods);
    return before * period + (period * TICKS - 1u - left) / TICKS;
}

void clock_sleep(void)
{
    __asm volatile("wfi" ::: "memory");
}
