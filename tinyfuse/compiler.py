"""The pipeline, from a model file to a plan: read, check, rewrite, choose, build, check the plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tinyfuse.cached import cached_property
from tinyfuse.cost.cycles import counted_cycles
from tinyfuse.cost.predict import plan_instructions
from tinyfuse.cost.steps import fits_step, in_pieces
from tinyfuse.frontend.check import check, warnings_of
from tinyfuse.frontend.layouts import in_layouts
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op
from tinyfuse.kernels.base import Context
from tinyfuse.limits import union
from tinyfuse.options import Options
from tinyfuse.plan import Plan, Reordering
from tinyfuse.plan.checker import verify_plan
from tinyfuse.plan.rows import USUAL_RINGS, RingModes
from tinyfuse.rewrite import BEFORE_CHECK
from tinyfuse.schedule.banks import in_banks
from tinyfuse.schedule.build import Builder
from tinyfuse.schedule.by_rule import by_rule
from tinyfuse.schedule.choose_count import of_fewer_cycles
from tinyfuse.schedule.choose_step import Planner, of_the_best_step
from tinyfuse.schedule.fewer_kernels import with_fewer_kernels
from tinyfuse.schedule.idle_slides import without_idle_slides
from tinyfuse.schedule.programs import Programs, with_programs
from tinyfuse.schedule.progress import Progress, silent
from tinyfuse.schedule.quicker import quicker
from tinyfuse.schedule.recomputing import recomputing
from tinyfuse.schedule.rematerializing import rematerializing
from tinyfuse.schedule.reordering import in_best_order
from tinyfuse.schedule.roomier import roomier
from tinyfuse.schedule.searched import Search
from tinyfuse.schedule.variants import Variant, Variants
from tinyfuse.schedule.within_flash import fits_flash, within_flash
from tinyfuse.slide import step_graphs
from tinyfuse.targets import Target


def compile_model(path: str, target: Target, options: Options) -> Plan:
    """The plan of the model file at `path`. CompileError names every reason why there is none."""
    return compile_graph(read_tflite(path), target, options)


def compile_graph(source: Graph, target: Target, options: Options, progress: Progress = silent) -> Plan:
    """The plan of a graph as it was read; a pure function of its arguments. `progress` gets progress."""
    counted_cycles(target, options)  # a board that is not known, before anything is planned
    return Compiler(source, target, progress).plan(options)


class Compiler:
    """Plans of one graph as it was read, for options that may differ in --optimize, --max-ram, --memory and --count:
    what they have in common is made once."""

    def __init__(self, source: Graph, target: Target, progress: Progress = silent):
        self._source, self._target, self._progress = source, target, progress
        self._steps: list[Graph] = []
        self._compilations: dict[tuple[object, ...], Compilation] = {}

    def plan(self, options: Options) -> Plan:
        """The verified plan for these options, as compile_graph's."""
        plan = self._in_banks(options)
        if options.count == "instructions":
            return plan
        self._progress("planning by instructions too")
        by_instructions = self._in_banks(replace(options, count="instructions"))
        found = of_fewer_cycles(plan, by_instructions)
        return replace(found, limits=union(plan.limits, by_instructions.limits))

    def _in_banks(self, options: Options) -> Plan:
        if not options.memory:
            return self._planned(options)
        plan = in_banks(self._planned, options, self._progress)
        verify_plan(plan)
        return plan

    def _planned(self, options: Options) -> Plan:
        """The plan; where its steps are too long, one whose calls can be divided, in pieces."""
        self._steps = self._steps or steps_of(self._source, options)

        def planner(step: Graph) -> Planner:
            return partial(self._plan_of, step)

        if options.max_step is None:
            return of_the_best_step(self._steps, options, planner, self._progress)
        whole = self._planned(replace(options, max_step=None))
        if fits_step(whole, options.max_step):
            return replace(whole, options=options)
        divided = in_pieces(of_the_best_step(self._steps, options, planner, self._progress), options.max_step)
        verify_plan(divided)
        return divided

    def _plan_of(self, step: Graph, options: Options) -> Plan:
        """The plan of a step graph, or of the graph itself where no window slides over it."""
        # other kernels buy speed with RAM where speed is all, and what is computed in tiles looks nothing up
        key = step, options.optimize == "speed", options.recompute_limit, options.max_step, options.count
        if key not in self._compilations:
            self._compilations[key] = Compilation(step, self._target, options, self._progress)
        return self._compilations[key].plan(options)


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
        graph = prepared(source, target, options) if graph is None else graph
        self._graph, self._target, self._price = graph, target, flash_price
        self._variants = Variants(graph, target, options, flash_price)
        self._builder = Builder(source, options)
        self._progress = progress

    @cached_property
    def search(self) -> Search:
        """What `--fusion rows` chooses from."""
        return Search(self._variants.of_every_objective(), self._builder, self._progress)

    @cached_property
    def _sparing(self) -> Search:
        """What there is beside it with kernels that buy no speed with RAM."""
        return Search(self._variants.sparing().of_every_objective(), self._builder, self._progress)

    def plan(self, options: Options) -> Plan:
        """The verified plan for these options: those given at first, or others of --max-ram and --optimize; but for
        `speed` those given at first ask for `speed` too."""
        builder = replace(self._builder, options=options)
        plan = self._best_found(builder) if is_searched(options) else by_rule(self._variants, builder)
        if options.weights == "auto" and self._price is None and not fits_flash(plan):
            return within_flash(partial(self._plan_at, options), self._progress)
        verify_plan(plan)
        return replace(plan, limits=builder.reached.found)

    def _plan_at(self, options: Options, weights: str, price: float | None) -> Plan:
        """The plan for another of --weights, at this price of a byte of flash."""
        tried = replace(options, weights=weights)
        again = Compilation(self._builder.source, self._target, tried, self._progress, self._graph, price)
        return replace(again.plan(tried), options=options)

    def _best_found(self, builder: Builder) -> Plan:
        options = builder.options
        choices = self.search.choices(options.optimize, options.recompute_limit)
        self._progress("placing the arena")
        plan, reordering = in_best_order(choices, replace(options, max_ram=None))
        most = math.inf if options.max_ram is None else options.max_ram
        if plan.ram_bytes > most and options.optimize != "ram":
            plan, reordering = self._fastest_within(most, builder)
        if plan.ram_bytes > most or options.optimize == "ram":
            plan = recomputing(plan, builder, self._progress)
            plan = rematerializing(plan, builder, self._progress)
        for strategy in (roomier, without_idle_slides, quicker, with_fewer_kernels):
            plan = strategy(plan, builder)
        return replace(plan, options=options, reordering=reordering)

    def _fastest_within(self, most: float, builder: Builder) -> tuple[Plan, Reordering | None]:
        """The fastest plan of at most so many bytes, whatever it is that kernels and groups spare, and what its order
        is compared with; where there is none, the smallest."""
        options = builder.options
        searches = [self.search, *([self._sparing] if options.optimize == "speed" else [])]
        wanted = replace(options, optimize="speed")
        found = [in_best_order(search.choices("ram", options.recompute_limit), wanted) for search in searches]
        found = [(quicker(plan, builder), reordering) for plan, reordering in found]

        def rank(plan: Plan) -> tuple[bool, float]:
            too_large = plan.ram_bytes > most
            return too_large, plan.ram_bytes if too_large else plan_instructions(plan)

        return min(found, key=lambda each: rank(each[0]))


