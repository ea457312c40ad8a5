"""Our kernels of PLANES_TO_ROWS and ROWS_TO_PLANES (runtime_c/tinyfuse_planes.h, runtime_c/tinyfuse_planes_mve.h)."""

from __future__ import annotations

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.base import CallSite, Context, Division, Kernel
from tinyfuse.kernels.counts import Counts, calls_of, round_up
from tinyfuse.kernels.rows import from_piece, row_pointer
from tinyfuse.kernels.statements import Call, Statement
from tinyfuse.ops.transpose import DTYPES

#: elements of a pixel, of which a vector's lanes can say where they lie
_MOST_CHANNELS = 4096
#: and where the lanes are bytes
_BY_BYTES = 17


class _Planes(Kernel):
    """A line of every plane, or all of them; one dtype."""

    by_row = True

    def __init__(self, name: str, dtype: str, mve: bool):
        self.dtype, self.mve, self.headers = dtype, mve, (f"tinyfuse_planes{'_mve' if mve else ''}.h",)
        self.name = f"{name}{'_mve' if mve else ''}_{8 * ITEM_BYTES[dtype]}"

    def accepts(self, op: Op, context: Context) -> bool:
        vectors = context.target.mve and _extents(op)[0] <= _MOST_CHANNELS
        return op.output.dtype == self.dtype and (vectors or not self.mve)

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        """In columns. A piece writes in front of what others read, whichever way the call goes."""
        planes, plane = _extents(op)
        return Division(plane // (op.output.shape[1] if by_row else 1), along=False)

    def counts(self, op: Op, by_row: bool) -> Counts:
        planes, plane = _extents(op)
        calls = calls_of(op, by_row)
        lines, count = calls * planes, plane // calls
        if self.mve:
            lanes = 16 // ITEM_BYTES[self.dtype]
            if self.dtype == "int8" and planes > _BY_BYTES:
                lanes //= 2
            return {"calls": calls, "lines": lines, "vectors": lines * round_up(count, lanes)}
        return {"calls": calls, "lines": lines, "eights": lines * (count // 8), "rests": lines * (count % 8)}

    def _call(self, op: Op, site: CallSite, source: str, target: str) -> tuple[Statement, ...]:
        planes, plane = _extents(op)
        count: int | str = plane if site.row is None else plane // op.output.shape[1]
        if site.piece is not None:
            count = site.piece.count
        return (Call(self.name, (source, plane, planes, count, target)),)


class PlanesToRows(_Planes):
    """Pixels from lines."""

    def __init__(self, dtype: str, mve: bool = False):
        super().__init__("tinyfuse_planes_to_rows", dtype, mve)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (planes, _), source = _extents(op), site.input(0).pointer
        if site.row is not None:
            source = f"{source} + {site.row} * {op.output.shape[2]}"
        return self._call(op, site, from_piece(source, site), from_piece(site.output.pointer, site, planes))


class RowsToPlanes(_Planes):
    """Lines from pixels."""

    rings = True

    def __init__(self, dtype: str, mve: bool = False):
        super().__init__("tinyfuse_rows_to_planes", dtype, mve)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (planes, _), view = _extents(op), site.input(0)
        source = view.pointer if site.row is None else row_pointer(view, site.row)
        return self._call(op, site, from_piece(source, site, planes), from_piece(site.output.pointer, site))


#: those of each of the two operators
TO_ROWS: tuple[Kernel, ...] = tuple(PlanesToRows(dtype, mve) for mve in (True, False) for dtype in DTYPES)
TO_PLANES: tuple[Kernel, ...] = tuple(RowsToPlanes(dtype, mve) for mve in (True, False) for dtype in DTYPES)


def _extents(op: Op) -> tuple[int, int]:
    """How many planes there are, and the elements of one."""
    planes = max(op.input.planes, op.output.planes)
    return planes, op.output.elements // planes
