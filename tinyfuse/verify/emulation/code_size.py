"""Measures the linked code of a plan's module, and of the library functions that it needs. Links no inputs, harness or
memory map, so it takes a fraction of the time of building firmware."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tinyfuse.cost.code import CodeBytes
from tinyfuse.errors import TinyfuseError
from tinyfuse.plan import Plan
from tinyfuse.resources import cache_folder, write_cache
from tinyfuse.toolchain.cmsis_nn import Tree
from tinyfuse.verify.emulation.build import ModuleFiles, Unit, compile_units, linked_sizes, map_of
from tinyfuse.verify.emulation.compilers import Compiler, find_compiler
from tinyfuse.verify.emulation.elf import linked_sections
from tinyfuse.verify.emulation.module import group_hooks, write_module

_OPT = "O2"

#: libraries that firmware is linked with (build.py)
_LIBRARIES = ("-nostartfiles", "--specs=nano.specs", "-lm")

#: functions of the module that firmware calls, as firmware/verify.c does; some exist only with a state,
#: --weights-blob, --feed-rows, --slide or --step. The linker drops everything that none of them needs.
_CALLED = (
    "init", "bind", "run", "input", "output", "input_bytes", "output_bytes", "reset", "begin", "feed_rows", "finish",
    "slide", "step",
)  # fmt: skip


def measure_code(plan: Plan, tree: Tree | None, work: Path) -> CodeBytes:
    """Linked bytes of code and its constants at -O2, built in the folder `work`.

    `tree` is the CMSIS-NN that the plan was made for. ToolMissing without a cross compiler, EmulationFailed if a file
    does not compile. For a module that calls no CMSIS-NN the result is cached, which makes a second report ten times
    faster.
    """
    compiler = find_compiler(plan.context.target, "qemu", _OPT)
    module = write_module(plan, work / "module", group_hooks(plan))
    if plan.cmsis_nn_functions:
        return _measured(plan, tree, module, compiler, work)
    known = _place_of(module, compiler)
    found = _read(known)
    if found is None:
        found = _measured(plan, None, module, compiler, work)
        write_cache(" ".join(map(str, found)).encode(), known)
    return found


def link_code(plan: Plan, work: Path) -> tuple[Path, CodeBytes]:
    """ELF file of a module that calls no CMSIS-NN, built in the folder `work`, and its linked bytes. Errors as of
    `measure_code`."""
    compiler = find_compiler(plan.context.target, "qemu", _OPT)
    module = write_module(plan, work / "module", group_hooks(plan))
    code = _measured(plan, None, module, compiler, work)
    return _elf_of(module, work), code


def add_helpers(plan: Plan, tree: Tree | None, module: int | None, work: Path) -> CodeBytes | None:
    """Code bytes of a firmware's module, `module`; None if `module` is None.

    Library functions are counted if --max-flash needs them and a cross compiler measures them."""
    if module is None:
        return None
    if plan.options.max_flash is None:
        return CodeBytes(module, 0)
    try:
        return CodeBytes(module, measure_code(plan, tree, work).helpers)
    except TinyfuseError:
        return CodeBytes(module, 0)


def _place_of(module: ModuleFiles, compiler: Compiler) -> Path:
    """Cache file for the size of this code, compiled with this compiler."""
    digest = hashlib.sha256(repr((compiler.version, compiler.flags, module.name, module.flags, _CALLED)).encode())
    code = module.folder / module.sources[0]
    for file in (code, *sorted(module.folder.glob("*.h"))):
        text = file.read_bytes()
        digest.update(f"\0{file.name}\0{len(text)}\0".encode() + text)
    return cache_folder("code_bytes") / digest.hexdigest()


def _read(known: Path) -> CodeBytes | None:
    try:
        text = known.read_text(encoding="ascii")
    except (OSError, ValueError):
        return None
    parts = text.split(" ")
    whole = len(parts) == 2 and all(part.isdecimal() and len(part) < 10 for part in parts)
    return CodeBytes(*map(int, parts)) if whole else None


def _elf_of(module: ModuleFiles, work: Path) -> Path:
    return work / f"{module.name}.elf"


def _measured(plan: Plan, tree: Tree | None, module: ModuleFiles, compiler: Compiler, work: Path) -> CodeBytes:
    code, _ = module.sources  # the other file has only weights
    own = Unit("module", module.folder / code, ("-std=c99", f"-I{module.folder}", *module.flags))
    functions = tree.closure(plan.cmsis_nn_functions) if tree else []
    units = [own, *(Unit("library", Path(path).resolve(), ("-w",)) for path in functions)]
    objects = compile_units(compiler, units, tree.include_dirs if tree else [], work)
    elf = _elf_of(module, work)
    # Weights, an operating system and functions that firmware supplies (NAME_ethos_u) are not linked: their symbols
    # stay undefined. GNU ld 2.44 reports a branch to one as an error, 2.40 does not; sizes do not depend on it.
    called = [f"-Wl,--undefined={module.name}_{function}" for function in _CALLED]
    unused = ("-Wl,--gc-sections", f"-Wl,-Map={map_of(elf).name}", "-Wl,--entry=0")
    undefined = ("-Wl,--unresolved-symbols=ignore-all", "-Wl,--noinhibit-exec")
    compiler.run([*objects, *_LIBRARIES, *undefined, *called, *unused, "-o", elf], elf.name, work)
    linked = linked_sections(map_of(elf))
    libraries = {path for _, _, path in linked if path not in objects}
    return CodeBytes(*(linked_sizes(map_of(elf), of)[0] for of in (set(objects), libraries)))
