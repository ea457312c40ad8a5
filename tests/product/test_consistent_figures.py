"""A figure has one value: `report`, its page, `explain`, `gen` and report.txt agree on it, in 80 columns."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from random_graphs import Sketch
from tflite_builder import ModelBuilder

from tinyfuse.cli.main import main
from tinyfuse.report.answer import JsonObject

ROOT = Path(__file__).parents[2]
COMMON = ("--target", "cortex-m4")


def keyword_spotter() -> bytes:
    """Convolutions by rows before a global mean, whose parts can't run separately, and a softmax."""
    sketch = Sketch(3)
    x = sketch.value((1, 24, 10, 1))
    y = sketch.conv(x, 16, (5, 3), stride=(2, 2), activation="RELU")
    for _ in range(2):
        y = sketch.conv(sketch.depthwise(y, (3, 3), activation="RELU"), 16, (1, 1), activation="RELU")
    y = sketch.pool(y, "AVERAGE_POOL_2D", (12, 5), (12, 5))
    return sketch.build([x], [sketch.softmax(sketch.fully_connected(y, 12))])


def open_batch() -> bytes:
    """One operator with an open batch dimension."""
    model = ModelBuilder()
    x, y = (model.tensor(name, (-1, 8, 8, 4), scale=0.1, zero_point=0) for name in "xy")
    model.op("RELU", [x], [y])
    return model.build([x], [y])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kws.tflite").write_bytes(keyword_spotter())
    (tmp_path / "open.tflite").write_bytes(open_batch())
    return tmp_path


def said(*words: str) -> str:
    done = CliRunner().invoke(main, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def page_of(path: Path) -> JsonObject:
    found: JsonObject = json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)[1])
    return found


def line_of(text: str, word: str) -> str:
    """The line of figures that begins with a word."""
    return next(line for line in text.splitlines() if line.startswith(word))


def figure(text: str, word: str) -> int:
    return int(re.search(r"[\d,]+", line_of(text, word)[len(word) :])[0].replace(",", ""))


def table_of(text: str) -> list[list[int]]:
    """The numbers in the table of groups."""
    _, table = re.split(r"traffic +unfused\n", text)
    rows = re.findall(r"^ +(\d+) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+)$", table, re.M)
    return [[int(cell.replace(",", "")) for cell in row] for row in rows]


def test_every_way_of_asking_gives_the_same_figures(folder: Path) -> None:
    data = json.loads(said("report", "kws.tflite", *COMMON, "--json", "--html", "page.html"))
    shown, reasons = said("report", "kws.tflite", *COMMON), json.loads(said("explain", "kws.tflite", *COMMON, "--json"))
    page, console = page_of(folder / "page.html"), said("gen", "kws.tflite", *COMMON)
    written = (folder / "kws_tinyfuse" / "report.txt").read_text()

    for text in (shown, console, written):
        assert figure(text, "arena") == data["arena_bytes"] == page["arena"]["bytes"] == reasons["arena_bytes"]
        assert figure(text, "weights") == data["weight_bytes"]
        assert figure(text, "speed") == data["predicted_instructions"] == reasons["predicted_instructions"]
        assert figure(text, "MACs") == data["macs"] == reasons["macs"]
        assert f"{data['estimated_code_bytes']:,}" in line_of(text, "code"), "the estimate is everywhere"
    if data["code_bytes_measured"]:
        assert figure(shown, "code") == figure(console, "code") == data["code_bytes"]
    assert figure(written, "code") == data["estimated_code_bytes"]
    for key in ("code_bytes", "estimated_code_bytes", "predicted_instructions", "arena_bytes", "weight_bytes"):
        assert page["figures"][key] == data[key]

    groups = [
        [n, group["macs"], group["scratch_bytes"], group["traffic_bytes"], group["unfused_traffic_bytes"]]
        for n, group in enumerate(data["groups"])
    ]
    assert table_of(shown) == table_of(written) == groups
    for group, layer in zip(data["groups"], page["layers"], strict=True):
        assert layer["traffic_bytes"] == group["traffic_bytes"]
        assert layer["unfused_traffic_bytes"] == group["unfused_traffic_bytes"]
        assert sum(op["traffic_bytes"] for op in layer["operators"]) == group["unfused_traffic_bytes"]
    taken = {fusion["groups"][0]: fusion["fused"] for fusion in reasons["fusions"] if fusion["taken"]}
    assert taken and page["fusions"] == reasons["fusions"]
    for number, fused in taken.items():
        assert fused["instructions"] == page["layers"][number]["instructions"]
    assert abs(sum(layer["instructions"] for layer in page["layers"]) - data["predicted_instructions"]) <= len(groups)


def test_a_fusion_is_told_both_ways(folder: Path) -> None:
    """A part of the mean can't run alone; its RAM is known all the same."""
    fusions = json.loads(said("explain", "kws.tflite", *COMMON, "--json"))["fusions"]
    (taken,) = [fusion for fusion in fusions if fusion["taken"]]
    assert len(taken["operators"]) > 5
    assert None not in (*taken["fused"].values(), *taken["apart"].values())
    assert re.fullmatch(r"saves [\d,]+ bytes of RAM while it runs, [+-][\d,]+ instructions", taken["reason"])
    text = " ".join(said("explain", "kws.tflite", *COMMON).split())
    for way in ("fused", "apart"):
        assert f"{way} {taken[way]['instructions']:,} instructions" in text
        assert f"{taken[way]['ram_bytes']:,} bytes of RAM" in text


@pytest.mark.parametrize("command", [
    ("report", "kws.tflite", "--pareto"), ("explain", "kws.tflite"), ("explain", "kws.tflite", "--slide", "2"),
    ("report", "kws.tflite", "--slide", "2"), ("report", "kws.tflite", "--fusion", "none"),
])  # fmt: skip
def test_lines_are_of_a_terminal_s_width(folder: Path, command: tuple[str, ...]) -> None:
    long = [line for line in said(*command, *COMMON).splitlines() if len(line) > 80]
    assert [line for line in long if " " in line.strip()] == [], "a word alone, such as a name, may be longer"


def test_a_batch_taken_as_one_is_told_by_explain_alone(folder: Path) -> None:
    for command in ("report", "gen", "explain"):
        words = (command, "open.tflite", "--target", "host")
        assert ("the batch is open" in said(*words)) == (command == "explain")
        assert "the batch is open" in str(json.loads(said(*words, *(["--force"] * (command == "gen")), "--json")))
    assert "the batch is open" not in (folder / "open_tinyfuse" / "report.txt").read_text()


def test_gen_says_how_it_goes_on(folder: Path) -> None:
    text = said("gen", "kws.tflite", "--target", "host", "-o", "a folder")
    command = shlex.split(line_of(text, "next: ").removeprefix("next: "))
    assert command[:2] == ["tinyfuse", "verify"] and "add_subdirectory('a folder')" not in text
    assert 'add_subdirectory("a folder")' in text
    assert said(*command[1:], "--runs", "1")


def test_progress_leaves_nothing_on_the_screen(folder: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tinyfuse", "report", "kws.tflite", *COMMON]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    ) as running:
        running.communicate(timeout=120)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 1 << 16):
            shown += piece
    except OSError:  # nobody writes to it any more
        pass
    os.close(ours)
    assert b"planning for cortex-m4" in shown and b"\n" not in shown, "all of it is one line"
    *_, last = shown.split(b"\r\x1b[2K")
    assert re.sub(rb"\x1b\[\d*m", b"", last) == b"", "which is cleared in the end"
