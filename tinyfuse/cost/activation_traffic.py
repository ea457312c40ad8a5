"""Bytes of each arena buffer that an inference loads and stores, predicted from shapes. They decide which buffers lie
in a fast memory bank. `tinyfuse profile` measures them per bank."""

from __future__ import annotations

from collections import Counter

from tinyfuse.ir import ITEM_BYTES, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.movement.update_state import UpdateState
from tinyfuse.plan import Plan, Stage

#: output channels that a layer's kernels compute with each input element that they load
_CHANNELS_A_LOAD = 2

#: bytes of an int8 element extended to int16
_WIDENED = 2

#: bytes loaded and stored in scratch per MAC, by kernels that extend inputs to int16 there. Measured on MLPerf Tiny's
#: kws and vww_96 on a Cortex-M4: 0.9 to 1.1, depthwise 6.2 to 8.
_SCRATCH_A_MAC, _SCRATCH_A_DEPTHWISE_MAC = 1, 6.5


def buffer_traffic(plan: Plan) -> Counter[str]:
    """Bytes loaded and stored per arena buffer in an inference. A subgraph's arena is scratch, and each byte counts
    once."""
    found: Counter[str] = Counter()
    for group in plan.groups:
        runs = plan.runs(group)
        for stage, scratch in zip(group.stages, group.scratch, strict=True):
            loaded, in_scratch = _loads(stage)
            for tensor, size in loaded.items():
                if tensor in plan.storage:
                    found[plan.storage[tensor].buffer] += size * runs
            for tensor in stage.op.outputs:
                if tensor in plan.storage:
                    found[plan.storage[tensor].buffer] += tensor.bytes * runs
            if scratch:
                found[scratch] += in_scratch * runs
        if group.counters:
            found[group.counters] += 1
    return found


def state_traffic(plan: Plan) -> int:
    """Bytes of state loaded and stored in an inference.

    An operator on a state reads it whole and writes as much as it outputs. An operator that replaces a part of it
    (UPDATE_STATE) touches only that part. An operator that reads a state in place (`OpFamily.from_states`) only reads
    it.
    """
    sizes = (
        _touched(stage.op, tensor) * plan.runs(group)
        for group in plan.groups
        for stage in group.stages
        for tensor in stage.op.states
    )
    return sum(sizes)


def _touched(op: Op, state: Tensor) -> int:
    if isinstance(op.attributes, UpdateState):
        return op.operand(1).bytes
    made = 0 if FAMILIES[op.kind].from_states else sum(output.bytes for output in op.outputs)
    return state.bytes + made


def _loads(stage: Stage) -> tuple[dict[Tensor, int], int]:
    """Bytes that a stage loads per input tensor, and bytes that it loads and stores in its scratch.

    A layer kernel whose scratch holds a window of int16 elements copies the input there, and multiplies from there.
    Other layer kernels load one input element per MAC, or per _CHANNELS_A_LOAD MACs if not depthwise. Other operators
    load each input element once.
    """
    op, family = stage.op, FAMILIES[stage.op.kind]
    loaded, scratch = {tensor: tensor.bytes for tensor in op.activations}, 2 * stage.scratch_bytes
    if family.data_and_weights is None or not op.outputs or op.input not in loaded:
        return loaded, scratch
    windows = stage.macs * ITEM_BYTES[op.input.dtype]
    if stage.scratch_bytes < _WIDENED * stage.macs // max(1, op.output.elements) or not stage.scratch_bytes:
        loaded[op.input] = max(op.input.bytes, windows if family.depthwise else windows // _CHANNELS_A_LOAD)
        return loaded, scratch
    if family.depthwise:
        return loaded, max(scratch, round(_SCRATCH_A_DEPTHWISE_MAC * stage.macs))
    loaded[op.input] = max(op.input.bytes, windows // max(1, op.output.shape[-1]))
    return loaded, max(scratch, _SCRATCH_A_MAC * stage.macs)
