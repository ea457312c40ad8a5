"""From frames of samples to the energies of their spectra, in TFLM's signal library: SignalWindow,
SignalFftAutoScale, SignalRfft, SignalIrfft, SignalEnergy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.sequence.signal_fft import factors, irfft, rfft
from tinyfuse.ops.sequence.signal_rules import OPTIONS, PREFIX, dtypes, ends, vectors, within

#: the most samples of a transform. KISS FFT takes any number, but int16 spectra of more samples hold no information
MOST_POINTS = 1 << 16


@dataclass(frozen=True)
class Window:
    """Attributes of SignalWindow: `shift`, the right shift of the product of sample and weight."""

    shift: int


class WindowFamily(OpFamily):
    """SignalWindow: multiplies frames [..., N] by weights [N]."""

    kind = f"{PREFIX}Window"
    option_keys = ("shift",)
    summary = "frames of int16 samples times a window's weights, shifted and saturated"
    rules = (
        ends(2, 1),
        OPTIONS,
        dtypes(("int16", "int16"), ("int16",)),
        within("weights have one dimension", lambda op: len(op.operand(1).shape) == 1),
        within("input and output have the same shape, whose last dimension is that of the weights",
               lambda op: op.input.shape == op.output.shape and op.input.shape[-1:] == op.operand(1).shape),
        within("the shift is from 0 to 31 bits", lambda op: 0 <= op.attributes_as(Window).shift <= 31),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> Window | None:
        return Window(options["shift"]) if options else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        product = given(inputs[0]).astype(np.int32) * given(inputs[1]).astype(np.int32)
        return (np.clip(product >> op.attributes_as(Window).shift, -32768, 32767).astype(np.int16),)

    def macs(self, op: Op) -> int:
        return op.output.elements


def largest_magnitude(samples: Array) -> int:
    """TFLM's MaxAbs16. Its int16 maximum becomes -32768 at a sample of -32768, and thereby forgets all earlier
    samples."""
    largest = 0
    for value in samples.reshape(-1).tolist():
        if value > largest:
            largest = value
        elif -value > largest:
            largest = value if value == -32768 else -value
    return largest


class FftAutoScaleFamily(OpFamily):
    """Family of automatic scales for an FFT. Input: samples [N]; outputs: the samples [N], shifted to the left as far
    as the largest has room, and the number of bits [] that they are shifted by."""

    kind = f"{PREFIX}FftAutoScale"
    summary = "int16 samples shifted to the left as far as their largest has room; by how many bits"
    rules = (
        ends(1, 2),
        dtypes(("int16",), ("int16", "int32")),
        within("input and output have the same shape, of one dimension, the number of bits has none",
               lambda op: op.input.shape == op.output.shape and len(op.input.shape) == 1 and not op.outputs[1].shape),
    )  # fmt: skip

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        samples = given(inputs[0])
        largest = largest_magnitude(samples)
        bits = 15 - largest.bit_length() if largest > 0 else 0
        return (samples.astype(np.int32) << bits).astype(np.int16), np.array(bits, np.int32)


@dataclass(frozen=True)
class Fft:
    """Attributes of the FFT operators. length: samples of the real signal. dtype: that of the option `T`, "" if it is
    unknown."""

    length: int
    dtype: str


#: TensorType's numbers of the dtypes that TFLM has transforms for
_DTYPES = {7: "int16", 2: "int32", 0: "float32"}


def _fft_rules(samples: int, spectrum: int) -> tuple[Rule, ...]:
    """`samples` and `spectrum`: which of (input, output) they are."""

    def ends_of(op: Op) -> tuple[tuple[int, ...], tuple[int, ...]]:
        both = (op.input.shape, op.output.shape)
        return both[samples], both[spectrum]

    def shapes(op: Op) -> bool:
        signal, bins = ends_of(op)
        length = op.attributes_as(Fft).length
        # TFLM puts zeros after the samples of the forward transform; the inverse gives all of them
        fits = 0 < signal[-1] <= length if samples == 0 else signal[-1] == length
        return signal[:-1] == bins[:-1] and bins[-1] == length + 2 and fits

    return (
        ends(1, 1),
        OPTIONS,
        within("input and output are both int16, int32 or float32, as the option T says",
               lambda op: op.input.dtype == op.output.dtype == op.attributes_as(Fft).dtype),
        within("half of the length has no other factors than 2, 3 and 5",
               lambda op: 4 <= op.attributes_as(Fft).length <= MOST_POINTS and op.attributes_as(Fft).length % 2 == 0
               and factors(op.attributes_as(Fft).length // 2) is not None,
               "use a power of two; TensorFlow Lite Micro has no memory for other factors"),
        within("input and output have at least one dimension", lambda op: bool(op.input.shape and op.output.shape)),
        within("the spectrum has length + 2 values for each signal of at most that length", shapes),
    )  # fmt: skip


class RfftFamily(OpFamily):
    """Family of FFTs of real signals. Input: signals [..., N], N at most `fft_length`; output: their spectra [...,
    fft_length + 2], real and imaginary parts in turn. Spectra of integers are divided by `fft_length`."""

    kind = f"{PREFIX}Rfft"
    option_keys = ("T", "fft_length")
    summary = "the spectra of real signals, with KISS FFT's roundings"
    rules = _fft_rules(samples=0, spectrum=1)

    def attributes(self, options: Mapping[str, Any]) -> Fft | None:
        return Fft(options["fft_length"], _DTYPES.get(options["T"], "")) if options else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        signals = given(inputs[0]).reshape(-1, op.input.shape[-1])
        with np.errstate(over="ignore", invalid="ignore"):
            spectra = rfft(signals, op.attributes_as(Fft).length, op.input.dtype)
        return (spectra.reshape(op.output.shape),)

    def macs(self, op: Op) -> int:
        return fft_macs(op, op.input)


class IrfftFamily(OpFamily):
    """Family of inverse FFTs to real signals. Input: spectra [..., fft_length + 2]; output: signals [...,
    fft_length]."""

    kind = f"{PREFIX}Irfft"
    option_keys = ("T", "fft_length")
    summary = "real signals from their spectra, with KISS FFT's roundings"
    rules = _fft_rules(samples=1, spectrum=0)

    def attributes(self, options: Mapping[str, Any]) -> Fft | None:
        return Fft(options["fft_length"], _DTYPES.get(options["T"], "")) if options else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        spectra = given(inputs[0]).reshape(-1, op.input.shape[-1])
        with np.errstate(over="ignore", invalid="ignore"):
            signals = irfft(spectra, op.attributes_as(Fft).length, op.input.dtype)
        return (signals.reshape(op.output.shape),)

    def macs(self, op: Op) -> int:
        return fft_macs(op, op.output)


def fft_macs(op: Op, signals: Tensor) -> int:
    """Return the multiply-accumulates of an FFT: four for each complex product, of which a butterfly has radix - 1, and
    one for each pair of bins."""
    points = op.attributes_as(Fft).length // 2
    radices = factors(points) or ()
    products = sum(points // radix * (radix - 1) for radix in radices) + points // 2
    return signals.elements // signals.shape[-1] * 4 * products


@dataclass(frozen=True)
class Energy:
    """Attributes of SignalEnergy: the bins from `start` up to, but not including, `end` get energies; TFLM leaves the
    others as they were in memory."""

    start: int
    end: int


class EnergyFamily(OpFamily):
    """Family of the energies of a spectrum. Input: bins [2 * N], alternating real and imaginary parts; output [N].
    Elements that TFLM does not write are 0 here."""

    kind = f"{PREFIX}Energy"
    option_keys = ("end_index", "start_index")
    summary = "the squares of a spectrum's magnitudes, from one bin to another; 0 elsewhere"
    rules = (
        ends(1, 1),
        OPTIONS,
        dtypes(("int16",), ("uint32",)),
        Rule("input and output have one dimension", vectors),
        within("the output has a value for every bin", lambda op: op.input.elements == 2 * op.output.elements),
        within("the bins lie in the spectrum",
               lambda op: 0 <= op.attributes_as(Energy).start <= op.attributes_as(Energy).end <= op.output.elements),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> Energy | None:
        return Energy(options["start_index"], options["end_index"]) if options else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        a = op.attributes_as(Energy)
        bins = given(inputs[0]).astype(np.int64).reshape(-1, 2)
        energies = np.zeros(op.output.shape, np.uint32)
        energies[a.start : a.end] = (bins[a.start : a.end] ** 2).sum(axis=1)
        return (energies,)

    def settled(self, op: Op, outputs: Sequence[Array]) -> Sequence[Array]:
        a = op.attributes_as(Energy)
        energies = np.zeros_like(outputs[0])
        energies[a.start : a.end] = outputs[0][a.start : a.end]
        return (energies,)

    def macs(self, op: Op) -> int:
        a = op.attributes_as(Energy)
        return 2 * (a.end - a.start)
