"""The compiler of programs that run on this machine under sanitizers.

clang, because gcc takes twice as long with a kernel's checks, and five times with a large table of constants. What gcc
makes of modules is compiled and run in tests/product/test_compilers.py, test_generated_code.py and by `verify
--emulator host`, whose first choice it is.

Undefined behaviour is a trap: code that would say what it was takes a third longer to compile. Pointers that are null or
wrap around take as long as all other checks together, and what they lead to the address sanitizer sees too. A test that
ends so runs again by hand, with what it was and with every check, as

    TINYFUSE_TEST_REPORTS=1 pytest TEST

Under TINYFUSE_TEST_MEMORY=1 programs of kernels and of several modules have the memory sanitizer, which sees bytes that
nobody wrote, in place of both (tests/exact/test_memory_sanitizer.py).
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path

COMPILER = "clang"
#: for any compiler: what a sanitizer finds is reported, with the line
REPORTING = ("-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_TRAPS = ("-fno-sanitize=null,pointer-overflow", "-fsanitize-trap=undefined,float-cast-overflow")


def _linker() -> tuple[str, ...]:
    """Options of a linker that takes a third of the time: gold, with the sanitizer's runtime as a shared library."""
    flags = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []
    ask = [COMPILER, f"-print-file-name=libclang_rt.asan-{os.uname().machine}.so"]
    if shutil.which(COMPILER) and (library := Path(subprocess.check_output(ask, text=True).strip())).is_file():
        flags += ["-shared-libasan", f"-Wl,-rpath,{library.parent}"]
    return (*flags, "-Wno-unused-command-line-argument")


_LINKER = _linker()
#: for COMPILER, in the place of SANITIZERS: can't be in one program with the address sanitizer
MEMORY = ("-g1", "-fsanitize=memory", "-fno-sanitize-recover=all")


def _sanitizers() -> tuple[str, ...]:
    if os.environ.get("TINYFUSE_TEST_MEMORY"):
        return MEMORY
    return (
        *(REPORTING if os.environ.get("TINYFUSE_TEST_REPORTS") else ("-fsanitize=address,undefined", *_TRAPS)),
        *_LINKER,
    )


#: for COMPILER
SANITIZERS = _sanitizers()


def quickly(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Flags of `verify --emulator host` for COMPILER without optimization, and with SANITIZERS' traps."""
    kept = tuple("-O0" if flag == "-O1" else flag for flag in flags if flag != "-fno-sanitize-recover=all")
    checks = ["-fno-sanitize-recover=all"] if os.environ.get("TINYFUSE_TEST_REPORTS") else _TRAPS
    return (*kept, *checks, *_LINKER)


def report(code: int, said: str) -> str:
    """Message about a program that ended with `code`."""
    trap = (
        " (a sanitizer's trap: TINYFUSE_TEST_REPORTS=1 says which)" if code in (-signal.SIGILL, -signal.SIGTRAP) else ""
    )
    return f"it ended with {code}{trap}: {said[-4000:]}"
