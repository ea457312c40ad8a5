"""Which cuts of the operator order give the least RAM: groups as edges of a shortest path.

Nodes are the places between operators of the topological order; an edge (i, j) is the fusion group
of operators i..j-1, weighed with the bytes that are alive while it runs: its rings and scratch, its
inputs and outputs with the best single overlap, and the tensors that pass it by. The least RAM of a
whole partition is then a minimax path; among paths of equal RAM the one with the fewest bytes over
all groups wins, and of those the one with the most groups: a longer group gains nothing by itself.

The weight leaves alignment and fragmentation to the planner, so the caller compares the plan of the
result with that of other partitions (tinyfuse/compiler.py).
"""

from __future__ import annotations

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.base import Context
from tinyfuse.plan import Stage
from tinyfuse.schedule.legality import Legality
from tinyfuse.schedule.lower import make_stages, overlap_distance, stream_of
from tinyfuse.schedule.rows import Stream

#: operators of one group, at most; the search tries shorter groups first
LONGEST_GROUPS = (4, 10, 40)

#: rows that all simulations together may compute: a few seconds; MLPerf Tiny's models take a tenth.
#: When they are used up, groups not yet weighed are left out.
WORK_LIMIT = 400_000

#: the weight of operators that more of them may make a group
_NO_GROUP = (float("inf"), 0)


def least_ram_partition(graph: Graph, context: Context, budget: int) -> list[list[Op]] | None:
    """A partition whose estimated RAM is at most `budget` bytes and least; None where there is none.

    A group that by itself exceeds the budget, and every longer one that begins with it, is left out:
    a group's own bytes only grow with its length.
    """
    ops = tuple(op for op in graph.ops if not FAMILIES[op.kind].alias)
    weigher = _Weigher(graph, ops, context)
    found = None
    for longest in LONGEST_GROUPS:
        found = _shortest_path(ops, weigher, budget, longest) or found
    return found


def _shortest_path(ops: tuple[Op, ...], weigher: _Weigher, budget: int, longest: int) -> list[list[Op]] | None:
    infinite = (float("inf"), 0, 0)
    best: list[tuple[float, int, int]] = [infinite] * (len(ops) + 1)
    came_from = [0] * (len(ops) + 1)
    best[0] = (0, 0, 0)
    for i in range(len(ops)):
        if best[i] == infinite:
            continue
        for j in range(i + 1, min(len(ops), i + longest) + 1):
            weight = weigher.weigh(i, j)
            if weight is None:
                break
            total, own = weight
            if own > budget:
                break
            peak, traffic, groups = best[i]
            candidate = (max(peak, total), traffic + total, groups - 1)
            if total <= budget and candidate < best[j]:
                best[j], came_from[j] = candidate, i
    if best[-1] == infinite:
        return None
    cuts, at = [], len(ops)
    while at:
        cuts.append((came_from[at], at))
        at = came_from[at]
    return [list(ops[i:j]) for i, j in reversed(cuts)]


class _Weigher:
    """Bytes alive while a group of consecutive operators runs."""

    def __init__(self, graph: Graph, ops: tuple[Op, ...], context: Context):
        self.graph, self.ops, self.context = graph, ops, context
        self.legality = Legality(graph, context)
        self.roots: dict[Tensor, Tensor] = {}
        for op in graph.ops:
            if op not in ops:
                self.roots[op.output] = self.root(op.input)
        position = {op: index for index, op in enumerate(ops)}
        self.made_at = {t: position[op] for op in ops for t in op.outputs}
        self.last_use: dict[Tensor, int] = {}
        for index, op in enumerate(ops):
            for tensor in op.activations:
                self.last_use[self.root(tensor)] = index
        for tensor in graph.outputs:
            self.last_use[self.root(tensor)] = len(ops)
        self.memo: dict = {}
        self.weights: dict[tuple[int, int], tuple[int, int] | None] = {}
        self.work = 0

    def root(self, tensor: Tensor) -> Tensor:
        """The tensor whose bytes an alias names."""
        return self.roots.get(tensor, tensor)

    def weigh(self, i: int, j: int) -> tuple[float, int] | None:
        """(all bytes alive, those of the group's inner buffers) of the group ops[i:j]; None where
        that is no group, nor can be by adding operators, or where the work is used up."""
        if (i, j) not in self.weights:
            if j - i > 1 and self.work > WORK_LIMIT:
                return None
            refusal = self.legality.refusal(self.ops[i:j])
            if refusal and refusal.final:
                return None
            self.weights[i, j] = _NO_GROUP if refusal else self._weigh(i, j)
        return self.weights[i, j]

    def _weigh(self, i: int, j: int) -> tuple[int, int]:
        ops = self.ops[i:j]
        stages = make_stages(list(ops), self.context, self.memo)
        kept = self.legality.leaving(ops)
        made = {t for op in ops for t in op.outputs}
        inputs = {self.root(t) for op in ops for t in op.activations} - made
        dying = {t for t in inputs if self.last_use[t] < j}
        by = sum(
            tensor.bytes
            for tensor in self._whole_before(i) - inputs
            if self.last_use.get(tensor, -1) >= j
        )
        stream = stream_of(stages, kept, self.context)
        self.work += len(stream.events) if stream else 1
        inner = stream.inner_bytes if stream else stages[0].scratch_bytes
        saved = max(
            (self._saved(stages, stream, source, output) for source in dying for output in kept),
            default=0,
        )
        crossing = sum(t.bytes for t in inputs) + sum(t.bytes for t in kept)
        return inner + crossing - saved + by, inner

    def _whole_before(self, i: int) -> set[Tensor]:
        made = {t for t, at in self.made_at.items() if at < i}
        return made | {self.root(t) for t in self.graph.inputs}

    @staticmethod
    def _saved(stages, stream: Stream | None, source: Tensor, output: Tensor) -> int:
        """Bytes that the overlap of an output with an input saves."""
        distance = overlap_distance(stages, stream, source, output)
        return source.bytes + output.bytes - max(distance + source.bytes, output.bytes)
