"""The operator families but the convolutions': numpy references against TFLM's interpreter, options
read back from files, and rules. Their C is in kernels/test_op_kernels.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import NAMED, RANDOM
from cases.common import broken_rules, inputs_of, model_of, reference, seeds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tinyfuse.ir import Op, Quant
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.activations import LeakyRelu
from tinyfuse.ops.binary import Binary
from tinyfuse.ops.concatenation import Concatenation
from tinyfuse.ops.mean import Reducer
from tinyfuse.ops.pooling import Pool2D
from tinyfuse.ops.softmax import Softmax
from tinyfuse.tflite_reader import read_tflite

_NAMED = [pytest.param(op, id=f"{kind}-{name}") for kind, ops in NAMED.items() for name, op in ops.items()]


def assert_reference_is_tflm(op: Op, seed: int = 0) -> None:
    runtime = pytest.importorskip("tflite_micro.python.tflite_micro.runtime")
    assert broken_rules(op) == []
    interpreter = runtime.Interpreter.from_bytes(model_of(op), arena_size=1 << 20)
    for inputs in inputs_of(op, seed):
        for index, data in enumerate(inputs):
            interpreter.set_input(data, index)
        interpreter.invoke()
        got, wanted = reference(op, inputs), interpreter.get_output(0)
        assert (got.dtype, got.shape) == (op.output.dtype, op.output.shape)
        # bytes: floats too, the sign of zero included
        np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8), err_msg=f"{op} {op.attributes}")


@pytest.mark.parametrize("op", _NAMED)
def test_reference_equals_tflm(op: Op) -> None:
    assert_reference_is_tflm(op)


@pytest.mark.parametrize("kind", RANDOM)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_reference_equals_tflm(kind: str, data) -> None:
    assert_reference_is_tflm(data.draw(RANDOM[kind]), data.draw(seeds))


@pytest.mark.parametrize("op", _NAMED)
def test_options_are_read_back(op: Op) -> None:
    graph = read_tflite("model.tflite", model_of(op))
    assert (graph.ops[0].kind, graph.ops[0].attributes) == (op.kind, op.attributes)


def test_absent_options_take_the_schemas_defaults() -> None:
    absent = {kind: FAMILIES[kind].attributes({}) for kind in NAMED}
    assert absent["AVERAGE_POOL_2D"] == Pool2D("SAME", (0, 0), (0, 0)) == absent["MAX_POOL_2D"]
    assert absent["ADD"] == Binary("NONE") == absent["MUL"]
    assert absent["SOFTMAX"] == Softmax(0.0)
    assert absent["MEAN"] == Reducer(False)
    assert absent["LEAKY_RELU"] == LeakyRelu(0.0)
    assert absent["CONCATENATION"] == Concatenation(0, "NONE")
    assert absent["PAD"] is absent["RELU"] is absent["QUANTIZE"] is absent["RESHAPE"] is None


# --- rules -----------------------------------------------------------------------------------


def _case(kind: str) -> Op:
    return next(iter(NAMED[kind].values()))


def _input(kind: str, index: int = 0, **changes) -> Op:
    """A case whose input `index` has some fields changed."""
    op = _case(kind)
    inputs = list(op.inputs)
    inputs[index] = replace(inputs[index], **changes)
    return replace(op, inputs=tuple(inputs))


def _output(kind: str, **changes) -> Op:
    op = _case(kind)
    return replace(op, outputs=(replace(op.output, **changes),))


def _attributes(kind: str, **changes) -> Op:
    op = _case(kind)
    return replace(op, attributes=replace(op.attributes, **changes))


def _axes(*axes: int) -> Op:
    return _input("MEAN", 1, data=np.array(axes, np.int32), shape=(len(axes),))


_PER_CHANNEL = Quant((0.1,) * 5, (0,) * 5, 3)
_UNARY_KINDS = ("RELU", "RELU6", "LOGISTIC", "TANH", "LEAKY_RELU", "HARD_SWISH", "ELU", "ABS", "RSQRT")
_INT8_KINDS = (*_UNARY_KINDS, "ADD", "MUL", "AVERAGE_POOL_2D", "MAX_POOL_2D", "PAD", "MEAN", "CONCATENATION")


@pytest.mark.parametrize(
    ("op", "message"),
    [
        *((_input(kind, dtype="int16"), "int8") for kind in _INT8_KINDS),
        *((_output(kind, quant=None), "scale") for kind in NAMED if kind not in ("DEQUANTIZE", "RESHAPE")),
        *((replace(_case(kind), inputs=()), "input") for kind in NAMED),
        *((replace(_case(kind), inputs=(None, None)), "input") for kind in NAMED),
        *((replace(_case(kind), outputs=()), "one output") for kind in NAMED),
        (_input("ADD", quant=_PER_CHANNEL), "one scale"),
        *((_input(kind, quant=_PER_CHANNEL), "one scale") for kind in _UNARY_KINDS),
        *((_output(kind, shape=(4, 8, 8)), "one shape") for kind in _UNARY_KINDS),
        (_input("RELU", quant=Quant((3e38,), (0,))), "below 2^21 times"),
        *((_output(kind, quant=Quant((1e-45,), (0,))), "below 2^21 times") for kind in ("RELU", "LEAKY_RELU", "ELU", "ABS")),
        (_attributes("LEAKY_RELU", alpha=3e6), "alpha times"),
        (_attributes("LEAKY_RELU", alpha=float("nan")), "alpha times"),
        (_output("HARD_SWISH", quant=Quant((1e-5,), (0,))), "at most 128 times"),
        (_output("HARD_SWISH", quant=Quant((1e5,), (0,))), "from 2^-9 times"),
        (_input("HARD_SWISH", quant=Quant((1e-8,), (0,))), "from 2^-9 times"),
        (_output("ELU", quant=Quant((1e-7,), (0,))), "above 2^-21"),
        (_output("TANH", quant=Quant((1 / 128,), (-128,))), "1/128"),
        (_input("TANH", quant=Quant((1e10,), (0,))), "to 2^30"),
        (_input("RSQRT", quant=Quant((1.0,), (-127,))), "zero point is -128"),
        (_output("RSQRT", quant=Quant((1e-30,), (0,))), "above 2^-30"),
        (_input("RELU6", quant=Quant((1e-9,), (0,))), "above 2^-28"),
        (_output("LOGISTIC", quant=Quant((1 / 256,), (0,))), "1/256"),
        (_output("LOGISTIC", quant=Quant((1 / 128,), (-128,))), "1/256"),
        (_input("LOGISTIC", quant=Quant((1e-9,), (0,))), "from 2^-28"),
        (_input("LOGISTIC", quant=Quant((1e10,), (0,))), "to 2^30"),
        (_input("ADD", shape=(1, 3, 4, 2)), "broadcast"),
        (_output("ADD", shape=(1, 3, 4, 6)), "broadcast"),
        (_output("ADD", quant=Quant((1e-9,), (0,))), "above 2^-19"),
        (_attributes("MUL", activation="TANH"), "fused activation"),
        (_output("MUL", quant=Quant((1e-9,), (0,))), "below 2^15"),
        (_input("AVERAGE_POOL_2D", shape=(6, 8, 5)), "rank 4"),
        (_input("AVERAGE_POOL_2D", shape=(2, 6, 8, 5)), "batch is 1"),
        (_attributes("AVERAGE_POOL_2D", stride=(0, 1)), "from 1"),
        (_attributes("MAX_POOL_2D", filter=(1 << 20, 1)), "to 32767"),
        (_attributes("MAX_POOL_2D", filter=(9, 1)), "extents"),
        (_output("MAX_POOL_2D", quant=Quant((0.1,), (3,))), "same scale"),
        (_output("MAX_POOL_2D", shape=(1, 3, 4, 6)), "extents"),
        (_attributes("MAX_POOL_2D", activation="SIGN_BIT"), "fused activation"),
        (_input("PAD", 1, data=None), "constant"),
        (_input("PAD", 1, shape=(2, 4), data=np.zeros((2, 4), np.int32)), "constant [rank, 2]"),
        (_input("PAD", 1, data=np.full((4, 2), -1, np.int32)), "from 0"),
        (_output("PAD", shape=(1, 3, 4, 5)), "padded shape"),
        (_input("MEAN", 1, data=None), "constant int32"),
        (_axes(4), "one of the input's"),
        (_axes(-5), "one of the input's"),
        (_axes(1), "without the reduced"),
        (_attributes("MEAN", keep_dims=True), "without the reduced"),
        (_output("MEAN", quant=Quant((1e-9,), (0,))), "fits 30 bits"),
        (_input("CONCATENATION", 1, quant=Quant((0.1,), (4,))), "scale and zero point"),
        (_input("CONCATENATION", 1, shape=(1, 3, 5, 7)), "shapes agree"),
        (_output("CONCATENATION", shape=(1, 3, 4, 8)), "shapes agree"),
        (_attributes("CONCATENATION", axis=4), "axis"),
        (_attributes("CONCATENATION", axis=-5), "axis"),
        (_attributes("CONCATENATION", activation="RELU"), "no fused activation"),
        (_input("RESHAPE", 1, data=None), "shape is constant"),
        (_output("RESHAPE", shape=(1, 61)), "number of elements"),
        (_output("RESHAPE", dtype="uint8"), "one dtype"),
        (_output("RESHAPE", quant=Quant((0.2,), (3,))), "same quantization"),
        (_output("QUANTIZE", dtype="uint8"), "dtypes"),
        (_output("QUANTIZE", shape=(1, 5, 8, 9)), "one shape"),
        (_output("DEQUANTIZE", dtype="int8"), "dtypes"),
        (_input("DEQUANTIZE", quant=None), "one scale"),
        (_output("SOFTMAX", dtype="uint8"), "int8 or int16"),
        (_output("SOFTMAX", quant=Quant((1 / 128,), (-128,))), "1/256"),
        (_output("SOFTMAX", shape=(10, 1)), "one shape"),
        (_attributes("SOFTMAX", beta=0.0), "above 2^-26"),
        (_attributes("SOFTMAX", beta=float("nan")), "above 2^-26"),
    ],
)  # fmt: skip
def test_rules(op: Op, message: str) -> None:
    found = broken_rules(op)
    assert found and message in found[0], found
