"""ONNX networks: references compute what onnxruntime computes, and generated C what the references compute.

The campaign is 2,000 networks on the host and 200 on emulated cores:

    pytest --campaign tests/exact/test_onnx.py
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from campaigns import assert_batches_are_exact
from docs_blocks import blocks
from executors import assert_all_exact
from onnx import TensorProto, helper, load_model_from_string
from onnx_networks import OnnxWriter, Value, onnx_network

from tinyfuse.compiler import compile_graph
from tinyfuse.cost.predict import predicted_total
from tinyfuse.frontend.onnx.conversions import KINDS
from tinyfuse.frontend.onnx.graph import file_for_onnxruntime
from tinyfuse.frontend.read_model import read_model
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.targets import load_target
from tinyfuse.verify import oracle_worker
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle

needs_cross = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")), reason="no cross compiler, or no QEMU"
)
CORES = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m33", "cortex-m55")


def onnx_plan(seed: int, targets: Iterable[str]) -> Plan:
    """The plan of a random network, whose references agree with onnxruntime; its seed says for which target and how."""
    rng, data = random.Random(f"plan {seed}"), onnx_network(seed).data
    graph = read_model("model.onnx", data)
    assert_references_are_onnxruntime(data, f"seed {seed}")
    options = Options(
        "net", kernels="tinyfuse", optimize=rng.choice(("speed", "balanced", "ram")),
        fusion=rng.choice(("none", "basic", "rows", "rows")), weights=rng.choice(("packed", "packed", "auto", "unpacked")),
    )  # fmt: skip
    return compile_graph(graph, load_target(rng.choice(list(targets))), options)


def assert_references_are_onnxruntime(data: bytes, message: str, runs: int = 4) -> None:
    graph = read_model("model.onnx", data)
    judged = file_for_onnxruntime("model.onnx", data, KINDS)
    assert not judged.float_sums, message
    infer, ours = oracle_worker.onnxruntime(judged.data, 0), ReferenceOracle(graph)
    for inputs in input_set(graph, runs, seed=0):
        for wanted, found in zip(infer(inputs), ours.run(inputs), strict=True):
            np.testing.assert_array_equal(wanted, found, err_msg=message)


def test_networks_are_exact() -> None:
    plans = [onnx_plan(seed, ("host", *CORES)) for seed in range(24)]
    assert_all_exact(plans, 4, on_host=True)


@needs_cross
@pytest.mark.emulated
@pytest.mark.parametrize("core", CORES)
def test_networks_are_exact_on_a_core(core: str) -> None:
    first = 100 + 4 * CORES.index(core)
    assert_all_exact([onnx_plan(seed, (core,)) for seed in range(first, first + 4)], 3)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(20))
def test_many_networks_are_exact(part: int) -> None:
    seeds = range(1000 + 100 * part, 1100 + 100 * part)
    assert_batches_are_exact([onnx_plan(seed, ("host", *CORES)) for seed in seeds], 4, on_host=True)


@needs_cross
@pytest.mark.emulated
@pytest.mark.campaign
@pytest.mark.parametrize("core", CORES)
def test_many_networks_are_exact_on_a_core(core: str) -> None:
    first = 5000 + 40 * CORES.index(core)
    assert_batches_are_exact([onnx_plan(seed, (core,)) for seed in range(first, first + 40)], 3)


@pytest.mark.parametrize("core", [*CORES, "cortex-m7", "cortex-m85"])
def test_instructions_are_predicted(core: str) -> None:
    """Kernels of onnxruntime's arithmetic had no entry in the cost tables: no plan of an ONNX file was predicted."""
    for seed in range(40):
        plan = compile_graph(read_model("model.onnx", onnx_network(seed).data), load_target(core), Options("net"))
        kernels = [stage.kernel.name for group in plan.groups for stage in group.stages]
        assert predicted_total(plan) is not None, kernels


@pytest.mark.parametrize("name", ["mobilenet_v3", "waves"])
def test_networks_of_torch_are_exact(name: str) -> None:
    """Made by tests/support/make_onnx_models.py."""
    data = (Path(__file__).parents[1] / f"support/onnx_models/{name}.onnx").read_bytes()
    assert_references_are_onnxruntime(data, name)
    graph = read_model("model.onnx", data)
    plans = [compile_graph(graph, load_target(t), Options("net")) for t in ("host", "cortex-m0plus", "cortex-m4")]
    assert_all_exact(plans, 3, on_host=True)


