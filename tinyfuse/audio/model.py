"""Writes a model that computes a network's features from 16-bit samples: TFLM's audio_preprocessor, which also keeps
the stream's frames and the network's window of features.

Each run takes the samples of one step. The features are logarithms of the channels of a mel filter bank, after noise
reduction and automatic gain control, in int8. With the step and scale of TFLM's micro_speech example, they are equal to
that example's bit for bit.
"""

from __future__ import annotations

import math

import numpy as np

from tinyfuse.audio.front_end import UNIT, FrontEnd
from tinyfuse.audio.tables import filter_tables, gain_table, hann_window
from tinyfuse.audio.writer import ModelWriter
from tinyfuse.errors import UsageError

#: fraction bits of the window, of filter weights, of the noise estimate, of its weights, of the gain, of logarithms
_WINDOW_BITS, _FILTER_BITS, _NOISE_BITS, _SUBTRACTION_BITS, _GAIN_BITS, _LOG_BITS = 12, 12, 10, 14, 21, 6
_EVEN_SMOOTHING, _ODD_SMOOTHING, _LEAST_SIGNAL = 0.025, 0.06, 0.05
_STRENGTH, _OFFSET = 0.95, 80.0
#: fraction bits of SignalPCAN's ratios
_RATIO_BITS = 12
#: factor (as bits) on the int32 features, so that only the rounding to int8 matters
_FINE_BITS = 15


def front_end_model(wanted: FrontEnd) -> bytes:
    """Content of the .tflite file of a front end. UsageError for numbers that are impossible together."""
    if not 1 <= wanted.step <= wanted.window <= 1 << 15:
        raise UsageError("--window must have between 1 and 32,768 samples, and --stride at most as many")
    if not 0 <= wanted.low < wanted.high:
        raise UsageError("--low must be at least 0 Hz, and below --high")
    features = wanted.frames * wanted.channels
    shape = wanted.shape or (1, features)
    if math.prod(shape) != features:
        raise UsageError(f"{wanted.frames} frames of {wanted.channels} features don't fit the shape {list(shape)}")
    writer = _Writer(wanted)
    samples, frame = writer.frame()
    feature = writer.features(*writer.spectrum(frame))
    output = writer.shaped(writer.window(writer.quantized(feature)), shape)
    return writer.model.file([samples], [output], "tinyfuse front-end")


