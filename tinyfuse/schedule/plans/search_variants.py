"""Strategy: searches groups (search.py) in the order of the file and in others (order.py), for every variant of the
model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tinyfuse import limits
from tinyfuse.cost.predict import plan_instructions
from tinyfuse.errors import CompileError
from tinyfuse.ir import Graph, Op
from tinyfuse.ops import graph_macs
from tinyfuse.plan import Plan
from tinyfuse.plan.rows import USUAL_RINGS
from tinyfuse.progress import Progress, silent
from tinyfuse.schedule.groups.partition import partition_each
from tinyfuse.schedule.groups.promising_orders import better_orders
from tinyfuse.schedule.groups.search import Candidate, Weigher, Work, pareto_front, partitions, weigh_groups, weigher_of
from tinyfuse.schedule.groups.tiled_groups import Edges, with_tiled_groups
from tinyfuse.schedule.plans.build import Builder
from tinyfuse.schedule.plans.pick_plan import Choices, Plans, note_missed
from tinyfuse.schedule.variants.variants import Variant, with_least_scratch


@dataclass(frozen=True)
class _Front:
    """Candidates found in one order of the operators, and the work of the search."""

    candidates: tuple[Candidate, ...]
    work: int


class Search:
    """Candidates of a model's variants. One search serves every --optimize; results are kept."""

    def __init__(self, variants: Iterable[Variant], builder: Builder, progress: Progress = silent):
        """Searches the variants in their own order. CompileError if none of them can be computed."""
        self._builder, self._progress = builder, progress
        self._in_file_order: list[Candidate] = []
        self._rule_based_plan: dict[Candidate, Plan] = {}
        self._budgets: dict[Variant, int] = {}  # bytes of RAM allowed in the search of each variant
        self._orders: dict[Variant, list[Graph]] = {}
        self._fronts: dict[Variant, _Front] = {}
        # weighed groups of each variant, in the order of the file, and instructions of its partition with the least RAM
        self._weighed: dict[Variant, tuple[Weigher, Edges, float]] = {}
        self._tiled: dict[float, list[Candidate]] = {}
        for variant, rule_based_plan in partition_each(variants, "basic", "rows"):
            self._in_file_order += self._candidates(variant, rule_based_plan)

    def choices(self, optimize: str, recompute: float = 1) -> Choices[Plan]:
        """Choices for an objective, in other orders of the operators too.

        The work limit does not suffice for all orders, so those of the variants for `optimize` come first. Some
        candidates compute rows again, until all multiply-accumulates are `recompute` times the model's. Plans are not
        verified.
        """
        found, work = self._found(recompute), self._work(optimize, *self._budgets)
        if optimize == "ram":
            for min_scratch in self._min_scratch:
                found += min_scratch._found(recompute)
        for variant in sorted(self._budgets, key=lambda variant: variant.context.optimize != optimize):
            if work.left <= 0:
                self._builder.reached.note(work.rows)
                break
            for order in self._better_orders(variant):
                found += self._front(Variant(order, variant.context), self._budgets[variant], work)
        return self._offer(found)

    @cached_property
    def _min_scratch(self) -> list[Search]:
        """Searches of the variants with kernels of the least scratch."""
        searches = (_search(variant, self._builder, self._progress) for variant in with_least_scratch([*self._budgets]))
        return [search for search in searches if search is not None]

    def choices_in_file_order(self, recompute: float = 1) -> Choices[Plan]:
        """Choices in the order of the file only."""
        return self._offer(self._found(recompute))

    def _found(self, recompute: float) -> list[Candidate]:
        """Candidates in the order of the file."""
        return self._in_file_order + self._in_tiles(recompute)

    def _in_tiles(self, recompute: float) -> list[Candidate]:
        """Candidates with tiles that take less RAM (tiling.py), of the variants for that, in the order of the file.

        Tiles are found by their multiply-accumulates. A tile also has rows and columns of its own, so these may cost
        far more instructions than their share of multiply-accumulates; `recompute` bounds both."""
        if recompute <= 1:
            return []
        if recompute not in self._tiled:
            found = self._tiled[recompute] = []
            for variant, (weigher, edges, once) in self._weighed.items():
                self._progress("looking for layers to compute in tiles")
                more = self._builder.macs_within(recompute) - graph_macs(variant.graph)
                tiled = with_tiled_groups(weigher, edges, more)
                if tiled is not edges:
                    found += [
                        each for each in partitions(weigher, tiled, more) if each.instructions <= recompute * once
                    ]
        return self._tiled[recompute]

    def _work(self, optimize: str, *variants: Variant) -> Work:
        """Budget for searching several variants of a graph, in steps of the search. Loops over tall images have more
        rows."""
        rows = limits.GROUP_ROWS
        tensors = (tensor for variant in variants for op in variant.graph.ops for tensor in op.outputs)
        tallest = max((tensor.shape[1] for tensor in tensors if len(tensor.shape) == 4), default=0)
        if optimize == "ram" and tallest > limits.ROWS_OF_WORK:
            rows = replace(rows, most=rows.most * tallest // limits.ROWS_OF_WORK)
        return Work(self._builder.reached, rows)

    def _offer(self, candidates: Sequence[Candidate]) -> Choices[Plan]:
        """Choices with a cache of plans of their own: which plans are made within limits, and so may be smaller, must
        not depend on earlier choices."""
        return Choices(
            candidates, Plans(self._builder.candidate, self._rule_based_plan), note_missed(self._builder.reached)
        )

    def _candidates(self, variant: Variant, rule_based_plan: Sequence[Sequence[Sequence[Op]]]) -> Iterator[Candidate]:
        """Yields the partitions in `rule_based_plan`, and those that the search finds with no more RAM."""
        budget = 0
        for groups in rule_based_plan:
            plan = self._builder.plan(variant, groups)
            partitioned = tuple(map(tuple, groups))
            found = Candidate(*variant, partitioned, USUAL_RINGS, plan.arena_bytes, plan_instructions(plan))
            self._rule_based_plan[found] = plan
            budget = max(budget, plan.arena_bytes)
            yield found
        self._budgets[variant] = budget
        work = self._work(variant.context.optimize, variant)
        if variant.context.optimize != "ram" or variant.context.kernels == "cmsis-nn":
            yield from pareto_front(*variant, budget, self._progress, work, self._builder.memo)
            return
        weigher = weigher_of(*variant, self._builder.memo, work)
        edges = weigh_groups(weigher, budget, self._progress)
        partitioned_ways = list(partitions(weigher, edges))
        least = min(partitioned_ways, key=lambda each: (each.ram, each.instructions), default=None)
        self._weighed[variant] = weigher, edges, least.instructions if least else math.inf
        yield from partitioned_ways

    def _better_orders(self, variant: Variant) -> list[Graph]:
        if variant not in self._orders:
            budget = self._budgets[variant]
            self._orders[variant] = better_orders(
                *variant, budget, self._progress, self._builder.memo, self._builder.reached
            )
        return self._orders[variant]

    def _front(self, variant: Variant, budget: int, work: Work) -> Sequence[Candidate]:
        """Candidates of another order; `work` is used up even if they were found before."""
        known, before = self._fronts.get(variant), work.left
        if known is not None and known.work <= work.left:
            work.left -= known.work
            return known.candidates
        found = pareto_front(*variant, budget, self._progress, work, self._builder.memo)
        front = _Front(tuple(replace(candidate, reordered=True) for candidate in found), before - work.left)
        if work.left >= 0:  # nothing was left out: more work would have found the same
            self._fronts[variant] = front
        return front.candidates


def least_ram(variant: Variant, builder: Builder, progress: Progress = silent, recompute: float = 1) -> Plan | None:
    """Plan of a variant for `ram`, in its own order; None if it cannot be computed."""
    search = _search(variant, builder, progress)
    return None if search is None else search.choices_in_file_order(recompute).choose("ram", builder.options.max_ram)


def _search(variant: Variant, builder: Builder, progress: Progress) -> Search | None:
    """Search of one variant; None if the variant cannot be computed, because with recomputation no group may remain for
    --feed-rows."""
    try:
        return Search([variant], builder, progress)
    except CompileError:
        return None
