"""Turns operators that only move elements into views, which run nothing, if the elements can be placed correctly at
once.

before   %c = CONCATENATION(%a, %b);  %d, %e = SPLIT(%x)      along the first dimension that is not 1
after    %c = CONCATENATION(%a, %b) view;  %d, %e = SPLIT(%x) view

The parts of a view lie inside the whole: makers of %a and %b write directly into %c, readers of %d and %e read directly
from %x. Each part must be one contiguous piece of the whole (`OpFamily.parts`), and each tensor can have only one place
(`Places.allows`). Otherwise the copy stays.

Some parts of a concatenation may have a place elsewhere already: a constant, a slice, an input that lies in the output
of another concatenation. Only these are copied into their places, each by a CONCATENATION of one tensor:

before   %c = CONCATENATION(%a, %constant, %a)
after    %b = CONCATENATION(%constant);  %d = CONCATENATION(%a);  %c = CONCATENATION(%a, %b, %d) view

A whole needs all its bytes from its first part on, and as long as any part is read. So a view may take more RAM than a
copy, for example that of a small slice of a large tensor, or a concatenation whose first part is made long before its
last. `every_view` makes all views; `views` makes those that take no more RAM than a copy, operator by operator, as if
nothing else were fused. Only plans tell what fusion makes of either, so tinyfuse/schedule/ compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.family import Part
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.plan.liveness import Liveness, span
from tinyfuse.plan.places import Places, is_alias


def every_view(graph: Graph) -> Graph:
    """Turns every operator that can be a view into one."""
    return _with_views(graph, lambda usage, op, parts: True)


def views(graph: Graph) -> Graph:
    """Turns operators into views unless that takes more RAM than a copy, at the peak of the tensors involved."""
    return _with_views(graph, _Usage.spares)


def _with_views(graph: Graph, wanted: Callable[[_Usage, Op, Sequence[Part]], bool]) -> Graph:
    usage, ops = _Usage(graph), []
    for op in graph.ops:
        free = () if is_alias(op) else usage.places.free(op)
        parts = tuple(compress(FAMILIES[op.kind].parts(op), free))
        if parts and (all(free) or _copies_parts(op)) and wanted(usage, op, parts):
            copies, view = _view(op, free)
            usage.join(op, parts, view)
            ops += [*copies, view]
        else:
            ops.append(op)
    return replace(graph, ops=tuple(ops)) if tuple(ops) != graph.ops else graph


def _copies_parts(op: Op) -> bool:
    """Tell whether inputs that can't be placed inside `op`'s output may be copied into it one by one."""
    return len(op.outputs) == 1 and all(tensor.shape for tensor in op.operands)


def _view(op: Op, free: tuple[bool, ...]) -> tuple[list[Op], Op]:
    """Return copies of the inputs that are not `free`, and `op` as a view of the copies and the free inputs."""
    if all(free):
        return [], replace(op, view=True)
    copies, inputs = [], []
    for number, (tensor, is_free) in enumerate(zip(op.operands, free, strict=True)):
        if not is_free:
            name = f"{tensor.name} (input {number} of {op.output.name})"
            copy = Tensor(name, tensor.shape, tensor.dtype, tensor.quant)
            copies.append(Op("CONCATENATION", (tensor,), (copy,), Concatenation()))
            tensor = copy
        inputs.append(tensor)
    return copies, replace(op, inputs=tuple(inputs), view=True)


class _Usage:
    """Tracks the bytes alive at each step if every operator runs alone, and how views change them."""

    def __init__(self, graph: Graph):
        self._graph = graph
        self.places = Places(op for op in graph.ops if is_alias(op))

    @cached_property
    def step(self) -> dict[Op, int]:
        return {op: step for step, op in enumerate(self._graph.ops)}

    @cached_property
    def live(self) -> Liveness:
        """Return the liveness of tensors, including the views made so far."""
        return Liveness(self._graph, [() if is_alias(op) else (op,) for op in self._graph.ops], self.places)

    def _joined(self, op: Op, parts: Sequence[Part]) -> tuple[list[Tensor], list[int], int]:
        """Return the roots that a view joins, all their uses, and the bytes of the whole."""
        roots = list(dict.fromkeys(self.places.root(t) for part in parts for t in (part.part, part.whole)))
        runs = len(parts) < len(FAMILIES[op.kind].parts(op))  # copies of the other parts run at its step
        uses = {step for root in roots for step in self.live.uses[root] if runs or step != self.step[op]}
        return roots, sorted(uses), max(root.bytes for root in roots)

    def spares(self, op: Op, parts: Sequence[Part]) -> bool:
        """Tell whether a view with these parts takes no more RAM than a copy, at the step that needs the most."""
        roots, uses, size = self._joined(op, parts)
        whole = span(uses)
        before = self.live.alive[whole]
        after = self.live.alive.copy()
        after[whole] += size
        for root in roots:
            after[span(self.live.uses[root])] -= root.bytes
        return bool(after[whole].max() <= before.max())

    def join(self, op: Op, parts: Sequence[Part], view: Op) -> None:
        """Record that `op` became `view`, with these parts inside the whole."""
        roots, uses, _ = self._joined(op, parts)
        self.places.add(view)
        self.live.join(roots, self.places.root(view.output), uses)
