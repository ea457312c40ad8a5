"""Layers whose weights, bias or both are computed at run time: every kind, dtype and padding, batches, groups and
dilations, against TensorFlow Lite Micro."""

from __future__ import annotations

import numpy as np
import pytest
from computed_layer_models import CONV, MODELS, Layer
from executors import assert_all_exact, assert_reference_is_tflm, plan_of

from tinyfuse.errors import CompileError


@pytest.mark.parametrize("name", MODELS)
def test_references_are_tflms(name: str) -> None:
    assert_reference_is_tflm(MODELS[name])


_MORE = [pytest.param(target, marks=pytest.mark.campaign) for target in ("cortex-m0plus", "cortex-m55")]


@pytest.mark.parametrize("target", ["host", "cortex-m4", *_MORE])
def test_modules_are_exact(target: str) -> None:
    assert_all_exact([plan_of(data, target, f"net{i}") for i, data in enumerate(MODELS.values())])


def test_a_zero_point_of_computed_weights_is_refused() -> None:
    """TFLM's convolutions leave it out."""
    layer = Layer("int8", "xw")
    x = layer.operand("x", (1, 4, 4, 2), "int8", 0.1, 3)
    w = layer.operand("w", (2, 1, 1, 2), "int8", 0.1, 7)
    y = layer.model.tensor("y", (1, 4, 4, 2), "int8", 0.1, 0)
    layer.model.op("CONV_2D", [x, w], [y], **CONV)
    with pytest.raises(CompileError, match=r"CONV_2D 'y'.*quantized weights have zero point 0"):
        plan_of(layer.model.build(layer.inputs, [y]))


def test_a_bias_of_a_dtype_that_none_has_is_refused() -> None:
    """With computed weights: a constant bias of zeros in that dtype is refused too."""
    layer = Layer("int8", "xw")
    x, w = (layer.operand(letter, (2, 1, 1, 2), "int8", 0.1) for letter in "xw")
    b = layer.model.tensor("b", (2,), "int4", 0.01, 0, data=np.zeros(2, np.int8))
    y = layer.model.tensor("y", (2, 1, 1, 2), "int8", 0.1, 0)
    layer.model.op("CONV_2D", [x, w, b], [y], **CONV)
    with pytest.raises(CompileError, match="CONV_2D 'y': tensor 4 'b' int4.*: the bias is absent"):
        plan_of(layer.model.build(layer.inputs, [y]))
