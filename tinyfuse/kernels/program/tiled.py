"""Kernel of TILED: a chain of convolutions computed in tiles of rows and columns (runtime_c/tinyfuse_tile.h).

A call makes some rows of the output, one tile of columns after the other. For each tile, every convolution (part)
computes the columns that the tile lacks, by its own kernel for a piece of a row, into a tile of its output tensor. The
columns that the next tile's windows share with this one stay there. The parts after the last one with windows of
several pixels compute row by row in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import (
    AccessOrder,
    CallSite,
    Constant,
    Kernel,
    Piece,
    RowKernel,
    TensorAccess,
    division,
)
from tinyfuse.kernels.core.rows import row_pointer
from tinyfuse.kernels.core.statements import Call, Let, Loop, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.ops.core.convolution import Conv2D, geometry, is_plain_pointwise
from tinyfuse.ops.layers.tiled import Tiled, columns_used_up, parts_of, rows_computed, tile_sizes, tiles_of

_HEADER = "tinyfuse_tile.h"

#: fields that the parameters of a kernel must have so that it can compute a piece of a row with windows
_WINDOW_FIELDS = frozenset({"in_w", "in_ring", "out_w", "pad_left"})


class _Tile(NamedTuple):
    """Tile of the tensor between two parts: `rows` rows of `columns` columns, from byte `offset` of the scratch."""

    rows: int
    columns: int
    offset: int


class TiledRows(RowKernel):
    """TILED by `rows` rows a call. A call for row y reads only the input rows in the windows of its rows and writes
    only its rows, which must not overlap them. `kernels_for` returns the kernels of a part, in order of preference."""

    name = "tinyfuse_tile_begin"
    headers = (_HEADER,)
    stack_bytes = 1024

    def __init__(self, rows: int, kernels_for: Callable[[Op], tuple[Kernel, ...]]):
        self.rows_a_call = rows
        self._kernels_for = kernels_for

    def accepts(self, op: Op, context: Context) -> bool:
        fits = op.attributes_as(Tiled).rows == self.rows_a_call and not context.divided
        return fits and len(self.parts(op, context)) == len(parts_of(op))

    def parts(self, op: Op, context: Context) -> tuple[tuple[Kernel, Op], ...]:
        found = ((_choose_part_kernel(part, context, self._kernels_for), part) for part in parts_of(op))
        return tuple((kernel, part) for kernel, part in found if kernel is not None)

    def work(self, op: Op, context: Context) -> tuple[tuple[Kernel, Op, float], ...]:
        """Yields (kernel, operator, times) for each part: the operator of the columns that one call computes, and how
        often an inference runs it."""
        found = []
        for (kernel, part), rows in zip(self.parts(op, context), rows_computed(op), strict=True):
            _, height, width, _ = part.output.shape
            columns = -(-width // tiles_of(op))
            found.append((kernel, _narrow_to_columns(part, columns), rows / height * width / columns))
        return tuple(found)

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        if op.attributes_as(Tiled).rows > 1:  # a row is written before the next one is read
            return {}
        columns = columns_used_up(op)
        if not columns:
            return {}
        tiles = op.attributes_as(Tiled)
        # the last of several parts writes after the first has read; a single one writes while it reads
        buffered = len(tiles.parts) > 1
        return {0: AccessOrder(columns * op.input.shape[3], tiles.columns * op.output.shape[3], buffered)}

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return tuple(
            replace(constant, name=_constant_name(i, constant.name))
            for i, (kernel, part) in enumerate(self.parts(op, context))
            for constant in kernel.constants(part, context)
        )

    def scratch(self, op: Op, context: Context) -> int:
        tiles, end = self._tiles(op, context)
        return end if tiles else self._inner_scratch(op, context)

    def _inner_scratch(self, op: Op, context: Context) -> int:
        """Bytes of scratch that the parts' kernels share."""
        return max(kernel.scratch(part, context) for kernel, part in self.parts(op, context))

    def _tiles(self, op: Op, context: Context) -> tuple[tuple[_Tile, ...], int]:
        """Tiles of the tensors between the parts, and the byte after the last one."""
        end, found = self._inner_scratch(op, context), []
        for i, (made, read) in enumerate(pairwise(tile_sizes(op))):
            start = -(-end // 4) * 4
            rows = made.rows if i < _count_leading_parts(op) else 1
            found.append(_Tile(rows, read.reached, start))
            end = start + rows * read.reached * parts_of(op)[i].output.shape[3]
        return tuple(found), end

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _own_counts(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return _Writer(op, site, context, self.parts(op, context), self._tiles(op, context)[0]).statements()


def _constant_name(part: int, name: str) -> str:
    """Name of a part's constant."""
    return f"part{part}_{name}"


@lru_cache(maxsize=8192)
def _choose_part_kernel(part: Op, context: Context, kernels_for: Callable[[Op], tuple[Kernel, ...]]) -> Kernel | None:
    """First kernel that computes any columns of a part's row, with packed weights preferred; None if there is none. If
    the context wants least scratch: the one with the least, except the last, which serves every layer but is many times
    slower."""
    usable = [kernel for kernel in kernels_for(part) if _computes_pieces(kernel, part, context)]
    packed = [kernel for kernel in usable if kernel.weights == "packed"] or usable
    if context.wants_least_scratch(part):
        return min(packed[:-1] or packed, key=lambda kernel: kernel.scratch(part, context), default=None)
    return packed[0] if packed else None


def _computes_pieces(kernel: Kernel, op: Op, context: Context) -> bool:
    """Tells whether a kernel computes any columns of an operator's row from an image that is a ring of rows."""
    plain = kernel.library == "tinyfuse" and kernel.by_row and kernel.rows_a_call == 1
    if not (plain and kernel.takes_rings(op) and kernel.accepts(op, context)):
        return False
    pieces = division(kernel, op, True, context)
    if pieces is None or pieces.units != op.output.shape[2]:
        return False
    access = TensorAccess(op.input, "in", op.input.shape[1])
    site = CallSite((access, *(None for _ in op.inputs[1:])), (TensorAccess(op.output, "out", 1),), "y", "scratch", str)
    statements = kernel.call(op, site, context)
    if [type(statement) for statement in statements] != [Let, Call]:
        return False
    fields = statements[0].value if isinstance(statements[0], Let) else None
    return isinstance(fields, Mapping) and (is_plain_pointwise(op) or fields.keys() >= _WINDOW_FIELDS)


def _count_leading_parts(op: Op) -> int:
    """Number of parts before the last one with windows of several pixels. They compute all rows of a call before that
    part begins."""
    return max((i for i, part in enumerate(parts_of(op)) if not is_plain_pointwise(part)), default=0)


@lru_cache(maxsize=8192)
def _own_counts(op: Op) -> Counts:
    """Counts of the work between the parts' calls: tiles, rows that parts compute in each tile, rows that windows of
    several pixels read, and bytes that stay from tile to tile."""
    parts, tiles, rows = parts_of(op), tiles_of(op), rows_computed(op)
    calls = -(-op.output.shape[1] // op.attributes_as(Tiled).rows)
    found = {"calls": calls, "tiles": calls * tiles, "rows": tiles * sum(rows), "tile_rows": 0, "kept_bytes": 0}
    for made, part in zip(tile_sizes(op), parts[1:], strict=False):
        g = geometry(part)
        if not is_plain_pointwise(part):
            kept = ((g.kernel_w - 1) * g.dilation_w + 1 - g.stride_w) * part.input.shape[3]
            found["tile_rows"] += calls * tiles * made.rows
            found["kept_bytes"] += calls * (tiles - 1) * made.rows * kept
    return found


@lru_cache(maxsize=8192)
def _narrow_to_columns(part: Op, columns: int) -> Op:
    """Convolution of a part that computes only `columns` columns."""
    g, a = geometry(part), part.attributes_as(Conv2D)
    below = max(0, (g.out_h - 1) * g.stride_h + g.window.kernel - g.in_h - g.pad_top)
    reached = (columns - 1) * g.stride_w + (g.kernel_w - 1) * g.dilation_w + 1
    source = replace(part.input, shape=(1, g.in_h, reached, g.in_c))
    result = replace(part.output, shape=(1, g.out_h, columns, g.out_c))
    attributes = replace(a, padding=(g.pad_top, below, 0, 0))
    return replace(part, inputs=(source, *part.inputs[1:]), outputs=(result,), attributes=attributes)


class _Writer:
    """Writes the statements of one call. Part i reads tensor i and makes tensor i + 1."""

    def __init__(
        self, op: Op, site: CallSite, context: Context, parts: tuple[tuple[Kernel, Op], ...], tiles: tuple[_Tile, ...]
    ):
        self.op, self.site, self.context = op, site, context
        self.parts, self.tiles = parts, tiles
        self.last = len(parts)

    def statements(self) -> tuple[Statement, ...]:
        """Row ranges and tiles of the call, then a loop over tiles."""
        a, (_, height, width, _) = self.op.attributes_as(Tiled), self.op.output.shape
        row, last, head = self.site.output_row, self.last, _count_leading_parts(self.op)
        lets: list[Statement] = [Let("int32_t", f"end{last}", f"tinyfuse_min({row} + {a.rows}, {height})")]
        for i in range(head, 0, -1):
            window, rows = geometry(self._part(i)).window, self._part(i).input.shape[1]
            start = f"start{i + 1}" if i < head else row
            stop = f"end{i + 1}" if i < head else f"end{last}"
            lets.append(Let("int32_t", f"start{i}", window.first_c(start)))
            lets.append(Let("int32_t", f"end{i}", window.needed_c(f"({stop} - 1)", rows)))
        lets += [self._define_tile(i) for i in range(1, last) if self._has_windows(i)]
        tile: list[Statement] = [
            Let("int32_t", f"from{last}", "x"),
            Let("int32_t", f"to{last}", f"tinyfuse_min(x + {a.columns}, {width})"),
        ]
        if any(map(self._has_windows, range(1, last))):
            tile.insert(0, Let("int32_t", f"before{last}", f"tinyfuse_max(x - {a.columns}, 0)"))
        for i in range(last - 1, 0, -1):
            tile += self._prepare_columns(i)
        for i in range(head):
            # the last tiles may need no new columns, only existing ones and padding
            stop = f"(from{i + 1} < to{i + 1} ? end{i + 1} : 0)"
            tile.append(Loop("row", stop, self._compute_row(i, "row"), first=f"start{i + 1}"))
        together = tuple(statement for i in range(head, last) for statement in self._compute_row(i, "row"))
        tile.append(Loop("row", f"end{last}", together, first=row))
        return *lets, Loop("x", width, tuple(tile), a.columns)

    def _part(self, i: int) -> Op:
        return self.parts[i][1]

    def _has_windows(self, i: int) -> bool:
        """Tells whether the reader of tensor i has windows of several pixels, or windows that reach outside the
        image."""
        return not is_plain_pointwise(self._part(i))

    def _tile_pointer(self, i: int) -> str:
        """C pointer to the start of tensor i's tile."""
        return f"((int8_t *){self.site.scratch} + {self.tiles[i - 1].offset})"

    def _define_tile(self, i: int) -> Let:
        """Definition of `tinyfuse_tile`: tensor i's tile and the windows that read it."""
        part, tile = self._part(i), self.tiles[i - 1]
        g = geometry(part)
        fields = {
            "rows": tile.rows, "row_bytes": tile.columns * g.in_c, "channels": g.in_c, "width": g.in_w,
            "reach": (g.kernel_w - 1) * g.dilation_w + 1, "stride": g.stride_w, "padding": g.pad_left,
            "zero_point": part.input.zero_point,
        }  # fmt: skip
        return Let("tinyfuse_tile", f"tile{i}", fields)

    def _prepare_columns(self, i: int) -> list[Statement]:
        """Statements that prepare a tile of tensor `i`: they compute the columns that it lacks, from `from` to `to`,
        and `before`, the first column of the tile before."""
        names = ("before", "from", "to") if any(map(self._has_windows, range(1, i))) else ("from", "to")
        if not self._has_windows(i):
            return [Let("int32_t", f"{name}{i}", f"{name}{i + 1}") for name in names]
        lets = [Let("int32_t", f"{name}{i}", f"tinyfuse_tile_end(&tile{i}, {name}{i + 1})") for name in names]
        args = (f"&tile{i}", self._tile_pointer(i), f"before{i + 1}", f"from{i + 1}", f"to{i + 1}")
        return [*lets, Call("tinyfuse_tile_begin", args)]

    def _compute_row(self, i: int, row: str) -> tuple[Statement, ...]:
        """Statements that compute row `row` of part i's output, only the columns that the tile lacks."""
        (kernel, part), made = self.parts[i], i + 1
        g = geometry(part)
        count = f"to{made} - from{made}"
        site = replace(
            self.site,
            inputs=(self._locate_source(i, row), *(None for _ in part.inputs[1:])),
            outputs=(TensorAccess(part.output, self._target_pointer(made, row), 1),),
            row=row,
            constant=lambda name: self.site.constant(_constant_name(i, name)),
            piece=Piece("0", count),
        )
        geometry_of_piece: dict[str, int | str] = {"out_w": count, "pad_left": 0}
        if i:
            geometry_of_piece["in_w"] = self.tiles[i - 1].columns
        elif not is_plain_pointwise(part):
            geometry_of_piece["pad_left"] = f"{g.pad_left} - from{made} * {g.stride_w}"
        return tuple(_adapt_to_part(i, s, geometry_of_piece) for s in kernel.call(part, site, self.context))

    def _locate_source(self, i: int, row: str) -> TensorAccess:
        """Location that part i reads: the input or a tile. A part that reads pixel by pixel gets the first pixel."""
        part = self._part(i)
        if i == 0:
            access = self.site.input(0)
            if not is_plain_pointwise(part):
                return access
            return TensorAccess(part.input, f"{row_pointer(access, row)} + from1 * {part.input.shape[3]}", 1)
        tile = self.tiles[i - 1]
        if not is_plain_pointwise(part):
            return TensorAccess(part.input, self._tile_pointer(i), tile.rows)
        return TensorAccess(part.input, self._row_pointer(i, row), 1)

    def _row_pointer(self, i: int, row: str) -> str:
        """C pointer to a row of tensor i's tile."""
        tile, channels = self.tiles[i - 1], self._part(i).input.shape[3]
        slot = f" + {row} % {tile.rows} * {tile.columns * channels}" if tile.rows > 1 else ""
        return f"{self._tile_pointer(i)}{slot}"

    def _target_pointer(self, i: int, row: str) -> str:
        """C pointer to the first column that a row of tensor `i` lacks."""
        channels = self._part(i - 1).output.shape[3]
        if i == self.last:
            at = self.site.output.row_at
            assert at is not None, "the printer of calls gives it"
            return f"{at(row)} + x * {channels}"
        if not self._has_windows(i):
            return self._row_pointer(i, row)
        g = geometry(self._part(i))
        # the tile begins with the first column of the first window of its reader
        first = f"(from{i} - from{i + 1} * {g.stride_w} + {g.pad_left})"
        return f"{self._row_pointer(i, row)} + {first} * {channels}"


def _adapt_to_part(i: int, statement: Statement, geometry_of_piece: Mapping[str, int | str]) -> Statement:
    """Statement of part i's kernel for a piece of a row; its struct is renamed, so that the statements of all parts can
    be in one function."""
    if isinstance(statement, Let) and isinstance(statement.value, Mapping):
        fields = {**statement.value, **{k: v for k, v in geometry_of_piece.items() if k in statement.value}}
        return replace(statement, name=f"{statement.name}{i}", value=fields)
    if isinstance(statement, Call):
        return replace(statement, args=tuple(f"&p{i}" if arg == "&p" else arg for arg in statement.args))
    return statement
