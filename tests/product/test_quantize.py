"""`tinyfuse quantize`, `gen --quantize-with` and `tinyfuse.quantize`: float models become exact int8 modules."""

from __future__ import annotations

import importlib.util
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from float_networks import random_network
from jsonschema import Draft202012Validator
from tflite_builder import ModelBuilder
from weight_forms import FORMS, dense_network

import tinyfuse
from tinyfuse.cli.main import main
from tinyfuse.errors import CompileError, UsageError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.quantization.recipes import layers_of, recipe
from tinyfuse.schema.document import schema
from tinyfuse.verify.oracle import ReferenceOracle, make_oracle

quantizer = pytest.mark.skipif(importlib.util.find_spec("ai_edge_quantizer") is None, reason="needs the extra quantize")


def tinyfuse_command(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


@pytest.fixture(scope="module")
def network() -> tuple[bytes, np.ndarray]:
    rng = np.random.default_rng(4)
    found = random_network(rng)
    return found.file(), found.inputs(rng, 48)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: tuple[bytes, np.ndarray]) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("net.tflite").write_bytes(network[0])
    np.save("x.npy", network[1])
    return tmp_path


def activations(data: bytes) -> set[str]:
    return {tensor.dtype for op in read_tflite("m", data).ops for tensor in (*op.activations, *op.outputs)}


@quantizer
@pytest.mark.parametrize("scheme, dtype", [("int8", "int8"), ("int16x8", "int16"), ("int8x4", "int8")])
def test_schemes_give_models_that_tflm_agrees_with(network, scheme, dtype):
    pytest.importorskip("tflite_micro")
    data, x = network
    found = tinyfuse.quantize(data, x, scheme=scheme)
    assert activations(found.data) == {dtype} and not found.islands and found.samples == 48
    graph = read_tflite("q", found.data)
    kinds = {op.operand(1).dtype for op in graph.ops if op.kind in ("CONV_2D", "FULLY_CONNECTED")}
    assert kinds == {"int4" if scheme == "int8x4" else "int8"}
    inputs = [[np.random.default_rng(i).integers(-128, 128, graph.inputs[0].shape).astype(dtype)] for i in range(3)]
    for ours, theirs in zip(
        ReferenceOracle(graph).run_all(inputs), make_oracle("tflm", found.data, graph).run_all(inputs), strict=True
    ):
        assert np.array_equal(ours[0], theirs[0])


@quantizer
def test_the_outputs_are_near_the_float_models(network):
    data, x = network
    made = tinyfuse.compile(tinyfuse.quantize(data, x).data, "host").blame(data, x, samples=4)
    assert made.snr_db is not None and made.snr_db > 20


@quantizer
@pytest.mark.parametrize("form", FORMS)
def test_weights_in_every_form(form):
    data, _ = dense_network(form)
    x = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    found = tinyfuse.quantize(data, {"x": x})
    assert activations(found.data) == {"int8"}
    assert found.weights_read == (0 if form == "float32" else 2)


@quantizer
def test_the_same_arguments_give_the_same_bytes(folder):
    for name in ("a", "b"):
        done = tinyfuse_command("quantize", "net.tflite", "--data", "x.npy", "-o", f"{name}.tflite")
        assert done.exit_code == 0, done.output
    assert Path("a.tflite").read_bytes() == Path("b.tflite").read_bytes()


@quantizer
def test_float_inputs_and_outputs(network):
    data, x = network
    graph = read_tflite("q", tinyfuse.quantize(data, x, float_io=True).data)
    assert {t.dtype for t in (*graph.inputs, *graph.outputs)} == {"float32"}
    assert [graph.ops[0].kind, graph.ops[-1].kind] == ["QUANTIZE", "DEQUANTIZE"]


@quantizer
def test_layers_are_computed_as_asked(network):
    data, x = network
    found = tinyfuse.quantize(data, x, layers=["y1=int16x8", "y2=float", "log*=int16x8"])
    made = {tensor.name: tensor.dtype for op in read_tflite("q", found.data).ops for tensor in op.outputs}
    assert (made["y0"], made["y1"], made["y2"], made["y3"]) == ("int8", "int16", "float32", "int8")
    assert made["logits"] == "int16"
    assert not found.islands  # what was asked for is no island


@quantizer
def test_gen_quantizes_and_verify_repeats_it(folder):
    done = tinyfuse_command(
        "gen", "net.tflite", "--target", "cortex-m4", "--quantize-with", "x.npy", "--depfile", "d", "-o", "out"
    )
    assert done.exit_code == 0, done.output
    assert "next: tinyfuse verify net.tflite --target cortex-m4 --quantize-with x.npy" in done.output
    assert "x.npy" in Path("d").read_text()
    header = Path("out/net.h").read_text()
    assert "int8" in header
    alone = tinyfuse.quantize("net.tflite", "x.npy")
    Path("q.tflite").write_bytes(alone.data)
    report = json.loads(
        tinyfuse_command("report", "net.tflite", "--target", "cortex-m4", "--quantize-with", "x.npy", "--json").stdout
    )
    other = json.loads(tinyfuse_command("report", "q.tflite", "--target", "cortex-m4", "--json").stdout)
    assert report["model_sha256"] == other["model_sha256"] and report["arena_bytes"] == other["arena_bytes"]


