"""The pipeline, from a model file to a plan: read, check, rewrite, choose, build, check the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from tinyfuse.cost.predict import estimated_code_bytes
from tinyfuse.errors import UsageError
from tinyfuse.frontend.check import check, warnings_of
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op
from tinyfuse.kernels.base import Context
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.plan.checker import verify_plan
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.schedule.build import Builder
from tinyfuse.schedule.by_rule import by_rule
from tinyfuse.schedule.choose_step import choose_step, hopeful_steps
from tinyfuse.schedule.idle_slides import without_idle_slides
from tinyfuse.schedule.programs import Programs, with_programs
from tinyfuse.schedule.progress import Progress, silent
from tinyfuse.schedule.recomputing import recomputing
from tinyfuse.schedule.reordering import in_best_order
from tinyfuse.schedule.searched import Search
from tinyfuse.schedule.variants import Variant, Variants
from tinyfuse.slide import step_graphs
from tinyfuse.targets import Target


def compile_model(path: str, target: Target, options: Options) -> Plan:
    """The plan of the model file at `path`. CompileError names every reason why there is none."""
    return compile_graph(read_tflite(path), target, options)


def compile_graph(source: Graph, target: Target, options: Options, progress: Progress = silent) -> Plan:
    """The plan of a graph as it was read; a pure function of its arguments. `progress` gets progress."""
    steps = steps_of(source, options)
    if len(steps) == 1:
        return Compilation(steps[0], target, options, progress).plan(options)
    plans = []
    for step in hopeful_steps(steps, options):
        progress(f"planning a step with {sum(t.bytes for t in step.states):,} bytes of state")
        last = Compilation(step, target, options, progress)
        plans.append(last.plan(options))
    fastest = (
        last.plan(replace(options, optimize="speed", max_ram=None)) if options.optimize == "balanced" else plans[-1]
    )
    return choose_step(plans, options, fastest)


class Compilation:
    """A graph that was read, checked, and all that its plans for this or that --optimize have in common: each of it is
    made once. Plans are built in schedule/build.py; which ones, the strategies in schedule/ say."""

    def __init__(
        self,
        source: Graph,
        target: Target,
        options: Options,
        progress: Progress = silent,
        graph: Graph | None = None,
        flash_price: float | None = None,
    ):
        """CompileError names all that isn't supported. `graph`: what `prepared` makes of the source, if it is known.
        `flash_price`: as of Variants."""
        source = steps_of(source, options)[-1]
        graph = prepared(source, target, options) if graph is None else graph
        self._graph, self._target, self._price = graph, target, flash_price
        self._variants = Variants(graph, target, options, flash_price)
        self._builder = Builder(source, options)
        self._progress = progress

    @cached_property
    def search(self) -> Search:
        """What `--fusion rows` chooses from."""
        return Search(self._variants.of_every_objective(), self._builder, self._progress)

    def plan(self, options: Options) -> Plan:
        """The verified plan for these options: those given at first, or others of --optimize and --max-ram."""
        builder = replace(self._builder, options=options)
        plan = self._best_found(builder) if is_searched(options) else by_rule(self._variants, builder)
        if options.weights == "auto" and self._price is None and not _fits_flash(plan):
            return self._within_flash(options)
        verify_plan(plan)
        return plan

    def _within_flash(self, options: Options) -> Plan:
        """The plan at the least price of a byte of flash at which --max-flash is enough; else of packed weights."""
        for price in (*_PRICES, None):
            self._progress("fitting weights into the flash")
            tried = replace(options, weights="packed") if price is None else options
            source, known = self._builder.source, self._graph
            plan = Compilation(source, self._target, tried, self._progress, known, price).plan(tried)
            if _fits_flash(plan):
                break
        return replace(plan, options=options)

    def _best_found(self, builder: Builder) -> Plan:
        options, choices = builder.options, self.search.choices(builder.options.optimize)
        self._progress("placing the arena")
        plan, reordering = in_best_order(choices, options)
        if options.optimize == "ram":
            plan = recomputing(plan, builder, self._progress)
        return replace(without_idle_slides(plan, builder), options=options, reordering=reordering)


#: predicted instructions that a byte of flash must save, where --max-flash allows not all that would save some
_PRICES = (2.0, 8.0, 32.0, 128.0)


def _fits_flash(plan: Plan) -> bool:
    """Whether weights and estimated code take no more than --max-flash."""
    limit = plan.options.max_flash
    return limit is None or plan.weight_bytes + estimated_code_bytes(plan) <= limit


def checked(source: Graph) -> Graph:
    """The graph without constant operators, and with its operators' warnings; CompileError names all that isn't
    supported."""
    folded = fold_constants(source)
    check(folded)
    told = warnings_of(folded)
    return replace(folded, warnings=(*folded.warnings, *told)) if told else folded


def steps_of(source: Graph, options: Options) -> list[Graph]:
    """What a plan may be made of: the graph as it was read, or with --slide those that compute a step of it, the last
    one with the most state and the fewest multiply-accumulates."""
    if source.window is not None:
        return [source]
    if options.slide is None:
        if options.slide_axis is not None:
            raise UsageError("--slide-axis says where the frames of --slide are: give --slide too")
        return [source]
    if options.feed_rows:
        raise UsageError("--slide and --feed-rows: a step takes its frames at once; give one of the two")
    # the step graph's operators are checked too, and then warned of
    return step_graphs(replace(checked(source), warnings=source.warnings), options.slide, options.slide_axis)


def prepared(source: Graph, target: Target, options: Options) -> Graph:
    """`checked`, with the graphs that operators run planned."""
    inner = replace(options, feed_rows=False, slide=None, slide_axis=None, max_ram=None)
    known: Programs = {}

    def plan_of(called: Graph) -> Plan:
        # it was checked with its caller
        graph = with_programs(called, plan_of, known)
        return Compilation(called, target, inner, graph=graph).plan(inner)

    return with_programs(checked(source), plan_of, known)


def is_searched(options: Options) -> bool:
    """Whether groups are searched for. Under `--kernels cmsis-nn` the rule's row groups are made, of each depthwise and
    pointwise convolution: a call for each row costs more than `balanced` may spend, so that it would never make such a
    group."""
    return options.fusion == "rows" and (options.kernels != "cmsis-nn" or options.optimize == "speed")


# --- parts of the line alone ---------------------------------------------------------------------


def prepare(source: Graph, target: Target, options: Options, with_views: bool = True) -> Variant:
    """What the rewrites make of a graph, once it is checked, and what decides about its kernels."""
    source = steps_of(source, options)[-1]
    return Variants(prepared(source, target, options), target, options).one(options.optimize, with_views)


def plan_groups(
    source: Graph,
    graph: Graph,
    groups: Sequence[Sequence[Op]],
    context: Context,
    options: Options,
    fixed: frozenset[int] = frozenset(),
) -> Plan:
    """The plan that runs `graph` (what the rewrites made of `source`) in these fusion groups; in those whose numbers
    are `fixed`, no ring slides."""
    plan = Builder(source, options).plan(Variant(graph, context), groups, fixed)
    verify_plan(plan)
    return plan


def arena_bytes_by_rule(source: Graph, target: Target, options: Options) -> int:
    """What the arena would take with the groups of the fusion level's rule: a figure to compare with, of a plan
    that nobody runs."""
    source = steps_of(source, options)[-1]
    return by_rule(Variants(prepared(source, target, options), target, options), Builder(source, options)).arena_bytes
