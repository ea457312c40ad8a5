"""Kernels of AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D, and of their parts ROW_SUM, ROW_MAX, ROW_MIN and
AVERAGE_OF_SUM (runtime_c/tinyfuse_pool.h and its forms for other dtypes, runtime_c/tinyfuse_row_extreme.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel, RowKernel
from tinyfuse.kernels.core.methods import of_calls
from tinyfuse.kernels.core.rows import piece_pointer, previous_row, row_pointer
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.counts.common import pool_counts
from tinyfuse.kernels.layers.common.params import left_of_piece
from tinyfuse.ops.core.convolution import clamp_range
from tinyfuse.ops.core.real import real_clamp
from tinyfuse.ops.pooling_reduce.pooling import Pool2D, pool_output_and_padding
from tinyfuse.ops.pooling_reduce.row_sum import AverageOfSum


class PoolRow(RowKernel):
    """Pooling of one dtype; a call computes one output row and reads only the rows of its window. `up`: averages of
    int8 round halves up (`Pool2D.halves_up`)."""

    columns = 1
    counts = of_calls(pool_counts)

    def __init__(self, sort: str, dtype: str = "int8", header: str = "", up: bool = False):
        self.dtype, self.up = dtype, up
        self.struct = "tinyfuse_pool" if dtype == "int8" else f"tinyfuse_pool_{SUFFIX[dtype]}"
        self.name = f"tinyfuse_{sort}_pool_{'up_' if up else ''}row_{SUFFIX[dtype]}"
        self.headers = (header or f"{self.struct}.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        rounds_so = self.dtype != "int8" or op.attributes_as(Pool2D).halves_up == self.up
        return super().accepts(op, context) and rounds_so

    def copy_of_code(self, op: Op, context: Context) -> str:
        return ""  # compilers inline it into each call

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        low, high = real_clamp(op) if self.dtype == "float32" else clamp_range(op)
        shape = _shape(op, site)
        fields = {**(shape if self.dtype == "int8" else {"shape": shape}), "act_min": low, "act_max": high}
        output = piece_pointer(site.output.pointer, site, op.output.shape[3])
        call = Call(self.name, ("&p", site.input(0).pointer, site.output_row, output))
        return Let(self.struct, "p", fields), call


def _shape(op: Op, site: CallSite) -> dict[str, Expr]:
    """Fields of the rows and columns of the windows, which all pools' parameters have."""
    (_, top), (_, left) = pool_output_and_padding(op)
    pool = op.attributes_as(Pool2D)
    _, in_h, in_w, channels = op.input.shape
    return {
        "in_h": in_h, "in_w": in_w, "channels": channels, "in_ring": site.input(0).ring_rows,
        "out_w": site.piece.count if site.piece else op.output.shape[2],
        "filter_h": pool.filter[0], "filter_w": pool.filter[1],
        "stride_h": pool.stride[0], "stride_w": pool.stride[1],
        "pad_top": top, "pad_left": left_of_piece(left, pool.stride[1], site),
    }  # fmt: skip


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