def softsign_network() -> bytes:
    """A dense layer and an EXP, of which the quantizer has no int8 form."""
    rng, model = np.random.default_rng(5), ModelBuilder()
    x, y, z = (model.tensor(name, (1, 8), "float32") for name in ("x", "dense", "exp"))
    w = model.tensor("w", (8, 8), "float32", data=(rng.standard_normal((8, 8)) / 4).astype(np.float32))
    model.op("FULLY_CONNECTED", [x, w, -1], [y], version=1, weights_format="DEFAULT", keep_num_dims=False,
             fused_activation_function="NONE")  # fmt: skip
    model.op("EXP", [y], [z])
    return model.build([x], [z])


@quantizer
def test_what_stays_float_is_told_with_its_cost_and_a_way_on(folder):
    Path("exp.tflite").write_bytes(softsign_network())
    np.save("e.npy", np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32))
    done = tinyfuse_command("quantize", "exp.tflite", "--data", "e.npy", "--json")
    answer: dict[str, Any] = json.loads(done.stdout)
    Draft202012Validator(schema("quantize")).validate(answer)
    (island,) = answer["float_operators"]
    assert (island["kind"], island["tensor"]) == ("EXP", "exp")
    assert island["instructions"] > 0
    (warning,) = answer["warnings"]
    assert "1 EXP ('exp') stays float32" in warning and "instructions on cortex-m4" in warning
    assert "train the network with another operator" in warning


def one_error(*words: str, code: int = 2) -> str:
    done = tinyfuse_command(*words)
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    return done.output


def test_bad_input_is_one_clear_error(folder):
    assert "no such file" in one_error("quantize", "none.tflite", "--data", "x.npy")
    Path("cut.tflite").write_bytes(Path("net.tflite").read_bytes()[:500])
    assert "damaged" in one_error("quantize", "cut.tflite", "--data", "x.npy")
    assert "give another one" in one_error("quantize", "net.tflite", "--data", "x.npy", "-o", "net.tflite")
    assert "--values" in one_error("quantize", "net.tflite", "--data", "x.npy", "--values", "1")
    with pytest.raises(UsageError, match="scheme='int2'"):
        tinyfuse.quantize("net.tflite", "x.npy", scheme="int2")
    assert not Path("net_int8.tflite").exists()


@quantizer
def test_bad_data_is_one_clear_error(folder):
    np.save("odd.npy", np.zeros((4, 3, 3, 3), np.float32))
    assert "has the shape" in one_error("quantize", "net.tflite", "--data", "odd.npy")
    x = np.load("x.npy")
    x[3] = np.nan
    np.save("nan.npy", x)
    assert "NaN" in one_error("quantize", "net.tflite", "--data", "nan.npy") or "finite" in one_error(
        "quantize", "net.tflite", "--data", "nan.npy"
    )
    assert "no operator's output has this name" in one_error(
        "quantize", "net.tflite", "--data", "x.npy", "--layer", "nothing=int8"
    )
    assert "write NAME=SCHEME" in one_error("quantize", "net.tflite", "--data", "x.npy", "--layer", "y1=int2")
    assert not Path("net_int8.tflite").exists()


def test_without_the_extra_the_error_names_it(folder, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "tinyfuse.toolchain.extras.importlib.util.find_spec",
        lambda n: None if n == "ai_edge_quantizer" else find_spec(n),
    )
    told = one_error("quantize", "net.tflite", "--data", "x.npy", code=3)
    assert "ai-edge-quantizer" in told and "[quantize]" in told


@quantizer
def test_a_quantized_model_is_pickled(network):
    data, x = network
    found = tinyfuse.quantize(data, x)
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_refused_operator_is_named(network, monkeypatch):
    """The message names the operators without which the quantizer would accept the model."""
    from tinyfuse.quantization import convert

    class Stub:
        def quantize(self, wanted):
            if not any(rule["operation"] == "MEAN" for rule in wanted):
                raise convert.Refused("ValueError: no such thing")
            return b""

    model = convert.read_float_model("net.tflite", network[0])
    error = convert._refusal(Stub(), model, convert.Wish(), [], convert.Refused("ValueError: no such thing"))
    assert isinstance(error, CompileError)
    assert "MEAN 'mean'" in str(error) and "no such thing" in str(error) and "--layer 'mean=float'" in str(error)


def test_rules_of_layers_match_whole_names():
    (rule,) = recipe("int8", layers=[("a.b", "float")])[1:]
    assert re.search(rule["regex"], "a.b;") and re.search(rule["regex"], "first;a.b;")
    assert not re.search(rule["regex"], "axb;") and not re.search(rule["regex"], "a.b2;")


def test_layers_of_patterns(network):
    graph = read_tflite("net", network[0])
    assert layers_of(graph, ["y?=float"])[0] == ("y0", "float")
