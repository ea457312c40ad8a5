"""Weights in flash take at most 2 % more bytes than the model's, unless options ask for more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conv_cases import Shape, make_op, model_of
from executors import assert_exact, plan_of
from random_graphs import Sketch


@pytest.mark.parametrize("target", ("cortex-m0plus", "cortex-m4", "cortex-m55"))
@pytest.mark.parametrize(("inputs", "outputs"), ((128, 128), (640, 128), (128, 640), (100, 72)))
def test_fully_connected_layers_with_one_scale_grow_by_two_percent_at_most(
    inputs: int, outputs: int, target: str
) -> None:
    op = make_op(Shape("FULLY_CONNECTED", 1, 1, inputs, outputs, per_channel=False), np.random.default_rng(1))
    plan = plan_of(model_of(op), target)
    assert plan.weight_bytes <= 1.02 * (inputs * outputs + 4 * outputs)


@pytest.mark.parametrize("target", ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55"))
@pytest.mark.parametrize("outputs", (1, 2, 3, 5, 7, 9))
def test_few_outputs_of_a_fully_connected_layer_are_not_filled_up(outputs: int, target: str) -> None:
    shape = Shape("FULLY_CONNECTED", 1, 1, 640, outputs, per_channel=True)
    plan = plan_of(model_of(make_op(shape, np.random.default_rng(1))), target)
    assert plan.weight_bytes <= 640 * outputs + 12 * outputs
    assert_exact(plan, runs=4)


@pytest.mark.parametrize("outputs", (1, 3, 7, 8, 9, 15))
@pytest.mark.parametrize("layer", ("dense", "conv"))
def test_layers_of_floats_are_filled_up_by_seven_weights_at_most(layer: str, outputs: int) -> None:
    s = Sketch(outputs, dtype="float32")
    image = s.value((1, 4, 4, 24))
    y = s.conv(image, outputs, (3, 3)) if layer == "conv" else s.fully_connected(image, outputs)
    plan = plan_of(s.build([image], [y]), "cortex-m4")
    terms = 9 * 24 if layer == "conv" else 16 * 24
    assert plan.weight_bytes <= 4 * (terms * outputs + outputs + 7)
    assert_exact(plan, runs=4)


@pytest.mark.parametrize("target", ("cortex-m4", "cortex-m55"))
def test_so_do_those_with_dead_outputs(target: str) -> None:
    """A bias far below what the inputs can add: RELU gives the zero point whatever comes in."""
    rng = np.random.default_rng(2)
    op = make_op(Shape("FULLY_CONNECTED", 1, 1, 128, 128, per_channel=False, activation="RELU"), rng)
    x, weights, bias = op.inputs
    data = bias.data.copy()
    data[[3, 40, 127]] = -(1 << 22)
    op = replace(op, inputs=(x, weights, replace(bias, data=data)))
    plan = plan_of(model_of(op), target)
    assert plan.weight_bytes <= 1.02 * (128 * 128 + 4 * 128)
    assert_exact(plan, runs=4)
