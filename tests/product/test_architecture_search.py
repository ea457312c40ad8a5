"""examples/architecture_search: it runs, and its networks are what the interpreter takes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import scripts_of

import tinyfuse

EXAMPLE = next(
    folder / "examples" / "architecture_search"
    for folder in Path(__file__).resolve().parents
    if (folder / "examples").is_dir()
)


@pytest.fixture
def example():
    """Imports a script of the example."""
    with scripts_of(EXAMPLE):
        yield __import__


def test_it_runs_in_a_pool_and_names_the_pareto_set() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE / "search.py", "--first", "3", "--jobs", "2", "--max-ram", "3010"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    head, *networks, last = done.stdout.splitlines()
    assert head.split() == ["network", "RAM", "flash", "instructions", "MACs"]
    assert networks
    for line in networks:
        assert re.fullmatch(r"32x32, [35]x[35], 8-16-16(-32-32)? +[0-9,]+ +[0-9,]+ +[0-9,]+ +[0-9,]+(  \*)?", line), (
            line
        )
        assert int(line.split()[3].replace(",", "")) <= 3010
    starred = sum(line.endswith("*") for line in networks)
    assert last.startswith(
        f"{starred} of {len(networks)} are in the Pareto set (*); {3 - len(networks)} don't fit; 3 net"
    )


def test_the_readme_shows_what_it_prints() -> None:
    command = [sys.executable, EXAMPLE / "search.py", "--first", "2", "--jobs", "2", "--target", "cortex-m4"]
    done = subprocess.run([*command, "--max-ram", "8K"], capture_output=True, text=True, check=True)
    shown = {line.rstrip(" *") for line in (EXAMPLE / "README.md").read_text().splitlines()}
    assert {line.rstrip(" *") for line in done.stdout.splitlines()[:-1]} <= shown


def test_nothing_beats_the_pareto_set(example) -> None:
    search, networks = example("search"), example("networks")
    spaces = list(networks.search_space())
    assert len(set(spaces)) == 16

    def made(number: int, ram: int, instructions: int, macs: int) -> tuple:
        return spaces[number], tinyfuse.Estimate("n", "cortex-m4", ram, 0, 9, 9, instructions, None, None, macs)

    estimates = dict([made(0, 5, 5, 5), made(1, 5, 5, 5), made(2, 6, 5, 5), made(3, 9, 9, 6), made(4, 4, 9, 1)])
    assert search.best(estimates) == [spaces[0], spaces[1], spaces[3], spaces[4]]


def test_its_networks_are_exact(example) -> None:
    networks = example("networks")
    architecture = networks.Architecture(16, (4, 6, 8), 3)
    data = networks.tflite_bytes(architecture)
    assert data == networks.tflite_bytes(architecture)
    verified = tinyfuse.compile(data, "host").verify(oracle="tflm", runs=4)
    assert verified.exact, verified.first_mismatch
