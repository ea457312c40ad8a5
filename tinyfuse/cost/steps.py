"""How long the steps of an inference are, where it is made in steps (`--step`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tinyfuse.cost.predict import group_stream, stage_instructions
from tinyfuse.ir import Op
from tinyfuse.kernels.core.kernel import Context, division
from tinyfuse.plan import Group, Plan, Stage
from tinyfuse.plan.rows import Stream

#: instructions of what each piece of a call does anew: its numbers, the kernel's own before and after its loops
_PIECE = 400

#: how much slower the same work is where a compiler, who knows all sizes of a whole call, doesn't know a piece's: of
#: kernels in plain C, up to so much on the Cortex-M0+; where loops are assembly, not at all
_SIZES_UNKNOWN = 1.5

#: a step may take so many times what is predicted for the slowest values: predictions err by some percent, and are the
#: mean over all calls, of which rows in the middle of an image take more than those at its border
_MARGIN = 1.15

#: instructions of a step besides the call that it makes, and of each number in its cursor: read, checked, mixed
#: into the check word twice, written.
#: Measured on MLPerf Tiny's kws and vww_96 on a Cortex-M4
_STEP, _NUMBER = 30, 15


@dataclass(frozen=True)
class Step:
    """One sort of step. instructions: predicted for the slowest values of its inputs, the mean over the calls of its
    operator, None where the kernel was not measured; kind: how much of its operator it computes."""

    instructions: int | None
    group: int
    op: Op
    kind: str

    @property
    def bound(self) -> int | None:
        """Instructions that no call takes more than, as far as predictions go."""
        return None if self.instructions is None else math.ceil(self.instructions * _MARGIN)


def longest_step(plan: Plan) -> Step | None:
    """The longest step of an inference; one that can't be predicted is longer than all. None without any step."""
    steps = [step for group in plan.groups for step in _steps(plan, group)]
    return max(steps, key=lambda s: float("inf") if s.instructions is None else s.instructions, default=None)


def fits_step(plan: Plan, limit: int) -> bool:
    """Whether the bounds of all steps are known and no more."""
    step = longest_step(plan)
    return step is None or (step.bound is not None and step.bound <= limit)


def _steps(plan: Plan, group: Group) -> Iterator[Step]:
    stream = group_stream(plan, group)
    besides = _STEP + _NUMBER * plan.cursor_rows(group)
    for stage, call in zip(group.stages, _calls(plan, group, stream), strict=True):
        each = None if call is None else round(_piece(stage, call, stage.piece, plan.context)) + besides
        kind = "a piece of a call" if stage.pieces > 1 else "one row" if stage.by_row else "all in one call"
        yield Step(each, group.index, stage.op, kind)


def _calls(plan: Plan, group: Group, stream: Stream | None) -> list[float | None]:
    """Predicted instructions of a call of each stage, the mean over all, for the slowest values of inputs."""
    every = stage_instructions(group.stages, stream, plan.context, slowest=True)
    counts = [max(1, int(calls)) for calls in stream.loop.calls] if stream else [1]
    return [None if known is None else known / count for known, count in zip(every, counts, strict=True)]


def _piece(stage: Stage, call: float, piece: int | None, context: Context) -> float:
    """Instructions of a piece of a call that takes so many."""
    whole = division(stage.kernel, stage.op, stage.by_row, context)
    if piece is None or whole is None:
        return call
    alone = -piece % whole.together
    slower = 1.0 if context.target.dsp else _SIZES_UNKNOWN
    return call * min(1.0, (piece + alone / 2) / whole.units) * slower + _PIECE


def in_pieces(plan: Plan, limit: int) -> Plan:
    """The plan with calls in pieces, as few as keep the bound of a step at so many instructions; in the least
    pieces that there are where none is so short. What can't be divided, or predicted, stays whole."""
    groups, limit = [], math.floor(limit / _MARGIN)
    for group in plan.groups:
        stream = group_stream(plan, group)
        besides = _STEP + _NUMBER * (plan.cursor_rows(group) + 1)
        stages = [
            stage if call is None or call + besides <= limit else _in_pieces(stage, call, limit - besides, plan.context)
            for stage, call in zip(group.stages, _calls(plan, group, stream), strict=True)
        ]
        groups.append(replace(group, stages=tuple(stages)))
    return replace(plan, groups=tuple(groups))


def _in_pieces(stage: Stage, call: float, limit: int, context: Context) -> Stage:
    whole = division(stage.kernel, stage.op, stage.by_row, context)
    if whole is None or whole.units <= whole.multiple:
        return stage
    sizes = range(whole.multiple, whole.units, whole.multiple)
    fitting = [size for size in sizes if _piece(stage, call, size, context) <= limit]
    pieces = _up(whole.units, max(fitting, default=whole.multiple))
    # of that many pieces, the last one as long as the others
    size = _up(_up(whole.units, pieces), whole.multiple) * whole.multiple
    return replace(stage, piece=size, pieces=_up(whole.units, size))


def _up(number: int, divisor: int) -> int:
    """Their quotient, rounded up."""
    return -(-number // divisor)
