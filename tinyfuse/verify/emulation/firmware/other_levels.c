/* The header's stack bound for the other kind of compilation: with optimization if this firmware is compiled without,
   and the reverse. interface.c compares it with the plan, like the bound that it sees itself. */
#if defined(__OPTIMIZE__)
#undef __OPTIMIZE__
#else
#define __OPTIMIZE__ 1
#endif

#include MODULE_HEADER
#include "verify.h"

#define PAIRED(prefix, name) prefix##name
#define OF_MODULE(prefix, name) PAIRED(prefix, name)

const uintptr_t stack_bytes_otherwise = OF_MODULE(MODULE_PREFIX, _STACK_BYTES);
