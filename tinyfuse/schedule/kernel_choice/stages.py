"""Stages of a group: each operator with its kernel, constants, windows and scratch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinyfuse.cost.predict import call_instructions
from tinyfuse.errors import InternalFault
from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.ops import FAMILIES
from tinyfuse.plan import Stage
from tinyfuse.plan.places import is_alias
from tinyfuse.schedule.kernel_choice.select import row_kernel, whole_kernel

#: stages made so far: per context, by operator and whether it reads rings (None: alone in its group)
StageMemo = dict[Context, dict[tuple[Op, bool | None], Stage]]


def make_stages(ops: Sequence[Op], context: Context, memo: StageMemo | None = None) -> tuple[Stage, ...]:
    """Stages of a group of these operators, each with its kernel. `memo` keeps stages between calls, because packing
    weights takes time."""
    made = {} if memo is None else memo.setdefault(context, {})
    stages: list[Stage] = []
    for op, rings in zip(ops, rings_read(ops), strict=True):
        if (op, rings) not in made:
            made[op, rings] = stage_of(op, rings, context)
        stages.append(made[op, rings])
    return tuple(stages)


def rings_read(ops: Sequence[Op]) -> list[bool | None]:
    """Tells for each operator of a group whether one of its inputs is a ring of rows; None if it stands alone."""
    if len(ops) == 1 and not ops[0].reads_ring:
        return [None]
    found: list[bool | None] = []
    inside: set[Tensor] = set()
    for op in ops:
        # inputs from outside the group are whole, except states
        found.append(not inside.isdisjoint(op.activations) or op.reads_ring)
        inside.update(op.outputs)
    return found


def stage_of(op: Op, rings: bool | None, context: Context) -> Stage:
    """Stage of an operator; `rings`: see `rings_read`."""
    if rings is None:
        return _stage(op, *whole_kernel(op, context), context)
    kernel = row_kernel(op, context, rings)
    if kernel is None:
        raise InternalFault("the lowering of groups", f"{op} does not stream; the partition should know")
    return _stage(op, kernel, True, context)


def separate_instructions(ops: Iterable[Op], context: Context) -> float:
    """Predicted instructions of operators that each stand alone, without loops over rows."""
    return sum(call_instructions(op, *whole_kernel(op, context), context) for op in ops if not is_alias(op))


def _stage(op: Op, kernel: Kernel, by_row: bool, context: Context) -> Stage:
    family = FAMILIES[op.kind]
    return Stage(
        op=op,
        kernel=kernel,
        by_row=by_row,
        windows=tuple(
            family.row_window(op, i) if by_row and t is not None and not t.is_constant else None
            for i, t in enumerate(op.inputs)
        ),
        constants=kernel.constants(op, context),
        scratch_bytes=kernel.scratch(op, context),
        macs=family.macs(op),
    )
