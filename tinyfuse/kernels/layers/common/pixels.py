"""Input pixels of pointwise layers, and how calls that go from pixel to pixel may be made in pieces."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.kernel import CallSite, Division
from tinyfuse.kernels.core.rows import piece_pointer, row_pointer
from tinyfuse.kernels.core.statements import Expr
from tinyfuse.ops.core.convolution import geometry


def pointwise_input(op: Op, site: CallSite) -> tuple[str, int]:
    """C pointer to the first input pixel of a row, or of all, and how many they are."""
    g, source = geometry(op), site.input(0)
    if site.row is None:
        return source.pointer, g.out_h * g.out_w
    return row_pointer(source, site.row), g.out_w


def input_pixels(op: Op, site: CallSite) -> tuple[str, Expr]:
    """The same of a call that may be a piece."""
    pointer, pixels = pointwise_input(op, site)
    return piece_pointer(pointer, site, op.input.shape[3]), site.piece.count if site.piece else pixels


def of_pixels(op: Op, by_row: bool, together: int) -> Division:
    """The division of a call that goes from pixel to pixel."""
    g = geometry(op)
    return Division(g.out_w if by_row else g.out_h * g.out_w, together)
