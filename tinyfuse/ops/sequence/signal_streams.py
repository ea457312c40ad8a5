"""What cuts a stream of int16 samples or features into frames and puts frames together, in TFLM's signal library:
SignalFramer, SignalStacker, SignalDelay, SignalOverlapAdd. All of them keep samples as states.

A frame or stack that can't be complete yet is zeros, and its operator's output `valid` false; TFLM leaves there what
was in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.sequence.signal_rules import OPTIONS, PREFIX, dtypes, ends, hidden_state, within

_OPEN = (
    "until {what} is complete, TFLM leaves in its place what was in memory, which may be zeros as here or not: there "
    "`verify` compares what nobody defines (--oracle reference does not)"
)
#: more samples than any frame has
_MOST = 1 << 24


def outer(shape: tuple[int, ...], inner: int = 1) -> int:
    """Return the number of parallel streams: the product of all dimensions but the `inner` last ones."""
    count = 1
    for dim in shape[:-inner]:
        count *= dim
    return count


# --- frames ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Framer:
    """Attributes of SignalFramer: frames of `size` samples, one every `step` samples. With `prefill`, zeros precede
    the first sample, so that every step makes a frame from the beginning on."""

    size: int
    step: int
    prefill: bool

    @property
    def sound(self) -> bool:
        return 0 < self.size < _MOST and 0 < self.step < _MOST and (self.step <= self.size or not self.prefill)

    @property
    def history(self) -> int:
        """Samples that are kept between steps, once frames come."""
        if self.prefill:
            return self.size - self.step
        return (self.size + self.step - 1) // self.step * self.step - self.step


def _framed(op: Op) -> bool:
    a = op.attributes_as(Framer)
    if not op.input.shape or op.input.shape[-1] % a.step:
        return False
    frames = (*op.input.shape[:-1], op.input.shape[-1] // a.step, a.size)
    return op.output.shape == frames and not op.outputs[1].shape


class FramerFamily(OpFamily):
    """SignalFramer: cuts samples into overlapping frames. Input: samples [..., steps * step]; outputs: frames [...,
    steps, size] and `valid`, a bool []. States: the last samples of each stream, which later frames need, and how many
    of them there are."""

    kind = f"{PREFIX}Framer"
    option_keys = ("frame_size", "frame_step", "prefill")
    summary = "overlapping frames of a stream of int16 samples; keeps what the next ones need as state"
    updates = (1, 2)
    rules = (
        ends(1, 2, states=2),
        OPTIONS,
        dtypes(("int16",), ("int16", "bool")),
        within("frame and step have samples, and with prefill the step is no longer than the frame",
               lambda op: op.attributes_as(Framer).sound),
        within("the input is whole steps [..., steps * step], frames are [..., steps, size], valid has no dimension",
               _framed),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> Framer | None:
        if not options:
            return None
        return Framer(options["frame_size"], options["frame_step"], bool(options["prefill"]))

    def hidden_states(self, op: Op) -> tuple[Tensor, ...]:
        a = op.attributes
        if not isinstance(a, Framer) or not a.sound or not op.inputs or op.inputs[0] is None:
            return hidden_state(op, "history", (1,), "int16"), hidden_state(op, "held", (1,), "int32")
        history = hidden_state(op, "history", (outer(op.input.shape), a.history), "int16")
        return history, hidden_state(op, "held", (1,), "int32", a.history if a.prefill else 0)

    def warning(self, op: Op) -> str | None:
        a = op.attributes_as(Framer)
        return _OPEN.format(what="the first frame") if not a.prefill and a.history > 0 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        a = op.attributes_as(Framer)
        samples, history, held = all_given(inputs)
        kept, count = history.copy(), int(held[0])
        frames, valid = np.zeros(op.output.shape, np.int16), True
        made = frames.reshape(history.shape[0], -1, a.size)
        steps = samples.reshape(history.shape[0], -1, a.step)
        for step in range(steps.shape[1]):
            there = np.concatenate([kept[:, :count], steps[:, step]], axis=1)
            if there.shape[1] >= a.size:
                made[:, step] = there[:, : a.size]
                there = there[:, a.step :]
            else:
                valid = False
            count = there.shape[1]
            kept[:, :count] = there
        return frames, np.array(valid), kept, np.array([count], np.int32)


# --- stacks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stacker:
    """Attributes of SignalStacker: a stack has `left` frames of `channels` values, the frame itself and `right` frames
    after it; there is one stack every `step` frames."""

    channels: int
    left: int
    right: int
    step: int

    @property
    def sound(self) -> bool:
        return (
            0 < self.channels < _MOST
            and 0 <= self.left < _MOST
            and 0 <= self.right < _MOST
            and 1 <= self.step <= self.frames
            and self.channels * self.frames < _MOST
        )

    @property
    def frames(self) -> int:
        return self.left + self.right + 1


#: number of frames before the first one came; the first frame counts `left` times more, as its own left neighbours
_NOTHING = -1


class StackerFamily(OpFamily):
    """Family of stackers of frames. Input: a frame [channels]; outputs: the stack [channels * frames] and `valid`, a
    bool []. States: the frames that the next stacks contain, and their number, -1 before the first frame."""

    kind = f"{PREFIX}Stacker"
    option_keys = ("num_channels", "stacker_left_context", "stacker_right_context", "stacker_step")
    summary = "frames of int16 features side by side with those before and after them; keeps them as state"
    updates = (1, 2)
    rules = (
        ends(1, 2, states=2),
        OPTIONS,
        dtypes(("int16",), ("int16", "bool")),
        within("there are channels, no context is negative, and the step is from one frame to all of a stack",
               lambda op: op.attributes_as(Stacker).sound),
        within("the input is [channels], the stack [channels * frames], valid has no dimension",
               lambda op: op.input.shape == (op.attributes_as(Stacker).channels,) and not op.outputs[1].shape
               and op.output.shape == (op.attributes_as(Stacker).channels * op.attributes_as(Stacker).frames,)),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> Stacker | None:
        return Stacker(*(options[key] for key in self.option_keys)) if options else None

    def hidden_states(self, op: Op) -> tuple[Tensor, ...]:
        a = op.attributes
        kept = a.frames - 1 if isinstance(a, Stacker) and a.sound else 0
        channels = a.channels if isinstance(a, Stacker) and a.sound else 1
        history = hidden_state(op, "history", (kept, channels), "int16")
        return history, hidden_state(op, "held", (1,), "int32", _NOTHING)

    def warning(self, op: Op) -> str | None:
        a = op.attributes_as(Stacker)
        return _OPEN.format(what="a stack") if a.right > 0 or a.step > 1 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        a = op.attributes_as(Stacker)
        frame, history, held = all_given(inputs)
        kept, count = history.copy(), int(held[0])
        new = np.tile(frame, (a.left + 1 if count == _NOTHING else 1, 1))
        there = np.concatenate([kept[: max(count, 0)], new])
        valid = there.shape[0] >= a.frames
        stack = there.reshape(-1) if valid else np.zeros(op.output.shape, np.int16)
        there = there[a.step :] if valid else there
        kept[: there.shape[0]] = there
        return stack, np.array(valid), kept, np.array([there.shape[0]], np.int32)


# --- delays and overlaps -----------------------------------------------------------------------


@dataclass(frozen=True)
class Delay:
    """Attributes of SignalDelay: `length`, the number of samples by which the output is late."""

    length: int


class DelayFamily(OpFamily):
    """Family of delays. Input and output: samples [..., N]; the output is late by `length` samples. A state keeps the
    last samples of each stream."""

    kind = f"{PREFIX}Delay"
    option_keys = ("delay_length",)
    summary = "int16 samples, later by some; keeps the last ones as state"
    updates = (1,)
    rules = (
        ends(1, 1, states=1),
        OPTIONS,
        dtypes(("int16",), ("int16",)),
        within("the delay is not negative", lambda op: 0 <= op.attributes_as(Delay).length < _MOST),
        within("input and output have the same shape, of at least one dimension",
               lambda op: op.input.shape == op.output.shape and bool(op.input.shape)),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> Delay | None:
        return Delay(options["delay_length"]) if options else None

    def hidden_states(self, op: Op) -> tuple[Tensor, ...]:
        a = op.attributes
        sound = isinstance(a, Delay) and 0 <= a.length < _MOST and bool(op.inputs) and op.inputs[0] is not None
        shape = (outer(op.input.shape), op.attributes_as(Delay).length) if sound else (1, 1)
        return (hidden_state(op, "delayed", shape, "int16"),)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        samples, delayed = all_given(inputs)
        length, size = op.attributes_as(Delay).length, op.input.shape[-1]
        there = np.concatenate([delayed[:, :length], samples.reshape(-1, size)], axis=1)
        kept = delayed.copy()
        kept[:, :length] = there[:, size:]
        return there[:, :size].reshape(op.output.shape), kept


@dataclass(frozen=True)
class OverlapAdd:
    """Attributes of SignalOverlapAdd. step: samples by which each frame advances the output. dtype: that of the
    option `T`, "" if it is unknown."""

    step: int
    dtype: str


_DTYPES = {7: "int16", 0: "float32"}


def _overlapped(op: Op) -> bool:
    a = op.attributes_as(OverlapAdd)
    shape, out = op.input.shape, op.output.shape
    return len(shape) >= 2 and 1 <= a.step <= shape[-1] and out == (*shape[:-2], shape[-2] * a.step)


class OverlapAddFamily(OpFamily):
    """Family of sums of overlapping frames. Input: frames [..., N, size]; output: samples [..., N * step]. The part of
    the frames beyond these samples is kept as state. int16 sums saturate after each addition."""

    kind = f"{PREFIX}OverlapAdd"
    option_keys = ("T", "frame_step")
    summary = "a stream from overlapping frames, which are added up; keeps what lies beyond as state"
    updates = (1,)
    rules = (
        ends(1, 1, states=1),
        OPTIONS,
        Rule("input and output are both int16 or float32, as the option T says",
             lambda op: not op.input.dtype == op.output.dtype == op.attributes_as(OverlapAdd).dtype),
        within("frames are [..., N, size], the output is [..., N * step], the step is no longer than a frame",
               _overlapped),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> OverlapAdd | None:
        return OverlapAdd(options["frame_step"], _DTYPES.get(options["T"], "")) if options else None

    def hidden_states(self, op: Op) -> tuple[Tensor, ...]:
        a, shape = op.attributes, op.inputs[0].shape if op.inputs and op.inputs[0] is not None else ()
        if not isinstance(a, OverlapAdd) or not a.dtype or len(shape) < 2 or not 1 <= a.step <= shape[-1]:
            return (hidden_state(op, "overlap", (1, 1), "int16"),)
        return (hidden_state(op, "overlap", (outer(shape, 2), shape[-1] - a.step), a.dtype),)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        frames, overlap = all_given(inputs)
        step, (count, size) = op.attributes_as(OverlapAdd).step, op.input.shape[-2:]
        frames = frames.reshape(-1, count, size)
        rest = overlap[:, : size - step]
        pieces = []
        for frame in range(count):
            beyond = np.zeros((frames.shape[0], step), frames.dtype)
            total = _added(np.concatenate([rest, beyond], axis=1), frames[:, frame])
            pieces.append(total[:, :step])
            rest = total[:, step:]
        kept = overlap.copy()
        kept[:, : size - step] = rest
        return np.concatenate(pieces, axis=1).reshape(op.output.shape), kept


def _added(a: Array, b: Array) -> Array:
    if a.dtype == np.float32:
        with np.errstate(over="ignore", invalid="ignore"):
            return a + b
    return np.clip(a.astype(np.int32) + b, -32768, 32767).astype(np.int16)
