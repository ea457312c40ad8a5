"""Plan: the complete result of compilation (which kernels run, where every tensor lies), and its independent
checker."""

from tinyfuse.plan.memory import ArenaPart, ConstantKey, Memory, Staged, StagedArray
from tinyfuse.plan.plan import (
    ARENA_ALIGN,
    FEED_STATE,
    FEED_STATE_BYTES,
    STACK_ALIGN,
    Group,
    Plan,
    Reordering,
    StackedRing,
    Stage,
    Storage,
    constant_key,
    states_align,
    states_bytes,
    subplans,
    tensor_align,
)

__all__ = [
    "ARENA_ALIGN",
    "FEED_STATE",
    "FEED_STATE_BYTES",
    "STACK_ALIGN",
    "ArenaPart",
    "ConstantKey",
    "Group",
    "Memory",
    "Plan",
    "Reordering",
    "StackedRing",
    "Stage",
    "Staged",
    "StagedArray",
    "Storage",
    "constant_key",
    "states_align",
    "states_bytes",
    "subplans",
    "tensor_align",
]
