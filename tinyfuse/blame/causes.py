"""Finds why a layer spoils the outputs, and what would help, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.blame.layers import Layer
from tinyfuse.blame.measure import Errors, real_range
from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.real_numbers import real_numbers

#: largest over smallest magnitude of channels that one scale can't serve
SPREAD = 100.0
#: cause of a layer that a large channel of a layer before spoils
SPOILED = "channels before"
#: part of a range that float values fill where the range is told to be wide
_FILLED = 0.25
#: least share of a layer's own error that counts as its cause
_MOST = 0.5
#: energy of a channel, over the largest one's, below which it counts as this
_LEAST_ENERGY = 1e-9


@dataclass(frozen=True)
class Weights:
    """Weights of a layer.

    smallest     least of the channels' largest magnitudes
    largest      largest magnitude of all channels
    channels     number of channels, without those that are all zeros
    per_channel  each channel has its own scale
    """

    smallest: float
    largest: float
    channels: int
    per_channel: bool

    @property
    def spread(self) -> float:
        """Ratio of the largest to the smallest value; 1 if the smallest is 0."""
        return self.largest / self.smallest if self.smallest else 1.0


def weights_of(layer: Layer) -> Weights | None:
    """Return the magnitudes of a layer's weights, None for a layer without constant ones. The float model's weights are
    measured if these are constants, else the layer's own."""
    own = constant_weights(layer.steps)
    if own is None:
        return None
    magnitudes = channel_magnitudes(*(constant_weights(layer.float_steps) or own))
    magnitudes = magnitudes[magnitudes > 0]
    if not magnitudes.size:
        return None
    quant = own[0].quant
    per_channel = quant is not None and quant.per_channel
    return Weights(float(magnitudes.min()), float(magnitudes.max()), int(magnitudes.size), per_channel)


def constant_weights(steps: tuple[Op, ...]) -> tuple[Tensor, int] | None:
    """Return the weights of the last operator that has constant ones, and their dimension of channels."""
    for op in reversed(steps):
        family = FAMILIES[op.kind]
        if family.data_and_weights is not None and family.channel_axis is not None:
            weights = op.optional(family.data_and_weights[1])
            if weights is not None and weights.is_constant:
                return weights, family.channel_axis
    return None


def channel_magnitudes(weights: Tensor, axis: int) -> Array:
    """Return the largest magnitude for each index of a dimension of constant weights."""
    magnitudes = np.abs(real_numbers(weights.values, weights.quant))
    found: Array = magnitudes.max(axis=tuple(dim for dim in range(magnitudes.ndim) if dim != axis))
    return found


def channel_spread(errors: Errors) -> float:
    """Return the largest channel of float values over the median one; channels that are all zeros do not count."""
    largest = np.atleast_1d(errors.channels.largest)
    magnitudes = largest[largest > 0]
    return float(magnitudes.max() / np.median(magnitudes)) if magnitudes.size else 1.0


def range_used(layer: Layer, errors: Errors) -> float | None:
    """Return the share of a layer's range that its float values fill, above 1 if they exceed it; None for float32."""
    tensor = layer.output
    if tensor.quant is None or not errors.levels.size:
        return None
    return (errors.high - errors.low) / (tensor.scale * (errors.levels.size - 1))


def cause_of(
    layer: Layer, errors: Errors, weights: Weights | None, graph: Graph, spoiled_by: Layer | None
) -> tuple[str, str]:
    """Return (a word, what is wrong and what would help) for the greatest part of a layer's own error.

    spoiled_by  the layer before it with a large channel (large_channels.py), if any

    The words are "none" (also for float32 layers), "saturated", "weights per tensor", "shared range", "wide range",
    "channels", "channels before", "weights", "rounding".
    """
    cause, advice = _cause(layer, errors, weights)
    if spoiled_by is not None and cause in ("channels", "weights", "rounding"):
        few = "few levels are left for its weights of that channel" if weights else "one scale serves all"
        return SPOILED, f"a channel of {spoiled_by} is so large that {few}: mend that layer first"
    unfolded = _unfolded(layer, graph)
    return cause, f"{advice}; {unfolded}" if unfolded and cause != "none" else advice


