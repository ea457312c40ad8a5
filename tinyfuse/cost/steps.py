"""Predicted length of the steps in which an inference is made (`--max-step`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tinyfuse.cost.predict import group_stream, stage_instructions
from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import division
from tinyfuse.plan import Group, Plan, Stage
from tinyfuse.plan.rows import Stream

#: instructions that each further piece of a call adds: for its start and size, and the kernel's setup
_PIECE_INSTRUCTIONS = 400

#: slowdown of a piece, whose sizes a compiler does not know: up to this in plain C on the Cortex-M0+, none where loops
#: are assembly
_UNKNOWN_SIZES_SLOWDOWN = 1.5

#: factor on predictions for the slowest values: predictions err by some percent, and are means over calls; rows in the
#: middle of an image take more instructions than those at its border
_MARGIN = 1.15

#: instructions of a step besides its call, and per number in its cursor: read, checked, mixed into the check word
#: twice, written. Measured on MLPerf Tiny's kws and vww_96 on a Cortex-M4
_STEP_INSTRUCTIONS, _CURSOR_NUMBER_INSTRUCTIONS = 30, 15


@dataclass(frozen=True)
class Step:
    """Kind of step of a module with NAME_step.

    instructions  predicted for the slowest values of its inputs, mean over the calls of its operator; None if the
                  kernel was not measured
    kind          description of how much of the operator a step computes
    """

    instructions: int | None
    group: int
    op: Op
    kind: str

    @property
    def bound(self) -> int | None:
        """Predicted upper bound on the instructions of one step."""
        return None if self.instructions is None else math.ceil(self.instructions * _MARGIN)


def longest_step(plan: Plan) -> Step | None:
    """Longest step of an inference, where an unpredictable one counts as longest; None without steps."""
    steps = [step for group in plan.groups for step in _steps(plan, group)]
    return max(steps, key=lambda s: float("inf") if s.instructions is None else s.instructions, default=None)


def fits_step(plan: Plan, limit: int) -> bool:
    """Tells whether the bounds of all steps are known and at most `limit` instructions."""
    step = longest_step(plan)
    return step is None or (step.bound is not None and step.bound <= limit)


def _steps(plan: Plan, group: Group) -> Iterator[Step]:
    stream = group_stream(plan, group)
    besides = _STEP_INSTRUCTIONS + _CURSOR_NUMBER_INSTRUCTIONS * plan.cursor_rows(group)
    for stage, call in zip(group.stages, _instructions_per_call(plan, group, stream), strict=True):
        each = None if call is None else round(_piece_instructions(stage, call, stage.piece, plan.context)) + besides
        kind = "a piece of a call" if stage.pieces > 1 else "one row" if stage.by_row else "all in one call"
        yield Step(each, group.index, stage.op, kind)


def _instructions_per_call(plan: Plan, group: Group, stream: Stream | None) -> list[float | None]:
    """Predicted mean instructions per call of each stage, for the input values that take longest."""
    every = stage_instructions(group.stages, stream, plan.context, slowest=True)
    counts = [max(1, int(calls)) for calls in stream.loop.calls] if stream else [1]
    return [None if known is None else known / count for known, count in zip(every, counts, strict=True)]


def _piece_instructions(stage: Stage, call: float, piece: int | None, context: Context) -> float:
    """Instructions of a piece with `piece` units of a call that takes `call` instructions."""
    whole = division(stage.kernel, stage.op, stage.by_row, context)
    if piece is None or whole is None:
        return call
    alone = -piece % whole.together
    slower = 1.0 if context.target.dsp else _UNKNOWN_SIZES_SLOWDOWN
    return call * min(1.0, (piece + alone / 2) / whole.units) * slower + _PIECE_INSTRUCTIONS


def divide_calls(plan: Plan, limit: int) -> Plan:
    """Plan with calls divided into as few pieces as keep each step's bound at `limit` instructions.

    A call that stays longer anyway gets its smallest pieces. Calls that cannot be divided or predicted stay whole.
    """
    groups, limit = [], math.floor(limit / _MARGIN)
    for group in plan.groups:
        stream = group_stream(plan, group)
        besides = _STEP_INSTRUCTIONS + _CURSOR_NUMBER_INSTRUCTIONS * (plan.cursor_rows(group) + 1)
        stages = [
            stage
            if call is None or call + besides <= limit
            else _divide_call(stage, call, limit - besides, plan.context)
            for stage, call in zip(group.stages, _instructions_per_call(plan, group, stream), strict=True)
        ]
        groups.append(replace(group, stages=tuple(stages)))
    return replace(plan, groups=tuple(groups))


def _divide_call(stage: Stage, call: float, limit: int, context: Context) -> Stage:
    whole = division(stage.kernel, stage.op, stage.by_row, context)
    if whole is None or whole.units <= whole.multiple:
        return stage
    sizes = range(whole.multiple, whole.units, whole.multiple)
    fitting = [size for size in sizes if _piece_instructions(stage, call, size, context) <= limit]
    pieces = _divide_up(whole.units, max(fitting, default=whole.multiple))
    # pieces of equal size
    size = _divide_up(_divide_up(whole.units, pieces), whole.multiple) * whole.multiple
    return replace(stage, piece=size, pieces=_divide_up(whole.units, size))


def _divide_up(number: int, divisor: int) -> int:
    """Quotient, rounded up."""
    return -(-number // divisor)
