"""The line from a graph as it was read (frontend/reader.py) to a verified plan, top to bottom.

slide    with --slide alone: the graphs that compute a step of it (`steps_of`)
check    every rule of its operators (`checked`); then the graphs that its operators run are planned (`prepared`)
rewrite, choose, build, check the plan   of each such graph: schedule/plan_graph.py

Round this stand choices of schedule/ that compare plans for several options, each a function that is given what makes
them: which step graph, calls in pieces, memory banks, what is counted. One that isn't asked for hands on the plan.
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
from tinyfuse.schedule.banks.assign import in_banks
from tinyfuse.schedule.fit_step import within_step
from tinyfuse.schedule.pick_by_cycles import by_both_counts
from tinyfuse.schedule.pick_step import of_the_best_step
from tinyfuse.schedule.plan_graph import GraphPlans
from tinyfuse.schedule.plans.build import Builder
from tinyfuse.schedule.plans.rule_based_plan import rule_based_plan
from tinyfuse.schedule.subgraphs import Programs, with_programs
from tinyfuse.schedule.variants.variants import Variants
from tinyfuse.slide import step_graphs
from tinyfuse.targets import Target


def compile_graph(source: Graph, target: Target, options: Options, progress: Progress = silent) -> Plan:
    """The plan of a graph as it was read; a pure function of its arguments. `progress` is told what is searched."""
    counted_cycles(target, options)  # a board that is not known, before anything is planned
    return Compiler(source, target, progress).plan(options)


class Compiler:
    """Plans of one graph as it was read, for options that may differ in --optimize, --max-ram, --memory and --count:
    what they have in common is made once."""

    def __init__(self, source: Graph, target: Target, progress: Progress = silent):
        self._source, self._target, self._progress = source, target, progress
        self._steps: list[Graph] = []
        self._known: dict[tuple[object, ...], GraphPlans] = {}

    def plan(self, options: Options) -> Plan:
        """The verified plan for these options, as compile_graph's."""
        one_step = self._of_the_best_step
        in_time = partial(within_step, one_step)
        in_memory = partial(in_banks, in_time, progress=self._progress)
        return by_both_counts(in_memory, options, self._progress)

    def _of_the_best_step(self, options: Options) -> Plan:
        self._steps = self._steps or steps_of(self._source, options)
        return of_the_best_step(self._steps, options, lambda step: partial(self._of_graph, step), self._progress)

    def _of_graph(self, step: Graph, options: Options) -> Plan:
        """The plan of a step graph, or of the graph itself where no window slides over it."""
        # other kernels buy speed with RAM where speed is all, and what is computed in tiles looks nothing up
        key = step, options.optimize == "speed", options.recompute_limit, options.max_step, options.count
        if key not in self._known:
            graph = prepared(step, self._target, options)
            self._known[key] = GraphPlans(step, graph, self._target, options, self._progress)
        return self._known[key].plan(options)


def steps_of(source: Graph, options: Options) -> list[Graph]:
    """What a plan may be made of: the graph as it was read, with the borders that are asked for, or with --slide those
    that compute a step of it, the last one with the most state and the fewest multiply-accumulates."""
    source = in_layouts(source, options)
    if options.slide is None or source.window is not None:
        return [source]
    # the step graph's operators are checked too, and then warned of
    whole = replace(checked(source), warnings=source.warnings)
    return step_graphs(whole, options.slide, options.slide_axis, options.feed_rows)


def checked(source: Graph) -> Graph:
    """The graph without constant operators, in those that have kernels, and with its operators' warnings; CompileError
    names all that isn't supported."""
    graph = source
    for one_pass in BEFORE_CHECK:
        graph = one_pass(graph)
    check(graph)
    told = warnings_of(graph)
    return replace(graph, warnings=(*graph.warnings, *told)) if told else graph


def prepared(source: Graph, target: Target, options: Options) -> Graph:
    """`checked`, with the graphs that operators run planned; of a step whose frames come row by row, of its runs."""
    inner = replace(
        options, feed_rows=False, step=False, max_step=None, slide=None, slide_axis=None, max_ram=None, memory=()
    )
    known: Programs = {}

    def plan_of(called: Graph) -> Plan:
        # it was checked with its caller
        graph = with_programs(called, plan_of, known)
        return GraphPlans(called, graph, target, inner).plan(inner)

    window = source.window
    return with_programs(checked(source if window is None else window.by_row or source), plan_of, known)


def arena_bytes_by_rule(source: Graph, target: Target, options: Options) -> int:
    """What the arena would take with the groups of the fusion level's rule: a figure to compare with, of a plan
    that nobody runs."""
    return rule_based_plan(
        Variants(prepared(source, target, options), target, options), Builder(source, options)
    ).arena_bytes
