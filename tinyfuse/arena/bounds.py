"""Lower bound on the size of any placement: the buffers of one live set lie one above the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import gcd

from tinyfuse.arena.problem import Problem


class OverlapChain:
    """Buffers of one live set, stacked in some order of offsets, with an upper bound on the bytes saved by overlaps.

    heights  buffer -> its bytes, rounded up to the common divisor of all offsets.
    spare    most bytes that rounding adds to the highest buffer.
    savings  (bytes, below, above) for each pair in which `below` may reach into `above`, the next one up; largest
             first.
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
        """Lower bound on `bytes`: subtracts a greedy matching of the largest savings, which saves at least as much."""
        saved, below, above = 0, set[int](), set[int]()
        for more, i, j in self.savings:
            if i not in below and j not in above:
                saved += more
                below.add(i)
                above.add(j)
        return sum(self.heights.values()) - self.spare - saved

    @cached_property
    def bytes(self) -> int:
        """Lower bound on the size of the buffers together. In any order of offsets, a buffer has at most one other
        directly above it and one directly below it, so a maximum matching of such pairs saves at least as much."""
        return sum(self.heights.values()) - self.spare - _max_matching(self.savings)


def lower_bound(problem: Problem, most: int | None = None) -> int:
    """Largest lower bound over all live sets. Once it exceeds `most` bytes, the search for a larger one ends."""
    best = max((buffer.bytes for buffer in problem.buffers), default=0)
    sizes = [buffer.bytes + buffer.align for buffer in problem.buffers]
    weighed = [(sum([sizes[i] for i in alive]), alive) for alive in problem.live_sets]
    for size, alive in sorted(weighed, reverse=True):  # the largest bounds are among the first
        if size <= best or (most is not None and best > most):
            break
        chain = OverlapChain(problem, alive)
        if chain.at_most > best:
            best = max(best, chain.bytes)
    return best


def _max_matching(savings: Iterable[tuple[int, int, int]]) -> int:
    """Maximum-weight matching: most bytes saved by pairs of which no two share `below` or `above`.

    Source: Kuhn, "The Hungarian method for the assignment problem", 1955, by shortest augmenting paths.
    """
    savings = list(savings)
    below, above = ({item: n for n, item in enumerate(dict.fromkeys(s[side] for s in savings))} for side in (1, 2))
    if len(below) < len(above):  # rows are the smaller side; each gets a partner, or a dummy column that saves nothing
        rows, columns, pairs = below, above, [(below[i], above[j], saved) for saved, i, j in savings]
    else:
        rows, columns, pairs = above, below, [(above[j], below[i], saved) for saved, i, j in savings]
    width = len(columns) + len(rows)
    cost = [[0] * width for _ in rows]
    for row, column, saved in pairs:
        cost[row][column] = -saved
    return -_min_assignment(cost, width)


def _min_assignment(cost: list[list[int]], width: int) -> int:
    """Least sum of one number per row of `cost`, each in a different column."""
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
