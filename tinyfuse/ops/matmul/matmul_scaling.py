"""The arithmetic of BATCH_MATMUL, and what it derives from its quantization."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import (
    RANGE,
    clamp,
    multiply_by_quantized_multiplier,
    multiply_by_reduced_multiplier,
    multiply_half_even,
    quantize_multiplier,
)
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, rounds_by


def matmul_multiplier(op: Op) -> tuple[int, int]:
    """(multiplier, shift) of a sum of products; TFLM multiplies both scales in float32."""
    product = np.float32(op.operand(0).scale) * np.float32(op.operand(1).scale)
    return quantize_multiplier(float(product) / op.output.scale)


def matmul_factor(op: Op) -> np.float32:
    """Factor of a sum of products by FLOAT_HALF_EVEN, as onnxruntime's QLinearMatMul computes it."""
    return np.float32(op.operand(0).scale) * np.float32(op.operand(1).scale) / np.float32(op.output.scale)


def product_of_matrices(op: Op, left: Array, right: Array) -> Array:
    """Return the stored output of `op` for stored values [..., rows, depth] and [..., depth, columns], which broadcast.

    `op` has the quantization of a BATCH_MATMUL.
    """
    if op.input.dtype == "float32":
        return _product_of_floats(left, right)
    x, y = (data.astype(np.int64) - t.zero_point for data, t in zip((left, right), op.operands, strict=True))
    total = np.matmul(x, y)
    if rounds_by(op, FLOAT_HALF_EVEN):
        scaled = multiply_half_even(total.astype(np.int32), matmul_factor(op))
    elif op.input.dtype == "int16":
        scaled = multiply_by_reduced_multiplier(total, *matmul_multiplier(op))
    else:  # the sum wraps as the C's does
        scaled = multiply_by_quantized_multiplier(total.astype(np.int32), *matmul_multiplier(op))
    return clamp(scaled + op.output.zero_point, *RANGE[op.output.dtype], op.output.dtype)


def _product_of_floats(left: Array, right: Array) -> Array:
    """float32 matrix product, with each product and each sum rounded."""
    batches = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    total = np.zeros((*batches, left.shape[-2], right.shape[-1]), np.float32)
    with np.errstate(all="ignore"):
        for i in range(left.shape[-1]):
            total += left[..., :, i : i + 1] * right[..., i : i + 1, :]
    return total
