"""UPDATE_STATE: overwrites a part of a state. Only rewrite/update_states.py makes it."""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.ir import Array, Op, all_given
from tinyfuse.ops.core.family import OpFamily
from tinyfuse.ops.movement.dynamic_update_slice import with_part


@dataclass(frozen=True)
class UpdateState:
    """Attributes of UPDATE_STATE: `shape`, the state's shape to which the start indexes refer; its readers may see the
    state in another shape."""

    shape: tuple[int, ...]


class UpdateStateFamily(OpFamily):
    """UPDATE_STATE. Inputs: a state, the update, and its start indexes, as for DYNAMIC_UPDATE_SLICE. The rest of the
    state is unchanged. It has no output."""

    kind = "UPDATE_STATE"
    summary = "a part of a state replaced where it lies, at a place computed at run time"
    in_files = False
    updates = (0,)

    def indexes(self, op: Op, index: int) -> tuple[int, int] | None:
        return (-1, max(op.attributes_as(UpdateState).shape)) if index == 2 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        state, update, starts = all_given(inputs)
        shape = op.attributes_as(UpdateState).shape
        return (with_part(state.reshape(shape), update, starts).reshape(state.shape),)
