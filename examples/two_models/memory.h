/* Which model has which bytes, and when.

   The doorbell's arena is its own from NAME_slide's beginning until its scores are read: within one turn. Between two
   turns only its state stays. The digits' arena is its own from an image's first row until its scores are read: many
   turns, and between them all of it stays. So the two may share bytes only where an inference of the digits is one
   turn. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

/* The bytes of both arenas together. */
size_t memory_bytes(void);

/* The digits' arena, for one turn. Its content is what the turn before left, its address may be another one. */
void *memory_digits(void);

/* The doorbell's arena, for one turn, whatever it holds; and its return. */
void *memory_sound(void);
void memory_sound_done(void);

/* Bytes that changed though nobody had them, in a build that looks (MEMORY_CHECKED); else 0. */
unsigned memory_faults(void);

#endif
