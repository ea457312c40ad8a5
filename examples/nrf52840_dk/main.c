/* Firmware for Nordic's nRF52840-DK that answers `tinyfuse board validate` over the kit's USB port: start-up code, clock,
   UART. Addresses and values are those of the nRF52840 Product Specification. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "net.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))

#define CPACR REGISTER(0xE000ED88u)
#define CLOCK_TASKS_HFCLKSTART REGISTER(0x40000000u)
#define CLOCK_EVENTS_HFCLKSTARTED REGISTER(0x40000100u)
#define NVMC_ICACHECNF REGISTER(0x4001E540u)
#define P0_OUTSET REGISTER(0x50000508u)
#define P0_DIRSET REGISTER(0x50000518u)
#define UART(offset) REGISTER(0x40002000u + (offset))

enum {
    STARTRX = 0x000, STARTTX = 0x008, RXDRDY = 0x108, TXDRDY = 0x11C, ENABLE = 0x500, PSEL_TXD = 0x50C, PSEL_RXD = 0x514,
    RXD = 0x518, TXD = 0x51C, BAUDRATE = 0x524
};

/* The pins that the kit's debugger passes on to USB. */
#define PIN_TXD 6u
#define PIN_RXD 8u
#define BAUD_115200 0x01D7E000u

/* nrf52840.ld */
extern uint32_t stack_top[], data_load[], data_start[], data_end[], bss_start[], bss_end[];

void reset_handler(void) __attribute__((noreturn));

static int read_byte(void)
{
    while (UART(RXDRDY) == 0u) { /* nothing came */
    }
    UART(RXDRDY) = 0u; /* before RXD is read: the next byte may come at once */
    return (int)(UART(RXD) & 0xFFu);
}

static void write_bytes(const uint8_t *bytes, size_t count)
{
    for (; count > 0u; --count) {
        UART(TXDRDY) = 0u;
        UART(TXD) = *bytes++;
        while (UART(TXDRDY) == 0u) { /* not sent */
        }
    }
}

static void start_clock(void)
{
    CLOCK_EVENTS_HFCLKSTARTED = 0u;
    CLOCK_TASKS_HFCLKSTART = 1u; /* the crystal: the baud rate needs it, the core has 64 MHz either way */
    while (CLOCK_EVENTS_HFCLKSTARTED == 0u) {
    }
    NVMC_ICACHECNF = 1u; /* the cache in front of the flash */
}

static void start_uart(void)
{
    P0_OUTSET = 1u << PIN_TXD;
    P0_DIRSET = 1u << PIN_TXD;
    UART(PSEL_TXD) = PIN_TXD;
    UART(PSEL_RXD) = PIN_RXD;
    UART(BAUDRATE) = BAUD_115200;
    UART(ENABLE) = 4u;
    UART(STARTTX) = 1u;
    UART(STARTRX) = 1u;
}

void reset_handler(void)
{
    CPACR |= 0xFu << 20; /* the FPU */
    __asm volatile("dsb\n\tisb" ::: "memory");
    memcpy(data_start, data_load, (size_t)((char *)data_end - (char *)data_start));
    memset(bss_start, 0, (size_t)((char *)bss_end - (char *)bss_start));
    start_clock();
    start_uart();
    (void)net_board_serve(read_byte, write_bytes, NULL);
    for (;;) {
    }
}

static void stop(void)
{
    for (;;) {
    }
}

/* The initial stack pointer and the 15 exceptions of the architecture; no interrupt is used. */
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[16] = {
    (uintptr_t)stack_top, (uintptr_t)reset_handler, (uintptr_t)stop, (uintptr_t)stop, (uintptr_t)stop, (uintptr_t)stop,
    (uintptr_t)stop,      (uintptr_t)stop,          (uintptr_t)stop, (uintptr_t)stop, (uintptr_t)stop, (uintptr_t)stop,
    (uintptr_t)stop,      (uintptr_t)stop,          (uintptr_t)stop, (uintptr_t)stop,
};
