"""BATCH_MATMUL, int8, int16 or float32: products of matrices that broadcast over the leading dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, TWO_ROUNDINGS, rounds_by
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.movement import ends
from tinyfuse.ops.core.permute import Order
from tinyfuse.ops.matmul.matmul_scaling import matmul_multiplier, product_of_matrices
from tinyfuse.ops.matmul.rows_matmul import RowsMatMul


@dataclass(frozen=True)
class BatchMatMul:
    """Attributes of a BATCH_MATMUL.

    adj_x, adj_y  whether the first (second) operand's matrices are stored transposed
    rounding      of int8, one of ROUNDINGS, by which sums become outputs
    """

    adj_x: bool = False
    adj_y: bool = False
    rounding: str = TWO_ROUNDINGS


def _matrices(op: Op, x: Array, y: Array) -> tuple[Array, Array]:
    """Both operands as [..., rows, depth] and [..., depth, columns]."""
    return (
        x.swapaxes(-1, -2) if op.attributes_as(BatchMatMul).adj_x else x,
        y.swapaxes(-1, -2) if op.attributes_as(BatchMatMul).adj_y else y,
    )


def _bad_shapes(op: Op) -> Tensor | None:
    x, y = _matrices(
        op, *(np.lib.stride_tricks.as_strided(np.empty(1), t.shape, (0,) * len(t.shape)) for t in op.operands)
    )
    if x.shape[-1] != y.shape[-2]:
        return op.operand(1)
    try:
        batches = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        return op.operand(1)
    return None if op.output.shape == (*batches, x.shape[-2], y.shape[-1]) else op.output


_DTYPES = ("int8", "int16", "float32")


def _bad_dtype(op: Op) -> Tensor | None:
    return next((t for t in (*op.operands, op.output) if t.dtype not in _DTYPES or t.dtype != op.input.dtype), None)


def _unquantized(op: Op) -> Tensor | None:
    if op.input.dtype == "float32":
        return None
    return next((t for t in (*op.operands, op.output) if t.quant is None or t.quant.per_channel), None)


def _bad_zero_point(op: Op) -> Tensor | None:
    return next((t for t in (*op.operands, op.output) if t.dtype == "int16" and t.zero_point), None)


def _multiplier_too_large(op: Op) -> bool:
    if op.input.dtype == "float32" or rounds_by(op, FLOAT_HALF_EVEN):
        return False
    return matmul_multiplier(op)[1] > (30 if op.input.dtype == "int8" else 7)


class BatchMatMulFamily(OpFamily):
    """BATCH_MATMUL (TFLM, reference/batch_matmul.h).

    Int8: the int32 sum of products less the zero points, rescaled with two roundings. Int16: the int64 sum, rescaled
    with one. Floats are summed in order.
    """

    kind = "BATCH_MATMUL"
    options_table = "BatchMatMulOptions"
    summary = "products of matrices, with broadcasting over leading dimensions"
    from_states = (0, 1)
    rules = (
        ends(2),
        Rule("inputs and output have the same dtype, one of int8, int16, float32", _bad_dtype),
        Rule("inputs and output, unless float32, are each quantized by one scale and one zero point", _unquantized),
        Rule("the zero points of int16 are 0", _bad_zero_point),
        Rule(
            "inputs have rank 2 to 5",
            lambda op: next((t for t in op.operands if not 2 <= len(t.shape) <= 5), None),
        ),
        Rule("rows, columns and leading dimensions fit each other and the output", _bad_shapes),
        Rule("the requantization multiplier is below 2^31; of int16, below 2^7", _multiplier_too_large),
    )

    def attributes(self, options: Mapping[str, Any]) -> BatchMatMul:
        return BatchMatMul(bool(options.get("adj_x", False)), bool(options.get("adj_y", False)))

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (product_of_matrices(op, *_matrices(op, *all_given(inputs))),)

    def macs(self, op: Op) -> int:
        return op.output.elements * op.operand(0).shape[-2 if op.attributes_as(BatchMatMul).adj_x else -1]

    def permuted(self, op: Op, order: Order) -> Op | None:
        """Return the operator with the dimensions of heads and rows swapped: all operands become [1, rows, heads,
        columns]."""
        if order == tuple(range(len(order))):
            return op
        (left, right), heads = op.operands, op.output.shape[1]
        if order != (0, 2, 1, 3) or left.is_constant or len(right.shape) != 4 or op.attributes_as(BatchMatMul).adj_x:
            return None
        if (left.shape[:2], right.shape[0], op.output.shape[0]) != ((1, heads), 1, 1):
            return None
        _, count, outer, inner = right.shape
        if right.is_constant:  # its layout is not changed
            head, steps = outer * inner, (inner, 1)
        else:
            head, steps = inner, (count * inner, 1)
        return _of_rows(op, heads, 0 if count == 1 else head, *steps)


def one_head(op: Op) -> Op | None:
    """ROWS_MATMUL with the operands of a BATCH_MATMUL of one matrix with one matrix; None for any other operator."""
    leading = [tensor.shape[:-2] for tensor in (*op.operands, op.output)]
    if op.attributes_as(BatchMatMul).adj_x or any(dim != 1 for dims in leading for dim in dims):
        return None
    return _of_rows(op, 1, 0, op.operand(1).shape[-1], 1)


def _of_rows(op: Op, heads: int, head: int, outer: int, inner: int) -> Op:
    """Return a ROWS_MATMUL in place of the BATCH_MATMUL. `outer` and `inner`: distance in elements from one index to
    the next along the right operand's last dimension but one, and along its last."""
    column, depth = (outer, inner) if op.attributes_as(BatchMatMul).adj_y else (inner, outer)
    rounding = op.attributes_as(BatchMatMul).rounding
    return Op("ROWS_MATMUL", op.inputs, op.outputs, RowsMatMul(heads, head, column, depth, rounding), op.index)
