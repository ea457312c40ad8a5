"""How many bytes of code a plan's module takes once it is linked: without inputs, harness or a board's memories, so
in a fraction of the time that firmware takes."""

from __future__ import annotations

from pathlib import Path

from tinyfuse.plan import Plan
from tinyfuse.toolchain.cmsis_nn import Tree
from tinyfuse.verify.emulation.build import Unit, compile_units, linked_sizes, map_of
from tinyfuse.verify.emulation.compilers import find_compiler
from tinyfuse.verify.emulation.module import group_hooks, write_module

_OPT = "O2"

#: the module's functions that firmware calls, as firmware/verify.c does; it has some of them only with a state, with
#: --feed-rows or --slide. What none of them needs, the linker drops.
_CALLED = (
    *(
        "init",
        "run",
        "input",
        "output",
        "input_bytes",
        "output_bytes",
        "reset",
        "begin",
        "feed_rows",
        "finish",
        "slide",
    ),
)


def measured_code_bytes(plan: Plan, tree: Tree | None, work: Path) -> int:
    """Linked bytes of code and its constants at -O2, of the module and of what it calls of CMSIS-NN; built in the
    folder `work`. `tree` is the CMSIS-NN that the plan was made for. ToolMissing without a cross compiler,
    EmulationFailed where a file does not compile."""
    compiler = find_compiler(plan.context.target, "qemu", _OPT)
    module = write_module(plan, work / "module", group_hooks(plan))
    code, _ = module.sources  # the weights have none
    own = Unit("module", module.folder / code, ("-std=c99", f"-I{module.folder}", *module.flags))
    functions = tree.closure(plan.cmsis_nn_functions) if tree else []
    units = [own, *(Unit("library", Path(path).resolve(), ("-w",)) for path in functions)]
    objects = compile_units(compiler, units, tree.include_dirs if tree else [], work)
    elf = work / f"{module.name}.elf"
    # of the weights and the C library nothing is needed but that they are called: undefined symbols may stay
    called = [f"-Wl,--undefined={module.name}_{function}" for function in _CALLED]
    unused = ("-Wl,--gc-sections", f"-Wl,-Map={map_of(elf).name}", "-Wl,--entry=0")
    compiler.run(
        [*objects, "-nostdlib", "-Wl,--unresolved-symbols=ignore-all", *called, *unused, "-o", elf], elf.name, work
    )
    return linked_sizes(map_of(elf), set(objects))[0]
