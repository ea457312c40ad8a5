"""Builds the verification firmware: module, CMSIS-NN, inputs and harness, in one ELF file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tinyfuse.targets import Target
from tinyfuse.verify.emulation.banks import BoardBanks, memory_map, sections_script
from tinyfuse.verify.emulation.board import weights_memory
from tinyfuse.verify.emulation.cache import ObjectCache
from tinyfuse.verify.emulation.checked_calls import write_entry_points
from tinyfuse.verify.emulation.compilers import Compiler, find_compiler
from tinyfuse.verify.emulation.elf import broken_promises, group_symbols, linked_sections, symbol_size
from tinyfuse.verify.emulation.interface import Interface
from tinyfuse.verify.emulation.result import Firmware

_FIRMWARE = Path(__file__).resolve().parent / "firmware"
_JOBS = 2
_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")

# Assembly of the inputs; their section is in the board's largest memory.
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
    """A generated module.

    name     prefix of its functions, "kws"
    prefix   prefix of its macros, "KWS"
    sources  its .c files in `folder`
    flags    extra compiler flags
    banks    places of its memory banks on the board; None without banks
    parts    bytes of each part of a divided arena; empty for a whole one
    """

    name: str
    prefix: str
    folder: Path
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()
    banks: BoardBanks | None = None
    parts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Unit:
    """A file to compile. `part` is "module", "library", "port", "harness", "header" or "interface"; only the sizes of
    the first two are measured. Objects of library and port are cached."""

    part: str
    source: Path
    flags: tuple[str, ...]


@dataclass(frozen=True)
class BuildOptions:
    """How a firmware is built, and what it measures.

    opt          optimization level of module and CMSIS-NN
    defines      macros for module and CMSIS-NN, "NAME=VALUE"
    frames       runs of a stream (tinyfuse/verify/streams.py); None for a module without state
    debug        adds debug information, which kernel_symbols needs; without it, a build that only measures sizes takes
                 half the time
    interface    checks to be linked into the firmware
    awaits       some runs of the module may have no result
    spread       also counts the instructions for every other input
    compiled_by  compiler of module and CMSIS-NN; for a core, GCC compiles the harness and links
    checked      checks registers after each call, and interrupts some runs; on cores only (firmware/checked_calls.c)
    within       an interrupt also makes an inference; the stack must have room for it
    """

    opt: str = "O3"
    defines: tuple[str, ...] = ()
    frames: int | None = None
    debug: bool = True
    interface: Interface | None = None
    awaits: bool = False
    spread: bool = False
    compiled_by: str = "gcc"
    checked: bool = True
    within: bool = True


_DEFAULTS = BuildOptions()


def build_firmware(
    module: ModuleFiles,
    inputs: list[list[np.ndarray]],
    target: Target,
    cmsis_nn_sources: Iterable[Path],
    include_dirs: Iterable[Path],
    work: Path,
    emulator: str,
    options: BuildOptions = _DEFAULTS,
) -> Firmware:
    """Builds, in the folder `work`, firmware that runs `module` on inputs[run][index].

    cmsis_nn_sources, include_dirs   files of CMSIS-NN that the module calls, and header folders for these

    ToolMissing without a compiler, UsageError if the firmware is too large for the emulated board, EmulationFailed if a
    file does not compile.
    """
    assert inputs, "firmware without runs"
    asked, by, opt = len(inputs), options.compiled_by, options.opt
    compiler = find_compiler(target, emulator, opt, by)
    gcc = compiler if emulator == "host" or by == "gcc" else find_compiler(target, emulator, opt)
    options = replace(options, checked=options.checked and emulator != "host")
    work.mkdir(parents=True, exist_ok=True)
    work = work.resolve()
    inputs = inputs if len(inputs) > 1 else inputs * 2  # the second run is timed
    _write_inputs(inputs, work)
    header = (module.folder / f"{module.name}.h").read_text(encoding="utf-8")
    write_entry_points(work, header, module.name, options.checked)
    units = [
        *_measured_units(module, cmsis_nn_sources, emulator, options),
        *_harness_units(module, inputs, gcc, work, emulator, options),
    ]
    objects = compile_units(compiler, units, [Path(path).resolve() for path in include_dirs], work, gcc)
    firmware = Firmware(work / f"{module.name}.elf", target, emulator, asked, compiler.version, compiler.opt)
    if emulator == "host":
        compiler.run([*objects, "-lm", "-o", firmware.elf], firmware.elf.name, work)
        return firmware
    _link(gcc, objects, firmware.elf, target, work, module)
    return _measured(firmware, module, dict(zip(units, objects, strict=True)), gcc, work, options)


def _write_inputs(inputs: list[list[np.ndarray]], work: Path) -> None:
    """Writes inputs.bin, and assembly that includes it, to `work`."""
    (work / "inputs.bin").write_bytes(b"".join(array.tobytes() for run in inputs for array in run))
    (work / "inputs.s").write_text(_INPUTS, encoding="utf-8")


def _debug_flags(emulator: str, options: BuildOptions) -> tuple[str, ...]:
    # a sanitizer's report needs only lines, and gcc takes four times as long to follow variables
    return ("-g1" if emulator == "host" else "-g",) if options.debug else ()


def _measured_units(
    module: ModuleFiles, cmsis_nn_sources: Iterable[Path], emulator: str, options: BuildOptions
) -> Iterator[Unit]:
    """Files of module and CMSIS-NN."""
    define = tuple(f"-D{text}" for text in options.defines)
    folder, information = module.folder.resolve(), _debug_flags(emulator, options)
    own = ("-std=c99", *information, *_WARNINGS, *define, f"-I{folder}", *module.flags)
    for name in module.sources:
        yield Unit("module", folder / name, own)
    # CMSIS-NN's Helium assembly does not compile without optimization
    library = ("-w", "-O1", *define) if options.opt == "O0" else ("-w", *define)
    for path in cmsis_nn_sources:
        yield Unit("library", Path(path).resolve(), library)


def _harness_units(
    module: ModuleFiles, inputs: list[list[np.ndarray]], gcc: Compiler, work: Path, emulator: str, options: BuildOptions
) -> Iterator[Unit]:
    """All other files of a firmware: harness, port, inputs and checks."""
    usual = ("-std=gnu99", *_debug_flags(emulator, options), *_WARNINGS)
    harness = (
        # Optimizing unmeasured code further would take longer than it saves.
        *([] if options.opt == "O0" or emulator == "host" else ["-O1"]),
        *(*usual, f"-I{module.folder.resolve()}", f"-I{work}", *harness_defines(module, inputs, options.frames)),
        *(["-DAWAITS"] if options.awaits else []),
        *([] if options.within else ["-DWITHOUT_WITHIN"]),
        *(["-DSPREAD"] if options.spread and emulator != "host" else []),
    )
    # no flags that depend on the module, because the port is compiled once for all
    port = (
        *usual,
        *(["-DFRAMES"] if options.frames is not None else []),
        *(["-DARENA_PARTS"] if module.parts else []),
        *(["-DCONSOLE_UART"] if emulator == "renode" else []),
    )
    yield Unit("harness", _FIRMWARE / "verify.c", harness)
    yield Unit("port", _FIRMWARE / ("port_host.c" if emulator == "host" else "port_cortex_m.c"), port)
    if options.checked:
        yield Unit("port", _FIRMWARE / "checked_calls.c", port)
    yield from _header_in_cpp(module, gcc, work)
    yield Unit("harness", work / "inputs.s", ())
    for name in _write(options.interface, work, emulator):
        yield Unit("interface", work / name, () if name.endswith(".s") else (*harness, f"-I{_FIRMWARE}"))


def _measured(
    firmware: Firmware,
    module: ModuleFiles,
    objects: dict[Unit, Path],
    gcc: Compiler,
    work: Path,
    options: BuildOptions,
) -> Firmware:
    """Firmware with the sizes of module and CMSIS-NN. Checks of an interface are left out of them, because what these
    call is not in every firmware."""
    sized = firmware.elf
    if any(unit.part == "interface" for unit in objects):
        sized = work / "sized.elf"
        unchecked = [path for unit, path in objects.items() if unit.part != "interface"]
        _link(gcc, unchecked, sized, firmware.target, work, module)
    measured = {path for unit, path in objects.items() if unit.part in ("module", "library")}
    code_bytes, weight_bytes, static_bytes = linked_sizes(map_of(sized), measured)
    memories = ["tinyfuse_arena_bytes", *(["tinyfuse_state_bytes"] if options.frames is not None else [])]
    harness = next(path for unit, path in objects.items() if unit.source == _FIRMWARE / "verify.c")
    return replace(
        firmware,
        code_bytes=code_bytes,
        weight_bytes=weight_bytes,
        ram_bytes=static_bytes + sum(symbol_size(harness, name) for name in memories),
        broken=tuple(
            broken_promises(
                (path for unit, path in objects.items() if unit.part == "module" and unit.source.suffix == ".c"),
                module.name,
            )
        ),
        kernel_symbols=group_symbols(sized, module.name) if options.debug else {},
    )


def _header_in_cpp(module: ModuleFiles, gcc: Compiler, work: Path) -> list[Unit]:
    """A C++ file that includes the module's header; [] if the compiler has no C++."""
    if not gcc.has_cpp():
        return []
    source = work / f"{module.name}_header.cpp"
    source.write_text(f'#include "{module.name}.h"\n', encoding="utf-8")
    return [Unit("header", source, ("-std=c++17", *_WARNINGS, f"-I{module.folder.resolve()}"))]


