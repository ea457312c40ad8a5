"""Figures in pages: those that benchmarks/doc_figures.py writes, and in handwritten tables the examples' figures, the
tools that measured them, and the targets."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from docs_blocks import ROOT, environment
from real_models import ORIGINALS
from scripts import scripts_of
from test_emulation import needs_qemu

import tinyfuse
from tinyfuse.targets import all_targets

DIGITS, DOORBELL, PARTS = (ROOT / "examples" / name for name in ("digits", "doorbell", "parts"))
#: the compiler of Debian 12; another one makes other code
COMPILER = "12.2.1"


def _rows(example: Path = DIGITS) -> dict[str, list[list[int]]]:
    """Maps each row of the table to its numbers in the first and in the second column."""
    table = (example / "README.md").read_text().partition("## Figures")[2].partition("\n##")[0]
    found = {}
    for row in re.findall(r"^\| (\w[^|]*) \|(.*)\|$", table, re.MULTILINE):
        found[row[0]] = [[int(n.replace(",", "")) for n in re.findall(r"[\d,]+", cell)] for cell in row[1].split("|")]
    return found


@needs_qemu
@pytest.mark.emulated
@pytest.mark.parametrize(
    ("column", "options"),
    [(0, []), pytest.param(1, ["--fusion", "none"], marks=pytest.mark.campaign)],
    ids=["default", "unfused"],
)
def test_the_digits_table(column: int, options: list[str]) -> None:
    command = ["tinyfuse", "verify", DIGITS / "digits.tflite", "--target", "cortex-m4", "--runs", "3", "--json"]
    done = subprocess.run([*command, *options], env=environment(), capture_output=True, text=True, check=True)
    facts, rows = json.loads(done.stdout), _rows()
    assert rows["arena"][column] == [facts["arena_bytes"]]
    weights = facts["flash_weight_bytes"]
    if COMPILER not in facts["compiler"]:
        pytest.skip(f"the table is of GCC {COMPILER}, not {facts['compiler']}")
    assert rows["module's code / weights"][column] == [facts["flash_code_bytes"], weights]
    assert rows["stack of an inference"][column] == [facts["stack_bytes"]]
    assert rows["instructions of an inference"][column] == [facts["instructions"]]


@needs_qemu
@pytest.mark.emulated
def test_the_doorbells_table() -> None:
    """Checks the first column, a step."""
    command = [
        "tinyfuse",
        "verify",
        DOORBELL / "doorbell.tflite",
        "--front-end",
        DOORBELL / "mel.tflite",
        "--slide",
        "1",
    ]
    command += ["--target", "cortex-m4", "--runs", "40", "--json"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    facts, rows = json.loads(done.stdout), _rows(DOORBELL)
    assert rows["arena and state"][0] == [facts["arena_bytes"], facts["state_bytes"]]
    assert rows["multiply-accumulates"][0] == [facts["macs"]]
    if COMPILER not in facts["compiler"]:
        pytest.skip(f"the table is of GCC {COMPILER}, not {facts['compiler']}")
    assert rows["module's code / weights"][0] == [facts["flash_code_bytes"], facts["flash_weight_bytes"]]
    assert rows["instructions, worst"][0] == [facts["instructions"]]


@needs_qemu
@pytest.mark.emulated
def test_the_parts_table() -> None:
    """Checks the first column, by rows, and the arena of the second."""
    model, rows = PARTS / "parts.tflite", _rows(PARTS)
    command = ["tinyfuse", "verify", model, "--target", "cortex-m4", "--feed-rows", "--runs", "4", "--json"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    facts = json.loads(done.stdout)
    assert rows["arena"] == [[facts["arena_bytes"]], [tinyfuse.compile(model, "cortex-m4").arena_bytes]]
    if COMPILER not in facts["compiler"]:
        pytest.skip(f"the table is of GCC {COMPILER}, not {facts['compiler']}")
    assert rows["module's code / weights"][0] == [facts["flash_code_bytes"], facts["flash_weight_bytes"]]
    assert rows["stack"][0] == [facts["stack_bytes"]]
    assert rows["instructions of an inference"][0] == [facts["instructions"]]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_table_of_targets() -> None:
    """A row a core: its variants, what its plans rely on, and the board that QEMU emulates."""
    table = (ROOT / "docs" / "targets.md").read_text().partition("| target |")[2].partition("\n\n")[0]
    rows = {cells[0]: cells[1:] for line in table.splitlines()[2:] for cells in [_cells(line)]}
    targets = all_targets()
    assert set(rows) == {name for name in targets if "+" not in name}
    for core, (variants, relies, runs) in rows.items():
        mine = [name.removeprefix(core) for name in targets if name.startswith(f"{core}+")]
        assert [word for word in variants.split(", ") if word] == mine, core
        target = targets[core]
        assert ("DSP" in relies, "MVE" in relies) == (target.dsp, target.mve), core
        assert target.qemu_machine is None or f"QEMU {target.qemu_machine}" in runs, core


def test_the_readme_repeats_the_recorded_figures_of_tflm() -> None:
    """RAM and instructions on Cortex-M4 and M55, as benchmarks/peers.json has them."""
    recorded = {}
    for row in json.loads((ROOT / "benchmarks" / "peers.json").read_text())["rows"]:
        if row["tool"] == "TFLM":
            recorded[row["model"], row["target"]] = row
    table = (ROOT / "README.md").read_text().partition("| MLPerf Tiny |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(table) == 5
    for model, _, ram, _, m4, _, m55 in map(_cells, table):
        on_m4, on_m55 = recorded[model, "cortex-m4"], recorded[model, "cortex-m55"]
        assert ram == f"{on_m4['ram_bytes']:,}", model
        for told, row in ((m4, on_m4), (m55, on_m55)):
            digits = len(told.partition(".")[2])
            assert told == f"{row['instructions'] / 1e6:.{digits}f}", model


def test_marked_figures_are_those_of_one_run() -> None:
    """A page that was changed by hand, or doc_figures.json that was measured anew, with nothing written."""
    with scripts_of(ROOT / "benchmarks"):
        import doc_figures

        known, asked = json.loads(doc_figures.RESULTS.read_text()), doc_figures.asked()
        assert {run: set(figures) for run, figures in known.items()} == asked, "python benchmarks/doc_figures.py"
        for page in doc_figures.pages():
            text = page.read_text()
            assert text.count("<!-- end -->") == len(doc_figures.MARKED.findall(text)), f"{page.name}: a broken mark"
            assert text == doc_figures.filled(text, known), f"{page.name}: python benchmarks/doc_figures.py --fill"


def test_marked_figures_are_written(tmp_path: Path) -> None:
    with scripts_of(ROOT / "benchmarks"):
        from doc_figures import Run, filled

        page = "a <!-- kws cortex-m4 optimize=ram: arena_bytes -->1<!-- end --> b <!-- x y: n in M -->2<!-- end -->"
        figures = {"kws cortex-m4 optimize=ram": {"arena_bytes": 3768}, "x y": {"n": 2_903_648}}
        assert ">3,768<" in filled(page, figures) and ">2.90<" in filled(page, figures)
        assert filled(page, {"x y": {"n": 279_082}}) == page.replace(">2<", ">0.279<")
        assert filled(page, {}) == page
        run = Run.of("kws cortex-m4 slide=2 feed_rows=yes runs=40")
        assert (run.settings, run.runs) == ({"slide": 2, "feed_rows": True}, 40)


def test_planned_figures_of_the_pages_are_those_of_now() -> None:
    """Checks arenas with default options, which any change of the planner may affect: of the digits example always, of
    other models if they are installed."""
    with scripts_of(ROOT / "benchmarks"):
        import doc_figures

        known, seen = json.loads(doc_figures.RESULTS.read_text()), 0
        for text, figures in known.items():
            run = doc_figures.Run.of(text)
            path = doc_figures.model_path(run.model, ORIGINALS)
            if not run.settings and "arena_bytes" in figures and path.exists():
                seen += 1
                assert tinyfuse.compile(path, run.target).arena_bytes == figures["arena_bytes"], text
        assert seen
