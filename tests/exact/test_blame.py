"""`tinyfuse blame`: faults that were planted into quantized layers are found, and tensors are matched."""

from __future__ import annotations

import importlib.util
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from float_networks import enlarge_channel, quantized_with, random_network
from jsonschema import Draft202012Validator
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.blame.blame import Blame, blame_layers
from tinyfuse.blame.layers import layers_of
from tinyfuse.blame.match import matched_tensors
from tinyfuse.blame.text import blame_lines, worst_text
from tinyfuse.cli.main import main
from tinyfuse.errors import UsageError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.quantization.convert import FloatModel, read_float_model
from tinyfuse.schema.document import schema

quantizer = pytest.mark.skipif(importlib.util.find_spec("ai_edge_quantizer") is None, reason="needs the extra quantize")
SAMPLES = 12
#: fault -> the words that `cause` may have
FAULTS = {"channel": {"channels"}, "clamp": {"saturated"}, "wide": {"wide range"}}


def planted(fault: str, seed: int) -> tuple[str, Blame]:
    """The tensor whose layer was spoiled in a random network, and what is blamed."""
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    x = network.inputs(rng, SAMPLES)
    place = int(rng.integers(0, len(network.convs) - 1))
    ranges = {"clamp": {f"y{place}": 0.1}, "wide": {f"y{place}": 30.0}}.get(fault, {})
    if fault == "channel":
        enlarge_channel(network, place, int(rng.integers(network.convs[place].bias.size)), 1000)
    model = read_float_model("float.tflite", network.file())
    quantized = read_tflite("int8.tflite", quantized_with(model.data, x, ranges))
    return f"y{place}", blame_layers(quantized, model, [{"x": x}], SAMPLES, lambda text: None)


def check_found(fault: str, seed: int) -> None:
    spoiled, blame = planted(fault, seed)
    shown = [(each.float_tensor, round(each.share, 3), each.cause) for each in blame.layers]
    worst = blame.layers[blame.worst[0]]
    assert worst.float_tensor == spoiled and worst.cause in FAULTS[fault], (fault, seed, shown)
    # an enlarged channel leaves the layer that reads it weights that are as small
    readers = [each for each in blame.layers if each.due_to == worst.tensor]
    assert fault == "channel" or not readers
    assert worst.share + sum(each.share for each in readers) > 0.5, (fault, seed, shown)
    assert sum(each.share for each in blame.layers) == pytest.approx(1)
    assert not blame.unmatched


@quantizer
@pytest.mark.parametrize("fault, seed", [("channel", 0), ("channel", 8), ("clamp", 0), ("wide", 0)])
def test_planted_faults_are_found(fault, seed):
    check_found(fault, seed)


@quantizer
@pytest.mark.campaign
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("seed", range(20))
def test_planted_faults_are_found_in_more_networks(fault, seed):
    check_found(fault, seed)


@quantizer
def test_a_mean_passes_a_large_channel_on():
    """Both the mean and the dense layer behind it are spoiled by the last convolution."""
    rng = np.random.default_rng(23)
    network = random_network(rng)
    x = network.inputs(rng, SAMPLES)
    place = len(network.convs) - 1
    enlarge_channel(network, place, 0, 1000)
    model = read_float_model("float.tflite", network.file())
    quantized = read_tflite("int8.tflite", quantized_with(model.data, x, {}))
    blame = blame_layers(quantized, model, [{"x": x}], SAMPLES, lambda text: None)
    found = {each.float_tensor: (each.cause, each.due_to) for each in blame.layers}
    worst = blame.layers[blame.worst[0]]
    assert worst.float_tensor == f"y{place}" and found[f"y{place}"] == ("channels", None)
    assert found["mean"] == found["logits"] == ("channels before", worst.tensor)


@quantizer
def test_weights_of_one_scale_are_named():
    """Channels of weights that differ a thousandfold, behind a layer whose channels differ as much."""
    rng = np.random.default_rng(0)
    network = random_network(rng)
    x = network.inputs(rng, SAMPLES)
    network.convs[0].weights[1:] *= np.float32(1e-3)
    network.convs[0].bias[1:] *= np.float32(1e-3)
    model = read_float_model("float.tflite", network.file())
    for per_tensor in (True, False):
        quantized = read_tflite("int8.tflite", quantized_with(model.data, x, {}, per_tensor))
        blame = blame_layers(quantized, model, [{"x": x}], SAMPLES, lambda text: None)
        layer = next(each for each in blame.layers if each.float_tensor == "y0")
        assert layer.weights is not None and layer.weights.per_channel is not per_tensor
        assert layer.weights.spread > 100
    # a scale for each channel of weights: what is left is the one scale of the activations
    assert layer.cause == "channels"


@pytest.fixture(scope="module")
def models() -> tuple[bytes, bytes, np.ndarray]:
    """A float file, its int8 twin, and samples."""
    rng = np.random.default_rng(8)
    network = random_network(rng)
    x = network.inputs(rng, 40)
    data = network.file()
    return data, tinyfuse.quantize(data, x).data, x


