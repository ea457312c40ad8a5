"""Files whose weights are stored as integers or float16 become float32 models with a signature and names."""

from __future__ import annotations

import numpy as np
import pytest
from float_networks import random_network
from tflite_builder import ModelBuilder
from weight_forms import FORMS, dense_network

from tinyfuse.errors import CompileError
from tinyfuse.frontend.flatbuffer_table import root
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.frontend.schema import TABLES, enumerators
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.program.interpret import run_graph
from tinyfuse.quantization.convert import read_float_model
from tinyfuse.quantization.float_file import float_file
from tinyfuse.verify.oracle import InterpreterOracle


@pytest.mark.parametrize("form", FORMS)
def test_weights_become_float32(form):
    data, meant = dense_network(form)
    found = float_file("net.tflite", data)
    graph = read_tflite("net.tflite", found.data)
    assert [op.kind for op in graph.ops] == ["FULLY_CONNECTED"] * 2
    assert found.weights == (0 if form == "float32" else 2)
    for place, op in enumerate(graph.ops):
        weights = op.operand(1)
        assert weights.dtype == "float32" and weights.quant is None
        assert np.array_equal(weights.values, meant[f"w{place}"])


@pytest.mark.parametrize("form", FORMS)
def test_weights_that_two_layers_share(form):
    data, meant = dense_network(form, shared=True)
    found = float_file("net.tflite", data)
    for op in read_tflite("net.tflite", found.data).ops:
        assert np.array_equal(op.operand(1).values, meant["w0"])


def test_operators_of_old_files_are_named_anew():
    """Files from before 2020 name an operator in one field alone, which ai-edge-quantizer doesn't read."""
    data, _ = dense_network("float32")
    old = bytearray(data)
    for code in root(data)["operator_codes"]:
        place = code.place(next(field for field in TABLES["OperatorCode"] if field.name == "builtin_code"))
        old[place : place + 4] = bytes(4)
    codes = root(float_file("net.tflite", bytes(old)).data)["operator_codes"]
    kinds = enumerators("BuiltinOperator")
    assert [kinds[code["builtin_code"]] for code in codes] == ["FULLY_CONNECTED", "RESHAPE"]
    assert [code["version"] for code in codes] == [1, 1]


@pytest.mark.parametrize("kind", ["EXPAND_DIMS", "SQUEEZE"])
def test_operators_that_change_a_shape_alone_become_reshapes(kind):
    model = ModelBuilder()
    shapes = ((1, 6), (1, 1, 6)) if kind == "EXPAND_DIMS" else ((1, 1, 6), (1, 6))
    x, y = (model.tensor(name, shape, "float32") for name, shape in zip("xy", shapes, strict=True))
    z = model.tensor("z", shapes[1], "float32")
    axis = [model.tensor("axis", (), "int32", data=np.array(1, np.int32))] if kind == "EXPAND_DIMS" else []
    model.op(kind, [x, *axis], [y], **({} if axis else {"squeeze_dims": [1]}))
    model.op("RELU", [y], [z], version=1)
    graph = read_tflite("net", float_file("net", model.build([x], [z])).data)
    assert [op.kind for op in graph.ops] == ["RESHAPE", "RELU"]
    values = np.arange(6, dtype=np.float32).reshape(shapes[0])
    assert np.array_equal(run_graph(FAMILIES, graph, [values], {})[0], values.reshape(shapes[1]))


def test_names_are_unique_in_all_graphs():
    """ai-edge-quantizer refuses a model whose graphs share a name."""
    first, second = ModelBuilder(), ModelBuilder()
    for model in (first, second):
        x, y = model.tensor("x", (1, 4), "float32"), model.tensor("y", (1, 4), "float32")
        model.op("RELU", [x], [y], version=1)
    data = float_file("net", first.build([0], [1], called=[(second, [0], [1])])).data
    names = [tensor["name"] for graph in root(data)["subgraphs"] for tensor in graph["tensors"]]
    assert len(names) == len(set(names)) == 4


def test_a_signature_names_inputs_and_outputs():
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    data, _ = dense_network("weight-only")
    interpreter = litert.Interpreter(model_content=float_file("net.tflite", data).data)
    assert interpreter.get_signature_list() == {"serving_default": {"inputs": ["x"], "outputs": ["y1"]}}


def test_the_interpreter_computes_what_the_graph_says():
    pytest.importorskip("ai_edge_litert")
    data, _ = dense_network("dynamic")
    found = float_file("net.tflite", data).data
    graph = read_tflite("net.tflite", found)
    x = np.random.default_rng(1).standard_normal((1, 8)).astype(np.float32)
    (ours,) = run_graph(FAMILIES, graph, [x], {})
    (theirs,) = InterpreterOracle("litert", found, graph).run([x])
    assert np.allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_tensors_of_one_name_get_names_of_their_own():
    data, _ = dense_network("float32", unnamed=True)
    graph = read_tflite("net.tflite", float_file("net.tflite", data).data)
    names = [tensor.name for op in graph.ops for tensor in (*op.activations, *op.outputs)]
    assert len(set(names)) == 3


def test_labels_in_metadata_stay():
    data, _ = dense_network("dynamic")
    assert b"kept" in float_file("net.tflite", data).data


def test_a_quantized_model_is_refused():
    model = ModelBuilder()
    x, y = (model.tensor(name, (1, 4), "int8", 0.5, 0) for name in "xy")
    model.op("RELU", [x], [y])
    with pytest.raises(CompileError, match=r"quantized already.*hint: compile it as it is: tinyfuse gen net.tflite"):
        read_float_model("net.tflite", model.build([x], [y]))


def test_damaged_files_are_refused():
    data = random_network(np.random.default_rng(3)).file()
    for size in (0, 4, 60, len(data) // 2):
        with pytest.raises(CompileError):
            float_file("net.tflite", data[:size])
    noise = np.random.default_rng(0)
    for _ in range(200):
        broken = bytearray(data)
        for place in noise.integers(0, len(data), 4):
            broken[place] = int(noise.integers(256))
        try:
            read_float_model("net.tflite", bytes(broken))
        except CompileError:
            continue