class _Writer:
    """Adds the operators of a front end to a model; methods return the tensors that they make."""

    def __init__(self, wanted: FrontEnd) -> None:
        self.wanted = wanted
        self.model = ModelWriter()
        self.bins = wanted.length // 2 + 1
        try:
            self.filters = filter_tables(
                self.bins, wanted.sample_rate, wanted.channels, wanted.low, wanted.high, _FILTER_BITS
            )
        except ValueError as error:
            raise UsageError(f"--high: {error}") from None
        #: bits that the transform divides by, minus bits that the filters' weights multiply by under the square root
        self.correction = wanted.length.bit_length() - 1 - _FILTER_BITS // 2
        if not 0 <= self.correction < _GAIN_BITS - _RATIO_BITS or self.correction > _NOISE_BITS:
            raise UsageError(
                f"--window: a frame of {wanted.window} samples is too short or too long for the mel filters"
            )

    def frame(self) -> tuple[int, int]:
        """(samples of a step, latest samples multiplied by the window [window])."""
        model, window = self.model, self.wanted.window
        samples = model.tensor("samples", (self.wanted.step,), "int16")
        frame, weighed = (model.tensor(name, (1, window), "int16") for name in ("frame", "weighed"))
        valid = model.tensor("valid", (), "bool")
        model.custom("SignalFramer", [samples], [frame, valid], frame_size=window, frame_step=self.wanted.step,
                     prefill=True)  # fmt: skip
        weights = model.constant("window", hann_window(window, _WINDOW_BITS))
        model.custom("SignalWindow", [frame, weights], [weighed], shift=_WINDOW_BITS)
        return samples, self.shaped(weighed, (window,), "int16")

    def spectrum(self, frame: int) -> tuple[int, int]:
        """(energies of the bins, number of bits by which the samples were scaled)."""
        model, wanted = self.model, self.wanted
        scaled, bits = model.tensor("scaled", (wanted.window,), "int16"), model.tensor("scale_bits", (), "int32")
        model.custom("SignalFftAutoScale", [frame], [scaled, bits])
        spectrum = model.tensor("spectrum", (2 * self.bins,), "int16")
        model.custom("SignalRfft", [scaled], [spectrum], T=7, fft_length=wanted.length)  # 7: TensorType INT16
        energies = model.tensor("energies", (self.bins,), "uint32")
        # no filter reads other bins, whose energies TFLM does not compute
        model.custom("SignalEnergy", [spectrum], [energies], start_index=self.filters.start, end_index=self.filters.end)
        return energies, bits

    def features(self, energies: int, bits: int) -> int:
        """Logarithms of the channels, int16 [channels]."""
        model, channels, filters = self.model, self.wanted.channels, self.filters
        sums = model.tensor("channels", (channels,), "uint64")
        tables = {"weights": filters.weights, "unweights": filters.unweights, "bins": filters.bins,
                  "weight_starts": filters.starts, "widths": filters.widths}  # fmt: skip
        constants = [model.constant(name, table) for name, table in tables.items()]
        model.custom("SignalFilterBank", [energies, *constants], [sums], num_channels=channels)
        names = ("roots", "signal", "noise", "amplified")
        roots, signal, noise, amplified = (model.tensor(name, (channels,), "uint32") for name in names)
        model.custom("SignalFilterBankSquareRoot", [sums, bits], [roots])
        one = 1 << _SUBTRACTION_BITS
        even, odd = int(_EVEN_SMOOTHING * one), int(_ODD_SMOOTHING * one)
        model.custom(
            "SignalFilterBankSpectralSubtraction", [roots], [signal, noise], num_channels=channels, smoothing=even,
            one_minus_smoothing=one - even, alternate_smoothing=odd, alternate_one_minus_smoothing=one - odd,
            smoothing_bits=_NOISE_BITS, min_signal_remaining=int(_LEAST_SIGNAL * one), clamping=False,
            spectral_subtraction_bits=_SUBTRACTION_BITS,
        )  # fmt: skip
        gains = gain_table(_STRENGTH, _OFFSET, _NOISE_BITS - self.correction, _GAIN_BITS)
        shift = _GAIN_BITS - self.correction - _RATIO_BITS
        model.custom("SignalPCAN", [signal, noise, model.constant("gains", gains)], [amplified], snr_shift=shift)
        logs = model.tensor("logs", (channels,), "int16")
        model.custom("SignalFilterBankLog", [amplified], [logs], input_correction_bits=self.correction,
                     output_scale=1 << _LOG_BITS)  # fmt: skip
        return logs

    def quantized(self, logs: int) -> int:
        """Logarithms as int8 [1, channels], rounded once, by the QUANTIZE of finer int32 values."""
        model, channels = self.model, self.wanted.channels
        wide = model.tensor("wide", (channels,), "int32")
        model.operator("CAST", [logs], [wide], "CastOptions")
        fine = model.tensor("fine", (channels,), "int32", (UNIT / (1 << _FINE_BITS), 0))
        factor = model.constant("factor", np.array(1 << _FINE_BITS, np.int32))
        model.operator("MUL", [wide, factor], [fine], "MulOptions")
        features = model.tensor("features", (channels,), "int8", (self.wanted.scale, self.wanted.zero_point))
        model.operator("QUANTIZE", [fine], [features], "QuantizeOptions")
        return self.shaped(features, (1, channels))

    def window(self, features: int) -> int:
        """Features of the last frames, int8 [1, frames * channels]; silence before the first frame."""
        model, channels, frames = self.model, self.wanted.channels, self.wanted.frames
        if frames == 1:
            return features
        quant, kept = (self.wanted.scale, self.wanted.zero_point), (frames - 1) * channels
        handle = model.tensor("history", (), "resource")
        before, after = (model.tensor(name, (1, kept), "int8", quant) for name in ("before", "after"))
        window = model.tensor("window_of_features", (1, kept + channels), "int8", quant)
        model.operator("VAR_HANDLE", [], [handle], "VarHandleOptions", shared_name="history", container="")
        model.operator("READ_VARIABLE", [handle], [before], "ReadVariableOptions")
        model.operator("CONCATENATION", [before, features], [window], "ConcatenationOptions", axis=1)
        ends = [
            model.constant(name, np.array(values, np.int32))
            for name, values in (("begin", (0, channels)), ("end", (1, kept + channels)), ("steps", (1, 1)))
        ]
        model.operator("STRIDED_SLICE", [window, *ends], [after], "StridedSliceOptions")
        model.operator("ASSIGN_VARIABLE", [handle, after], [], "AssignVariableOptions")
        return window

    def shaped(self, tensor: int, shape: tuple[int, ...], dtype: str = "int8") -> int:
        """Tensor in another shape."""
        model = self.model
        quant = (self.wanted.scale, self.wanted.zero_point) if dtype == "int8" else None
        if model.shape(tensor) == shape:
            return tensor
        name = "x".join(map(str, shape))
        given = model.constant(f"shape_{name}", np.array(shape, np.int32))
        result = model.tensor(f"of_{name}", shape, dtype, quant)
        model.operator("RESHAPE", [tensor, given], [result], "ReshapeOptions")
        return result
