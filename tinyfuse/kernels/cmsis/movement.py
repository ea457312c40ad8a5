"""CMSIS-NN's padding and transposition, since 7.0."""

from __future__ import annotations

from math import prod

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis.common import SUCCESS, CmsisKernel, CmsisRows, dims, image
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite
from tinyfuse.kernels.core.statements import Call, Let, Statement, c_array
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.ops.movement.pad import amounts, pad_value
from tinyfuse.ops.movement.transpose import permutation

#: most columns for the MVE code: it gathers eight elements that lie a row apart, and 16 bits hold the largest offset
_MOST_COLUMNS = 0xFFFF // 7


class CmsisTranspose(CmsisKernel):
    """Kernel of TRANSPOSE of int8. It passes the shape to CMSIS-NN with as few dimensions as possible."""

    name, since = "arm_transpose_s8", (7, 0)

    def accepts(self, op: Op, context: Context) -> bool:
        fits = super().accepts(op, context) and op.input.dtype == "int8"
        shape, _ = fewest_dimensions(op)
        return fits and len(shape) <= 4 and max(shape[-2:]) <= _MOST_COLUMNS

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        shape, order = fewest_dimensions(op)
        if order == (0, 2, 1):
            # the MVE code has a fast path for this order in four dimensions
            shape, order = (1, *shape), (0, 1, 3, 2)
        permutations = "(const uint32_t[])" + c_array(f"{d}u" for d in order)
        args = (site.input(0).pointer, site.output.pointer, "&input_dims", "&output_dims", "&params")
        return (
            # CMSIS-NN takes dimensions from field n on, so the names h, w and c mean nothing
            dims("input", *shape),
            dims("output", *(shape[d] for d in order)),
            Let("cmsis_nn_transpose_params", "params", {"num_dims": len(shape), "permutations": permutations}),
            Call(self.name, args, SUCCESS),
        )


def fewest_dimensions(op: Op) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return (input dimensions, permutation) of the same transposition with the fewest dimensions.

    Dimensions of 1 are dropped, and neighbours that stay side by side are merged. That also avoids two errors:
    CMSIS-NN exchanges two dimensions, and the last two of four, even where they are in order.
    """
    runs: list[list[int]] = []
    before = None
    kept = [d for d, dim in enumerate(op.input.shape) if dim > 1]
    for d in permutation(op):
        if d not in kept:
            continue
        if before is not None and kept.index(d) == kept.index(before) + 1:
            runs[-1].append(d)
        else:
            runs.append([d])
        before = d
    if not runs:
        return (1,), (0,)
    by_input = sorted(runs)
    dims = tuple(prod(op.input.shape[d] for d in run) for run in by_input)
    return dims, tuple(by_input.index(run) for run in runs)


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
