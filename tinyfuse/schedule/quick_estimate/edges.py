"""Selects the groups worth weighing for an estimate: those where the most bytes are alive.

Single operators are weighed first (groups.py). Then all groups around operators that alone take nearly as many bytes as
the peak of the best partition are weighed, as long as that lowers the peak. Elsewhere a group saves no RAM, because RAM
is the peak, and seldom an instruction.
"""

from __future__ import annotations

import math
from collections.abc import Generator

from tinyfuse import limits
from tinyfuse.schedule.groups.search import Weight
from tinyfuse.schedule.quick_estimate.groups import EstimatedGroup, EstimatedWeights

#: share of the best partition's bytes from which single operators count as near its peak. With 0.75, an attention
#: network's peak is 26 % too high; with 0.85, RAM of 272 plans is off by 2.0 % on average instead of 1.4 %
_NEAR = 0.65

#: two operators near the peak are in one stretch if at most this number of operators lies between them
_BETWEEN = 2

#: rules that no operator in front of a group mends (legality.py)
_FINAL = ("barrier", "library", "state", "divided")


def estimated_edges(weights: EstimatedWeights, most: float = math.inf) -> list[list[tuple[int, Weight]]]:
    """Weighs the groups near the peak: per node i, (j, weight) of the groups ops[i:j], as search.weigh_groups does for
    all.

    Left out are groups of more than `most` bytes, and long groups above the best partition's RAM, because these seldom
    take fewer instructions than short groups.
    """
    return _Edges(weights, most).found


def single_operator_edges(weights: EstimatedWeights) -> list[list[tuple[int, Weight]]]:
    """Weighs single operators: per node i, (i + 1, weight). They take about the fewest instructions, because only row
    loops are fused."""
    legal = [weights.legality.refusal([op]) is None for op in weights.ops]
    return [[(i + 1, weights.of_one(i))] if may_be else [] for i, may_be in enumerate(legal)]


class _Edges:
    """State of the selection.

    found  groups weighed so far, as estimated_edges returns them
    least  per node j, i -> least bytes of the group ops[i:j]
    """

    def __init__(self, weights: EstimatedWeights, most: float):
        self._weights, count = weights, len(weights.ops)
        self.found: list[list[tuple[int, Weight]]] = [[] for _ in weights.ops]
        self._least: list[dict[int, int]] = [{} for _ in range(count + 1)]
        self._most = self._peak = most
        resident_output = [self._ending(end) for end in range(1, count + 1)]
        # starts the generators: each yields the first operator of its longest group
        longest = [next(group) for group in resident_output]
        alone = [self._least[i + 1].get(i, math.inf) for i in range(count)]
        self._peak, lower = self._best_peak(), True
        while lower:
            for begin, end in _stretches([bytes_ >= self._peak * _NEAR for bytes_ in alone]):
                first = max(0, begin - 1)
                for j in range(begin + 1, min(end + 1, count) + 1):
                    if longest[j - 1] > first:
                        longest[j - 1] = resident_output[j - 1].send(first)
            peak = self._best_peak()
            self._peak, lower = peak, peak < self._peak

    def _ending(self, end: int) -> Generator[int, int, None]:
        """Weighs the groups that end before ops[end]. It is sent the first operator with which they may begin, and
        yields that of the longest one so far, -1 if none can be longer."""
        ops, legality = self._weights.ops, self._weights.legality
        if legality.refusal(ops[end - 1 : end]) is None:
            self._note(end - 1, end, [self._weights.of_one(end - 1)])
        first = yield end - 1
        if legality.barrier(ops[end - 1], False) is None:
            group, alive = EstimatedGroup(self._weights, end), self._weights.shapes.alive_bytes[end]
            for begin in range(end - 2, max(-1, end - 1 - limits.GROUP_LENGTH.most), -1):
                while begin < first:
                    first = yield begin + 1
                # longer groups have no fewer rings, and tensors alive behind them are never saved by an overlap
                if min(group.own) + alive > self._peak:
                    break
                refusal = legality.refusal(ops[begin:end])
                if refusal is not None and refusal.rule in _FINAL:
                    break
                group.begin_with(begin)
                if refusal is None and min(group.own) + group.least_around <= self._peak:
                    self._note(begin, end, group.weights())
        while True:
            yield -1

    def _note(self, begin: int, end: int, weights: list[Weight]) -> None:
        """Records a group's weights, unless it takes more than the best partition."""
        least = min(weight.ram for weight in weights)
        if least <= self._peak:
            self.found[begin] += [(end, weight) for weight in weights]
            self._least[end][begin] = least

    def _best_peak(self) -> float:
        """Least peak in bytes of a partition into the groups weighed so far, at most the limit."""
        least: list[float] = [0]
        for ways in self._least[1:]:
            least.append(min((max(least[i], ram) for i, ram in ways.items()), default=math.inf))
        return min(least[-1], self._most)


def _stretches(near: list[bool]) -> list[tuple[int, int]]:
    """(begin, end) of runs of operators near the peak, with short gaps included."""
    found: list[tuple[int, int]] = []
    for k in (k for k, at_peak in enumerate(near) if at_peak):
        if found and k - found[-1][1] <= _BETWEEN:
            found[-1] = found[-1][0], k + 1
        else:
            found.append((k, k + 1))
    return found
