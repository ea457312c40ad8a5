"""BATCH_MATMUL, int8: products of matrices that broadcast over the leading dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given
from tinyfuse.ir.fixedpoint import clamp, multiply_by_quantized_multiplier
from tinyfuse.ops.base import OpFamily, Rule
from tinyfuse.ops.matmul_scaling import matmul_multiplier
from tinyfuse.ops.movement import ends


@dataclass(frozen=True)
class BatchMatMul:
    """adj_x, adj_y: the first (second) operand's matrices are stored transposed."""

    adj_x: bool = False
    adj_y: bool = False


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


class BatchMatMulOperator(OpFamily):
    """The int32 sum of products less the zero points, rescaled with two roundings (TFLM,
    reference/batch_matmul.h)."""

    kind = "BATCH_MATMUL"
    options_table = "BatchMatMulOptions"
    summary = "products of matrices, with broadcasting over leading dimensions"
    rules = (
        ends(2),
        Rule(
            "inputs and output are int8",
            lambda op: next((t for t in (*op.operands, op.output) if t.dtype != "int8"), None),
            "quantize the model to int8 (full integer quantization)",
        ),
        Rule(
            "inputs and output have one scale and one zero point",
            lambda op: next((t for t in (*op.operands, op.output) if t.quant is None or t.quant.per_channel), None),
        ),
        Rule(
            "inputs have rank 2 to 5",
            lambda op: next((t for t in op.operands if not 2 <= len(t.shape) <= 5), None),
        ),
        Rule("rows, columns and leading dimensions fit each other and the output", _bad_shapes),
        Rule("the requantization multiplier is below 2^31", lambda op: matmul_multiplier(op)[1] > 30),
    )

    def attributes(self, options: Mapping[str, Any]) -> BatchMatMul:
        return BatchMatMul(bool(options.get("adj_x", False)), bool(options.get("adj_y", False)))

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        x, y = (data.astype(np.int64) - t.zero_point for data, t in zip(all_given(inputs), op.operands, strict=True))
        total = np.matmul(*_matrices(op, x, y)).astype(np.int32)  # wraps as the C does
        scaled = multiply_by_quantized_multiplier(total, *matmul_multiplier(op))
        return (clamp(scaled + op.output.zero_point, -128, 127),)

    def macs(self, op: Op) -> int:
        return op.output.elements * op.operand(0).shape[-2 if op.attributes_as(BatchMatMul).adj_x else -1]
