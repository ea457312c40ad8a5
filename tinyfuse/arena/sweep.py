"""Exact search: buffers enter one by one, and for each pair it is decided which lies below.

Once every conflicting pair has its order, the least offsets are longest paths. So the search decides
pairs, not permutations: buffers that never meet need no order between them, and what was decided
about early steps stays apart from what happens later.

Buffers enter by first step, and leave as soon as everything they conflict with has entered. A state
keeps, for the buffers that are still in, how far each must lie above the arena's bottom, above each
other, and below its top: all that the past has to say to the future. A state that demands no less
than another anywhere can't lead to a better arena and is dropped. This is dynamic programming along
a path decomposition of the conflict graph (Bodlaender, "A partial k-arboretum of graphs with bounded
treewidth", 1998), with the dominance of labels known from shortest paths under resource constraints.
Where the states of one layer become too many, only the most promising go on (beam search); the least
size of the others is then the bound that is proven.

Alignments that differ make a demand depend on an offset: demands.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import TopologicalSorter
from operator import le

from tinyfuse.arena.demands import BOTTOM, TOP, Demands, demands_of
from tinyfuse.arena.problem import Problem
from tinyfuse.arena.search import Budget, Found

_Decided = tuple[Demands, int, tuple[int, ...], tuple[int, ...]]


class _State:
    """demands[p][q]: how far place q must lie above place p; `size`: of the arena, so far. The rest tells how it came
    about: `item` entered above `under` and below `over`."""

    __slots__ = ("demands", "item", "over", "parent", "size", "under")

    def __init__(
        self,
        demands: Demands,
        size: int,
        parent: _State | None = None,
        item: int = -1,
        under: tuple[int, ...] = (),
        over: tuple[int, ...] = (),
    ):
        self.demands, self.size = demands, size
        self.parent, self.item, self.under, self.over = parent, item, under, over


class Sweep:
    """The search over `items` (numbers of problem.buffers) with their alignments; at most `width`
    states of a layer go on."""

    def __init__(self, problem: Problem, items: list[int], align: dict[int, int], width: int):
        self.problem, self.align, self.width = problem, align, width
        chosen = set(items)
        self.partners = {i: [j for j in problem.apart[i] if j in chosen] for i in items}
        buffers = problem.buffers
        self.entries = sorted(items, key=lambda i: (buffers[i].first_step, -buffers[i].bytes, i))
        self.kind = demands_of(align.values())

    def run(self, limit: int, enough: int, budget: Budget) -> Found:
        """The least arena of fewer than `limit` bytes; any of `enough` bytes will do."""
        entered: set[int] = set()
        inside: list[int] = []
        layer = [_State(self.kind.start(enough), enough)]
        bound = limit
        for item in self.entries:
            least = min(state.size for state in layer)
            layer = [child for state in layer for child in self._enter(state, item, inside, limit, budget)]
            if budget.spent:
                return Found(None, min(bound, least))
            entered.add(item)
            inside.append(item)
            for gone in [i for i in inside if entered.issuperset(self.partners[i])]:
                place = 2 + inside.index(gone)
                inside.remove(gone)
                for state in layer:
                    state.demands = [
                        row[:place] + row[place + 1 :] for row in state.demands[:place] + state.demands[place + 1 :]
                    ]
            layer, missed = self._best(layer)
            bound = bound if missed is None else min(bound, missed)
            if not layer:
                return Found(None, bound)
        return Found(self._order(layer[0]), min(bound, layer[0].size))

    def _enter(self, state: _State, item: int, inside: list[int], limit: int, budget: Budget) -> Iterator[_State]:
        """Every state with `item` above or below each buffer it conflicts with."""
        here, places = len(inside) + 2, {i: p for p, i in enumerate(inside, 2)}
        aligns = [self.kind.modulus, 1, *(self.align[i] for i in inside), self.align[item]]
        numbers = sum(self.kind.modulus // align for align in aligns)
        cost = len(aligns) * (len(aligns) + numbers // 8)  # of one decision
        demands = self.kind.entered(state.demands, aligns, self.problem.buffers[item].bytes)
        met = [i for i in self.partners[item] if i in places]
        # the largest first: it decides most
        met.sort(key=lambda i: (-self.problem.buffers[i].bytes, i))
        # demands, how many pairs are decided, what the buffer lies above, and below
        open_choices: list[_Decided] = [(demands, 0, (), ())]
        while open_choices and not budget.spent:
            demands, decided, under, over = open_choices.pop()
            size = self.kind.least(demands[BOTTOM][TOP])
            if size >= limit:
                continue
            if decided == len(met):
                yield _State(demands, size, state, item, under, over)
                continue
            other = met[decided]
            there = places[other]
            for low, high, apart, below, above in (
                (there, here, self.problem.apart[other][item], (*under, other), over),
                (here, there, self.problem.apart[item][other], under, (*over, other)),
            ):
                if self.kind.least(demands[high][low]) >= 0:
                    continue  # decided already by a chain of others
                budget.left -= cost
                changed = [row[:] for row in demands]
                self.kind.add(changed, aligns, low, high, apart)
                open_choices.append((changed, decided + 1, below, above))

    def _order(self, state: _State) -> list[int]:
        """Buffers from below to above; placed so, each at its lowest offset, they take no more."""
        below: dict[int, set[int]] = {i: set() for i in self.entries}
        while state.parent is not None:
            below[state.item].update(state.under)
            for other in state.over:
                below[other].add(state.item)
            state = state.parent
        return list(TopologicalSorter(below).static_order())

    def _best(self, layer: list[_State]) -> tuple[list[_State], int | None]:
        """The best states of a layer, at most `width`, that no other is as good as everywhere, and the least size of
        the rest, None where there are none."""
        keys: dict[tuple[int, ...], _State] = {}
        for state in layer:
            keys.setdefault(self.kind.key(state.demands), state)
        # a state that is as good as another everywhere comes before it
        ranked = sorted(keys.items(), key=lambda entry: (entry[1].size, sum(entry[0]), entry[0]))
        kept: list[tuple[tuple[int, ...], _State]] = []
        missed: int | None = None
        for key, state in ranked:
            if any(all(map(le, rival, key)) for rival, _ in kept):
                continue
            if len(kept) == self.width:
                missed = state.size if missed is None else missed  # they come by size
                continue
            kept.append((key, state))
        return [state for _, state in kept], missed
