/* TCG plugin for QEMU that counts the executions and memory accesses of every instruction of one inference.

   Its one argument names a text file, written by plugin.py:

     output PATH          file for the counts
     entry ADDRESS CALL   function to be measured, and the number of its call, counted from 1
     region INDEX ADDRESS BYTES      memory that is counted separately, INDEX below REGIONS; the first match counts
     border ADDRESS GROUP            from this instruction on, that group runs (-1: none)
     part ADDRESS PART               instruction of that part of the module; code without a line, such as a
                                     library's, belongs to the part that called it
     core WIDTH TAKEN                the pipeline of a core; without this line, cycles are 0 (scoreboard.h)
     step ADDRESS TIMING             timing of an instruction in it

   When QEMU ends, it writes a line for every instruction, group and part:

     GROUP PART ADDRESS EXECUTED JUMPS CYCLES LOWEST [REGION LOADED STORED]...

   JUMPS is how often another instruction than the following one came next. CYCLES last until the next one issues. LOWEST is the lowest stack address that it
   wrote (all ones: none). LOADED and STORED are bytes.

   Built with API_VERSION, the version of QEMU's plugin API (plugin.py). The API is declared here as far as it is used,
   because QEMU's headers are seldom installed. These declarations are the same in versions 1 and 2. See
   https://qemu.readthedocs.io/en/v7.2.0/devel/tcg-plugins.html. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scoreboard.h"

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
enum { CB_NO_REGS = 0, MEM_RW = 3 };

void qemu_plugin_register_vcpu_tb_trans_cb(
    qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_atexit_cb(
    qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t id, void *data), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_cb(
    struct qemu_plugin_insn *insn, void (*callback)(unsigned vcpu, void *data), int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(
    struct qemu_plugin_insn *insn,
    void (*callback)(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data),
    int flags, int rw, void *data);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);

EXPORT extern int qemu_plugin_version;
int qemu_plugin_version = API_VERSION;

enum { STACK = 2, OTHER = 3, REGIONS = 13, NONE = -1, UNCHANGED = -2, BUCKETS = 1 << 14 };

struct region { int index; uint64_t start, bytes; };

/* Counts of an instruction in a group and part. */
struct counts {
    struct counts *next;
    int group, part;
    uint64_t executed, jumps, cycles, lowest, loaded[REGIONS], stored[REGIONS];
};

struct instruction {
    struct instruction *next;
    uint64_t address, end;
    int group, part;       /* changes of state at it, or UNCHANGED */
    struct counts *counts; /* most recently used first */
    struct step step;
};

static char output[4096];
static uint64_t entry;
static int measured_call;
static struct region regions[16];
static size_t region_count;
static struct instruction *buckets[BUCKETS];

/* State of the run: whether it is measured, and the previous instruction. */
static bool measuring;
static int calls, group = NONE, part = NONE;
static uint64_t return_address;
static const struct instruction *last;
static struct counts *previous;

/* The core's pipeline, the last instruction in it, and whether that one jumped. */
static struct pipeline pipeline;
static struct counts *issued;
static bool jumped;

static void *allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);

    if (memory == NULL) {
        fprintf(stderr, "tinyfuse plugin: out of memory\n");
        exit(1);
    }
    return memory;
}

/* --- while the firmware runs ------------------------------------------------------------------ */

static struct counts *counts_of(struct instruction *insn)
{
    struct counts **link = &insn->counts, *found;

    while (*link != NULL && ((*link)->group != group || (*link)->part != part)) {
        link = &(*link)->next;
    }
    found = *link;
    if (found == NULL) {
        found = allocate(sizeof *found);
        found->group = group;
        found->part = part;
        found->lowest = UINT64_MAX;
    } else {
        *link = found->next;
    }
    found->next = insn->counts;
    insn->counts = found;
    return found;
}

static void executes(unsigned vcpu, void *data)
{
    struct instruction *insn = data;
    struct counts *counts;

    (void)vcpu;
    if (!measuring) {
        if (insn->address == entry && ++calls == measured_call) {
            measuring = true;
            return_address = last != NULL ? last->end : 0;
            previous = issued = NULL;
            jumped = false;
        }
    } else if (insn->address == return_address) {
        measuring = false;
        if (issued != NULL) {
            issued->cycles += (uint64_t)(pipeline.now + 1 - pipeline.issued);
        }
    }
    if (!measuring) {
        last = insn;
        return;
    }
    if (insn->group != UNCHANGED) {
        group = insn->group;
    }
    if (insn->part != UNCHANGED) {
        part = insn->part;
    }
    counts = insn->counts;
    if (counts == NULL || counts->group != group || counts->part != part) {
        counts = counts_of(insn);
    }
    ++counts->executed;
    /* At the end of a page, QEMU reads the first half of the next instruction and counts it to the one before. So an
       address within the previous instruction is that of the next one, too. */
    if (previous != NULL && (insn->address <= last->address || insn->address > last->end)) {
        ++previous->jumps;
        jumped = !last->step.free;
    }
    if (pipeline.width > 0 && !insn->step.free) {
        const uint64_t cycles = issue(&pipeline, &insn->step, jumped);

        if (issued != NULL) {
            issued->cycles += cycles;
        }
        issued = counts;
        jumped = false;
    }
    previous = counts;
    last = insn;
}

