/* The file that CMakeLists.txt names, in flash. */
#include "recording.h"

__asm__(".section .rodata.recording, \"a\"\n"
        ".balign 4\n"
        ".global recording, recording_end\n"
        "recording: .incbin \"" RECORDING "\"\n"
        "recording_end:\n"
        ".previous\n");
