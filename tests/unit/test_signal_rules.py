"""Inconsistent operators of TFLM's signal library are refused by a rule or by the reader."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases.common import flexbuffer, model_of, options_of
from cases.signal import NAMED
from signal_models import SignalNet

from tinyfuse.errors import CompileError
from tinyfuse.frontend.check import check
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Op
from tinyfuse.ops import FAMILIES


def _named(kind: str) -> Op:
    return next(iter(NAMED[f"CUSTOM Signal{kind}"].values()))


def _attributes(kind: str, **changes: Any) -> Op:
    op = _named(kind)
    return replace(op, attributes=replace(op.attributes, **changes))


def _shape(kind: str, index: int, shape: tuple[int, ...], dtype: str | None = None) -> Op:
    op = _named(kind)
    inputs = list(op.inputs)
    inputs[index] = replace(inputs[index], shape=shape, dtype=dtype or inputs[index].dtype)
    return replace(op, inputs=tuple(inputs))


def _table(index: int, values: list[int]) -> Op:
    op = _named("FilterBank")
    inputs = list(op.inputs)
    data = np.array(values, np.int16)
    inputs[index] = replace(inputs[index], shape=data.shape, data=data)
    return replace(op, inputs=tuple(inputs))


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (replace(_named("Window"), attributes=None), "options are there"),
        (_attributes("Window", shift=32), "from 0 to 31"),
        (_attributes("Window", shift=-1), "from 0 to 31"),
        (_shape("Window", 0, (481,)), "of the weights"),
        (_shape("Window", 0, (480,), "int32"), "inputs are int16"),
        (_shape("FftAutoScale", 0, (2, 256)), "of one dimension"),
        (_attributes("Rfft", length=510), "other factors"),
        (_attributes("Rfft", length=2), "other factors"),
        (_attributes("Rfft", length=-512), "other factors"),
        (_attributes("Rfft", length=1 << 30), "other factors"),
        (_attributes("Rfft", length=256), "length + 2 values"),
        (_attributes("Rfft", dtype=""), "option T"),
        (_shape("Rfft", 0, (513,)), "length + 2 values"),
        (_shape("Rfft", 0, ()), "at least one dimension"),
        (_shape("Irfft", 0, (512,)), "length + 2 values"),
        (_attributes("Energy", start=-1), "lie in the spectrum"),
        (_attributes("Energy", start=9, end=8), "lie in the spectrum"),
        (_attributes("Energy", end=258), "lie in the spectrum"),
        (_shape("Energy", 0, (515,)), "for every bin"),
        (_attributes("FilterBank", channels=4), "for every channel"),
        (_shape("FilterBank", 0, (63,)), "that exist"),
        (_table(3, [0, 4, 4, 12, 24, -1]), "that exist"),
        (_table(4, [0, 4, 4, 12, 24, 50]), "that exist"),
        (_table(5, [4, 0, 8, 12, 16]), "that exist"),
        (_shape("FilterBankSquareRoot", 1, (1,)), "has none"),
        (_attributes("PCAN", snr_shift=64), "from 0 to 63"),
        (_shape("PCAN", 2, (124,)), "125 values"),
        (_attributes("FilterBankLog", correction_bits=32), "from 0 to 31"),
    ],
)  # fmt: skip
def test_rules(op: Op, message: str) -> None:
    problems = (rule.problem(op) for rule in FAMILIES[op.kind].rules)
    first = next(problem for problem in problems if problem is not None)
    assert message in first.message


def _problems(data: bytes) -> str:
    with pytest.raises(CompileError) as caught:
        check(read_tflite("m.tflite", data))
    return "\n".join(map(str, caught.value.problems))


def _stateful(name: str, out: list[tuple], **options: Any) -> bytes:
    net = SignalNet()
    net.show(net.add(name, [net.input((32,))], out, **options))
    return net.build()


_FRAMES = [((2, 20), "int16"), ((), "bool")]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (_stateful("Framer", _FRAMES, frame_size=20, frame_step=0, prefill=True), "have samples"),
        (_stateful("Framer", _FRAMES, frame_size=20, frame_step=32, prefill=True), "no longer than the frame"),
        (_stateful("Framer", _FRAMES, frame_size=2**31 - 1, frame_step=16, prefill=False), "have samples"),
        (_stateful("Framer", _FRAMES, frame_size=24, frame_step=16, prefill=False), "whole steps"),
        (_stateful("Framer", _FRAMES, frame_size=20, frame_step=16), "frame_size, frame_step, prefill"),
        (_stateful("Framer", _FRAMES), "options are there"),
        (_stateful("Framer", _FRAMES[:1], frame_size=20, frame_step=16, prefill=True), "two outputs"),
        (_stateful("Stacker", _FRAMES, num_channels=32, stacker_left_context=-1, stacker_right_context=1,
                   stacker_step=1), "no context is negative"),
        (_stateful("Stacker", _FRAMES, num_channels=32, stacker_left_context=1, stacker_right_context=1,
                   stacker_step=4), "the step is from one frame"),
        (_stateful("Delay", [((32,), "int16")], delay_length=-1), "not negative"),
        (_stateful("Delay", [((32,), "int16")], delay_length=2**31 - 1), "not negative"),
        (_stateful("OverlapAdd", [((32,), "int16")], T=7, frame_step=32), "frames are"),
        (_stateful("OverlapAdd", [((32,), "int16")], T=2, frame_step=32), "option T"),
    ],
)  # fmt: skip
def test_operators_with_states(data: bytes, message: str) -> None:
    assert message in _problems(data)


def test_options_that_are_no_flexbuffer_are_told() -> None:
    op = _named("Rfft")
    good, written = model_of(op), flexbuffer(options_of(op))
    assert good.count(written) == 1
    assert "options: " in _problems(good.replace(written, written[:-1] + b"\3"))


@pytest.mark.parametrize(
    ("variable", "shape", "cycles", "message"),
    [
        (False, (1, 4, 1, 6), 2, "which is a variable"),
        (True, (1, 4, 2, 6), 2, "the output [1, N, W, C]"),
        (True, (4, 6), 2, "which is a variable"),
        (True, (1, 4, 2, 96), 0, "cycles_max says"),
    ],
)
def test_circular_buffer(variable: bool, shape: tuple[int, ...], cycles: int, message: str) -> None:
    net = SignalNet()
    width = shape[-1]
    x = net.model.tensor("x", (1, 1, 2 if width == 96 else 1, width), scale=0.1, zero_point=0)
    window = net.model.tensor("window", shape, scale=0.1, zero_point=0, is_variable=variable)
    options = flexbuffer({"cycles_max": cycles})
    net.model.op("CUSTOM", [x], [window], table=False, custom_code="CIRCULAR_BUFFER", custom_options=options)
    assert message in _problems(net.model.build([x], [window]))