def checked(source: Graph) -> Graph:
    """The graph without constant operators, in those that have kernels, and with its operators' warnings; CompileError
    names all that isn't supported."""
    graph = source
    for one_pass in BEFORE_CHECK:
        graph = one_pass(graph)
    check(graph)
    told = warnings_of(graph)
    return replace(graph, warnings=(*graph.warnings, *told)) if told else graph


def steps_of(source: Graph, options: Options) -> list[Graph]:
    """What a plan may be made of: the graph as it was read, with the borders that are asked for, or with --slide those
    that compute a step of it, the last one with the most state and the fewest multiply-accumulates."""
    source = in_layouts(source, options)
    if options.slide is None or source.window is not None:
        return [source]
    # the step graph's operators are checked too, and then warned of
    whole = replace(checked(source), warnings=source.warnings)
    return step_graphs(whole, options.slide, options.slide_axis, options.feed_rows)


def prepared(source: Graph, target: Target, options: Options) -> Graph:
    """`checked`, with the graphs that operators run planned; of a step whose frames come row by row, of its runs."""
    inner = replace(
        options, feed_rows=False, step=False, max_step=None, slide=None, slide_axis=None, max_ram=None, memory=()
    )
    known: Programs = {}

    def plan_of(called: Graph) -> Plan:
        # it was checked with its caller
        graph = with_programs(called, plan_of, known)
        return Compilation(called, target, inner, graph=graph).plan(inner)

    window = source.window
    return with_programs(checked(source if window is None else window.by_row or source), plan_of, known)


def is_searched(options: Options) -> bool:
    """Whether groups are searched for."""
    return options.fusion == "rows"


# --- parts of the line alone ---------------------------------------------------------------------


def prepare(source: Graph, target: Target, options: Options, with_views: bool = True) -> Variant:
    """What the rewrites make of a graph, once it is checked, and what decides about its kernels."""
    return Variants(prepared(source, target, options), target, options).one(options.optimize, with_views)


def plan_groups(
    source: Graph,
    graph: Graph,
    groups: Sequence[Sequence[Op]],
    context: Context,
    options: Options,
    rings: RingModes = USUAL_RINGS,
) -> Plan:
    """The plan that runs `graph` (what the rewrites made of `source`) in these fusion groups, whose rings lie as
    `rings` has it."""
    plan = Builder(source, options).plan(Variant(graph, context), groups, rings)
    verify_plan(plan)
    return plan


def arena_bytes_by_rule(source: Graph, target: Target, options: Options) -> int:
    """What the arena would take with the groups of the fusion level's rule: a figure to compare with, of a plan
    that nobody runs."""
    return by_rule(Variants(prepared(source, target, options), target, options), Builder(source, options)).arena_bytes
