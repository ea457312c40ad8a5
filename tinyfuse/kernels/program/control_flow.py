"""Kernels of IF and WHILE, which call the functions of other graphs. The arenas of these graphs are in the scratch of
this one.

Values are copied to and from those arenas. Nothing in a graph's arena is needed between two calls, so all graphs that
an operator runs share its scratch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.rows import offset_pointer
from tinyfuse.kernels.core.statements import Branch, Call, Statement, WhileLoop
from tinyfuse.ops.program.control_flow import Calls, InputItself, Program, given_values


class _CallsGraphs(Kernel):
    """Base of the kernels of IF and WHILE, which call the C functions of two graphs."""

    headers = ("tinyfuse_copy.h",)

    def scratch(self, op: Op, context: Context) -> int:
        return max(program.bytes for program in _programs(op))

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """Constant inputs of the operator, and constant outputs of the graphs."""
        given = [(f"input{i}", tensor.values) for i, tensor in enumerate(op.operands) if tensor.is_constant]
        for which, program in enumerate(_programs(op)):
            values = enumerate(program.outputs)
            given += [(f"graph{which}_output{i}", value) for i, value in values if isinstance(value, np.ndarray)]
        flat = ((name, np.ascontiguousarray(data).reshape(-1)) for name, data in given)
        return tuple(Constant(name, data.view(np.uint8), "uint8_t") for name, data in flat)

    def source(self, op: Op, site: CallSite, index: int) -> str:
        """C pointer to input `index` of the operator."""
        access = site.inputs[index]
        return site.constant(f"input{index}") if access is None else access.pointer

    def run(self, op: Op, site: CallSite, which: int, sources: Sequence[str]) -> tuple[Statement, ...]:
        """Statements that copy `sources` to the inputs of a graph and run it. `which`: 0 or 1, the graph."""
        program, number = _programs(op)[which], op.attributes_as(Calls).numbers[which]
        if program.plan is None:
            return ()
        tensors = op.attributes_as(Calls).graphs[which].inputs
        copies = [
            copy_bytes(offset_pointer(site.scratch, offset), source, tensor)
            for offset, source, tensor in zip(program.inputs, sources, tensors, strict=True)
            if offset is not None
        ]
        state = (site.state,) if program.plan.uses_state else ()
        waits = program.plan.awaits  # a run may then end there without a result
        return *copies, Call(site.program(number), (site.scratch, *state), status=site.ok, hands_on=waits)

    def results(self, op: Op, site: CallSite, which: int, sources: Sequence[str]) -> tuple[Statement, ...]:
        """Statements that copy a graph's outputs to the operator's. `sources` were the graph's inputs."""
        copies = []
        for i, (value, access) in enumerate(zip(_programs(op)[which].outputs, site.outputs, strict=True)):
            source = self.result(site, which, i, value, sources)
            if source != access.pointer:
                copies.append(copy_bytes(access.pointer, source, access.tensor))
        return tuple(copies)

    def result(
        self, site: CallSite, which: int, index: int, value: int | Array | InputItself, sources: Sequence[str]
    ) -> str:
        """C pointer to an output of a graph after its run."""
        if isinstance(value, InputItself):
            return sources[value.index]
        if isinstance(value, int):
            return offset_pointer(site.scratch, value)
        return site.constant(f"graph{which}_output{index}")


class If(_CallsGraphs):
    """IF: runs one of two graphs."""

    name, unpredictable = "tinyfuse_if", "a run decides which of its graphs runs"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        sources = [self.source(op, site, i) for i in range(1, len(given_values(op)))]
        then, otherwise = (
            self.run(op, site, which, sources) + self.results(op, site, which, sources) for which in (0, 1)
        )
        unread = [Call("(void)", (source,)) for i, source in enumerate(sources) if not _reads(op, i)]
        return *unread, Branch(f"*({self.source(op, site, 0)})", then, otherwise)


class While(_CallsGraphs):
    """WHILE: runs a condition and a body; the operator's outputs hold the values between iterations."""

    name, unpredictable = "tinyfuse_while", "a run decides how often its graphs run"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        values = [access.pointer for access in site.outputs]
        begin = [
            copy_bytes(access.pointer, self.source(op, site, i), access.tensor) for i, access in enumerate(site.outputs)
        ]
        (going_on,) = _programs(op)[0].outputs
        condition = self.result(site, 0, 0, going_on, values)
        body = self.run(op, site, 1, values) + self.results(op, site, 1, values)
        return *begin, WhileLoop(self.run(op, site, 0, values), f"*({condition})", body)


def _programs(op: Op) -> tuple[Program, ...]:
    return op.attributes_as(Calls).programs


def _reads(op: Op, index: int) -> bool:
    """Tells whether any graph of the operator uses its input `index`."""
    programs = _programs(op)
    handed_on = any(isinstance(value, InputItself) and value.index == index for p in programs for value in p.outputs)
    return handed_on or any(program.inputs[index] is not None for program in programs)


def copy_bytes(target: str, source: str, tensor: Tensor) -> Call:
    """Statement that copies all bytes of a tensor."""
    return Call("memcpy", (target, source, f"{tensor.bytes}u"))
