"""Our kernel of operators that move elements by steps (runtime_c/tinyfuse_strided.h)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.ops.base import Call, Context, Kernel, Let, Site, Statement

#: loops of the C
NEST = 5


@dataclass(frozen=True)
class Walk:
    """Where the bytes of an output lie in its source, in order: pieces of `run` bytes at `start` plus
    a step for every loop; `extents` and `steps` (in bytes) are those of the loops, outermost first."""

    start: int
    extents: tuple[int, ...]
    steps: tuple[int, ...]
    run: int

    @property
    def in_order(self) -> bool:
        """Whether the output is one piece of the source."""
        return not self.extents


def walk_of(view: np.ndarray, data: np.ndarray) -> Walk:
    """The walk over `data` (contiguous) that `view`, a numpy view of it, describes: with as few loops
    and as long pieces as there can be."""
    start = view.__array_interface__["data"][0] - data.__array_interface__["data"][0]
    run = view.itemsize
    loops: list[tuple[int, int]] = []
    for extent, step in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if extent == 1:
            continue
        if not loops and step == run:
            run *= extent
        elif loops and step == loops[-1][0] * loops[-1][1]:
            loops[-1] = (loops[-1][0] * extent, loops[-1][1])
        else:
            loops.append((extent, step))
    loops.reverse()
    return Walk(start, tuple(e for e, _ in loops), tuple(s for _, s in loops), run)


class StridedCopy(Kernel):
    """One call an output; `views(op, data)` gives the views of input `source`."""

    name = "tinyfuse_strided_copy"
    headers = ("tinyfuse_strided.h",)

    def __init__(self, source: int, views: Callable[[Op, np.ndarray], tuple[np.ndarray, ...]]):
        self.source, self.views = source, views

    def walks(self, op: Op) -> tuple[Walk, ...]:
        """The walk of every output."""
        tensor = op.inputs[self.source]
        data = np.empty(tensor.shape, tensor.dtype)  # its memory is never touched
        return tuple(walk_of(view, data) for view in self.views(op, data))

    def call(self, op: Op, site: Site, context: Context) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        for i, (walk, output) in enumerate(zip(self.walks(op), site.outputs, strict=True)):
            name = "walk" if len(site.outputs) == 1 else f"walk{i}"
            statements += strided_copy(walk, name, site.inputs[self.source].pointer, output.pointer)
        return tuple(statements)


def strided_copy(walk: Walk, name: str, source: str, target: str) -> tuple[Statement, ...]:
    """The C that copies what `walk` finds from `source` on to `target`; `name` is for its variable."""
    fill = NEST - len(walk.extents)
    fields = {
        "extent": _array((1,) * fill + walk.extents),
        "step": _array((0,) * fill + walk.steps),
        "run": walk.run,
    }
    args = (f"&{name}", f"(const uint8_t *){source} + {walk.start}", target)
    return Let("tinyfuse_strided", name, fields), Call(StridedCopy.name, args)


def _array(values: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"
