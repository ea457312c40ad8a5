"""CIRCULAR_BUFFER: TFLM's window over the last frames of a stream; it ends runs early until enough new frames have
come.

Source: tensorflow/lite/micro/kernels/circular_buffer.cc and circular_buffer_common.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.sequence.signal_rules import hidden_state

KIND = "CUSTOM CIRCULAR_BUFFER"
_HINT = "TensorFlow Lite Micro refuses it, too, or computes something else every time"


@dataclass(frozen=True)
class CircularBuffer:
    """Attributes of CIRCULAR_BUFFER: `cycles_max`, the number of frames per result; if 0 or less, TFLM guesses it from
    the output's shape."""

    cycles_max: int


#: slots of the streaming models for which TFLM guesses that each frame gives a result; two for all others
_EACH_FRAME = (5, 13, 25)


def cycles(op: Op) -> int:
    """Return how many frames come for each result."""
    given = op.attributes_as(CircularBuffer).cycles_max
    return given if given > 0 else 1 if op.output.shape[1] in _EACH_FRAME else 2


def _guess_is_open(op: Op) -> bool:
    """TFLM's guess for this shape depends on how many such operators any interpreter of the process has prepared."""
    shape = op.output.shape
    return op.attributes_as(CircularBuffer).cycles_max <= 0 and shape[1] not in _EACH_FRAME and shape[2:] == (2, 96)


class CircularBufferFamily(OpFamily):
    """Family of circular buffers. Input: a frame [1, 1, W, C]; output: the last N frames [1, N, W, C], the newest last.
    In the file the output is itself the variable that holds the frames. In tinyfuse two states hold them: the frames,
    and the number of frames that are still to come."""

    kind = KIND
    option_keys = ("cycles_max",)
    keeps_output = True
    summary = "the last frames of a stream as rows; ends the run until so many new ones came"
    updates = (1, 2)
    rules = (
        Rule("one input and one output, which is a variable",
             lambda op: len(op.inputs) != 3 or None in op.inputs or len(op.outputs) != 1, _HINT),
        Rule("input and output are int8",
             lambda op: next((t for t in (op.input, op.output) if t.dtype != "int8"), None),
             "quantize the model to int8 (full integer quantization)"),
        Rule("the input is [1, 1, W, C], the output [1, N, W, C]",
             lambda op: len(op.output.shape) != 4 or op.output.shape[0] != 1
             or op.input.shape != (1, 1, *op.output.shape[2:]), _HINT),
        Rule("the option cycles_max says how many frames make a result", _guess_is_open,
             "give the option cycles_max: of this shape TensorFlow Lite Micro only guesses it"),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> CircularBuffer:
        return CircularBuffer(options.get("cycles_max", 0))

    def hidden_states(self, op: Op) -> tuple[Tensor, ...]:
        if not op.outputs or not op.output.is_state or len(op.output.shape) != 4 or op.attributes is None:
            return ()
        frames = Tensor(f"{op.output.name}/frames", op.output.shape, op.output.dtype, op.output.quant,
                        initial=op.output.initial)  # fmt: skip
        return frames, hidden_state(op, "awaited", (1,), "int32", cycles(op))

    def awaits(self, op: Op) -> bool:
        return cycles(op) > 1

    def ends_run(self, op: Op, results: Sequence[Array]) -> bool:
        return int(results[-1][0]) != cycles(op)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        frame, frames, awaited = all_given(inputs)
        kept = np.concatenate([frames[:, 1:], frame], axis=1)
        left = int(awaited[0]) - 1
        return kept, kept, np.array([left or cycles(op)], np.int32)
