"""Selects the orders of a graph that are worth a search: those with less estimated RAM.

The estimate is the least peak of bytes over all partitions into groups of consecutive operators, as in search.py, but
without simulating loops: rings and overlaps are computed for a few live sets only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tinyfuse import limits
from tinyfuse.ir import Graph, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.limits import Reached
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.plan import Stage
from tinyfuse.plan.places import is_alias
from tinyfuse.plan.rows import free_bytes, height, held_bytes, readers, row_bytes
from tinyfuse.schedule.groups.legality import Legality
from tinyfuse.schedule.groups.order import orders
from tinyfuse.schedule.groups.search import Weigher, Weight, Work, weigh_groups
from tinyfuse.schedule.kernel_choice.stages import StageMemo

#: number of live sets of a loop that are examined
_LIVE_SETS = 6


def better_orders(
    graph: Graph, context: Context, budget: int, progress: Callable[[str], None] = lambda text: None,
    memo: StageMemo | None = None, reached: Reached | None = None,
) -> list[Graph]:  # fmt: skip
    """Finds orders of a graph that seem to take less RAM than its own and than `budget` bytes, best first.

    At most limits.ORDERS; none if the graph has no branches. `memo`: see make_stages. Limits are noted in
    `reached`.
    """
    reached = Reached() if reached is None else reached
    progress("looking for other orders of the operators")
    legality = Legality(graph, context)
    found = orders(graph, lambda a, b: legality.refusal([a, b]) is None, reached)
    if not found:
        return []
    memo = {} if memo is None else memo
    progress("estimating other orders of the operators")
    bound = estimate(graph, context, budget, memo, reached)
    estimates = {other: estimate(other, context, bound, memo, reached) for other in found}
    better = sorted((other for other in found if estimates[other] < bound), key=estimates.__getitem__)
    if len(better) > limits.ORDERS.most:
        reached.note(limits.ORDERS)
    return better[: limits.ORDERS.most]


def estimate(graph: Graph, context: Context, budget: int, memo: StageMemo, reached: Reached) -> int:
    """Estimates the least bytes of RAM of the operators in this order; at most `budget`. `memo` and `reached`: see
    better_orders."""
    ops = tuple(op for op in graph.ops if not is_alias(op))
    least = [0] + [budget] * len(ops)
    for i, groups in enumerate(
        weigh_groups(EstimatedWeigher(graph, ops, context, memo, Work(reached=reached)), budget)
    ):
        for j, weight in groups:
            least[j] = min(least[j], max(least[i], weight.ram))
    return least[-1]


class EstimatedWeigher(Weigher):
    """Weighs only bytes, from estimated streams."""

    def _weigh(self, i: int, j: int) -> Iterator[Weight]:
        stages, kept = self._stages(i, j)
        stream = EstimatedStream(stages, kept) if stages[0].by_row else None
        self.work.left -= stream.rows if stream else 1
        own = stream.inner_bytes if stream else stages[0].scratch_bytes
        yield Weight(self._around(i, j, stages, stream, kept)[0] + own, own, 0.0, False)


class EstimatedStream:
    """Estimate of rows.Stream from a few live sets.

    In each of them the stages without readers have made the same share of their rows, and all others what these
    need.
    """

    def __init__(self, stages: tuple[Stage, ...], kept: frozenset[Tensor]):
        self.stages, self.kept = stages, kept
        self._heights = [height(stage.op.output) for stage in stages]
        self.rows = sum(self._heights)
        self._made: list[list[int]] = [[]] * len(stages)
        inner = 0
        for s in range(len(stages) - 1, -1, -1):
            output, rows = stages[s].op.output, self._heights[s]
            uses = self._uses(output)
            self._made[s] = [self._demand(uses, live_set, rows) for live_set in range(_LIVE_SETS)]
            if output not in kept:
                oldest = [self._oldest(uses, live_set, rows) for live_set in range(_LIVE_SETS)]
                held = max(made - first for made, first in zip(self._made[s], oldest, strict=True))
                inner += max(1, held) * row_bytes(output)
        self.inner_bytes = inner + max(stage.scratch_bytes for stage in stages)

    def _uses(self, tensor: Tensor) -> list[tuple[int, RowWindow]]:
        """(stage, row window) of each reader of a tensor."""
        return [(use.stage, self.stages[use.stage].window(use.input)) for use in readers(self.stages, tensor)]

    def _demand(self, uses: list[tuple[int, RowWindow]], live_set: int, rows: int) -> int:
        """Number of rows that must have been made before every reader can make its next one."""
        if not uses:
            return rows * live_set // _LIVE_SETS
        return max(window.needed(min(self._made[c][live_set], self._heights[c] - 1), rows) for c, window in uses)

    def _oldest(self, uses: list[tuple[int, RowWindow]], live_set: int, rows: int) -> int:
        """First row that a reader still needs; `rows` if none does."""
        reading = [(c, window) for c, window in uses if self._made[c][live_set] < self._heights[c]]
        return min((window.first(self._made[c][live_set]) for c, window in reading), default=rows)

    def overlap_distance(self, source: Tensor, output: Tensor) -> int:
        """Estimates rows.Stream.overlap_distance, without access orders."""
        uses, rows = self._uses(source), height(source)
        writer = next(s for s, stage in enumerate(self.stages) if stage.op.output is output)
        distance = 0
        for live_set in range(_LIVE_SETS):
            oldest = self._oldest(uses, live_set, rows)
            if oldest < rows:
                written = held_bytes(output, self._made[writer][live_set] + 1)
                distance = max(distance, written - free_bytes(source, oldest))
        return min(distance, output.bytes)

    def in_place(self, source: Tensor, output: Tensor) -> bool:
        """Estimates rows.Stream.in_place."""
        uses, rows = self._uses(source), height(source)
        writer = next(s for s, stage in enumerate(self.stages) if stage.op.output is output)
        made = self._made[writer]
        return all(self._oldest(uses, live_set, rows) > made[live_set] for live_set in range(_LIVE_SETS))