static void accesses(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
    const uint64_t bytes = UINT64_C(1) << qemu_plugin_mem_size_shift(info);
    int region = OTHER;

    (void)vcpu;
    (void)data;
    if (!measuring) {
        return;
    }
    for (size_t i = 0; i < region_count; ++i) {
        if (address - regions[i].start < regions[i].bytes) {
            region = regions[i].index;
            break;
        }
    }
    if (!qemu_plugin_mem_is_store(info)) {
        previous->loaded[region] += bytes;
        return;
    }
    previous->stored[region] += bytes;
    if (region == STACK && address < previous->lowest) {
        previous->lowest = address;
    }
}

/* --- when QEMU translates --------------------------------------------------------------------- */

/* Returns the record of the instruction at an address. */
static struct instruction *instruction_at(uint64_t address)
{
    struct instruction **link = &buckets[(address >> 1) % BUCKETS];

    while (*link != NULL && (*link)->address != address) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        *link = allocate(sizeof **link);
        (*link)->address = address;
        (*link)->group = (*link)->part = UNCHANGED;
        (*link)->step.hold = 1;
    }
    return *link;
}

static void translates(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); ++i) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        struct instruction *record = instruction_at(qemu_plugin_insn_vaddr(insn));

        record->end = record->address + qemu_plugin_insn_size(insn);
        qemu_plugin_register_vcpu_insn_exec_cb(insn, executes, CB_NO_REGS, record);
        qemu_plugin_register_vcpu_mem_cb(insn, accesses, CB_NO_REGS, MEM_RW, NULL);
    }
}

/* --- begin and end ---------------------------------------------------------------------------- */

static void writes_counts(qemu_plugin_id_t id, void *data)
{
    FILE *file = fopen(output, "w");

    (void)id;
    (void)data;
    if (file == NULL) {
        return; /* plugin.py reports the missing file */
    }
    for (size_t i = 0; i < BUCKETS; ++i) {
        for (const struct instruction *insn = buckets[i]; insn != NULL; insn = insn->next) {
            for (const struct counts *c = insn->counts; c != NULL; c = c->next) {
                fprintf(file, "%d %d %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIx64, c->group,
                        c->part, insn->address, c->executed, c->jumps, c->cycles, c->lowest);
                for (int region = 0; region < REGIONS; ++region) {
                    if (c->loaded[region] != 0 || c->stored[region] != 0) {
                        fprintf(file, " %d %" PRIu64 " %" PRIu64, region, c->loaded[region],
                                c->stored[region]);
                    }
                }
                fputc('\n', file);
            }
        }
    }
    fclose(file);
}

static bool reads_settings(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[sizeof output + 16];
    struct region region;

    if (file == NULL) {
        return false;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        uint64_t address;
        int number, count = 0;

        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "output ", 7) == 0 && strlen(line + 7) < sizeof output) {
            strcpy(output, line + 7);
        } else if (sscanf(line, "entry %" SCNx64 " %d", &entry, &measured_call) == 2) {
            continue;
        } else if (sscanf(line, "region %d %" SCNx64 " %" SCNx64, &region.index, &region.start,
                          &region.bytes) == 3 &&
                   region_count < sizeof regions / sizeof *regions) {
            regions[region_count++] = region;
        } else if (sscanf(line, "border %" SCNx64 " %d", &address, &number) == 2) {
            instruction_at(address)->group = number;
        } else if (sscanf(line, "part %" SCNx64 " %d", &address, &number) == 2) {
            instruction_at(address)->part = number;
        } else if (sscanf(line, "core %d %d", &pipeline.width, &pipeline.taken) == 2 ||
                   (sscanf(line, "step %" SCNx64 " %n", &address, &count) == 1 &&
                    read_step(line + count, &instruction_at(address)->step))) {
            continue;
        } else {
            break;
        }
    }
    const bool complete = feof(file) != 0;

    fclose(file);
    return complete;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    if (argc != 1 || strncmp(argv[0], "settings=", 9) != 0 || !reads_settings(argv[0] + 9)) {
        fprintf(stderr, "tinyfuse plugin: bad settings\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translates);
    qemu_plugin_register_atexit_cb(id, writes_counts, NULL);
    return 0;
}
