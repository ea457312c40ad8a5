/* What the firmware's camera shows: a PGM file, as it is. */
#ifndef FILM_H
#define FILM_H

#include <stdint.h>

extern const uint8_t film_begin[], film_end[];

#endif
