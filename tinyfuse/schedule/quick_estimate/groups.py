"""Estimates groups of operators from shapes alone, without simulating loops.

A group grows by one operator at its front: bytes and instructions are sums over its loop (loops.py) and its calls.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from tinyfuse.cost.predict import call_instructions, loop_factors
from tinyfuse.ir import Graph
from tinyfuse.kernels.core.context import Context
from tinyfuse.plan.rows import height
from tinyfuse.schedule.groups.search import Weigher, Weight
from tinyfuse.schedule.kernel_choice.alike import first_alike
from tinyfuse.schedule.kernel_choice.select import kernel_for
from tinyfuse.schedule.quick_estimate.loops import EstimatedLoop, Manner, RingBytes, Shapes


class _Call(NamedTuple):
    """Call of an operator's kernel: bytes of scratch, instructions without the loop's, and number of row-wise calls."""

    manner: Manner
    by_row: bool
    scratch: int
    instructions: float
    times: int


class EstimatedWeights(Weigher):
    """Data for weighing all groups of a graph's operators, in their order, with a context's kernels."""

    def __init__(self, graph: Graph, context: Context, shapes: Shapes | None = None):
        """Takes `shapes` of the graph if they are known already."""
        self.shapes = Shapes(graph) if shapes is None else shapes
        super().__init__(graph, self.shapes.ops, context)
        self.factors = defaultdict(float, loop_factors(context))  # 0 for counts that a table lacks
        self._calls: dict[tuple[int, bool | None], _Call] = {}
        self._alone: dict[int, Weight] = {}

    def call(self, number: int, rings: bool | None) -> _Call:
        """Estimated call of operator `number`, whose input is a ring or not (`rings`). None if the operator must run
        alone."""
        found = self._calls.get((number, rings))
        if found is None:
            found = self._calls[number, rings] = self._call(number, rings)
        return found

    def _call(self, number: int, rings: bool | None) -> _Call:
        op, context = self.ops[number], self.context
        found = kernel_for(op, context, rings)
        assert found is not None, "rules and legality know"
        if found == kernel_for(first_alike(op), context, rings):
            op = first_alike(op)
        kernel, by_row = found
        times = -(-height(op.output) // kernel.rows_a_call) if by_row else 0
        instructions = call_instructions(op, kernel, by_row, context)
        manner = self.shapes.manner(number, kernel, by_row)
        return _Call(manner, by_row, kernel.scratch(op, context), instructions, times)

    def loop(self, number: int, call: _Call) -> EstimatedLoop:
        """Loop of a single operator, to begin a group with."""
        return self.shapes.loop(number, call.manner, call.by_row, self.context.optimize != "speed")

    def of_one(self, number: int) -> Weight:
        """Weight of a single operator."""
        if number not in self._alone:
            call = self.call(number, True if self.ops[number].reads_ring else None)
            instructions = call.instructions + (self.factors["groups"] + self.factors["rows"] * call.times)
            # a loop without rings is the same for all objectives
            around, link = self.shapes.loop(number, call.manner, call.by_row, True).around
            self._alone[number] = Weight(around + call.scratch, call.scratch, instructions, False, link=link)
        return self._alone[number]


class EstimatedGroup:
    """Group ops[begin:end] that grows at its front, from one operator that may be in a group.

    own  (bytes of rings and scratch if rings wrap around, the same if rings slide)
    """

    def __init__(self, weights: EstimatedWeights, end: int):
        self._weights, self._end = weights, end
        self._scratch: dict[int, int] = {}
        self._of_rings: set[int] = set()
        self._rows = self._checks = 0
        self._instructions = 0.0
        self._loop = weights.loop(end - 1, weights.call(end - 1, False))
        self._add_call(end - 1)
        self.own = self._own()

    def begin_with(self, begin: int) -> None:
        """Adds the operator in front of the group."""
        weights = self._weights
        readers = {use.op: weights.call(use.op, True) for use in self._loop.next_uses}
        self._loop = self._loop.with_one_more(
            weights.call(begin, False).manner, {reader: call.manner for reader, call in readers.items()}
        )
        for reader in readers:
            self._read_ring(reader)
        self._add_call(begin)
        self.own = self._own()

    def _add_call(self, number: int) -> None:
        """Adds the call of a member that reads no ring yet."""
        call = self._weights.call(number, False)
        self._instructions += call.instructions
        self._scratch[number] = call.scratch
        self._rows += call.times
        self._checks += call.times * (self._end - number)

    def _read_ring(self, number: int) -> None:
        """Makes an input of a member a ring."""
        if number not in self._of_rings:
            self._of_rings.add(number)
            call, before = self._weights.call(number, True), self._weights.call(number, False)
            self._instructions += call.instructions - before.instructions
            self._scratch[number] = call.scratch

    def _own(self) -> tuple[int, int]:
        still, sliding = self._loop.rings
        own = self._own_bytes(still)
        return own, own if sliding is still else self._own_bytes(sliding)

    def _own_bytes(self, rings: RingBytes) -> int:
        """Most bytes of rings and scratch while a member runs."""
        return max(rings.held[member] + scratch for member, scratch in self._scratch.items()) + rings.downstream

    @property
    def least_around(self) -> int:
        """Lower bound on the bytes alive besides the group's own."""
        return self._loop.least_around

    def weights(self) -> list[Weight]:
        """Yields the group's weights with rings that wrap around and, if that takes less RAM, with sliding rings."""
        of, loop, (still, sliding) = self._weights.factors, self._loop, self.own
        instructions = self._instructions + (of["groups"] + of["rows"] * self._rows + of["checks"] * self._checks)
        around, link = loop.around
        found = [Weight(around + still, still, instructions, False, link=link)]
        if sliding < still:
            instructions += of["slides"] * loop.rings[1].looks + of["slid_bytes"] * loop.rings[1].moved
            found.append(Weight(around + sliding, sliding, instructions, True, link=link))
        return found
