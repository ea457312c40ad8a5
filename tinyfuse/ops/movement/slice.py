"""SLICE and STRIDED_SLICE: a range of indexes of every dimension."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.ops.core.family import RowWindow, Rule
from tinyfuse.ops.core.movement import Movement, constant_vector, ends, one_dtype, ranks, shape_constant
from tinyfuse.ops.core.permute import Order, with_rows_permuted
from tinyfuse.ops.movement.slice_at import SliceAt, last_begins

_DTYPES = ("int8", "int16", "int32", "float32", "bool")


@dataclass(frozen=True)
class Span:
    """Range of indexes: `count` of them from `start` on, `stride` apart."""

    start: int
    count: int
    stride: int = 1

    @property
    def slice(self) -> slice:
        stop = self.start + self.count * self.stride
        return slice(self.start, stop if stop >= 0 else None, self.stride)


# --- SLICE -----------------------------------------------------------------------------------


def _bad_ranges(op: Op) -> Tensor | None:
    rank, (begins, sizes) = len(op.input.shape), op.operands[1:]
    if begins.shape != (rank,) or begins.dtype not in ("int32", "int64"):
        return begins
    if not constant_vector(sizes, rank, (begins.dtype,)):
        return sizes
    if not begins.is_constant:
        # a later rule reports an output of another rank
        inside = all(1 <= size <= dim for size, dim in zip(_sizes_at(op), op.input.shape, strict=False))
        return None if inside else sizes
    for dim, begin, size in _ranges(op):
        if not 0 <= begin < dim:
            return op.operand(1)
        if size != -1 and not 1 <= size <= dim - begin:
            return op.operand(2)
    return None


def _ranges(op: Op) -> Iterator[tuple[int, int, int]]:
    """(length, begin, size) of every dimension; a size of -1 reaches to the end."""
    return zip(op.input.shape, op.operand(1).values.tolist(), op.operand(2).values.tolist(), strict=True)


def _indexes(values: Sequence[int]) -> Tensor:
    return Tensor("", (len(values),), "int32", data=np.array(values, np.int32))


def slice_of(source: Tensor, begin: Sequence[int], output: Tensor, index: int) -> Op:
    """The SLICE that takes as many indexes of each dimension as the output has, from `begin` on."""
    return Op("SLICE", (source, _indexes(begin), _indexes(output.shape)), (output,), index=index)


def _sizes_at(op: Op) -> list[int]:
    """Sizes of a SLICE whose start indexes a run computes; a size of -1 is replaced by the output's."""
    given = op.operand(2).values.tolist()
    return [part if size == -1 else size for part, size in zip(op.output.shape, given, strict=False)]


def _slice_spans(op: Op) -> list[Span]:
    """Return the span taken of each dimension; where a run computes the begin, the span starts at index 0."""
    if not op.operand(1).is_constant:
        return [Span(0, size) for size in _sizes_at(op)]
    return [Span(begin, dim - begin if size == -1 else size) for dim, begin, size in _ranges(op)]


