"""Kernels of operators that read or write elements at computed indexes: GATHER_ND, EMBEDDING_LOOKUP,
DYNAMIC_UPDATE_SLICE and UPDATE_STATE, SLICE_AT, BROADCAST_ARGS, SCATTER_ND, ONE_HOT, REVERSE_SEQUENCE (one header of
runtime_c/ each)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Op, Tensor
from tinyfuse.kernels.core.c_types import CTYPE
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.statements import Call, Let, Statement, c_array
from tinyfuse.kernels.counts.common import Counts, piece_counts
from tinyfuse.ops.movement.dynamic_update_slice import MOST_DIMENSIONS
from tinyfuse.ops.movement.gather_nd import MOST_INDEXES, places_in
from tinyfuse.ops.movement.one_hot import one_hot_axis
from tinyfuse.ops.movement.reverse_sequence import Sequences
from tinyfuse.ops.movement.slice_at import first_begins, last_begins
from tinyfuse.ops.movement.update_state import UpdateState

#: dtype -> suffix of the C function that adds its elements; wrapping sums are the same for signed and unsigned ones
_SUMS = {"bool": "bool", "int8": "s8", "uint8": "s8", "int32": "s32", "int64": "s64", "float32": "f32"}


class IndexKernel(Kernel):
    """Base of kernels whose inputs may be constants: input `i` is then the constant `input{i}`."""

    #: indexes of inputs that the C reads as numbers, not as bytes
    numbers: tuple[int, ...] = ()
    #: indexes of inputs that the C does not read, because the output's shape has their values
    shapes: tuple[int, ...] = ()

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        found = []
        for i, tensor in enumerate(op.operands):
            if tensor.is_constant and i not in self.shapes:
                values = np.ascontiguousarray(tensor.values).reshape(-1)
                number = i in self.numbers
                ctype = CTYPE[tensor.dtype] if number else "int8_t"
                found.append(Constant(f"input{i}", values if number else values.view(np.int8), ctype))
        return tuple(found)

    def pointers(self, site: CallSite) -> tuple[str, ...]:
        """C pointers to the inputs that the C reads."""
        return tuple(
            site.constant(f"input{i}") if access is None else access.pointer
            for i, access in enumerate(site.inputs)
            if i not in self.shapes
        )


class GatherNd(IndexKernel):
    """GATHER_ND. A slice outside the data ends the run with an error."""

    name = "tinyfuse_gather_nd"
    headers = ("tinyfuse_gather_nd.h",)
    numbers = (1,)

    def counts(self, op: Op, by_row: bool) -> Counts:
        places = places_in(op.input.shape, op.operand(1))
        return piece_counts(1, places.count * places.indexes, places.count, places.slice * ITEM_BYTES[op.input.dtype])

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        places, item = places_in(op.input.shape, op.operand(1)), ITEM_BYTES[op.input.dtype]
        fields = {
            "count": places.count, "depth": places.indexes, "bytes": places.slice * item, "size": op.input.bytes,
            "step": c_array([step * item for step in places.steps], MOST_INDEXES),
        }  # fmt: skip
        args = ("&p", *self.pointers(site), site.output.pointer)
        return Let("tinyfuse_gathering_nd", "p", fields), Call(self.name, args, status="0")


class EmbeddingLookup(IndexKernel):
    """EMBEDDING_LOOKUP in a table of the output's dtype, which is a GATHER. An index outside the table ends the run
    with an error."""

    name = "tinyfuse_gather"
    headers = ("tinyfuse_gather.h",)
    numbers = (0,)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.operand(1).dtype == op.output.dtype

    def counts(self, op: Op, by_row: bool) -> Counts:
        return piece_counts(1, 1, op.input.elements, op.output.bytes // op.input.elements)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        table = op.operand(1)
        rows = table.shape[0]
        fields = {"batches": 1, "outer": 1, "slices": rows, "bytes": table.bytes // rows, "indexes": op.input.elements}
        indexes, data = self.pointers(site)
        args = ("&p", data, indexes, site.output.pointer)
        return Let("tinyfuse_gathering", "p", fields), Call(self.name, args, status="0")


class EmbeddingLookupF32(IndexKernel):
    """EMBEDDING_LOOKUP of floats in a table of int8. An index outside the table ends the run with an error."""

    name = "tinyfuse_embedding_lookup_s8_f32"
    headers = ("tinyfuse_embedding_lookup.h",)
    numbers = (0,)

    def accepts(self, op: Op, context: Context) -> bool:
        return (op.operand(1).dtype, op.output.dtype) == ("int8", "float32")

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        table = op.operand(1)
        rows = table.shape[0]
        fields = {"rows": rows, "columns": table.elements // rows, "indexes": op.input.elements, "scale": table.scale}
        args = ("&p", *self.pointers(site), site.output.pointer)
        return Let("tinyfuse_embedding", "p", fields), Call(self.name, args, status="0")


@dataclass(frozen=True)
class _Update:
    """Part of a tensor that an update writes.

    starts  (dimension, greatest start, bytes of a step) for each dimension whose start may be other than 0
    loops   (count, bytes from one to the next) for the loops over contiguous runs, innermost first
    run     bytes of a run
    """

    starts: tuple[tuple[int, int, int], ...]
    loops: tuple[tuple[int, int], ...]
    run: int

    @property
    def pieces(self) -> int:
        """Number of runs."""
        return prod(count for count, _ in self.loops)

    def params(self, starts: Tensor, size: int) -> Let:
        """Definition of the C's parameters. `starts`: tensor of the starts; `size`: bytes of the tensor that is
        updated."""
        last_loop, last_start = MOST_DIMENSIONS - 1, MOST_DIMENSIONS
        at, last, step = ([each[i] for each in self.starts] for i in range(3))
        count, stride = ([each[i] for each in self.loops] for i in range(2))
        fields = {
            "bytes": size, "wide": int(starts.dtype == "int64"), "starts": len(at), "loops": len(count),
            "run": self.run, "at": c_array(at, last_start), "last": c_array(last, last_start),
            "step": c_array(step, last_start), "count": c_array(count, last_loop),
            "stride": c_array(stride, last_loop),
        }  # fmt: skip
        return Let("tinyfuse_updating", "p", fields)


def _part_written(shape: Sequence[int], update: Tensor) -> _Update:
    """Part of a tensor of this shape that `update` writes. Dimensions of size one need no loop, and a dimension that
    the update fills is contiguous with the ones inside it."""
    item = ITEM_BYTES[update.dtype]
    steps = [item * prod(shape[d + 1 :]) for d in range(len(shape))]
    dims = list(zip(shape, update.shape, steps, strict=True))
    starts = tuple((d, dim - part, step) for d, (dim, part, step) in enumerate(dims) if dim > part)
    run, loops, together = item if update.elements else 0, [], True
    for dim, part, step in reversed(dims):
        if together:
            run *= part
        elif part > 1:
            loops.append((part, step))
        together = together and part == dim
    return _Update(starts, tuple(loops), run)


class UpdateSlice(IndexKernel):
    """DYNAMIC_UPDATE_SLICE. The output may overwrite the tensor that it changes."""

    name = "tinyfuse_update_slice"
    headers = ("tinyfuse_update_slice.h",)
    numbers = (2,)
    in_place = (0,)

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Counts of a call that copies the tensor, whose bytes are "inputs"."""
        return {**_update_counts(op, op.input.shape), **self.copied(op)}

    def copied(self, op: Op) -> Counts:
        return {"inputs": op.input.bytes}

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        return _code_path(op, op.input.shape)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        params = _part_written(op.input.shape, op.operand(1)).params(op.operand(2), op.input.bytes)
        return params, Call(self.name, ("&p", *self.pointers(site), site.output.pointer))


