"""Kernels of ROW_SUM, ROW_MAX, ROW_MIN and AVERAGE_OF_SUM (runtime_c/tinyfuse_pool.h and its forms for other dtypes,
runtime_c/tinyfuse_row_extreme.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel, RowKernel
from tinyfuse.kernels.core.rows import previous_row, row_pointer
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.ops.core.convolution import clamp_range
from tinyfuse.ops.core.real import real_clamp
from tinyfuse.ops.pooling_reduce.row_sum import AverageOfSum

_HEADERS = {"int8": "tinyfuse_pool.h", "int16": "tinyfuse_pool_s16.h", "float32": "tinyfuse_pool_f32.h"}


class RowSumRow(Kernel):
    """Kernel of ROW_SUM: adds a row to the sums of the row before, which a ring of one row holds at the same
    address."""

    by_row, whole, rings, accumulates = True, False, True, True

    def __init__(self, dtype: str):
        self.dtype, self.headers = dtype, (_HEADERS[dtype],)
        self.name = f"tinyfuse_row_sum_{SUFFIX[dtype]}"

    def accepts(self, op: Op, context: Context) -> bool:
        return op.input.dtype == self.dtype

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        _, height, width, channels = op.input.shape
        if op.output.shape[2] == width:  # columns are not added up
            width, channels = 1, op.output.elements // height
        source, previous = row_pointer(site.input(0), site.output_row), previous_row(site, channels)
        return (Call(self.name, (source, previous, site.output.pointer, width, channels, *self.more(op))),)

    def more(self, op: Op) -> tuple[int, ...]:
        """C arguments after those that all row sums have."""
        return ()


class RowExtremeRow(RowSumRow):
    """Kernel of ROW_MAX and ROW_MIN: combines each row with the row before, which a ring of one row holds at the same
    address."""

    def __init__(self, dtype: str):
        super().__init__(dtype)
        self.headers, self.name = ("tinyfuse_row_extreme.h",), f"tinyfuse_row_extreme_{SUFFIX[dtype]}"

    def more(self, op: Op) -> tuple[int, ...]:
        return (-1 if op.kind == "ROW_MIN" else 0,)


class MveRowSumRow(RowSumRow):
    """ROW_SUM of int8 with Helium, eight channels at a time."""

    def __init__(self) -> None:
        super().__init__("int8")
        self.headers, self.name = ("tinyfuse_row_sum_mve.h",), "tinyfuse_row_sum_mve_s8"

    def accepts(self, op: Op, context: Context) -> bool:
        all_columns, in_eights = op.output.shape[2] == 1, op.input.shape[3] % 8 == 0
        return all_columns and in_eights and context.target.mve and super().accepts(op, context)


class AverageOfSumRow(RowKernel):
    """Kernel of AVERAGE_OF_SUM: computes its only output row, the last sums divided and clamped."""

    def __init__(self, dtype: str):
        self.dtype, self.headers = dtype, (_HEADERS[dtype],)
        self.name = "tinyfuse_average_of_sum" + ("" if dtype == "int8" else f"_{SUFFIX[dtype]}")

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        low, high = real_clamp(op) if self.dtype == "float32" else clamp_range(op)
        source = row_pointer(site.input(0), str(op.input.shape[1] - 1))
        target = site.output.pointer
        return (Call(self.name, (source, target, op.output.elements, op.attributes_as(AverageOfSum).count, low, high)),)
