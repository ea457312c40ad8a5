"""Weighs the fusions considered for a plan, taken or refused, with predicted costs both ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tinyfuse.cost.cycles import plan_cycles, stage_cycles
from tinyfuse.cost.predict import called_once, group_slides, known_total, plan_stages, stage_instructions
from tinyfuse.ir import Op
from tinyfuse.plan import Group, Plan
from tinyfuse.plan.places import is_alias
from tinyfuse.plan.rows import Stream
from tinyfuse.schedule.groups.legality import Legality
from tinyfuse.schedule.groups.search import Weigher, Work
from tinyfuse.schedule.kernel_choice.stages import make_stages


@dataclass(frozen=True)
class Cost:
    """Cost of a group, or of several one after the other; for groups of the plan the report's figures.

    instructions  predicted; None if a kernel was not measured
    ram_bytes     estimated bytes alive while it runs; None for operators that are not adjacent in the order of
    execution
    cycles        estimated; None if a kernel was not measured
    """

    instructions: int | None
    ram_bytes: int | None
    cycles: int | None


@dataclass(frozen=True)
class Fusion:
    """Operators that are one group (`taken`), or two groups that might be one.

    groups  numbers of the plan's groups
    fused   cost as one group; None if they cannot be one
    apart   cost of the operators alone, or of the two groups
    """

    taken: bool
    groups: tuple[int, ...]
    ops: tuple[Op, ...]
    fused: Cost | None
    apart: Cost
    reason: str


def fusions(plan: Plan) -> Iterator[Fusion]:
    """Yields every group of several operators, and every pair of a group and the next one that reads its outputs."""
    weigh = _Weigh(plan)
    for group in plan.groups:
        if len(group.ops) > 1:
            fused, apart = weigh.group(group), add_costs([weigh.one(ops) for ops in weigh.smallest_groups(group.ops)])
            yield Fusion(True, (group.index,), group.ops, fused, apart, _gain(fused, apart, plan.options.count))
    for before, after in _borders(plan.groups):
        ops = before.ops + after.ops
        apart = add_costs([weigh.group(before), weigh.group(after)])
        numbers = (before.index, after.index)
        refusal = weigh.legality.refusal(ops)
        if refusal:
            yield Fusion(False, numbers, ops, None, apart, str(refusal))
        else:
            fused = weigh.one(ops)
            yield Fusion(False, numbers, ops, fused, apart, _loss(plan, fused, apart))


def _borders(groups: Sequence[Group]) -> Iterator[tuple[Group, Group]]:
    for before in groups:
        readers = (g for g in groups[before.index + 1 :] if not set(before.outputs).isdisjoint(g.inputs))
        after = next(readers, None)
        if after is not None:
            yield before, after


class _Weigh:
    """Costs of groups of a plan's operators, whether the plan has them or not."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.legality = Legality(plan.graph, plan.context)
        order = tuple(op for op in plan.graph.ops if not is_alias(op))
        self.position = {op: i for i, op in enumerate(order)}
        self.weigher = Weigher(plan.graph, order, plan.context)
        self.once = called_once(plan)
        self.instructions, self.cycles = plan_stages(plan), plan_cycles(plan)

    def group(self, group: Group) -> Cost:
        """Cost of a group of the plan. Its RAM is at most the arena, which contains all of it."""
        instructions, cycles = (known_total(stages[group.index]) for stages in (self.instructions, self.cycles))
        form = (group_slides(self.plan, group), bool(group.stack), group.resident_output is not None)
        ram = self._ram(group.ops, form)
        return Cost(instructions, None if ram is None else min(ram, self.plan.arena_bytes), cycles)

    def one(self, ops: Sequence[Op]) -> Cost:
        """Cost of a group that the plan does not have."""
        stages = make_stages(list(ops), self.plan.context, self.weigher.memo)
        kept = self.legality.leaving(ops)
        stream = Stream(stages, kept) if stages[0].by_row else None
        instructions = stage_instructions(stages, stream, self.plan.context, once=self.once)
        cycles = stage_cycles(stages, stream, self.plan.context, self.plan.options, self.once)
        return Cost(known_total(instructions), self._ram(ops), known_total(cycles))

    def smallest_groups(self, ops: Sequence[Op]) -> Iterator[tuple[Op, ...]]:
        """Yields the operators in the smallest groups that are legal: a part of a layer cannot run alone."""
        waiting: tuple[Op, ...] = ()
        for op in ops:
            waiting = (*waiting, op)
            if self.legality.refusal(waiting) is None:
                yield waiting
                waiting = ()
        if waiting:
            yield waiting

    def _ram(self, ops: Sequence[Op], form: tuple[bool, bool, bool] | None = None) -> int | None:
        """Estimated bytes alive while a group runs; None if its operators are not adjacent.

        `form` tells whether its rings slide, lie in a stack, and hold a resident output. Without an estimate for that
        form, the smallest estimate is returned.
        """
        first = self.position.get(ops[0], -1)
        if [self.position.get(op) for op in ops] != list(range(first, first + len(ops))):
            return None
        self.weigher.work = Work()  # a fresh limit for each group, so that earlier groups do not use it up
        weights = self.weigher.weigh(first, first + len(ops)) or ()
        alike = [weight.ram for weight in weights if (weight.slides, weight.stacked, weight.resident_output) == form]
        return min(alike or [weight.ram for weight in weights], default=None)


def add_costs(costs: Sequence[Cost]) -> Cost:
    """Cost of groups that run one after the other."""
    known = [cost.ram_bytes for cost in costs if cost.ram_bytes is not None]
    return Cost(
        known_total([cost.instructions for cost in costs]),
        max(known) if len(known) == len(costs) else None,
        known_total([cost.cycles for cost in costs]),
    )


def _more(fused: Cost, apart: Cost, count: str) -> tuple[int | None, str]:
    """Extra cost of the group over its parts in the unit of --count (None if unknown), and the unit."""
    cycles = count == "cycles"
    both = (fused.cycles, apart.cycles) if cycles else (fused.instructions, apart.instructions)
    unit = "estimated cycles" if cycles else "instructions"
    return (None, unit) if both[0] is None or both[1] is None else (both[0] - both[1], unit)


def _gain(fused: Cost, apart: Cost, count: str) -> str:
    words = []
    if fused.ram_bytes is not None and apart.ram_bytes is not None:
        saved = apart.ram_bytes - fused.ram_bytes
        words.append(
            f"saves {saved:,} bytes of RAM while it runs"
            if saved > 0
            else f"takes {-saved:,} bytes more RAM while it runs"
            if saved
            else "takes as much RAM"
        )
    slower, unit = _more(fused, apart, count)
    if slower is not None:
        words.append(f"{slower:+,} {unit}")
    return ", ".join(words) or "not predicted"


def _loss(plan: Plan, fused: Cost, apart: Cost) -> str:
    """Reason why a legal group was not made: what it would cost."""
    if plan.options.fusion != "rows":
        return f"--fusion {plan.options.fusion} makes no groups that stream rows"
    if fused.ram_bytes is None or apart.ram_bytes is None:
        return "its operators are not neighbours in the order of execution"
    more = fused.ram_bytes - apart.ram_bytes
    if more >= 0:
        return f"would take {more:,} bytes more RAM while it runs" if more else "would save no RAM"
    slower, unit = _more(fused, apart, plan.options.count)
    if slower is not None and slower > 0 and apart.ram_bytes == plan.placement.arena_bytes:
        return f"would take {slower:,} {unit} more, which --optimize {plan.options.optimize} does not spend"
    return f"would save RAM where the arena of {plan.arena_bytes:,} bytes is not full"
