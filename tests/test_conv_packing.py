"""Which convolutions get the short requantization, and that its proof is neither lax nor too strict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conv_cases import FAMILIES, Shape, make_op

from tinyfuse.ir import Op, Quant
from tinyfuse.kernels.packing import bounded
from tinyfuse.tflite_reader import read_tflite

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"


def _with_bias(op: Op, values: list[int]) -> Op:
    bias = replace(op.inputs[2], data=np.array(values, np.int32))
    return replace(op, inputs=(*op.inputs[:2], bias))


def _layer(output_scale: float = 0.1, activation: str = "RELU") -> Op:
    """A 1x1 convolution, 8 -> 2 channels, with multipliers of 0.02 * 0.01 / output_scale."""
    op = make_op(
        Shape("CONV_2D", 2, 2, 8, 2, activation=activation, per_channel=False),
        np.random.default_rng(1),
    )
    x = replace(op.input, quant=Quant((0.02,), (5,)))
    w = replace(op.inputs[1], quant=Quant((0.01,), (0,)))
    y = replace(op.output, quant=Quant((output_scale,), (-128,)))
    return _with_bias(replace(op, inputs=(x, w, op.inputs[2]), outputs=(y,)), [100, -100])


def test_every_layer_of_vww_is_bounded_although_dead_channels_break_the_bounds() -> None:
    path = MODELS / "vww_96_int8.tflite"
    if not path.exists():
        pytest.skip(f"{path.name} is not on this machine")
    ops = [op for op in read_tflite(path).ops if op.kind in FAMILIES]
    assert len(ops) == 28
    huge = 0
    for op in ops:
        layer = bounded(op)
        assert layer is not None, str(op)
        bias = op.inputs[2].data.astype(np.int64)
        extreme = np.abs(bias) >= 2**30
        huge += bool(extreme.any())
        # a channel that can't be proven is one whose output never changes
        assert not layer.weights[extreme].any() and not layer.channels["multiplier"][extreme].any()
    assert huge == 9


def test_constant_channel_keeps_its_constant() -> None:
    op = _with_bias(_layer(), [2**30, -(2**30)])
    layer = bounded(op)
    assert layer is not None and not layer.weights.any()
    data = np.zeros(op.input.shape, np.int8)
    (expected,) = FAMILIES["CONV_2D"].reference(op, data, *(t.data for t in op.inputs[1:]))
    # rounding term 2 * -128 + 1, shift 0: (bias + term) >> 1 is the output
    stored = (layer.channels["bias"].astype(np.int64) + 2 * -128 + 1) >> 1
    assert np.clip(stored, -128, 127).tolist() == expected[0, 0, 0].tolist() == [127, -128]


def test_a_left_shift_is_refused() -> None:
    assert bounded(_layer()) is not None
    assert bounded(_layer(output_scale=0.00005)) is None


def test_an_overflow_is_refused() -> None:
    # with so large an output scale both ends of the accumulator's range are still apart
    op = _layer(output_scale=3000.0, activation="NONE")
    assert bounded(_with_bias(op, [2**31 - 2000, 0])) is None


def test_ramp_is_where_no_output_is_below_the_zero_point() -> None:
    assert bounded(_layer()).ramp
    op = _layer(activation="NONE")
    assert bounded(op).ramp  # the zero point is the lowest value
    y = replace(op.output, quant=Quant((0.1,), (-127,)))
    assert not bounded(replace(op, outputs=(y,))).ramp
