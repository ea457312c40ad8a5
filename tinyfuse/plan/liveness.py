"""Lifetimes of tensors, over ordered steps of execution or over sets of steps whose order is open.

Only roots (places.py) have lifetimes: a tensor that is part of another one's memory counts as part of it. A root is
alive from the first step that writes any part of it to the last step that reads or writes one. Graph inputs are alive
before the first step, graph outputs after the last.

plan/loop.py computes which rows a ring holds within a step; arena/ places the buffers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.plan.places import Places

#: step number at which the caller provides the graph's inputs
BEFORE = -1


class Liveness:
    """Lifetimes of a graph's roots, where step s runs the operators `steps[s]`.

    Operators in no step only alias memory, as `places` says.

    after   step number at which the caller takes the graph's outputs
    uses    per root the steps that make or read a part of it, ascending, BEFORE and `after` among them.
    makers  per root the steps that make a part of it, ascending.
    inner   roots that only one step makes and reads: they need not exist whole.
    """

    def __init__(self, graph: Graph, steps: Sequence[Iterable[Op]], places: Places):
        self.after = len(steps)
        self.uses: dict[Tensor, list[int]] = {places.root(tensor): [BEFORE] for tensor in graph.inputs}
        self.makers: dict[Tensor, list[int]] = {}
        readers: dict[Tensor, list[int]] = {}
        for step, ops in enumerate(steps):
            for op in ops:
                for tensor in op.activations:
                    _note(step, places.root(tensor), self.uses, readers)
                for tensor in op.outputs:
                    _note(step, places.root(tensor), self.uses, self.makers)
        for root in map(places.root, graph.outputs):
            if root in self.uses:  # not a constant
                _note(self.after, root, self.uses)
        self.inner = frozenset(
            root
            for root, uses in self.uses.items()
            if len(uses) == 1 and uses == self.makers.get(root) == readers.get(root)
        )

    def first(self, root: Tensor) -> int:
        """First step in which a root is alive."""
        return self.uses[root][0]

    def last(self, root: Tensor) -> int:
        """Last step that needs a root's bytes."""
        return self.uses[root][-1]

    @property
    def provided(self) -> list[Tensor]:
        """Roots that are alive before the first step: the caller provides them."""
        return [root for root in self.uses if self.first(root) == BEFORE]

    @cached_property
    def touched(self) -> list[list[Tensor]]:
        """Roots (tensors that own memory) that each step reads or writes, except those that live only inside a
        group."""
        found: list[list[Tensor]] = [[] for _ in range(self.after)]
        for root, uses in self.uses.items():
            for step in uses:
                if BEFORE < step < self.after and root not in self.inner:
                    found[step].append(root)
        return found

    @cached_property
    def passing(self) -> list[list[Tensor]]:
        """Roots that are alive before and after each step, but that the step does not use."""
        found: list[list[Tensor]] = [[] for _ in range(self.after)]
        for root in self.uses:
            for step in range(self.first(root) + 1, self.last(root)):
                found[step].append(root)
        return found

    @cached_property
    def alive(self) -> np.ndarray:
        """Bytes of all roots alive at BEFORE, at each step and after the last one; int64 [steps + 2]."""
        found = np.zeros(self.after + 2, np.int64)
        for root, uses in self.uses.items():
            found[span(uses)] += root.bytes
        return found

    def join(self, parts: Iterable[Tensor], whole: Tensor, uses: list[int]) -> None:
        """Makes `parts` parts of the root `whole`, whose uses are `uses`, and updates `alive`."""
        for root in parts:
            self.alive[span(self.uses.pop(root))] -= root.bytes
        self.uses[whole] = uses
        self.alive[span(uses)] += whole.bytes


def _note(step: int, root: Tensor, *found: dict[Tensor, list[int]]) -> None:
    for lists in found:
        steps = lists.setdefault(root, [])
        if not steps or steps[-1] != step:
            steps.append(step)


def span(uses: Iterable[int]) -> slice:
    """Slice of `Liveness.alive` from the first of these uses to the last."""
    found = list(uses)
    return slice(min(found) + 1, max(found) + 2)


class Change:
    """Bytes that running a step adds and frees, while the order of steps is open. Sets of steps are bit sets."""

    def __init__(self, live: Liveness, step: int):
        touched = [root for root in live.touched[step] if root.bytes]
        makers = {root: _bits(live.makers.get(root, ())) for root in touched}
        begun = [root for root in touched if live.first(root) != BEFORE and makers[root] >> step & 1]
        users = {root: _bits(live.uses[root]) for root in touched if live.last(root) != live.after}
        # roots that only this step makes or uses do not depend on which other steps ran
        self._new = sum(root.bytes for root in begun if makers[root] == 1 << step)
        self._begun = [(makers[root], root.bytes) for root in begun if makers[root] != 1 << step]
        self._freed = sum(root.bytes for root in users if users[root] == 1 << step)
        self._over = [(users[root], root.bytes) for root in users if users[root] != 1 << step]

    def new_bytes(self, ran: int) -> int:
        """Bytes of the roots that begin with the step, after the steps `ran`."""
        return self._new + sum([size for makers, size in self._begun if not makers & ran]) if self._begun else self._new

    def freed_bytes(self, ran: int) -> int:
        """Bytes of the roots that nobody needs after the step; `ran` includes it."""
        return (
            self._freed + sum([size for users, size in self._over if not users & ~ran]) if self._over else self._freed
        )


def _bits(steps: Iterable[int]) -> int:
    return sum(1 << step for step in steps if step != BEFORE)