@quantizer
def test_the_module_blames_and_prices_int16(models):
    data, quantized, x = models
    module = tinyfuse.compile(quantized, "cortex-m4")
    blame = module.blame(data, {"x": x}, samples=8)
    assert blame.samples == 8 and len(blame.worst) == 3
    costs = [blame.layers[place].int16 for place in blame.worst]
    assert all(cost is not None and cost.instructions is not None for cost in costs)
    assert pickle.loads(pickle.dumps(blame)) == blame
    again = module.blame(data, {"x": x}, samples=8)
    assert again == blame


@quantizer
def test_the_command_prints_a_table_json_and_a_page(models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, quantized, x = models
    Path("f.tflite").write_bytes(data)
    Path("<q>.tflite").write_bytes(quantized)
    np.save("x.npy", x)
    words = ["blame", "<q>.tflite", "--float", "f.tflite", "--data", "x.npy", "--samples", "4", "--html", "b.html"]
    shown = CliRunner().invoke(main, [*words, "--json"], catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    answer = json.loads(shown.stdout)
    Draft202012Validator(schema("blame")).validate(answer)
    page = Path("b.html").read_text()
    assert "&lt;q&gt;.tflite" in page and "<script" not in page and page.count("<tr>") == len(answer["layers"]) + 1
    table = "\n".join(blame_lines(answer))
    assert re.search(r"1\. (op|input)", table) and re.search(r"[Ii]n(t16| int16)", table)


@quantizer
def test_models_that_do_not_belong_together_are_refused(models):
    _, quantized, _ = models
    other = random_network(np.random.default_rng(9))
    other.dense = other.dense[:3]
    model = read_float_model("other.tflite", other.file())
    with pytest.raises(UsageError, match="MODEL was not made from this model"):
        blame_layers(read_tflite("q", quantized), model, [], 0, lambda text: None)


@pytest.mark.parametrize(
    "gain, told", [(6.0, "In int16 it and its readers would take +1,200"), (0.1, "would not help")]
)
def test_int16_is_advised_where_it_gains(gain, told):
    int16 = {"layers": ["a;b", "c"], "instructions": 1200, "ram_bytes": 8, "snr_db": 20 + gain, "int8_snr_db": 20.0}
    layer = {"operator": "op 1 CONV_2D 'a'", "share": 0.5, "advice": "its values need finer steps", "int16": int16}
    text = worst_text([layer | {"tensor": "a", "due_to": None}], 0)
    assert told in text and ("--layer 'a;*=int16x8' --layer 'c=int16x8'" in text) == (gain > 1)


def dense_pair(fused: bool) -> tuple[FloatModel, bytes]:
    """Two dense layers with a ReLU between: float, where it is an operator of its own, and int8, where it is none."""
    rng, floats, stored = np.random.default_rng(0), ModelBuilder(), ModelBuilder()
    w = rng.standard_normal((4, 4)).astype(np.float32)
    levels = np.round(w * 30).astype(np.int8)
    x, a, b, c = (floats.tensor(name, (1, 4), "float32") for name in ("x", "sum", "relu", "y"))
    wf = floats.tensor("w", (4, 4), "float32", data=w)
    options = {"weights_format": "DEFAULT", "keep_num_dims": False}
    floats.op("FULLY_CONNECTED", [x, wf, -1], [a], version=1, fused_activation_function="NONE", **options)
    floats.op("RELU", [a], [b], version=1)
    floats.op("FULLY_CONNECTED", [b, wf, -1], [c], version=1, fused_activation_function="NONE", **options)
    names = ("x", "relu", "y") if fused else ("in", "first", "second")
    scales = zip(names, (0.03, 0.1, 0.2), strict=True)
    qx, qb, qc = (stored.tensor(name, (1, 4), "int8", scale, 0) for name, scale in scales)
    wq = stored.tensor("w", (4, 4), "int8", 1 / 30, data=levels)
    stored.op("FULLY_CONNECTED", [qx, wq, -1], [qb], fused_activation_function="RELU", **options)
    stored.op("FULLY_CONNECTED", [qb, wq, -1], [qc], fused_activation_function="NONE", **options)
    return read_float_model("f", floats.build([x], [c])), stored.build([qx], [qc])


@pytest.mark.parametrize("fused", [True, False])
def test_layers_are_matched_by_name_and_by_structure(fused):
    model, data = dense_pair(fused)
    graph = read_tflite("q", data)
    pairs = matched_tensors(graph, model.graph)
    layers = layers_of(graph, model.graph, pairs)
    assert [layer.float_output.name for layer in layers] == ["x", "relu" if fused else "sum", "y"]
    if fused:  # the float part of the fused layer has both operators
        assert [op.kind for op in layers[1].float_steps] == ["FULLY_CONNECTED", "RELU"]
    assert [op.kind for op in layers[2].float_steps][-1] == "FULLY_CONNECTED"


def test_errors_of_a_fused_layer_are_small():
    pytest.importorskip("ai_edge_litert")
    model, data = dense_pair(True)
    x = np.random.default_rng(1).uniform(-3, 3, (6, 1, 4)).astype(np.float32)
    blame = blame_layers(read_tflite("q", data), model, [{"x": x}], 6, lambda text: None)
    assert blame.snr_db is not None and blame.snr_db > 15
    assert all(layer.own_snr_db is None or layer.own_snr_db > 15 for layer in blame.layers)
