"""`tinyfuse board calibrate` and `estimate`: recover the rates of a board whose kernels take known cycles, and predict
other models with them. Files that are neither answers nor tables are refused."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from io import StringIO
from pathlib import Path

import pytest
from executors import plan_of
from known_architectures import mobilenet_v2, two_inputs
from random_graphs import Sketch
from rich.console import Console
from sliding_models import padded
from test_board import ran, small
from test_schemas import meets

from tinyfuse.api.results import BoardFigures, BoardValidation, Spread
from tinyfuse.cli import board_costs
from tinyfuse.cli.board import validation_json
from tinyfuse.cli.board_costs import read_validation
from tinyfuse.cost.calibrate import Sample, rates
from tinyfuse.cost.predict import plan_stages
from tinyfuse.cost.table import cost_table, entry_name, read_table
from tinyfuse.errors import UsageError
from tinyfuse.plan import Plan
from tinyfuse.profile.profile_json import Measured, add_board_cycles, profile_json
from tinyfuse.profile.text import profile_text
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.report_json import plan_envelope
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation import Firmware, Outcome

TARGET = "cortex-m4"


def dense() -> bytes:
    sketch = Sketch(3)
    x = sketch.value((1, 12, 12, 2))
    y = sketch.conv(sketch.depthwise(sketch.conv(x, 8, (3, 3)), (3, 3)), 12, (1, 1))
    return sketch.build([x], [sketch.fully_connected(sketch.mean(y), 5)])


def rate_of(entry: str) -> float:
    """Cycles per instruction on a board that waits for its flash in some kernels more than in others."""
    return 5.0 if "depthwise" in entry else 1.0


def entries(plan: Plan) -> list[list[tuple[str, float]]]:
    """For each stage of each group: its entry in the cost table, and its predicted instructions."""
    return [
        [
            (entry_name(stage.op, stage.kernel, stage.by_row, plan.context), instructions or 0.0)
            for stage, instructions in zip(group.stages, predicted, strict=True)
        ]
        for group, predicted in zip(plan.groups, plan_stages(plan), strict=True)
    ]


def answer(data: bytes, **changed: object) -> str:
    """The output of `board validate --json` for a board with these rates."""
    return json.dumps(json.loads(_answer(data)) | changed)


@cache
def _answer(data: bytes) -> str:
    plan = plan_of(data, TARGET, kernels="tinyfuse")
    cycles = [round(sum(n * rate_of(entry) for entry, n in stages)) for stages in entries(plan)]
    figures = BoardFigures(
        Spread(sum(cycles) + 90, sum(cycles), sum(cycles) + 200),
        tuple(Spread(each, each, each) for each in cycles), Spread(90, 0, 200), None,
    )  # fmt: skip
    found = BoardValidation(
        True, False, True, 5, 0, 0, 0, {}, None, (), (), 1, None, 0, "reference", "DWT", 2, figures
    )  # fmt: skip
    text = json.dumps(validation_json(plan, "/dev/ttyX", found), default=list)
    meets("board-validate", json.loads(text))
    return text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, data in (("small", small()), ("dense", dense()), ("net", mobilenet_v2())):
        Path(f"{name}.tflite").write_bytes(data)
        Path(f"{name}.json").write_text(answer(data))
    return tmp_path


def test_a_table_predicts_what_the_board_counted(folder: Path) -> None:
    """Models whose kernels were all on the board, each in a group of another mixture."""
    runs = ["small.json", "net.json", "dense.json"]
    made = ran("board", "calibrate", *runs, "-o", "board.toml")
    assert made.exit_code == 0 and "3 models" in made.stdout
    data = json.loads(ran("board", "calibrate", *runs, "-o", "board.toml", "--json").stdout)
    meets("board-calibrate", data)
    assert 1 < data["cycles_per_instruction"] < 5
    for name in ("dense", "net"):
        words = ["board", "estimate", f"{name}.tflite", "--target", TARGET, "--kernels", "tinyfuse"]
        estimated = json.loads(ran(*words, "--costs", "board.toml", "--json").stdout)
        meets("board-estimate", estimated)
        really = json.loads(Path(f"{name}.json").read_text())["cycles"]
        assert abs(estimated["cycles"] / really - 1) < 0.03  # 0.1 without corrections for single calls
    text = ran(*words, "--costs", "board.toml")
    assert text.exit_code == 0 and text.stdout.startswith(f"about {estimated['cycles']:,} cycles")


def test_groups_that_run_for_each_row_of_a_step_count_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a cost table of one cycle for each instruction, every group takes as many cycles as instructions."""
    path = tmp_path / "padded.tflite"
    path.write_bytes(padded())
    monkeypatch.setattr(board_costs, "_table", lambda *_: cost_table(TARGET))
    words = ["--slide", "2", "--feed-rows", "--target", TARGET, "--kernels", "tinyfuse", "--costs", "x", "--json"]
    estimated = json.loads(ran("board", "estimate", str(path), *words).stdout)
    meets("board-estimate", estimated)
    plan = plan_of(padded(), TARGET, kernels="tinyfuse", slide=2, feed_rows=True)
    assert {plan.runs(group) for group in plan.groups} == {1, 2}
    assert [group["cycles"] for group in estimated["groups"]] == [
        group["predicted_instructions"] for group in estimated["groups"]
    ]
    assert sum(group["macs"] for group in estimated["groups"]) == estimated["macs"]


