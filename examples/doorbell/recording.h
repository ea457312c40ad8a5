/* The sound that the firmware hears in place of a microphone: a WAV file, as it is. */
#ifndef RECORDING_H
#define RECORDING_H

#include <stdint.h>

extern const uint8_t recording[], recording_end[];

#endif
