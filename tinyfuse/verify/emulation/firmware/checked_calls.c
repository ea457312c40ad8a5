/* Calls of the module's functions in which the registers and modes that a function must preserve have known values.

   entry_points.h, generated for each module, makes verify.c and interface.c call checked_NAME_run for NAME_run. That
   loads the address of a `struct call` into r12 and goes to checked_call. "Procedure Call Standard for the Arm
   Architecture", Arm, 2023, says what must be preserved: r4 to r11, sp, s16 to s31, and of FPSCR the modes. The masks
   of interrupts, CONTROL and the masks of VPR belong to the caller, too. Other registers and flags have values that no compiler expects.

   A record "register FUNCTION NAME" is written for each that differs. Then all are restored, so that the run goes on.

   Not on the stack, whose depth is measured: what is kept during a call, and the stack of the comparison. */
#include "port.h"

#include <string.h>

#define KEPT __attribute__((used, section(".kept"))) /* sections.ld puts it where nothing is summed or watched */

#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
#define HAS_SINGLES 1
#else
#define HAS_SINGLES 0
#endif
#if __ARM_ARCH >= 7 && __ARM_ARCH_ISA_THUMB >= 2
#define HAS_BASEPRI 1
#else
#define HAS_BASEPRI 0
#endif

struct call {
    void (*function)(void);
    char name[];
};

/* The assembly below knows the offsets. */
struct registers {
    uint32_t core[8];   /* r4 to r11 */
    uint32_t lr;        /* after a call: the result in r0 */
    uint32_t sp;        /* 36 */
    uint32_t primask;   /* 40 */
    uint32_t basepri;   /* 44 */
    uint32_t faultmask; /* 48 */
    uint32_t control;   /* 52 */
    uint32_t fpscr;     /* 56 */
    uint32_t masked;    /* 60: PRIMASK during the call; after it: r1 */
    uint32_t singles[16]; /* 64: s16 to s31 */
    uint32_t vpr;         /* 128, with Helium */
};

static struct registers before_call KEPT, after_call KEPT;
static const struct call *called KEPT;
static uint64_t comparison_stack[192] KEPT;

/* Values of r4 to r11, and of s0 to s31, which are signalling NaNs. */
static const uint32_t known_core[8] __attribute__((used)) = {
    0xC0DE0401u, 0xC0DE0503u, 0xC0DE0605u, 0xC0DE0707u, 0xC0DE0809u, 0xC0DE090Bu, 0xC0DE0A0Du, 0xC0DE0B0Fu,
};
#define FOUR(n) 0x7FA00001u + (n), 0x7FA00003u + (n), 0x7FA00005u + (n), 0x7FA00007u + (n)
#define SIXTEEN(n) FOUR(n), FOUR((n) + 16u), FOUR((n) + 32u), FOUR((n) + 48u)
static const uint32_t known_singles[32] __attribute__((used)) = {SIXTEEN(0u), SIXTEEN(0x100u)};

#ifdef __ARM_FEATURE_MVE
#define HAS_VPR 1
#define SAVE_VPR(base, value) "vmrs " value ", vpr\n\tstr " value ", [" base ", #128]\n\t"
#define RESTORE_VPR "movs r3, #0\n\tvmsr vpr, r3\n\t"
#else
#define HAS_VPR 0
#define SAVE_VPR(base, value)
#define RESTORE_VPR
#endif

enum { BASEPRI_OF_CALLER = 0xE0, MODES_OF_CONTROL = 3, MODES_OF_FPSCR = 0x07CF0000 };

static void compare(uint32_t now, uint32_t then, const char *name)
{
    if (now != then) {
        port_write("register ", 9);
        port_write(called->name, strlen(called->name));
        port_write(" ", 1);
        port_write(name, strlen(name));
        port_write("\n", 1);
    }
}

