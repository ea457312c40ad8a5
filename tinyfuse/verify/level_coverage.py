"""How much of the layers' ranges some inputs reach: an end that no run reached is an end that no run tested."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tinyfuse.ir import Array, Graph, Op
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import accumulator, bias_values, requantize_channels
from tinyfuse.ops.weight_sums import channel_weights
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.verify.oracle import ReferenceOracle

#: MACs that references may spend on the runs: about a second
_MACS = 600_000_000


@dataclass(frozen=True)
class LayerCoverage:
    """operator   a layer, as messages name it
    channels   its output channels
    reached    of these, how many had their least and their greatest value in some run
    """

    operator: str
    channels: int
    reached: int


def level_coverage(graph: Graph, inputs: list[list[list[Array]]]) -> tuple[LayerCoverage, ...] | None:
    """Return the coverage of each quantized layer with constant weights, in the order of the graph.

    inputs: [stream][frame][index], as of an oracle. A channel's ends are those of its clamp, or what its sums come to
    where all data of the layer is at an end of its dtype: inside of a network no input may reach these. None
    where references would take too long, and for a step of a sliding window, whose inputs are parts of a window.
    """
    graph = fold_constants(graph)
    layers = [op for op in graph.ops if _is_layer(op)]
    macs = sum(FAMILIES[op.kind].macs(op) for op in graph.ops if op.kind in FAMILIES)
    if not layers:
        return ()
    if graph.window is not None or macs * sum(map(len, inputs)) > _MACS:
        return None
    watched = ReferenceOracle(replace(graph, outputs=tuple(op.output for op in layers)))
    ends = [_ends(op) for op in layers]
    least, most = ([np.zeros(len(each[0]), bool) for each in ends] for _ in range(2))
    for frame in (frame for stream in inputs for frame in watched.run_streams([stream])[0]):
        for number, values in enumerate(frame):
            pixels = values.reshape(-1, values.shape[-1])
            least[number] |= pixels.min(axis=0) <= ends[number][0]
            most[number] |= pixels.max(axis=0) >= ends[number][1]
    reached = [int((low & high).sum()) for low, high in zip(least, most, strict=True)]
    return tuple(
        LayerCoverage(str(op), len(low), count) for op, (low, _), count in zip(layers, ends, reached, strict=True)
    )


def _is_layer(op: Op) -> bool:
    """Return whether an operator is a convolution or dense layer of integers whose weights and bias are constants."""
    if op.kind not in FAMILIES or FAMILIES[op.kind].data_and_weights != (0, 1):
        return False
    given = [tensor for tensor in op.inputs[1:] if tensor is not None]
    quantized = op.input.dtype == op.output.dtype and op.output.dtype in RANGE
    return (
        quantized and all(tensor.is_constant for tensor in given) and op.operand(1).dtype in ("int8", "int4", "int16")
    )


def _ends(op: Op) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the least and the greatest stored value of each output channel, [out_c], over all data of its dtype."""
    scale = op.operand(1).quantization
    weights = channel_weights(op).astype(np.int64) - (0 if scale.per_channel else scale.zero_point[0])
    positive, negative = weights.clip(0).sum(axis=1), weights.clip(None, 0).sum(axis=1)
    low, high = (end - op.input.zero_point for end in RANGE[op.input.dtype])
    sums = np.stack([low * positive + high * negative, high * positive + low * negative])
    if accumulator(op) == "int32":  # beyond, sums wrap
        bias = bias_values(op)
        sums = (sums + bias).clip(-(2**31), 2**31 - 1) - bias
    found = requantize_channels(op, sums)
    return found[0].astype(np.int64), found[1].astype(np.int64)
