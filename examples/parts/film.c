/* The file that CMakeLists.txt names, in flash. */
#include "film.h"

__asm__(".section .rodata.film, \"a\"\n"
        ".balign 4\n"
        ".global film_begin, film_end\n"
        "film_begin: .incbin \"" FILM "\"\n"
        "film_end:\n"
        ".previous\n");
