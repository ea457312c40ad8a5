"""Selects convolutions for single rounding; its proof must be neither lax nor too strict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conv_cases import FAMILIES, Shape, make_op, model_of
from executors import assert_exact, plan_of
from hypothesis import given
from hypothesis import strategies as st

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Op, Quant
from tinyfuse.ir.fixedpoint import multiply_by_quantized_multiplier
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.layers.int8_dsp.lanes import (
    BYTES,
    BYTES_SINGLE_ROUNDING,
    LANES,
    SINGLE_ROUNDING,
    WIDE,
    dense_layer,
    matmul_layer,
    weights_in_lanes,
)
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.single_rounding import SHIFT, output_thresholds, single_rounding
from tinyfuse.kernels.requantize.two_roundings import bounded
from tinyfuse.ops.core.convolution import bias_values, channel_multipliers, clamp_range
from tinyfuse.ops.weight_sums import channel_weights
from tinyfuse.targets import load_target

DSP, PLAIN = (Context(load_target(name)) for name in ("cortex-m4", "cortex-m3"))
VWW = Path(__file__).resolve().parents[2] / "examples" / "models" / "vww.tflite"


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
    ops = [op for op in read_tflite(VWW).ops if op.kind in FAMILIES]
    assert len(ops) == 20
    huge = 0
    for op in ops:
        layer = bounded(op)
        assert layer is not None, str(op)
        bias = op.inputs[2].data.astype(np.int64)
        extreme = np.abs(bias) >= 2**30
        huge += bool(extreme.any())
        # a channel that can't be proven is one whose output never changes
        assert not layer.weights[extreme].any() and not layer.channels["multiplier"][extreme].any()
    assert huge == 5


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


def test_a_left_shift_of_a_channel_that_is_constant_is_none() -> None:
    """Whose weights a converter has cut to zeros: what it is multiplied by doesn't matter, unless it wraps."""
    op = _layer()
    dead = op.inputs[1].data.copy()
    dead[1] = 0
    weights = replace(op.inputs[1], data=dead, quant=Quant((0.01, 1000.0), (0, 0), 0))
    for bias, fits in ((0, True), (3, True), (2**24, False)):
        layer = bounded(_with_bias(replace(op, inputs=(op.input, weights, op.inputs[2])), [100, bias]))
        assert (layer is not None) == fits


def test_an_overflow_is_refused() -> None:
    # with so large an output scale both ends of the accumulator's range are still apart
    op = _layer(output_scale=3000.0, activation="NONE")
    assert bounded(_with_bias(op, [2**31 - 2000, 0])) is None


def _random_layers(count: int = 24):
    rng = np.random.default_rng(7)
    for at in range(count):
        kind = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")[at % 3]
        channels = int(rng.integers(1, 30))
        shape = Shape(kind, 2, 2, channels, 5, (1, 1) if at % 3 == 2 else (2, 3), activation="RELU",
                      per_channel=at % 2 == 0)  # fmt: skip
        op = make_op(shape, rng, extreme=at % 5 == 4)
        if not any(rule.problem(op) for rule in FAMILIES[kind].rules):
            yield op


def _on_line(found, channel: int, accumulators: np.ndarray, op: Op) -> np.ndarray:
    """tinyfuse_requantize_single_rounding, written from its definition in C."""
    folded = bias_values(op)[channel] - op.input.zero_point * int(channel_weights(op)[channel].astype(int).sum())
    values = 256 * (accumulators - folded) * bool(found.weights[channel].any()) + int(found.bias[channel])
    assert np.abs(values).max() < 2**31
    rounding = (2 * op.output.zero_point + 1) << (SHIFT - 1)
    high = (values * int(found.multiplier[channel])) >> 32
    return np.clip((rounding + high) >> SHIFT, -128, 127)


def test_a_line_gives_every_accumulator_its_output() -> None:
    assert sum(_has_line(op, channels=2) for op in _random_layers()) >= 3


