"""Our kernels of TFLM's signal library: spectra and filter banks (runtime_c/tinyfuse_signal_*.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Array, Op
from tinyfuse.kernels.base import Call, CallSite, Constant, Context, Kernel, Let, Statement
from tinyfuse.kernels.c_types import CTYPE, SUFFIX
from tinyfuse.ops.signal_fft import factors, positions, twiddles
from tinyfuse.ops.signal_filter_bank import (
    GAINS,
    FilterBank,
    FilterBankLog,
    Pcan,
    SpectralSubtraction,
    log_table,
)
from tinyfuse.ops.signal_spectrum import Energy, Fft, Window


def _vector(op: Op, index: int) -> Array:
    """A constant input as one row."""
    return np.ascontiguousarray(op.operand(index).values).reshape(-1)


class WindowKernel(Kernel):
    """The output may be the input."""

    name = "tinyfuse_signal_window"
    headers = ("tinyfuse_signal_window.h",)
    in_place = (0,)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("weights", _vector(op, 1), "int16_t"),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        samples = op.operand(1).elements
        arguments = (
            site.input(0).pointer, site.output.pointer, site.constant("weights"),
            op.input.elements // samples, samples, op.attributes_as(Window).shift,
        )  # fmt: skip
        return (Call(self.name, arguments),)


class FftAutoScaleKernel(Kernel):
    """Two passes over the samples: the largest, then the shift."""

    name = "tinyfuse_signal_auto_scale"
    headers = ("tinyfuse_signal_window.h",)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        outputs = (view.pointer for view in site.outputs)
        return (Call(self.name, (site.input(0).pointer, *outputs, op.input.elements)),)


class FftKernel(Kernel):
    """SignalRfft or SignalIrfft, one after the other; all of it happens in the output, which must not overlap the
    input."""

    headers = ("tinyfuse_signal_fft.h",)

    def __init__(self, inverse: bool, dtype: str):
        self.inverse, self.dtype = inverse, dtype
        self.name = f"tinyfuse_fft_{'backward' if inverse else 'forward'}_{SUFFIX[dtype]}"

    def accepts(self, op: Op, context: Context) -> bool:
        return op.input.dtype == self.dtype

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        points = op.attributes_as(Fft).length // 2
        stages, halves = twiddles(points, self.inverse, self.dtype)
        ctype = CTYPE[self.dtype]
        return (
            Constant("factors", stages.reshape(-1), ctype, align=2 * ITEM_BYTES[self.dtype]),
            Constant("halves", halves.reshape(-1), ctype, align=2 * ITEM_BYTES[self.dtype]),
            Constant("places", positions(factors(points) or ()).astype(np.uint16), "uint16_t"),
        )

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        length = op.attributes_as(Fft).length
        radices = factors(length // 2) or ()
        params = Let("tinyfuse_fft", "p", {
            "points": length // 2, "inverse": int(self.inverse), "used": sum(1 << radix for radix in set(radices)),
            "radices": "{" + ", ".join(map(str, radices)) + "}",
        })  # fmt: skip
        tables = (site.constant(name) for name in ("factors", "halves", "places"))
        count, samples = op.input.elements // op.input.shape[-1], op.input.shape[-1]
        sizes = (count,) if self.inverse else (count, samples)
        calls = [Call(self.name, ("&p", site.input(0).pointer, site.output.pointer, *tables, *sizes))]
        if self.inverse and self.dtype == "float32":
            calls.append(Call("tinyfuse_fft_divide_all_f32", (site.output.pointer, op.output.elements, length)))
        return params, *calls


class EnergyKernel(Kernel):
    """Bins whose energy nobody asked for become 0."""

    name = "tinyfuse_signal_energy"
    headers = ("tinyfuse_signal_window.h",)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        a = op.attributes_as(Energy)
        arguments = (site.input(0).pointer, site.output.pointer, op.output.elements, a.start, a.end)
        return (Call(self.name, arguments),)


class FilterBankKernel(Kernel):
    """One pass over the weights, in the order of the channels."""

    name = "tinyfuse_signal_filter_bank"
    headers = ("tinyfuse_signal_filter_bank.h",)
    _TABLES = ("weights", "unweights", "bins", "starts", "widths")

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return tuple(Constant(name, _vector(op, i + 1), "int16_t") for i, name in enumerate(self._TABLES))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        tables = (site.constant(name) for name in self._TABLES)
        channels = op.attributes_as(FilterBank).channels
        return (Call(self.name, (site.input(0).pointer, site.output.pointer, *tables, channels)),)


class SquareRootKernel(Kernel):
    """Bit by bit; 32 bits take half the steps of 64."""

    name = "tinyfuse_signal_roots"
    headers = ("tinyfuse_signal_filter_bank.h",)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        pointers = (site.input(0).pointer, site.input(1).pointer, site.output.pointer)
        return (Call(self.name, (*pointers, op.output.elements)),)


class SpectralSubtractionKernel(Kernel):
    """Channel by channel; the noise's estimate is the state."""

    name = "tinyfuse_signal_subtract_noise"
    headers = ("tinyfuse_signal_filter_bank.h",)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        a = op.attributes_as(SpectralSubtraction)
        params = Let("tinyfuse_noise", "p", {
            "channels": a.channels, "smoothing_bits": a.smoothing_bits, "bits": a.bits, "clamping": int(a.clamping),
            "smoothing": f"{{{a.smoothing}, {a.alternate_smoothing}}}",
            "one_minus_smoothing": f"{{{a.one_minus_smoothing}, {a.alternate_one_minus_smoothing}}}",
            "min_signal_remaining": a.min_signal_remaining,
        })  # fmt: skip
        pointers = (site.input(0).pointer, site.input(1).pointer, *(view.pointer for view in site.outputs))
        return params, Call(self.name, ("&p", *pointers))


class PcanKernel(Kernel):
    """Channel by channel."""

    name = "tinyfuse_signal_pcan"
    headers = ("tinyfuse_signal_filter_bank.h",)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("gains", _vector(op, 2)[:GAINS], "int16_t"),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        arguments = (
            site.input(0).pointer, site.input(1).pointer, site.output.pointer, site.constant("gains"),
            op.output.elements, op.attributes_as(Pcan).snr_shift,
        )  # fmt: skip
        return (Call(self.name, arguments),)


class FilterBankLogKernel(Kernel):
    """Channel by channel, with a table of 129 numbers."""

    name = "tinyfuse_signal_logs"
    headers = ("tinyfuse_signal_filter_bank.h",)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("table", log_table(), "uint16_t"),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        a = op.attributes_as(FilterBankLog)
        arguments = (
            site.input(0).pointer, site.output.pointer, site.constant("table"), op.output.elements,
            f"{a.output_scale % 2**32}u", a.correction_bits,
        )  # fmt: skip
        return (Call(self.name, arguments),)
