"""From energies of a spectrum to features of a frame, in TFLM's signal library: SignalFilterBank,
SignalFilterBankSquareRoot, SignalFilterBankSpectralSubtraction, SignalPCAN, SignalFilterBankLog.

All of it is unsigned arithmetic that wraps at its number of bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given, given
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.sequence.signal_rules import OPTIONS, PREFIX, dtypes, ends, hidden_state, vectors, within


@dataclass(frozen=True)
class FilterBank:
    """Attributes of the filter bank: `channels`, the number of output channels."""

    channels: int


def computes_channels(op: Op) -> bool:
    """Tell whether a channel's bins and weights are computed at run time."""
    return not all(table.is_constant for table in op.operands[3:])


def _reads_inside(op: Op) -> bool:
    """Tell whether every bin and weight that a channel reads exists."""
    energies, weights, unweights, *tables = op.operands
    needed = op.attributes_as(FilterBank).channels + 1
    if any(table.elements < needed for table in tables):
        return False
    if computes_channels(op):
        return True
    bins, starts, widths = (table.values[:needed].astype(np.int64) for table in tables)
    read = widths > 0
    inside = (bins >= 0) & (bins + widths <= energies.elements)
    weighed = (starts >= 0) & (starts + widths <= min(weights.elements, unweights.elements))
    return bool((inside & weighed)[read].all())


