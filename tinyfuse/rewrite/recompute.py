"""Cheap operators run again for a later reader, so that their result need not be kept.

before   %b = QUANTIZE(%a);  %c = CONV_2D(%b);  ...;  %z = ADD(%y, %b)      %a is kept anyway
after    %b = QUANTIZE(%a);  %c = CONV_2D(%b);  ...;  %b2 = QUANTIZE(%a);  %z = ADD(%y, %b2)

The copy joins its reader's group, where a row of it is all that exists. What makes a tensor of one that others read too
may be several operators: a layer normalization, which queries, keys and values read. Whether that takes less RAM only a
plan can tell, so this is no pass: schedule/improve/recompute.py tries it under `--optimize ram`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinyfuse import limits
from tinyfuse.ir import Graph, Op, Saving, Tensor
from tinyfuse.limits import Reached
from tinyfuse.ops import FAMILIES
from tinyfuse.plan.places import is_alias


def recomputable(graph: Graph, reached: Reached | None = None) -> list[Op]:
    """Operators whose result several others read, and the caller does not, and that can run again (`_together`): the
    largest results first. Limits are noted in `reached`."""
    found = [
        op
        for op in graph.ops
        if len(op.outputs) == 1
        and len(graph.consumers.get(op.output, ())) > 1
        and op.output not in graph.outputs
        and _together(graph, op, reached)
    ]
    return sorted(found, key=lambda op: -op.output.bytes)


def recompute(graph: Graph, op: Op) -> Graph:
    """The graph in which each reader of `op` but the first has a copy of its own right in front of it."""
    _, *later = graph.consumers[op.output]
    again = _together(graph, op)
    ops: list[Op] = []
    for number, other in enumerate(graph.ops):
        if other in later:
            copies = run_again(again, number)
            ops += copies
            other = other.reading({op.output: copies[-1].output})
        ops.append(other)
    return replace(graph, ops=tuple(ops), savings=(*graph.savings, Saving("recompute", again, 0, 0)))


def run_again(operators: Sequence[Op], number: int) -> list[Op]:
    """Copies of operators that follow one another, in front of the operator of that number."""
    instead: dict[Tensor, Tensor] = {}
    copies = []
    for op in operators:
        result = replace(op.output, name=f"{op.output.name} (again {number})", index=-1)
        copies.append(replace(op.reading(instead), outputs=(result,)))
        instead[op.output] = result
    return copies


def _together(graph: Graph, op: Op, reached: Reached | None = None) -> tuple[Op, ...]:
    """The operators without multiply-accumulates, in their order, that make the result of `op` of a tensor that
    something else reads too; `op` alone where there are none and it reads one tensor; or nothing."""
    if not _is_cheap(op):
        return ()
    position = {other: number for number, other in enumerate(graph.ops)}
    found, sources = {op}, set(op.activations)
    while sources:
        if len(sources) == 1 and not found.issuperset(graph.consumers[next(iter(sources))]):
            return tuple(sorted(found, key=position.__getitem__))
        makers = {graph.producer.get(tensor) for tensor in sources}
        last = max((maker for maker in makers if maker is not None), key=position.__getitem__, default=None)
        if last is None or not _is_cheap(last):
            break
        if len(found) == limits.RECOMPUTED_TOGETHER.most:
            if reached is not None:
                reached.note(limits.RECOMPUTED_TOGETHER)
            break
        found.add(last)
        sources = (sources - set(last.outputs)) | set(last.activations)
    return (op,) if len(op.activations) == 1 else ()


def _is_cheap(op: Op) -> bool:
    family = FAMILIES[op.kind]
    return len(op.outputs) == 1 and not (op.states or is_alias(op) or family.partial or family.macs(op))