def _cause(layer: Layer, errors: Errors, weights: Weights | None) -> tuple[str, str]:
    output = layer.output
    if errors.own <= 0 or output.quant is None or not errors.levels.size:
        return "none", "it adds no error"
    low, high = real_range(output)
    used = range_used(layer, errors) or 0.0
    beyond, rounding, rest = _parts(output, errors)
    if beyond >= _MOST:
        share = 100 * errors.saturated / errors.elements
        return "saturated", (
            f"{share:.{0 if share >= 10 else 2}f} % of its values lie beyond its range, {low:.4g} to {high:.4g}: the "
            f"float values reach from {errors.low:.4g} to {errors.high:.4g}. Calibrate with data that reach these, or "
            "with --ranges full"
        )
    if weights is not None and not weights.per_channel and weights.spread >= SPREAD and rest >= _MOST:
        return "weights per tensor", (
            f"its weights have one scale, and the largest channel is {weights.spread:,.0f} times as large as the "
            "smallest: quantize them per channel, as `tinyfuse quantize` does"
        )
    if used <= _FILLED and any(tensor.quant == output.quant for tensor in layer.op.activations):
        return "shared range", (
            f"its output has the range of what it reads, as {layer.op.kind} must, and fills {100 * used:.2g} % of it: "
            "compute the layer with int16, or take an operator with a range of its own (MEAN for a pool over an image)"
        )
    if used <= _FILLED:
        return "wide range", (
            f"its range, {low:.4g} to {high:.4g}, is {1 / max(used, 1e-9):,.0f} times as wide as the float values, "
            f"{errors.low:.4g} to {errors.high:.4g}: calibrate with data like these"
        )
    spread = channel_spread(errors)
    if spread >= SPREAD and rounding >= rest:
        return "channels", (
            f"its largest channel is {spread:,.0f} times as large as the median one, and one scale serves all: divide "
            "that channel's weights and bias, and multiply what reads it; or compute the layer with int16"
        )
    if rest >= _MOST and weights is not None:
        spread_told = f"; the largest channel is {weights.spread:,.0f} times as large as the smallest"
        return "weights", (
            "most of its error is of rounded weights"
            + ("" if weights.per_channel else f", which have one scale{spread_told}: quantize them per channel")
        )
    return "rounding", "its values need finer steps: compute the layer with int16"


def _parts(output: Tensor, errors: Errors) -> tuple[float, float, float]:
    """Return the shares of a layer's own error that come from values beyond its range, from rounding, and from weights.
    Each channel counts by its error over its signal, so that a large channel does not hide the others."""
    channels = errors.channels
    signal, own, beyond = (np.atleast_1d(each) for each in (channels.signal, channels.own, channels.beyond))
    scale = 1 / np.maximum(signal, max(_LEAST_ENERGY * float(signal.max()), float(np.finfo(np.float32).tiny)))
    total = float((own * scale).sum())
    rounding = errors.elements / signal.size * output.scale**2 / 12
    parts = float((beyond * scale).sum()) / total, float((rounding * scale).sum()) / total
    return *parts, max(0.0, 1 - sum(parts))


def _unfolded(layer: Layer, graph: Graph) -> str | None:
    """Return a sentence for a multiplication or addition by channel that the layer before could do."""
    op = layer.op
    constants = [t for t in op.inputs if t is not None and t.is_constant]
    if not FAMILIES[op.kind].affine or not constants or len(op.activations) != 1:
        return None
    before = graph.producer.get(op.activations[0])
    channels = op.output.shape[-1] if op.output.shape else 1
    if constants[0].elements not in (1, channels) or before is None:
        return None
    if FAMILIES[before.kind].channel_axis is None and not FAMILIES[before.kind].affine:
        return None
    return (
        f"it looks like batch normalization behind {before}: fold it into that layer's weights before quantizing, as "
        "converters do in a model that is saved for inference"
    )
