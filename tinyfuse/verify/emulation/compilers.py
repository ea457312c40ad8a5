"""The compilers that build firmware for an emulated core, and programs for this machine."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tinyfuse.errors import EmulationFailed, ToolMissing, UsageError
from tinyfuse.targets import Target
from tinyfuse.toolchain.packages import how_to_get
from tinyfuse.toolchain.programs import find_program

#: flags that select Arm cores in multi-target compilers; enumerations as in GCC, from which Arm Compiler 6 differs
TRIPLES = {
    "clang": ("--target=arm-none-eabi",),
    "armclang": ("--target=arm-arm-none-eabi", "-fshort-enums"),
}
_SANITIZERS = ("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")


@dataclass(frozen=True)
class Compiler:
    """A compiler for one target. `flags` are for compiling every file and for linking, and include the optimization
    level `opt` ("O2")."""

    program: str
    version: str
    opt: str
    flags: tuple[str, ...]

    def has_cpp(self) -> bool:
        """Tells whether it compiles C++, too."""
        return _has_cpp(self.program)

    def run(self, arguments: Sequence[str | Path], what: str, folder: Path) -> None:
        """Runs it in `folder`. EmulationFailed with its first messages if it fails on `what`."""
        command = [self.program, *self.flags, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", cwd=folder)
        if done.returncode == 0:
            return
        if re.search(r"string\.h: No such file|nano\.specs", done.stderr):
            raise ToolMissing("newlib", how_to_get("newlib"))
        overflow = re.search(r"region `(\w+)' overflowed by (\d+) bytes", done.stderr)
        if overflow:
            raise UsageError(
                f"{what} exceeds the {overflow[1]} of the emulated board by {overflow[2]} bytes"
                " (hint: --emulator host runs the model's portable kernels on this machine)"
            )
        messages = "\n  ".join(done.stderr.splitlines()[:12])
        raise EmulationFailed(f"{self.program} failed on {what}:\n  {messages}")


@cache
def _has_cpp(program: str) -> bool:
    """Tells whether GCC's C++ compiler is installed beside this program; Clang always has one."""
    said = subprocess.run(
        [program, "-print-prog-name=cc1plus"], capture_output=True, encoding="utf-8", errors="replace"
    )
    return os.path.isabs(said.stdout.strip()) or "clang" in Path(program).name


def find_compiler(target: Target, emulator: str, opt: str, name: str = "gcc") -> Compiler:
    """Finds the target's cross compiler with level `opt` ("O2"), or for "host" this machine's compiler with sanitizers.

    name  "gcc" (on "host", the environment's CC is tried first), "clang" or "armclang"
    opt   optimization level; on "host" it is always O1

    ToolMissing if the compiler or the C library's headers are missing. UsageError if it cannot compile for that
    machine.
    """
    if emulator == "host":
        # Sanitizers find most before the optimizer has used its assumptions.
        return _compiler(_own_compilers(name), "O1", "-fno-omit-frame-pointer", *_SANITIZERS)
    flags = (*target.flags, "-ffunction-sections", "-fdata-sections")
    if name in TRIPLES:
        return _compiler((name,), opt, *for_arm(name), *flags)
    return _compiler(("arm-none-eabi-gcc",), opt, *flags)


def find_native_compiler(opt: str, name: str = "gcc") -> Compiler:
    """This machine's compiler at the level `opt` ("O2"), without sanitizers. `name` and ToolMissing as
    `find_compiler` for "host"."""
    return _compiler(_own_compilers(name), opt)


def _own_compilers(name: str) -> tuple[str, ...]:
    """The programs that compile for this machine, the first choice first. UsageError where that one does not."""
    if name == "armclang":
        raise UsageError("--compiler armclang compiles only for Arm's cores (hint: --compiler clang on the host)")
    return (os.environ.get("CC", ""), "gcc", "clang") if name == "gcc" else (name,)


def for_arm(name: str = "clang") -> tuple[str, ...]:
    """Flags with which Clang, or Arm's build of it, compiles for Cortex-M with the GNU toolchain's C library.

    The GNU toolchain also links. ToolMissing without that library."""
    gcc = find_program("arm-none-eabi-gcc")
    if gcc is None:
        raise ToolMissing("arm-none-eabi-gcc", how_to_get("arm-none-eabi-gcc"))
    printed = subprocess.run([gcc, "-print-sysroot"], capture_output=True, encoding="utf-8", errors="replace").stdout
    # Debian's GCC names a folder that does not exist
    folders = Path(printed.strip()) / "include", Path("/usr/include/newlib")
    headers = next((folder for folder in folders if (folder / "string.h").is_file()), None)
    if headers is None:
        raise ToolMissing("newlib", how_to_get("newlib"))
    return *TRIPLES[name], f"-isystem{headers}"


def _compiler(programs: Sequence[str], opt: str, *flags: str) -> Compiler:
    """Compiler made from the first of these programs that is found. ToolMissing for gcc, if it would do, else for the
    first."""
    program = find_program(*programs)
    if program is None:
        needed = next(name for name in ("gcc", *programs) if name in programs)
        raise ToolMissing(needed, how_to_get(needed))
    return Compiler(program, _version(program), opt, (f"-{opt}", *flags))


@cache
def _version(program: str) -> str:
    """First line of the program's --version."""
    said = subprocess.run([program, "--version"], capture_output=True, encoding="utf-8", errors="replace").stdout
    return said.split("\n", 1)[0]