static void __attribute__((used)) compare_registers(void)
{
    static const char *const core[] = {"r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11"};

    for (int i = 0; i < 8; ++i) {
        compare(after_call.core[i], known_core[i], core[i]);
    }
    compare(after_call.sp, before_call.sp, "sp");
    compare(after_call.primask, before_call.masked, "PRIMASK");
    compare(after_call.control & MODES_OF_CONTROL, before_call.control & MODES_OF_CONTROL, "CONTROL");
    if (HAS_BASEPRI) {
        compare(after_call.basepri, BASEPRI_OF_CALLER, "BASEPRI");
        compare(after_call.faultmask, before_call.faultmask, "FAULTMASK");
    }
    if (HAS_VPR) {
        compare(after_call.vpr >> 16, 0, "VPR"); /* masks of an open block */
    }
    if (HAS_SINGLES) {
        compare(after_call.fpscr & MODES_OF_FPSCR, before_call.fpscr & MODES_OF_FPSCR, "FPSCR");
        for (int i = 0; i < 16; ++i) {
            const char name[] = {'s', (char)('0' + (16 + i) / 10), (char)('0' + (16 + i) % 10), '\0'};

            compare(after_call.singles[i], known_singles[16 + i], name);
        }
    }
}

#if HAS_BASEPRI
#define SAVE_MASKS(base, value)                                                                                        \
    "mrs " value ", basepri\n\tstr " value ", [" base ", #44]\n\t"                                                     \
    "mrs " value ", faultmask\n\tstr " value ", [" base ", #48]\n\t"
#define FILL_MASKS "movs r5, #0xE0\n\tmsr basepri, r5\n\t"
#define RESTORE_MASKS                                                                                                  \
    "ldr r3, [r2, #44]\n\tmsr basepri, r3\n\t"                                                                         \
    "ldr r3, [r2, #48]\n\tmsr faultmask, r3\n\t"
#else
#define SAVE_MASKS(base, value)
#define FILL_MASKS
#define RESTORE_MASKS
#endif

#if HAS_SINGLES
#define SAVE_SINGLES(base, value)                                                                                      \
    "vmrs " value ", fpscr\n\tstr " value ", [" base ", #56]\n\t"                                                      \
    "add " value ", " base ", #64\n\tvstmia " value ", {s16-s31}\n\t"
/* sets the flags N, Z, C, V and QC, and those of exceptions */
#define FILL_SINGLES                                                                                                   \
    "ldr r5, =known_singles\n\tvldmia r5, {s0-s31}\n\t"                                                                \
    "ldr r5, [r4, #56]\n\tldr r6, =0xF800009F\n\torrs r5, r6\n\tvmsr fpscr, r5\n\t"
#define RESTORE_SINGLES                                                                                                \
    "ldr r3, [r2, #56]\n\tvmsr fpscr, r3\n\t"                                                                          \
    "add r3, r2, #64\n\tvldmia r3, {s16-s31}\n\t"
#else
#define SAVE_SINGLES(base, value)
#define FILL_SINGLES
#define RESTORE_SINGLES
#endif

#ifdef __ARM_FEATURE_MVE
#define FILL_PREDICATE "ldr r5, =0xA5C3\n\tvmsr p0, r5\n\t"
#else
#define FILL_PREDICATE
#endif

/* N, Z, C, V, and Q and GE where they exist */
#ifdef __ARM_FEATURE_DSP
#define FILL_FLAGS "ldr r5, =0xF80F0000\n\tmsr APSR_nzcvqg, r5\n\t"
#else
#define FILL_FLAGS "ldr r5, =0xF8000000\n\tmsr APSR_nzcvq, r5\n\t"
#endif

#define SAVE_HIGH(base, value)                                                                                         \
    "mov " value ", r8\n\tstr " value ", [" base ", #16]\n\t"                                                          \
    "mov " value ", r9\n\tstr " value ", [" base ", #20]\n\t"                                                          \
    "mov " value ", r10\n\tstr " value ", [" base ", #24]\n\t"                                                         \
    "mov " value ", r11\n\tstr " value ", [" base ", #28]\n\t"                                                         \
    "mov " value ", sp\n\tstr " value ", [" base ", #36]\n\t"                                                          \
    "mrs " value ", primask\n\tstr " value ", [" base ", #40]\n\t"                                                     \
    "mrs " value ", control\n\tstr " value ", [" base ", #52]\n\t"
