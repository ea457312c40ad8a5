/* The sound that the firmware hears in place of a microphone: a WAV file, as it is. */
#ifndef RECORDING_H
#define RECORDING_H

#include <stddef.h>
#include <stdint.h>

/* Copies the next `count` samples. 0 where there are no more of them, or the file is none. */
int recording_next(int16_t *samples, size_t count);

#endif
