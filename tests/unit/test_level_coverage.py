"""How many channels of a layer had both ends of their range in some run."""

from __future__ import annotations

import numpy as np
import pytest
from random_graphs import Sketch

from tinyfuse.cli.verify import _level_lines
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph
from tinyfuse.verify.level_coverage import LayerCoverage, level_coverage


def _dense(dtype: str) -> Graph:
    sketch = Sketch(3, dtype=dtype)
    vector = sketch.value((1, 40))
    return read_tflite("m.tflite", sketch.build([vector], [sketch.dense(vector, 5)]))


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_ends_of_one_channel(dtype: str) -> None:
    """Inputs with the signs of a channel's weights, and their opposites, drive it to both ends; one of them to one."""
    graph = _dense(dtype)
    (op,) = graph.ops
    ends = np.iinfo(dtype)
    positive = op.operand(1).values > 0
    for channel in range(5):
        largest = np.where(positive[channel], ends.max, ends.min).astype(dtype)[None]
        smallest = np.where(positive[channel], ends.min, ends.max).astype(dtype)[None]
        (both,) = level_coverage(graph, [[[largest]], [[smallest]]]) or ()
        (one,) = level_coverage(graph, [[[largest]]]) or ()
        assert both.operator == str(op) and both.channels == 5 and both.reached >= 1 and one.reached == 0
    every = [np.where(positive[c] == up, ends.max, ends.min).astype(dtype)[None] for c in range(5) for up in (0, 1)]
    assert level_coverage(graph, [[[run]] for run in every]) == (LayerCoverage(str(op), 5, 5),)


def test_floats_have_no_levels() -> None:
    assert level_coverage(_dense("float32"), [[[np.zeros((1, 40), np.float32)]]]) == ()


def test_what_is_printed() -> None:
    layers = [{"operator": "a", "channels": 4, "reached": 4}, {"operator": "b", "channels": 8, "reached": 3}]
    begin = "levels        every channel of "
    assert _level_lines({"levels": layers}) == [
        f"{begin}1 of 2 layers reached both ends of its range, 7 of 12 channels in all"
    ]
    assert _level_lines({"levels": []}) == _level_lines({"levels": None}) == []
