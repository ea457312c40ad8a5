"""The module on an emulated core, in firmware that `verify` builds too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tinyfuse.errors import EmulationFailed, UsageError
from tinyfuse.evaluate.native import split_outputs
from tinyfuse.ir import Array
from tinyfuse.plan import Plan
from tinyfuse.toolchain.cmsis_nn import Tree
from tinyfuse.verify.comparison import problems
from tinyfuse.verify.emulation import Emulator
from tinyfuse.verify.emulation.module import build_module
from tinyfuse.verify.streams import INSTANCES, join_streams

#: bytes of inputs that one firmware has: every board has more memory
_INPUT_BYTES = 1 << 20
#: inferences of one firmware: their outputs come as text
_MOST_RUNS = 1 << 12


class EmulatedModule:
    """A plan's module on an emulated core. Its folder `work` must outlive it."""

    def __init__(
        self, plan: Plan, tree: Tree | None, machine: Emulator, calls: int, compiler: str, opt: str, timeout: float,
        work: Path,
    ):  # fmt: skip
        if plan.awaits and plan.source.window is None:
            raise UsageError("this model does not give a result in every run, so it needs --emulator host")
        self._plan, self._tree, self._machine, self._calls = plan, tree, machine, calls
        self._given, self._opt, self._timeout, self._work, self._built = compiler, opt, timeout, work, 0
        self.emulator, self.compiler, self.compiler_opt = f"{machine.name} {machine.version}".strip(), compiler, opt

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs of each sample's last call, in the form of NativeModule.run. Raises what `Module.run` raises."""
        sample_bytes = sum(array[0].nbytes for array in inputs)
        size = max(1, min(_INPUT_BYTES // sample_bytes, _MOST_RUNS // self._calls))
        parts = [
            self._run_some([array[start : start + size] for array in inputs])
            for start in range(0, len(inputs[0]), size)
        ]
        return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]

    def _run_some(self, inputs: Sequence[Array]) -> list[Array]:
        samples = len(inputs[0])
        streams = [
            [[np.ascontiguousarray(array[sample, call]) for array in inputs] for call in range(self._calls)]
            for sample in range(samples)
        ]
        has_state = bool(self._plan.states)
        if has_state and samples % INSTANCES:  # the firmware has instances that take turns
            streams.append(streams[-1])
        runs = join_streams(streams, self._calls if has_state else None)
        self._built += 1
        firmware = build_module(
            self._plan, self._tree, runs, self._machine.name, self._opt, self._work / str(self._built),
            self._calls if has_state else 1, debug=False, compiled_by=self._given,
        )  # fmt: skip
        self.compiler, self.compiler_opt = firmware.compiler, firmware.opt
        outcome = self._machine.run(firmware, self._timeout)
        broken = problems(self._plan, firmware, outcome)
        if broken:
            raise EmulationFailed("\n".join(broken))
        numbers = join_streams([[(sample, call) for call in range(self._calls)] for sample in range(len(streams))],
                       self._calls if has_state else None)  # fmt: skip
        last = {
            sample: b"".join(outputs)
            for (sample, call), outputs in zip(numbers, outcome.outputs, strict=True)
            if call == self._calls - 1
        }
        data = b"".join(last[sample] for sample in range(samples))
        return split_outputs(self._plan, np.frombuffer(data, np.uint8), samples)