class UpdateStateSlice(IndexKernel):
    """Kernel of UPDATE_STATE: writes only the updated part of the state."""

    name = "tinyfuse_update_state"
    headers = ("tinyfuse_update_slice.h",)
    numbers = (2,)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _update_counts(op, op.attributes_as(UpdateState).shape)

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        return _code_path(op, op.attributes_as(UpdateState).shape)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        params = _part_written(op.attributes_as(UpdateState).shape, op.operand(1)).params(op.operand(2), op.input.bytes)
        state, update, starts = self.pointers(site)
        return params, Call(self.name, ("&p", update, starts, state))


def _update_counts(op: Op, shape: Sequence[int]) -> Counts:
    """Counts of writing an update into a tensor of this shape."""
    update = _part_written(shape, op.operand(1))
    return piece_counts(1, len(update.starts), update.pieces, update.run)


def _code_path(op: Op, shape: Sequence[int]) -> str:
    """Name of the code that a call runs: updates of several contiguous runs of elements call a shared function."""
    return "runs" if _part_written(shape, op.operand(1)).loops else ""


class BroadcastArgs(IndexKernel):
    """BROADCAST_ARGS. Shapes that do not broadcast end the run with an error."""

    name = "tinyfuse_broadcast_shapes"
    headers = ("tinyfuse_broadcast_shapes.h",)
    numbers = (0, 1)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        lengths = (op.input.elements, op.operand(1).elements)
        name = f"{self.name}_{'s64' if op.output.dtype == 'int64' else 's32'}"
        return (Call(name, (*self.pointers(site), site.output.pointer, *lengths), status="0"),)


