"""Orders in which the operators of a branchy graph may run, besides that of the file.

least peak   lowest peak of bytes alive, with every tensor whole: dynamic programming over the sets of operators that
             may have run (Liberis and Lane, "Neural networks on microcontrollers: saving memory at inference via
             operator reordering", 2019). Exact unless more than limits.ORDER_SETS / operators of these sets have equal
             size, or more than ORDER_WAYS / operators ways continue them; then only the best are kept (beam search).
streams      least peak with each operator next to the only reader of its result, if both can run by rows: the tensor
             between them is then a ring, and counts nothing.
siblings     operators that read the same tensor next to each other.

Operators on states always keep their order, and operators before an image that is fed by rows, or before
AWAIT_ROWS, stay there. groups/promising_orders.py decides which orders are worth a search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from tinyfuse import limits
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.limits import Limit, Reached, merge_limits
from tinyfuse.ops import FAMILIES
from tinyfuse.plan.liveness import Change, Liveness
from tinyfuse.plan.places import Places, is_alias


def orders(graph: Graph, stream: Callable[[Op, Op], bool], reached: Reached | None = None) -> list[Graph]:
    """Finds other orders of a graph, without duplicates. Limits are noted in `reached`.

    `stream` tells whether two operators, of which the second reads the first one's result, can run by rows together.
    """
    apart = _Units(graph, lambda a, b: False)
    if apart.is_chain():
        return []
    pairs = ((op, _only_reader(graph, op)) for op in graph.ops if not is_alias(op))
    together = frozenset((op, reader) for op, reader in pairs if reader is not None and stream(op, reader))
    least = [_of_least_peak(graph, frozenset()), _of_least_peak(graph, together)]
    if reached is not None:
        reached.note(*merge_limits(*(met for _, met in least)))
    found = [*(ops for ops, _ in least), apart.flat(siblings(apart))]
    known = [apart.flat(range(len(apart.ops)))]
    for ops in found:
        if ops not in known:
            known.append(ops)
    return [replace(graph, ops=_with_aliases(graph, ops)) for ops in known[1:]]


@lru_cache(maxsize=32)
def _of_least_peak(graph: Graph, together: frozenset[tuple[Op, Op]]) -> tuple[tuple[Op, ...], frozenset[Limit]]:
    """Finds an order with the least peak, operators of `together` next to each other, and the limits reached. Cached,
    because `together` is mostly the same for all objectives."""
    units = _Units(graph, lambda a, b: (a, b) in together)
    order, _, met = least_peak(units)
    return units.flat(order), met


class _Units:
    """Graph as units of operators that stay together, numbered in an order of execution. Only the last operator of a
    unit is read by others.

    ops     operators of each unit, in order
    before  per unit, a bit set of the units that must run first
    live    lifetimes of tensors if the units run in the order of their numbers
    """

    def __init__(self, graph: Graph, joined: Callable[[Op, Op], bool]):
        ops = [op for op in graph.ops if not is_alias(op)]
        border = next((op for op in ops if FAMILIES[op.kind].source or FAMILIES[op.kind].divides), None)
        first = set(ops[: ops.index(border)]) if border else set()

        children: dict[Op, list[Op]] = {op: [] for op in ops}
        inner: set[Op] = set()
        for op in ops:
            reader = _only_reader(graph, op)
            if (
                reader is not None
                and (op in first) == (reader in first)
                and (FAMILIES[op.kind].partial or joined(op, reader))
            ):
                children[reader].append(op)
                inner.add(op)
        self.ops = [tuple(_branch(op, children)) for op in ops if op not in inner]
        unit_of = {op: u for u, members in enumerate(self.ops) for op in members}

        self.before = [0] * len(self.ops)
        made_by = _made_by(graph)
        for op, u in unit_of.items():
            for maker in (m for tensor in op.activations for m in made_by[tensor]):
                self.before[u] |= 1 << unit_of[maker]
            self.before[u] &= ~(1 << u)
        for one, next_one in pairwise(dict.fromkeys(unit_of[op] for op in ops if op.states)):
            self.before[next_one] |= 1 << one
        if border is not None:
            at = unit_of[border]
            self.before[at] |= sum(1 << u for u in {unit_of[op] for op in first})
            for u in {unit_of[op] for op in ops if op not in first} - {at}:
                self.before[u] |= 1 << at

        self.live = Liveness(graph, self.ops, Places(op for op in graph.ops if is_alias(op)))

    def is_chain(self) -> bool:
        """Tells whether only one order exists."""
        return all(before >> u & 1 for u, before in enumerate(self.before[1:]))

    def flat(self, units: Sequence[int]) -> tuple[Op, ...]:
        return tuple(op for u in units for op in self.ops[u])


def _made_by(graph: Graph) -> dict[Tensor, tuple[Op, ...]]:
    """Operators that must have run before each activation exists."""
    found: dict[Tensor, tuple[Op, ...]] = dict.fromkeys(graph.inputs, ())
    for op in graph.ops:
        makers: tuple[Op, ...] = (op,)
        if is_alias(op):
            makers = tuple(dict.fromkeys(m for tensor in op.activations for m in found[tensor]))
        found.update(dict.fromkeys(op.outputs, makers))
    return found


def _only_reader(graph: Graph, op: Op) -> Op | None:
    """Only reader of `op`'s result, if `op` may run at any time before it; else None."""
    if len(op.outputs) != 1 or op.states or op.output in graph.outputs or FAMILIES[op.kind].source:
        return None
    readers = graph.consumers.get(op.output, ())
    return readers[0] if len(readers) == 1 and not is_alias(readers[0]) else None


