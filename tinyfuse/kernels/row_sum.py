"""Our kernels of ROW_SUM and AVERAGE_OF_SUM (runtime_c/tinyfuse_pool.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.base import Call, CallSite, Context, Kernel, Statement
from tinyfuse.kernels.rows import row_pointer
from tinyfuse.ops.convolution import clamp_range
from tinyfuse.ops.row_sum import AverageOfSum


class RowSumRow(Kernel):
    """Adds a row to the row of sums before it, which a ring of one row holds in the same place."""

    name = "tinyfuse_row_sum_s8"
    headers = ("tinyfuse_pool.h",)
    by_row, whole, rings, accumulates = True, False, True, True

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        view, (_, _, width, channels) = site.output, op.input.shape
        before = view.pointer if view.ring_rows == 1 else f"{view.pointer} - {channels}"
        previous = f"{site.output_row} > 0 ? {before} : NULL"
        source = row_pointer(site.input(0), site.output_row)
        return (Call(self.name, (source, previous, view.pointer, width, channels)),)


class AverageOfSumRow(Kernel):
    """The one row behind the last sums, divided and clamped."""

    name = "tinyfuse_average_of_sum"
    headers = ("tinyfuse_pool.h",)
    by_row, whole, rings = True, False, True

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        low, high = clamp_range(op)
        _, height, _, channels = op.input.shape
        source = row_pointer(site.input(0), str(height - 1))
        target = site.output.pointer
        return (Call(self.name, (source, target, channels, op.attributes_as(AverageOfSum).count, low, high)),)
