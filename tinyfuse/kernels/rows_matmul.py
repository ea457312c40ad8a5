"""Our kernel of ROWS_MATMUL of int8 (runtime_c/tinyfuse_rows_matmul.h); others: batch_matmul.py."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.base import Call, CallSite, Context, Let, Statement
from tinyfuse.kernels.batch_matmul import RowsMatMulRow, right_pointer
from tinyfuse.kernels.rows import row_pointer
from tinyfuse.ops.matmul_scaling import matmul_multiplier
from tinyfuse.ops.rows_matmul import RowsMatMul, rows_extents


class WideRowsMatMul(RowsMatMulRow):
    """A row's vectors widened in scratch, where one of the matrices' dimensions lies in one piece and the bounded form
    of requantization is exact."""

    def __init__(self) -> None:
        super().__init__("int8")
        self.name, self.headers = "tinyfuse_rows_matmul_s8", ("tinyfuse_rows_matmul.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and _right_row(op) is not None and _is_bounded(op)

    def scratch(self, op: Op, context: Context) -> int:
        return 2 * (-(-rows_extents(op).depth // 8) * 8)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "dots" if _by_dots(op) else "sums"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        e, (multiplier, shift) = rows_extents(op), matmul_multiplier(op)
        fields = {
            "heads": e.heads, "columns": e.columns, "depth": e.depth,
            "right_head": op.attributes_as(RowsMatMul).right_head, "right_row": _right_row(op),
            "left_zero_point": op.operand(0).zero_point, "right_zero_point": op.operand(1).zero_point,
            "out_zero_point": op.output.zero_point, "multiplier": multiplier, "shift": -shift,
        }  # fmt: skip
        operands = row_pointer(site.input(0), site.output_row), right_pointer(site)
        return Let("tinyfuse_rows_matmul", "p", fields), Call(
            self.name, ("&p", *operands, site.output.pointer, int(_by_dots(op)), site.scratch)
        )


def _by_dots(op: Op) -> bool:
    """Whether the elements of a sum are neighbours in the right operand; else columns are."""
    return op.attributes_as(RowsMatMul).right_depth == 1


def _right_row(op: Op) -> int | None:
    """Elements of the right operand from one of what is in one piece to the next."""
    steps = op.attributes_as(RowsMatMul)
    if steps.right_depth == 1:
        return steps.right_column
    return steps.right_depth if steps.right_column == 1 else None


def _is_bounded(op: Op) -> bool:
    """What tinyfuse_requantize_bounded asks (kernels/packing.py), of any operands; and no sum on the way overflows."""
    multiplier, shift = matmul_multiplier(op)
    left, right = (128 + abs(tensor.zero_point) for tensor in op.operands)
    term = abs(2 * op.output.zero_point + 1) << max(-shift - 1, 0)
    sums = rows_extents(op).depth * left * right
    return multiplier > 0 and -31 <= shift <= -1 and sums + term < 2**31