def profiled(data: bytes, **options: object) -> JsonObject:
    """A profile's JSON without what only emulators count."""
    plan = plan_of(data, TARGET, kernels="tinyfuse", **options)
    firmware = Firmware(Path("x.elf"), load_target(TARGET), "qemu", 1, "gcc", "O2")
    build = profile_json(Measured(plan, firmware, Outcome([], 5000, 100, [], ""), None, None))
    about = {"emulator": "qemu", "compiler": "gcc", "compiler_opt": "O2", "far_above_floor": 2.0, "unfused": None}
    found: JsonObject = json.loads(json.dumps(plan_envelope(plan) | about | build, default=list))
    meets("profile", found)
    return found


def test_a_profile_shows_a_boards_cycles(folder: Path) -> None:
    data, counted = profiled(dense()), read_validation("dense.json")
    beside = add_board_cycles(data, counted, "dense.json")
    meets("profile", beside)
    assert beside["board_cycles"] == counted["cycles"]
    assert [g["board_cycles"] for g in beside["groups"]] == [g["cycles"] for g in counted["groups"]]
    for width in (90, 140):
        console = Console(width=width, record=True, file=StringIO())
        console.print(profile_text(beside, width))
        text = console.export_text()
        assert "cycles, on the board" in text and all(f"{g['cycles']:,}" in text for g in counted["groups"])
        console.print(profile_text(data, width))
        assert "on the board" not in console.export_text()
    for other, message in (
        (profiled(small()), "about another model"),
        (profiled(dense(), fusion="none"), "about another model, target or options"),
    ):
        with pytest.raises(UsageError, match=message):
            add_board_cycles(other, counted, "dense.json")
    with pytest.raises(UsageError, match="lacks cycles"):
        add_board_cycles(data, counted | {"cycles": None}, "dense.json")
    Path("bad.json").write_text("[]")
    refused = ran("profile", "dense.tflite", "--target", TARGET, "--board", "bad.json")
    assert refused.exit_code == 2 and "not JSON of tinyfuse" in refused.stderr


def test_the_table_has_the_format_of_ours(folder: Path) -> None:
    ran("board", "calibrate", "net.json", "-o", "board.toml")
    table, ours = read_table(Path("board.toml").read_text()), cost_table(TARGET)
    assert ours is not None and table.kernels.keys() == ours.kernels.keys() and table.loop.keys() == ours.loop.keys()
    assert table.about["unit"] == "cycles" and table.about["table"] == TARGET
    fields = tomllib.loads(Path("board.toml").read_text())["kernels"]
    seen = {name for stages in entries(plan_of(mobilenet_v2(), TARGET, kernels="tinyfuse")) for name, _ in stages}
    assert {name for name, entry in fields.items() if entry["shapes"]} == seen
    first = Path("board.toml").read_bytes()
    ran("board", "calibrate", "net.json", "-o", "board.toml")
    assert Path("board.toml").read_bytes() == first


