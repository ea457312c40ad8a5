"""`tinyfuse gen PROJECT.cbuild-mlops.yml`: the layer that CMSIS-Toolbox asks for, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import form_rules
import pytest
import yaml
from click.testing import CliRunner, Result
from test_generated_code import separable

from tinyfuse.cli.main import main

ASKED = {
    "generated-by": "csolution version 2.14.0",
    "processor": {"type": "Cortex-M4"},
    "model": {"clayer": "layers/ai/my_net.clayer.yml", "name": "net"},
}


def gen(folder: Path, asked: object = ASKED, *options: str, model: str = "net.tflite", command: str = "gen") -> Result:
    if model:
        (folder / model).parent.mkdir(parents=True, exist_ok=True)
        (folder / model).write_bytes(separable())
    (folder / "app.cbuild-mlops.yml").write_text(yaml.safe_dump({"cbuild-mlops": asked}))
    return CliRunner().invoke(main, [command, str(folder / "app.cbuild-mlops.yml"), *options])


@pytest.mark.parametrize(
    "model", ["net.tflite", "layers/ai_model/../ai/net.tflite"], ids=["beside the file", "in the layer's folder"]
)
def test_the_layer_lies_where_it_is_asked_for(tmp_path: Path, model: str) -> None:
    (tmp_path / "layers/ai_model").mkdir(parents=True)
    if "layers" in model:  # a folder with a model in it is not ours
        assert "was not written by tinyfuse" in gen(tmp_path, ASKED, model=model).output
    result = gen(tmp_path, ASKED, *(["--force"] if "layers" in model else []), model=model)
    assert result.exit_code == 0, result.output
    layer = tmp_path / "layers/ai"
    assert (layer / "my_net.clayer.yml").is_file() and (layer / "net.h").is_file()
    assert form_rules.csolution(layer) == []
    assert "my_net.clayer.yml" in (layer / "README.md").read_text()


@pytest.mark.parametrize(
    "core, target",
    [
        ("Cortex-M55", "cortex-m55"),
        ("Cortex-M0+", "cortex-m0plus"),
        ("Cortex-M23", "cortex-m0plus"),
        ("SC300", "cortex-m3"),
    ],
)
def test_the_core_is_that_of_the_file(tmp_path: Path, core: str, target: str) -> None:
    result = gen(tmp_path, ASKED | {"processor": {"type": core}}, "--json", command="report")
    told = json.loads(result.stdout)
    assert told["target"] == target and told["options"]["name"] == "net"


@pytest.mark.parametrize("change, said", [
    ({"processor": {"type": "Cortex-A53"}}, "no target for"),
    ({"processor": {}}, "processor has no type"),
    ({"processor": None}, "no processor: node"),
    ({"model": {"name": "net"}}, "model has no clayer"),
    ({"model": {"clayer": "a.yml", "name": "net"}}, "ends in .clayer.yml"),
    ({"model": {"clayer": "a.clayer.yml", "name": "../net"}}, "can't prefix C names"),
    ({"model": {"clayer": "a.clayer.yml", "name": ["net"]}}, "model has no name"),
    ({"model": {"clayer": "a.clayer.yml", "name": "other"}}, "other.tflite, and is not there"),
], ids=str)  # fmt: skip
def test_what_it_lacks_is_told(tmp_path: Path, change: dict[str, object], said: str) -> None:
    result = gen(tmp_path, ASKED | change)
    assert result.exit_code == 2 and said in result.output, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app.cbuild-mlops.yml", "net.tflite"]


@pytest.mark.parametrize(
    "text", ["", "[", "a: [", "cbuild-mlops: 3", "!!python/object:os.system {}", "\x00", "- " * 3000]
)
def test_files_that_are_something_else(tmp_path: Path, text: str) -> None:
    (tmp_path / "app.cbuild-mlops.yml").write_text(text)
    result = CliRunner().invoke(main, ["gen", str(tmp_path / "app.cbuild-mlops.yml")])
    assert result.exit_code == 2 and "app.cbuild-mlops.yml" in result.output, result.output


def test_it_is_the_only_argument(tmp_path: Path) -> None:
    for option in (["--target", "cortex-m4"], ["--name", "net"], ["--device", "STM32L4"]):
        assert "leave out --target" in gen(tmp_path, ASKED, *option).output
    assert "can't read" in CliRunner().invoke(main, ["gen", str(tmp_path / "none.cbuild-mlops.yml")]).output
