#include "recording.h"

#include <string.h>

/* The file that CMakeLists.txt names, in flash. */
extern const uint8_t recording[], recording_end[];

__asm__(".section .rodata.recording, \"a\"\n"
        ".balign 4\n"
        ".global recording, recording_end\n"
        "recording: .incbin \"" RECORDING "\"\n"
        "recording_end:\n"
        ".previous\n");

/* The first sample of a WAV file, that is of its chunk "data"; NULL without one. */
static const uint8_t *first_sample(const uint8_t *file, const uint8_t *end)
{
    for (const uint8_t *chunk = file + 12; end - chunk >= 8;) {
        const uint32_t bytes = chunk[4] | (uint32_t)chunk[5] << 8 | (uint32_t)chunk[6] << 16 | (uint32_t)chunk[7] << 24;

        if (memcmp(chunk, "data", 4) == 0) {
            return chunk + 8;
        }
        if (bytes > (uint32_t)(end - chunk) - 8u) {
            break;
        }
        chunk += 8u + bytes + (bytes & 1u);
    }
    return NULL;
}

int recording_next(int16_t *samples, size_t count)
{
    static const uint8_t *next;
    const size_t bytes = count * sizeof *samples;

    if (next == NULL) {
        next = first_sample(recording, recording_end);
    }
    if (next == NULL || (size_t)(recording_end - next) < bytes) {
        return 0;
    }
    memcpy(samples, next, bytes);
    next += bytes;
    return 1;
}
