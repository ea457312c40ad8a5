"""Finds changes to a model that would save instructions or memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tinyfuse.cost.predict import known_total, plan_stages
from tinyfuse.ir import Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.elementwise.table import Table
from tinyfuse.ops.layers.computed_layer import ComputedLayer
from tinyfuse.plan import Plan
from tinyfuse.rewrite.cancel_transposes import why_transpose_stays
from tinyfuse.rewrite.fold_pad import why_pad_stays
from tinyfuse.schedule.groups.partition import is_pointwise_function

#: smallest share of idle lanes that is worth advice
_IDLE = 0.1

#: kernels of ours that take any shape and quantization, and are slow
_GENERAL = {
    "tinyfuse_conv_row_s8",
    "tinyfuse_depthwise_row_s8",
    "tinyfuse_fully_connected_s8",
}


@dataclass(frozen=True)
class Advice:
    """Advice about an operator: `topic`, `message` with the finding, `hint` with a change, or with what was done."""

    topic: str
    op: Op
    message: str
    hint: str


def advice(plan: Plan) -> Iterator[Advice]:
    """Yields advice, in the order of the operators."""
    predicted = {
        stage.op: known_total([instructions])
        for group, figures in zip(plan.groups, plan_stages(plan), strict=True)
        for stage, instructions in zip(group.stages, figures, strict=True)
    }
    kernels = {stage.op: stage.kernel.name for group in plan.groups for stage in group.stages}
    source = {op.index: op for op in plan.source.ops}
    islands = _float_islands(plan, predicted)
    for op in plan.graph.ops:
        if op in islands:
            yield islands[op]
        yield from _padding(plan, op, predicted.get(op))
        yield from _layout(plan, op, predicted.get(op))
        yield from _normalization(plan, op, predicted.get(op))
        yield from _activation(plan, op, predicted.get(op))
        yield from _dead_channels(source.get(op.index), op)
        yield from _idle_lanes(plan, op)
        yield from _general_kernel(op, kernels.get(op))


def _float_islands(plan: Plan, predicted: Mapping[Op, int | None]) -> dict[Op, Advice]:
    """Map the first operator of each part that computes float32 between integers to its advice."""
    borders = {tensor for tensor in (*plan.graph.inputs, *plan.graph.outputs) if tensor.dtype == "float32"}
    islands: list[tuple[set[Tensor], list[Op]]] = []
    for op in plan.graph.ops:
        touched = {tensor for tensor in (*op.activations, *op.outputs) if tensor.dtype == "float32"}
        joined = [island for island in islands if island[0] & touched]
        islands = [island for island in islands if island not in joined]
        if touched:
            tensors = touched.union(*(tensors for tensors, _ in joined))
            islands.append((tensors, [*(made for _, ops in joined for made in ops), op]))
    found = {}
    for tensors, ops in islands:
        if not tensors & borders:
            costs = [cost for op in ops if (cost := predicted.get(op)) is not None]
            total = sum(costs) if costs else None
            first, last = min(ops, key=plan.graph.ops.index), max(ops, key=plan.graph.ops.index)
            found[first] = Advice(
                "float32", first, f"begins a part in float32 of {len(ops)} operators, up to {last}{_takes(total)}",
                "quantize what lies between: in ONNX a QuantizeLinear and a DequantizeLinear behind each operator",
            )  # fmt: skip
    return found


def _is_layer(op: Op) -> bool:
    """Tells whether the operator has weights per output channel."""
    return FAMILIES[op.kind].channel_axis is not None


def _takes(instructions: int | None) -> str:
    return "" if instructions is None else f"; it takes {instructions:,} instructions"


def _padding(plan: Plan, op: Op, instructions: int | None) -> Iterator[Advice]:
    if FAMILIES[op.kind].pads and plan.options.fusion != "none":
        reason = why_pad_stays(plan.graph, op)
        if reason:
            yield Advice(
                "padding", op, f"stays an operator: {reason}{_takes(instructions)}",
                "pad inside the convolution (padding 'same'), or give input and output of the padding one "
                "scale and zero point",
            )  # fmt: skip


def _layout(plan: Plan, op: Op, instructions: int | None) -> Iterator[Advice]:
    if FAMILIES[op.kind].transposes and not op.view and plan.options.fusion != "none":
        reason = why_transpose_stays(plan.graph, op)
        yield Advice(
            "layout", op, f"moves {op.output.bytes:,} bytes: {reason}{_takes(instructions)}",
            "convert the model with channels last at its inputs and outputs, as onnx2tf does by itself, litert-torch "
            "with to_channel_last_io",
        )  # fmt: skip


def _normalization(plan: Plan, op: Op, instructions: int | None) -> Iterator[Advice]:
    """Advice for a MUL or ADD by one constant per channel, or a table made from such operators, that follows a layer
    with weights."""
    affine = FAMILIES[op.kind].affine
    if isinstance(op.attributes, Table):
        # readers of ONNX and ExecuTorch files make tables of functions that are no operators here
        families = [FAMILIES.get(kind) for kind in op.attributes.kinds]
        affine = all(family is not None and (family.affine or family.fused_as) for family in families)
    if not affine or len(op.activations) != 1:
        return
    constant = next((t for t in op.inputs if t is not None and t.is_constant), None)
    if constant is None:  # a tensor with itself
        return
    tables = constant.shape[:-1] if isinstance(op.attributes, Table) else (constant.elements,)
    maker = plan.graph.producer.get(op.first_activation)
    while maker is not None and FAMILIES[maker.kind].affine and len(maker.activations) == 1:
        maker = plan.graph.producer.get(maker.first_activation)
    if tables == op.output.shape[-1:] and maker is not None and _is_layer(maker):
        yield Advice(
            "batch normalization", op, f"remains of a batch normalization behind {maker}{_takes(instructions)}",
            "fold it into the weights before quantizing: int8 weights cannot take it exactly",
        )  # fmt: skip


def _activation(plan: Plan, op: Op, instructions: int | None) -> Iterator[Advice]:
    if not FAMILIES[op.kind].fused_as or plan.options.fusion == "none" or not is_pointwise_function(op):
        return
    maker = plan.graph.producer.get(op.input)
    if maker is not None and _is_layer(maker) and op.input.quant != op.output.quant:
        yield Advice(
            "activation", op, f"rescales, so {maker}'s clamp cannot replace it{_takes(instructions)}",
            "fuse the activation into the layer before quantizing: both then share scale and zero point",
        )  # fmt: skip


def _dead_channels(before: Op | None, op: Op) -> Iterator[Advice]:
    if before is None or not _is_layer(op) or before.kind != op.kind:
        return
    had, has = before.output.shape[-1], op.output.shape[-1]
    if has < had:
        yield Advice(
            "dead channels", op, f"{had - has} of {had} channels hold one value, or only zero weights read them",
            "they were cut, exactly; a narrower layer would train faster and might use them",
        )  # fmt: skip


def _idle_lanes(plan: Plan, op: Op) -> Iterator[Advice]:
    """Advice for channels that are no multiple of the lanes computed at once: 2 or 4, with Helium 4 or 8."""
    if not _is_layer(op):
        return
    depthwise, helium = FAMILIES[op.kind].depthwise, plan.context.target.mve
    lanes = {(False, False): 2, (True, False): 4, (False, True): 4, (True, True): 8}[depthwise, helium]
    channels = op.output.shape[-1]
    full = -(-channels // lanes) * lanes
    if channels >= lanes and full - channels >= _IDLE * channels and _feeds_a_layer(plan, op):
        yield Advice(
            "idle lanes", op, f"{channels} channels cost what {full} would",
            f"take a multiple of {lanes} channels",
        )  # fmt: skip


def _feeds_a_layer(plan: Plan, op: Op) -> bool:
    """Tells whether another layer with weights reads the output. Otherwise the number of channels is given by the task,
    and no advice applies."""
    waiting, seen = list(plan.graph.consumers.get(op.output, ())), set()
    while waiting:
        reader = waiting.pop()
        if _is_layer(reader):
            return True
        if reader not in seen:
            seen.add(reader)
            waiting += [r for tensor in reader.outputs for r in plan.graph.consumers.get(tensor, ())]
    return False


def _general_kernel(op: Op, kernel: str | None) -> Iterator[Advice]:
    if isinstance(op.attributes, ComputedLayer):
        yield Advice(
            "general kernel", op, f"{kernel} computes it, several times slower: its weights or bias are computed",
            "replace them by constants in the file if they never change",
        )  # fmt: skip
        return
    if kernel not in _GENERAL:
        return
    family, weights = FAMILIES[op.kind], op.operand(1)
    if any(weights.quantization.zero_point):
        reason, hint = "its weights have a zero point", "quantize weights symmetrically"
    elif family.convolution and not family.depthwise and weights.shape[3] != op.input.shape[3]:
        reason, hint = "it is a convolution of several groups", "take one group, or a depthwise layer and one of 1x1"
    elif family.depthwise and op.input.shape[3] != op.output.shape[3]:
        reason, hint = "its depth multiplier is not 1", "take a convolution, or the multiplier 1 on as many channels"
    elif family.depthwise and op.output.shape[3] < 4:
        reason, hint = "it has fewer than four channels", "take a convolution, or four channels or more"
    else:
        reason = "no fast requantization is proven exact for its scales, biases and weights"
        hint = "quantize it with scales that fit the range of its values"
    yield Advice("general kernel", op, f"{kernel} computes it, several times slower: {reason}", hint)
