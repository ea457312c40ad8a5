"""Operators with computed positions, sizes or axes become operators that take these as run-time inputs.

before   %y = SLICE(%x, %begin, size)                       with %begin computed;
after    %y = SLICE_AT(%x, %begin)                          its output's shape is the size.

before   %y = MEAN(%x, %axes)                               with %axes computed;
after    %y = AT_AXES(%x, %axes).

before   %y = MIRROR_PAD(%x, %paddings)                     with %paddings computed
after    %y = MIRROR_PAD_AT(%x, %paddings).

Runs before the check (tinyfuse/frontend/check.py): everything after it expects these operands to be constants. An
operator that breaks a rule stays, for the check to report.
"""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.ir import Graph, Op
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.family import OpFamily
from tinyfuse.ops.program.control_flow import change_graphs


def computed_operands(graph: Graph) -> Graph:
    """Replace operators with computed positions, sizes or axes, also in the graphs that operators run; return `graph`
    itself if there are none."""
    return _changed(graph, {})


def _changed(graph: Graph, known: dict[Graph, Graph]) -> Graph:
    if graph not in known:
        ops = tuple(_operator(change_graphs(op, lambda g: _changed(g, known))) for op in graph.ops)
        same = all(a is b for a, b in zip(ops, graph.ops, strict=True))
        known[graph] = graph if same else replace(graph, ops=ops)
    return known[graph]


def _operator(op: Op) -> Op:
    family = FAMILIES.get(op.kind)
    if family is None or type(family).computing is OpFamily.computing:
        return op  # with or without broken rules
    if any(rule.problem(op) is not None for rule in family.rules):
        return op
    return family.computing(op) or op
