"""examples/from_float: a float network becomes a module, and its spoiled twin's bad layer is named."""

import html
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scripts import scripts_of

from tinyfuse.cli.main import main
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.program.interpret import run_graph

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "from_float"
PAGE = ROOT / "docs" / "images" / "blame-digits.html"
quantizer = pytest.mark.skipif(importlib.util.find_spec("ai_edge_quantizer") is None, reason="needs the extra quantize")


@quantizer
def test_the_example_prints_what_its_page_says(tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLE / "run.py", "--build-dir", tmp_path],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    page = " ".join((EXAMPLE / "README.md").read_text().split())
    for line in done.stdout.splitlines():
        assert " ".join(line.split()) in page, line
    assert (tmp_path / "digits" / "digits.h").exists()


@quantizer
def test_the_page_in_the_docs_is_what_the_command_writes(tmp_path, monkeypatch):
    """Its numbers may be older. To make it anew, copy the page that the commands of the example's README write."""
    monkeypatch.chdir(tmp_path)
    Path("digits_spoiled.tflite").write_bytes((EXAMPLE / "digits_spoiled.tflite").read_bytes())
    with scripts_of(EXAMPLE.parent / "digits"):
        pixels, _ = __import__("digit_images").read_test_set()
    np.save("images.npy", (pixels / 15).astype(np.float32)[..., np.newaxis])
    for command in (
        "quantize digits_spoiled.tflite --data images.npy -o spoiled.tflite",
        "blame spoiled.tflite --float digits_spoiled.tflite --data images.npy --html blame.html",
    ):
        done = CliRunner().invoke(main, command.split(), catch_exceptions=False)
        assert done.exit_code == 0, done.output
    made, shown = (_without_numbers(file.read_text()) for file in (Path("blame.html"), PAGE))
    assert made == shown
    assert "op 0 CONV_2D 'conv0': " in html.unescape(PAGE.read_text())


def _without_numbers(page: str) -> str:
    return re.sub(r"[-+]?\d[\d.,]*|[0-9a-f]{64}|sha256-[^']*", "#", page)


def test_both_networks_compute_the_same():
    images = np.random.default_rng(0).random((4, 1, 8, 8, 1)).astype(np.float32)
    graphs = [
        read_tflite(name, (EXAMPLE / name).read_bytes()) for name in ("digits_float.tflite", "digits_spoiled.tflite")
    ]
    for image in images:
        first, second = (run_graph(FAMILIES, graph, [image], {})[0] for graph in graphs)
        assert np.allclose(first, second, atol=1e-5)


def test_the_files_are_what_the_script_writes():
    """The network's file is made again of the weights that it holds."""
    with scripts_of(EXAMPLE):
        train = __import__("train")
        graph = read_tflite("f", (EXAMPLE / "digits_float.tflite").read_bytes())
        operands = [op for op in graph.ops if op.kind in ("CONV_2D", "FULLY_CONNECTED")]
        names = [("w0", "b0"), ("w1", "b1"), ("w2", "b2"), ("w", "b")]
        weights = {
            name: op.operand(place).values
            for op, pair in zip(operands, names, strict=True)
            for place, name in enumerate(pair, start=1)
        }
        assert train.network_file(weights) == (EXAMPLE / "digits_float.tflite").read_bytes()
        assert train.network_file(train.spoiled(weights)) == (EXAMPLE / "digits_spoiled.tflite").read_bytes()
