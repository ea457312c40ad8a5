/* The port for Cortex-M (Armv6-M to Armv8.1-M) under an emulator: startup, faults, clock, console.

   The console is Arm semihosting, or with CONSOLE_UART a register that prints each word written to
   it; the firmware then ends in test_exit(), which the emulator's script watches. */
#include "port.h"

#include <string.h>

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define SYST_CSR REGISTER(0xE000E010u)
#define SYST_RVR REGISTER(0xE000E014u)
#define SYST_CVR REGISTER(0xE000E018u)
#define SCB_ICSR REGISTER(0xE000ED04u)
#define SCB_VTOR REGISTER(0xE000ED08u)
#define SCB_CCR REGISTER(0xE000ED14u)
#define SCB_CFSR REGISTER(0xE000ED28u)
#define SCB_HFSR REGISTER(0xE000ED2Cu)
#define SCB_MMFAR REGISTER(0xE000ED34u)
#define SCB_CPACR REGISTER(0xE000ED88u)

/* sections.ld */
extern uint32_t bss_start[], bss_end[], stack_limit[], stack_top[], fault_stack_top[], data_start[], data_end[];
extern uint32_t flash_start[], code_end[], flash_end[], constants_start[], constants_end[];
extern uint32_t inputs_start[], inputs_end[], arena_start[], arena_end[], states_start[], states_end[];
extern uint32_t ram_end[], bulk_used[], bulk_end[], kept_start[];

/* Memory banks with weights, and banks with further parts of the arena. */
struct stretch {
    uint32_t *start, *end;
};
extern const struct stretch bank_table[], bank_table_end[], part_table[], part_table_end[];

/* --- console ---------------------------------------------------------------------------------- */

#ifdef CONSOLE_UART

void test_exit(int code) __attribute__((noreturn, noinline, used));

void port_write(const char *text, size_t length)
{
    for (size_t i = 0; i < length; ++i) {
        REGISTER(0x40000000u) = (uint8_t)text[i];
    }
}

/* The emulator's script reads the code from r0 and stops the machine. */
void test_exit(int code)
{
    for (;;) {
        __asm volatile("" : : "r"(code));
    }
}

void port_exit(int code)
{
    test_exit(code);
}

#else

