"""`gen --evidence` writes a folder that says how each operator is computed, tested and verified."""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from random_graphs import Sketch

import tinyfuse
from tinyfuse.cli.main import main
from tinyfuse.evidence.folder import evidence_files
from tinyfuse.evidence.tables import Table, evidence_tables

HAS_QEMU = shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")


def table(folder: Path, title: str) -> list[list[str]]:
    sections = json.loads((folder / "evidence.json").read_text())["sections"]
    (found,) = (section["rows"] for section in sections if section["title"] == title)
    return found


@pytest.mark.skipif(not HAS_QEMU, reason="needs arm-none-eabi-gcc and qemu-system-arm")
def test_evidence_of_a_module(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    sketch = Sketch(1)
    x = sketch.value((1, 6, 5, 4))
    y = sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))
    Path("net.tflite").write_bytes(sketch.build([x], [y]))
    words = ["gen", "net.tflite", "--target", "cortex-m4"]
    written = {}
    for folder in ("first", "second"):
        done = CliRunner().invoke(main, [*words, "-o", f"{folder}_module", "--evidence", folder])
        assert done.exit_code == 0, done.output
        assert "verified 5 builds, 0 elements differ" in done.output
        written[folder] = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    assert written["first"] == written["second"]
    assert set(written["first"]) == {"evidence.json", "evidence.md", "evidence.html", "manifest.json"}

    assert dict(table(Path("first"), "Evidence for net"))["limits of the proof"] == "none known"
    module = (Path("first_module") / "net.c").read_text()
    traces = table(Path("first"), "Traceability")
    assert [row[0].split()[2] for row in traces] == ["DEPTHWISE_CONV_2D", "CONV_2D"]
    for _, function, kernel, header, *cases in traces:
        assert f"{function}(" in module and f"{kernel}(" in module
        assert (Path("first_module") / header).is_file()
        assert all(int(number.replace(",", "")) > 0 for number in cases)
    resources = {row[0]: row for row in table(Path("first"), "Resources")}
    header = (Path("first_module") / "net.h").read_text()
    assert int(resources["arena"][1].replace(",", "")) == int(re.search(r"_ARENA_BYTES (\d+)", header)[1])
    assert [row[0] for row in table(Path("first"), "Verification")] == ["O2", "O0", "Os", "O3", "O1"]
    files = {row[0] for row in table(Path("first"), "Files")}
    assert {"net.c", "net.h", "net_weights.c"} <= files
    for row in table(Path("first"), "Deviations from MISRA C:2012"):
        assert all(fnmatch.filter(files, pattern) for pattern in row[2].split(", "))
    assert str(tmp_path) not in "".join(map(str, written["first"].values()))


def test_limits_of_the_proof_are_told(tmp_path: Path) -> None:
    """A layer without weights gives the same output for every input."""
    sketch = Sketch(1, dead=1.0)
    x = sketch.value((1, 6, 5, 4))
    (tmp_path / "net.tflite").write_bytes(sketch.build([x], [sketch.conv(x, 3, (1, 1))]))
    module = tinyfuse.compile(str(tmp_path / "net.tflite"), "cortex-m4")
    summary, *_ = evidence_tables(
        module.plan, {"rewrites": [], "longest_step": None}, {}, module.verify(emulator="host")
    )
    told = dict(summary.rows)["limits of the proof"]
    assert "is the same in all 8 runs" in told, told


def test_names_cannot_end_a_cell_or_become_markup() -> None:
    name = "a|b\n<script>alert(1)</script> [x](y) `c`"
    files = evidence_files([Table("Title <b>", "", ("operator",), ((name,),))])
    page, text = files["evidence.html"].decode(), files["evidence.md"].decode()
    assert "<script" not in page and "&lt;script&gt;" in page and "<b>" not in page
    (row,) = (line for line in text.splitlines() if "alert" in line)
    assert re.sub(r"\\.", "", row).count("|") == 2
    assert "<script" not in row
    assert json.loads(files["evidence.json"])["sections"][0]["rows"] == [[name]]