def test_a_line_stays_off_the_outputs_that_no_accumulator_reaches() -> None:
    """85 is the most that the last channel's accumulator may be, and the next output begins at 86: the line
    must not have begun it before. A random network found that it had."""
    shape = Shape("DEPTHWISE_CONV_2D", 2, 2, 3, 3, (1, 1), activation="RELU", per_channel=False)
    op = make_op(shape, np.random.default_rng(3))
    x, weights, bias = op.inputs
    op = replace(
        op,
        inputs=(
            replace(x, quant=Quant((0.0982547402381897,), (-128,))),
            replace(weights, quant=Quant((0.006199208553880453,), (0,)),
                    data=np.array([-127, 93, -71], np.int8).reshape(weights.shape)),
            replace(bias, data=np.array([-2810, -1108, 85], np.int32)),
        ),
        outputs=(replace(op.output, quant=Quant((0.0115875955671072,), (-128,))),),
    )  # fmt: skip
    assert _has_line(op, channels=3)


def _has_line(op: Op, channels: int) -> bool:
    """Tells whether the layer has single rounding; compares its first `channels` channels with double rounding."""
    found = single_rounding(op)
    if found is None:
        return False
    multipliers, shifts = channel_multipliers(op)
    facts = layer_facts(op)
    least, most = facts.least, facts.most
    for c in range(min(channels, len(least))):
        if most[c] - least[c] > 2**21:
            every = np.unique(np.linspace(least[c], most[c], 2**18).astype(np.int64))
        else:
            every = np.arange(least[c], most[c] + 1)
        expected = multiply_by_quantized_multiplier(every, multipliers[c], shifts[c])
        expected = np.clip(expected + op.output.zero_point, *clamp_range(op))
        got = np.clip(_on_line(found, c, every, op), *clamp_range(op))
        np.testing.assert_array_equal(got, expected)
    return True


def test_no_line_where_both_sides_of_the_zero_point_count() -> None:
    """Halves go away from zero, up on one side and down on the other: hardly a line does both."""
    op = _layer(output_scale=0.0023, activation="NONE")
    op = _with_bias(replace(op, outputs=(replace(op.output, quant=Quant((0.0023,), (0,))),)), [0, 0])
    assert single_rounding(op) is None and matmul_layer(op, DSP).form == LANES


def test_lanes_hold_two_weights() -> None:
    rng = np.random.default_rng(3)
    weights = rng.choice(np.array([-127, -128, 127, 0, 5], np.int8), (200, 12))
    weights[:, ::2] = np.maximum(weights[:, ::2], -127)
    lanes, extra = weights_in_lanes(weights)
    x = rng.choice(np.array([-128, 127, 0, -1, 17]), (12, 50))
    a, b = 256 * x[1::2] + x[::2] + 128, 127 - x[::2]
    assert a.min() >= -(2**15) and a.max() < 2**15
    lane = lanes.view("<i2").astype(np.int64)
    low = ((lane + 128) & 255) - 128
    np.testing.assert_array_equal(low @ a + lane @ b + extra[:, None], 256 * weights.astype(np.int64) @ x)


def test_forms() -> None:
    assert matmul_layer(_layer(), DSP).form == SINGLE_ROUNDING
    assert dense_layer(_layer(), DSP).form == LANES
    op = _layer()
    weights = op.inputs[1].data.copy()
    weights.reshape(2, 8)[0, 2] = -128
    heavy = replace(op.inputs[1], data=weights)
    assert matmul_layer(replace(op, inputs=(op.input, heavy, op.inputs[2])), DSP).form == WIDE
    assert dense_layer(_with_bias(_layer(output_scale=10.0, activation="NONE"), [2**23, 5]), DSP).form == WIDE
    assert matmul_layer(_layer(), PLAIN).form == BYTES_SINGLE_ROUNDING and dense_layer(_layer(), PLAIN).form == BYTES


@pytest.mark.parametrize("target", ("host", "cortex-m4", "cortex-m3"))
def test_a_rounding_term_beyond_int32_is_refused(target: str) -> None:
    """Accumulators near -2^31 and an output zero point of 127, shifted by 25: the sum of both is an int32,
    the zero point alone is not, nor is it with half of the accumulator."""
    op = make_op(Shape("FULLY_CONNECTED", 1, 1, 16, 4, per_channel=False), np.random.default_rng(3))
    least = 2**31 - 2**23  # where the output steps, less its sign
    scale = 32.5 / least
    x = replace(op.input, quant=Quant((scale * 2**20,), (0,)))
    w = replace(op.inputs[1], quant=Quant((2.0**-20,), (0,)))
    y = replace(op.output, quant=Quant((1.0,), (127,)))
    op = _with_bias(replace(op, inputs=(x, w, op.inputs[2]), outputs=(y,)), [-least] * 4)
    (expected,) = FAMILIES[op.kind].reference(op, np.full((1, 16), 90, np.int8), *(t.data for t in op.inputs[1:]))
    assert set(expected.reshape(-1)) <= {94, 95}
    assert bounded(op) is None
    assert_exact(plan_of(model_of(op), target, kernels="tinyfuse"))


