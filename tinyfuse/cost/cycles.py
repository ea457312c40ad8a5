"""Estimated cycles: tables weigh the instructions of emulated runs by the core's published timing (targets/cycles), and
a board's flash adds waits (tinyfuse/board_timing.py)."""

from __future__ import annotations

from collections.abc import Collection

from tinyfuse.board_timing import BoardTiming, find_timing
from tinyfuse.cost.predict import plan_stages, plan_total, predicted_total, stages_by
from tinyfuse.cost.table import board_table
from tinyfuse.errors import UsageError
from tinyfuse.kernels.core.context import Context
from tinyfuse.options import Options
from tinyfuse.plan import Plan, Stage
from tinyfuse.plan.rows import Stream
from tinyfuse.targets import Target, all_targets


def timing_of(target: Target, options: Options) -> BoardTiming:
    """Board of --timing; without the option, a core that never waits. UsageError if there is no such board."""
    return find_timing(options.timing, target.boards)


def default_count(target: Target, timing: str | None, optimize: str | None) -> str:
    """Default of --count. Cycles are counted where the flash's waits are known, and for speed on a core that issues two
    instructions at once, where more instructions may take less time."""
    known = timing is not None or (target.dual_issue and optimize == "speed")
    return "cycles" if known and target.cycle_table is not None else "instructions"


def counted_cycles(target: Target, options: Options) -> BoardTiming | None:
    """Board whose cycles --optimize counts; None if it counts instructions.

    Without --timing it is the target's first known board, because nearly all boards keep weights in a flash that waits.
    UsageError if there is no such board, or no table of the core's cycles.
    """
    known = options.timing is None and target.boards
    timing = target.boards[0] if known else timing_of(target, options)
    if options.count == "instructions":
        return None
    if target.cycle_table is None:
        others = ", ".join(name for name, each in all_targets().items() if each.cycle_table == name)
        raise UsageError(
            f"--count cycles: {target.name} has no table of estimated cycles; leave --count out or take one of {others}"
        )
    return timing


def stage_cycles(
    stages: tuple[Stage, ...], stream: Stream | None, context: Context, options: Options, once: Collection[str] = ()
) -> list[float | None]:
    """Predicted cycles of each stage of a group; None for a kernel that was not measured. `once`: see
    `CostTable.stages`."""
    table = board_table(context.target, timing_of(context.target, options))
    return [None] * len(stages) if table is None else table.stages(stages, stream, context, once)


def plan_cycles(plan: Plan) -> list[list[float | None]]:
    """Predicted cycles per inference, by group and stage; None for a kernel that was not measured."""
    table = board_table(plan.context.target, timing_of(plan.context.target, plan.options))
    if table is None:
        return [[None] * len(group.stages) for group in plan.groups]
    return plan_stages(plan, table)


def predicted_cycles(plan: Plan) -> int | None:
    """Predicted cycles of an inference, for reports; None if a kernel was not measured."""
    return plan_total(plan_cycles(plan))


def predicted_totals(plan: Plan) -> tuple[int | None, int | None]:
    """Predicted instructions and cycles of an inference, with the common work done once."""
    table = board_table(plan.context.target, timing_of(plan.context.target, plan.options))
    if table is None:
        return predicted_total(plan), predicted_cycles(plan)
    instructions, cycles = (plan_total(figures) for figures in stages_by(plan, None, table))
    return instructions, cycles


def predicted_ms(plan: Plan) -> float | None:
    """Predicted milliseconds of an inference on the board of --timing; None without one."""
    return timing_of(plan.context.target, plan.options).milliseconds(predicted_cycles(plan))