def test_outputs_that_are_constants_are_written() -> None:
    """A constant output ended the compiler with a KeyError."""
    w = OnnxWriter("uint8")
    value = w.input((1, 6, 5, 4), 0.05, 3)
    shape = w.node("Shape", [value.name])[0]
    stored = w.node("QuantizeLinear", [w.constant(np.float32(1.5)), *w.scales(value)])[0]
    number = w.node("DequantizeLinear", [w.constant(np.arange(6, dtype=np.uint8)), *w.scales(value)])[0]
    made = w.quantize(w.node("Relu", [w.real(value)])[0], value)
    model = load_model_from_string(w.model([made]))
    ends = ((shape, TensorProto.INT64, [4]), (stored, TensorProto.UINT8, []), (number, TensorProto.FLOAT, [6]))
    model.graph.output.extend(helper.make_tensor_value_info(*end) for end in ends)
    data = model.SerializeToString()
    assert_references_are_onnxruntime(data, "constants")
    for target in ("host", "cortex-m4"):
        plan = compile_graph(read_model("model.onnx", data), load_target(target), Options("net"))
        assert_all_exact([plan], 3, on_host=True)


def test_the_page_s_block_takes_float32_off_the_borders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = Path(__file__).parents[1] / "support/onnx_models/waves.onnx"
    Path("model.onnx").write_bytes(model.read_bytes())
    (block,) = (block for block in blocks("docs/onnx.md") if "stored.onnx" in block.text)
    exec(block.text, {})
    graph = read_model("stored.onnx")
    assert {tensor.dtype for tensor in (*graph.inputs, *graph.outputs)} == {"int8"}
    assert_references_are_onnxruntime(Path("stored.onnx").read_bytes(), "stored")


def test_functions_between_layers_have_channels_last() -> None:
    """A table that the reader made kept the file's order of dimensions: one TRANSPOSE in front and one behind it."""
    w = OnnxWriter()
    value = w.input((1, 6, 5, 4), 0.05, 3)
    weights = w.weights(np.ones((6, 6, 1, 1), np.int8), np.array(0.01), 0)
    first = w.quantize(w.node("Conv", [w.real(value), weights])[0], Value("", (1, 6, 5, 4), 0.06, -9))
    table = w.quantize(w.node("HardSwish", [w.real(first)])[0], Value("", (1, 6, 5, 4), 0.05, -9))
    last = w.quantize(w.node("Conv", [w.real(table), weights])[0], Value("", (1, 6, 5, 4), 0.06, -9))
    plan = compile_graph(read_model("model.onnx", w.model([last])), load_target("cortex-m4"), Options("net"))
    kinds = [stage.op.kind for group in plan.groups for stage in group.stages]
    assert kinds == ["PLANES_TO_ROWS", "CONV_2D", "TABLE", "CONV_2D", "ROWS_TO_PLANES"], kinds


@pytest.mark.parametrize("kind", ["Add", "Mul"])
@pytest.mark.parametrize("target", CORES)
def test_a_value_a_channel_is_computed_in_float32_too(kind: str, target: str) -> None:
    """A loop over channels took TensorFlow's arithmetic: squeeze and excitation differed by one here and there."""
    w, rng = OnnxWriter(), np.random.default_rng(0)
    value = w.input((1, 6, 5, 4), 0.05, 3)
    weights = w.weights(rng.integers(-127, 128, (8, 6, 1, 1)).astype(np.int8), np.array(0.01), 0)
    image = w.quantize(w.node("Conv", [w.real(value), weights])[0], Value("", (1, 8, 5, 4), 0.06, -9))
    mean = w.quantize(w.node("GlobalAveragePool", [w.real(image)])[0], Value("", (1, 8, 1, 1), 0.01, 5))
    joined = w.node(kind, [w.real(mean), w.real(image)])[0]
    joined = w.quantize(joined, Value("", (1, 8, 5, 4), 0.004 if kind == "Mul" else 0.06, 2)).name
    weights = w.weights(rng.integers(-127, 128, (3, 8, 1, 1)).astype(np.int8), np.array(0.01), 0)
    last = w.node("Conv", [w.real(Value(joined, (1, 8, 5, 4), 0.004 if kind == "Mul" else 0.06, 2)), weights])[0]
    data = w.model([w.quantize(last, Value("", (1, 3, 5, 4), 0.02, 0))])
    assert_references_are_onnxruntime(data, kind)
    for fusion in ("none", "rows"):
        plan = compile_graph(read_model("model.onnx", data), load_target(target), Options("net", fusion=fusion))
        assert_all_exact([plan], 8, on_host=True)
