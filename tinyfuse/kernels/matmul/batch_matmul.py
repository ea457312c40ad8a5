"""Kernels of BATCH_MATMUL and of ROWS_MATMUL, its form by rows (runtime_c/tinyfuse_batch_matmul*.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import reduced_multiplier, scale_bits
from tinyfuse.kernels.core.c_types import CTYPE, SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.methods import counted_by
from tinyfuse.kernels.core.rows import row_pointer
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import product_counts, row_product_counts
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, TWO_ROUNDINGS, rounds_by
from tinyfuse.ops.matmul.batch_matmul import BatchMatMul
from tinyfuse.ops.matmul.matmul_scaling import matmul_factor, matmul_multiplier
from tinyfuse.ops.matmul.rows_matmul import RowsMatMul, matmul_shape


class BatchMatMulWhole(Kernel):
    """BATCH_MATMUL of any operands; either may be constant or stored transposed."""

    counts = counted_by(product_counts)

    def __init__(self, dtype: str, rounding: str = TWO_ROUNDINGS):
        self.dtype, self.rounding = dtype, rounding
        self.name = f"tinyfuse_batch_matmul{'_half_even' if rounding == FLOAT_HALF_EVEN else ''}_{SUFFIX[dtype]}"
        self.headers = ("tinyfuse_batch_matmul.h" if dtype == "int8" else f"tinyfuse_batch_matmul_{SUFFIX[dtype]}.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.input.dtype == self.dtype and rounds_by(op, self.rounding)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return tuple(
            Constant(f"operand{i}", np.ascontiguousarray(tensor.values).reshape(-1), CTYPE[self.dtype])
            for i, tensor in enumerate(op.operands)
            if tensor.is_constant
        )

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (left, right), stored = op.operands, op.attributes_as(BatchMatMul)
        (rows, columns), batches = op.output.shape[-2:], _padded(op.output.shape[:-2])
        left_row, left_depth = (1, rows) if stored.adj_x else (left.shape[-1], 1)
        depth = left.shape[-2 if stored.adj_x else -1]
        right_column, right_depth = (depth, 1) if stored.adj_y else (1, columns)
        fields = {
            "batches": _array(batches), "rows": rows, "columns": columns, "depth": depth,
            "left_batch": _array(batch_steps(left.shape)), "left_row": left_row, "left_depth": left_depth,
            "right_batch": _array(batch_steps(right.shape)),
            "right_column": right_column, "right_depth": right_depth,
        } | scaling_fields(op)  # fmt: skip
        operands = operand_pointers(site)
        return Let("tinyfuse_batch_matmul", "p", fields), Call(self.name, ("&p", *operands, site.output.pointer))


class RowsMatMulRow(BatchMatMulWhole):
    """ROWS_MATMUL; a call computes one row, in which each head is a batch of one row."""

    by_row, whole, rings = True, False, True
    counts = counted_by(row_product_counts)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        e, right = matmul_shape(op), op.attributes_as(RowsMatMul)
        fields = {
            "batches": _array([1, 1, e.heads]), "rows": 1, "columns": e.columns, "depth": e.depth,
            "left_batch": _array([0, 0, e.depth]), "left_row": 0, "left_depth": 1,
            "right_batch": _array([0, 0, right.right_head]),
            "right_column": right.right_column, "right_depth": right.right_depth,
        } | scaling_fields(op)  # fmt: skip
        operands = row_pointer(site.input(0), site.output_row), operand_pointers(site)[1]
        return Let("tinyfuse_batch_matmul", "p", fields), Call(self.name, ("&p", *operands, site.output.pointer))


def operand_pointers(site: CallSite) -> list[str]:
    """C pointers to both operands. All matrices of a ROWS_MATMUL are present, because a ring of them has every row."""
    return [site.constant(f"operand{i}") if access is None else access.pointer for i, access in enumerate(site.inputs)]


def scaling_fields(op: Op) -> dict[str, int]:
    """Fields of zero points and rescaling, with the left shift that TFLM has."""
    points = "left_zero_point", "right_zero_point", "out_zero_point"
    if op.input.dtype == "float32":
        return dict.fromkeys((*points, "multiplier", "shift"), 0)
    fields = {name: tensor.zero_point for name, tensor in zip(points, (*op.operands, op.output), strict=True)}
    if rounds_by(op, FLOAT_HALF_EVEN):
        return fields | {"multiplier": scale_bits(matmul_factor(op)), "shift": 0}
    multiplier, shift = matmul_multiplier(op)
    if op.input.dtype == "int16":  # tinyfuse_requantize_s64 takes the upper 16 bits
        return fields | {"multiplier": int(reduced_multiplier(multiplier)), "shift": 15 - shift}
    return fields | {"multiplier": multiplier, "shift": shift}


def _padded(batches: tuple[int, ...]) -> list[int]:
    """Batch dimensions with leading ones, three in all."""
    return [1] * (3 - len(batches)) + list(batches)


def batch_steps(shape: tuple[int, ...]) -> list[int]:
    """Number of elements from one index to the next, for each of the three batch dimensions; 0 if the operand is
    repeated along it."""
    step = shape[-1] * shape[-2]
    steps: list[int] = []
    for dim in reversed(_padded(shape[:-2])):
        steps.insert(0, step if dim > 1 else 0)
        step *= dim
    return steps


def _array(values: list[int]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"
