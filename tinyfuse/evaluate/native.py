"""The module compiled for this machine, with optimization and without sanitizers, and run on files of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tinyfuse.errors import EmulationFailed, UsageError
from tinyfuse.ir import Array
from tinyfuse.plan import Plan
from tinyfuse.verify.emulation.build import Unit, compile_units
from tinyfuse.verify.emulation.compilers import find_native_compiler
from tinyfuse.verify.emulation.module import write_module
from tinyfuse.verify.emulation.process import run_limited
from tinyfuse.verify.runnable import check_runs_here

_PROGRAM = Path(__file__).with_name("native.c")
#: its exit code where a sample had no result
_NO_RESULT = 4


class NativeModule:
    """A plan's module as a program of this machine. Its folder `work` must outlive it."""

    def __init__(self, plan: Plan, calls: int, compiler: str, opt: str, timeout: float, work: Path):
        """Builds the program for samples of `calls` calls each. ToolMissing without the compiler, EmulationFailed if it
        fails, CompileError if only other hardware can run the model."""
        check_runs_here(plan.source)
        self._plan, self._timeout, self._work = plan, timeout, work
        self._calls, self._batches = calls, 0
        found = find_native_compiler(opt, compiler)
        self.emulator, self.compiler, self.compiler_opt = "host", found.version, found.opt
        name = plan.options.name
        staged = (f"-D{name.upper()}_STAGE",) if plan.memory and plan.memory.copied else ()
        module = write_module(plan, work / "module", ("-DTINYFUSE_ANY_CPU", *staged))
        # ISO C: no contraction of float operations
        own = ("-std=c99", "-w", f"-I{module.folder}", *module.flags)
        program = (
            *("-std=gnu99", "-Wall", "-Wextra", "-Werror", f"-I{module.folder}", *module.flags),
            *(f'-DMODULE_HEADER="{name}.h"', f"-DMODULE_NAME={name}", f"-DMODULE_PREFIX={module.prefix}"),
            *(f"-DCALLS={calls}", *(["-DAWAITS"] if plan.awaits else [])),
        )
        units = [Unit("module", module.folder / source, own) for source in module.sources]
        build = work / "build"
        build.mkdir()
        objects = compile_units(found, [*units, Unit("harness", _PROGRAM, program)], [], build)
        self._program = build / name
        found.run([*objects, "-lm", "-o", self._program], name, build)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs [samples, *shape] of each sample's last call, for inputs [samples, calls, ...], in the model's
        order. UsageError where a sample has no result; EmulationFailed where the program fails."""
        self._batches += 1
        given, made = (self._work / f"{self._batches}.{ending}" for ending in ("in", "out"))
        samples = len(inputs[0])
        rows = [np.ascontiguousarray(a).view(np.uint8).reshape(samples, self._calls, -1) for a in inputs]
        with open(given, "wb") as file:
            (rows[0] if len(rows) == 1 else np.concatenate(rows, axis=2)).tofile(file)
        code, said = run_limited([self._program, given, made], self._timeout)
        if code == _NO_RESULT:
            raise UsageError(
                f"{said.strip()}: the model waits for more frames than a sample has; give more, as "
                "[samples, frames, ...]"
            )
        if code != 0:
            raise EmulationFailed(f"the module's run ended with code {code}: {said.strip()[-400:]}")
        outputs = split_outputs(self._plan, np.fromfile(made, np.uint8), samples)
        given.unlink()
        made.unlink()
        return outputs


def split_outputs(plan: Plan, data: Array, samples: int) -> list[Array]:
    """Splits the bytes of all outputs, sample by sample, into arrays [samples, *shape]."""
    tensors = plan.source.outputs
    size = sum(tensor.bytes for tensor in tensors)
    if data.size != samples * size:
        raise EmulationFailed(f"the module's run gave {data.size:,} bytes of outputs, not {samples * size:,}")
    table, start, found = data.reshape(samples, size), 0, []
    for tensor in tensors:
        part = np.ascontiguousarray(table[:, start : start + tensor.bytes])
        found.append(part.view(tensor.dtype).reshape(samples, *tensor.shape))
        start += tensor.bytes
    return found
