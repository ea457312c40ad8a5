"""`tinyfuse diff`: figures compared, limits kept, and files that can't be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from random_graphs import Sketch

from tinyfuse.cli.main import main
from tinyfuse.report.diff import Change, compare_figures


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


REPORT = {
    "schema_version": 1, "tinyfuse_version": "0.1.0", "model": "m.tflite", "model_sha256": "0" * 64,
    "target": "cortex-m4", "arena_bytes": 1000, "state_bytes": 24, "weight_bytes": 5000, "code_bytes": 2000,
    "code_bytes_measured": True, "predicted_instructions": 100_000, "macs": 50_000,
}  # fmt: skip
VERIFIED = {
    **{key: REPORT[key] for key in list(REPORT)[:7]}, "compiler": "gcc 12", "compiler_opt": "O2", "instructions": 99_000,
    "flash_code_bytes": 2000, "flash_weight_bytes": 5000, "stack_bytes": 100, "macs": 50_000,
}  # fmt: skip


def diff(old: Any, new: Any, *words: str) -> Result:
    for name, value in (("old.json", old), ("new.json", new)):
        Path(name).write_text(value if isinstance(value, str) else json.dumps(value))
    return CliRunner().invoke(main, ["diff", "old.json", "new.json", *words], catch_exceptions=False)


def changes(old: Any, new: Any, *words: str) -> dict[str, Any]:
    done = diff(old, new, *words, "--json")
    return {each["figure"]: each for each in json.loads(done.output)["figures"]}


def test_figures_are_those_of_the_answers() -> None:
    found = changes(REPORT, REPORT | {"arena_bytes": 1100, "predicted_instructions": 99_000, "state_bytes": 0})
    assert {name: (each["old"], each["new"]) for name, each in found.items()} == {
        "ram": (1024, 1100), "arena": (1000, 1100), "state": (24, 0), "flash": (7000, 7000), "weights": (5000, 5000),
        "code": (2000, 2000), "instructions": (100_000, 99_000), "macs": (50_000, 50_000),
    }  # fmt: skip
    assert found["arena"]["percent"] == 10.0 and found["instructions"]["percent"] == -1.0
    measured = changes(VERIFIED, VERIFIED | {"instructions": 98_000})
    assert measured["instructions"]["new"] == 98_000 and measured["stack"]["old"] == 100


@pytest.mark.parametrize(
    ("limits", "new", "code"),
    [
        (["ram=0"], {"arena_bytes": 1000}, 0),
        (["ram=0"], {"arena_bytes": 1001}, 1),
        (["ram=0"], {"arena_bytes": 900}, 0),
        (["arena=1"], {"arena_bytes": 1001}, 0),
        (["arena=1%"], {"arena_bytes": 1010}, 0),
        (["arena=1%"], {"arena_bytes": 1011}, 1),
        (["arena=0.5%, instructions=1%"], {"arena_bytes": 1005, "predicted_instructions": 101_001}, 1),
        (["arena=0", "flash=16"], {"weight_bytes": 5017}, 1),
        (["state=0"], {"state_bytes": 25}, 1),
    ],
)
def test_a_limit_is_kept_or_ends_with_1(limits: list[str], new: dict[str, int], code: int) -> None:
    words = [word for limit in limits for word in ("--fail-if-grows", limit)]
    done = diff(REPORT, REPORT | new, *words)
    assert done.exit_code == code, done.output
    assert ("more than" in done.output) == (code == 1)
    table = diff(REPORT, REPORT | new, *words, "--markdown")
    assert table.exit_code == code and ("**exceeded**" in table.output) == (code == 1)
    assert len({line.count("|") for line in table.output.splitlines()}) == 1, "a table"


def test_nothing_grows_by_no_percent() -> None:
    assert Change("state", 0, 5).percent is None and Change("state", 0, 0).percent == 0.0
    assert Change("state", 0, 5, "10%").grew and not Change("state", 0, 0, "10%").grew


def test_measured_and_predicted_figures_are_never_compared() -> None:
    names = {change.figure for change in compare_figures(REPORT, VERIFIED, {})}
    assert "instructions" not in names and {"ram", "flash", "macs"} <= names
    done = diff(REPORT, VERIFIED, "--fail-if-grows", "instructions=1%")
    assert done.exit_code == 2 and "do not both have this figure" in done.output
    estimated = REPORT | {"code_bytes_measured": False}
    assert "flash" not in {change.figure for change in compare_figures(REPORT, estimated, {})}
    done = diff(REPORT | {"predicted_instructions": None}, REPORT, "--fail-if-grows", "instructions=1%")
    assert done.exit_code == 2


def test_other_targets_and_compilers_are_told() -> None:
    done = diff(VERIFIED, VERIFIED | {"target": "cortex-m55", "compiler_opt": "Os"})
    assert done.exit_code == 0 and "targets differ" in done.output and "compiler opt differs" in done.output


@pytest.mark.parametrize(
    ("old", "words", "message"),
    [
        ("{", [], "not JSON"),
        ("[" * 100_000, [], "not JSON"),
        ("[]", [], "not JSON of tinyfuse"),
        ("{}", [], "not JSON of tinyfuse"),
        ({"schema_version": 2}, [], "version 2"),
        ({"schema_version": 1, "error": {"message": "too large"}}, [], "too large"),
        ({"schema_version": 1, "targets": []}, [], "no model"),
        (REPORT | {"arena_bytes": "x"}, [], "this JSON"),
        (REPORT | {"arena_bytes": True}, [], "this JSON"),
        (REPORT | {"state_bytes": -1}, [], "this JSON"),
        (REPORT | {"arena_bytes": [1]}, [], "this JSON"),
        (REPORT, ["--fail-if-grows", "ram"], "FIGURE=LIMIT"),
        (REPORT, ["--fail-if-grows", "speed=1%"], "figures: ram"),
        (REPORT, ["--fail-if-grows", "ram=-1"], "not a limit"),
        (REPORT, ["--fail-if-grows", "ram=1e9"], "not a limit"),
        (REPORT, ["--fail-if-grows", "ram=0,"], "FIGURE=LIMIT"),
        (REPORT, ["--fail-if-grows", "stack=0"], "do not both have this figure"),
    ],
)
def test_what_cannot_be_compared_is_said(old: Any, words: list[str], message: str) -> None:
    done = diff(old, REPORT, *words)
    assert done.exit_code == 2, done.output
    assert message in done.output and "Traceback" not in done.output and done.output.startswith("tinyfuse: ")


def test_a_missing_file_and_one_of_other_bytes_are_said() -> None:
    Path("binary").write_bytes(b"\xff\xfe\x00{")
    for name in ("missing", "binary", "."):
        done = CliRunner().invoke(main, ["diff", name, name])
        assert done.exit_code == 2 and name in done.output


def test_reports_of_two_options_are_compared() -> None:
    sketch = Sketch(11)
    x = sketch.value((1, 24, 16, 8))
    y = sketch.conv(sketch.depthwise(sketch.conv(x, 16, (1, 1)), (3, 3)), 8, (1, 1))
    Path("m.tflite").write_bytes(sketch.build([x], [sketch.fully_connected(y, 4)]))
    answers = [
        CliRunner().invoke(main, ["report", "m.tflite", "--target", "host", "--json", *words]).output
        for words in (["--fusion", "none"], [])
    ]
    assert diff(*answers, "--fail-if-grows", "ram=0").exit_code == 0
    assert diff(*reversed(answers), "--fail-if-grows", "ram=0").exit_code == 1


def test_a_figure_that_no_float_holds_is_refused() -> None:
    done = diff(REPORT, REPORT | {"macs": 10**400}, "--fail-if-grows", "macs=5%")
    assert done.exit_code == 2 and "tinyfuse did not write this JSON" in done.output and len(done.output) < 300
