"""Tables of the pages that are written by hand: the examples' figures, with the tools that they were measured
with, and the targets."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from documented import ROOT, environment
from test_emulation import needs_qemu

import tinyfuse
from tinyfuse.targets import all_targets

DIGITS, DOORBELL, PARTS = (ROOT / "examples" / name for name in ("digits", "doorbell", "parts"))
#: the compiler of Debian 12; another one makes other code
COMPILER = "12.2.1"


def _rows(example: Path = DIGITS) -> dict[str, list[list[int]]]:
    """The table's rows: what it is -> numbers of the first column, and of the second."""
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
    """Its first column, a step."""
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
    """Its first column, by rows, and the arena of the second."""
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
