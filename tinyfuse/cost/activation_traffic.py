"""How many bytes of each of the arena's buffers an inference loads and stores, predicted from shapes: what decides
which of them lie in a fast memory bank. `tinyfuse profile` measures it, bank by bank."""

from __future__ import annotations

from collections import Counter

from tinyfuse.ir import ITEM_BYTES, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.movement.update_state import UpdateState
from tinyfuse.plan import Plan, Stage

#: output channels that a layer's kernels compute with each element of the input that they load
_CHANNELS_A_LOAD = 2

#: bytes of an element that is widened
_WIDENED = 2

#: Of kernels that widen what they read in their scratch, bytes that they load and store there for each multiplication.
#: Measured on MLPerf Tiny's kws and vww_96 on a Cortex-M4: 0.9 to 1.1, depthwise 6.2 to 8.
_SCRATCH_A_MAC, _SCRATCH_A_DEPTHWISE_MAC = 1, 6.5


def buffer_traffic(plan: Plan) -> Counter[str]:
    """Buffer -> bytes loaded and stored of it in an inference; of a subgraph's arena, which is scratch, each once."""
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
    """Bytes loaded and stored of the state: each operator on one reads it whole, and writes as much as it makes. But of
    a part that is replaced nothing else is touched, and what products of matrices make of one lies elsewhere."""
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
    """Per input the bytes that a stage loads of it, and those that it loads and stores in its scratch.

    A layer's kernel whose scratch holds a window of widened elements copies each there, and multiplies what it loads
    from there. Another one loads an element for each multiplication of a depthwise layer, of others for as many
    channels as it computes together. What is no layer loads each element of its inputs once.
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
