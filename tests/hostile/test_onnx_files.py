"""ONNX files that are damaged, absurd or not supported: one clear refusal, never a traceback.

The campaign reads 100,000 mutants: pytest --campaign tests/hostile/test_onnx_files.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from warnings import catch_warnings

import numpy as np
import pytest
from call_limit import at_most
from hostile_worker import limited_memory
from mutant_trials import c_problem
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
    """Reads a file. A warning of numpy is a fault, too: it tells of a result that is not a number."""
    try:
        with catch_warnings(action="error"):
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


def test_problems_behind_a_refused_node_are_told_with_it() -> None:
    """Each layer of a float network hid the next one: it took as many attempts as the network has layers."""
    w = OnnxWriter()
    value = w.input((1, 4, 6, 6), 0.1, 0, real=True)
    x = w.real(value)
    for _ in range(3):
        x = w.node("Conv", [x, w.constant(np.ones((4, 4, 1, 1), np.float32))])[0]
        x = w.node("Relu", [x])[0]
    x = w.node("LRN", [x], size=3)[0]
    scales = [w.constant(np.full(4, 0.1, np.float32)), w.constant(np.zeros(4, np.int8))]
    x = w.node("DequantizeLinear", [w.node("QuantizeLinear", [x, *scales], axis=1)[0], *scales], axis=1)[0]
    x = w.node("DynamicQuantizeLinear", [x], 3)[0]
    texts = refusals(w.model([Value(x, (1, 4, 6, 6), 0.1, 0)]))
    assert [sum(reason in text for text in texts) for reason in (
        "its weights are not", "Conv is computed in float32", "LRN", "with a scale for each channel", "use quantize_static instead",
    )] == [1, 2, 1, 1, 1]  # fmt: skip
    assert len(texts) == 6, texts


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
    assert "its shape is not fixed" in text
    assert read_model("model.onnx", model(["batch", 4])).outputs[0].shape == (1, 4)


def test_pools_with_channels_last_are_refused() -> None:
    """Read as if their channels were first, they gave other results than onnxruntime."""
    w = OnnxWriter()
    x = w.input((1, 4, 6, 4), 0.1, 0)
    inputs = [x.name, *w.scales(x), *w.scales(x)]
    made = w.node("QLinearGlobalAveragePool", inputs, domain="com.microsoft", channels_last=1)[0]
    (text,) = refusals(w.model([Value(made, (1, 1, 1, 4), 0.1, 0)]))
    assert "channels_last" in text


def _doubled(w: OnnxWriter, x: str) -> str:
    """Each node doubles a constant; together they would take 2^60 bytes."""
    made = w.constant(np.ones((1, 8), np.float32))
    for _ in range(60):
        made = w.node("Concat", [made, made], axis=1)[0]
    return w.node("Add", [x, made])[0]


def _copies(w: OnnxWriter, x: str) -> str:
    """Each node makes 16 MB."""
    base, zero = w.constant(np.ones((1, 8), np.float32)), numpy_helper.from_array(np.array([0]))
    places = w.node("ConstantOfShape", [w.constant(np.array([1 << 19]))], value=zero)[0]
    return [w.node("Gather", [base, places], axis=0)[0] for _ in range(20)][-1]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda w, x: w.node("Concat", [x, "", x], axis=1)[0], "one of its inputs is left out"),
        (lambda w, x: w.node("Concat", [w.constant(np.float32(1))] * 2, axis=0)[0], "axis 0 is beyond 0 dimensions"),
        (lambda w, x: w.node("Resize", [x, "", "", w.constant(np.array([1, 8, 1 << 54, 1]))])[0], "is impossible"),
        (lambda w, x: w.node("Resize", [x, "", w.constant(np.array([1, 1, np.inf, 1], np.float32))])[0], "sizes are"),
        (lambda w, x: w.node("Reshape", [x, w.constant(np.array([1, np.inf], np.float32))])[0], "not integers"),
        (lambda w, x: w.node("Reshape", [w.constant(np.zeros((0,))), w.constant(np.array([0, 1 << 62]))], allowzero=1)[0],
         "is impossible"),
        (lambda w, x: w.node("Unsqueeze", [x, w.constant(np.arange(70))])[0], "is impossible"),
        (lambda w, x: w.node("Gather", [x, w.constant(np.array([0.5]))])[0], "indexes are not integers"),
        (lambda w, x: w.node("Pad", [x, w.constant(np.zeros(8, np.int64)), w.constant(np.float32(np.inf))])[0], "inf"),
        (lambda w, x: w.node("Pad", [w.constant(np.zeros((1,) * 4)), w.constant(np.full(8, 32_767))])[0], "is impossible"),
        (lambda w, x: w.node("Add", [w.constant(np.zeros(3, np.bool_))] * 2)[0], "are bool and bool, not numbers"),
        (lambda w, x: w.node("Add", [w.constant(np.zeros(3)), w.constant(np.zeros(4))])[0], "don't broadcast"),
        (lambda w, x: w.node("ConstantOfShape", [w.constant(np.array([0, 1 << 62]))])[0], "is impossible"),
        (lambda w, x: w.node("ConstantOfShape", [w.constant(np.array([2]))], value=0.5)[0], None),
        (lambda w, x: w.node("Cast", [w.constant(np.array([np.nan, np.inf], np.float32))], to=6)[0], None),
        (lambda w, x: w.node("Slice", [x, *(w.constant(np.array([n])) for n in (0, 8, 1, 1 << 40))])[0], None),
        (lambda w, x: w.node("ReduceMean", [x], axes=[9])[0], "axis 9 is beyond 4 dimensions"),
        (lambda w, x: w.node("Softmax", [x], axis=9)[0], "axis 9 is beyond 4 dimensions"),
        (lambda w, x: w.node("Add", [x, w.real(w.quantize(w.constant(np.float32([np.nan])), Value("", (1,), 1.0, 0)))])[0],
         "quantizes NaN"),
        (lambda w, x: w.node("Add", [x, w.real(Value(w.constant(np.full(1, 127, np.int8)), (1,), 3e38, 0))])[0], None),
        (lambda w, x: w.node("Clip", [x, w.constant(np.zeros(0, np.float32))])[0], "a bound is not one number"),
        (lambda w, x: w.quantize(w.node("ConvTranspose", [x, w.weights(np.ones((8, 2, 1, 1), np.int8), np.array(0.1), 0)],
         output_padding=[1 << 32, 0])[0], Value("", (1, 2, 2, 2), 0.1, 0)).name, "is impossible"),
        (lambda w, x: w.quantize(w.node("ConvTranspose", [x, w.weights(np.ones((8, 2, 1, 1), np.int8), np.array(0.1), 0)],
         output_padding=[0, 0, 0])[0], Value("", (1, 2, 2, 2), 0.1, 0)).name, "output_padding has 3 values"),
        (lambda w, x: w.quantize(w.node("Conv", [x, w.weights(np.ones((2, 8, 1, 1), np.int8), np.array(1e-45), 0),
         w.constant(np.ones(2, np.float32))])[0], Value("", (1, 2, 2, 2), 0.1, 0)).name, "scales is zero"),
        (lambda w, x: w.quantize(w.node("Conv", [x, w.weights(np.ones((2, 8, 1, 1), np.int8), np.array(0.1), 0),
         w.constant(np.float32([np.nan, 1]))])[0], Value("", (1, 2, 2, 2), 0.1, 0)).name, "does not fit int32"),
        (lambda w, x: w.quantize(w.node("Conv", [x, w.weights(np.ones((2, 8, 1, 1), np.int8), np.array(0.1), 0),
         w.constant(np.float32([2.2e7, 1]))])[0], Value("", (1, 2, 2, 2), 0.1, 0)).name, "does not fit int32"),
        (_doubled, "is impossible"),
        (_copies, "too large"),
    ],
)  # fmt: skip
def test_absurd_constants(build: Callable[[OnnxWriter, str], str], message: str | None) -> None:
    """Found by mutants: each ended in an exception of Python, or took memory without end."""
    w = OnnxWriter()
    made = build(w, w.real(w.input((1, 8, 2, 2), 0.1, 0)))
    data = quantized(w, made, (1, 8))
    with limited_memory(), at_most(calls=3_000_000), catch_warnings(action="error"):
        if message is None:
            assert_read_or_refused(data)
        else:
            assert message in refusals(data)[0]


def test_problems_of_the_file_and_of_its_nodes_are_told_together() -> None:
    w = OnnxWriter()
    value = w.real(w.input((1, 8), 0.1, 0))
    for kind in ("Einsum", "Relu"):
        w.node(kind, [value])
    scaled = w.node("DequantizeLinear", [w.constant(np.zeros(8, np.int8)), w.constant(np.float32(1)), "point"])[0]
    w.node("QuantizeLinear", [w.node("Add", [value, scaled])[0], *w.scales(Value("", (1, 8), 0.1, 0))])
    model = load_model_from_string(quantized(w, value, (1, 8)))
    model.graph.initializer.add(name="point", data_type=TensorProto.FLOAT, dims=[0, 1 << 62], raw_data=b"")
    model.graph.node[2].attribute.append(helper.make_attribute("axis", "text"))
    model.graph.input.append(model.graph.input[0])
    model.graph.node.append(model.graph.node[2])
    model.graph.node.add(op_type="Relu", input=[value])
    texts = refusals(model.SerializeToString())
    reasons = ("its shape is [0,", "'axis' has the wrong type", "listed twice among the inputs", "is computed before",
               "it has no output", "Einsum")  # fmt: skip
    assert len(texts) == len(reasons) + 1, texts  # the copy of the node has its attribute, too
    assert all(any(reason in text for text in texts) for reason in reasons), texts


def test_zero_points_have_the_dtype_of_what_they_belong_to() -> None:
    """One of float32 was printed as such into the C."""
    w = OnnxWriter()
    x = w.input((1, 8), 0.1, 0)
    made = w.node("DequantizeLinear", [x.name, w.constant(np.float32(0.1)), w.constant(np.float32(0.1))])[0]
    (text,) = refusals(quantized(w, w.node("Relu", [made])[0], (1, 8)))
    assert "its zero point is float32" in text


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
    (tmp_path / "weights.bin").write_bytes(b"123")
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            entry.value = str(10**30) if entry.key == "offset" else entry.value
    assert "ends before byte" in refusals(model.SerializeToString(), str(path))[0]
    for location in ("../outside.bin", str(tmp_path.parent / "outside.bin"), "link.bin"):
        for tensor in model.graph.initializer:
            for entry in tensor.external_data:
                entry.value = location if entry.key == "location" else entry.value
        texts = refusals(model.SerializeToString(), str(path))
        assert any("outside the model's folder" in text for text in texts), texts
