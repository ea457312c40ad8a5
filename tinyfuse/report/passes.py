"""`report --dump-passes`: the graph from the file to the plan, for whoever looks at a rewrite."""

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
    """The graph as it was read, after each rewrite that changed it, with the rewrite's name, and as the schedule
    took it, where that is another: in another order, or with operators that run again for later readers.

    The rewrites are run once more as they were for this plan: with its views, and the objective whose kernels it has,
    or another whose rewrites it has (schedule/improve/use_fast_kernels.py puts kernels of speed into the groups of
    others)."""
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
    """The JSON of --dump-passes: every step as text, and last the fusion groups."""
    found = [{"pass": name, "text": graph_text(graph)} for name, graph in rewrite_steps(plan)]
    return [*found, {"pass": "groups", "text": groups_text(plan)}]


def groups_text(plan: Plan) -> str:
    """The operators of each fusion group with their kernels; what runs nothing (views, RESHAPE) is in none."""
    return "".join(_group_text(plan, group) for group in plan.groups)


def _group_text(plan: Plan, group: Group) -> str:
    how = "row by row" if group.stages[0].by_row else "whole"
    lines = [f"{plan.options.name}_group_{group.index}, {how}"]
    lines += [f"  {op_text(stage.op)}: {stage.kernel.name}" for stage in group.stages]
    return "\n".join(lines) + "\n"


def passes_lines(passes: list[JsonObject]) -> list[str]:
    """What a person is shown of them."""
    return [line for each in passes for line in (f"--- {each['pass']}", *each["text"].splitlines(), "")]
