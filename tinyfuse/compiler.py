"""Pipeline from a graph as it was read (frontend/reader.py) to a verified plan, top to bottom.

slide    with --slide: makes the graphs that compute a step (`graphs_to_plan`)
check    checks every rule of its operators (`check_graph`), then plans the graphs that they call (`prepare_graph`)
rewrite, choose, build, check the plan   of each such graph: schedule/plan_graph.py

Around these phases are choices of schedule/ that compare plans for several options: the step graph, divided calls,
memory banks, the count of cycles. Each choice is a function that calls the next one to make plans; if there is nothing
to choose, it returns that plan.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tinyfuse.cost.cycles import counted_cycles
from tinyfuse.frontend.check import check, warnings_of
from tinyfuse.frontend.layouts import in_layouts
from tinyfuse.ir import Graph
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress, silent
from tinyfuse.rewrite import BEFORE_CHECK
from tinyfuse.schedule.banks.assign import plan_in_banks
from tinyfuse.schedule.fit_step import plan_within_step
from tinyfuse.schedule.pick_by_cycles import plan_by_both_counts
from tinyfuse.schedule.pick_step import plan_best_step
from tinyfuse.schedule.plan_graph import GraphPlans
from tinyfuse.schedule.plans.build import Builder
from tinyfuse.schedule.plans.rule_based_plan import rule_based_plan
from tinyfuse.schedule.subgraphs import Programs, plan_subgraphs
from tinyfuse.schedule.variants.variants import Variants
from tinyfuse.slide import step_graphs
from tinyfuse.targets import Target


def compile_graph(source: Graph, target: Target, options: Options, progress: Progress = silent) -> Plan:
    """Plans a graph as it was read; deterministic. `progress` gets a line for each phase of the search."""
    counted_cycles(target, options)  # refuses an unknown board before anything is planned
    return Compiler(source, target, progress).plan(options)


class Compiler:
    """Plans one graph for options that differ only in --optimize, --max-ram, --memory and --count; common work is done
    once."""

    def __init__(self, source: Graph, target: Target, progress: Progress = silent):
        self._source, self._target, self._progress = source, target, progress
        self._steps: list[Graph] = []
        self._known: dict[tuple[object, ...], GraphPlans] = {}

    def plan(self, options: Options) -> Plan:
        """Verified plan for these options, equal to that of compile_graph."""
        one_step = self._plan_best_step
        in_time = partial(plan_within_step, one_step)
        in_memory = partial(plan_in_banks, in_time, progress=self._progress)
        return plan_by_both_counts(in_memory, options, self._progress)

    def _plan_best_step(self, options: Options) -> Plan:
        self._steps = self._steps or graphs_to_plan(self._source, options)
        return plan_best_step(self._steps, options, lambda step: partial(self._plan_graph, step), self._progress)

    def _plan_graph(self, step: Graph, options: Options) -> Plan:
        """Plan of a step graph, or of the graph itself without a window."""
        # options that change the kernels or the rewrites
        key = step, options.optimize == "speed", options.recompute_limit, options.max_step, options.count
        if key not in self._known:
            graph = prepare_graph(step, self._target, options)
            self._known[key] = GraphPlans(step, graph, self._target, options, self._progress)
        return self._known[key].plan(options)


def graphs_to_plan(source: Graph, options: Options) -> list[Graph]:
    """Graphs that can be planned: the graph with the layouts of --input-layout and --output-layout or, with --slide,
    its step graphs. The last one has the most state and the least work."""
    source = in_layouts(source, options)
    if options.slide is None or source.window is not None:
        return [source]
    # the operators of the step graph are checked again, with their warnings
    whole = replace(check_graph(source), warnings=source.warnings)
    return step_graphs(whole, options.slide, options.slide_axis, options.feed_rows)


def check_graph(source: Graph) -> Graph:
    """Graph without constant operators, with operators that have kernels, and with their warnings. CompileError names
    everything that is not supported."""
    graph = source
    for one_pass in BEFORE_CHECK:
        graph = one_pass(graph)
    check(graph)
    warnings = warnings_of(graph)
    return replace(graph, warnings=(*graph.warnings, *warnings)) if warnings else graph


def prepare_graph(source: Graph, target: Target, options: Options) -> Graph:
    """Checks the graph and plans the graphs that its operators call. For a step whose frames come row by row, that
    graph is the one that a run on one row computes (`Window.by_row`)."""
    inner = replace(
        options, feed_rows=False, step=False, max_step=None, slide=None, slide_axis=None, max_ram=None, memory=()
    )
    known: Programs = {}

    def plan_of(called: Graph) -> Plan:
        # it was checked with its caller
        graph = plan_subgraphs(called, plan_of, known)
        return GraphPlans(called, graph, target, inner).plan(inner)

    window = source.window
    return plan_subgraphs(check_graph(source if window is None else window.by_row or source), plan_of, known)


def arena_bytes_by_rule(source: Graph, target: Target, options: Options) -> int:
    """Arena bytes with the groups of the fusion level's rule, for comparison; that plan is never run."""
    return rule_based_plan(
        Variants(prepare_graph(source, target, options), target, options), Builder(source, options)
    ).arena_bytes
