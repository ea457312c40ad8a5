"""Roles of the arena's buffers and the layers that they belong to; pictures use them for colours and labels."""

from __future__ import annotations

from typing import NamedTuple

from tinyfuse.ir import Op, Tensor
from tinyfuse.plan import Plan
from tinyfuse.plan.places import is_alias


class BufferRole(NamedTuple):
    """Role of a buffer in the arena, and its layer.

    role   "input", "output", "tensor" (whole, between groups), "ring", "scratch", "stack" (rings and scratch of a
           group), "weights" (copied from a slow bank) or "counters" (of an input that is fed by rows).
    layer  the layer that makes or uses its content: "#3 CONV_2D" with the operator's place in the file, the name of
           an input or output, or "".
    """

    role: str
    layer: str

    @property
    def text(self) -> str:
        """Role and layer, such as "ring of #3 CONV_2D"."""
        if not self.layer:
            return self.role
        return f"{self.role} {'' if self.role in ('input', 'output') else 'of '}{self.layer}"


def layer_name(op: Op) -> str:
    """Operator's place in the file and its kind, "#3 CONV_2D"; the kind alone if a rewrite made the operator."""
    return op.kind if op.index < 0 else f"#{op.index} {op.kind}"


def buffer_roles(plan: Plan) -> dict[str, BufferRole]:
    """Role of each buffer of a plan, by the buffer's name."""
    roles = {buffer.name: BufferRole("counters", "") for buffer in plan.buffers}
    for copied in plan.memory.staged if plan.memory else ():
        roles[copied.buffer] = BufferRole("weights", f"group {copied.group}")
    crossing = {plan.storage[tensor].buffer for group in plan.groups for tensor in (*group.inputs, *group.outputs)}

    def rank(tensor: Tensor) -> tuple[int, bool]:
        """Sort key: larger for the tensor that fills its buffer than for views of it."""
        maker = plan.graph.producer.get(tensor)
        return tensor.bytes, maker is None or not is_alias(maker)

    for tensor, storage in sorted(plan.storage.items(), key=lambda each: rank(each[0])):
        roles[storage.buffer] = _tensor_role(plan, tensor, storage.buffer in crossing)
    for group in plan.groups:
        for stage, scratch in zip(group.stages, group.scratch, strict=True):
            if scratch is not None:
                roles[scratch] = BufferRole("scratch", layer_name(stage.op))
        if group.stack:  # the scratch of its group lies on top of its rings, in one buffer
            stacked = {
                plan.storage[ring.tensor].buffer for ring in group.stack if ring.tensor is not group.resident_output
            }
            roles |= dict.fromkeys(stacked, BufferRole("stack", f"group {group.index}"))
    return roles


def _tensor_role(plan: Plan, tensor: Tensor, is_whole: bool) -> BufferRole:
    for role, tensors in (("input", plan.graph.inputs), ("output", plan.graph.outputs)):
        if tensor in tensors:
            return BufferRole(role, tensor.name)
    maker = plan.graph.producer.get(tensor)
    return BufferRole("tensor" if is_whole else "ring", layer_name(maker) if maker else tensor.name)
