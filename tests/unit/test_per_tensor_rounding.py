"""Per-tensor single rounding: every accumulator gives TensorFlow Lite Micro's output."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conv_cases import Shape, make_op

from tinyfuse.ir.fixedpoint import multiply_by_quantized_multiplier
from tinyfuse.kernels.layers.int8_dsp.dense_five_outputs import SHIFT
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.per_tensor_rounding import per_tensor_rounding
from tinyfuse.ops.core.convolution import channel_multipliers, clamp_range


def outputs_of_line(line, accumulators):
    sums = 256 * accumulators + line.bias
    assert (np.abs(sums) < 2**31).all()
    high = (sums * line.multiplier) >> 32
    if line.bend:
        steady = line.steady and line.shift == SHIFT
        assert line.steady == bool((np.abs(sums) < 2**29).all())
        high += line.rounding & ~((sums & 0xFFFFFFFF) >> 29) if steady else line.rounding - (sums < 0)
    return np.clip(high >> line.shift, -128, 127)


@pytest.mark.parametrize("activation", ("NONE", "RELU", "RELU6", "RELU_N1_TO_1"))
def test_every_accumulator_has_its_output(activation: str) -> None:
    rng, found = np.random.default_rng(5), []
    for _ in range(20):
        op = make_op(Shape("FULLY_CONNECTED", 1, 1, 32, 4, activation=activation, per_channel=False), rng)
        scale = tuple(scale * 2.0 ** rng.uniform(-3, 3) for scale in op.output.quant.scale)
        quant = replace(op.output.quant, scale=scale, zero_point=(int(rng.integers(-128, 128)),))
        op = replace(op, outputs=(replace(op.output, quant=quant),))
        line = per_tensor_rounding(op, SHIFT)
        if line is None:
            continue
        facts = layer_facts(op)
        least, most = facts.least, facts.most
        accumulators = np.arange(least.min(), most.max() + 1)
        multipliers, shifts = channel_multipliers(op)
        expected = multiply_by_quantized_multiplier(accumulators, multipliers[0], shifts[0]) + op.output.zero_point
        given = outputs_of_line(line, accumulators)
        assert (np.clip(given, *clamp_range(op)) == np.clip(expected, *clamp_range(op))).all()
        found.append(line.bend)
    assert len(found) >= 15
    assert (0 in found) == (activation != "NONE")


def test_scales_that_differ_have_none() -> None:
    shape = Shape("FULLY_CONNECTED", 1, 1, 32, 4, per_channel=True)
    assert per_tensor_rounding(make_op(shape, np.random.default_rng(5)), SHIFT) is None
