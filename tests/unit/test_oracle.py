"""Chooses the reference interpreter: interpreters may abort, and fallbacks are reported."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from onnx_networks import onnx_network
from real_models import REAL_MODELS
from tflite_builder import ModelBuilder

from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.frontend.read_model import read_model
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op, Quant, Tensor
from tinyfuse.ops.core.family import OpFamily
from tinyfuse.verify import oracle as oracle_module
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import make_oracle

INTERPRETERS = ["tflm", "litert"]


def add_and_relu(shape=(1, 2, 3, 4), **fields) -> bytes:
    """Inputs a, b; outputs a + b (with half the resolution) and relu(b)."""
    model = ModelBuilder()
    a = model.tensor("a", shape, scale=0.5, zero_point=1, **fields)
    b = model.tensor("b", shape, scale=0.5, zero_point=-1, **fields)
    total = model.tensor("a + b", shape, scale=1.0, zero_point=0, **fields)
    positive = model.tensor("relu(b)", shape, scale=0.5, zero_point=-1, **fields)
    model.op("ADD", [a, b], [total])
    model.op("RELU", [b], [positive])
    return model.build([a, b], [total, positive])


def broken_shapes() -> bytes:
    """A model on which TFLM aborts, and for which LiteRT computes another shape than the file's."""
    model = ModelBuilder()
    a, b = (model.tensor(name, (1, 4), scale=0.5, zero_point=0) for name in "ab")
    y = model.tensor("y", (1, 7), scale=0.5, zero_point=0)
    model.op("ADD", [a, b], [y])
    return model.build([a, b], [y])


@pytest.mark.slow
@pytest.mark.parametrize("kind", INTERPRETERS)
@pytest.mark.parametrize(
    "data",
    [
        add_and_relu(),
        add_and_relu(shape_signature=(-1, 2, 3, 4)),
        add_and_relu(shape=(1, 90, 90, 40)),  # activations far larger than the file
    ],
    ids=["small", "dynamic batch", "large"],
)
def test_interpreters_run_many_inputs(kind, data):
    graph = read_tflite("m.tflite", data)
    oracle = make_oracle(kind, data, graph)
    inputs = input_set(graph, 4, seed=0)
    outputs = oracle.run_all(inputs)
    for (a, b), (total, positive) in zip(inputs, outputs, strict=True):
        real = (a.astype(int) - 1 + b + 1) / 2  # halves away from zero
        rounded = np.sign(real) * np.floor(np.abs(real) + 0.5)
        assert np.array_equal(total, np.clip(rounded, -128, 127).astype(np.int8))
        assert np.array_equal(positive, np.maximum(b, -1))
    assert all(np.array_equal(x, y) for x, y in zip(oracle.run(inputs[2]), outputs[2], strict=True))
    assert (oracle.name, oracle.warnings) == (kind, ()) and oracle.version[0].isdigit()


def test_a_model_that_aborts_the_interpreter(monkeypatch):
    data = broken_shapes()
    graph = read_tflite("m.tflite", data)
    with pytest.raises(UsageError, match="tflm can't run this model: .*killed by signal 6"):
        make_oracle("tflm", data, graph)
    with pytest.raises(UsageError, match=r"litert computes int8\[1, 4\] for the output tensor 2 'y'"):
        make_oracle("litert", data, graph)
    oracle = make_oracle("auto", data, graph)
    assert oracle.name == "reference"
    assert "unproven: compared with our own reference alone: tflm can't run" in oracle.warnings[0]


def test_auto_takes_litert_only_where_tflm_can_not_run_the_model():
    model = ModelBuilder()
    x, y = (model.tensor(name, (1, 4), scale=0.5, zero_point=0) for name in "xy")
    model.op("RELU_0_TO_1", [x], [y])
    data = model.build([x], [y])
    oracle = make_oracle("auto", data, read_tflite("m.tflite", data))
    assert oracle.name == "litert"
    assert "Didn't find op for builtin opcode 'RELU_0_TO_1'" in oracle.warnings[0]
    data = add_and_relu()
    oracle = make_oracle("auto", data, read_tflite("m.tflite", data))
    assert (oracle.name, oracle.warnings) == ("tflm", ())


