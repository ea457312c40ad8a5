"""Adds groups in tiles that lower a graph's RAM within the multiply-accumulates that may be recomputed.

A partition's RAM is that of its largest group. Bisection finds the least limit for which some partition has only groups
within the limit. For each limit, a group tiles only the chains that it must, with the tiles that recompute least, and
the partition that recomputes least is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinyfuse import limits
from tinyfuse.ir import Op
from tinyfuse.ops.layers.tiled import TILE_ROWS
from tinyfuse.plan.plan import WORD_ALIGN
from tinyfuse.schedule.groups.search import Weigher, Weight
from tinyfuse.schedule.groups.tiling import LEAST_COLUMNS, TILE_COLUMNS, Tiling, macs_again, replace_by_tiles

#: per node i, (j, weight) of groups ops[i:j]
Edges = Sequence[Sequence[tuple[int, Weight]]]

#: bytes of scratch that a single operator's tiles must save
_WORTH_TILES = 256

#: rows and columns of a chain's tiles; None: no tiles
_Shape = tuple[int, int] | None


def with_tiled_groups(weigher: Weigher, edges: Edges, more_macs: int) -> Edges:
    """Adds to `edges` the groups in tiles that lie on paths of less RAM than any without tiles; a path's groups may add
    `more_macs` multiply-accumulates together."""
    found = _Search(weigher, edges, more_macs)
    high = found.least_limit
    if high is None or more_macs <= 0:
        return edges
    more: list[list[tuple[int, Weight]]] = [list(of_node) for of_node in edges]
    low = 0
    while high - low > WORD_ALIGN:  # an arena is a number of whole words
        limit = (low + high) // 2
        path = found.path_within(limit)
        if path is None:
            low = limit
            continue
        high = max(weight.ram for _, _, weight in path)
        for i, j, weight in path:
            if weight.ops and (j, weight) not in more[i]:
                more[i].append((j, weight))
    return more


class _Search:
    """Search for paths through a weigher's groups that keep a limit of bytes."""

    def __init__(self, weigher: Weigher, edges: Edges, more_macs: int):
        self._weigher, self._more_macs = weigher, more_macs
        self._tiling = Tiling(weigher.graph, weigher.work.reached)
        self._left = limits.TILED_GROUPS.most
        #: weights of each group without tiles
        self._plain: list[dict[int, list[Weight]]] = [{} for _ in edges]
        for plain, of_node in zip(self._plain, edges, strict=True):
            for j, weight in of_node:
                plain.setdefault(j, []).append(weight)
        self._chains: dict[tuple[int, int], list[tuple[Op, ...]]] = {}
        self._known: dict[tuple[int, int, tuple[_Shape, ...]], Weight | None] = {}

    @property
    def least_limit(self) -> int | None:
        """Least limit in bytes that all groups of a path without tiles keep; None without a path."""
        least: list[int | None] = [0, *(None for _ in self._plain)]
        for i, of_node in enumerate(self._plain):
            here = least[i]
            for j, weights in of_node.items() if here is not None else ():
                there = max(here or 0, min(weight.ram for weight in weights))
                known = least[j]
                least[j] = there if known is None else min(known, there)
        return least[-1]

    def path_within(self, limit: int) -> list[tuple[int, int, Weight]] | None:
        """Path whose groups all keep a limit and that recomputes least, as (i, j, weight); None if all recompute too
        much."""
        end = len(self._plain)
        ahead = {0}  # nodes that paths from the start reach
        for i in range(end):
            ahead |= {j for j in self._plain[i] if i in ahead and self._fits(i, j, limit)}
        behind = {end}  # nodes from which the end is reached
        for i in reversed(range(end)):
            if i in ahead and any(j in behind and self._fits(i, j, limit) for j in self._plain[i]):
                behind.add(i)
        best: dict[int, tuple[int, float, list[tuple[int, int, Weight]]]] = {0: (0, 0.0, [])}
        for j in sorted(behind - {0}):
            before = [i for i in range(j) if i in best and j in self._plain[i]]
            # groups without tiles first, because they cost nothing; then tiles that cannot recompute less are skipped
            for i in sorted(before, key=lambda i: (not self._fits_untiled(i, j, limit), best[i][0])):
                macs, instructions, path = best[i]
                if not self._fits_untiled(i, j, limit) and j in best and best[j][0] <= macs:
                    continue
                weight = self._within(i, j, limit)
                if weight is None or macs + weight.more_macs > self._more_macs:
                    continue
                there = macs + weight.more_macs, instructions + weight.instructions
                if j not in best or there < best[j][:2]:
                    best[j] = (*there, [*path, (i, j, weight)])
        return best[end][2] if end in best else None

    def _fits_untiled(self, i: int, j: int, limit: int) -> bool:
        """Tells whether a group keeps a limit without tiles."""
        return min(weight.ram for weight in self._plain[i][j]) <= limit

    def _fits(self, i: int, j: int, limit: int) -> bool:
        """Tells whether a group keeps a limit with or without tiles."""
        if self._fits_untiled(i, j, limit):
            return True
        weight = self._weigh(i, j, tuple((TILE_ROWS[0], LEAST_COLUMNS) for _ in self._chains_of(i, j)))
        return weight is not None and weight.ram <= limit

    def _within(self, i: int, j: int, limit: int) -> Weight | None:
        """Weight of the form of a group that is within a limit of RAM and recomputes least; None if no form is."""
        plain = [weight for weight in self._plain[i][j] if weight.ram <= limit]
        if plain:
            return min(plain, key=lambda weight: weight.instructions)
        if not self._fits(i, j, limit):
            return None
        chains = self._chains_of(i, j)
        shapes: list[_Shape] = [(TILE_ROWS[0], LEAST_COLUMNS) for _ in chains]
        most_first = sorted(range(len(chains)), key=lambda n: -self._more(chains[n], shapes[n]))

        def with_the_first(n: int, found: Iterable[_Shape]) -> list[_Shape]:
            """Replaces the shape of chain n by the first one in `found` with which the group keeps the limit; returns
            `shapes` unchanged if there is none."""
            for shape in found:
                tried = [*shapes[:n], shape, *shapes[n + 1 :]]
                weight = self._weigh(i, j, tuple(tried))
                if weight is not None and weight.ram <= limit:
                    return tried
            return shapes

        for n in most_first:
            shapes = with_the_first(n, (None, *((rows, LEAST_COLUMNS) for rows in reversed(TILE_ROWS))))
        for n in most_first:
            if (shape := shapes[n]) is not None:  # wider tiles are faster
                shapes = with_the_first(n, ((shape[0], columns) for columns in reversed(TILE_COLUMNS[1:])))
        return self._weigh(i, j, tuple(shapes))

    def _chains_of(self, i: int, j: int) -> list[tuple[Op, ...]]:
        if (i, j) not in self._chains:
            ops = self._weigher.ops[i:j]
            found = [chain for chain in self._tiling.chains(ops) if self._scratch(chain) is not None]
            taken = {op for chain in found for op in chain}
            alone = [
                chain for op in ops if op not in taken for chain in self._tiling.alone(op) if self._saves_scratch(chain)
            ]
            self._chains[i, j] = found + alone
        return self._chains[i, j]

    def _scratch(self, chain: tuple[Op, ...]) -> int | None:
        """Bytes of scratch of a chain's smallest tiles; None if no kernel computes them."""
        return self._weigher.row_scratch(self._tiled(chain, (TILE_ROWS[0], LEAST_COLUMNS)))

    def _saves_scratch(self, chain: tuple[Op, ...]) -> bool:
        """Tells whether tiles, whose kernels compute parts of rows, save a single operator much scratch."""
        usual, in_tiles = self._weigher.row_scratch(chain[0]), self._scratch(chain)
        return usual is not None and in_tiles is not None and in_tiles + _WORTH_TILES <= usual

    def _tiled(self, chain: tuple[Op, ...], shape: tuple[int, int]) -> Op:
        return self._tiling.tiled(chain, *shape)

    def _more(self, chain: tuple[Op, ...], shape: _Shape) -> int:
        return 0 if shape is None else macs_again(self._tiled(chain, shape))

    def _weigh(self, i: int, j: int, shapes: tuple[_Shape, ...]) -> Weight | None:
        """Weight of a group whose chains have these shapes; None if no chain is tiled, or if too many groups were
        weighed."""
        key = i, j, shapes
        if key not in self._known:
            chosen = [(c, s) for c, s in zip(self._chains_of(i, j), shapes, strict=True) if s is not None]
            weight = None
            if chosen and not self._left:
                self._weigher.work.reached.note(limits.TILED_GROUPS)
            elif chosen:
                self._left -= 1
                ops = replace_by_tiles(self._weigher.ops[i:j], [self._tiled(*each) for each in chosen])
                more = sum(self._more(*each) for each in chosen)
                weight = min(self._weigher.weights_of(i, j, ops, more), key=lambda weight: weight.ram)
            self._known[key] = weight
        return self._known[key]
