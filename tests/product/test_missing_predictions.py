"""An operator without a prediction: the others are still predicted, and a message gives the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from control_flow_models import below, choice, convolution, iteration, loop, unary
from jsonschema import validate

from tinyfuse.cli.main import main
from tinyfuse.schema.document import schema

_MODELS: dict[str, Callable[[], bytes]] = {
    "IF": lambda: choice(convolution(), unary("RELU")),
    "WHILE": lambda: loop(below(5), iteration()),
}


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        done = CliRunner().invoke(main, list(words), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    return run


@pytest.mark.parametrize("kind", _MODELS)
def test_the_rest_is_predicted(command: Callable[..., str], kind: str) -> None:
    Path("m.tflite").write_bytes(_MODELS[kind]())
    told = "decides which of its graphs runs" if kind == "IF" else "decides how often its graphs run"
    for name in ("report", "explain"):
        data = json.loads(command(name, "m.tflite", "--target", "cortex-m4", "--json"))
        validate(data, schema(name))
        assert data["predicted_instructions"] is None and data["known_instructions"] > 0 and data["known_cycles"] > 0
        (unknown,) = data["not_predicted"]
        assert kind in unknown["operator"] and told in unknown["reason"] and "graph 1 takes" in unknown["reason"]
        text = " ".join(command(name, "m.tflite", "--target", "cortex-m4").split())
        assert f"{data['known_instructions']:,} instructions" in text and told in text


def test_nothing_is_said_where_all_is_predicted_or_nothing(command: Callable[..., str]) -> None:
    Path("m.tflite").write_bytes(_MODELS["WHILE"]())
    data = json.loads(command("report", "m.tflite", "--target", "host", "--json"))
    assert data["known_instructions"] is None and data["not_predicted"] == []