class FilterBankFamily(OpFamily):
    """SignalFilterBank. Inputs: energies [bins], weights and unweights; then the first bin, the first weight and the
    width of each channel, where one additional channel precedes the first. A bin's energy is added to two channels:
    multiplied by its weight to the channel that contains the bin, multiplied by its unweight to the next one. A run
    that computes bins or weights which don't exist ends with an error."""

    kind = f"{PREFIX}FilterBank"
    option_keys = ("num_channels",)
    summary = "energies of a spectrum's bins, added up with triangular weights to channels"
    rules = (
        ends(6, 1),
        OPTIONS,
        dtypes(("uint32", "int16", "int16", "int16", "int16", "int16"), ("uint64",)),
        Rule("all inputs and the output have one dimension", vectors),
        within("the output has a value for every channel",
               lambda op: (op.attributes_as(FilterBank).channels,) == op.output.shape),
        within("every channel reads bins and weights that exist", _reads_inside),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> FilterBank | None:
        return FilterBank(options["num_channels"]) if options else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        energies, weights, unweights, bins, starts, widths = (value.tolist() for value in all_given(inputs))
        sums, carried = [], 0
        for channel in range(op.attributes_as(FilterBank).channels + 1):
            total, rest = carried, 0
            for i in range(widths[channel]):
                energy = energies[bins[channel] + i]
                total += weights[starts[channel] + i] * energy
                rest += unweights[starts[channel] + i] * energy
            sums.append(total % 2**64)
            carried = rest
        return (np.array(sums[1:], np.uint64),)

    def tried(self, op: Op, index: int) -> tuple[Array, ...]:
        if index < 3 or op.operand(index).is_constant:
            return ()
        energies, weights, unweights, *tables = op.operands
        ends = energies.elements, min(weights.elements, unweights.elements)
        bins, starts, widths = (t.values.astype(np.int64) if t.is_constant else None for t in tables)
        # the most that a channel may read, wherever it begins
        most = np.full(tables[2].elements, min(4, *ends)) if widths is None else np.maximum(widths, 0)
        for begins, end in ((bins, ends[0]), (starts, ends[1])):
            if widths is None and begins is not None:
                most = np.where(begins < 0, 0, np.minimum(most, np.maximum(end - np.resize(begins, most.shape), 0)))
        limits = most if index == 5 else ends[index - 3] - np.resize(most, tables[index - 3].elements)
        steps = np.arange(tables[index - 3].elements)
        return tuple((steps * factor % (limits + 1)).astype(np.int16) for factor in (0, 1, 3))

    def macs(self, op: Op) -> int:
        if not op.operand(5).is_constant:
            return 2 * op.input.elements
        widths = op.operand(5).values[: op.attributes_as(FilterBank).channels + 1]
        return 2 * int(np.maximum(widths, 0).sum())


def rounded_root(value: int) -> int:
    """TFLM's Sqrt64: the nearest integer to the square root, or the largest one with half of the operand's 32 or 64
    bits if the nearest has more."""
    root = math.isqrt(value)
    most = 0xFFFF if value < 2**32 else 0xFFFFFFFF
    return root + 1 if value - root * root > root and root != most else root


class FilterBankSquareRootFamily(OpFamily):
    """Family of square roots of a filter bank's channels. Inputs: channels [N], and a shift [], by which the roots are
    shifted to the right to undo FftAutoScale's shift to the left. Only the low five bits of the shift count, as in the
    shift instructions of processors."""

    kind = f"{PREFIX}FilterBankSquareRoot"
    summary = "rounded square roots of channels, shifted back by the bits of the automatic scale"
    rules = (
        ends(2, 1),
        dtypes(("uint64", "int32"), ("uint32",)),
        within("channels and output have the same shape, of one dimension, the number of bits has none",
               lambda op: op.input.shape == op.output.shape and len(op.input.shape) == 1
               and not op.operand(1).shape),
    )  # fmt: skip

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        channels, bits = all_given(inputs)
        shift = int(bits) & 31
        return (np.array([rounded_root(value) >> shift for value in channels.tolist()], np.uint32),)


@dataclass(frozen=True)
class SpectralSubtraction:
    """Attributes of the noise reduction. The weights have `bits` fraction bits: that of this frame (smoothing) and that
    of the estimate so far (1 - smoothing), each for even channels and for odd ones. `smoothing_bits` are the fraction
    bits of the estimate. Also: the least share of the signal that is left, and whether the estimate is clamped to the
    signal."""

    alternate_one_minus_smoothing: int
    alternate_smoothing: int
    clamping: bool
    min_signal_remaining: int
    channels: int
    one_minus_smoothing: int
    smoothing: int
    smoothing_bits: int
    bits: int


def _weights_fit(op: Op) -> bool:
    a = op.attributes_as(SpectralSubtraction)
    weights = (a.alternate_one_minus_smoothing, a.alternate_smoothing, a.min_signal_remaining, a.one_minus_smoothing,
               a.smoothing)  # fmt: skip
    return all(0 <= weight < 2**31 for weight in weights)


class SpectralSubtractionFamily(OpFamily):
    """SignalFilterBankSpectralSubtraction, a noise reduction. Outputs: the rest of each channel, and the estimated
    noise, both [N]. The estimate is kept as state."""

    kind = f"{PREFIX}FilterBankSpectralSubtraction"
    option_keys = (
        "alternate_one_minus_smoothing", "alternate_smoothing", "clamping", "min_signal_remaining", "num_channels",
        "one_minus_smoothing", "smoothing", "smoothing_bits", "spectral_subtraction_bits",
    )  # fmt: skip
    summary = "channels less the estimate of their noise, which follows them slowly; keeps it as state"
    updates = (1,)
    rules = (
        ends(1, 2, states=1),
        OPTIONS,
        dtypes(("uint32",), ("uint32", "uint32")),
        Rule("input and outputs have one dimension", vectors),
        within("input, output and estimate have a value for every channel",
               lambda op: {op.input.shape, *(t.shape for t in op.outputs)}
               == {(op.attributes_as(SpectralSubtraction).channels,)}),
        within("the weights are below 2^31 and none is negative", _weights_fit),
        within("bits are from 0 to 31 for smoothing, from 0 to 63 for the weights",
               lambda op: 0 <= op.attributes_as(SpectralSubtraction).smoothing_bits <= 31
               and 0 <= op.attributes_as(SpectralSubtraction).bits <= 63),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> SpectralSubtraction | None:
        if not options:
            return None
        values = [options[key] for key in self.option_keys]
        values[2] = bool(values[2])
        return SpectralSubtraction(*values)

    def hidden_states(self, op: Op) -> tuple[Tensor, ...]:
        return (hidden_state(op, "noise", op.outputs[0].shape if op.outputs else (), "uint32"),)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        a = op.attributes_as(SpectralSubtraction)
        signal, estimate = (value.astype(object) for value in all_given(inputs))
        even = np.arange(signal.size) % 2 == 0
        new = np.where(even, a.smoothing, a.alternate_smoothing).astype(object)
        old = np.where(even, a.one_minus_smoothing, a.alternate_one_minus_smoothing).astype(object)
        scaled = (signal << a.smoothing_bits) & 0xFFFFFFFF
        estimate = (((scaled * new + estimate * old) % 2**64) >> a.bits) & 0xFFFFFFFF
        taken = np.minimum(estimate, scaled)
        kept = taken if a.clamping else estimate
        floor = ((signal * a.min_signal_remaining) >> a.bits) & 0xFFFFFFFF
        left = np.maximum((scaled - taken) >> a.smoothing_bits, floor)
        noise = kept.astype(np.uint32)
        return left.astype(np.uint32), noise, noise


@dataclass(frozen=True)
class Pcan:
    """Attributes of SignalPCAN: `snr_shift`, the right shift of the product of channel and gain."""

    snr_shift: int


#: values of a gain table: three for the least inputs, then four an octave up to 2^32
GAINS = 125


def _gain(noise: int, table: list[int]) -> int:
    """The table's function at a noise estimate: a polynomial of second degree within each octave (TFLM's
    WideDynamicFunction), as a 32-bit pattern."""
    if noise <= 2:
        return table[noise] % 2**32
    octave = noise.bit_length()
    at = 4 * octave - 6
    place = (noise << (11 - octave) if octave < 11 else noise >> (octave - 11)) & 0x3FF
    value = ((table[at + 2] * place) >> 5) + (table[at + 1] << 5)
    value = ((value * place + (1 << 14)) >> 15) + table[at]
    wrapped = (value + 2**15) % 2**16 - 2**15
    return wrapped % 2**32


def _shrink(ratio: int) -> int:
    """Compressed value of a PCAN ratio with 12 fraction bits: x^2 / 4 below 2, x - 1 from there on. The result has 6
    fraction bits."""
    return (ratio * ratio) >> 20 if ratio < 2 << 12 else (ratio >> 6) - (1 << 6)


class PcanFamily(OpFamily):
    """SignalPCAN, an automatic gain control. Inputs: channels [N], the estimated noise [N], and the table of gains.

    Source: Wang et al. 2017, "Trainable Frontend For Robust and Far-Field Keyword Spotting".
    """

    kind = f"{PREFIX}PCAN"
    option_keys = ("snr_shift",)
    summary = "channels times a gain that a table gives for their noise, made smaller where they are weak"
    rules = (
        ends(3, 1),
        OPTIONS,
        dtypes(("uint32", "uint32", "int16"), ("uint32",)),
        Rule("inputs and output have one dimension", vectors),
        within("channels, noise and output have the same shape",
               lambda op: op.input.shape == op.operand(1).shape == op.output.shape),
        within(f"the table of gains has {GAINS} values or more", lambda op: op.operand(2).elements >= GAINS),
        within("the shift is from 0 to 63 bits", lambda op: 0 <= op.attributes_as(Pcan).snr_shift <= 63),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> Pcan | None:
        return Pcan(options["snr_shift"]) if options else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        channels, noises, table = (value.tolist() for value in all_given(inputs))
        shift = op.attributes_as(Pcan).snr_shift
        ratios = [
            ((channel * _gain(noise, table)) >> shift) % 2**32
            for channel, noise in zip(channels, noises, strict=True)
        ]  # fmt: skip
        return (np.array([_shrink(ratio) for ratio in ratios], np.uint32),)


@dataclass(frozen=True)
class FilterBankLog:
    """Attributes of the logarithm. output_scale: factor of the result; correction_bits: left shift of the input."""

    output_scale: int
    correction_bits: int


#: segments of an octave
LOG_SEGMENTS = 128
#: natural logarithm of 2, with 16 fraction bits
LOG_OF_2 = round(math.log(2) * 2**16)


def log_table() -> Array:
    """uint16 [LOG_SEGMENTS + 1] of log2(1 + x) - x at the ends of the segments of x in [0, 1], with 16 fraction
    bits."""
    x = np.arange(LOG_SEGMENTS + 1) / LOG_SEGMENTS
    return np.round((np.log2(1 + x) - x) * 2**16).astype(np.uint16)


def _log(value: int, scale: int, table: list[int]) -> int:
    """The scaled natural logarithm of a value of 32 bits, from 2 on."""
    power = value.bit_length() - 1
    rest = value - (1 << power)
    fraction = rest << (16 - power) if power < 16 else rest >> (power - 16)
    segment = fraction >> 9
    low, high = table[segment], table[segment + 1]
    fraction += low + (((high - low) * (fraction - (segment << 9))) >> 16)
    natural = (LOG_OF_2 * ((power << 16) + fraction) + (1 << 15)) >> 16
    return ((scale * natural + (1 << 15)) % 2**32) >> 16


class FilterBankLogFamily(OpFamily):
    """SignalFilterBankLog: scaled logarithms of channels, uint32 [N] -> int16 [N]."""

    kind = f"{PREFIX}FilterBankLog"
    option_keys = ("input_correction_bits", "output_scale")
    summary = "scaled natural logarithms of channels, saturated to int16"
    rules = (
        ends(1, 1),
        OPTIONS,
        dtypes(("uint32",), ("int16",)),
        within("input and output have the same shape, of one dimension",
               lambda op: op.input.shape == op.output.shape and len(op.input.shape) == 1),
        within("the correction is from 0 to 31 bits",
               lambda op: 0 <= op.attributes_as(FilterBankLog).correction_bits <= 31),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> FilterBankLog | None:
        if not options:
            return None
        return FilterBankLog(options["output_scale"], options["input_correction_bits"])

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        a, table = op.attributes_as(FilterBankLog), log_table().tolist()
        scaled = [(value << a.correction_bits) % 2**32 for value in given(inputs[0]).tolist()]
        logs = [min(_log(value, a.output_scale % 2**32, table), 32767) if value > 1 else 0 for value in scaled]
        return (np.array(logs, np.int16),)
