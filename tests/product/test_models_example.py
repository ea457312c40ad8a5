"""examples/models: the script gives the committed bytes, and their activations use the range of int8."""

from __future__ import annotations

import re

import numpy as np
import pytest
from real_models import ROOT
from scripts import scripts_of

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Tensor
from tinyfuse.ops import FAMILIES

FOLDER = ROOT / "examples" / "models"


def test_the_script_gives_the_committed_bytes() -> None:
    with scripts_of(FOLDER):
        from make_models import MODELS

        assert {path.stem for path in FOLDER.glob("*.tflite")} == set(MODELS)
        for name, make in MODELS.items():
            assert make() == (FOLDER / f"{name}.tflite").read_bytes(), f"python {FOLDER / 'make_models.py'}"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.tflite")), ids=lambda path: path.stem)
def test_activations_use_their_range(path) -> None:
    """For inputs that were not used for calibration, each layer uses more than half of int8's range, and few values are
    clipped."""
    graph = read_tflite(path)
    assert not graph.warnings
    with scripts_of(FOLDER):
        from make_models import Network

        drawn = Network(99).source("input", graph.inputs[0].shape[1:], 1.0, 0).data
    runs = [values_of(graph, given[np.newaxis]) for given in drawn]
    for op in graph.ops:
        found = np.array([values[op.output] for values in runs])
        if op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD"):
            assert np.ptp(found.astype(int)) > 128, op
            assert (found == 127).mean() < 0.05, op
    assert len({values[graph.outputs[0]].tobytes() for values in runs}) > len(runs) // 2


def values_of(graph: Graph, given: np.ndarray) -> dict[Tensor, np.ndarray]:
    """Maps each tensor of the graph to its values for this input."""
    values = {graph.inputs[0]: given}
    for op in graph.ops:
        inputs = [values.get(x, None if x is None else x.data) for x in op.inputs]
        values.update(zip(op.outputs, FAMILIES[op.kind].reference(op, *inputs), strict=True))
    return values


def test_the_page_has_their_sizes() -> None:
    stated = dict(re.findall(r"^\| `(\w+)\.tflite` \| ([\d,]+) \|", (FOLDER / "README.md").read_text(), re.MULTILINE))
    assert stated == {path.stem: f"{path.stat().st_size:,}" for path in FOLDER.glob("*.tflite")}