class SliceAt(IndexKernel):
    """SLICE_AT. A slice that reaches outside the data ends the run with an error."""

    name = "tinyfuse_slice_at"
    headers = ("tinyfuse_slice_at.h",)
    numbers = (1,)

    def counts(self, op: Op, by_row: bool) -> Counts:
        run = op.output.shape[-1]
        return piece_counts(1, 0, op.output.elements // run, run * ITEM_BYTES[op.output.dtype])

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        shape = op.input.shape
        steps = [ITEM_BYTES[op.input.dtype] * prod(shape[d + 1 :]) for d in range(len(shape))]
        fields = {
            "rank": len(shape), "wide": int(op.operand(1).dtype == "int64"),
            "first": c_array(first_begins(op), 5), "last": c_array(last_begins(op.input, op.output), 5),
            "step": c_array(steps, 5),
            "dim": c_array(op.output.shape, 5),
        }  # fmt: skip
        args = ("&p", *self.pointers(site), site.output.pointer)
        return Let("tinyfuse_slicing", "p", fields), Call(self.name, args, status="0")


class ScatterNd(IndexKernel):
    """SCATTER_ND of one dtype. A slice outside the output ends the run with an error."""

    headers = ("tinyfuse_scatter_nd.h",)
    numbers, shapes = (0,), (2,)

    def __init__(self, dtype: str):
        self.dtype, self.name = dtype, f"tinyfuse_scatter_nd_{_SUMS[dtype]}"

    def accepts(self, op: Op, context: Context) -> bool:
        return op.output.dtype == self.dtype

    def counts(self, op: Op, by_row: bool) -> Counts:
        places = places_in(op.output.shape, op.input)
        return {
            "calls": 1, "slices": places.count, "indexes": places.count * places.indexes,
            "inputs": places.count * places.slice, "outputs": op.output.bytes,
        }  # fmt: skip

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        places = places_in(op.output.shape, op.input)
        fields = {
            "count": places.count, "depth": places.indexes, "slice": places.slice, "bytes": op.output.bytes,
            "dim": c_array(op.output.shape[: places.indexes], MOST_INDEXES),
            "step": c_array(places.steps, MOST_INDEXES),
        }  # fmt: skip
        args = ("&p", *self.pointers(site), site.output.pointer)
        return Let("tinyfuse_scattering", "p", fields), Call(self.name, args, status="0")


class OneHot(IndexKernel):
    """Kernel of ONE_HOT."""

    name = "tinyfuse_one_hot"
    headers = ("tinyfuse_one_hot.h",)
    numbers, shapes = (0,), (1,)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return {"calls": 1, "indexes": op.input.elements, "outputs": op.output.elements}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        shape, axis = op.output.shape, one_hot_axis(op)
        fields = {
            "outer": prod(shape[:axis]), "depth": shape[axis], "inner": prod(shape[axis + 1 :]),
            "bytes": ITEM_BYTES[op.output.dtype], "wide": int(op.input.dtype == "int64"),
        }  # fmt: skip
        args = ("&p", *self.pointers(site), site.output.pointer)
        return Let("tinyfuse_vectors", "p", fields), Call(self.name, args)


class ReverseSequence(IndexKernel):
    """REVERSE_SEQUENCE. A length greater than the sequence's ends the run with an error."""

    name = "tinyfuse_reverse_sequence"
    headers = ("tinyfuse_reverse_sequence.h",)
    numbers = (1,)

    def counts(self, op: Op, by_row: bool) -> Counts:
        a = op.attributes_as(Sequences)
        pieces = prod(op.input.shape[: max(a.seq_dim, a.batch_dim) + 1])
        return piece_counts(1, 0, pieces, op.input.bytes // pieces)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        shape, a = op.input.shape, op.attributes_as(Sequences)
        first, second = sorted((a.seq_dim, a.batch_dim))
        dims = (prod(shape[:first]), shape[first], prod(shape[first + 1 : second]), shape[second])
        fields = {
            "dim": c_array(dims, 4), "bytes": prod(shape[second + 1 :]) * ITEM_BYTES[op.input.dtype],
            "along": 1 if a.seq_dim == first else 3, "wide": int(op.operand(1).dtype == "int64"),
        }  # fmt: skip
        args = ("&p", *self.pointers(site), site.output.pointer)
        return Let("tinyfuse_sequences", "p", fields), Call(self.name, args, status="0")


def scatter_kernels() -> tuple[Kernel, ...]:
    """Kernels of SCATTER_ND, one for each dtype."""
    return tuple(map(ScatterNd, _SUMS))
