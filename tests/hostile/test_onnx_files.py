"""ONNX files that are damaged, absurd or not supported: one clear refusal, never a traceback.

The campaign reads 100,000 mutants: pytest --campaign tests/hostile/test_onnx_files.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hostile_worker import c_problem
from onnx import TensorProto, helper, load_model_from_string, numpy_helper, save_model
from onnx_mutations import NAMES, byte_mutant, structural_mutant
from onnx_networks import OnnxWriter, Value

from tinyfuse.compiler import check_graph, compile_graph
from tinyfuse.emit import emit
from tinyfuse.errors import CompileError
from tinyfuse.frontend.onnx.messages import SCHEMA
from tinyfuse.frontend.onnx.protobuf import DEEPEST, Malformed, decode
from tinyfuse.frontend.read_model import read_model
from tinyfuse.options import Options
from tinyfuse.targets import load_target


def assert_read_or_refused(data: bytes) -> None:
    try:
        check_graph(read_model("model.onnx", data))
    except CompileError as refusal:
        assert refusal.problems
        assert all(problem.message for problem in refusal.problems)


@pytest.mark.parametrize("mutant", [byte_mutant, structural_mutant])
def test_mutants_are_read_or_refused(mutant: Callable[[int], bytes]) -> None:
    for seed in range(300):
        assert_read_or_refused(mutant(seed))


@pytest.mark.campaign
@pytest.mark.parametrize("mutant", [byte_mutant, structural_mutant])
@pytest.mark.parametrize("part", range(10))
def test_many_mutants_are_read_or_refused(part: int, mutant: Callable[[int], bytes]) -> None:
    for seed in range(10_000 + 5000 * part, 15_000 + 5000 * part):
        assert_read_or_refused(mutant(seed))


def test_names_do_not_get_out_of_comments_and_strings() -> None:
    """Inputs, outputs and nodes of every name end in C without warnings."""
    w, outputs, names = OnnxWriter(), [], {}
    for name in filter(None, NAMES):
        value = w.input((1, 8), 0.1, 0)
        weights = w.weights(np.ones((6, 8), np.int8), np.array(0.01), 0)
        made = w.node("Gemm", [w.real(value), weights], transB=1)[0]
        outputs.append(w.quantize(made, Value("", (1, 6), 0.05, 0)))
        names |= {value.name: name, outputs[-1].name: f"{name} (output)", made: f"{name} (node)"}
    model = load_model_from_string(w.model(outputs))
    for border in (*model.graph.input, *model.graph.output):
        border.name = names[border.name]
    for node in model.graph.node:
        node.name = names.get(node.output[0], node.name)
        for ends in (node.input, node.output):
            for i, end in enumerate(ends):
                ends[i] = names.get(end, end)
    graph = check_graph(read_model("model.onnx", model.SerializeToString()))
    assert len(graph.inputs) == len(NAMES) - 1
    assert c_problem(emit(compile_graph(graph, load_target("host"), Options("net", kernels="tinyfuse")))) is None


def refusals(data: bytes, path: str = "model.onnx") -> list[str]:
    with pytest.raises(CompileError) as caught:
        check_graph(read_model(path, data))
    return [str(problem) for problem in caught.value.problems]


def quantized(writer: OnnxWriter, name: str, shape: tuple[int, ...]) -> bytes:
    return writer.model([writer.quantize(name, Value("", shape, 0.05, 0))])


def test_all_reasons_are_told_at_once() -> None:
    w = OnnxWriter()
    value = w.real(w.input((1, 4, 6, 6), 0.1, 0))
    first = w.node("Einsum", [value], equation="abcd->abcd")[0]
    second = w.node("NonMaxSuppression", [value, value])[0]
    third = w.node("Add", [first, second])[0]
    texts = refusals(quantized(w, third, (1, 4, 6, 6)))
    assert len(texts) == 2, texts  # what follows from them isn't told again
    assert "Einsum" in texts[0]
    assert "NonMaxSuppression" in texts[1]
    assert all("docs/onnx.md" in text for text in texts)


def test_names_do_not_reach_the_terminal_as_they_are() -> None:
    w = OnnxWriter()
    value = w.real(w.input((1, 4), 0.1, 0))
    names = ("\x1b[31m", "a\nb", "\u202e", "x" * 5000)
    for name in names:
        w.node(name, [value])
    model = load_model_from_string(quantized(w, w.node("", [value], domain="\x1b[2J")[0], (1, 4)))
    model.graph.node[1].attribute.append(helper.make_attribute("\x1b]0;", 3))
    texts = refusals(model.SerializeToString())
    assert len(texts) == len(names) + 1
    assert all(text.isprintable() and len(text) < 1000 for text in texts)


def test_a_float_layer_is_refused_with_the_way_to_quantize_it() -> None:
    w = OnnxWriter()
    weights = w.constant(np.ones((2, 4, 3, 3), np.float32))
    made = w.node("Conv", [w.real(w.input((1, 4, 6, 6), 0.1, 0)), weights])[0]
    (text,) = refusals(quantized(w, made, (1, 2, 4, 4)))
    assert "quantize_static" in text


def test_dropout_as_in_training_is_refused() -> None:
    w = OnnxWriter()
    flags = [w.constant(np.float32(0.5)), w.constant(np.bool_(True))]
    made = w.node("Dropout", [w.real(w.input((1, 4), 0.1, 0)), *flags])[0]
    (text,) = refusals(quantized(w, made, (1, 4)))
    assert "drops values at random" in text


def test_an_open_shape_is_refused_but_for_the_batch() -> None:
    def model(shape: list[object]) -> bytes:
        scale, point = (numpy_helper.from_array(np.array(v), n) for v, n in ((np.float32(0.1), "s"), (np.int8(0), "z")))
        nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["f"]), helper.make_node("Relu", ["f"], ["y"])]
        ends = (
            (helper.make_tensor_value_info("x", TensorProto.INT8, shape),),
            (helper.make_tensor_value_info("y", TensorProto.FLOAT, None),),
        )
        graph = helper.make_graph(nodes, "g", *ends, [scale, point])
        return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())

    (text,) = refusals(model([1, "channels", 4]))
    assert "open" in text
    assert read_model("model.onnx", model(["batch", 4])).outputs[0].shape == (1, 4)


def test_pools_with_channels_last_are_refused() -> None:
    """Read as if their channels were first, they gave other results than onnxruntime."""
    w = OnnxWriter()
    x = w.input((1, 4, 6, 4), 0.1, 0)
    inputs = [x.name, *w.scales(x), *w.scales(x)]
    made = w.node("QLinearGlobalAveragePool", inputs, domain="com.microsoft", channels_last=1)[0]
    (text,) = refusals(w.model([Value(made, (1, 1, 1, 4), 0.1, 0)]))
    assert "channels_last" in text


def test_messages_that_nest_too_deep_are_malformed() -> None:
    data = b""
    for _ in range(2 * DEEPEST):  # a graph in a node's attribute would be skipped: a type in a type is not
        data = b"\x0a" + len(data).to_bytes(1, "little") + data if len(data) < 100 else data
    with pytest.raises(Malformed):
        decode(b"\x3a" + bytes([0xFF] * 9 + [0x01]) + data, "Model", SCHEMA)


def test_external_data_is_read_in_the_models_folder_alone(tmp_path: Path) -> None:
    w = OnnxWriter()
    x = w.input((1, 8), 0.1, 0)
    weights = np.arange(-40, 40, dtype=np.int8).reshape(10, 8)
    made = w.node("Gemm", [w.real(x), w.weights(weights, np.array(0.01), 0)], transB=1)[0]
    data = quantized(w, made, (1, 10))
    model = load_model_from_string(data)
    path = tmp_path / "model.onnx"
    save_model(model, str(path), save_as_external_data=True, location="weights.bin", size_threshold=16)
    inside = read_model(str(path))
    assert [op.kind for op in inside.ops] == [op.kind for op in read_model("model.onnx", data).ops]

    (tmp_path / "weights.bin").rename(tmp_path.parent / "outside.bin")
    (text,) = refusals(path.read_bytes(), str(path))[:1]
    assert "weights.bin" in text
    (tmp_path / "link.bin").symlink_to(tmp_path.parent / "outside.bin")
    for location in ("../outside.bin", str(tmp_path.parent / "outside.bin"), "link.bin"):
        for tensor in model.graph.initializer:
            for entry in tensor.external_data:
                entry.value = location if entry.key == "location" else entry.value
        texts = refusals(model.SerializeToString(), str(path))
        assert any("outside the model's folder" in text for text in texts), texts
