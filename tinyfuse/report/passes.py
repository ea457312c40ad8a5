"""`report --dump-passes`: the graph after each rewrite, from the file to the plan."""

from __future__ import annotations

from collections.abc import Iterator

from tinyfuse.ir import Graph
from tinyfuse.ir.text import graph_text, op_text
from tinyfuse.options import OPTIMIZE
from tinyfuse.plan import Group, Plan
from tinyfuse.report.answer import JsonObject
from tinyfuse.rewrite import BEFORE_CHECK
from tinyfuse.schedule.variants.variants import Variants


def rewrite_steps(plan: Plan) -> Iterator[tuple[str, Graph]]:
    """Yields (name, graph): the graph as read, after each rewrite that changed it, and as scheduled if that differs.

    The schedule may reorder operators or run some again for later readers. Rewrites are run once more, with the plan's
    views and the objective whose rewrites the plan has: that may differ from its kernels' objective, because
    schedule/improve/use_fast_kernels.py puts kernels for speed into other plans' groups.
    """
    yield "read", plan.source
    graph = plan.source
    for one_pass in BEFORE_CHECK:
        before, graph = graph, one_pass(graph)
        if graph is not before:
            yield one_pass.__name__, graph
    variants = Variants(graph, plan.context.target, plan.options)
    views, done = any(op.view for op in plan.graph.ops), {saving.rewrite for saving in plan.graph.savings}
    tried = [list(variants.steps(objective, views)) for objective in dict.fromkeys((plan.context.optimize, *OPTIMIZE))]
    found = max(tried, key=lambda found: len(done & {name for name, _ in found}))
    yield from found
    graph = found[-1][1] if found else graph
    if graph_text(graph) != graph_text(plan.graph):
        yield "schedule", plan.graph


def passes_json(plan: Plan) -> list[JsonObject]:
    """JSON of --dump-passes: each step as text, then the fusion groups."""
    found = [{"pass": name, "text": graph_text(graph)} for name, graph in rewrite_steps(plan)]
    return [*found, {"pass": "groups", "text": groups_text(plan)}]


def groups_text(plan: Plan) -> str:
    """Operators of each fusion group with their kernels. Views and RESHAPE run nothing and are in no group."""
    return "".join(_group_text(plan, group) for group in plan.groups)


def _group_text(plan: Plan, group: Group) -> str:
    how = "row by row" if group.stages[0].by_row else "whole"
    lines = [f"{plan.options.name}_group_{group.index}, {how}"]
    lines += [f"  {op_text(stage.op)}: {stage.kernel.name}" for stage in group.stages]
    return "\n".join(lines) + "\n"


def passes_lines(passes: list[JsonObject]) -> list[str]:
    """Text of the passes for a terminal, line by line."""
    return [line for each in passes for line in (f"--- {each['pass']}", *each["text"].splitlines(), "")]
