"""What only moves elements is not run where the elements can be in place from the start.

before   %c = CONCATENATION(%a, %b);  %d, %e = SPLIT(%x)      along the first dimension that is not 1
after    %c = CONCATENATION(%a, %b) view;  %d, %e = SPLIT(%x) view

The parts of a view lie inside the whole: what makes %a and %b writes straight into %c, what reads %d and %e
reads out of %x. That asks for parts that are one piece of the whole each (`Operator.parts`), and for one
place for every tensor (`Places.allows`). Otherwise the copy stays.

A whole needs all its bytes from its first part on, and as long as any part is read. So a view may take more
RAM than a copy: of a small slice of a large tensor, of a concatenation whose first part is there long before
its last. `every_view` doesn't ask; `views` takes those that don't, operator by operator, as if nothing
else were fused. What fusion makes of either, and of none, only plans tell: tinyfuse/compiler.py compares them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.places import Places, is_alias


def every_view(graph: Graph) -> Graph:
    """The graph in which all that can be a view is one."""
    places, found = Places(), set()
    for op in graph.ops:
        if is_alias(op):
            places.add(op)
        elif places.allows(op):
            places.add(op)
            found.add(op)
    return _with_views(graph, found)


def views(graph: Graph) -> Graph:
    """The graph with the views that take no more RAM than the copy, at the worst moment of the tensors that
    they join."""
    usage, found = _Usage(graph), set()
    for op in graph.ops:
        if not is_alias(op) and usage.places.allows(op) and usage.spares(op):
            usage.join(op)
            found.add(op)
    return _with_views(graph, found)


def without_views(graph: Graph) -> Graph:
    """The graph in which all views are copies again."""
    ops = tuple(replace(op, view=False) if op.view else op for op in graph.ops)
    kept = tuple(saving for saving in graph.savings if saving.rewrite not in (views.__name__, every_view.__name__))
    return replace(graph, ops=ops, savings=kept)


def _with_views(graph: Graph, found: set[Op]) -> Graph:
    ops = tuple(replace(op, view=True) if op in found else op for op in graph.ops)
    return replace(graph, ops=ops) if found else graph


class _Usage:
    """The bytes alive at each step (an operator, in the order of the graph) where every operator runs
    alone, and what a view changes about them."""

    def __init__(self, graph: Graph):
        self.places = Places()
        self.step = {op: number for number, op in enumerate(graph.ops, 1)}
        #: of each root, the steps at which it is made or read; 0 and the last are the caller's
        self.steps: dict[Tensor, list[int]] = {}
        for tensor in graph.inputs:
            self.steps.setdefault(tensor, []).append(0)
        for op, step in self.step.items():
            if is_alias(op):
                self.places.add(op)
            else:
                for tensor in op.activations + op.outputs:
                    self.steps.setdefault(self.places.root(tensor), []).append(step)
        for tensor in graph.outputs:
            self.steps.setdefault(self.places.root(tensor), []).append(len(graph.ops) + 1)
        self.alive = np.zeros(len(graph.ops) + 2, np.int64)
        for root, steps in self.steps.items():
            self.alive[min(steps) : max(steps) + 1] += root.bytes

    def _roots(self, op: Op) -> list[Tensor]:
        return list(dict.fromkeys(self.places.root(tensor) for tensor in op.activations + op.outputs))

    def _joined(self, op: Op) -> tuple[list[int], int]:
        """The steps of all that `op` would join, without its own, and the bytes of the whole."""
        roots = self._roots(op)
        steps = [step for root in roots for step in self.steps[root] if step != self.step[op]]
        return steps, max(root.bytes for root in roots)

    def spares(self, op: Op) -> bool:
        """Whether a view takes no more bytes at the worst step than the copy does."""
        steps, size = self._joined(op)
        before = self.alive[min(steps) : max(steps) + 1]
        after = before + size
        for root in self._roots(op):
            own = self.steps[root]
            after[min(own) - min(steps) : max(own) + 1 - min(steps)] -= root.bytes
        return after.max() <= before.max()

    def join(self, op: Op) -> None:
        steps, size = self._joined(op)
        for root in self._roots(op):
            own = self.steps.pop(root)
            self.alive[min(own) : max(own) + 1] -= root.bytes
        self.places.add(op)
        self.steps[self._roots(op)[0]] = steps
        self.alive[min(steps) : max(steps) + 1] += size
