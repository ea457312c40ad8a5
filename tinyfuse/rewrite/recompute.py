"""A cheap operator runs again for a later reader, so that its result need not be kept.

before   %b = QUANTIZE(%a);  %c = CONV_2D(%b);  ...;  %z = ADD(%y, %b)      %a is kept anyway
after    %b = QUANTIZE(%a);  %c = CONV_2D(%b);  ...;  %b2 = QUANTIZE(%a);  %z = ADD(%y, %b2)

The copy joins its reader's group, where a row of it is all that exists. Whether that takes less RAM only a
plan can tell, so this is no pass: schedule/recomputing.py tries it under `--optimize ram`.
"""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.ir import Graph, Op, Saving
from tinyfuse.ops import FAMILIES
from tinyfuse.plan.places import is_alias


def recomputable(graph: Graph) -> list[Op]:
    """Operators of one input without multiply-accumulates whose result several others read, and the
    caller does not: the largest results first."""
    found = [
        op
        for op in graph.ops
        if len(op.activations) == len(op.outputs) == 1
        and len(graph.consumers.get(op.output, ())) > 1
        and op.output not in graph.outputs
        and not (op.states or is_alias(op) or FAMILIES[op.kind].partial or FAMILIES[op.kind].macs(op))
    ]
    return sorted(found, key=lambda op: -op.output.bytes)


def recompute(graph: Graph, op: Op) -> Graph:
    """The graph in which each reader of `op` but the first has a copy of its own right in front of it."""
    _, *later = graph.consumers[op.output]
    ops: list[Op] = []
    for number, other in enumerate(graph.ops):
        if other in later:
            result = replace(op.output, name=f"{op.output.name} (again {number})", index=-1)
            ops.append(replace(op, outputs=(result,)))
            inputs = tuple(result if tensor is op.output else tensor for tensor in other.inputs)
            other = replace(other, inputs=inputs)
        ops.append(other)
    return replace(graph, ops=tuple(ops), savings=(*graph.savings, Saving("recompute", (op,), 0, 0)))
