"""C programs of one translation unit for emulated cores, with the verification firmware's port.

program = build_for_core(source, flags, target, "O0", folder)
text = run_on_core(program, target)
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import native_compiler

from tinyfuse.targets import Target
from tinyfuse.verify.emulation import build
from tinyfuse.verify.emulation.banks import memory_map
from tinyfuse.verify.emulation.board import weights_memory
from tinyfuse.verify.emulation.build import Unit, compile_units
from tinyfuse.verify.emulation.compilers import Compiler, find_compiler

FIRMWARE = Path(build.__file__).resolve().parent / "firmware"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")


def build_for_core(
    source: Path,
    flags: Sequence[str],
    target: Target,
    opt: str,
    folder: Path,
    library: Sequence[Path] = (),
    include_dirs: Sequence[Path] = (),
    frames: bool = False,
) -> Path:
    """The ELF file of `source`, whose name ends with _weights.c so that sections.ld puts its constants where there is
    room. `library`: files of CMSIS-NN; `frames`: its functions take a state."""
    compiler = find_compiler(target, "qemu", opt)
    port = Unit("port", FIRMWARE / "port_cortex_m.c", ("-std=gnu99", *(["-DFRAMES"] if frames else [])))
    objects = compiled(compiler, source, flags, port, folder, library, include_dirs)
    (folder / "memory.ld").write_text(memory_map(target, weights_memory(target, objects[0].stat().st_size)))
    elf = folder / "program.elf"
    layout = ("-nostartfiles", "--specs=nano.specs", "-T", FIRMWARE / "sections.ld", f"-L{folder}", "-Wl,--gc-sections")
    compiler.run([*objects, *layout, "-lm", "-o", elf], elf.name, folder)
    return elf


def compiled(
    compiler: Compiler,
    source: Path,
    flags: Sequence[str],
    port: Unit,
    folder: Path,
    library: Sequence[Path] = (),
    include_dirs: Sequence[Path] = (),
) -> list[Path]:
    """Object files of a program, the source's first; those of library and port come from a cache."""
    # CMSIS-NN's Helium assembly does not compile without optimization
    quiet = ("-w", "-O1") if compiler.opt == "O0" else ("-w",)
    units = [
        Unit("module", source, ("-std=gnu99", *WARNINGS, *flags, f"-I{FIRMWARE}")),
        *(Unit("library", Path(path).resolve(), quiet) for path in library),
        port,
    ]
    return compile_units(compiler, units, include_dirs, folder)


def run_on_core(elf: Path, target: Target, seconds: float = 300, counted: bool = False) -> str:
    """Output of the program; AssertionError if its exit status is not 0. If `counted`, the clock counts instructions,
    which takes longer."""
    clock = ["-icount", "shift=0,align=off,sleep=off"] if counted else []
    command = ["qemu-system-arm", "-machine", target.qemu_machine, "-display", "none", "-monitor", "none",
               "-serial", "none", "-semihosting-config", "enable=on,target=native", *clock,
               "-kernel", str(elf)]  # fmt: skip
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=seconds
    )
    assert done.returncode == 0, native_compiler.report(done.returncode, done.stdout)
    return done.stdout
