"""The operator families but the convolutions': numpy references against TFLM's interpreter, options
read back from files, and rules. Their C is in kernels/test_op_kernels.py."""

from __future__ import annotations

import numpy as np
import pytest
from cases import NAMED, RANDOM
from cases.common import broken_rules, inputs_of, model_of, reference, seeds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tinyfuse.ir import Op
from tinyfuse.ops import FAMILIES
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


@pytest.mark.parametrize("kind", NAMED)
def test_absent_options_take_the_schemas_defaults(kind: str) -> None:
    assert FAMILIES[kind].attributes({}) == FAMILIES[kind].attributes({}), "must not need any field"
