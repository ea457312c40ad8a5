"""PAD and PADV2: with the output's zero point, or with a constant."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, RowWindow, Rule
from tinyfuse.ops.core.movement import one_dtype
from tinyfuse.ops.core.permute import Order, with_rows_permuted


def amounts(op: Op) -> list[tuple[int, int]]:
    """(before, after) of each dimension."""
    return [(int(before), int(after)) for before, after in op.operand(1).values]


def _bad_amounts(op: Op) -> Tensor | None:
    tensor = op.operand(1)
    good = (
        tensor.is_constant
        and tensor.dtype in ("int32", "int64")
        and tensor.shape == (len(op.input.shape), 2)
        and bool(((tensor.values >= 0) & (tensor.values < 1 << 16)).all())
    )
    return None if good else tensor


def _bad_shape(op: Op) -> Tensor | None:
    shape = tuple(b + dim + a for dim, (b, a) in zip(op.input.shape, amounts(op), strict=True))
    return None if shape == op.output.shape else op.output


def pad_value(op: Op) -> int | float:
    """Stored value of the padding. For PAD: the output's zero point if it is int8, else 0, as in TFLM."""
    if op.kind == "PADV2":
        number: int | float = op.operand(2).values.reshape(-1)[0].item()
        return number
    return op.output.zero_point if op.output.dtype == "int8" else 0


@dataclass(frozen=True)
class Padded:
    """Padding along one dimension: input size, output size, and the number of padding elements in front."""

    dim: int
    count: int
    before: int


def padded_dimensions(op: Op) -> list[Padded]:
    """Dimensions of a PAD, merged into as few as possible: if there are more than four, one without padding is merged
    into the one before it, and leading dimensions of size 1 are left out."""
    pairs = zip(op.input.shape, op.output.shape, amounts(op), strict=True)
    dims = [Padded(dim, count, before) for dim, count, (before, _) in pairs]
    while len(dims) > 4:
        if dims[0] == Padded(1, 1, 0):
            del dims[0]
            continue
        at = next((i for i in range(len(dims) - 1, 0, -1) if dims[i].dim == dims[i].count), None)
        if at is None:
            break
        outer, inner = dims[at - 1 : at + 1]
        dims[at - 1 : at + 1] = [Padded(outer.dim * inner.dim, outer.count * inner.dim, outer.before * inner.dim)]
    return dims


def _bad_value(op: Op) -> Tensor | None:
    value = op.operand(2)
    return None if value.dtype == op.input.dtype and value.elements == 1 else value


def _requantized_value(op: Op) -> Tensor | None:
    value = op.operand(2)
    return value if value.dtype == "int8" and value.quant != op.output.quant else None


def _unquantized(op: Op) -> Tensor | None:
    quant = op.output.quant
    return op.output if op.output.dtype == "int8" and (quant is None or quant.per_channel) else None


_RULES = (
    one_dtype(("int8", "int16", "int32", "float32")),
    Rule("an int8 output has one scale and one zero point", _unquantized),
    Rule("rank 1 to 5", lambda op: op.input if not 1 <= len(op.input.shape) <= 5 else None),
    Rule("the padding is a constant [rank, 2] of numbers from 0 to 65535", _bad_amounts),
    Rule("the output has the padded shape", _bad_shape),
    Rule("of five dimensions, one is not padded", lambda op: len(padded_dimensions(op)) > 4),
)


class PadFamily(OpFamily):
    """PAD: int8, int16, int32 or float32 of rank 1 to 5, and amounts int32 or int64 [rank, 2]. The padding is the
    output's zero point for int8, else 0."""

    kind = "PAD"
    computes_uint8 = True
    pads = True
    summary = "zero points around a tensor"
    rules: tuple[Rule, ...] = (
        Rule("two inputs and one output", lambda op: len(op.inputs) != 2 or len(op.outputs) != 1 or None in op.inputs),
        *_RULES,
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        value = given(inputs[2]).reshape(-1)[0] if op.kind == "PADV2" else pad_value(op)
        return (np.pad(given(inputs[0]), amounts(op), constant_values=value),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        if index != 0 or len(op.input.shape) != 4 or op.input.shape[0] != 1 or amounts(op)[0] != (0, 0):
            return None
        return RowWindow(1, 1, amounts(op)[1][0])

    def permuted(self, op: Op, order: Order) -> Op | None:
        return with_rows_permuted(op, order, 1)

    def of_rows(
        self, op: Op, inputs: tuple[Tensor | None, ...], output: Tensor, first: int, above: int, below: int
    ) -> Op | None:
        if not op.input.is_image or amounts(op)[0] != (0, 0):
            return None
        around = np.array([(0, 0), (above, below), *amounts(op)[2:]], np.int32)
        padding = replace(op.operand(1), shape=around.shape, dtype="int32", data=around)
        return replace(op, inputs=(inputs[0], padding, *inputs[2:]), outputs=(output,))


class PadV2Family(PadFamily):
    """PADV2: PAD with the padding value as input 2, of the data's dtype; it may be computed at run time
    (rewrite/computed_operands.py)."""

    kind = "PADV2"
    computes_uint8 = True
    summary = "a value around a tensor"
    rules: tuple[Rule, ...] = (
        Rule(
            "three inputs and one output", lambda op: len(op.inputs) != 3 or len(op.outputs) != 1 or None in op.inputs
        ),
        *_RULES,
        Rule("the value is one element of the input's dtype", _bad_value),
        Rule(
            "an int8 value has the output's scale and zero point",
            _requantized_value,
            "TensorFlow Lite Micro refuses it too",
        ),
    )

    def computing(self, op: Op) -> Op | None:
        return None if op.operand(2).is_constant else replace(op, kind="PAD_WITH")
