"""Kernel of operators that copy elements at regular strides (runtime_c/tinyfuse_strided.h)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.statements import Call, Let, Loop, Statement, c_loops
from tinyfuse.kernels.counts.common import Counts, piece_counts
from tinyfuse.ops.core.walk import Walk, walk_of

#: number of nested loops in the C
NEST = 5


class StridedCopy(Kernel):
    """Kernel of an operator whose outputs are strided views of its input `source`. It makes one call per output.
    `views(op, data)` returns the outputs as numpy views of `data`, the input's array."""

    name = "tinyfuse_strided_copy"
    headers = ("tinyfuse_strided.h",)

    def __init__(self, source: int, views: Callable[[Op, Array], tuple[Array, ...]]):
        self.source, self.views = source, views

    def walks(self, op: Op) -> tuple[Walk, ...]:
        """Walk through the input for each output."""
        tensor = op.operand(self.source)
        data = np.empty(tensor.shape, tensor.dtype)  # only addresses and strides are used
        return tuple(walk_of(view, data) for view in self.views(op, data))

    def counts(self, op: Op, by_row: bool) -> Counts:
        total: dict[str, float] = {}
        for walk in self.walks(op):
            calls, lines = prod(walk.dims[:-NEST]), prod(walk.dims[:-1])
            for name, count in piece_counts(calls, lines, prod(walk.dims), walk.run).items():
                total[name] = total.get(name, 0) + count
        return total

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        for i, (walk, output) in enumerate(zip(self.walks(op), site.outputs, strict=True)):
            name = "walk" if len(site.outputs) == 1 else f"walk{i}"
            statements += strided_copy(walk, name, site.input(self.source).pointer, output.pointer)
        return tuple(statements)


def strided_copy(walk: Walk, name: str, source: str, target: str) -> tuple[Statement, ...]:
    """Statements that copy the elements of `walk` from `source` to `target`. `name` is the name of the parameters'
    variable. If the walk has more loops than the C, the outermost surround the call."""
    outer = max(0, len(walk.dims) - NEST)
    fields = {
        "dim": c_loops(walk.dims[outer:], NEST, 1),
        "step": c_loops(walk.steps[outer:], NEST, 0),
        "run": walk.run,
    }
    source, size = f"(const uint8_t *){source} + {walk.start}", walk.run * prod(walk.dims[outer:])
    if outer:
        target = f"(uint8_t *){target}"
    loops: list[tuple[str, int]] = []
    for depth in reversed(range(outer)):
        counter = f"i{depth}"
        source, target = f"{source} + {counter} * {walk.steps[depth]}", f"{target} + {counter} * {size}"
        loops.append((counter, walk.dims[depth]))
        size *= walk.dims[depth]
    body: tuple[Statement, ...] = (Call(StridedCopy.name, (f"&{name}", source, target)),)
    for counter, count in loops:
        body = (Loop(counter, count, body),)
    return Let("tinyfuse_strided", name, fields), *body
