"""A verification whose outputs never change proves little: `verify` draws other inputs, then warns."""

from __future__ import annotations

import numpy as np
import pytest
from random_graphs import Sketch
from stream_models import STREAM_MODELS
from test_verify_can_fail import verify

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.verify.varying_inputs import unchanging, varying_inputs


class Judge:
    """Returns the number of the draw from which on outputs change; counts its calls and their runs."""

    def __init__(self, changes_at: int) -> None:
        self.changes_at, self.asked = changes_at, []

    def run_streams(self, streams):
        self.asked.append(sum(map(len, streams)))
        changes = len(self.asked) > self.changes_at
        return [
            [[np.array([number, frame] if changes else [7, 7])] for frame in range(len(stream))]
            for number, stream in enumerate(streams)
        ]


def graph(stateful: bool = False):
    sketch = Sketch(1)
    x = sketch.value((1, 4))
    data = STREAM_MODELS["keyword spotter"] if stateful else sketch.build([x], [sketch.fully_connected(x, 2)])
    return read_tflite("model.tflite", data)


@pytest.mark.parametrize(
    ("changes_at", "fixed", "asked"),
    [(0, False, [8]), (2, True, [8] * 3), (9, True, [8] * 4), (9, False, [8] * 4 + [32]), (4, False, [8] * 4 + [32])],
)
def test_other_inputs_are_drawn_while_outputs_stay(changes_at: int, fixed: bool, asked: list[int]) -> None:
    judge = Judge(changes_at)
    inputs, outputs, frames = varying_inputs(graph(), judge, 8, None, 0, fixed)
    assert judge.asked == asked and frames is None
    # of draws that are no better the first is kept
    assert len(inputs) == len(outputs) == (asked[-1] if changes_at < len(asked) else 8)
    assert bool(unchanging(graph(), outputs)) == (changes_at >= len(asked))


def test_streams_become_longer() -> None:
    judge = Judge(4)
    inputs, _, frames = varying_inputs(graph(stateful=True), judge, 16, 4, 0, False)
    assert judge.asked == [16] * 4 + [64] and frames == 16 and len(inputs) == 64


@pytest.fixture
def constant(tmp_path) -> str:
    """A model with one output that is only the bias, whatever the input."""
    sketch = Sketch(1)
    x = sketch.value((1, 4, 4, 3))
    y = sketch.conv(x, 4, (3, 3))
    sketch.dead = 1.0
    path = tmp_path / "constant.tflite"
    path.write_bytes(sketch.build([x], [y, sketch.conv(x, 4, (1, 1))]))
    return str(path)


@pytest.mark.slow
@pytest.mark.emulated
def test_verify_warns_of_an_output_that_never_changes(constant) -> None:
    answer = verify(constant)
    (warning,) = (w for w in answer.data["warnings"] if "is the same in all" in w)
    assert answer.exact and "in all 4 runs" in warning
