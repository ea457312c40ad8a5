/* Time, by the core's SysTick timer. Its interrupt stands for that of a camera or a microphone. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

/* Begins: from now on clock_interrupt() is called whenever so many microseconds are over, up to 671,000. */
void clock_start(uint32_t microseconds);

/* The firmware's own, called in the interrupt. */
void clock_interrupt(void);

/* Microseconds since the start. Not in the interrupt. */
uint32_t clock_now(void);

/* Sleeps up to an interrupt. */
void clock_sleep(void);

#endif
