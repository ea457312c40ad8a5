"""Makes the plans of one graph: selects the strategy that finds a plan, and the strategies that improve the plan."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property, partial

from tinyfuse.cost.predict import plan_instructions
from tinyfuse.ir import Graph
from tinyfuse.options import Options
from tinyfuse.plan import Plan, Reordering
from tinyfuse.plan.check.player import verify_plan
from tinyfuse.progress import Progress, silent
from tinyfuse.schedule.improve.drop_rare_kernels import drop_rare_kernels
from tinyfuse.schedule.improve.fit_flash import fits_flash, plan_within_flash
from tinyfuse.schedule.improve.recompute import recompute_operators
from tinyfuse.schedule.improve.rematerialize import rematerialize_layers
from tinyfuse.schedule.improve.reorder import pick_order
from tinyfuse.schedule.improve.upgrade_kernels import upgrade_kernels
from tinyfuse.schedule.improve.use_fast_kernels import use_fast_kernels
from tinyfuse.schedule.plans.build import Builder
from tinyfuse.schedule.plans.rule_based_plan import rule_based_plan
from tinyfuse.schedule.plans.search_variants import Search
from tinyfuse.schedule.variants.variants import Variants
from tinyfuse.targets import Target


class GraphPlans:
    """Plans of a graph for options that differ only in --optimize and --max-ram; common work is done once."""

    def __init__(
        self,
        source: Graph,
        graph: Graph,
        target: Target,
        options: Options,
        progress: Progress = silent,
        flash_price: float | None = None,
    ):
        """`source`: the graph as it was read; `graph`: the checked graph with plans of the graphs that it calls;
        `flash_price`: see Variants."""
        self._graph, self._target, self._price = graph, target, flash_price
        self._variants = Variants(graph, target, options, flash_price)
        self._builder = Builder(source, options)
        self._progress = progress

    @cached_property
    def search(self) -> Search:
        """Search of `--fusion rows`."""
        return Search(self._variants.for_every_objective(), self._builder, self._progress)

    @cached_property
    def _sparing(self) -> Search:
        """Additional search, with kernels that do not trade RAM for speed."""
        return Search(self._variants.sparing().for_every_objective(), self._builder, self._progress)

    def plan(self, options: Options) -> Plan:
        """Verified plan for these options, which may differ from the constructor's in --max-ram and --optimize. `speed`
        is allowed only if the constructor's options asked for it."""
        builder = replace(self._builder, options=options)
        plan = self._best_found(builder) if is_searched(options) else rule_based_plan(self._variants, builder)
        if options.weights in ("auto", "packed") and self._price is None and not fits_flash(plan):
            return plan_within_flash(plan, partial(self._plan_at, options), self._progress)
        verify_plan(plan)
        return replace(plan, limits=builder.reached.found)

    def _plan_at(self, options: Options, weights: str, price: float | None) -> Plan:
        """Return the plan for other --weights, with `price` instructions for each byte of flash."""
        tried = replace(options, weights=weights)
        again = GraphPlans(self._builder.source, self._graph, self._target, tried, self._progress, price)
        return replace(again.plan(tried), options=options)

    def _best_found(self, builder: Builder) -> Plan:
        options = builder.options
        choices = self.search.choices(options.optimize, options.recompute_limit)
        self._progress("placing the arena")
        plan, reordering = pick_order(choices, options if options.optimize == "ram" else replace(options, max_ram=None))
        most = math.inf if options.max_ram is None else options.max_ram
        if plan.ram_bytes > most and options.optimize != "ram":
            plan, reordering = self._fastest_within(most, builder)
        if plan.ram_bytes > most or options.optimize == "ram":
            plan = recompute_operators(plan, builder, self._progress)
            plan = rematerialize_layers(plan, builder, self._progress)
        for strategy in (upgrade_kernels, use_fast_kernels):
            plan = strategy(plan, builder)
        if options.optimize == "speed" and options.max_ram is not None:
            plan, reordering = self._unless_faster(plan, reordering, self._sparing, "balanced", builder)
        elif options.optimize == "balanced":
            plan, reordering = self._unless_faster(plan, reordering, self.search, "speed", builder)
        return replace(drop_rare_kernels(plan, builder), options=options, reordering=reordering)

    def _unless_faster(
        self, plan: Plan, reordering: Reordering | None, search: Search, optimize: str, builder: Builder
    ) -> tuple[Plan, Reordering | None]:
        """The plan, or that for another `optimize` with fast kernels if it is faster in no more RAM. The search weighs
        groups with each objective's own kernels, so it may miss groups that are better with the fast ones."""
        choices = search.choices(optimize, builder.options.recompute_limit)
        other, its_order = pick_order(choices, replace(builder.options, optimize=optimize, max_ram=None))
        other = use_fast_kernels(other, builder)
        beaten = other.ram_bytes <= plan.ram_bytes and plan_instructions(other) < plan_instructions(plan)
        return (other, its_order) if beaten else (plan, reordering)

    def _fastest_within(self, most: float, builder: Builder) -> tuple[Plan, Reordering | None]:
        """Fastest plan of at most `most` bytes, or the smallest if there is none, with the figures of the file's order
        if another is used."""
        options = builder.options
        searches = [self.search, *([self._sparing] if options.optimize == "speed" else [])]
        wanted = replace(options, optimize="speed")
        found = [pick_order(search.choices("ram", options.recompute_limit), wanted) for search in searches]
        found = [(use_fast_kernels(plan, builder), reordering) for plan, reordering in found]

        def rank(plan: Plan) -> tuple[bool, float]:
            too_large = plan.ram_bytes > most
            return too_large, plan.ram_bytes if too_large else plan_instructions(plan)

        return min(found, key=lambda each: rank(each[0]))


def is_searched(options: Options) -> bool:
    """Tells whether groups are searched for."""
    return options.fusion == "rows"
