/* In-order pipeline that runs over executed instructions: it tells when each of them issues. cycles.py writes the timing
   of each instruction, from published descriptions of the cores.

   An instruction issues when the registers that it reads are ready and the units that it needs are free, never before
   the instruction ahead of it. `width` instructions may issue in the same cycle. */
#ifndef TINYFUSE_SCOREBOARD_H
#define TINYFUSE_SCOREBOARD_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { MOST_NEEDS = 4, BITS = 64 };

/* Units or registers, as bits, and cycles. */
struct need { uint64_t bits; int cycles; };

/* Timing of an instruction.

   hold     cycles in which nothing else issues; 0: it may issue beside others
   first    it only issues as the first of a cycle
   last     nothing else issues in its cycle after it
   free     it takes no cycle, and jumps in none
   units    one of the units of each mask, and how long it is occupied; a mask of 0 ends the list
   reads    registers, and cycles for which it needs them before (positive) or after (negative) it issues
   writes   registers, and cycles until they are ready */
struct step {
    int hold, first, last, free;
    struct need units[MOST_NEEDS + 1], reads[MOST_NEEDS + 1], writes[MOST_NEEDS + 1];
};

/* A core: instructions that issue in a cycle, and cycles that a jump adds; then the state of a run. */
struct pipeline {
    int width, taken;
    int64_t now, issued; /* cycle of the last instruction: its last one of holding, its first one */
    int slots;           /* instructions that issued in `now` */
    bool alone;          /* nothing issues behind the last one in `now` */
    int64_t ready[BITS], vacant[BITS];
};

/* Returns the unit of a mask that is vacant first. */
static int first_vacant(const struct pipeline *p, uint64_t mask)
{
    int best = __builtin_ctzll(mask);

    while ((mask &= mask - 1) != 0) {
        const int unit = __builtin_ctzll(mask);

        best = p->vacant[unit] < p->vacant[best] ? unit : best;
    }
    return best;
}

/* Issues an instruction. Returns the cycles since the instruction before it issued. `jumped`: that one was a jump. */
static uint64_t issue(struct pipeline *p, const struct step *s, bool jumped)
{
    const int64_t before = p->issued;
    int64_t at = p->now + (jumped ? 1 + p->taken : 0);
    const struct need *each;
    uint64_t rest;
    int bit;

    for (each = s->reads; each->bits != 0; ++each) {
        for (rest = each->bits; rest != 0; rest &= rest - 1) {
            bit = __builtin_ctzll(rest);
            at = p->ready[bit] + each->cycles > at ? p->ready[bit] + each->cycles : at;
        }
    }
    for (each = s->units; each->bits != 0; ++each) {
        bit = first_vacant(p, each->bits);
        at = p->vacant[bit] > at ? p->vacant[bit] : at;
    }
    if (at == p->now && p->slots > 0 && (p->slots >= p->width || p->alone || s->hold > 0 || s->first)) {
        ++at;
    }
    for (each = s->units; each->bits != 0; ++each) {
        p->vacant[first_vacant(p, each->bits)] = at + each->cycles;
    }
    for (each = s->writes; each->bits != 0; ++each) {
        for (rest = each->bits; rest != 0; rest &= rest - 1) {
            p->ready[__builtin_ctzll(rest)] = at + each->cycles;
        }
    }
    p->slots = at == p->now ? p->slots + 1 : 1;
    p->alone = s->hold > 0 || s->last;
    p->issued = at;
    p->now = s->hold > 1 ? at + s->hold - 1 : at;
    return (uint64_t)(at - before);
}

/* Parses the timing of an instruction: HOLD FIRST LAST FREE, then three lists of MASK CYCLES, each ended by a mask of 0. False
   if it is wrong. */
static bool read_step(const char *text, struct step *s)
{
    struct need *const lists[] = {s->units, s->reads, s->writes};
    int count = 0;

    if (sscanf(text, "%d %d %d %d%n", &s->hold, &s->first, &s->last, &s->free, &count) != 4) {
        return false;
    }
    for (int list = 0; list < 3; ++list) {
        struct need *each = lists[list];

        do {
            if (each > lists[list] + MOST_NEEDS) {
                return false;
            }
            text += count;
            if (sscanf(text, "%" SCNx64 " %d%n", &each->bits, &each->cycles, &count) != 2) {
                return false;
            }
        } while (each++->bits != 0);
    }
    return true;
}

#endif
