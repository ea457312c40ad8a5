"""How long the steps of an inference are, where it is made in steps (`--step`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tinyfuse.cost.predict import group_stream, stage_instructions
from tinyfuse.ir import Op
from tinyfuse.plan import Group, Plan

#: instructions of a step besides the call that it makes, and of each number in its cursor: read, checked, written.
#: Measured on MLPerf Tiny's kws and vww_96 on a Cortex-M4
_STEP, _NUMBER = 30, 7


@dataclass(frozen=True)
class Step:
    """One sort of step. instructions: predicted, the mean over the calls of its operator, None where the kernel was not
    measured; divided: whether it is one call of several."""

    instructions: int | None
    group: int
    op: Op
    divided: bool


def longest_step(plan: Plan) -> Step | None:
    """The longest step of an inference; one that can't be predicted is longer than all. None without any step."""
    steps = [step for group in plan.groups for step in _steps(plan, group)]
    return max(steps, key=lambda s: float("inf") if s.instructions is None else s.instructions, default=None)


def _steps(plan: Plan, group: Group) -> Iterator[Step]:
    stream = group_stream(plan, group)
    besides = _STEP + _NUMBER * plan.cursor_rows(group)
    for s, (stage, all_calls) in enumerate(
        zip(group.stages, stage_instructions(group.stages, stream, plan.context), strict=True)
    ):
        calls = max(1, int(stream.loop.calls[s])) if stream else 1
        each = None if all_calls is None else round(all_calls / calls) + besides
        yield Step(each, group.index, stage.op, calls > 1)
