"""Cheap operators run again for a later reader, so that their result need not be kept.

before   %b = QUANTIZE(%a);  %c = CONV_2D(%b);  ...;  %z = ADD(%y, %b)      %a is kept anyway
after    %b = QUANTIZE(%a);  %c = CONV_2D(%b);  ...;  %b2 = QUANTIZE(%a);  %z = ADD(%y, %b2)

The copy joins its reader's group, where only one row of it exists at a time. Several operators may run again together:
a layer normalization, for example, which queries, keys and values read. This is no pass, because only a plan tells
whether it saves RAM: schedule/improve/recompute.py tries it under `--optimize ram`.
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
    """Return operators that can run again and whose result has several readers and is no model output; largest results
    first.

    Limits are noted in `reached`.
    """
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
    """Give each reader of `op` but the first its own copy of `op`, right in front of the reader."""
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
    """Return copies of consecutive operators, to be inserted before the operator with index `number`."""
    instead: dict[Tensor, Tensor] = {}
    copies = []
    for op in operators:
        result = replace(op.output, name=f"{op.output.name} (again {number})", index=-1)
        copies.append(replace(op.reading(instead), outputs=(result,)))
        instead[op.output] = result
    return copies


def _together(graph: Graph, op: Op, reached: Reached | None = None) -> tuple[Op, ...]:
    """Return operators without multiply-accumulates, in order, that compute `op`'s result from a tensor that is kept
    for other readers.

    Return only `op` if there are none and it reads one tensor; () if it can't run again.
    """
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
