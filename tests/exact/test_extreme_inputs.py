"""Inputs that drive layers to the ends of their sums: which ends they reach, and a fault that they alone show."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest
from executors import plan_of
from random_graphs import Sketch
from single_unit_firmware import build_plan
from stream_models import STREAM_MODELS

from tinyfuse.emit import emit
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import im2col
from tinyfuse.verify import extreme_inputs as module_under_test
from tinyfuse.verify.comparison import compare
from tinyfuse.verify.emulation import find_emulator, module
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.extreme_inputs import extreme_inputs, first_layers
from tinyfuse.verify.oracle import ReferenceOracle
from tinyfuse.verify.varying_inputs import varying_inputs


def convolution(sketch: Sketch):
    x = sketch.value((1, 12, 9, 5))
    return x, sketch.conv(x, 4, (3, 2), (2, 1), dilation=(1, 1))


def dilated(sketch: Sketch):
    x = sketch.value((1, 14, 14, 3))
    return x, sketch.conv(x, 3, (3, 3), padding="VALID", dilation=(2, 3))


def depthwise(sketch: Sketch):
    x = sketch.value((1, 12, 9, 5))
    return x, sketch.depthwise(x, (3, 3))


def dense(sketch: Sketch):
    x = sketch.value((1, 40))
    return x, sketch.fully_connected(x, 6)


def dense_of_an_image(sketch: Sketch):
    x = sketch.value((1, 4, 3, 5))
    return x, sketch.fully_connected(sketch.relu(x), 3)


def padded(sketch: Sketch):
    x = sketch.value((1, 10, 9, 4))
    return x, sketch.conv(sketch.pad(x, 1, 2, 0, 1), 4, (3, 3), padding="VALID")


def transposed(sketch: Sketch):
    x = sketch.value((1, 4, 10, 9))
    return x, sketch.conv(sketch.transpose(x, (0, 2, 3, 1)), 4, (3, 3), padding="VALID")


MODELS: list[Callable] = [convolution, dilated, depthwise, dense, dense_of_an_image, padded, transposed]


def graph_of(model: Callable, seed: int) -> Graph:
    sketch = Sketch(seed)
    x, y = model(sketch)
    return read_tflite("model.tflite", sketch.build([x], [y]))


def weights_by_output(op: Op) -> np.ndarray:
    """Weights as [output channels, products of a sum]."""
    weights = op.operand(1).values.astype(np.int64)
    return np.moveaxis(weights, FAMILIES[op.kind].channel_axis, 0).reshape(op.output.shape[-1], -1)


def sums(op: Op, data: np.ndarray) -> np.ndarray:
    """Sums of products of a layer, [positions, output channels]."""
    weights = weights_by_output(op)
    if not FAMILIES[op.kind].convolution:
        return (data.reshape(-1, weights.shape[1]).astype(np.int64) - op.input.zero_point) @ weights.T
    read = np.concatenate([part for _, part in im2col(op, data)])
    if FAMILIES[op.kind].depthwise:
        taps = read.reshape(read.shape[0] * read.shape[1], -1, read.shape[-1])
        return np.einsum("ptc,ct->pc", taps, weights).astype(np.int64)
    return (read.reshape(-1, weights.shape[1]) @ weights.T).astype(np.int64)


def proven_ends(op: Op) -> tuple[np.ndarray, np.ndarray]:
    """(smallest, largest) sum of each output channel."""
    weights, zero_point = weights_by_output(op), op.input.zero_point
    low, high = weights * (-128 - zero_point), weights * (127 - zero_point)
    return np.minimum(low, high).sum(axis=1), np.maximum(low, high).sum(axis=1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("model", MODELS)
def test_a_layer_of_an_input_reaches_both_ends_of_its_sums(model: Callable, seed: int) -> None:
    graph = graph_of(model, seed)
    ((layer, route),) = first_layers(graph, graph.inputs[0])
    if model is dense_of_an_image:  # a RELU cuts the smallest values
        layer, route = graph.ops[-1], ()
        graph = Graph("", "", (layer,), (layer.input,), graph.outputs)
    lows, highs = proven_ends(layer)
    runs = extreme_inputs(graph, 2, 0)
    before = Graph("", "", route, graph.inputs, (layer.input,)) if route else None
    found = np.concatenate([sums(layer, ReferenceOracle(before).run(run)[0] if before else run[0]) for run in runs])
    assert (found.min(axis=0) == lows).any() and (found.max(axis=0) == highs).any()
    assert (found >= lows).all() and (found <= highs).all()


def test_layers_behind_others_are_driven_further() -> None:
    sketch = Sketch(3)
    x = sketch.value((1, 64))
    layers = [sketch.fully_connected(x, 32)]
    for _ in range(3):
        layers.append(sketch.fully_connected(layers[-1], 32))
    graph = read_tflite("model.tflite", sketch.build([x], layers))

    def width(runs) -> float:
        """The share of the int8 range that a channel uses on average, summed over the layers."""
        each = zip(*(ReferenceOracle(graph).run(run) for run in runs), strict=True)
        joined = [np.concatenate([a.reshape(-1, a.shape[-1]) for a in outputs]).astype(float) for outputs in each]
        return sum(float(np.ptp(values, axis=0).mean()) for values in joined)

    searched = width(extreme_inputs(graph, 2, 0))
    with patch.object(module_under_test, "_MACS", 0):
        first = width(extreme_inputs(graph, 2, 0))
    assert searched > first


@pytest.mark.parametrize("name", STREAM_MODELS)
def test_models_with_state(name: str) -> None:
    graph = read_tflite("model.tflite", STREAM_MODELS[name])
    for run in extreme_inputs(graph, 6, 0):
        for tensor, values in zip(graph.inputs, run, strict=True):
            assert values is None or (values.shape == tensor.shape and values.dtype == tensor.dtype)


@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_other_dtypes(dtype: str) -> None:
    sketch = Sketch(1, dtype=dtype)
    x = sketch.value((1, 6, 6, 4))
    graph = read_tflite("model.tflite", sketch.build([x], [sketch.conv(x, 4, (3, 3))]))
    runs = extreme_inputs(graph, 3, 0)
    assert len(runs) == 3 and all(run[0].dtype == dtype and len(np.unique(run[0])) == 2 for run in runs)


def test_a_fault_that_only_extreme_sums_show(tmp_path) -> None:
    """The end of the clamp: random inputs leave sums of 256 products at a fifth of what they may be."""
    sketch = Sketch(1)
    x = sketch.value((1, 256), 0.05, 0)
    sketch.results = (float(np.float32(0.05 * 0.011 * 1.2e6 / 128)), 0)
    plan = plan_of(sketch.build([x], [sketch.fully_connected(x, 8)]))
    files = {name: text.replace(".act_max = 127,", ".act_max = 126,") for name, text in emit(plan).items()}
    assert files != emit(plan)
    oracle, machine = ReferenceOracle(plan.source), find_emulator("host", plan.context.target)

    def seen(inputs, work: str) -> bool:
        with patch.object(module, "emit", lambda plan: files):
            firmware = build_plan(plan, None, inputs, "host", 1, False, tmp_path / work)
        return compare(plan, oracle.run_all(inputs), machine.run(firmware, 60).outputs).mismatches > 0

    assert not seen(input_set(plan.source, 8, 0), "drawn")
    assert seen(varying_inputs(plan.source, oracle, 8, None, 0, fixed=False)[0], "driven")
