"""MIRROR_PAD: a tensor continued beyond its borders by its own reflection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, RowWindow, Rule
from tinyfuse.ops.core.movement import ends, one_dtype, ranks
from tinyfuse.ops.core.permute import Order, with_rows_permuted
from tinyfuse.ops.movement.pad import amounts


@dataclass(frozen=True)
class MirrorPad:
    """Attributes of MIRROR_PAD. mode: "REFLECT" does not repeat the border in the reflection, "SYMMETRIC" does; "" if
    the file does not say."""

    mode: str = "REFLECT"


def border_of(op: Op) -> int:
    """Return how many elements at a border the reflection leaves out."""
    return 1 if op.attributes_as(MirrorPad).mode == "REFLECT" else 0


def _bad_amounts(op: Op) -> Tensor | None:
    tensor = op.operand(1)
    if not (tensor.dtype in ("int32", "int64") and tensor.shape == (len(op.input.shape), 2)):
        return tensor
    if not tensor.is_constant:
        return None
    border = border_of(op)
    good = all(
        min(pair) >= 0 and max(pair) <= dim - border
        for dim, pair in zip(op.input.shape, tensor.values.tolist(), strict=True)
    )
    return None if good else tensor


def _bad_shape(op: Op) -> Tensor | None:
    if not op.operand(1).is_constant:
        return op.output if len(op.output.shape) != len(op.input.shape) or _most_before(op) is None else None
    shape = tuple(b + dim + a for dim, (b, a) in zip(op.input.shape, amounts(op), strict=True))
    return None if shape == op.output.shape and max(shape) <= 65535 else op.output


def _most_before(op: Op) -> list[tuple[int, int]] | None:
    """Return, for each dimension, the least and the most padding in front that fits the output's shape.

    Return None if the output can't be reached by padding.
    """
    border, found = border_of(op), []
    for dim, count in zip(op.input.shape, op.output.shape, strict=True):
        low, high = max(0, count - dim - (dim - border)), min(count - dim, dim - border)
        if low > high:
            return None
        found.append((low, high))
    return found


def _reflected(dim: int, before: int, after: int, border: int) -> Array | None:
    """Return the input index of every output index along a dimension; None if all are equal."""
    if before == after == 0:
        return None
    inside = np.arange(dim)
    return np.concatenate(
        [inside[border : border + before][::-1], inside, inside[dim - border - after : dim - border][::-1]]
    )


def mirror_indexes(op: Op) -> tuple[Array | None, ...]:
    """Return, for each dimension, the input index of every output index; None where they are equal."""
    pairs = zip(op.input.shape, amounts(op), strict=True)
    return tuple(_reflected(dim, before, after, border_of(op)) for dim, (before, after) in pairs)


@dataclass(frozen=True)
class Indexed:
    """Indexes along one dimension: input size, output size, and the input index of each output index (None if
    equal)."""

    dim: int
    count: int
    index: Array | None


def indexed_dimensions(op: Op, indexes: Sequence[Array | None]) -> list[Indexed]:
    """Dimensions with these indexes. If there are more than four, adjacent dimensions without padding are merged, and
    leading dimensions of size 1 are left out."""
    dims = [Indexed(*dim) for dim in zip(op.input.shape, op.output.shape, indexes, strict=True)]
    while len(dims) > 4:
        if dims[0].count == 1 and dims[0].index is None:
            del dims[0]
            continue
        at = next((i for i in range(1, len(dims)) if dims[i - 1].index is None and dims[i].index is None), None)
        if at is None:
            break
        outer, inner = dims[at - 1 : at + 1]
        dims[at - 1 : at + 1] = [Indexed(outer.dim * inner.dim, outer.count * inner.count, None)]
    return dims


class MirrorPadFamily(OpFamily):
    """MIRROR_PAD. Inputs: int8 or float32 data of rank 1 to 6, and the amounts of padding before and after each
    dimension, which a run may compute (rewrite/computed_operands.py)."""

    kind = "MIRROR_PAD"
    takes_uint8 = True
    options_table = "MirrorPadOptions"
    summary = "a tensor continued by its own reflection"
    rules = (
        ends(2),
        one_dtype(("int8", "float32")),
        ranks(1, 6),
        Rule(
            "its options say whether the border is repeated",
            lambda op: op.attributes_as(MirrorPad).mode not in ("REFLECT", "SYMMETRIC"),
            "TensorFlow Lite Micro would take what memory holds: write the option table",
        ),
        Rule(
            "the padding is [rank, 2], no more than there is to reflect",
            _bad_amounts,
            "TensorFlow Lite Micro would read outside the input",
        ),
        Rule("the output has the padded shape", _bad_shape),
        Rule(
            "of more than four dimensions, neighbours that are not padded leave four",
            lambda op: op.operand(1).is_constant and len(indexed_dimensions(op, mirror_indexes(op))) > 4,
        ),
    )

    def attributes(self, options: Mapping[str, Any]) -> MirrorPad:
        return MirrorPad(options.get("mode", ""))

    def computing(self, op: Op) -> Op | None:
        return None if op.operand(1).is_constant else replace(op, kind="MIRROR_PAD_AT")

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        result, around = given(inputs[0]), given(inputs[1])
        if not op.operand(1).is_constant:
            # TFLM reads only the padding before; the padding after fills the rest of the output
            before = around[:, 0]
            after = np.subtract(op.output.shape, op.input.shape) - before
            padding = replace(op.operand(1), data=np.stack([before, after], axis=1))
            op = replace(op, inputs=(op.input, padding))
        for axis, index in enumerate(mirror_indexes(op)):
            result = result if index is None else result.take(index, axis)
        return (result,)

    def tried(self, op: Op, index: int) -> tuple[Array, ...]:
        ends = _most_before(op) if index == 1 else None
        if ends is None or op.operand(1).is_constant:
            return ()
        more = np.subtract(op.output.shape, op.input.shape)
        tried = (np.array([low + (high - low) * part // 3 for low, high in ends]) for part in range(4))
        return tuple(np.stack([before, more - before], axis=1).astype(op.operand(1).dtype) for before in tried)

    def of_rows(
        self, op: Op, inputs: tuple[Tensor | None, ...], output: Tensor, first: int, above: int, below: int
    ) -> Op | None:
        beside = op.input.is_image and amounts(op)[:2] == [(0, 0), (0, 0)]
        return replace(op, inputs=inputs, outputs=(output,)) if beside else None

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        if index != 0 or len(op.input.shape) != 4 or op.input.shape[0] != 1 or amounts(op)[0] != (0, 0):
            return None
        index_of_rows = mirror_indexes(op)[1]
        rows = range(op.input.shape[1]) if index_of_rows is None else index_of_rows.tolist()
        return RowWindow.over([(row, row) for row in rows])

    def permuted(self, op: Op, order: Order) -> Op | None:
        return with_rows_permuted(op, order, 1)
