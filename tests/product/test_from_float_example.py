"""examples/from_float: a float network becomes a module, and its spoiled twin's bad layer is named."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scripts import scripts_of

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.program.interpret import run_graph

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "from_float"


@pytest.mark.skipif(importlib.util.find_spec("ai_edge_quantizer") is None, reason="needs the extra quantize")
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