def without(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    """Simulates an environment without these modules."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n in missing else find_spec(n))


def one_operator(kind: str, dtype: str = "int8", **options) -> bytes:
    model = ModelBuilder()
    zero_point = 128 if dtype == "uint8" else 0
    x, y = (model.tensor(name, (1, 4), dtype, scale=0.5, zero_point=zero_point) for name in "xy")
    model.op(kind, [x], [y], **options)
    return model.build([x], [y])


@pytest.mark.parametrize(
    "kind, data, missing, package",
    [
        ("tflm", add_and_relu(), "tflite_micro", r"--pre tflite-micro.*\[verify\]"),
        ("auto", add_and_relu(), "tflite_micro", r"--pre tflite-micro.*\[verify\]"),
        ("litert", add_and_relu(), "ai_edge_litert", r"ai-edge-litert.*\[litert\]"),
        ("auto", one_operator("RELU_0_TO_1"), "ai_edge_litert", r"ai-edge-litert.*\[litert\]"),
        ("auto", one_operator("SOFTMAX", "uint8", beta=1.0), "ai_edge_litert", r"ai-edge-litert.*\[litert\]"),
    ],
)
def test_nobody_takes_the_place_of_a_missing_interpreter(monkeypatch, kind, data, missing, package):
    without(monkeypatch, missing)
    with pytest.raises(ToolMissing, match=f"pip install {package}") as error:
        make_oracle(kind, data, read_tflite("m.tflite", data))
    assert error.value.exit_code == 3


def test_uint8_models_need_litert_alone(monkeypatch):
    without(monkeypatch, "tflite_micro")
    data = one_operator("SOFTMAX", "uint8", beta=1.0)
    assert make_oracle("auto", data, read_tflite("m.tflite", data)).name == "litert"


def test_litert_does_not_say_what_tflm_would_scale_otherwise(monkeypatch):
    """A FULLY_CONNECTED of int8 rounds twice in TFLM, once in LiteRT."""
    model = ModelBuilder()
    x, y, z = (model.tensor(name, (1, 4), scale=0.5, zero_point=0) for name in "xyz")
    w = model.tensor("w", (4, 4), scale=0.1, zero_point=0, data=np.eye(4, dtype=np.int8))
    model.op("FULLY_CONNECTED", [x, w], [y])
    model.op("GELU", [y], [z], approximate=False)
    data = model.build([x], [z])
    graph = read_tflite("m.tflite", data)
    assert make_oracle("auto", data, graph).name == "tflm"  # and LiteRT for the second alone
    monkeypatch.setattr(oracle_module, "pieces", lambda graph: [])
    oracle = make_oracle("auto", data, graph)
    assert oracle.name == "reference" and "litert rounds otherwise: op 0 FULLY_CONNECTED" in oracle.warnings[0]


def test_reference_runs_the_graph(monkeypatch):
    """x * 2 + 1 by two operators, one with a constant and an absent input."""

    class Twice(OpFamily):
        kind = "TWICE"

        def reference(self, op, x):
            return (x * np.int8(2),)

    class Plus(OpFamily):
        kind = "PLUS"

        def reference(self, op, x, nothing, constant):
            assert nothing is None
            return (x + constant,)

    from tinyfuse.ops import FAMILIES

    monkeypatch.setitem(FAMILIES, "TWICE", Twice())
    monkeypatch.setitem(FAMILIES, "PLUS", Plus())
    x, twice, y = (Tensor(name, (3,), "int8", Quant((1.0,), (0,))) for name in "xty")
    one = Tensor("one", (3,), "int8", Quant((1.0,), (0,)), data=np.ones(3, np.int8))
    ops = (Op("TWICE", (x,), (twice,)), Op("PLUS", (twice, None, one), (y,)))
    oracle = make_oracle("reference", b"", Graph("m", "", ops, (x,), (y, one)))
    outputs = oracle.run([np.array([1, 2, 3], np.int8)])
    assert [o.tolist() for o in outputs] == [[3, 5, 7], [1, 1, 1]]


def test_unknown_oracle():
    with pytest.raises(
        UsageError,
        match="unknown oracle 'tfl'; known: auto, tflm, litert, onnxruntime, executorch, cmsis-nn, reference",
    ):
        make_oracle("tfl", b"", Graph("m", "", (), (), ()))


@pytest.mark.slow
@pytest.mark.parametrize("path", REAL_MODELS)
def test_real_models_run_on_tflm(path):
    data = path.read_bytes()
    graph = read_tflite(path, data)
    oracle = make_oracle("auto", data, graph)
    assert (oracle.name, oracle.warnings) == ("tflm", ())
    (outputs,) = oracle.run_all(input_set(graph, 1, seed=0))
    assert [o.shape for o in outputs] == [t.shape for t in graph.outputs]


def test_an_onnx_file_is_judged_by_onnxruntime() -> None:
    """Its bytes were read as a flatbuffer: every `verify` of one ended in a fault."""
    pytest.importorskip("onnxruntime")
    data = onnx_network(3).data
    graph = read_model("model.onnx", data)
    oracle, inputs = make_oracle("auto", data, graph), input_set(graph, 2, seed=0)
    assert oracle.name == "onnxruntime"
    for theirs, ours in zip(oracle.run_all(inputs), make_oracle("reference", data, graph).run_all(inputs), strict=True):
        for wanted, found in zip(theirs, ours, strict=True):
            np.testing.assert_array_equal(wanted, found)


def test_interpreters_are_of_the_file_s_format() -> None:
    """What came of it was told as offsets in a buffer."""
    data = onnx_network(3).data
    for kind in INTERPRETERS:
        with pytest.raises(UsageError, match=f"{kind} can't run this model: it is a .onnx file"):
            make_oracle(kind, data, read_model("model.onnx", data))
    with pytest.raises(UsageError, match="onnxruntime can't run this model: it is a .tflite file"):
        make_oracle("onnxruntime", add_and_relu(), read_tflite("m.tflite", add_and_relu()))
