"""Kernels that cut streams into frames, from TFLM's signal library (runtime_c/tinyfuse_signal_streams.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.ops.sequence.signal_streams import Delay, Framer, OverlapAdd, Stacker, outer


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
