"""Builds the verification firmware: module, CMSIS-NN, inputs and harness, in one ELF file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tinyfuse.targets import Target
from tinyfuse.verify.emulation.banks import BoardBanks, memory_map, sections_script
from tinyfuse.verify.emulation.board import weights_memory
from tinyfuse.verify.emulation.cache import ObjectCache
from tinyfuse.verify.emulation.compilers import Compiler, find_compiler
from tinyfuse.verify.emulation.elf import group_symbols, linked_sections, symbol_size
from tinyfuse.verify.emulation.interface import Interface
from tinyfuse.verify.emulation.result import Firmware

_FIRMWARE = Path(__file__).resolve().parent / "firmware"
_JOBS = 2
_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")

# In the board's largest memory.
_INPUTS = """\
    .section .inputs, "aw"
    .balign 16
    .globl tinyfuse_inputs, tinyfuse_inputs_end
tinyfuse_inputs:
    .incbin "inputs.bin"
tinyfuse_inputs_end:
    .section .note.GNU-stack, "", %progbits
"""


@dataclass(frozen=True)
class ModuleFiles:
    """A generated module: `sources` are the .c files in `folder`, `name` the prefix of its
    functions ("kws"), `prefix` that of its macros ("KWS"), `flags` more flags of the compiler, `banks` where its memory
    banks are on the board, `parts` the bytes of the parts of an arena that is divided."""

    name: str
    prefix: str
    folder: Path
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()
    banks: BoardBanks | None = None
    parts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Unit:
    """One file to compile; `part` is "module", "library", "port", "harness" or "interface" (sizes of the last three are
    not counted). Objects of the library and of the port are cached."""

    part: str
    source: Path
    flags: tuple[str, ...]


def build_firmware(
    module: ModuleFiles,
    inputs: list[list[np.ndarray]],
    target: Target,
    cmsis_nn_sources: Iterable[Path],
    include_dirs: Iterable[Path],
    work: Path,
    emulator: str,
    opt: str = "O3",
    defines: Iterable[str] = (),
    frames: int | None = None,
    debug: bool = True,
    interface: Interface | None = None,
    awaits: bool = False,
    spread: bool = False,
    compiled_by: str = "gcc",
) -> Firmware:
    """Builds, in the folder `work`, firmware that runs `module` on inputs[run][index].

    A module with state takes `frames`: the runs of a stream, as tinyfuse/verify/streams.py makes them. With an
    `interface` its checks are part of the firmware, with `spread` every input is also measured. A module that `awaits`
    inputs has runs without a result.
    `compiled_by` is the module's and CMSIS-NN's compiler; for a core GCC compiles the harness, and links.
    `include_dirs` are CMSIS-NN's and CMSIS core's; `defines` ("NAME=VALUE") hold for the module and
    for CMSIS-NN. Without `debug` there is no debug information, so no kernel_symbols: enough for sizes, in half
    the time. ToolMissing without a compiler, UsageError where the firmware is too large for the
    emulated board, EmulationFailed where a file does not compile.
    """
    assert inputs, "firmware without runs"
    compiler = find_compiler(target, emulator, opt, compiled_by)
    gcc = compiler if emulator == "host" or compiled_by == "gcc" else find_compiler(target, emulator, opt)
    work.mkdir(parents=True, exist_ok=True)
    work, folder = work.resolve(), module.folder.resolve()
    include_dirs = [Path(path).resolve() for path in include_dirs]

    runs = _write_inputs(inputs, work)
    define = [f"-D{text}" for text in defines]
    # a sanitizer's report needs lines alone, and gcc takes four times as long to follow variables
    information = ("-g1" if emulator == "host" else "-g",) if debug else ()
    own = ("-std=c99", *information, *_WARNINGS, *define, f"-I{folder}", *module.flags)
    # no more of the module than what port.h asks for: it is compiled once
    port_flags = (
        *("-std=gnu99", *information, *_WARNINGS),
        *(["-DFRAMES"] if frames is not None else []),
        *(["-DARENA_PARTS"] if module.parts else []),
        *(["-DCONSOLE_UART"] if emulator == "renode" else []),
    )
    harness = (
        # better code of what isn't measured would cost more time than it saves
        *([] if opt == "O0" or emulator == "host" else ["-O1"]),
        *("-std=gnu99", *information, *_WARNINGS, f"-I{folder}", *_defines(module, runs, frames)),
        *(["-DAWAITS"] if awaits else []),
        *(["-DSPREAD"] if spread and emulator != "host" else []),
    )
    # CMSIS-NN's Helium assembly does not compile without optimization
    library = ("-w", "-O1") if opt == "O0" else ("-w",)
    port = "port_host.c" if emulator == "host" else "port_cortex_m.c"
    units = [
        *(Unit("module", folder / name, own) for name in module.sources),
        *(Unit("library", Path(path).resolve(), (*library, *define)) for path in cmsis_nn_sources),
        Unit("harness", _FIRMWARE / "verify.c", harness),
        Unit("port", _FIRMWARE / port, port_flags),
        Unit("harness", work / "inputs.s", ()),
        *(
            Unit("interface", work / name, () if name.endswith(".s") else (*harness, f"-I{_FIRMWARE}"))
            for name in _write(interface, work, emulator)
        ),
    ]
    objects = compile_units(compiler, units, include_dirs, work, gcc)
    firmware = Firmware(work / f"{module.name}.elf", target, emulator, len(inputs), compiler.version, compiler.opt)
    if emulator == "host":
        compiler.run([*objects, "-lm", "-o", firmware.elf], firmware.elf.name, work)
        return firmware
    _link(gcc, objects, firmware.elf, target, work, module)
    return _measured(firmware, module, dict(zip(units, objects, strict=True)), gcc, work, frames, debug)


def _measured(
    firmware: Firmware,
    module: ModuleFiles,
    objects: dict[Unit, Path],
    gcc: Compiler,
    work: Path,
    frames: int | None,
    debug: bool,
) -> Firmware:
    """With the bytes that the module takes in it: without the checks of an interface, for what they alone call is not
    in every firmware."""
    sized = firmware.elf
    if any(unit.part == "interface" for unit in objects):
        sized = work / "sized.elf"
        unchecked = [path for unit, path in objects.items() if unit.part != "interface"]
        _link(gcc, unchecked, sized, firmware.target, work, module)
    measured = {path for unit, path in objects.items() if unit.part in ("module", "library")}
    code_bytes, weight_bytes, static_bytes = linked_sizes(map_of(sized), measured)
    memories = ["tinyfuse_arena_bytes", *(["tinyfuse_state_bytes"] if frames is not None else [])]
    harness = next(path for unit, path in objects.items() if unit.source == _FIRMWARE / "verify.c")
    return replace(
        firmware,
        code_bytes=code_bytes,
        weight_bytes=weight_bytes,
        ram_bytes=static_bytes + sum(symbol_size(harness, name) for name in memories),
        kernel_symbols=group_symbols(sized, module.name) if debug else {},
    )


def _write_inputs(inputs: list[list[np.ndarray]], work: Path) -> int:
    """How many runs there are then: the second inference is the one that is measured, so there must be one."""
    fed = inputs if len(inputs) > 1 else inputs * 2
    (work / "inputs.bin").write_bytes(b"".join(array.tobytes() for run in fed for array in run))
    (work / "inputs.s").write_text(_INPUTS, encoding="utf-8")
    return len(fed)


def _defines(module: ModuleFiles, runs: int, frames: int | None) -> tuple[str, ...]:
    """What the harness must know of the module."""
    return (
        *(f'-DMODULE_HEADER="{module.name}.h"', f"-DMODULE_NAME={module.name}", f"-DMODULE_PREFIX={module.prefix}"),
        f"-DRUNS={runs}",
        *([f"-DFRAMES={frames}"] if frames is not None else []),
        *([f"-DARENA_PARTS(PART)={_parts(module)}"] if module.parts else []),
    )


def _parts(module: ModuleFiles) -> str:
    return " ".join(f"PART({number}, {size})" for number, size in enumerate(module.parts))


def _write(interface: Interface | None, work: Path, emulator: str) -> list[str]:
    """The files of the interface's checks, as paths from `work`: what is generated is written there."""
    if interface is None:
        return []
    (work / "interface.c").write_text(interface.source, encoding="utf-8")
    (work / "weights_table.s").write_text(
        interface.weights_table(".quad" if emulator == "host" else ".word"), encoding="utf-8"
    )
    return ["interface.c", "weights_table.s", str(_FIRMWARE / "other_levels.c")]


