"""PAD and PADV2, int8: with the output's zero point, or with a constant."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.base import OpFamily, RowWindow, Rule


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


def pad_value(op: Op) -> int:
    """The stored value that is put around."""
    return int(op.operand(2).values.reshape(-1)[0]) if op.kind == "PADV2" else op.output.zero_point


_RULES = (
    Rule(
        "input and output are int8",
        lambda op: next((t for t in (op.input, op.output) if t.dtype != "int8"), None),
        "quantize the model to int8 (full integer quantization)",
    ),
    Rule(
        "the output has one scale and one zero point",
        lambda op: op.output if op.output.quant is None or op.output.quant.per_channel else None,
    ),
    Rule("rank 1 to 4", lambda op: op.input if not 1 <= len(op.input.shape) <= 4 else None),
    Rule("the padding is a constant [rank, 2] of numbers from 0 to 65535", _bad_amounts),
    Rule("the output has the padded shape", _bad_shape),
)


def _bad_value(op: Op) -> Tensor | None:
    value = op.operand(2)
    return None if value.is_constant and value.dtype == "int8" and value.elements == 1 else value


class PadOperator(OpFamily):
    """int8 of rank 1 to 4, and int32 or int64 [rank, 2]; what is put around is the output's zero point."""

    kind = "PAD"
    pads = True
    summary = "zero points around a tensor"
    rules: tuple[Rule, ...] = (
        Rule("two inputs and one output", lambda op: len(op.inputs) != 2 or len(op.outputs) != 1 or None in op.inputs),
        *_RULES,
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (np.pad(given(inputs[0]), amounts(op), constant_values=pad_value(op)),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        if index != 0 or len(op.input.shape) != 4 or op.input.shape[0] != 1 or amounts(op)[0] != (0, 0):
            return None
        return RowWindow(1, 1, amounts(op)[1][0])


class PadV2Operator(PadOperator):
    """The same with a third input: the value that is put around, a constant int8."""

    kind = "PADV2"
    summary = "a constant around a tensor"
    rules: tuple[Rule, ...] = (
        Rule(
            "three inputs and one output", lambda op: len(op.inputs) != 3 or len(op.outputs) != 1 or None in op.inputs
        ),
        *_RULES,
        Rule("the value is one constant int8", _bad_value),
        Rule(
            "the value has the output's scale and zero point",
            lambda op: op.operand(2) if op.operand(2).quant != op.output.quant else None,
            "TensorFlow Lite Micro refuses it too",
        ),
    )
