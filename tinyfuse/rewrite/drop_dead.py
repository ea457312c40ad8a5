"""Operators whose outputs nobody needs are dropped, unless they write a state.

before   %a = RELU(%in);  %b = RELU6(%in);  out %a
after    %a = RELU(%in);  out %a
"""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.ir import Graph
from tinyfuse.ops import FAMILIES


def drop_dead(graph: Graph) -> Graph:
    """Return the graph without operators that no output or state depends on."""
    needed = set(graph.outputs)
    kept = []
    for op in reversed(graph.ops):
        if any(tensor in needed for tensor in op.outputs) or FAMILIES[op.kind].updated(op):
            kept.append(op)
            needed.update(op.activations)
    return graph if len(kept) == len(graph.ops) else replace(graph, ops=tuple(reversed(kept)))