/* "Semihosting for AArch32 and AArch64", Arm, 2023: operation in r0, its parameter in r1. */
enum { SYS_WRITE0 = 0x04, SYS_EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

static void semihosting(int operation, const void *parameter)
{
    register int r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = parameter;

    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void port_write(const char *text, size_t length)
{
    char terminated[129];

    while (length > 0) {
        size_t part = length < sizeof terminated - 1 ? length : sizeof terminated - 1;

        memcpy(terminated, text, part);
        terminated[part] = '\0';
        semihosting(SYS_WRITE0, terminated);
        text += part;
        length -= part;
    }
}

void port_exit(int code)
{
    const uint32_t reason[2] = {APPLICATION_EXIT, (uint32_t)code};

    for (;;) {
        semihosting(SYS_EXIT_EXTENDED, reason);
    }
}

#endif

/* --- faults ----------------------------------------------------------------------------------- */

static void write_hex(const char *name, uint32_t value)
{
    char digits[8];

    for (int i = 0; i < 8; ++i) {
        digits[i] = "0123456789abcdef"[(value >> (28 - 4 * i)) & 15u];
    }
    port_write(name, strlen(name));
    port_write(digits, sizeof digits);
}

/* frame: r0 to r3, r12, lr, pc, xpsr as the core stacked them; it may lie outside the stack after an overflow. */
static void __attribute__((noreturn, used)) crashed(const uint32_t *frame)
{
    write_hex("crash exception=", SCB_ICSR & 0x1FFu);
    write_hex(" cfsr=", SCB_CFSR);
    write_hex(" hfsr=", SCB_HFSR);
    write_hex(" address=", SCB_MMFAR);
    if (frame >= stack_limit && frame + 8 <= stack_top) {
        write_hex(" pc=", frame[6]);
        write_hex(" lr=", frame[5]);
    } else {
        port_write(" stack overflow", 15);
    }
    port_write("\n", 1);
    port_exit(4);
}

/* Faults have a stack of their own, because the usual one may have overflowed, and its content is shown. */
static void __attribute__((naked)) fault_handler(void)
{
    __asm volatile("mrs r0, msp\n\t"
                   "ldr r1, =fault_stack_top\n\t"
                   "msr msp, r1\n\t"
                   "ldr r1, =crashed\n\t"
                   "bx r1\n\t"
                   ".ltorg");
}

/* --- protection ------------------------------------------------------------------------------- */

static int bank_count(void)
{
    return (int)(((uintptr_t)bank_table_end - (uintptr_t)bank_table) / sizeof *bank_table);
}

static int part_count(void)
{
    return (int)(((uintptr_t)part_table_end - (uintptr_t)part_table) / sizeof *part_table);
}

#ifdef CONSOLE_UART

static void protect(int on)
{
    (void)on;
}

#else

#define MPU_TYPE REGISTER(0xE000ED90u)
#define MPU_CTRL REGISTER(0xE000ED94u)
#define MPU_RNR REGISTER(0xE000ED98u)
#define MPU_RBAR REGISTER(0xE000ED9Cu)
#define MPU_RASR REGISTER(0xE000EDA0u) /* of Armv6-M and Armv7-M */
#define MPU_RLAR REGISTER(0xE000EDA0u) /* of Armv8-M */
#define MPU_MAIR0 REGISTER(0xE000EDC0u)

/* Emulators look up pages that a region covers only partly at every access. */
enum { PAGE = 1024, MOST_REGIONS = 8 };

struct region {
    uint32_t start, end; /* in pages */
    int written;
};

/* Adds a stretch to `count` regions, or makes one of them larger; returns the number of regions. */
static int add_region(struct region *regions, int count, const uint32_t *first, const uint32_t *last, int written)
{
    const uint32_t start = (uint32_t)(uintptr_t)first / PAGE, end = ((uint32_t)(uintptr_t)last + PAGE - 1u) / PAGE;

    for (int i = 0; i < count; ++i) {
        if (regions[i].written == written && start <= regions[i].end && regions[i].start <= end) {
            regions[i].start = start < regions[i].start ? start : regions[i].start;
            regions[i].end = end > regions[i].end ? end : regions[i].end;
            return count;
        }
    }
    if (count < MOST_REGIONS && start < end) {
        regions[count] = (struct region){start, end, written};
    }
    return start < end ? count + 1 : count;
}

/* Programs a region: on Armv6-M and Armv7-M eighths of a power of two that cover it, on Armv8-M its pages. */
static void allow(uint32_t number, const struct region *region)
{
    MPU_RNR = number;
#if defined(__ARM_ARCH_8M_BASE__) || defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
    MPU_RBAR = region->start * PAGE | (region->written ? 1u : 3u) << 1;
    MPU_RLAR = (region->end * PAGE - 32u) | 1u;
#else
    uint32_t bits = 3, hidden = 0; /* 2^bits pages */

    while (region->start >> bits != (region->end - 1u) >> bits) {
        ++bits;
    }
    for (uint32_t eighth = 0; eighth < 8u; ++eighth) {
        const uint32_t from = (region->start >> bits << bits) + (eighth << (bits - 3u));

        if (from >= region->end || from + (1u << (bits - 3u)) <= region->start) {
            hidden |= 1u << (8u + eighth);
        }
    }
    MPU_RBAR = (region->start >> bits << bits) * PAGE;
    MPU_RASR = (region->written ? 3u : 5u) << 24 | hidden | (bits + 9u) << 1 | 1u;
#endif
}

/* Lets every access fault, except those to code, weights, stack, arena and states, and to the harness's memory in the
   same regions; or allows all again. Does nothing if the core has too few regions. */
static void protect(int on)
{
    static struct region regions[MOST_REGIONS] __attribute__((section(".kept")));
    const int available = (int)(MPU_TYPE >> 8 & 0xFFu);
    int count = 0;

    MPU_CTRL = 0;
    if (on) {
        count = add_region(regions, count, flash_start, code_end, 0);
        count = add_region(regions, count, constants_start, constants_end, 0);
        count = add_region(regions, count, stack_limit, fault_stack_top, 1);
        count = add_region(regions, count, kept_start, inputs_end, 1);
        count = add_region(regions, count, data_start, bss_end, 1);
        count = add_region(regions, count, arena_start, arena_end, 1);
        count = add_region(regions, count, states_start, states_end, 1);
        for (int i = 0; i < bank_count(); ++i) {
            count = add_region(regions, count, bank_table[i].start, bank_table[i].end, 0);
        }
        for (int i = 0; i < part_count(); ++i) {
            count = add_region(regions, count, part_table[i].start, part_table[i].end, 1);
        }
    }
    if (count > 0 && count <= MOST_REGIONS && count <= available) {
        MPU_MAIR0 = 0x44u; /* normal memory */
        for (int i = 0; i < available; ++i) {
            MPU_RNR = (uint32_t)i;
            MPU_RLAR = 0;
        }
        for (int i = 0; i < count; ++i) {
            allow((uint32_t)i, &regions[i]);
        }
        MPU_CTRL = 1;
    }
    __asm volatile("dsb\n\tisb" : : : "memory");
}

#endif

/* --- measurements ----------------------------------------------------------------------------- */

static volatile uint32_t clock_wraps;

static void systick_handler(void)
{
    ++clock_wraps;
}

#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
#define USE_SINGLES "vmov r0, s0\n\t" /* only now does the core write them to the stack */
#else
#define USE_SINGLES
#endif

/* Most ticks that an interrupt came late; not in a section that is summed. */
static uint32_t latest __attribute__((used, section(".kept")));

/* Function that an interrupt calls, and the number of interrupts up to that one. */
static void (*called_within)(void) __attribute__((used, section(".kept")));
static uint32_t turns_left __attribute__((used, section(".kept")));

/* Overwrites 256 bytes below its stack pointer, but nothing below the stack, and lets the next interrupt come a tick
   later than this one did: so there are many in a short inference, and few enough in a long one. The clock starts anew
   when the handler ends, so that its count tells how late an interrupt is. In its turn, it calls a function. */
static void __attribute__((naked)) interrupting_handler(void)
{
    __asm volatile(".syntax unified\n\t"
                   "ldr r1, =0xE000E014\n\t" /* SYST_RVR */
                   "ldr r0, [r1, #4]\n\t"    /* SYST_CVR */
                   "cmp r0, #0\n\t"
                   "beq 3f\n\t"
                   "ldr r2, [r1]\n\t"
                   "subs r0, r2, r0\n\t"
                   "ldr r1, =latest\n\t"
                   "ldr r2, [r1]\n\t"
                   "cmp r0, r2\n\t"
                   "bls 3f\n\t"
                   "str r0, [r1]\n"
                   "3:\n\t" USE_SINGLES
                   "ldr r0, =stack_limit\n\t"
                   "mov r1, sp\n\t"
                   "movs r2, #64\n"
                   "1: subs r1, r1, #4\n\t"
                   "cmp r1, r0\n\t"
                   "blo 2f\n\t"
                   "str r1, [r1]\n\t"
                   "subs r2, r2, #1\n\t"
                   "bne 1b\n"
                   "2: ldr r1, =turns_left\n\t"
                   "ldr r0, [r1]\n\t"
                   "subs r0, r0, #1\n\t"
                   "str r0, [r1]\n\t"
                   "bne 4f\n\t"
                   "push {r0, lr}\n\t"
                   "ldr r0, =called_within\n\t"
                   "ldr r0, [r0]\n\t"
                   "blx r0\n\t"
                   "pop {r0, r1}\n\t"
                   "mov lr, r1\n"
                   "4: ldr r1, =0xE000E014\n\t" /* SYST_RVR */
                   "ldr r2, [r1]\n\t"
                   "adds r2, r2, #1\n\t"
                   "str r2, [r1]\n\t"
                   "str r2, [r1, #4]\n\t" /* any value sets it to 0 */
                   "ldr r1, =0xE000ED04\n\t" /* SCB_ICSR */
                   "ldr r2, =1 << 25\n\t"    /* no longer pending */
                   "str r2, [r1]\n\t"
                   "bx lr\n\t"
                   ".ltorg");
}

enum { PERIOD = 1 << 24, READINGS = 1000 };

/* Sum of the ticks between `first` and each of READINGS readings of the clock, which are seven instructions apart.

   A tick is a / b instructions, where a divides READINGS and is not divisible by seven. So the readings fall on
   every phase of a tick equally often, and one instruction later the sum is larger by exactly READINGS * b / a,
   although each reading is rounded down to a tick. */
static uint32_t sum_of_readings(uint32_t first)
{
    uint32_t sum = 0, value, count = READINGS;

    __asm volatile(".syntax unified\n\t" /* GCC's default for Armv6-M is another */
                   "1: ldr %1, [%4]\n\t"
                   "subs %1, %3, %1\n\t"
                   "lsls %1, %1, #8\n\t" /* modulo PERIOD */
                   "lsrs %1, %1, #8\n\t"
                   "adds %0, %0, %1\n\t"
                   "subs %2, %2, #1\n\t"
                   "bne 1b"
                   : "+l"(sum), "=&l"(value), "+l"(count)
                   : "l"(first), "l"(&SYST_CVR)
                   : "cc", "memory");
    return sum;
}

/* Ticks that `run` took, times READINGS, plus those of calling it and reading the clock. */
static int __attribute__((noinline)) count_ticks(run_function run, RUN_PARAMETERS, int64_t *ticks)
{
    enum { CORE_CLOCK = 4, ENABLE_WITH_INTERRUPT = CORE_CLOCK | 3, PENDING = 1 << 26 };
    uint32_t now, sum;
    int status;

    clock_wraps = 0;
    SYST_RVR = PERIOD - 1;
    SYST_CVR = 0;
    (void)SYST_CVR; /* Renode updates its time when the clock is read, not when it is started */
    SYST_CSR = ENABLE_WITH_INTERRUPT;
    while (SYST_CVR == 0) { /* the first tick loads the counter: continue right after it */
    }
    status = run(RUN_ARGUMENTS);
    __asm volatile("cpsid i" : : : "memory");
    now = SYST_CVR;
    sum = sum_of_readings(now);
    if ((SCB_ICSR & PENDING) != 0u && now > PERIOD / 2) {
        ++clock_wraps; /* it wrapped right before `now` */
    }
    SYST_CSR = CORE_CLOCK; /* stops; selecting another clock would rescale the value on some emulators */
    *ticks = ((int64_t)clock_wraps * PERIOD + (PERIOD - 1 - (int64_t)now)) * READINGS + sum;
    SYST_CVR = 0;
    SCB_ICSR = PENDING >> 1; /* no longer pending */
    __asm volatile("dsb\n\tisb\n\tcpsie i" : : : "memory");
    return status;
}

/* A function of one instruction. */
static int __attribute__((naked)) run_nothing(RUN_PARAMETERS)
{
    (void)arena;
#ifdef FRAMES
    (void)state;
#endif
    __asm volatile("bx lr");
}

int port_run_for_ticks(run_function run, RUN_PARAMETERS, int64_t *ticks)
{
    int64_t overhead;
    int status;

    (void)count_ticks(run_nothing, RUN_ARGUMENTS, &overhead);
    status = count_ticks(run, RUN_ARGUMENTS, ticks);
    *ticks -= overhead;
    return status;
}

/* The stack is at the bottom of the RAM, so an overflow leaves the memory and faults. Two patterns take turns, because
   a function may read what it has not written. */
int __attribute__((noinline)) port_run_for_stack(run_function run, RUN_PARAMETERS, int64_t *stack_bytes)
{
    const uint32_t first = 0x5AFEC0DEu, paint = *(volatile uint32_t *)stack_limit == first ? ~first : first;
    uint32_t *sp, *lowest;
    int status;

    __asm volatile("mov %0, sp" : "=r"(sp));
    for (lowest = stack_limit; lowest < sp; ++lowest) {
        *(volatile uint32_t *)lowest = paint;
    }
    protect(1);
    status = run(RUN_ARGUMENTS);
    protect(0);
    lowest = stack_limit;
    while (lowest < sp && *(volatile uint32_t *)lowest == paint) {
        ++lowest;
    }
    *stack_bytes = (sp - lowest) * (int64_t)sizeof *sp;
    return status;
}

/* --- memory that is not the module's ------------------------------------------------------------ */

/* Memories that are unused outside the stretches of `in_use`. The stack of the fault handlers is used only at the
   end. */
static const struct stretch memories[] = {
    {stack_top, fault_stack_top}, {bss_end, ram_end}, {bulk_used, bulk_end}, {code_end, flash_end},
};
static const struct stretch in_use[] = {
    {arena_start, arena_end}, {states_start, states_end}, {constants_start, constants_end}, {inputs_start, inputs_end},
};

/* Memory that must not be written, although the board allows it: its flash is a RAM. Banks of weights follow. */
static const struct {
    const char *name;
    const uint32_t *start, *end;
} fixed[] = {
    {"the code", flash_start, code_end},
    {"the weights", constants_start, constants_end},
    {"the harness's inputs", inputs_start, inputs_end},
};

enum {
    MEMORIES = sizeof memories / sizeof *memories,
    IN_USE = sizeof in_use / sizeof *in_use,
    FIXED = sizeof fixed / sizeof *fixed,
    MOST_BANKS = 8,
    FILLING = 0x5EED7EA5
};

static uint32_t sums[FIXED + MOST_BANKS];

/* Checksum that changes with any word, because the factor is odd. */
static uint32_t sum_of(const uint32_t *word, const uint32_t *end)
{
    uint32_t sum = 0;

    while (word < end) {
        sum = sum * 31u + *word++;
    }
    return sum;
}

/* Stretch in use of that number; those in banks come last. */
static const struct stretch *used(int number)
{
    const int in_bank = number - IN_USE, count = bank_count();

    return in_bank < 0 ? &in_use[number] : in_bank < count ? &bank_table[in_bank] : &part_table[in_bank - count];
}

/* Next unused stretch of a memory at or after `from`; empty if there are no more. */
static struct stretch unused_from(uint32_t *from, uint32_t *end)
{
    const int count = IN_USE + bank_count() + part_count();
    struct stretch found = {from, end};

    for (int i = 0; i < count; ++i) {
        if (used(i)->start <= found.start && found.start < used(i)->end) {
            found.start = used(i)->end;
            i = -1; /* the new start may be in another stretch */
        }
    }
    found.start = found.start < end ? found.start : end;
    for (int i = 0; i < count; ++i) {
        if (used(i)->start < used(i)->end && found.start <= used(i)->start && used(i)->start < found.end) {
            found.end = used(i)->start;
        }
    }
    return found;
}

/* Megabytes are filled and compared with eight words per iteration, because iterations are slow on an emulator. */
enum { AN_ITERATION = 8 };

static void fill(volatile uint32_t *word, const uint32_t *end)
{
    for (; end - word >= AN_ITERATION; word += AN_ITERATION) {
        word[0] = FILLING;
        word[1] = FILLING;
        word[2] = FILLING;
        word[3] = FILLING;
        word[4] = FILLING;
        word[5] = FILLING;
        word[6] = FILLING;
        word[7] = FILLING;
    }
    while (word < end) {
        *word++ = FILLING;
    }
}

/* First word that differs from the filling; `end` if there is none. */
static const volatile uint32_t *first_changed(const volatile uint32_t *word, const uint32_t *end)
{
    while (end - word >= AN_ITERATION &&
           ((word[0] ^ FILLING) | (word[1] ^ FILLING) | (word[2] ^ FILLING) | (word[3] ^ FILLING) |
            (word[4] ^ FILLING) | (word[5] ^ FILLING) | (word[6] ^ FILLING) | (word[7] ^ FILLING)) == 0u) {
        word += AN_ITERATION;
    }
    while (word < end && *word == FILLING) {
        ++word;
    }
    return word;
}

void port_watch(void)
{
    for (int i = 0; i < MEMORIES; ++i) {
        for (struct stretch gap = unused_from(memories[i].start, memories[i].end); gap.start < gap.end;
             gap = unused_from(gap.end, memories[i].end)) {
            fill(gap.start, gap.end);
        }
    }
    for (int i = 0; i < FIXED; ++i) {
        sums[i] = sum_of(fixed[i].start, fixed[i].end);
    }
    for (int i = 0; i < bank_count(); ++i) {
        sums[FIXED + i] = sum_of(bank_table[i].start, bank_table[i].end);
    }
}

const char *port_changed(uintptr_t *address)
{
    for (int i = 0; i < MEMORIES; ++i) {
        for (struct stretch gap = unused_from(memories[i].start, memories[i].end); gap.start < gap.end;
             gap = unused_from(gap.end, memories[i].end)) {
            const volatile uint32_t *word = first_changed(gap.start, gap.end);

            if (word < gap.end) {
                *address = (uintptr_t)word;
                return "memory that nothing uses";
            }
        }
    }
    *address = 0;
    for (int i = 0; i < FIXED; ++i) {
        if (sums[i] != sum_of(fixed[i].start, fixed[i].end)) {
            return fixed[i].name;
        }
    }
    for (int i = 0; i < bank_count(); ++i) {
        if (sums[FIXED + i] != sum_of(bank_table[i].start, bank_table[i].end)) {
            return "the weights in a memory bank";
        }
    }
    return NULL;
}

uint32_t port_sum_of_variables(void)
{
    return sum_of(data_start, data_end) * 31u + sum_of(bss_start, bss_end);
}

/* Of vector table, sleep, traps, coprocessors, the FPU's stacking, and the timer's period; and what enables interrupts. */
uint32_t port_sum_of_system(void)
{
    static const uint32_t others[] = {0xE000ED08u, 0xE000ED10u, 0xE000ED14u, 0xE000ED88u, 0xE000E014u, 0xE000E100u};
    enum { STACKING = 0xC0000000 };
    uint32_t sum = REGISTER(0xE000EF34u) & (uint32_t)STACKING;

    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
        sum = sum * 31u + REGISTER(others[i]);
    }
    return sum;
}

void port_forbid(const void *start, size_t bytes)
{
    (void)start;
    (void)bytes;
}

void port_allow(const void *start, size_t bytes)
{
    (void)start;
    (void)bytes;
}

/* --- the emulated core ------------------------------------------------------------------------- */

#ifdef __ARM_FEATURE_MVE

static void __attribute__((noreturn)) write_wrong(const char *instruction)
{
    port_write("wrong ", 6);
    port_write(instruction, strlen(instruction));
    port_write("\n", 1);
    port_exit(1);
}

/* Every lane of 8, 16 and 32 bits is negative if it is signed. */
static const uint64_t factors[2][2] = {
    {0x91E6C3A5B7D5F38Bu, 0xF7A1C9E28D93B6D4u},
    {0x8B9DA6E3F1C2B4D7u, 0xA3C5E7B1968FD2F9u},
};

/* Lane at bit `shift` of a factor, signed or unsigned. */
static int64_t lane_of(uint64_t factor, int shift, int bits, int is_signed)
{
    const int64_t lane = (int64_t)((factor >> shift) & ((UINT64_C(1) << bits) - 1u));

    return is_signed ? lane - (INT64_C(1) << bits) : lane;
}

/* Ends the firmware if a vector is not the products of the factors' even lanes, or with `is_top` of the odd ones. */
static void check_products(const char *name, const uint64_t *products, int bits, int is_signed, int is_top)
{
    const uint64_t mask = bits == 32 ? UINT64_MAX : (UINT64_C(1) << (2 * bits)) - 1u;

    for (int i = 0; i < 2; ++i) {
        uint64_t expected = 0;

        for (int shift = 0; shift < 64; shift += 2 * bits) {
            const int from = is_top ? shift + bits : shift;
            const uint64_t product = (uint64_t)lane_of(factors[0][i], from, bits, is_signed) *
                                     (uint64_t)lane_of(factors[1][i], from, bits, is_signed);

            expected |= (product & mask) << shift;
        }
        if (products[i] != expected) {
            write_wrong(name);
        }
    }
}

#define CHECK_PRODUCTS(instruction, bits, is_signed, is_top)                                                           \
    do {                                                                                                               \
        uint64_t products[2];                                                                                          \
                                                                                                                       \
        __asm volatile("vldrw.u32 q0, [%1]\n\t"                                                                        \
                       "vldrw.u32 q1, [%1, #16]\n\t" instruction " q2, q0, q1\n\t"                                    \
                       "vstrw.32 q2, [%0]"                                                                             \
                       :                                                                                               \
                       : "r"(products), "r"(factors)                                                                   \
                       : "q0", "q1", "q2", "memory");                                                                  \
        check_products(instruction, products, bits, is_signed, is_top);                                                \
    } while (0)

/* Tries instructions of Armv8.1-M that some emulator computes wrongly. */
static void check_core(void)
{
    register uint32_t first __asm("r2") = 1, second __asm("r3") = 2;

    __asm volatile("clrm {r2, r3}" : "+r"(first), "+r"(second));
    if ((first | second) != 0u) {
        write_wrong("clrm");
    }
    CHECK_PRODUCTS("vmullb.s8", 8, 1, 0);
    CHECK_PRODUCTS("vmullt.s8", 8, 1, 1);
    CHECK_PRODUCTS("vmullb.u8", 8, 0, 0);
    CHECK_PRODUCTS("vmullt.u8", 8, 0, 1);
    CHECK_PRODUCTS("vmullb.s16", 16, 1, 0);
    CHECK_PRODUCTS("vmullt.s16", 16, 1, 1);
    CHECK_PRODUCTS("vmullb.u16", 16, 0, 0);
    CHECK_PRODUCTS("vmullt.u16", 16, 0, 1);
    CHECK_PRODUCTS("vmullb.s32", 32, 1, 0);
    CHECK_PRODUCTS("vmullt.s32", 32, 1, 1);
    CHECK_PRODUCTS("vmullb.u32", 32, 0, 0);
    CHECK_PRODUCTS("vmullt.u32", 32, 0, 1);
}

#else

static void check_core(void)
{
}

#endif

/* --- startup ---------------------------------------------------------------------------------- */

static void reset_handler(void);

typedef void (*handler)(void);

struct vectors {
    uint32_t *stack;
    handler reset, faults[13], systick;
};

#define VECTORS(systick)                                                                                               \
    {                                                                                                                  \
        stack_top, reset_handler,                                                                                      \
            {fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,  \
             fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler},                \
            systick,                                                                                                   \
    }

static const struct vectors vectors __attribute__((section(".vectors"), used)) = VECTORS(systick_handler);

/* The core ignores the lowest bits of the table's address. */
static const struct vectors interrupting_vectors __attribute__((aligned(1024))) = VECTORS(interrupting_handler);

int port_run_interrupted(run_function run, RUN_PARAMETERS, void (*within)(void), uint32_t turn, uint32_t *late)
{
    enum { FIRST_TICKS = 3, CORE_CLOCK = 4, ENABLE_WITH_INTERRUPT = CORE_CLOCK | 3, NOT_PENDING = 1 << 25 };
    const uint32_t period = SYST_RVR;
    int status;

    latest = 0;
    called_within = within;
    turns_left = turn;
    SCB_VTOR = (uint32_t)(uintptr_t)&interrupting_vectors;
    SYST_RVR = FIRST_TICKS;
    SYST_CVR = 0;
    protect(1);
    SYST_CSR = ENABLE_WITH_INTERRUPT;
    status = run(RUN_ARGUMENTS);
    SYST_CSR = CORE_CLOCK;
    protect(0);
    SYST_RVR = period;
    SCB_ICSR = NOT_PENDING;
    __asm volatile("dsb\n\tisb" : : : "memory");
    SCB_VTOR = (uint32_t)(uintptr_t)&vectors;
    *late = latest;
    return status;
}

static void __attribute__((noreturn, used)) start(void)
{
    SCB_VTOR = (uint32_t)(uintptr_t)&vectors;
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    SCB_CPACR |= 0xFu << 20; /* full access to the coprocessors 10 and 11: FPU and MVE */
    __asm volatile("dsb\n\tisb" : : : "memory");
#endif
#if !defined(__ARM_FEATURE_UNALIGNED)
    SCB_CCR |= 1u << 3; /* UNALIGN_TRP: Armv6-M code runs on a core that would allow unaligned accesses */
    __asm volatile("dsb\n\tisb" : : : "memory");
#endif
    memset(bss_start, 0, (size_t)((uintptr_t)bss_end - (uintptr_t)bss_start));
    check_core();
    (void)main();
    port_exit(0);
}

static void __attribute__((naked)) reset_handler(void)
{
    __asm volatile("ldr r0, =stack_top\n\t"
                   "msr msp, r0\n\t"
                   "ldr r0, =start\n\t"
                   "bx r0\n\t"
                   ".ltorg");
}