#define LOAD_HIGH(base, value)                                                                                         \
    "ldr " value ", [" base ", #16]\n\tmov r8, " value "\n\t"                                                          \
    "ldr " value ", [" base ", #20]\n\tmov r9, " value "\n\t"                                                          \
    "ldr " value ", [" base ", #24]\n\tmov r10, " value "\n\t"                                                         \
    "ldr " value ", [" base ", #28]\n\tmov r11, " value "\n\t"

/* r12 points to a struct call; arguments are in r0 to r3, and lr returns to the caller. Interrupts are masked, unless
   the clock makes some (port_run_interrupted). Written for Armv6-M, whose instructions see r0 to r7 alone. */
void __attribute__((naked)) checked_call(void)
{
    __asm volatile(".syntax unified\n\t"
                   "push {r4, r5}\n\t"
                   "ldr r4, =before_call\n\t"
                   "str r6, [r4, #8]\n\t"
                   "str r7, [r4, #12]\n\t"
                   "pop {r6, r7}\n\t"
                   "str r6, [r4]\n\t"
                   "str r7, [r4, #4]\n\t"
                   "mov r5, lr\n\t"
                   "str r5, [r4, #32]\n\t" /**/
                   SAVE_HIGH("r4", "r5") SAVE_MASKS("r4", "r5") SAVE_SINGLES("r4", "r5")
                   "ldr r5, =called\n\t"
                   "mov r6, r12\n\t"
                   "str r6, [r5]\n\t"
                   "ldr r6, [r6]\n\t"
                   "mov r12, r6\n\t"
                   "ldr r5, =0xE000E010\n\t" /* SYST_CSR */
                   "ldr r5, [r5]\n\t"
                   "lsls r5, r5, #31\n\t"
                   "bne 1f\n\t"
                   "cpsid i\n"
                   "1: mrs r5, primask\n\t"
                   "str r5, [r4, #60]\n\t" /**/
                   FILL_MASKS FILL_SINGLES FILL_PREDICATE
                   "ldr r4, =known_core\n\t" /**/
                   LOAD_HIGH("r4", "r5") FILL_FLAGS
                   "ldr r5, [r4, #4]\n\t"
                   "ldr r6, [r4, #8]\n\t"
                   "ldr r7, [r4, #12]\n\t"
                   "ldr r4, [r4]\n\t"
                   "blx r12\n\t"
                   "ldr r2, =after_call\n\t"
                   "str r4, [r2]\n\t"
                   "str r5, [r2, #4]\n\t"
                   "str r6, [r2, #8]\n\t"
                   "str r7, [r2, #12]\n\t"
                   "str r0, [r2, #32]\n\t"
                   "str r1, [r2, #60]\n\t" /**/
                   SAVE_VPR("r2", "r3") RESTORE_VPR SAVE_HIGH("r2", "r3") SAVE_MASKS("r2", "r3") SAVE_SINGLES("r2", "r3")
                   "ldr r2, =before_call\n\t"
                   "ldr r3, [r2, #52]\n\t"
                   "msr control, r3\n\t"
                   "isb\n\t" /**/
                   RESTORE_MASKS RESTORE_SINGLES
                   "ldr r3, =comparison_stack + 1536\n\t"
                   "mov sp, r3\n\t"
                   "ldr r3, [r2, #40]\n\t"
                   "msr primask, r3\n\t"
                   "bl compare_registers\n\t"
                   "ldr r2, =before_call\n\t"
                   "ldr r3, [r2, #36]\n\t"
                   "mov sp, r3\n\t" /**/
                   LOAD_HIGH("r2", "r3")
                   "ldr r4, [r2]\n\t"
                   "ldr r5, [r2, #4]\n\t"
                   "ldr r6, [r2, #8]\n\t"
                   "ldr r7, [r2, #12]\n\t"
                   "ldr r3, =after_call\n\t"
                   "ldr r0, [r3, #32]\n\t"
                   "ldr r1, [r3, #60]\n\t"
                   "ldr r3, [r2, #32]\n\t"
                   "bx r3\n\t"
                   ".ltorg");
}
