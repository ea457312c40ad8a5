"""Finds convolutions of a group that can be computed in tiles of rows and columns, so that less of the tensors between
them exists at a time. For example, the image between an expansion and a depthwise convolution is a ring of rows that
takes more than all else.

before   %b = CONV_2D(%a);  %c = DEPTHWISE_CONV_2D(%b);  %d = CONV_2D(%c)
after    %d = TILED(%a)

A chain qualifies if only its parts read the tensors between them. Rows of %b that several calls need are recomputed in
each of them, which --recompute limits; with more rows per call, fewer are recomputed and more must be kept (MCUNetV2's
patches, Lin et al. 2021, and msf-CNN, Huang and Baccelli 2025, make the same trade, over columns too).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from tinyfuse import limits
from tinyfuse.ir import Graph, Op, Saving
from tinyfuse.limits import Reached
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import ConvGeometry, geometry, is_plain_pointwise
from tinyfuse.ops.layers.tiled import TILE_ROWS, parts_of, tile_sizes, tiled
from tinyfuse.plan.rows import row_bytes

#: widths of a tile, in columns; the widest that fits is used, because kernels are faster with more columns
TILE_COLUMNS = (1, 2, 4, 8)
LEAST_COLUMNS = TILE_COLUMNS[0]


class Tiling:
    """Chains of a graph, and the TILED operators that compute them, each made once. Limits are noted in `reached`."""

    def __init__(self, graph: Graph, reached: Reached | None = None):
        self._graph = graph
        self._reached = Reached() if reached is None else reached
        self._starting: dict[Op, tuple[tuple[Op, ...], ...]] = {}
        self._made: dict[tuple[tuple[Op, ...], int, int], Op] = {}

    def chains(self, ops: Sequence[Op]) -> list[tuple[Op, ...]]:
        """Disjoint chains of these operators that need less memory if they are computed in tiles instead of in rings of
        rows."""
        return [chain for chain in self.disjoint_chains(ops) if self._spared(chain) > 0]

    def disjoint_chains(self, ops: Sequence[Op]) -> list[tuple[Op, ...]]:
        """Disjoint chains of these operators, largest saving first; some may save nothing."""
        inside = set(ops)
        found = [chain for op in ops for chain in self._from(op) if inside.issuperset(chain)]
        chosen: list[tuple[Op, ...]] = []
        for chain in sorted(found, key=lambda chain: -self._spared(chain)):
            if not any(set(chain) & set(other) for other in chosen):
                chosen.append(chain)
        return chosen

    def alone(self, op: Op) -> list[tuple[Op, ...]]:
        """Chain of one operator, if it has windows; else empty."""
        return [(op,)] if _may_be_part(op) and not is_plain_pointwise(op) else []

    def tiled(self, chain: tuple[Op, ...], rows: int, columns: int) -> Op:
        """Operator that computes a chain in tiles of that size."""
        key = chain, rows, columns
        if key not in self._made:
            self._made[key] = tiled(*key)
        return self._made[key]

    def _from(self, op: Op) -> tuple[tuple[Op, ...], ...]:
        """Chains that begin with an operator."""
        if op not in self._starting:
            self._starting[op] = tuple(self._continued(op))
        return self._starting[op]

    def _continued(self, op: Op) -> Iterator[tuple[Op, ...]]:
        chain = [op]
        while _may_be_part(chain[-1]):
            readers = self._graph.consumers.get(chain[-1].output, ())
            if len(readers) != 1 or chain[-1].output in self._graph.outputs:
                return
            chain.append(readers[0])
            if not _may_be_part(chain[-1]) or sum(not is_plain_pointwise(part) for part in chain[1:]) > 1:
                return
            if len(chain) > limits.CHAIN.most:
                self._reached.note(limits.CHAIN)
                return
            yield tuple(chain)

    def _spared(self, chain: tuple[Op, ...]) -> int:
        """Bytes of rings that the smallest tiles save."""
        op = self.tiled(chain, TILE_ROWS[0], LEAST_COLUMNS)
        window = FAMILIES[op.kind].row_window(op, 0)
        assert window is not None, "parts stream"
        # more rows of the input are kept if it is a ring
        spared = (geometry(chain[0]).window.kernel - window.kernel) * row_bytes(chain[0].input)
        for part, made in zip(chain[1:], tile_sizes(op)[1:], strict=True):
            g = geometry(part)
            spared += min(g.window.kernel, g.in_h) * (row_bytes(part.input) - made.reached * g.in_c)
        return spared


@lru_cache(maxsize=8192)
def macs_again(op: Op) -> int:
    """Multiply-accumulates that a TILED operator recomputes, beyond those of its parts."""
    return max(0, FAMILIES[op.kind].macs(op) - sum(FAMILIES[part.kind].macs(part) for part in parts_of(op)))


def replace_by_tiles(ops: Sequence[Op], tiles: Sequence[Op]) -> tuple[Op, ...]:
    """Replaces operators by the TILED ones that compute them."""
    instead: dict[Op, Op | None] = {part: None for op in tiles for part in parts_of(op)}
    instead |= {parts_of(op)[-1]: op for op in tiles}
    return tuple(new for op in ops if (new := instead.get(op, op)) is not None)


def tile_graph(graph: Graph, tiles: Sequence[Op], more_macs: int) -> Graph:
    """Graph with TILED operators in place of their parts."""
    if not tiles:
        return graph
    parts = tuple(part for op in tiles for part in parts_of(op))
    saving = Saving("tile", parts, -more_macs, 0)
    return replace(graph, ops=replace_by_tiles(graph.ops, tiles), savings=(*graph.savings, saving))


@lru_cache(maxsize=8192)
def _may_be_part(op: Op) -> bool:
    """Tells whether an operator can be part of a chain: an int8 convolution over an image of several columns, whose
    windows all touch the image and leave no gaps between them."""
    if not FAMILIES[op.kind].convolution or op.view or op.states:
        return False
    if not (op.input.is_image and op.output.is_image and op.input.dtype == op.output.dtype == "int8"):
        return False
    if len(op.activations) != 1 or op.input.is_state:
        return False
    g = geometry(op)
    if g.in_w == 1 or g.out_w == 1:
        return False
    return _meets(g.window.kernel, g.stride_h, g.pad_top, g.in_h, g.out_h) and _meets_columns(g)


def _meets_columns(g: ConvGeometry) -> bool:
    return _meets((g.kernel_w - 1) * g.dilation_w + 1, g.stride_w, g.pad_left, g.in_w, g.out_w)


def _meets(reach: int, stride: int, padding: int, size: int, outputs: int) -> bool:
    return 0 <= padding < reach and stride <= reach and (outputs - 1) * stride - padding < size
