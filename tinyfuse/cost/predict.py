"""Predictions for groups and plans: for people (None if a kernel was not measured) and for the search (a guess
then)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from tinyfuse.cost.table import CostTable, counted_table, instructions_table
from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.ops import FAMILIES
from tinyfuse.plan import Group, Plan, Stage
from tinyfuse.plan.rows import RingModes, Stream

#: instructions per MAC, output element and call that the search assumes for a kernel without a table. Guesses suffice,
#: because the search compares partitions, which differ mostly in their row loops.
_UNKNOWN_MAC, _UNKNOWN_OUTPUT, _UNKNOWN_CALL = 4.0, 20.0, 100.0

#: row loop of a target without a table
_UNKNOWN_LOOP = CostTable({}, {"groups": 10.0, "rows": 10.0, "checks": 5.0, "slides": 15.0, "slid_bytes": 2.0}, {})


def stage_instructions(
    stages: tuple[Stage, ...], stream: Stream | None, context: Context, table: CostTable | None = None,
    once: Collection[str] = (), slowest: bool = False,
) -> list[float | None]:  # fmt: skip
    """Predicted instructions of each stage of a group, or what `table` counts; None for a kernel that was not measured.
    `once`, `slowest`: see `CostTable.stages`."""
    table = table or instructions_table(context.target)
    return table.stages(stages, stream, context, once, slowest) if table else [None] * len(stages)


def group_instructions(stages: tuple[Stage, ...], stream: Stream | None, context: Context) -> float:
    """Cost of a whole group for the search: predicted instructions, or estimated cycles if the context has a board.
    Guesses kernels that were not measured."""
    loops = loop_instructions(stages, stream, context)
    return sum(kernel_instructions(stage, context) + loop for stage, loop in zip(stages, loops, strict=True))


def kernel_instructions(stage: Stage, context: Context) -> float:
    """Cost of a stage's kernel for the search, without the row loop; guessed if it was not measured."""
    return call_instructions(stage.op, stage.kernel, stage.by_row, context)


def call_instructions(op: Op, kernel: Kernel, by_row: bool, context: Context) -> float:
    """Cost of an operator with a given kernel for the search; guessed if it was not measured."""
    known = (counted_table(context) or _UNKNOWN_LOOP).kernel(op, kernel, by_row, context)
    return _guess(op, by_row) if known is None else known


def loop_factors(context: Context) -> Mapping[str, float]:
    """Cost of each count of a row loop (table.loop_features)."""
    return (counted_table(context) or _UNKNOWN_LOOP).loop


def loop_instructions(stages: tuple[Stage, ...], stream: Stream | None, context: Context) -> list[float]:
    """Cost of the row loop, by stage."""
    return (counted_table(context) or _UNKNOWN_LOOP).loops(stages, stream)


def _guess(op: Op, by_row: bool) -> float:
    written = op.outputs or op.states  # an assignment has no output
    outputs = sum(tensor.elements for tensor in written)
    calls = written[0].shape[1] if by_row else 1
    return _UNKNOWN_MAC * FAMILIES[op.kind].macs(op) + _UNKNOWN_OUTPUT * outputs + _UNKNOWN_CALL * calls


def plan_stages(plan: Plan, table: CostTable | None = None) -> list[list[float | None]]:
    """Predicted instructions per inference, by group and stage; or what `table` counts."""
    (found,) = stages_by(plan, table)
    return found


def stages_by(plan: Plan, *tables: CostTable | None) -> list[list[list[float | None]]]:
    """Predictions by group and stage for each of several tables; their common work is done once."""
    once = called_once(plan)
    found: list[list[list[float | None]]] = [[] for _ in tables]
    for group in plan.groups:
        runs, stream = plan.runs(group), _stream(plan, group)
        in_place = [lies_over_input(plan, stage) for stage in group.stages]
        for table, figures in zip(tables, found, strict=True):
            values = _of_a_run(plan, group, table, once, stream, in_place)
            figures.append([None if value is None else value * runs for value in values])
    return found


def called_once(plan: Plan) -> frozenset[str]:
    """Names of kernel code (`Kernel.copy_of_code`) that the plan's module calls in only one place."""
    groups = (group for each in (plan, *plan.subplans.values()) for group in each.groups)
    stages = [stage for group in groups for stage in group.stages]
    names = Counter(stage.kernel.copy_of_code(stage.op, plan.context) for stage in stages)
    for stage in stages:
        names.update(() if stage.kernel.own_code(stage.op) else stage.kernel.calls_too(stage.op))
    return frozenset(name for name, count in names.items() if count == 1 and name)


def _of_a_run(
    plan: Plan, group: Group, table: CostTable | None, once: Collection[str], stream: Stream | None,
    in_place: Sequence[bool],
) -> list[float | None]:  # fmt: skip
    """Costs of a group's stages in one run. Subtracted are the copies that are not needed because outputs lie over
    inputs (`in_place`)."""
    found = stage_instructions(group.stages, stream, plan.context, table, once)
    table = table or instructions_table(plan.context.target)
    if table is None:
        return found
    spared = [
        table.copying(stage, plan.context) if is_over else 0.0
        for stage, is_over in zip(group.stages, in_place, strict=True)
    ]
    return [value if value is None else value - less for value, less in zip(found, spared, strict=True)]


def _stream(plan: Plan, group: Group) -> Stream | None:
    """Row loop of a group with several stages; a single stage needs none for its prediction."""
    return group_stream(plan, group) if len(group.stages) > 1 else None


def lies_over_input(plan: Plan, stage: Stage) -> bool:
    """Tells whether a kernel's output lies over the input that it may change in place."""
    op, places = stage.op, stage.kernel.in_place
    if not places or op.operand(places[0]) not in op.activations:
        return False
    return plan.offset(op.operand(places[0])) == plan.offset(op.output)


def predicted_total(plan: Plan) -> int | None:
    """Predicted instructions of an inference, for reports; None if a kernel was not measured."""
    return plan_total(plan_stages(plan))


def plan_instructions(plan: Plan) -> float:
    """Cost of a whole plan for the search, as `group_instructions`."""
    return sum(
        plan.runs(group) * group_instructions(group.stages, _stream(plan, group), plan.context) for group in plan.groups
    )


def group_slides(plan: Plan, group: Group) -> bool:
    """Tells whether a ring of the group slides."""
    return any(plan.storage[tensor].slides for op in group.ops for tensor in op.outputs)


def ring_modes(plan: Plan) -> RingModes:
    """Ring layout of a plan's groups."""
    fixed = frozenset(group.index for group in plan.groups if not group_slides(plan, group))
    stacked = frozenset(group.index for group in plan.groups if group.stack)
    return RingModes(fixed, stacked, frozenset(group.index for group in plan.groups if group.resident_output))


def group_stream(plan: Plan, group: Group) -> Stream | None:
    """Row loop of a group; None if it is one whole call."""
    if not group.stages[0].by_row:
        return None
    slides, stacked = group_slides(plan, group), bool(group.stack)
    return Stream(group.stages, frozenset(group.outputs), slides, stacked, group.resident_output)


def plan_total(of_stages: Iterable[Iterable[float | None]]) -> int | None:
    """Sum over all stages of all groups, rounded; None if one is not known."""
    return known_total([*chain.from_iterable(of_stages)])


def known_total(instructions: list[float | None]) -> int | None:
    """Sum, rounded; None if a value is not known."""
    if any(value is None for value in instructions):
        return None
    return round(sum(value for value in instructions if value is not None))
