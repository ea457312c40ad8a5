"""Builds verification firmware from one translation unit: the module, the harness and the checks of its interface.

    firmware = build_at_once(module, inputs, target, "qemu", work)             # what build_firmware gives, but for sizes
    firmware = build_plan(plan, tree, inputs, "host", frames, True, work)      # what build_module gives

`verify` compiles them one by one, and counts the bytes of each; a compiler's start, and the headers that all of them
read, take longer than a module of the tests. The code is the same, file by file.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import native_compiler
import numpy as np
from core_program import FIRMWARE, build_for_core, compiled

from tinyfuse.plan import Plan
from tinyfuse.targets import Target
from tinyfuse.toolchain.cmsis_nn import Tree
from tinyfuse.verify.emulation import Firmware, ModuleFiles
from tinyfuse.verify.emulation.build import Unit, harness_defines
from tinyfuse.verify.emulation.checked_calls import write_entry_points
from tinyfuse.verify.emulation.compilers import find_compiler
from tinyfuse.verify.emulation.interface import interface
from tinyfuse.verify.emulation.module import write_module

#: the module comes first, and sees no other file's names; a check that is defined behind the harness is weak there.
#: `digest`, of the inputs: the text says what the object holds
_SOURCE = """\
{module}
#include "verify.c"
{interface}
__asm__(".pushsection .inputs, \\"aw\\"\\n\\t.balign 16\\n\\t.globl tinyfuse_inputs, tinyfuse_inputs_end\\n"
        "tinyfuse_inputs:\\n\\t.incbin \\"inputs.bin\\"\\ntinyfuse_inputs_end:\\n\\t.popsection\\n"); /* {digest} */
"""
#: `otherwise` is what other_levels.c would say: the header as a file sees it that is compiled the other way
_INTERFACE = """\
#include "interface.c"
const uintptr_t stack_bytes_otherwise = {otherwise};
const struct weights tinyfuse_weights[] = {{
{weights}
    {{NULL, 0, 0, NULL}},
}};
"""


def build_at_once(
    module: ModuleFiles,
    inputs: list[list[np.ndarray]],
    target: Target,
    emulator: str,
    work: Path,
    opt: str = "O0",
    *,
    library: Sequence[Path] = (),
    include_dirs: Sequence[Path] = (),
    frames: int | None = None,
    awaits: bool = False,
    checks: str = "",
) -> Firmware:
    """The firmware of `module`, a few files of C without memory banks, built in the folder `work`, which is there; no
    sizes are known of it. `checks`: the text of those of its interface. Natively by clang, not optimized: the
    sanitizers' checks are many. The rest as in build_firmware."""
    assert not module.banks and not module.parts
    folder, here = work.resolve(), emulator == "host"
    fed = inputs if len(inputs) > 1 else inputs * 2  # the second run is timed
    data = b"".join(array.tobytes() for run in fed for array in run)
    (folder / "inputs.bin").write_bytes(data)
    source = folder / f"{module.name}_firmware_weights.c"
    checked = emulator != "host"
    write_entry_points(folder, (module.folder / f"{module.name}.h").read_text(), module.name, checked)
    included, digest = (f'#include "{name}"' for name in module.sources), hashlib.sha256(data).hexdigest()
    source.write_text(_SOURCE.format(module="\n".join(included), interface=checks, digest=digest))
    flags = [
        *(*module.flags, f"-I{module.folder.resolve()}", f"-I{folder}", *harness_defines(module, fed, frames)),
        *(["-DAWAITS"] if awaits else []),
    ]
    found = find_compiler(target, emulator, opt, native_compiler.COMPILER if here else "gcc")
    if here:
        compiler = replace(found, opt="O0", flags=native_compiler.quickly(found.flags))
        port = Unit("port", FIRMWARE / "port_host.c", ("-std=gnu99", *(["-DFRAMES"] if frames is not None else [])))
        elf = folder / "program"
        compiler.run([*compiled(compiler, source, flags, port, folder), "-lm", "-o", elf], elf.name, folder)
    else:
        library = [*library, FIRMWARE / "checked_calls.c"]
        elf = build_for_core(source, flags, target, opt, folder, library, include_dirs, frames is not None)
    return Firmware(elf, target, emulator, len(inputs), found.version, opt)


def takes(plan: Plan) -> bool:
    """Tells whether the module is plain C without fixed memory places."""
    return not (plan.memory or plan.arena_parts or plan.options.weights_blob)


def build_plan(
    plan: Plan, tree: Tree | None, inputs: list[list[np.ndarray]], emulator: str, frames: int, checked: bool, work: Path
) -> Firmware:
    """The firmware of a plan that `takes` accepts, not optimized; `checked`: with checks of its interface."""
    module = write_module(plan, work / "module", ("-DTINYFUSE_ANY_CPU",) if emulator == "host" else ())
    return build_at_once(
        module, inputs, plan.context.target, emulator, work,
        library=tree.closure(plan.cmsis_nn_functions) if tree else [], include_dirs=tree.include_dirs if tree else [],
        frames=frames if plan.states else None, awaits=plan.awaits,
        checks=_checks(plan, module, work) if checked else "",
    )  # fmt: skip


def _checks(plan: Plan, module: ModuleFiles, work: Path) -> str:
    """Source text of the interface checks from their generated file."""
    checks = interface(plan)
    (work / "interface.c").write_text(checks.source, encoding="utf-8")
    stack = rf"#if defined\(__OPTIMIZE__\)\n#define {module.prefix}_STACK_BYTES (\d+)\n#else\n"
    (otherwise,) = re.findall(stack, (module.folder / f"{module.name}.h").read_text())
    rows = [
        f'    {{(const uint8_t *)(const void *)&{symbol}, {len(data)}u, {zlib.crc32(data):#x}u, "{symbol}"}},'
        for symbol, data in checks.weights.items()
    ]
    return _INTERFACE.format(otherwise=otherwise, weights="\n".join(rows))
