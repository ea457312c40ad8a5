"""Kernels of TFLM's signal library: spectra, filter banks, streams cut into frames (runtime_c/tinyfuse_signal_*.h)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.core.c_types import CTYPE, SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.rows import KernelOfOperands
from tinyfuse.kernels.core.statements import Call, Let, Statement, c_array
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.ops.sequence import signal_filter_bank as filter_bank
from tinyfuse.ops.sequence.signal_fft import factors, positions, twiddles
from tinyfuse.ops.sequence.signal_spectrum import Energy, Fft, Window
from tinyfuse.ops.sequence.signal_streams import Delay, Framer, OverlapAdd, Stacker, outer


class WindowKernel(KernelOfOperands):
    """Kernel of SignalWindow: multiplies samples by weights. The output may overwrite the input."""

    name = "tinyfuse_signal_window"
    headers = ("tinyfuse_signal_window.h",)
    in_place = (0,)
    operands: ClassVar = {0: "samples", 1: "weights"}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        samples = op.operand(1).elements
        given, weights = self.pointers(site)
        sizes = (op.input.elements // samples, samples, op.attributes_as(Window).shift)
        return (Call(self.name, (given, site.output.pointer, weights, *sizes)),)


class FftAutoScaleKernel(Kernel):
    """SignalFftAutoScale, in two passes over the samples: the largest, then the shift."""

    name = "tinyfuse_signal_auto_scale"
    headers = ("tinyfuse_signal_window.h",)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        outputs = (access.pointer for access in site.outputs)
        return (Call(self.name, (site.input(0).pointer, *outputs, op.input.elements)),)


class FftKernel(Kernel):
    """SignalRfft or SignalIrfft of all frames, one after the other, computed in the output, which must not overlap the
    input."""

    headers = ("tinyfuse_signal_fft.h",)

    def __init__(self, inverse: bool, dtype: str):
        self.inverse, self.dtype = inverse, dtype
        self.name = f"tinyfuse_fft_{'backward' if inverse else 'forward'}_{SUFFIX[dtype]}"

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Counts of transforms, points, and butterflies by their radix."""
        length, transforms = op.attributes_as(Fft).length, op.input.elements // op.input.shape[-1]
        radices, points = factors(length // 2) or (), transforms * length // 2
        found = {f"radix{radix}": radices.count(radix) * points // radix for radix in set(radices)}
        return {"calls": 1, "transforms": transforms, "inputs": op.input.elements, "points": points, **found}

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
            "radices": c_array(radices),
        })  # fmt: skip
        tables = (site.constant(name) for name in ("factors", "halves", "places"))
        count, samples = op.input.elements // op.input.shape[-1], op.input.shape[-1]
        sizes = (count,) if self.inverse else (count, samples)
        calls = [Call(self.name, ("&p", site.input(0).pointer, site.output.pointer, *tables, *sizes))]
        if self.inverse and self.dtype == "float32":
            calls.append(Call("tinyfuse_fft_divide_all_f32", (site.output.pointer, op.output.elements, length)))
        return params, *calls


class EnergyKernel(Kernel):
    """SignalEnergy. Bins outside the requested range become 0."""

    name = "tinyfuse_signal_energy"
    headers = ("tinyfuse_signal_window.h",)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        a = op.attributes_as(Energy)
        arguments = (site.input(0).pointer, site.output.pointer, op.output.elements, a.start, a.end)
        return (Call(self.name, arguments),)


class FilterBankKernel(KernelOfOperands):
    """SignalFilterBank in one pass over the weights, in the order of the channels."""

    name = "tinyfuse_signal_filter_bank"
    headers: tuple[str, ...] = ("tinyfuse_signal_filter_bank.h",)
    operands: ClassVar = dict(enumerate(("energies", "weights", "unweights", "bins", "starts", "widths")))

    def accepts(self, op: Op, context: Context) -> bool:
        return not filter_bank.computes_channels(op)

    def counts(self, op: Op, by_row: bool) -> Counts:
        weights = min(op.operand(1).elements, op.operand(2).elements)
        return {"calls": 1, "outputs": op.output.elements, "macs": weights}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        energies, *tables = self.pointers(site)
        channels = op.attributes_as(filter_bank.FilterBank).channels
        return (Call(self.name, (energies, site.output.pointer, *tables, channels)),)


class ComputedFilterBankKernel(FilterBankKernel):
    """SignalFilterBank whose run computes the bins and weights of the channels. Bins or weights that do not exist end
    the run with an error."""

    headers: tuple[str, ...] = (*FilterBankKernel.headers, "tinyfuse_signal_channels.h")
    accepts = of_operator(filter_bank.computes_channels)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        tables = self.pointers(site)[3:]
        weights = min(op.operand(1).elements, op.operand(2).elements)
        sizes = (op.attributes_as(filter_bank.FilterBank).channels, op.input.elements, weights)
        return Call("tinyfuse_signal_channels_outside", (*tables, *sizes), status="0"), *super().call(op, site, context)


