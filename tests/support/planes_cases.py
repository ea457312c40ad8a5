"""PLANES_TO_ROWS and ROWS_TO_PLANES: lines with and without remainders, few and many planes."""

from __future__ import annotations

from collections.abc import Iterator

from tinyfuse.ir import Op, Quant, Tensor

#: rows, columns, planes
SHAPES = (
    (3, 7, 3), (2, 8, 4), (4, 1, 2), (1, 5, 6), (2, 35, 3), (3, 16, 17), (2, 9, 18), (2, 16, 20), (5, 3, 2), (1, 1, 9),
    (25, 1, 3), (24, 1, 18),
)  # fmt: skip
DTYPES = ("int8", "int16", "float32")


def swap(kind: str, rows: int, columns: int, planes: int, dtype: str = "int8") -> Op:
    """An operator between pixels and lines of planes."""
    quant = None if dtype == "float32" else Quant((0.1,), (0,))
    pixels = Tensor("pixels", (1, rows, columns, planes), dtype, quant, index=0)
    lines = Tensor("lines", (1, rows, planes, columns), dtype, quant, index=1, planes=planes)
    ends = (lines, pixels) if kind == "PLANES_TO_ROWS" else (pixels, lines)
    return Op(kind, ends[:1], ends[1:], index=0)


def swaps() -> Iterator[Op]:
    for kind in ("PLANES_TO_ROWS", "ROWS_TO_PLANES"):
        for dtype in DTYPES:
            for shape in SHAPES:
                yield swap(kind, *shape, dtype)
