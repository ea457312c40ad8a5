"""SLICEs that begin where a run says become operators that look there.

before   %y = SLICE(%x, %begin, size)                       with %begin computed
after    %y = SLICE_AT(%x, %begin)                          its output's shape is the size

It runs before the check (tinyfuse/frontend/check.py): what comes after it takes a SLICE for a move of elements that are
known. One that breaks a rule stays, for the check to tell.
"""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.ir import Graph, Op
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.control_flow import change_graphs


def computed_begin(graph: Graph) -> Graph:
    """The graph, and those that its operators run; itself where there is no such SLICE."""
    return _changed(graph, {})


def _changed(graph: Graph, known: dict[Graph, Graph]) -> Graph:
    if graph not in known:
        ops = tuple(_operator(change_graphs(op, lambda g: _changed(g, known))) for op in graph.ops)
        same = all(a is b for a, b in zip(ops, graph.ops, strict=True))
        known[graph] = graph if same else replace(graph, ops=ops)
    return known[graph]


def _operator(op: Op) -> Op:
    begin = op.optional(1)
    if op.kind != "SLICE" or begin is None or begin.is_constant:
        return op
    if any(rule.problem(op) is not None for rule in FAMILIES[op.kind].rules):
        return op
    return replace(op, kind="SLICE_AT", inputs=op.inputs[:2])
