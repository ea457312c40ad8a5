"""Weights in flash against those of the model: at most 2 % more, unless asked."""

from __future__ import annotations

import numpy as np
import pytest
from conv_cases import Shape, make_op, model_of
from executors import plan_of


@pytest.mark.parametrize("target", ("cortex-m0plus", "cortex-m4", "cortex-m55"))
@pytest.mark.parametrize(("inputs", "outputs"), ((128, 128), (640, 128), (128, 640), (100, 72)))
def test_fully_connected_layers_with_one_scale_grow_by_two_percent_at_most(
    inputs: int, outputs: int, target: str
) -> None:
    op = make_op(Shape("FULLY_CONNECTED", 1, 1, inputs, outputs, per_channel=False), np.random.default_rng(1))
    plan = plan_of(model_of(op), target)
    assert plan.weight_bytes <= 1.02 * (inputs * outputs + 4 * outputs)