def harness_defines(module: ModuleFiles, inputs: list[list[np.ndarray]], frames: int | None) -> tuple[str, ...]:
    """Compiler flags that tell the harness about the module and its inputs, [run][index]."""
    return (
        *(f'-DMODULE_HEADER="{module.name}.h"', f"-DMODULE_NAME={module.name}", f"-DMODULE_PREFIX={module.prefix}"),
        f"-DRUNS={len(inputs)}",
        f"-DINPUT_BYTES={max((array.nbytes for array in inputs[0]), default=0)}",
        f"-DITEM_BYTES={max((array.itemsize for array in inputs[0]), default=1)}",
        *([f"-DFRAMES={frames}"] if frames is not None else []),
        *([f"-DARENA_PARTS(PART)={_parts(module)}"] if module.parts else []),
    )


def _parts(module: ModuleFiles) -> str:
    return " ".join(f"PART({number}, {size})" for number, size in enumerate(module.parts))


def _write(interface: Interface | None, work: Path, emulator: str) -> list[str]:
    """Writes the generated files of the interface's checks to `work`, and returns all of them, relative to `work`."""
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
    """Compiles `units` and returns their object files in the same order. `others` compiles the units that are neither
    module nor library; None for `compiler`."""
    others = compiler if others is None else others
    caches = {
        "library": ObjectCache([compiler.version, *compiler.flags], include_dirs),
        "port": ObjectCache([others.version, *others.flags], [_FIRMWARE]),
    }
    system = [option for path in include_dirs for option in ("-isystem", path)]

    def compile_one(number: int, unit: Unit) -> Path:
        # The number distinguishes files with the same name; the linker script knows *_weights.o.
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
    """Map file that the linker writes for an ELF file."""
    return elf.with_suffix(".map")


def _has_weights(object_file: Path) -> bool:
    return object_file.name.endswith("_weights.o")


def linked_sizes(map_file: Path, objects: set[Path]) -> tuple[int, int, int]:
    """Linked bytes of `objects`: (code with its constants, weights, static RAM)."""
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