def _bounded_outputs(layer, channel: int, accumulators: np.ndarray, zero_point: int) -> np.ndarray:
    """tinyfuse_requantize_bounded, written from its definition in C; AssertionError if a sum exceeds int32."""
    bias, multiplier, shift = (int(value) for value in layer.channels[channel])
    term = (2 * zero_point + 1) << shift
    assert abs(term) < 2**31
    values = accumulators if layer.weights[channel].any() else np.full_like(accumulators, bias)
    sums = values + term + (values >> 31)
    totals = sums + ((values * multiplier + 2**31) >> 32)
    assert max(np.abs(sums).max(), np.abs(totals).max()) <= 2**31
    return np.clip((totals >> shift) >> 1, -128, 127)


def test_the_bounded_form_is_requantization_to_the_ends_of_int32() -> None:
    rng = np.random.default_rng(11)
    plain = make_op(Shape("FULLY_CONNECTED", 1, 1, 6, 3, per_channel=False), rng)
    fit = 0
    for _ in range(2000):
        shift = int(rng.integers(20, 31) if rng.random() < 0.7 else rng.integers(-2, 32))
        scale, zero_point = rng.uniform(0.5, 1) * 2.0**-shift, int(rng.choice([-128, 127, rng.integers(-128, 128)]))
        # where the output steps, near the ends of its own range or of the accumulator's
        last = min(300, int(2**31 * scale))
        steps = (rng.choice([-1, 1], 3) * (last - 0.5 - rng.integers(0, max(1, last // 8) + 1, 3))) / scale
        bias = np.clip(steps, 2**14 - 2**31, 2**31 - 2**14).astype(np.int64)
        x = replace(plain.input, quant=Quant((scale * 2.0**10,), (int(rng.integers(-128, 128)),)))
        w = replace(
            plain.inputs[1], data=rng.integers(-127, 128, (3, 6)).astype(np.int8), quant=Quant((2.0**-10,), (0,))
        )
        y = replace(plain.output, quant=Quant((1.0,), (zero_point,)))
        op = _with_bias(replace(plain, inputs=(x, w, plain.inputs[2]), outputs=(y,)), bias.tolist())
        layer = bounded(op)
        if layer is None:
            continue
        fit += 1
        facts, (low, high), (multipliers, shifts) = layer_facts(op), clamp_range(op), channel_multipliers(op)
        for channel, (least, most) in enumerate(zip(facts.least, facts.most, strict=True)):
            accumulators = np.array([least, most, *rng.integers(least, most + 1, 20)], np.int64)
            scaled = multiply_by_quantized_multiplier(accumulators, multipliers[channel], shifts[channel])
            wanted = np.clip(scaled + zero_point, low, high)
            found = np.clip(_bounded_outputs(layer, channel, accumulators, zero_point), low, high)
            assert found.tolist() == wanted.tolist(), (str(op), channel)
    assert fit > 500


@given(
    st.integers(2**30, 2**31 - 1) | st.sampled_from([0, 2**30, 2**31 - 1]),
    st.integers(-6, 31) | st.integers(0, 10),
    st.integers(-128, 127),
    st.integers(-(2**31), 2**31 - 1) | st.integers(-5000, 5000),
    st.integers(0, 2**32 - 1) | st.integers(0, 10_000),
)
def test_each_output_begins_where_the_requantization_says(
    multiplier: int, right: int, zero_point: int, least: int, span: int
) -> None:
    """The least accumulator that gives at least so much, and the one before it, in TFLM's two roundings."""
    largest = (2**31 - 1) >> max(-right, 0)  # no left shift wraps
    least = max(min(least, largest), -largest)
    most, outputs = min(least + span, largest), np.arange(-127, 128)
    ends, scale = (np.array([least]), np.array([most])), (np.array([multiplier]), np.array([-right]))
    (steps,) = output_thresholds(*ends, *scale, zero_point, outputs)
    assert ((least <= steps) & (steps <= most + 1)).all()
    there, before = (multiply_by_quantized_multiplier(x, multiplier, -right) + zero_point for x in (steps, steps - 1))
    assert (there >= outputs)[steps <= most].all()
    assert (before < outputs)[steps > least].all()
