"""CMSIS-NN's padding, since 7.0."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis.common import SUCCESS, CmsisRows, dims, image
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.ops.movement.pad import amounts, pad_value


class CmsisPad(CmsisRows):
    """PAD and PADV2 of int8; by rows the window is the input's row, or empty where the output row is padding."""

    name, since = "arm_pad_s8", (7, 0)

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and op.output.dtype == "int8" and len(op.output.shape) <= 4

    def window(self, op: Op) -> RowWindow:
        return RowWindow(1, 1, _amounts(op)[1][0])

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        batch, rows, width, channels = (1,) * (4 - len(op.input.shape)) + op.input.shape
        (front, after), (top, bottom), (left, right), (first, last) = _amounts(op)
        statements: tuple[Statement, ...] = ()
        pointer = site.input(0).pointer
        height: int | str = rows
        above: int | str = top
        if site.row is not None:
            source = image(self.window(op), site)
            statements, pointer, height = source.statements, source.pointer, source.rows
            above, bottom = (f"1 - {height}" if isinstance(height, str) else 1 - height), 0
        args = (pointer, site.output.pointer, pad_value(op), "&input_dims", "&before_dims", "&after_dims")
        return (
            *statements,
            dims("input", batch, height, width, channels),
            dims("before", front, above, left, first),
            dims("after", after, bottom, right, last),
            Call(self.name, args, SUCCESS),
        )


def _amounts(op: Op) -> list[tuple[int, int]]:
    """Return the elements added (before, after) in each of four dimensions."""
    return [(0, 0)] * (4 - len(op.input.shape)) + amounts(op)
