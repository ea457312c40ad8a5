"""Published schemas match the declarations, and every command's answer matches its schema, key by key."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, ValidationError
from known_architectures import two_inputs
from random_graphs import Sketch
from stream_models import streaming_convolutions

from tinyfuse.cli.main import main
from tinyfuse.schema.answers import ANSWERS
from tinyfuse.schema.document import schema, schema_text

emulated = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")), reason="no cross compiler, or no QEMU"
)


def closed(part: Any) -> Any:
    """The schema with `additionalProperties` forbidden everywhere."""
    if isinstance(part, list):
        return [closed(each) for each in part]
    if not isinstance(part, dict):
        return part
    found = {key: closed(value) for key, value in part.items()}
    return found | {"additionalProperties": False} if part.get("type") == "object" and "properties" in part else found


def answer(*words: str, code: int = 0) -> dict[str, Any]:
    done = CliRunner().invoke(main, [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == code, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def meets(name: str, value: dict[str, Any]) -> None:
    Draft202012Validator(schema(name)).validate(value)
    Draft202012Validator(closed(schema(name))).validate(value)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    sketch = Sketch(11)
    x = sketch.value((1, 8, 6, 4))
    y = sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))
    Path("m.tflite").write_bytes(sketch.build([x], [sketch.relu(sketch.pad(y, 1, 0, 0, 1))]))
    Path("branches.tflite").write_bytes(two_inputs())
    Path("stream.tflite").write_bytes(streaming_convolutions())
    return tmp_path


def test_schemas_are_valid_and_printed_as_declared() -> None:
    for name in ANSWERS:
        Draft202012Validator.check_schema(schema(name))
        assert CliRunner().invoke(main, ["schema", name]).output == schema_text(name)


def test_answers_about_models_meet_their_schemas(folder: Path) -> None:
    for model in ("m.tflite", "branches.tflite", "stream.tflite"):
        meets("report", answer("report", model, "--target", "cortex-m4", "--pareto", "--dump-passes", "--costs"))
    meets("report", answer("report", "m.tflite", "--target", "host", "--fusion", "none"))
    meets("report", answer("report", "m.tflite", "--target", "cortex-m4", "--step"))
    banks = ("--memory", "ram=64K", "--memory", "qspi=64K:slow")
    meets("report", answer("report", "m.tflite", "--target", "cortex-m4", "--fusion", "none", *banks))
    meets("report", answer("report", "m.tflite", "--target", "cortex-m4", "--slide", "1"))
    meets("gen", answer("gen", "m.tflite", "--target", "host", "-o", "out", "--max-ram", "1M", "--plugin", _plugin()))
    meets("explain", answer("explain", "branches.tflite", "--target", "cortex-m55"))
    meets("explain", answer("explain", "m.tflite", "--target", "cortex-m4", "--slide", "1"))
    meets("verify", answer("verify", "m.tflite", "--target", "host", "--oracle", "tflm", "--runs", "2"))
    np.save("x.npy", np.zeros((3, 8, 6, 4), np.int8))
    np.save("y.npy", np.zeros(3, np.int8))
    for metric in ("top1", "mae"):
        if metric == "mae":
            np.save("y.npy", np.zeros((3, 378)))
        meets("evaluate", answer("evaluate", "m.tflite", "--data", "x.npy", "--labels", "y.npy", "--metric", metric))


def _plugin() -> str:
    Path("plugin.py").write_text("from tinyfuse.plugin import Plugin\n\nPLUGIN = Plugin()\n")
    return "plugin.py"


@emulated
def test_measured_answers_meet_their_schemas(folder: Path) -> None:
    target = ("m.tflite", "--target", "cortex-m4", "--kernels", "tinyfuse")
    meets("verify", answer("verify", *target, "--oracle", "tflm", "--runs", "2"))
    meets("profile", answer("profile", *target))
    np.save("x.npy", np.zeros((1, 8, 6, 4), np.int8))
    meets("run", answer("run", *target, "--input", "x.npy"))


def test_other_answers_and_errors_meet_their_schemas(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("targets", "operators"):
        meets(name, answer(name))
    done = CliRunner().invoke(main, ["doctor", "--json"])
    meets("doctor", json.loads(done.stdout))
    meets("front-end", answer("front-end", "-o", "mel.tflite"))
    meets("error", answer("report", "no.tflite", "--target", "host", code=2))
    Path("bad.tflite").write_bytes(Path("m.tflite").read_bytes()[:100])
    meets("error", answer("report", "bad.tflite", "--target", "host", code=2))
    meets("error", answer("report", "m.tflite", "--target", "host", "--max-ram", "8", code=1))
    Path("a.json").write_text(json.dumps(answer("report", "m.tflite", "--target", "host")))
    meets("diff", answer("diff", "a.json", "a.json", "--fail-if-grows", "ram=0"))


def test_a_key_that_is_gone_or_of_another_type_is_seen(folder: Path) -> None:
    good = answer("report", "m.tflite", "--target", "host")
    for wrong in ({"arena_bytes": "12"}, {"arena_bytes": -1}, {"schema_version": 2}, {"groups": [{}]}):
        with pytest.raises(ValidationError):
            meets("report", good | wrong)
    with pytest.raises(ValidationError):
        meets("report", {key: value for key, value in good.items() if key != "buffers"})
    with pytest.raises(ValidationError):
        meets("report", good | {"undeclared": 1})
    Draft202012Validator(schema("report")).validate(good | {"added_later": 1})