class SquareRootKernel(KernelOfOperands):
    """SignalFilterBankSquareRoot, bit by bit; values of 32 bits take half the steps of 64."""

    name = "tinyfuse_signal_roots"
    headers = ("tinyfuse_signal_filter_bank.h",)
    operands: ClassVar = {0: "channels", 1: "bits"}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        pointers = (*self.pointers(site), site.output.pointer)
        return (Call(self.name, (*pointers, op.output.elements)),)


class SpectralSubtractionKernel(Kernel):
    """SignalFilterBankSpectralSubtraction, channel by channel. The state is the estimate of the noise."""

    name = "tinyfuse_signal_subtract_noise"
    headers = ("tinyfuse_signal_filter_bank.h",)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        a = op.attributes_as(filter_bank.SpectralSubtraction)
        params = Let("tinyfuse_noise", "p", {
            "channels": a.channels, "smoothing_bits": a.smoothing_bits, "bits": a.bits, "clamping": int(a.clamping),
            "smoothing": c_array((a.smoothing, a.alternate_smoothing)),
            "one_minus_smoothing": c_array((a.one_minus_smoothing, a.alternate_one_minus_smoothing)),
            "min_signal_remaining": a.min_signal_remaining,
        })  # fmt: skip
        pointers = (site.input(0).pointer, site.input(1).pointer, *(access.pointer for access in site.outputs))
        return params, Call(self.name, ("&p", *pointers))


class PcanKernel(KernelOfOperands):
    """SignalPCAN, channel by channel."""

    name = "tinyfuse_signal_pcan"
    headers = ("tinyfuse_signal_filter_bank.h",)
    operands: ClassVar = {0: "channels", 1: "noise", 2: "gains"}

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        found = super().constants(op, context)
        return tuple(replace(c, data=c.data[: filter_bank.GAINS]) if c.name == "gains" else c for c in found)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        channels, noise, gains = self.pointers(site)
        sizes = (op.output.elements, op.attributes_as(filter_bank.Pcan).snr_shift)
        return (Call(self.name, (channels, noise, site.output.pointer, gains, *sizes)),)


class FilterBankLogKernel(Kernel):
    """SignalFilterBankLog, channel by channel, with a table of 129 numbers."""

    name = "tinyfuse_signal_logs"
    headers = ("tinyfuse_signal_filter_bank.h",)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("table", filter_bank.log_table(), "uint16_t"),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        a = op.attributes_as(filter_bank.FilterBankLog)
        pointers = (site.input(0).pointer, site.output.pointer, site.constant("table"))
        numbers = (op.output.elements, f"{a.output_scale % 2**32}u", a.correction_bits)
        return (Call(self.name, (*pointers, *numbers)),)


class _Stream(Kernel):
    """Base of the kernels of SignalFramer, SignalStacker, SignalDelay and SignalOverlapAdd. The output must not overlap
    the input."""

    headers = ("tinyfuse_signal_streams.h",)

    def pointers(self, site: CallSite) -> tuple[str, ...]:
        """C pointers to the input, the states and the outputs, in this order."""
        inputs = (site.input(i).pointer for i in range(len(site.inputs)))
        return *inputs, *(access.pointer for access in site.outputs)


class FramerKernel(_Stream):
    """SignalFramer. Copies each frame, and moves the kept samples by a step."""

    name = "tinyfuse_signal_frames"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        a, streams = op.attributes_as(Framer), outer(op.input.shape)
        steps = op.input.shape[-1] // a.step
        return (Call(self.name, (*self.pointers(site), streams, steps, a.step, a.size, a.history)),)


class StackerKernel(_Stream):
    """SignalStacker. Makes the stack in the output, and keeps the frames that the next stacks need."""

    name = "tinyfuse_signal_stack"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        a = op.attributes_as(Stacker)
        return (Call(self.name, (*self.pointers(site), a.channels, a.frames, a.left, a.step)),)


class DelayKernel(_Stream):
    """Kernel of SignalDelay. Copies the new samples, and moves the delayed samples by as many places."""

    name = "tinyfuse_signal_delay"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        length, samples = op.attributes_as(Delay).length, op.input.shape[-1]
        return (Call(self.name, (*self.pointers(site), outer(op.input.shape), samples, length)),)


class OverlapAddKernel(_Stream):
    """SignalOverlapAdd in one pass over each frame; the part of a frame that overlaps the next one is kept in the
    state."""

    def __init__(self, dtype: str):
        self.dtype = dtype
        self.name = f"tinyfuse_signal_overlap_add_{'f32' if dtype == 'float32' else 's16'}"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        frames, size = op.input.shape[-2:]
        sizes = (outer(op.input.shape, 2), frames, size, op.attributes_as(OverlapAdd).step)
        return (Call(self.name, (*self.pointers(site), *sizes)),)
