"""Kernels of operators that read or write elements at computed indexes: GATHER and EMBEDDING_LOOKUP, GATHER_ND,
DYNAMIC_UPDATE_SLICE and UPDATE_STATE, SLICE_AT, BROADCAST_ARGS, SCATTER_ND, ONE_HOT, REVERSE_SEQUENCE (one header of
runtime_c/ each)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Op, Tensor
from tinyfuse.kernels.core.c_types import CTYPE
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement, c_array
from tinyfuse.kernels.counts.common import Counts, piece_counts
from tinyfuse.ops.movement.dynamic_update_slice import MOST_DIMENSIONS
from tinyfuse.ops.movement.gather import gather_shape
from tinyfuse.ops.movement.gather_nd import MOST_INDEXES, places_in
from tinyfuse.ops.movement.one_hot import one_hot_axis
from tinyfuse.ops.movement.reverse_sequence import Sequences
from tinyfuse.ops.movement.slice_at import first_begins, last_begins
from tinyfuse.ops.movement.update_state import UpdateState

#: dtype -> suffix of SCATTER_ND's C function; wrapping sums are the same for signed and unsigned numbers
SCATTERED = {"bool": "bool", "int8": "s8", "uint8": "s8", "int32": "s32", "int64": "s64", "float32": "f32"}


class IndexKernel(Kernel):
    """Base of kernels whose inputs may be constants.

    names    names of the constants; empty: the constant of input `i` is `input{i}`.
    struct   C struct of the parameters.
    status   value that a call returns if there is no error; None: no call fails.
    numbers  indexes of inputs that the C reads as numbers, not as bytes.
    shapes   indexes of inputs that the C does not read, because the output's shape tells their values.
    """

    names: tuple[str, ...] = ()
    struct: str
    status: str | None = "0"
    numbers: tuple[int, ...] = ()
    shapes: tuple[int, ...] = ()

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        found = []
        for i, tensor in enumerate(op.operands):
            if tensor.is_constant and i not in self.shapes:
                values = np.ascontiguousarray(tensor.values).reshape(-1)
                number = i in self.numbers
                ctype = CTYPE[tensor.dtype] if number else "int8_t"
                found.append(Constant(self._name(i), values if number else values.view(np.int8), ctype))
        return tuple(found)

    def _name(self, i: int) -> str:
        return self.names[i] if self.names else f"input{i}"

    def pointers(self, site: CallSite) -> tuple[str, ...]:
        """C pointers to the inputs that the C reads."""
        return tuple(
            site.constant(self._name(i)) if access is None else access.pointer
            for i, access in enumerate(site.inputs)
            if i not in self.shapes
        )

    def fields(self, op: Op) -> dict[str, Expr]:
        """Fields of the parameters."""
        return {}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        args = ("&p", *self.pointers(site), site.output.pointer)
        return Let(self.struct, "p", self.fields(op)), Call(self.name, args, self.status)


class GatherSlices(IndexKernel):
    """GATHER of constant or computed data and indexes. An index outside the data ends the run with an error."""

    name, struct = "tinyfuse_gather", "tinyfuse_gathering"
    headers = ("tinyfuse_gather.h",)
    names = ("data", "indexes")

    def counts(self, op: Op, by_row: bool) -> Counts:
        e = gather_shape(op)
        slices = e.batches * e.outer * e.indexes
        return piece_counts(1, e.batches * e.outer, slices, op.output.bytes // max(1, slices))

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        # the C reads constant indexes as int32
        index = op.operand(1)
        found = super().constants(op, context)
        if not index.is_constant:
            return found
        return *found[:-1], Constant("indexes", index.values.astype(np.int32).reshape(-1), "int32_t")

    def fields(self, op: Op) -> dict[str, Expr]:
        e = gather_shape(op)
        return {
            "batches": e.batches, "outer": e.outer, "slices": e.slices,
            "bytes": e.inner * ITEM_BYTES[op.output.dtype], "indexes": e.indexes,
        }  # fmt: skip


class GatherNd(IndexKernel):
    """GATHER_ND. A slice outside the data ends the run with an error."""

    name, struct = "tinyfuse_gather_nd", "tinyfuse_gathering_nd"
    headers = ("tinyfuse_gather_nd.h",)
    numbers = (1,)

    def counts(self, op: Op, by_row: bool) -> Counts:
        places = places_in(op.input.shape, op.operand(1))
        return piece_counts(1, places.count * places.indexes, places.count, places.slice * ITEM_BYTES[op.input.dtype])

    def fields(self, op: Op) -> dict[str, Expr]:
        places, item = places_in(op.input.shape, op.operand(1)), ITEM_BYTES[op.input.dtype]
        return {
            "count": places.count, "depth": places.indexes, "bytes": places.slice * item, "size": op.input.bytes,
            "step": c_array([step * item for step in places.steps], MOST_INDEXES),
        }  # fmt: skip


class EmbeddingLookup(IndexKernel):
    """EMBEDDING_LOOKUP in a table of the output's dtype, which is a GATHER. An index outside the table ends the run
    with an error."""

    name, struct = "tinyfuse_gather", "tinyfuse_gathering"
    headers = ("tinyfuse_gather.h",)
    numbers = (0,)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.operand(1).dtype == op.output.dtype

    def counts(self, op: Op, by_row: bool) -> Counts:
        return piece_counts(1, 1, op.input.elements, op.output.bytes // op.input.elements)

    def pointers(self, site: CallSite) -> tuple[str, ...]:
        indexes, data = super().pointers(site)
        return data, indexes

    def fields(self, op: Op) -> dict[str, Expr]:
        table = op.operand(1)
        rows = table.shape[0]
        return {"batches": 1, "outer": 1, "slices": rows, "bytes": table.bytes // rows, "indexes": op.input.elements}


class EmbeddingLookupF32(IndexKernel):
    """EMBEDDING_LOOKUP of floats in a table of int8. An index outside the table ends the run with an error."""

    name, struct = "tinyfuse_embedding_lookup_s8_f32", "tinyfuse_embedding"
    headers = ("tinyfuse_embedding_lookup.h",)
    numbers = (0,)

    def accepts(self, op: Op, context: Context) -> bool:
        return (op.operand(1).dtype, op.output.dtype) == ("int8", "float32")

    def fields(self, op: Op) -> dict[str, Expr]:
        table = op.operand(1)
        rows = table.shape[0]
        return {"rows": rows, "columns": table.elements // rows, "indexes": op.input.elements, "scale": table.scale}


class _PartWritten(NamedTuple):
    """Part of a tensor that an update writes.

    starts  (dimension, greatest start, bytes of a step) for each dimension whose start may be other than 0
    loops   (count, bytes from one to the next) for the loops over contiguous runs, innermost first
    run     bytes of a run
    """

    starts: list[tuple[int, int, int]]
    loops: list[tuple[int, int]]
    run: int


def _part_written(shape: Sequence[int], update: Tensor) -> _PartWritten:
    """Part of a tensor of this shape that `update` writes. Dimensions of size one need no loop, and a dimension that
    the update fills is contiguous with the ones inside it."""
    item = ITEM_BYTES[update.dtype]
    steps = [item * prod(shape[d + 1 :]) for d in range(len(shape))]
    dims = list(zip(shape, update.shape, steps, strict=True))
    starts = [(d, dim - part, step) for d, (dim, part, step) in enumerate(dims) if dim > part]
    run, loops, together = item if update.elements else 0, [], True
    for dim, part, step in reversed(dims):
        if together:
            run *= part
        elif part > 1:
            loops.append((part, step))
        together = together and part == dim
    return _PartWritten(starts, loops, run)


class UpdateStateSlice(IndexKernel):
    """Kernel of UPDATE_STATE: writes only the updated part of the state."""

    name, struct = "tinyfuse_update_state", "tinyfuse_updating"
    headers = ("tinyfuse_update_slice.h",)
    status, numbers = None, (2,)

    def shape(self, op: Op) -> Sequence[int]:
        """Shape of the tensor that is updated."""
        return op.attributes_as(UpdateState).shape

    def counts(self, op: Op, by_row: bool) -> Counts:
        part = _part_written(self.shape(op), op.operand(1))
        return piece_counts(1, len(part.starts), prod(count for count, _ in part.loops), part.run)

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        """Return "runs" if the update has several contiguous runs of elements; a shared function then copies them."""
        return "runs" if _part_written(self.shape(op), op.operand(1)).loops else ""

    def fields(self, op: Op) -> dict[str, Expr]:
        part, last_loop, last_start = _part_written(self.shape(op), op.operand(1)), MOST_DIMENSIONS - 1, MOST_DIMENSIONS
        at, last, step = ([each[i] for each in part.starts] for i in range(3))
        count, stride = ([each[i] for each in part.loops] for i in range(2))
        return {
            "bytes": op.input.bytes, "wide": int(op.operand(2).dtype == "int64"), "starts": len(at),
            "loops": len(count), "run": part.run, "at": c_array(at, last_start), "last": c_array(last, last_start),
            "step": c_array(step, last_start), "count": c_array(count, last_loop),
            "stride": c_array(stride, last_loop),
        }  # fmt: skip

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        state, update, starts = self.pointers(site)
        return Let(self.struct, "p", self.fields(op)), Call(self.name, ("&p", update, starts, state))


class UpdateSlice(UpdateStateSlice):
    """DYNAMIC_UPDATE_SLICE. The output may overwrite the tensor that it changes."""

    name = "tinyfuse_update_slice"
    in_place = (0,)

    def shape(self, op: Op) -> Sequence[int]:
        return op.input.shape

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Counts of a call that first copies the whole tensor; "inputs" are its bytes."""
        return {**super().counts(op, by_row), **self.copied(op)}

    def copied(self, op: Op) -> Counts:
        return {"inputs": op.input.bytes}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return IndexKernel.call(self, op, site, context)


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

    name, struct = "tinyfuse_slice_at", "tinyfuse_slicing"
    headers = ("tinyfuse_slice_at.h",)
    numbers = (1,)

    def counts(self, op: Op, by_row: bool) -> Counts:
        run = op.output.shape[-1]
        return piece_counts(1, 0, op.output.elements // run, run * ITEM_BYTES[op.output.dtype])

    def fields(self, op: Op) -> dict[str, Expr]:
        shape = op.input.shape
        steps = [ITEM_BYTES[op.input.dtype] * prod(shape[d + 1 :]) for d in range(len(shape))]
        return {
            "rank": len(shape), "wide": int(op.operand(1).dtype == "int64"),
            "first": c_array(first_begins(op), 5), "last": c_array(last_begins(op.input, op.output), 5),
            "step": c_array(steps, 5),
            "dim": c_array(op.output.shape, 5),
        }  # fmt: skip


class ScatterNd(IndexKernel):
    """SCATTER_ND of one dtype. A slice outside the output ends the run with an error."""

    headers = ("tinyfuse_scatter_nd.h",)
    struct = "tinyfuse_scattering"
    numbers, shapes = (0,), (2,)

    def __init__(self, dtype: str):
        self.dtype, self.name = dtype, f"tinyfuse_scatter_nd_{SCATTERED[dtype]}"

    def counts(self, op: Op, by_row: bool) -> Counts:
        places = places_in(op.output.shape, op.input)
        return {
            "calls": 1, "slices": places.count, "indexes": places.count * places.indexes,
            "inputs": places.count * places.slice, "outputs": op.output.bytes,
        }  # fmt: skip

    def fields(self, op: Op) -> dict[str, Expr]:
        places = places_in(op.output.shape, op.input)
        return {
            "count": places.count, "depth": places.indexes, "slice": places.slice, "bytes": op.output.bytes,
            "dim": c_array(op.output.shape[: places.indexes], MOST_INDEXES),
            "step": c_array(places.steps, MOST_INDEXES),
        }  # fmt: skip


class OneHot(IndexKernel):
    """Kernel of ONE_HOT."""

    name, struct = "tinyfuse_one_hot", "tinyfuse_vectors"
    headers = ("tinyfuse_one_hot.h",)
    status = None
    numbers, shapes = (0,), (1,)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return {"calls": 1, "indexes": op.input.elements, "outputs": op.output.elements}

    def fields(self, op: Op) -> dict[str, Expr]:
        shape, axis = op.output.shape, one_hot_axis(op)
        return {
            "outer": prod(shape[:axis]), "depth": shape[axis], "inner": prod(shape[axis + 1 :]),
            "bytes": ITEM_BYTES[op.output.dtype], "wide": int(op.input.dtype == "int64"),
        }  # fmt: skip


class ReverseSequence(IndexKernel):
    """REVERSE_SEQUENCE. A length greater than the sequence's ends the run with an error."""

    name, struct = "tinyfuse_reverse_sequence", "tinyfuse_sequences"
    headers = ("tinyfuse_reverse_sequence.h",)
    numbers = (1,)

    def counts(self, op: Op, by_row: bool) -> Counts:
        a = op.attributes_as(Sequences)
        pieces = prod(op.input.shape[: max(a.seq_dim, a.batch_dim) + 1])
        return piece_counts(1, 0, pieces, op.input.bytes // pieces)

    def fields(self, op: Op) -> dict[str, Expr]:
        shape, a = op.input.shape, op.attributes_as(Sequences)
        first, second = sorted((a.seq_dim, a.batch_dim))
        dims = (prod(shape[:first]), shape[first], prod(shape[first + 1 : second]), shape[second])
        return {
            "dim": c_array(dims, 4), "bytes": prod(shape[second + 1 :]) * ITEM_BYTES[op.input.dtype],
            "along": 1 if a.seq_dim == first else 3, "wide": int(op.operand(1).dtype == "int64"),
        }  # fmt: skip
