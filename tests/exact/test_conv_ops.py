"""CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED: the numpy references against TFLM's interpreter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases.common import broken_rules
from conv_cases import FAMILIES, Shape, make_op, model_of, random_input, tflm_cases

from tinyfuse.ir import Op, Quant


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_reference_equals_tflm(kind: str, extreme: bool, weights: str) -> None:
    runtime = pytest.importorskip("tflite_micro.python.tflite_micro.runtime")
    cases = tflm_cases(kind, extreme, weights)
    assert len(cases) > 30
    for op, inputs in cases:
        interpreter = runtime.Interpreter.from_bytes(model_of(op), arena_size=1 << 18)
        for data in inputs:
            interpreter.set_input(data, 0)
            interpreter.invoke()
            (got,) = FAMILIES[kind].reference(op, data, *(t and t.data for t in op.inputs[1:]))
            assert got.dtype == np.int8 and got.shape == op.output.shape
            np.testing.assert_array_equal(got, interpreter.get_output(0), err_msg=str(op))


def test_explicit_padding_equals_same() -> None:
    rng = np.random.default_rng(3)
    op = make_op(Shape("CONV_2D", 7, 6, 3, 4, (3, 4), (2, 1)), rng)
    explicit = replace(op, attributes=replace(op.attributes, padding=(1, 1, 1, 2)))
    data = random_input(op, rng)
    family = FAMILIES["CONV_2D"]
    assert not broken_rules(explicit)
    arguments = (data, *(t.data for t in op.inputs[1:]))
    np.testing.assert_array_equal(family.reference(op, *arguments)[0], family.reference(explicit, *arguments)[0])


def test_narrowed_clamp() -> None:
    rng = np.random.default_rng(4)
    op = make_op(Shape("FULLY_CONNECTED", 1, 1, 20, 9), rng)
    narrow = replace(op, attributes=replace(op.attributes, clamp=(-5, 9)))
    arguments = (random_input(op, rng), *(t.data for t in op.inputs[1:]))
    wide = FAMILIES[op.kind].reference(op, *arguments)[0]
    np.testing.assert_array_equal(FAMILIES[op.kind].reference(narrow, *arguments)[0], np.clip(wide, -5, 9))


def test_absent_options_take_the_schemas_defaults() -> None:
    assert FAMILIES["CONV_2D"].attributes({}).padding == "SAME"
    assert FAMILIES["CONV_2D"].attributes({}).stride == (0, 0)
    assert FAMILIES["DEPTHWISE_CONV_2D"].attributes({}).depth_multiplier == 0
    assert FAMILIES["FULLY_CONNECTED"].attributes({}).activation == "NONE"


def _case(kind: str = "CONV_2D") -> Op:
    return make_op(Shape(kind, 6, 6, 4, 4, (3, 3)), np.random.default_rng(5))


def _with_input(op: Op, index: int, **fields) -> Op:
    inputs = list(op.inputs)
    inputs[index] = replace(inputs[index], **fields)
    return replace(op, inputs=tuple(inputs))


def _with_attributes(op: Op, **fields) -> Op:
    return replace(op, attributes=replace(op.attributes, **fields))


def _with_output_scale(op: Op, scale: float) -> Op:
    """The operator with another output scale and the same multipliers: the input's scale changes by the same factor."""
    data = replace(op.input, quant=Quant((op.input.scale * scale / op.output.scale,), (op.input.zero_point,)))
    output = replace(op.output, quant=Quant((scale,), (op.output.zero_point,)))
    return replace(op, inputs=(data, *op.inputs[1:2]), outputs=(output,))


def _tall_filter() -> Op:
    """A filter with the greatest dilation and so many rows that row numbers exceed 32 bits."""
    op = make_op(Shape("CONV_2D", 1, 1, 1, 1, (65536, 1)), np.random.default_rng(5))
    return _with_attributes(op, padding="SAME", dilation=(32767, 1))


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (_with_input(_case(), 0, dtype="int16"), "int8"),
        (_with_input(_case(), 0, dtype="float32"), "int8"),
        (_with_input(_case(), 0, quant=None), "one scale and one zero point"),
        (_with_input(_case(), 1, data=None, dtype="int16"), "weights, constant or computed, are int8"),
        (_with_input(_case(), 1, data=None, dtype="int4"), "weights, constant or computed, are int8"),
        (_with_input(_case(), 1, quant=None), "weights have zero point 0"),
        (_with_input(_case(), 1, quant=Quant((0.1,), (3,))), "weights have zero point 0"),
        (_with_input(_case(), 1, quant=Quant((0.1,) * 3, (0,) * 3)), "one per index of dimension 0"),
        (_with_input(_case(), 1, quant=Quant((float("nan"),), (0,))), "positive and finite"),
        (_with_input(_case(), 2, dtype="int64"), "the bias is absent"),
        (_with_input(_case(), 2, data=None, shape=(2,)), "the bias is absent"),
        (_with_input(_case(), 0, shape=(2, 6, 6, 4)), "the input's batch"),
        (_with_input(_case(), 0, shape=(1, 6, 6, 3)), "filter channels * groups"),
        (_with_input(_case(), 0, shape=(1, 9, 6, 4)), "rows and columns"),
        (_with_input(_case("DEPTHWISE_CONV_2D"), 0, shape=(1, 6, 6, 2)), "depth multiplier"),
        (_with_input(_case("FULLY_CONNECTED"), 0, shape=(6, 5)), "whole batches"),
        (_with_input(_case("FULLY_CONNECTED"), 2, quant=Quant((9.0,), (0,))), None),
        (_with_attributes(_case(), stride=(0, 1)), "strides and dilations are from 1"),
        *((_with_attributes(_case(kind), padding="SAME", dilation=(1, 2_000_000_000)), "dilations are from 1 to 32767")
          for kind in ("CONV_2D", "DEPTHWISE_CONV_2D")),
        (_tall_filter(), "before row and column 2^30"),
        (_with_attributes(_case(), activation="TANH"), "fused activation"),
        *((_with_output_scale(_with_attributes(_case(kind), activation=activation), 2.0**-28), "above 2^-28")
          for kind in ("CONV_2D", "FULLY_CONNECTED") for activation in ("RELU6", "RELU_N1_TO_1")),
        (replace(_case(), inputs=_case().inputs[:1]), "two or three inputs"),
    ],
)  # fmt: skip
def test_rules(op: Op, message: str | None) -> None:
    found = broken_rules(op)
    if message is None:  # per-channel weights: the bias scale isn't looked at
        assert found == []
    else:
        assert found and message in found[0], found


def test_bias_scale_rule_of_fully_connected() -> None:
    op = make_op(Shape("FULLY_CONNECTED", 1, 1, 8, 3, per_channel=False), np.random.default_rng(6))
    assert broken_rules(op) == []
    assert "bias has the scale" in broken_rules(_with_input(op, 2, quant=Quant((9.0,), (0,))))[0]
