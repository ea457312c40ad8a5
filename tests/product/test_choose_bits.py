"""`tinyfuse quantize --accuracy-loss` and `tinyfuse.choose_bits`: bits for each layer, by accuracy and costs."""

from __future__ import annotations

import importlib.util
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from float_networks import enlarge_channel, random_network
from jsonschema import Draft202012Validator

import tinyfuse
from tinyfuse.api.choosing import _shared_samples
from tinyfuse.api.quantizing import float_model
from tinyfuse.cli.main import main
from tinyfuse.cli.quantize import quantize_file
from tinyfuse.cli.terminal import json_text
from tinyfuse.data.inputs import input_specs
from tinyfuse.data.samples import open_samples
from tinyfuse.errors import UsageError
from tinyfuse.progress import silent
from tinyfuse.quantization.options import QuantizeOptions
from tinyfuse.schema.document import schema
from tinyfuse.verify.oracle import InterpreterOracle

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("ai_edge_quantizer", "ai_edge_litert", "tflite_micro")),
    reason="needs the extras quantize and verify",
)


def tinyfuse_command(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def float_outputs(data: bytes, samples: np.ndarray) -> np.ndarray:
    model = float_model(data)
    found = InterpreterOracle("litert", model.data, model.graph).run_all([[sample[None]] for sample in samples])
    return np.concatenate([outputs[0] for outputs in found])


def labels_by(data: bytes, samples: np.ndarray) -> np.ndarray:
    """Best classes of the float model itself, so that its accuracy is 1."""
    return float_outputs(data, samples).argmax(axis=1)


def network(seed: int, planted: int | None) -> tuple[bytes, np.ndarray, np.ndarray, np.ndarray]:
    """A float network, calibration data, and test data with labels; the layer `planted` needs int16."""
    rng = np.random.default_rng(seed)
    made = random_network(rng)
    if planted is not None:
        enlarge_channel(made, planted, 0, 300.0)
    calibration, tests = made.inputs(rng, 40), made.inputs(rng, 300)
    weights, made.dense = made.dense, np.eye(made.dense.shape[1], dtype=np.float32)
    features = float_outputs(made.file(), calibration).mean(axis=0)
    # without this all samples would be of one class
    made.dense = weights - np.outer(weights @ features, features) / (features @ features)
    made.dense = made.dense.astype(np.float32)
    data = made.file()
    return data, calibration, tests, labels_by(data, tests)


@pytest.fixture(scope="module")
def planted() -> tuple[bytes, np.ndarray, np.ndarray, np.ndarray]:
    return network(5, planted=1)


@pytest.fixture(scope="module")
def plain() -> tuple[bytes, np.ndarray, np.ndarray, np.ndarray]:
    return network(4, planted=None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("net.tflite").write_bytes(plain[0])
    for name, array in zip(("x", "t", "y"), plain[1:], strict=True):
        np.save(f"{name}.npy", array)
    return tmp_path


def test_a_planted_sensitive_layer_gets_int16(planted):
    data, x, tests, labels = planted
    found = tinyfuse.choose_bits(data, x, labels, accuracy_loss=12, test_data=tests)
    first = found.plans[0]
    assert not first.layers and "accuracy_loss" in first.exceeds
    assert found.chosen is not None
    best = found.plans[found.chosen]
    assert ("y1", "int16x8") in best.layers
    assert best.loss <= 12 < first.loss and best.exact and not best.exceeds
    assert {name for name, _ in best.layers} == {"y1", "y2"}  # y2 reads it
    again = tinyfuse.quantize(data, x, layers=[f"{name}={scheme}" for name, scheme in best.layers])
    assert again.data == found.data


def test_costs_are_those_of_the_module(planted):
    data, x, tests, labels = planted
    found = tinyfuse.choose_bits(data, x, labels, accuracy_loss=100, test_data=tests)
    (plan,) = found.plans
    module = tinyfuse.compile(plan.data, "cortex-m4")
    costs = (plan.ram_bytes, plan.instructions, plan.flash_bytes)
    assert costs == (module.ram_bytes, module.predicted_instructions, module.flash_bytes)
    assert plan.score == module.evaluate(tests, labels).score
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_budget_that_only_int4_meets(plain):
    data, x, tests, labels = plain
    flash = tinyfuse.compile(tinyfuse.quantize(data, x).data, "cortex-m4").flash_bytes
    limit = flash - 200
    found = tinyfuse.choose_bits(data, x, labels, accuracy_loss=60, test_data=tests, max_flash=limit)
    assert found.chosen is not None
    best = found.plans[found.chosen]
    assert {scheme for _, scheme in best.layers} == {"int8x4"}
    assert best.flash_bytes <= limit


def test_a_front_of_plans(plain, monkeypatch):
    data, x, tests, labels = plain
    monkeypatch.setattr("tinyfuse.bits.search.MAX_PLANS", 3)
    found = tinyfuse.choose_bits(data, x, labels[:60], accuracy_loss=100, test_data=tests[:60], explore=True)
    schemes = {scheme for plan in found.plans for _, scheme in plan.layers}
    assert schemes == {"int16x8", "int8x4"} and len(found.plans) == 3
    figures = [(p.loss, p.ram_bytes, p.instructions, p.flash_bytes) for p in found.plans]
    beaten = [any(o != p and all(a <= b for a, b in zip(o, p, strict=True)) for o in figures) for p in figures]
    assert list(found.front) == [place for place, lost in enumerate(beaten) if not lost]


def answer_of(**how: object) -> tuple[dict[str, Any], str]:
    """What the command answers, as JSON and as text."""
    answer = quantize_file("net.tflite", ("x.npy",), None, "y.npy", ("t.npy",), QuantizeOptions(**how), silent)
    data = json.loads(json_text(answer.data))
    Draft202012Validator(schema("quantize")).validate(data)
    assert answer.exact == (data["output"] is not None)
    return data, "\n".join(answer.lines)


def test_no_plan_within_the_limits_is_told(folder):
    answer, told = answer_of(accuracy_loss=0.0, max_ram="100")
    assert "NO PLAN" in told and "--max-ram" in told and "nothing was written" in told
    assert answer["output"] is None and not Path("net_mixed.tflite").exists()
    assert len(answer["search"]["closest"]) == len(answer["search"]["plans"][:3])


def test_the_command_writes_the_choice(folder):
    answer, told = answer_of(accuracy_loss=100.0, max_ram="64K")
    plan = answer["search"]["plans"][answer["search"]["chosen"]]
    assert Path(answer["output"]).stat().st_size == plan["bytes"] and answer["output"] == "net_mixed.tflite"
    assert "\n* " in told and "next: tinyfuse gen net_mixed.tflite --target cortex-m4 --max-ram 64K" in told


def test_calibration_data_that_are_evaluated_are_told(plain):
    data, x, tests, _ = plain
    both = np.concatenate([x[:7], tests[:40]])
    found = tinyfuse.choose_bits(data, both, labels_by(data, both), accuracy_loss=100)
    assert any("--test-data" in warning for warning in found.warnings)
    given, tested = (open_samples(each, input_specs(float_model(data).graph.inputs)) for each in (x, both))
    (warning,) = _shared_samples(given, tested, 500)
    assert "7 of 47 evaluated samples are calibrated with" in warning


def test_bad_input_is_one_clear_error(folder, plain):
    words = ["quantize", "net.tflite", "--data", "x.npy"]
    for more, told in (
        (["--accuracy-loss", "1"], "give --labels"),
        (["--max-flash", "10K"], "--max-flash works only with --accuracy-loss"),
        (["--labels", "y.npy"], "--labels works only with --accuracy-loss"),
        (["--accuracy-loss", "1", "--labels", "y.npy"], "300 labels for 40 samples"),
        (["--accuracy-loss", "1", "--labels", "y.npy", "--scheme", "int16x8"], "leave out --scheme"),
        (["--accuracy-loss", "1", "--labels", "y.npy", "--max-ram", "much"], "is not a size"),
    ):
        done = tinyfuse_command(*words, *more)
        assert done.exit_code == 2 and told in done.output, done.output
    data, x, tests, labels = plain
    with pytest.raises(UsageError, match="give real numbers"):
        tinyfuse.choose_bits(data, x, labels, accuracy_loss=1, test_data=tests.astype(np.int8))
    assert not list(Path().glob("*mixed*"))
