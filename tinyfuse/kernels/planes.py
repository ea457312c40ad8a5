"""Our kernels of PLANES_TO_ROWS and ROWS_TO_PLANES (runtime_c/tinyfuse_planes.h)."""

from __future__ import annotations

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.base import CallSite, Context, Division, Kernel
from tinyfuse.kernels.counts import Counts, calls_of
from tinyfuse.kernels.rows import from_piece, row_pointer
from tinyfuse.kernels.statements import Call, Statement

#: dtypes that are moved
DTYPES = ("int8", "int16", "float32")


class _Planes(Kernel):
    """A line of every plane, or all of them; one dtype."""

    by_row = True
    headers = ("tinyfuse_planes.h",)

    def __init__(self, name: str, dtype: str):
        self.name, self.dtype = f"{name}_{8 * ITEM_BYTES[dtype]}", dtype

    def accepts(self, op: Op, context: Context) -> bool:
        return op.output.dtype == self.dtype

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        """In columns. The first piece writes where others still read, whichever way the call goes."""
        planes, _ = _extents(op)
        return Division(op.output.elements // planes // (op.output.shape[1] if by_row else 1), along=False)

    def counts(self, op: Op, by_row: bool) -> Counts:
        planes, _ = _extents(op)
        calls = calls_of(op, by_row)
        count = op.output.elements // planes // calls
        lines = calls * planes
        return {"calls": calls, "lines": lines, "fours": lines * (count // 4), "rests": lines * (count % 4)}

    def _call(self, op: Op, site: CallSite, source: str, target: str) -> tuple[Statement, ...]:
        planes, plane = _extents(op)
        count: int | str = plane if site.row is None else plane // op.output.shape[1]
        if site.piece is not None:
            count = site.piece.count
        return (Call(self.name, (source, plane, planes, count, target)),)


class PlanesToRows(_Planes):
    """Pixels from lines."""

    def __init__(self, dtype: str):
        super().__init__("tinyfuse_planes_to_rows", dtype)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (planes, _), source = _extents(op), site.input(0).pointer
        if site.row is not None and op.output.shape[1] > 1:
            source = f"{source} + {site.row} * {op.output.shape[2]}"
        return self._call(op, site, from_piece(source, site), from_piece(site.output.pointer, site, planes))


class RowsToPlanes(_Planes):
    """Lines from pixels."""

    rings = True

    def __init__(self, dtype: str):
        super().__init__("tinyfuse_rows_to_planes", dtype)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (planes, _), view = _extents(op), site.input(0)
        source = view.pointer if site.row is None else row_pointer(view, site.row)
        return self._call(op, site, from_piece(source, site, planes), from_piece(site.output.pointer, site))


def _extents(op: Op) -> tuple[int, int]:
    """How many planes there are, and the elements of one."""
    planes = max(op.input.planes, op.output.planes)
    return planes, op.output.elements // planes
