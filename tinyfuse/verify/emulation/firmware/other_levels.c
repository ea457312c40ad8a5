/* What the module's header says of the stack to who compiles the other way, with optimization or without:
   interface.c holds it against the plan, as it does what it sees itself. */
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
