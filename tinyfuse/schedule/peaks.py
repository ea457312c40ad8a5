"""Which groups are worth weighing where a rough answer will do: those that lie where most bytes are alive.

A search that weighs every group of consecutive operators (search.py) plays a loop over rows for each of them, and
most of them lie where little is alive: there a longer group saves no RAM, for RAM is what is alive at the worst
moment, and seldom an instruction. So operators alone and pairs are weighed first; then, as long as that lowers the
worst moment of the best partition, all groups around operators that alone take nearly as many bytes as it.
"""

from __future__ import annotations

from tinyfuse import limits
from tinyfuse.schedule.search import Weigher, Weight

#: operators that alone take this share of the best partition's bytes are near its peak. Fewer are looked at with a
#: larger share: with 1, RAM is 7 % too much on MLPerf Tiny's vww_96 and 18 % on its resnet
_NEAR = 0.6

#: operators of the groups that are weighed everywhere, at most
_SHORT = 2

#: more bytes than any group takes
_NEVER = 1 << 62


def weigh_at_peaks(weigher: Weigher) -> list[list[tuple[int, Weight]]]:
    """Per node i, (j, weight) of the weigher's groups ops[i:j], as search.weigh_groups gives them for all groups."""
    count = len(weigher.ops)
    weighed: dict[tuple[int, int], tuple[Weight, ...] | None] = {}
    for length in range(1, _SHORT + 1):
        for i in range(count + 1 - length):
            weighed[i, i + length] = weigher.weigh(i, i + length)
    alone = [_least(weighed[i, i + 1]) for i in range(count)]
    peak, before = _peak(weighed, count), _NEVER + 1
    while peak < before:
        for begin, end in _stretches([bytes_ >= peak * _NEAR for bytes_ in alone]):
            for i in range(max(0, begin - 1), end):
                for j in range(i + _SHORT + 1, min(end + 1, count, i + limits.GROUP_LENGTH.most) + 1):
                    if (i, j) not in weighed:
                        weighed[i, j] = weigher.weigh(i, j)
                    if weighed[i, j] is None or min((w.own for w in weighed[i, j] or ()), default=0) > peak:
                        break  # nor does a longer one that begins here fit
        peak, before = _peak(weighed, count), peak
    edges: list[list[tuple[int, Weight]]] = [[] for _ in range(count)]
    for (i, j), weights in weighed.items():
        edges[i] += [(j, weight) for weight in weights or ()]
    return edges


def _least(weights: tuple[Weight, ...] | None) -> int:
    return min((weight.ram for weight in weights or ()), default=_NEVER)


def _peak(weighed: dict[tuple[int, int], tuple[Weight, ...] | None], count: int) -> int:
    """The least bytes, at its worst moment, of a partition into the groups that were weighed."""
    least = [0] + [_NEVER] * count
    for (i, j), weights in sorted(weighed.items()):
        least[j] = min(least[j], max(least[i], _least(weights)))
    return least[-1]


def _stretches(near: list[bool]) -> list[tuple[int, int]]:
    """(begin, end) of operators that are near the peak, those between two that lie next but one among them."""
    found: list[tuple[int, int]] = []
    for k in (k for k, at_peak in enumerate(near) if at_peak):
        if found and k - found[-1][1] <= _SHORT:
            found[-1] = found[-1][0], k + 1
        else:
            found.append((k, k + 1))
    return found
