"""Kernels of PLANES_TO_ROWS and ROWS_TO_PLANES (runtime_c/tinyfuse_planes.h, runtime_c/tinyfuse_planes_mve.h)."""

from __future__ import annotations

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Division, Kernel
from tinyfuse.kernels.core.rows import piece_pointer, row_pointer
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import Counts, ceil_div, count_calls
from tinyfuse.kernels.layers.common.column_blocks import ROWS
from tinyfuse.ops.movement.transpose import DTYPES

#: maximum number of planes for which a vector's lanes can hold the offsets, and for which byte lanes can
_MOST_PLANES, _BY_BYTES = 4096, 17


class _Planes(Kernel):
    """Kernel of PLANES_TO_ROWS or ROWS_TO_PLANES (`kind`) for one dtype. `form` is "whole", "row", or "columns": for
    images of a single column, calls that compute ROWS contiguous rows, in order."""

    def __init__(self, kind: str, dtype: str, mve: bool, form: str):
        self.kind, self.dtype, self.mve = kind, dtype, mve
        self.headers = ("tinyfuse_planes_mve.h" if mve else "tinyfuse_planes.h",)
        self.name = f"tinyfuse_{kind.lower()}_{'mve_' if mve else ''}{8 * ITEM_BYTES[dtype]}"
        self.whole, self.by_row, self.in_order = form == "whole", form != "whole", form == "columns"
        self.rings = kind == "ROWS_TO_PLANES" and form == "row"
        self.rows_a_call = ROWS if form == "columns" else 1

    def accepts(self, op: Op, context: Context) -> bool:
        rows, planes, plane = _shape(op)
        fits = op.output.dtype == self.dtype and (not self.mve or (context.target.mve and planes <= _MOST_PLANES))
        several = plane == rows > 1 and not context.divided
        return fits and (self.whole or several == self.in_order)

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        """Division by columns. A piece may overwrite bytes that another piece reads, in either direction."""
        rows, _, plane = _shape(op)
        return None if self.in_order else Division(plane // rows if by_row else plane, along=False)

    def counts(self, op: Op, by_row: bool) -> Counts:
        _, planes, plane = _shape(op)
        calls = count_calls(op, by_row, self.rows_a_call)
        lines, count = calls * planes, ceil_div(plane, calls)
        if self.mve:
            lanes = 16 // ITEM_BYTES[self.dtype]
            if self.dtype == "int8" and planes > _BY_BYTES:
                lanes //= 2
            return {"calls": calls, "lines": lines, "vectors": lines * ceil_div(count, lanes)}
        return {"calls": calls, "lines": lines, "eights": lines * (count // 8), "rests": lines * (count % 8)}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (rows, planes, plane), access, to_rows = _shape(op), site.input(0), self.kind == "PLANES_TO_ROWS"
        count: int | str = plane if site.row is None else plane // rows
        source = access.pointer
        if site.row is not None and to_rows:
            source = f"{source} + {site.row} * {count}"
        elif site.row is not None and self.in_order:
            source = f"{source} + {site.row} * {planes}"
        elif site.row is not None:
            source = row_pointer(access, site.row)
        if self.in_order:
            count = ROWS if rows % ROWS == 0 else f"tinyfuse_min({ROWS}, {rows} - {site.output_row})"
        if site.piece is not None:
            count = site.piece.count
        read, written = (1, planes) if to_rows else (planes, 1)  # elements of a column
        source, target = piece_pointer(source, site, read), piece_pointer(site.output.pointer, site, written)
        return (Call(self.name, (source, plane, planes, count, target)),)


def _shape(op: Op) -> tuple[int, int, int]:
    """(rows, planes, elements of a plane)."""
    planes = max(op.input.planes, op.output.planes)
    return op.output.shape[1], planes, op.output.elements // planes


def _kernels(kind: str) -> tuple[Kernel, ...]:
    """Kernels of one kind, with Helium first."""
    return tuple(
        _Planes(kind, dtype, mve, form)
        for mve in (True, False)
        for dtype in DTYPES
        for form in ("whole", "row", "columns")
    )


#: kernels of the two operators
TO_ROWS, TO_PLANES = _kernels("PLANES_TO_ROWS"), _kernels("ROWS_TO_PLANES")
