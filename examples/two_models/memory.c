#include "memory.h"

#include <string.h>

#include "digits.h"
#include "doorbell.h"

#ifndef MEMORY_CHECKED

/* MEMORY_SHARED: the same bytes for both. */
#ifdef MEMORY_SHARED
static union {
#else
static struct {
#endif
    digits_arena_type digits;
    doorbell_arena_type sound;
} memory;

size_t memory_bytes(void)
{
    return sizeof memory;
}

void *memory_digits(void)
{
    return memory.digits.bytes;
}

void *memory_sound(void)
{
    return memory.sound.bytes;
}

void memory_sound_done(void)
{
}

unsigned memory_faults(void)
{
    return 0;
}

#else

/* The contract, made as hard as it may be: the digits' arena moves from one place to the other between any two turns,
   the bytes that nobody has are junk, and no byte may change that its owner isn't there to change. */
enum { GUARD = 16, JUNK = 0xA5, PLACES = 2 };

static struct {
    uint8_t before[GUARD];
    digits_arena_type digits[PLACES];
    uint8_t between[GUARD];
    doorbell_arena_type sound;
    uint8_t after[GUARD];
} memory = {{0}, {{{0}}}, {0}, {{0}}, {0}};

static digits_arena_type kept; /* what the digits' arena held when the doorbell's turn began */
static int place, begun;
static unsigned faults;

static void *junk(void *bytes, size_t count)
{
    return memset(bytes, JUNK, count);
}

static unsigned changed(const void *bytes, size_t count)
{
    unsigned found = 0;

    for (size_t i = 0; i < count; ++i) {
        found += ((const uint8_t *)bytes)[i] != JUNK;
    }
    return found;
}

/* All that nobody has between two turns. */
static void look(void)
{
    if (begun) {
        faults += changed(memory.before, GUARD) + changed(memory.between, GUARD) + changed(memory.after, GUARD);
        faults += changed(memory.digits[1 - place].bytes, DIGITS_ARENA_BYTES);
        faults += changed(memory.sound.bytes, DOORBELL_ARENA_BYTES);
    } else {
        junk(&memory, sizeof memory);
        begun = 1;
    }
}

size_t memory_bytes(void)
{
    return sizeof(digits_arena_type) + sizeof(doorbell_arena_type);
}

void *memory_digits(void)
{
    look();
    memcpy(&memory.digits[1 - place], &memory.digits[place], sizeof memory.digits[0]);
    junk(&memory.digits[place], sizeof memory.digits[0]);
    place = 1 - place;
    return memory.digits[place].bytes;
}

void *memory_sound(void)
{
    look();
    kept = memory.digits[place];
    return memory.sound.bytes;
}

void memory_sound_done(void)
{
    faults += memcmp(&kept, &memory.digits[place], sizeof kept) != 0;
    junk(&memory.sound, sizeof memory.sound);
}

unsigned memory_faults(void)
{
    look();
    return faults;
}

#endif
