"""Report of `--weights compressed`: compressed layers with the bytes saved and instructions added, and the reasons
why other layers are packed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyfuse.emit.identifiers import comment
from tinyfuse.ir import INT4, Op, Tensor
from tinyfuse.kernels.layers.palettized.dsp import saves_flash
from tinyfuse.kernels.layers.palettized.palette import MOST_BITS, palettize
from tinyfuse.kernels.registry import kernels_of
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.weight_sums import channel_weights
from tinyfuse.plan import Plan, Stage, constant_key
from tinyfuse.schedule.kernel_choice.select import compressible, compression


def compressed_json(plan: Plan) -> dict[str, Any] | None:
    """Compressed and packed layers with sums (docs/json.md); None without `--weights compressed`."""
    stages = [stage for group in plan.groups for stage in group.stages]
    if plan.context.weights != "compressed":
        return None
    compressed_stages = [stage for stage in stages if stage.kernel.weights == "compressed"]
    layers = [_layer(plan, stage) for stage in compressed_stages]
    added = [layer["instructions_added"] for layer in layers]
    # equal weights are one array in flash
    spared = {
        constant_key(stage.constants[0]): layer["bytes_spared"]
        for stage, layer in zip(compressed_stages, layers, strict=True)
    }
    return {
        "bytes_spared": sum(spared.values()),
        "instructions_added": None if None in added else sum(added),
        "layers": layers,
        "packed": [
            {"operator": str(stage.op), "reason": _reason(plan, stage)}
            for stage in stages
            if stage.kernel.weights != "compressed" and _weights(stage.op) is not None
        ],
    }


def _layer(plan: Plan, stage: Stage) -> dict[str, Any]:
    change = compression(stage.op, stage.kernel, plan.context, stage.by_row)
    sizes = {constant.name: constant.data.nbytes for constant in stage.constants}
    added = change.instructions_added
    return {
        "operator": str(stage.op),
        "weight_bytes": stage.op.operand(1).bytes,
        "index_bytes": sizes["weights"],
        "table_bytes": sizes["tables"],
        "bytes_spared": change.bytes_spared,
        "instructions_added": None if added is None else round(added),
    }


def _has_kernel(op: Op) -> bool:
    """Tells whether a kernel of this kind of operator takes compressed weights."""
    return any(kernel.weights == "compressed" for kernel in kernels_of(op.kind))


def _weights(op: Op) -> Tensor | None:
    """Constant that a layer multiplies by; None if the operator is no layer."""
    of_layer = _has_kernel(op) or FAMILIES[op.kind].macs(op) > 0
    found = (t for t in op.inputs[1:] if t is not None and t.is_constant and t.dtype in ("int8", INT4, "float32"))
    return next((t for t in found if of_layer and t.elements > 1), None)


def _reason(plan: Plan, stage: Stage) -> str:
    """Reason why an operator's weights are not compressed."""
    op, weights = stage.op, _weights(stage.op)
    if not _has_kernel(op):
        return f"{op.kind} has no kernel for compressed weights"
    if weights is None or weights.dtype == INT4:
        return "two weights of int4 share a byte as they are"
    if (op.output.dtype, weights.dtype) != ("int8", "int8"):
        return f"data of {op.output.dtype} and weights of {weights.dtype}: only int8 is compressed"
    if plan.context.kernels == "cmsis-nn":
        return "CMSIS-NN's kernels take no compressed weights"
    if plan.context.target.mve:
        return "kernels for Helium take no compressed weights"
    found = compressible(op, plan.context)
    if found is not None:
        added = found[1].instructions_added
        cost = "an unknown number of" if added is None else f"{round(added):,}"
        return f"others fit: {found[1].bytes_spared:,} bytes less would add {cost} instructions"
    channels = channel_weights(op)
    lookup = palettize(channels)
    if lookup is None:
        most = max(len(np.unique(channel)) for channel in channels)
        return (
            f"a channel has up to {most} different values, all channels {len(np.unique(channels))}; "
            f"an index of {MOST_BITS} bits selects one of {2**MOST_BITS}"
        )
    if not saves_flash(channels.size, lookup):
        return f"indexes and tables would take {lookup.nbytes:,} bytes, and the weights take {channels.size:,}"
    return f"{stage.kernel.name} cannot read compressed weights"


def compressed_lines(data: dict[str, Any] | None) -> list[str]:
    """Lines of report.txt: one for each compressed layer and each packed one."""
    if data is None:
        return []
    lines = []
    for layer in data["layers"]:
        added = layer["instructions_added"]
        cost = "" if added is None else f", {added:+,} instructions"
        lines.append(
            f"compressed  {comment(layer['operator'])}: {layer['weight_bytes']:,} bytes of weights as "
            f"{layer['index_bytes']:,} of indexes and {layer['table_bytes']:,} of tables{cost}"
        )
    lines += [f"packed      {comment(one['operator'])}: {one['reason']}" for one in data["packed"]]
    return [*lines, ""]


def compressed_summary(data: dict[str, Any] | None) -> list[str]:
    """Line of the summary with the bytes saved and instructions added; empty without `--weights compressed`."""
    if data is None:
        return []
    added, count = data["instructions_added"], len(data["layers"])
    cost = "" if added is None else f", {added:+,} instructions per inference, predicted"
    others = f"; {len(data['packed'])} not compressed (report.txt has the reasons)" if data["packed"] else ""
    layers = "1 layer" if count == 1 else f"{count} layers"
    return [f"saved    {data['bytes_spared']:>11,} bytes   by compressed weights of {layers}{cost}{others}"]