def compile_units(
    compiler: Compiler, units: Sequence[Unit], include_dirs: Sequence[Path], work: Path, others: Compiler | None = None
) -> list[Path]:
    """The object files of `units`, in their order; `others` compiles what is neither module nor library, where it is
    another compiler."""
    others = compiler if others is None else others
    caches = {
        "library": ObjectCache([compiler.version, *compiler.flags], include_dirs),
        "port": ObjectCache([others.version, *others.flags], [_FIRMWARE]),
    }
    system = [option for path in include_dirs for option in ("-isystem", path)]

    def compile_one(number: int, unit: Unit) -> Path:
        # The number keeps files of one name apart; the linker script knows *_weights.o.
        path = work / f"{number}_{unit.source.stem}.o"
        cache = caches.get(unit.part)
        if not (cache and cache.fetch(unit.source, unit.flags, path)):
            by = compiler if unit.part in ("module", "library") else others
            by.run([*unit.flags, *system, "-c", unit.source, "-o", path], unit.source.name, work)
            if cache:
                cache.store(unit.source, unit.flags, path)
        return path

    with ThreadPoolExecutor(_JOBS) as pool:
        return list(pool.map(compile_one, range(len(units)), units))


def _link(
    compiler: Compiler, objects: Sequence[Path], elf: Path, target: Target, work: Path, module: ModuleFiles
) -> None:
    banks, script = module.banks, _FIRMWARE / "sections.ld"
    if banks:
        text = sections_script(script.read_text(encoding="utf-8"), banks)
        script = work / "sections.ld"
        script.write_text(text, encoding="utf-8")
    weights = sum(path.stat().st_size for path in objects if _has_weights(path))
    constants = weights_memory(target, 0 if banks and banks.borders else weights)
    (work / "memory.ld").write_text(memory_map(target, constants, banks), encoding="utf-8")
    layout = ("-nostartfiles", "--specs=nano.specs", "-T", script, f"-L{work}", f"-L{module.folder.resolve()}")
    unused = ("-Wl,--gc-sections", f"-Wl,-Map={map_of(elf).name}")
    compiler.run([*objects, *layout, *unused, "-lm", "-o", elf], elf.name, work)


def map_of(elf: Path) -> Path:
    """Where the linker writes what it put into an ELF file."""
    return elf.with_suffix(".map")


def _has_weights(object_file: Path) -> bool:
    return object_file.name.endswith("_weights.o")


def linked_sizes(map_file: Path, objects: set[Path]) -> tuple[int, int, int]:
    """Linked bytes of `objects`: code and its constants, weights, static RAM."""
    code = weights = ram = 0
    for section, size, path in linked_sections(map_file):
        if path not in objects:
            continue
        if section.startswith((".data", ".bss", "COMMON")):
            ram += size
        elif section.startswith(".rodata") and _has_weights(path):
            weights += size
        elif section.startswith((".text", ".rodata")):
            code += size
    return code, weights, ram
