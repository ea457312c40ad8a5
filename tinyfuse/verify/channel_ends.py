"""Proves, by interval arithmetic from the inputs on, between which values the channels of layers lie."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import accumulator, bias_values, requantize_channels
from tinyfuse.ops.weight_sums import channel_weights

Ints = npt.NDArray[np.int64]
#: least and greatest stored value of each channel, [channels]
Ends = tuple[Ints, Ints]


def is_layer(op: Op) -> bool:
    """Return whether an operator is a convolution or dense layer of integers whose weights and bias are constants."""
    if op.kind not in FAMILIES or FAMILIES[op.kind].data_and_weights != (0, 1):
        return False
    given = [tensor for tensor in op.inputs[1:] if tensor is not None]
    quantized = op.input.dtype == op.output.dtype and op.output.dtype in RANGE
    return (
        quantized and all(tensor.is_constant for tensor in given) and op.operand(1).dtype in ("int8", "int4", "int16")
    )


def channel_ends(graph: Graph) -> dict[Op, Ends]:
    """Return the ends of each layer of a graph whose constants are folded. No input exceeds them; inside a network,
    perhaps none reaches them.

    Poolings and changes of shape keep a layer's ends for the next one; of other operators, all values of the dtype are
    assumed.
    """
    known: dict[Tensor, Ends] = {}
    found: dict[Op, Ends] = {}
    for op in graph.ops:
        if is_layer(op):
            found[op] = known[op.output] = _layer_ends(op, _inputs_of(op, known))
        elif len(op.activations) == 1 and op.first_activation in known and _keeps_values(op):
            known[op.output] = known[op.first_activation]
    return found


def _keeps_values(op: Op) -> bool:
    """Return whether values of an operator's output lie between those of its input in the same channel. A reshape's
    channels are those of its input, one row after the other."""
    family, given = FAMILIES[op.kind], op.first_activation
    if len(op.outputs) != 1 or given.quantization != op.output.quantization or given.dtype != op.output.dtype:
        return False
    return family.pools or (family.alias and op.kind == "RESHAPE")


def _inputs_of(op: Op, known: dict[Tensor, Ends]) -> Ends:
    """Return the ends of each term of a layer's sums without their zero point: [out_c, terms], or [1, terms]."""
    terms, family, zero_point = channel_weights(op).shape[1], FAMILIES[op.kind], op.input.zero_point
    if op.input not in known:
        low, high = (np.full((1, terms), end - zero_point, np.int64) for end in RANGE[op.input.dtype])
        return low, high
    low, high = (ends - zero_point for ends in known[op.input])
    if family.depthwise:  # all terms of an output channel are of one input channel
        multiplier = op.output.shape[-1] // len(low)
        low, high = (np.repeat(ends, multiplier)[:, None] for ends in (low, high))
    elif terms % len(low) == 0 and op.input.shape[-1] % len(low) == 0:
        low, high = (np.tile(ends, terms // len(low))[None] for ends in (low, high))
    else:  # a convolution with groups: one range for all terms
        low, high = low.min(keepdims=True)[None], high.max(keepdims=True)[None]
    # a window may reach beyond the image, where terms are 0
    return np.minimum(low, 0), np.maximum(high, 0)


def _layer_ends(op: Op, terms: Ends) -> Ends:
    scale = op.operand(1).quantization
    weights = channel_weights(op).astype(np.int64) - (0 if scale.per_channel else scale.zero_point[0])
    positive, negative = weights.clip(0), weights.clip(None, 0)
    low, high = terms
    sums = np.stack([(positive * a + negative * b).sum(axis=1) for a, b in ((low, high), (high, low))])
    if accumulator(op) == "int32":  # sums beyond int32 wrap
        bias = bias_values(op)
        sums = (sums + bias).clip(-(2**31), 2**31 - 1) - bias
    found = requantize_channels(op, sums)
    return found[0].astype(np.int64), found[1].astype(np.int64)
