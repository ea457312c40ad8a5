"""docs/pytorch.md: its blocks of litert-torch, run in an environment that the page's own command makes.

pytest --campaign tests/product/test_pytorch_page.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from documented import Block, blocks

from tinyfuse.cli.main import main
from tinyfuse.frontend.read_model import read_model

pytestmark = pytest.mark.campaign


def section(name: str) -> list[Block]:
    """The blocks of the page that need packages of that name."""
    page = Path(__file__).parents[2] / "docs/pytorch.md"
    lines = page.read_text().splitlines()
    first = lines.index(f"## {name}")
    end = next(i for i in range(first + 1, len(lines)) if lines[i].startswith("## "))
    return [block for block in blocks("docs/pytorch.md") if first < block.line <= end]


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the float model that the page's PyTorch block makes."""
    folder = tmp_path_factory.mktemp("pytorch")
    install, network, _ = section("litert-torch")
    python = os.environ.get("LITERT_TORCH_PYTHON")  # an environment that has the packages already
    if python is None:
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        python = str(folder / "venv/bin/python")
        subprocess.run([python, *install.text.split()[1:]], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([python, "-c", network.text], cwd=folder, check=True)
    return folder


def test_the_page_s_network_has_channels_last(converted: Path) -> None:
    graph = read_model(converted / "net.tflite")
    assert graph.inputs[0].shape == (1, 32, 32, 3)
    assert all(op.kind != "TRANSPOSE" for op in graph.ops)


def test_the_page_s_commands_end_in_an_exact_module(converted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(converted)
    assert np.load("inputs.npy").shape == (100, 32, 32, 3)
    *_, commands = section("litert-torch")
    for command in commands.text.splitlines():
        done = CliRunner().invoke(main, command.split()[1:])
        assert done.exit_code == 0, done.output
    assert done.output.startswith("exact: 0 of ")
