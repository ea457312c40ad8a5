"""Picks one of a window's step graphs, as `--optimize` and `--max-ram` ask. Some keep more rows and compute fewer,
others the reverse. The criteria are those of plans/pick_plan.py, applied to arena and state together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tinyfuse import limits
from tinyfuse.cost.predict import plan_instructions
from tinyfuse.ir import Graph
from tinyfuse.limits import Reached, merge_limits
from tinyfuse.ops import graph_macs
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress, silent
from tinyfuse.schedule.plans.pick_plan import MAX_SLOWDOWN
from tinyfuse.thinning import pick_evenly

#: makes the plans of one graph
Planner = Callable[[Options], Plan]


def plan_best_step(
    graphs: Sequence[Graph], options: Options, planner: Callable[[Graph], Planner], progress: Progress = silent
) -> Plan:
    """Plan that the options ask for, of these step graphs, least work last; or of the only graph."""
    if len(graphs) == 1:
        return planner(graphs[0])(options)
    plans, reached = list[Plan](), Reached()
    for graph in candidate_steps(graphs, options, reached):
        progress(f"planning a step with {sum(state.bytes for state in graph.states):,} bytes of state")
        plan_of = planner(graph)
        plans.append(plan_of(options))
    fastest = plans[-1]
    if options.optimize == "balanced":
        fastest = plan_of(replace(options, optimize="speed", max_ram=None))
    found = choose_step(plans, options, fastest)
    return replace(found, limits=merge_limits(*(plan.limits for plan in (found, *plans, fastest)), reached.found))


def candidate_steps(graphs: Sequence[Graph], options: Options, reached: Reached) -> list[Graph]:
    """Step graphs worth planning, least work last. Limits are noted in `reached`."""
    if options.max_ram is None and options.optimize == "speed":
        return [graphs[-1]]
    if options.max_ram is None and options.optimize == "balanced":
        most = graph_macs(graphs[-1]) * (1 + MAX_SLOWDOWN)
        graphs = [graph for graph in graphs if graph_macs(graph) <= most]
    if len(graphs) > limits.STEPS.most:
        reached.note(limits.STEPS)
    chosen = pick_evenly(graphs, limits.STEPS.most)
    while len(chosen) > 2 and sum(len(graph.ops) ** 2 for graph in chosen) > limits.STEP_PAIRS.most:
        reached.note(limits.STEP_PAIRS)
        chosen = pick_evenly(graphs, len(chosen) - 1)
    return chosen


def choose_step(plans: Sequence[Plan], options: Options, fastest: Plan) -> Plan:
    """Picks the plan that the options ask for; if no plan is within --max-ram, the one with the least RAM. `balanced`
    allows more instructions than `fastest` by a certain share."""

    def least_ram(plan: Plan) -> tuple[float, float]:
        return plan.ram_bytes, plan_instructions(plan)

    fitting = [plan for plan in plans if options.max_ram is None or plan.ram_bytes <= options.max_ram]
    if options.optimize == "ram" or not fitting:
        return min(plans, key=least_ram)
    if options.optimize == "balanced":
        most = plan_instructions(fastest) * (1 + MAX_SLOWDOWN)
        fast = [plan for plan in fitting if plan_instructions(plan) <= most]
        if fast:
            return min(fast, key=least_ram)
    return min(fitting, key=plan_instructions)
