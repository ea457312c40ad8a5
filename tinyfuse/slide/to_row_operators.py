"""Replaces operators that only move elements by a few that go by rows: slices, concatenations and reshapes.

before   %a[1,H,W,2], %b[1,H,W,2] = SPLIT(%x[1,H,W,4], axis 3);  %p[1,H,2,C] = PACK(%u[1,H,C], %v[1,H,C], axis 2)
after    %a = SLICE(%x);  %b = SLICE(%x);  %p = CONCATENATION(RESHAPE(%u), RESHAPE(%v))

SPLIT, SPLIT_V, UNPACK and STRIDED_SLICE without strides become one SLICE per output. A TRANSPOSE that only moves
dimensions of size 1 moves no byte, and becomes a RESHAPE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tinyfuse.ir import Array, Graph, Op
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.movement import Movement
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.ops.movement.pack import Pack
from tinyfuse.ops.movement.slice import slice_of

#: most dimensions of a SLICE
_MOST_DIMENSIONS = 5


def to_row_operators(graph: Graph) -> Graph:
    """Graph in which operators that only move elements are replaced by slices, concatenations and reshapes, which can
    run by rows."""
    return replace(graph, ops=tuple(made for op in graph.ops for made in _instead(op)))


def _instead(op: Op) -> list[Op]:
    if isinstance(op.attributes, Pack):
        return list(_packed(op, op.attributes.axis % len(op.output.shape)))
    family = FAMILIES[op.kind]
    if not isinstance(family, Movement):
        return [op]
    data = np.empty(op.operand(family.data_input).shape, np.int8)  # its memory is never touched
    made = [_taken(op, number, view, data) for number, view in enumerate(family.views(op, data))]
    return [op] if [] in made else [one for taken in made for one in taken]


def _taken(op: Op, number: int, view: Array, data: Array) -> list[Op]:
    """Operators that compute a single output of `op`, which only moves elements; empty if that output is no slice."""
    source, output = op.operand(FAMILIES[op.kind].moves(op)[0]), op.outputs[number]
    if view.size == data.size and view.flags.c_contiguous:
        return [Op("RESHAPE", (source,), (output,), index=op.index)]
    steps = zip(view.shape, view.strides, data.strides, strict=False)
    if view.ndim != data.ndim or data.ndim > _MOST_DIMENSIONS or any(n > 1 and a != b for n, a, b in steps):
        return []
    start = view.__array_interface__["data"][0] - data.__array_interface__["data"][0]
    begin = [int(index) for index in np.unravel_index(start, data.shape)]
    if output.shape == view.shape:
        return [slice_of(source, begin, output, op.index)]
    taken = replace(output, name=f"{output.name} (slice)", shape=view.shape, index=-1)
    return [slice_of(source, begin, taken, op.index), Op("RESHAPE", (taken,), (output,), index=op.index)]


def _packed(op: Op, axis: int) -> Iterator[Op]:
    parts = []
    for tensor in op.operands:
        shape = (*tensor.shape[:axis], 1, *tensor.shape[axis:])
        part = replace(op.output, name=f"{tensor.name} (packed)", shape=shape, index=-1)
        yield Op("RESHAPE", (tensor,), (part,), index=op.index)
        parts.append(part)
    yield Op("CONCATENATION", tuple(parts), op.outputs, Concatenation(axis), index=op.index)
