"""--input-layout and --output-layout: channels-last buffers for files whose channels come first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from executors import assert_all_exact, plan_of
from nchw_networks import TWINS, Layers, planes
from random_graphs import Sketch
from test_op_kernels import target_or_skip
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.cli.main import main
from tinyfuse.cost.predict import predicted_total
from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.verify.oracle import InterpreterOracle, ReferenceOracle

BOTH = {"input_layout": "nhwc", "output_layout": "nhwc"}


def flat(dtype: str) -> bytes:
    """Inputs and outputs of three, five and two dimensions; those of two keep their layout."""
    model = ModelBuilder()
    shapes = ((1, 5, 7), (1, 2, 3, 4, 5), (2, 9))
    ins = [model.tensor(f"x{i}", shape, dtype, scale=0.5, zero_point=0) for i, shape in enumerate(shapes)]
    outs = [model.tensor(f"y{i}", shape, dtype, scale=0.5, zero_point=0) for i, shape in enumerate(shapes)]
    for x, y in zip(ins, outs, strict=True):
        model.op("RELU", [x], [y])
    return model.build(ins, outs)


def uint8() -> bytes:
    """A uint8 model: conversions to int8 are at its inputs and outputs."""
    model = ModelBuilder()
    x, y = (model.tensor(name, (1, 3, 6, 5), "uint8", scale=0.1, zero_point=7) for name in "xy")
    model.op("MAX_POOL_2D", [x], [y], padding="SAME", stride_w=1, stride_h=1, filter_width=3, filter_height=2)
    return model.build([x], [y])


def through() -> bytes:
    """A model with an output that is its input, unchanged."""
    sketch = Sketch(2)
    x = sketch.value((1, 3, 4, 5))
    return sketch.build([x], [x, sketch.relu(x)])


MODELS: dict[str, Callable[[], bytes]] = {
    "planes": planes, "planes of int16": lambda: planes("int16"), "planes of float32": lambda: planes("float32"),
    "flat": lambda: flat("int8"), "uint8": uint8, "through": through,
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_results_are_the_files_moved(name: str) -> None:
    """The interpreter's results for the file, reordered, equal those of the graph's references."""
    data = MODELS[name]()
    source = plan_of(data, kernels="tinyfuse", **BOTH).source
    layouts = source.layouts
    assert layouts is not None and layouts.file.inputs != source.inputs
    rng = np.random.default_rng(1)
    fed = [
        rng.standard_normal(t.shape).astype(t.dtype) if t.dtype == "float32"
        else rng.integers(0 if t.dtype == "uint8" else -100, 100, t.shape).astype(t.dtype)
        for t in source.inputs
    ]  # fmt: skip
    expected = InterpreterOracle("litert" if name == "uint8" else "tflm", data, source).run(fed)
    for tensor, wanted, found in zip(source.outputs, expected, ReferenceOracle(source).run(fed), strict=True):
        assert wanted.shape == tensor.shape == found.shape
        np.testing.assert_array_equal(wanted, found)


@pytest.mark.parametrize("target", ["host", pytest.param("cortex-m4", marks=pytest.mark.emulated)])
def test_modules_are_exact(target: str) -> None:
    target_or_skip(target)
    assert_all_exact([plan_of(make(), target, kernels="tinyfuse", **BOTH) for make in MODELS.values()], runs=3)


def test_the_transposes_at_the_border_go() -> None:
    plan = plan_of(planes(), "cortex-m4", kernels="tinyfuse", **BOTH)
    source = plan.source
    assert [t.shape for t in (*source.inputs, *source.outputs)] == [(1, 10, 8, 3), (1, 10, 8, 6), (1, 5, 4, 4)]
    assert not [op for op in plan.graph.ops if op.kind == "TRANSPOSE"]
    kept = plan_of(planes(), "cortex-m4", kernels="tinyfuse")
    assert predicted_total(plan) < predicted_total(kept)
    # by default fewer instructions may be worth some bytes
    smallest, smallest_kept = (plan_of(planes(), "cortex-m4", optimize="ram", **ways) for ways in (BOTH, {}))
    assert smallest.arena_bytes <= smallest_kept.arena_bytes


def test_it_is_the_twin_whose_file_has_channels_last() -> None:
    """An image of planes, channels last in the firmware, costs what a model costs that never had planes."""
    for make in TWINS.values():
        plain = plan_of(make(False), "cortex-m4", kernels="tinyfuse")
        if len(plain.source.inputs) == 1 and len(plain.source.inputs[0].shape) == 4:
            transposed = plan_of(make(True), "cortex-m4", kernels="tinyfuse")
            assert transposed.arena_bytes <= 1.02 * plain.arena_bytes


def test_what_is_no_plane_is_told() -> None:
    n = Layers(4, False)
    image, x = n.start(6, 6, 3)
    plan = plan_of(n.sketch.build([image], [n.image(x, n.sketch.conv, 4, (3, 3))]), input_layout="nhwc")
    assert any("unless the file's order is NCHW" in text for text in plan.source.warnings)
    assert not any("unless" in text for text in plan_of(planes(), input_layout="nhwc").source.warnings)


@pytest.mark.parametrize(("make", "message"), [
    (lambda m: [m.tensor(n, (2, 9), "int8", scale=0.5, zero_point=0) for n in "xy"], "have less than three dimensions"),
    (lambda m: [m.tensor(n, (1, 2, 3, 4, 5, 6), "int8", scale=0.5, zero_point=0) for n in "xy"], "more than the five"),
    (lambda m: [m.tensor(n, (1, 2, 3, 4), "int32") for n in "xy"], "it is int32, but TRANSPOSE supports only int8"),
])  # fmt: skip
def test_what_has_no_order_to_choose_is_refused(make: Callable[[ModelBuilder], list[int]], message: str) -> None:
    model = ModelBuilder()
    x, y = make(model)
    model.op("ABS" if "int32" in message else "RELU", [x], [y])
    with pytest.raises(CompileError, match=message) as caught:
        plan_of(model.build([x], [y]), input_layout="nhwc")
    assert "leave out --input-layout" in str(caught.value)


def test_estimates_commands_and_the_manifest_know_it(tmp_path: Path) -> None:
    path = tmp_path / "planes.tflite"
    path.write_bytes(planes())
    made = tinyfuse.compile(path, "cortex-m4", **BOTH)
    assert [port.shape for port in made.inputs] == [(1, 10, 8, 3)]
    estimated = tinyfuse.estimate(path, "cortex-m4", **BOTH)
    assert estimated.macs == made.macs
    assert estimated.arena_bytes == pytest.approx(made.arena_bytes, rel=0.05)
    assert estimated.predicted_instructions == pytest.approx(made.predicted_instructions, rel=0.05)
    out = tmp_path / "out"
    asked = [str(path), "--target", "host", "--input-layout", "nhwc", "--output-layout", "nhwc"]
    for command in (["gen", *asked, "-o", str(out)], ["verify", *asked]):
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert ended.value.code == 0
    assert json.loads((out / "manifest.json").read_text())["options"]["input_layout"] == "nhwc"
    assert read_tflite("m", planes()).layouts is None
