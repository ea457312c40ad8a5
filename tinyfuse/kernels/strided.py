"""Our kernel of operators that move elements by steps (runtime_c/tinyfuse_strided.h)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.base import Call, CallSite, Context, Kernel, Let, Statement
from tinyfuse.ops.walk import Walk, walk_of

#: loops of the C
NEST = 5


class StridedCopy(Kernel):
    """One call an output; `views(op, data)` gives the views of input `source`."""

    name = "tinyfuse_strided_copy"
    headers = ("tinyfuse_strided.h",)

    def __init__(self, source: int, views: Callable[[Op, Array], tuple[Array, ...]]):
        self.source, self.views = source, views

    def walks(self, op: Op) -> tuple[Walk, ...]:
        """The walk of every output."""
        tensor = op.operand(self.source)
        data = np.empty(tensor.shape, tensor.dtype)  # its memory is never touched
        return tuple(walk_of(view, data) for view in self.views(op, data))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        for i, (walk, output) in enumerate(zip(self.walks(op), site.outputs, strict=True)):
            name = "walk" if len(site.outputs) == 1 else f"walk{i}"
            statements += strided_copy(walk, name, site.input(self.source).pointer, output.pointer)
        return tuple(statements)


def strided_copy(walk: Walk, name: str, source: str, target: str) -> tuple[Statement, ...]:
    """The C that copies what `walk` finds from `source` on to `target`; `name` is for its variable."""
    fill = NEST - len(walk.dims)
    fields = {
        "dim": _array((1,) * fill + walk.dims),
        "step": _array((0,) * fill + walk.steps),
        "run": walk.run,
    }
    args = (f"&{name}", f"(const uint8_t *){source} + {walk.start}", target)
    return Let("tinyfuse_strided", name, fields), Call(StridedCopy.name, args)


def _array(values: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"
