"""Kernels that copy elements: all of them (runtime_c/tinyfuse_copy.h), at regular strides (tinyfuse_strided.h), or at
indexes from tables (tinyfuse_indexed.h)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.methods import of_calls
from tinyfuse.kernels.core.statements import Call, Let, Loop, Statement, c_array, c_loops
from tinyfuse.kernels.counts.common import Counts, byte_counts, piece_counts
from tinyfuse.ops.core.walk import Walk, walk_of
from tinyfuse.ops.movement.mirror_pad import Indexed, indexed_dimensions

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


class Copy(Kernel):
    """Kernel of RESHAPE: copies the input's bytes, unless the planner gave both tensors the same place."""

    name = "tinyfuse_copy"
    headers = ("tinyfuse_copy.h",)
    in_place: tuple[int, ...] = (0,)
    counts = of_calls(byte_counts)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (site.input(0).pointer, site.output.pointer, op.output.bytes)),)


class CopyConstant(Kernel):
    """Kernel of CONSTANT_OUTPUT: copies a constant's bytes to the output."""

    name, headers = Copy.name, Copy.headers

    def counts(self, op: Op, by_row: bool) -> Counts:
        return {"calls": 1, "inputs": op.output.bytes}

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("values", np.ascontiguousarray(op.input.values).reshape(-1).view(np.int8), "int8_t"),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (site.constant("values"), site.output.pointer, op.output.bytes)),)


#: returns, for each dimension of the output, the input index (below 65536) of every output index; None: the same index
Indexes = Callable[[Op], tuple[Array | None, ...]]


class IndexedCopy(Kernel):
    """Kernel that copies by tables of indexes, which `indexes` returns. A call computes the whole output, or one row of
    an image (`by_row`)."""

    headers = ("tinyfuse_indexed.h",)

    def __init__(self, indexes: Indexes, by_row: bool):
        self.indexes, self.by_row, self.whole, self.rings = indexes, by_row, not by_row, by_row
        self.name = "tinyfuse_indexed_row" if by_row else "tinyfuse_indexed_copy"

    def dimensions(self, op: Op) -> list[Indexed]:
        """The output's dimensions with leading ones, four in all."""
        dims = indexed_dimensions(op, self.indexes(op))
        return [Indexed(1, 1, None)] * (4 - len(dims)) + dims

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return tuple(
            Constant(f"index{axis}", dim.index.astype(np.uint16), "uint16_t")
            for axis, dim in enumerate(self.dimensions(op))
            if dim.index is not None
        )

    def counts(self, op: Op, by_row: bool) -> Counts:
        dims, item = self.dimensions(op), ITEM_BYTES[op.output.dtype]
        whole_pixels = dims[3].index is None
        run = item * (dims[3].count if whole_pixels else 1)
        pixels = op.output.elements // dims[3].count
        pieces = pixels if whole_pixels else op.output.elements
        return piece_counts(op.output.shape[1] if by_row else 1, pixels // dims[2].count, pieces, run)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        dims = self.dimensions(op)
        tables, count = [dim.index for dim in dims], [dim.count for dim in dims]
        step, run = [0] * 4, ITEM_BYTES[op.output.dtype]
        size = run
        for axis in reversed(range(4)):
            step[axis] = size
            size *= dims[axis].dim
        if tables[3] is None:  # whole pixels
            run, count[3], step[3] = run * count[3], 1, 0
        symbols = ["NULL" if t is None else site.constant(f"index{i}") for i, t in enumerate(tables)]
        fields = {"count": c_array(count), "step": c_array(step), "index": c_array(symbols), "run": run}
        source = site.input(0)
        place = (source.ring_rows, site.output_row) if self.by_row else ()
        args = ("&p", source.pointer, *place, site.output.pointer)
        return Let("tinyfuse_indexed", "p", fields), Call(self.name, args)