def _branch(op: Op, children: dict[Op, list[Op]]) -> list[Op]:
    """Operators of the unit that ends with `op`: the operators whose results only `op` needs, branch by branch, then
    `op`."""
    found, waiting = [], [op]
    while waiting:
        found.append(waiting.pop())
        waiting += children[found[-1]]
    return found[::-1]


def _with_aliases(graph: Graph, ops: Sequence[Op]) -> tuple[Op, ...]:
    """Inserts each aliasing operator as soon as its inputs exist."""
    aliases = [op for op in graph.ops if is_alias(op)]
    there, found = set(graph.inputs), []
    for op in (None, *ops):
        if op is not None:
            found.append(op)
            there.update(op.outputs)
        for alias in list(aliases):
            if there.issuperset(alias.activations):
                found.append(alias)
                there.update(alias.outputs)
                aliases.remove(alias)
    return tuple(found)


# --- least peak ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _State:
    """Best way found to have run a set of units.

    peak       most bytes alive since the last set that every order passes
    total      bytes alive, summed over all steps
    alive      bytes alive now
    ready      units that can run next
    last       unit that ran last
    came_from  state before it
    """

    peak: int
    total: int
    alive: int
    ready: tuple[int, ...]
    last: int
    came_from: _State | None


def least_peak(units: _Units) -> tuple[list[int], int, frozenset[Limit]]:
    """Finds (order of units with the least peak, that peak in bytes, limits reached). Without limits it is proven
    least.

    If all orders pass one set (some unit comes before or after every other one), the stretches on both sides are
    minimized separately.
    """
    count = len(units.ops)
    width, ways = (limit.most // max(1, count) for limit in (limits.ORDER_SETS, limits.ORDER_WAYS))
    width = max(1, width)
    steps = [_Step(units, u) for u in range(count)]
    start = tuple(u for u in range(count) if not units.before[u])
    layer = {0: _State(0, 0, sum(t.bytes for t in units.live.provided), start, -1, None)}
    peak, met = 0, set[Limit]()
    for _ in range(count):
        if len(layer) == 1:
            ((mask, state),) = layer.items()
            peak, layer = max(peak, state.peak), {mask: replace(state, peak=0)}
        # (peak, total, bytes during the last unit, that unit, state before)
        following: dict[int, tuple[int, int, int, int, _State]] = {}
        for mask, state in layer.items():
            for u in state.ready:
                during = state.alive + steps[u].new_bytes(mask)
                highest, total = max(state.peak, during), state.total + during
                known = following.get(mask | 1 << u)
                if known is None or highest < known[0] or (highest == known[0] and total < known[1]):
                    following[mask | 1 << u] = highest, total, during, u, state
        best = list(following.items())
        if len(best) > width:
            best = sorted(best, key=lambda item: (*item[1][:2], item[0]))[:width]
            met.add(limits.ORDER_SETS)
        layer = {
            ran: steps[u].state_after(ran, highest, total, during, u, state)
            for ran, (highest, total, during, u, state) in best
        }
        if sum(len(state.ready) for state in layer.values()) > ways:
            fewer = _first_ways(layer, ways)
            if len(fewer) < len(layer):
                met.add(limits.ORDER_WAYS)
            layer = fewer
    (state,) = layer.values()
    peak = max(peak, state.peak)
    order: list[int] = []
    while state.came_from is not None:
        order.append(state.last)
        state = state.came_from
    return order[::-1], peak, frozenset(met)


def _first_ways(layer: dict[int, _State], ways: int) -> dict[int, _State]:
    """Keeps the best states of a layer with at most `ways` continuations together; at least one state."""
    kept: dict[int, _State] = {}
    for ran, state in sorted(layer.items(), key=lambda item: (item[1].peak, item[1].total, item[0])):
        ways -= len(state.ready)
        if kept and ways < 0:
            break
        kept[ran] = state
    return kept


class _Step(Change):
    """Changes when a unit runs: bytes alive, and units that become ready. Sets are bit sets of units that ran."""

    def __init__(self, units: _Units, u: int):
        super().__init__(units.live, u)
        self._after = [(v, before) for v, before in enumerate(units.before) if before >> u & 1]

    def state_after(self, ran: int, peak: int, total: int, during: int, u: int, state: _State) -> _State:
        """State after unit `u` ran as the last of `ran`."""
        ready = (*(v for v in state.ready if v != u), *(v for v, before in self._after if not before & ~ran))
        return _State(peak, total, during - self.freed_bytes(ran), ready, u, state)


# --- siblings --------------------------------------------------------------------------------


def siblings(units: _Units) -> list[int]:
    """Orders units greedily: first a reader of the tensor that readers began last, then a reader of the tensor made
    last, then the next of the file."""
    order: list[int] = []
    ran, made = 0, dict.fromkeys(units.live.provided, -1)
    begun: dict[Tensor, int] = {}

    def rank(u: int) -> tuple[int, int, int]:
        reads = [t for t in units.live.touched[u] if t in made]
        latest_begun = max((begun.get(t, -1) for t in reads), default=-1)
        return latest_begun, max((made[t] for t in reads), default=-1), -u

    waiting = set(range(len(units.ops)))
    while waiting:
        u = max((u for u in waiting if not units.before[u] & ~ran), key=rank)
        waiting.remove(u)
        for tensor in units.live.touched[u]:
            (begun if tensor in made else made).setdefault(tensor, len(order))
        order.append(u)
        ran |= 1 << u
    return order
