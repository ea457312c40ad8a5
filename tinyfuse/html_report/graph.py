"""Data of the graph from the file to the plan: rows of operators, drawn with lanes for the tensors between them."""

from __future__ import annotations

from tinyfuse.ir import Graph, type_text
from tinyfuse.plan import Plan
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.passes import rewrite_steps
from tinyfuse.report.report_json import op_name

#: most operators in all steps together; with more, the steps between the first and the last are left out
MOST_OPERATORS = 30_000


def graph_steps(plan: Plan) -> tuple[list[JsonObject], int]:
    """Graphs from the file's to the plan's, one for each rewrite that changed it, and the number of graphs left out.

    Operators of the last graph have the numbers of their groups. Graphs in between are left out if the page would be
    too large.
    """
    groups = {op: group.index for group in plan.groups for op in group.ops}
    graphs = list(rewrite_steps(plan))
    left_out = 0
    if sum(len(graph.ops) for _, graph in graphs) > MOST_OPERATORS and len(graphs) > 2:
        left_out = len(graphs) - 2
        graphs = [graphs[0], graphs[-1]]
    told = [{"name": name, "operators": _operators(graph)} for name, graph in graphs]
    last = _operators(plan.graph)
    for row, op in zip(last, plan.graph.ops, strict=True):
        row["group"] = groups.get(op)
    if len(told) > 1:
        told.pop()
        name = graphs[-1][0]
    else:
        name = "read"
    return [*told, {"name": name, "operators": last}], left_out


def _operators(graph: Graph) -> list[JsonObject]:
    """Operators with the places of those whose outputs they read."""
    places = {op: place for place, op in enumerate(graph.ops)}
    return [
        {
            "kind": op.kind,
            "index": op.index,
            "name": op_name(op),
            "makes": ", ".join(type_text(tensor) for tensor in op.outputs or op.states),
            "reads": sorted({places[graph.producer[t]] for t in op.activations if t in graph.producer}),
        }
        for op in graph.ops
    ]
