"""TILED: several convolutions in one operator, computed together for a tile of the last one's output: some columns of
some of its rows. Only schedule/groups/tiling.py makes it.

The tensors between the convolutions exist for one tile at a time. Rows that the windows of several tiles need are
computed again for each of them; columns are not. The result equals that of the convolutions one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from tinyfuse.ir import Array, Op
from tinyfuse.ops.core.convolution import geometry
from tinyfuse.ops.core.family import OpFamily, RowWindow

#: numbers of rows per call that are tried. With more, fewer rows are computed twice, but a tile takes more RAM
TILE_ROWS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Tiled:
    """Attributes of TILED.

    kinds    kinds of the operators, in order
    rows     output rows that a call computes
    columns  columns of an output tile
    parts    the operators; each is the only reader of the one before
    """

    kinds: tuple[str, ...]
    rows: int
    columns: int
    parts: tuple[Op, ...] = field(repr=False)


def tiled(parts: tuple[Op, ...], rows: int, columns: int) -> Op:
    """TILED for these operators. Its inputs are the first operator's data, then all constants."""
    first, last = parts[0], parts[-1]
    constants = tuple(tensor for op in parts for tensor in op.inputs[1:] if tensor is not None)
    attributes = Tiled(tuple(op.kind for op in parts), rows, columns, parts)
    return Op(TiledFamily.kind, (first.input, *constants), (last.output,), attributes, last.index)


def parts_of(op: Op) -> tuple[Op, ...]:
    """Operators that a TILED operator consists of."""
    return op.attributes_as(Tiled).parts


class TileSize(NamedTuple):
    """Size of one part of a tile: the most output columns, the most output rows of a call, and the input columns
    that the windows cover, padding included."""

    columns: int
    rows: int
    reached: int


@lru_cache(maxsize=8192)
def tile_sizes(op: Op) -> tuple[TileSize, ...]:
    """Return the size of each part."""
    a, found = op.attributes_as(Tiled), list[TileSize]()
    rows, columns = min(a.rows, op.output.shape[1]), min(a.columns, op.output.shape[2])
    for part in reversed(a.parts):
        g = geometry(part)
        reach_h, reach_w = g.window.kernel, (g.kernel_w - 1) * g.dilation_w + 1
        reached = (columns - 1) * g.stride_w + reach_w
        found.append(TileSize(columns, rows, reached))
        rows = min((rows - 1) * g.stride_h + reach_h, g.in_h)
        # the first tile reads all columns of its windows but the padding, another one those that earlier windows don't
        # share
        columns = min(max(reached - g.pad_left, columns * g.stride_w), g.in_w)
    return tuple(reversed(found))


def tiles_of(op: Op) -> int:
    """Return the number of tiles in an output row."""
    return -(-op.output.shape[2] // op.attributes_as(Tiled).columns)


@lru_cache(maxsize=8192)
def columns_used_up(op: Op) -> int:
    """Return the least number of input columns that each tile but the last uses up, so that the next tile doesn't read
    them.

    Return 0 if windows reach back too far to tell.
    """
    a, stride = op.attributes_as(Tiled), 1
    for part in a.parts:
        stride *= geometry(part).stride_w
    for number in range(1, tiles_of(op)):
        fresh = number * a.columns  # the first column that the next tile lacks, of each tensor
        for part in reversed(a.parts[1:]):
            g = geometry(part)
            reach = (g.kernel_w - 1) * g.dilation_w + 1
            fresh = min((fresh - 1) * g.stride_w - g.pad_left + reach, g.in_w)
        first = geometry(a.parts[0])
        if fresh * first.stride_w - first.pad_left < number * a.columns * stride:
            return 0
    return a.columns * stride


@lru_cache(maxsize=8192)
def rows_computed(op: Op) -> tuple[int, ...]:
    """Return how many rows each part computes in an inference, repeats for the windows of several calls included."""
    a = op.attributes_as(Tiled)
    found, height = [0] * len(a.parts), op.output.shape[1]
    for y in range(0, height, a.rows):
        first, after = y, min(y + a.rows, height)
        for i, part in reversed(list(enumerate(a.parts))):
            found[i] += after - first
            window = geometry(part).window
            first, after = window.first(first), window.needed(after - 1, part.input.shape[1])
    return tuple(found)


class TiledFamily(OpFamily):
    """Family of TILED: int8 convolutions over an image. Streams by rows, several per call."""

    kind = "TILED"
    summary = "convolutions computed in tiles of rows and columns"
    in_files = False

    def __init__(self, compute: Callable[..., tuple[Array, ...]], macs: Callable[[Op], int]) -> None:
        """`compute` returns an operator's outputs for its inputs, by its family's reference; `macs` its
        multiply-accumulates."""
        self._compute, self._macs = compute, macs

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        value, constants = inputs[0], iter(inputs[1:])
        for part in parts_of(op):
            others = [None if tensor is None else next(constants) for tensor in part.inputs[1:]]
            (value,) = self._compute(part, value, *others)
        assert value is not None, "a part's result"
        return (value,)

    def macs(self, op: Op) -> int:
        """Return the multiply-accumulates, repeats included."""
        rows = zip(parts_of(op), rows_computed(op), strict=True)
        return sum(self._macs(part) // part.output.shape[1] * n for part, n in rows)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        if index:
            return None
        kernel, stride, pad_top = 1, 1, 0
        for window in (geometry(part).window for part in reversed(parts_of(op))):
            kernel = (kernel - 1) * window.stride + window.kernel
            pad_top = pad_top * window.stride + window.pad_top
            stride *= window.stride
        return RowWindow(kernel, stride, pad_top)