class SliceFamily(Movement):
    """SLICE. Inputs: data of rank 1 to 5, start indexes and sizes, both [rank]. Starts may be computed at run time
    (rewrite/computed_operands.py). For sizes that are computed, TFLM uses the output's shape."""

    kind = "SLICE"
    summary = "a range of indexes of every dimension"
    rules = (
        ends(3),
        one_dtype(_DTYPES),
        ranks(1, 5),
        Rule(
            "begin and size are int32 or int64, of one dtype, one per dimension; what is constant of them is a range "
            "inside the input",
            _bad_ranges,
            "convert the model with fixed shapes, so that slices are constant",
        ),
        Rule(
            "the output has the shape that the sizes give",
            lambda op: op.output if op.output.shape != tuple(s.count for s in _slice_spans(op)) else None,
        ),
    )

    def instead(self, op: Op) -> Mapping[int, Tensor]:
        """The output's shape as a constant for sizes that a run computes, {2: sizes}: a run must compute this shape,
        because shapes are static. Empty if sizes are constant."""
        size = op.optional(2)
        if (
            size is None
            or size.is_constant
            or not op.outputs
            or op.output.open_axes
            or size.dtype not in ("int32", "int64")
        ):
            return {}
        fixed = shape_constant(size, op.output)
        data = fixed.values.astype(size.dtype)
        data.setflags(write=False)
        return {2: replace(fixed, dtype=size.dtype, data=data)}

    def computing(self, op: Op) -> Op | None:
        if op.operand(1).is_constant:
            return None
        to_end = SliceAt(tuple(size == -1 for size in op.operand(2).values.tolist()))
        return replace(op, kind="SLICE_AT", inputs=op.inputs[:2], attributes=to_end)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        begin = op.operand(1)
        if not begin.is_constant:
            op = replace(op, inputs=(op.input, replace(begin, data=inputs[1]), op.operand(2)))
        return super().reference(op, *inputs)

    def indexes(self, op: Op, index: int) -> tuple[int, int] | None:
        computed = index == 1 and not op.operand(1).is_constant and -1 not in op.operand(2).values
        return (0, min(last_begins(op.input, op.output))) if computed else None

    def tried(self, op: Op, index: int) -> tuple[Array, ...]:
        begins = op.operand(1)
        if index != 1 or begins.is_constant or -1 not in op.operand(2).values:
            return ()
        sizes, last = op.operand(2).values, np.array(last_begins(op.input, op.output))
        return tuple(np.where(sizes == -1, last, last * part // 3).astype(begins.dtype) for part in range(4))

    def views(self, op: Op, data: Array) -> tuple[Array, ...]:
        return (data[tuple(span.slice for span in _slice_spans(op))],)

    def permuted(self, op: Op, order: Order) -> Op | None:
        return with_rows_permuted(op, order, 1, 2)

    def slide_window(self, op: Op, index: int) -> RowWindow | None:
        return RowWindow(1, 1, -_slice_spans(op)[1].start) if index == 0 and op.input.is_image else None

    def of_rows(
        self, op: Op, inputs: tuple[Tensor | None, ...], output: Tensor, first: int, above: int, below: int
    ) -> Op | None:
        if above or below or not op.input.is_image:
            return None
        begin = [0, 0, *(span.start for span in _slice_spans(op)[2:])]
        constants = (_indexes(begin), _indexes(output.shape))
        return replace(op, inputs=(inputs[0], *constants), outputs=(output,))


# --- STRIDED_SLICE ---------------------------------------------------------------------------


@dataclass(frozen=True)
class StridedSlice:
    """Attributes of STRIDED_SLICE: bit masks, in which bit d is for dimension d. begin, end: the range starts (ends) at
    the input's border; shrink_axis: only the first index is taken, and the dimension is dropped. The other masks are as
    in the file."""

    begin_mask: int = 0
    end_mask: int = 0
    ellipsis_mask: int = 0
    new_axis_mask: int = 0
    shrink_axis_mask: int = 0
    offset: bool = False


def _spans(op: Op) -> list[Span]:
    """Return the range of indexes of each dimension; it is empty for a count of 0 or less."""
    a, spans = op.attributes_as(StridedSlice), []
    indexes = zip(*(t.values.tolist() for t in op.operands[1:]), strict=True)
    for d, (begin, end, stride) in enumerate(indexes):
        dim = op.input.shape[d]
        low, high = (0, dim) if stride > 0 else (-1, dim - 1)
        start = min(max(begin + dim if begin < 0 else begin, low), high)
        stop = min(max(end + dim if end < 0 else end, low), high)
        if a.begin_mask >> d & 1:
            start = 0 if stride > 0 else dim - 1
        if a.end_mask >> d & 1:
            stop = dim if stride > 0 else -1
        if a.shrink_axis_mask >> d & 1:
            stop = start + 1
        spans.append(Span(start, -((start - stop) // stride), stride))
    return spans


def _bad_indexes(op: Op) -> Tensor | None:
    rank = len(op.input.shape)
    bad = next((t for t in op.operands[1:] if not constant_vector(t, rank)), None)
    return bad if bad is not None or op.operand(3).values.all() else op.operand(3)


def _unheeded(op: Op) -> bool:
    """Tell whether the file asks for options that TFLM ignores."""
    a = op.attributes_as(StridedSlice)
    return bool(a.ellipsis_mask or a.new_axis_mask or a.offset)


def _bad_shrinking(op: Op) -> bool:
    """Tell whether a dimension that is dropped has an empty range or a negative stride. TFLM leaves the output
    unwritten then."""
    return any(
        op.attributes_as(StridedSlice).shrink_axis_mask >> d & 1
        and (span.stride < 0 or span.start >= op.input.shape[d])
        for d, span in enumerate(_spans(op))
    )


def _bad_shape(op: Op) -> Tensor | None:
    shrink = op.attributes_as(StridedSlice).shrink_axis_mask
    shape = tuple(span.count for d, span in enumerate(_spans(op)) if not shrink >> d & 1)
    return None if op.output.shape == shape else op.output


class StridedSliceFamily(Movement):
    """STRIDED_SLICE. Ranges are cut off at the input's border (TFLM, strided_slice_logic.h)."""

    kind = "STRIDED_SLICE"
    options_table = "StridedSliceOptions"
    summary = "a range of indexes of every dimension, with steps, also backwards"
    rules = (
        ends(4),
        one_dtype(_DTYPES),
        ranks(1, 4),
        Rule(
            "begin, end and strides are constant int32, one per dimension, no stride 0",
            _bad_indexes,
            "convert the model with fixed shapes, so that slices are constant",
        ),
        Rule(
            "no ellipsis, no new axis, no end counted from the begin",
            _unheeded,
            "TensorFlow Lite Micro takes no notice of them; slice every dimension, and RESHAPE",
        ),
        Rule("a dimension that is dropped has an index inside the input and a positive stride", _bad_shrinking),
        Rule("the output has the shape that begin, end and strides give", _bad_shape),
    )

    def attributes(self, options: Mapping[str, Any]) -> StridedSlice:
        masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
        return StridedSlice(**{mask: options.get(mask, 0) for mask in masks}, offset=bool(options.get("offset", False)))

    def views(self, op: Op, data: Array) -> tuple[Array, ...]:
        return (data[tuple(span.slice for span in _spans(op))],)
