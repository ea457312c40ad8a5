"""Errors of layers over samples, against the float model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tinyfuse.blame.layers import Layer, read_by, run_steps
from tinyfuse.blame.match import Pairs
from tinyfuse.ir import Array, Graph, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops.real_numbers import quantized_numbers, real_numbers

Values = dict[Tensor, Array]


@dataclass
class Channels:
    """Sums for each index of a layer's last dimension. Energies are sums of squares, as in Errors.

    largest   largest float magnitude
    signal, own   as in Errors
    beyond    energy of the part of the float values that lies beyond what the output can store
    """

    largest: Array | float = 0.0
    signal: Array | float = 0.0
    own: Array | float = 0.0
    beyond: Array | float = 0.0


@dataclass
class Errors:
    """Sums over all elements of a layer's output in all samples; energies are sums of squares.

    elements    number of elements.
    signal      energy of the float model's values.
    noise       energy of the quantized model's errors.
    own         energy of the errors that the layer adds: its output on quantized float inputs, less the output of the
                float operators on these inputs.
    own_signal  energy of that output of the float operators.
    saturated   elements whose float values lie beyond what the output can store.
    low, high   smallest and largest float value.
    levels      how often each stored value occurred, from the smallest possible on; empty for float32.
    channels    sums for each index of the last dimension.
    """

    elements: int = 0
    signal: float = 0.0
    noise: float = 0.0
    own: float = 0.0
    own_signal: float = 0.0
    saturated: int = 0
    low: float = np.inf
    high: float = -np.inf
    levels: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    channels: Channels = field(default_factory=lambda: Channels())


def real(tensor: Tensor, stored: Array) -> Array:
    """Return the real numbers that stored values stand for, float32 in the same shape."""
    return real_numbers(stored, None if tensor.dtype == "float32" else tensor.quant)


def stored(tensor: Tensor, values: Array) -> Array:
    """Return real numbers as a tensor stores them, by the arithmetic of QUANTIZE."""
    values = np.asarray(values, np.float32).reshape(tensor.shape)
    if tensor.quant is None or tensor.dtype == "float32":
        return values
    return quantized_numbers(values, tensor.dtype, tensor.quant)


def real_range(tensor: Tensor) -> tuple[float, float]:
    """Return the smallest and the largest real number that a quantized tensor can store."""
    low, high = RANGE[tensor.dtype]
    return tensor.scale * (low - tensor.zero_point), tensor.scale * (high - tensor.zero_point)


def energy(values: Array) -> float:
    """Return the sum of squares."""
    return float(np.square(values, dtype=np.float64).sum())


@dataclass(frozen=True)
class Sample:
    """Values that were computed for one sample.

    values  stored values of the quantized graph's inputs and operators
    alone   each layer's float32 output if only this layer's own error is added to the float model
    """

    values: Values
    alone: list[Array]


def add_sample(
    layers: Sequence[Layer], errors: Sequence[Errors], quantized: Graph, pairs: Pairs, floats: Values
) -> Sample:
    """Add a sample to the errors of each layer.

    floats  values of the float model's inputs and operators
    """
    given = {tensor: floats[pairs[tensor]] for tensor in quantized.inputs}
    inputs = {t: stored(t, array) if array.dtype == np.float32 else array for t, array in given.items()}
    values = run_steps(quantized.ops, inputs)
    return Sample(values, [_add(*each, pairs, floats, values) for each in zip(layers, errors, strict=True)])


def _add(layer: Layer, errors: Errors, pairs: Pairs, floats: Values, values: Values) -> Array:
    expected = floats[layer.float_output].astype(np.float64)
    computed = values[layer.output]
    noise = real(layer.output, computed).reshape(expected.shape) - expected
    own, base = _own_error(layer, pairs, floats, values)
    errors.elements += expected.size
    errors.signal += energy(expected)
    errors.noise += energy(noise)
    errors.own += energy(own)
    errors.own_signal += energy(base)
    errors.low, errors.high = min(errors.low, float(expected.min())), max(errors.high, float(expected.max()))
    channels = errors.channels
    channels.largest = np.maximum(channels.largest, _columns(np.abs(expected)).max(axis=0))
    channels.signal = channels.signal + np.square(_columns(expected)).sum(axis=0)
    channels.own = channels.own + np.square(_columns(own.reshape(expected.shape))).sum(axis=0)
    if layer.output.quant is not None and layer.output.dtype in RANGE:
        _add_levels(layer.output, errors, expected, computed)
    return (expected + own.reshape(expected.shape)).astype(np.float32)


def _add_levels(output: Tensor, errors: Errors, expected: Array, computed: Array) -> None:
    low, high = RANGE[output.dtype]
    least, most = real_range(output)
    outside = np.maximum(least - expected, 0) + np.maximum(expected - most, 0)
    errors.channels.beyond = errors.channels.beyond + np.square(_columns(outside)).sum(axis=0)
    errors.saturated += int((outside > output.scale / 2).sum())
    counted = np.bincount(computed.reshape(-1).astype(np.int64) - low, minlength=high - low + 1)
    errors.levels = errors.levels + counted if errors.levels.size else counted


def _own_error(layer: Layer, pairs: Pairs, floats: Values, values: Mapping[Tensor, Array]) -> tuple[Array, Array]:
    """Return the error that a layer itself adds, and the output of the float operators on the same inputs; both
    float64."""
    given, base = Values(), Values()
    for tensor in read_by(layer.steps):
        other = pairs.get(tensor)
        if other is None or other not in floats or other.dtype != "float32":
            given[tensor] = values[tensor]  # indexes and the like
            continue
        given[tensor] = stored(tensor, floats[other])
        base[other] = real(tensor, given[tensor]).reshape(other.shape)
    made = real(layer.output, run_steps(layer.steps, given)[layer.output]).astype(np.float64)
    for tensor in read_by(layer.float_steps):
        base.setdefault(tensor, floats[tensor])
    expected = run_steps(layer.float_steps, base)[layer.float_output].astype(np.float64)
    return made.reshape(expected.shape) - expected, expected


def _columns(values: Array) -> Array:
    return values.reshape(-1, values.shape[-1] if values.ndim else 1)
