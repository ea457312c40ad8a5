"""A lower bound of every placement: the buffers of one live set lie one above the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from tinyfuse.arena.problem import Problem
from tinyfuse.once import cached_property


class OverlapChain:
    """Buffers that are alive together, so that they have an order by offset, each at its full height; and what may be
    saved of that.

    heights  buffer -> its bytes, rounded up to what divides all offsets
    spare    of these, what rounding adds to the highest one, at most
    savings  (bytes, below, above) for each pair of which one may reach into the other that lies next above it, the
             largest first
    """

    def __init__(self, problem: Problem, members: Sequence[int]):
        align = gcd(*(problem.buffers[i].align for i in members))
        self.heights = {i: -(-problem.buffers[i].bytes // align) * align for i in members}
        self.spare = max(self.heights[i] - problem.buffers[i].bytes for i in members)
        self.savings: list[tuple[int, int, int]] = []
        for i, height in self.heights.items():
            for j, distance in problem.near[i].items():
                if j in self.heights and (saved := height - -(-distance // align) * align) > 0:
                    self.savings.append((saved, i, j))
        self.savings.sort(reverse=True)

    @property
    def at_most(self) -> int:
        """`bytes` is no more: what it saves is no less than by the best pair that is left, one after the other."""
        saved, below, above = 0, set[int](), set[int]()
        for more, i, j in self.savings:
            if i not in below and j not in above:
                saved += more
                below.add(i)
                above.add(j)
        return sum(self.heights.values()) - self.spare - saved

    @cached_property
    def bytes(self) -> int:
        """What the buffers take at least. In their order by offset each has one next above it, and lies next above one:
        what is saved is no more than by the best such pairs, whether or not these are one order."""
        return sum(self.heights.values()) - self.spare - _most_saved(self.savings)


def lower_bound(problem: Problem, most: int | None = None) -> int:
    """Every arena is at least as large: the largest of the bounds of all live sets. Of more than `most` bytes any will
    do."""
    best = max((buffer.bytes for buffer in problem.buffers), default=0)
    sizes = [buffer.bytes + buffer.align for buffer in problem.buffers]
    weighed = [(sum([sizes[i] for i in alive]), alive) for alive in problem.live_sets]
    for size, alive in sorted(weighed, reverse=True):  # those with the largest bounds are among the first
        if size <= best or (most is not None and best > most):
            break
        chain = OverlapChain(problem, alive)
        if chain.at_most > best:
            best = max(best, chain.bytes)
    return best


def _most_saved(savings: Iterable[tuple[int, int, int]]) -> int:
    """The most that pairs save together of which no two have the same one below, nor the same one above: a matching of
    the greatest weight (Kuhn, "The Hungarian method for the assignment problem", 1955; by shortest augmenting
    paths)."""
    savings = list(savings)
    below, above = ({item: n for n, item in enumerate(dict.fromkeys(s[side] for s in savings))} for side in (1, 2))
    if len(below) < len(above):  # each of the fewer ones in turn gets a partner, or a stand-in that saves nothing
        rows, columns, pairs = below, above, [(below[i], above[j], saved) for saved, i, j in savings]
    else:
        rows, columns, pairs = above, below, [(above[j], below[i], saved) for saved, i, j in savings]
    width = len(columns) + len(rows)
    cost = [[0] * width for _ in rows]
    for row, column, saved in pairs:
        cost[row][column] = -saved
    return -_assignment(cost, width)


def _assignment(cost: list[list[int]], width: int) -> int:
    """The least sum of a number of each row, all of different columns."""
    none = width
    row_of, rows_price, columns_price = [-1] * (width + 1), [0] * len(cost), [0] * (width + 1)
    for begun in range(len(cost)):
        row_of[none], at = begun, none
        least: list[float] = [float("inf")] * width
        came_from = [none] * width
        seen: list[int] = []
        while row_of[at] >= 0:
            seen.append(at)
            row = row_of[at]
            step, following = float("inf"), none
            for column in range(width):
                if column in seen:
                    continue
                reduced = cost[row][column] - rows_price[row] - columns_price[column]
                if reduced < least[column]:
                    least[column], came_from[column] = reduced, at
                if least[column] < step:
                    step, following = least[column], column
            for column in seen:
                rows_price[row_of[column]] += int(step)
                columns_price[column] -= int(step)
            for column in range(width):
                if column not in seen:
                    least[column] -= step
            at = following
        while at != none:
            row_of[at] = row_of[came_from[at]]
            at = came_from[at]
        row_of[none] = -1
    return sum(cost[row][column] for column, row in enumerate(row_of[:width]) if row >= 0)