def test_rates_of_what_groups_tell_apart_and_of_what_they_do_not() -> None:
    apart = [Sample({"a": 100.0}, 200.0), Sample({"b": 400.0}, 400.0), Sample({"a": 50.0, "b": 100.0}, 200.0)]
    mean, found = rates(apart)
    assert mean == 800 / 650 and abs(found["a"].cycles - 2) < 0.02 and abs(found["b"].cycles - 1) < 0.02
    assert found["a"].groups == 2 and found["a"].worst_error < 0.02
    _, together = rates([Sample({"a": 100.0, "b": 100.0}, 300.0)])
    assert abs(together["a"].cycles - 1.5) < 0.02 and abs(together["b"].cycles - 1.5) < 0.02


REFUSED = {
    "not JSON": ("{", "not JSON"),
    "another answer": (
        '{"schema_version": 1, "model": "m", "target": "x", "tinyfuse_version": "0"}',
        "did not write this file",
    ),
    "a board that was wrong": (answer(small(), within_bound=False), "computed wrong outputs"),
    "another target": (answer(small(), target="cortex-m55"), "different targets, cortex-m4, cortex-m55"),
    "a target that there is not": (answer(small(), target="../../etc"), "different targets"),
    "groups of nothing": (answer(small(), groups=[1, None]), "a group lacks its figures"),
    "no operators": (answer(small(), groups=[{"cycles": 5, "operators": 7}]), "a group lacks its figures"),
    "an unknown kernel": (
        answer(small(), groups=[{"cycles": 5, "operators": [{"entry": "x", "predicted_instructions": 5}]}]),
        "no kernel 'x'",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_answers_that_are_refused(what: str, folder: Path) -> None:
    text, message = REFUSED[what]
    Path("bad.json").write_text(text)
    found = ran("board", "calibrate", "small.json", "bad.json", "-o", "board.toml")
    assert found.exit_code == 2 and message in found.stderr and not Path("board.toml").exists()


def test_nothing_to_calibrate_with(folder: Path) -> None:
    for cycles in (None, -1, 0, "many", 1e400):
        Path("none.json").write_text(answer(small(), groups=[{"cycles": cycles, "operators": []}]))
        found = ran("board", "calibrate", "none.json", "-o", "board.toml")
        assert found.exit_code == 2 and "no group in these files" in found.stderr
    found = ran("board", "calibrate", "no_such.json", "-o", "board.toml")
    assert found.exit_code == 2 and "can't read no_such.json" in found.stderr
    found = ran("board", "calibrate", "small.json", "-o", "no/such/board.toml")
    assert found.exit_code == 2 and "can't write" in found.stderr


def test_tables_that_are_refused(folder: Path) -> None:
    (folder / "two.tflite").write_bytes(two_inputs())
    ran("board", "calibrate", "small.json", "-o", "board.toml")
    good = Path("board.toml").read_text()
    changes = {
        "not a cost table": good.replace("[loop]", "[loop"),
        "the factor": re.sub(r"(factors = \{\w+ = )", r"\1-", good, count=1),
        "KeyError": good.replace("[loop]", "[lop]"),
        "not a table of cycles": good.replace('unit = "cycles"', 'unit = "days"'),
        "made on a 'cortex-m4', not for": good.replace('table = "cortex-m4"', 'table = "cortex-m55"'),
    }
    for message, text in changes.items():
        assert text != good, message
        Path("bad.toml").write_text(text)
        found = ran("board", "estimate", "two.tflite", "--target", TARGET, "--costs", "bad.toml")
        assert found.exit_code == 2 and message in found.stderr, (message, found.stderr)
