"""How many channels of a layer had both ends of their range in some run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_graphs import Sketch

from tinyfuse.cli.verify import _level_lines
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.verify.channel_ends import channel_ends
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.extreme_inputs import extreme_inputs
from tinyfuse.verify.level_coverage import LayerCoverage, level_coverage
from tinyfuse.verify.oracle import ReferenceOracle


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


def _network(seed: int, dtype: str, padding: str) -> Graph:
    sketch = Sketch(seed, dtype=dtype)
    x = sketch.value((1, 8, 7, 3))
    y = sketch.conv(x, 6, (3, 3), (2, 1), padding=padding, activation="RELU6")
    y = sketch.conv(sketch.depthwise(y, (2, 2), padding=padding), 5, (1, 1), activation="RELU")
    y = sketch.pool(y, "AVERAGE_POOL_2D", (2, 2), (1, 1))
    return fold_constants(
        read_tflite("m.tflite", sketch.build([x], [sketch.fully_connected(sketch.conv(y, 4, (2, 2)), 7)]))
    )


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_no_input_leads_beyond_the_ends(dtype: str, padding: str) -> None:
    for seed in range(3):
        graph = _network(seed, dtype, padding)
        ends = channel_ends(graph)
        assert len(ends) == 5
        watched = replace(graph, outputs=tuple(op.output for op in ends))
        runs = [*input_set(graph, 12, seed), *extreme_inputs(graph, 12, seed)]
        for run in ReferenceOracle(watched).run_all(runs):
            for values, (low, high) in zip(run, ends.values(), strict=True):
                pixels = values.reshape(-1, values.shape[-1])
                assert (pixels >= low).all() and (pixels <= high).all(), seed


def test_ends_inside_of_a_network_are_narrower() -> None:
    """A layer behind a RELU6 gets no more than 6, however small its scale is."""
    sketch = Sketch(1)
    x = sketch.value((1, 4, 4, 3))
    graph = read_tflite(
        "m.tflite", sketch.build([x], [sketch.conv(sketch.conv(x, 6, (1, 1), activation="RELU6"), 5, (1, 1))])
    )
    first, second = graph.ops
    known = channel_ends(graph)
    assumed = channel_ends(replace(graph, ops=(second,)))[second]
    assert ((known[second][0] >= assumed[0]) & (known[second][1] <= assumed[1])).all()
    low, high = (end - second.input.zero_point for end in known[first])
    weights = second.operand(1).values.reshape(5, 6).astype(int)
    (out,) = ReferenceOracle(replace(graph, ops=(second,), inputs=(second.input,))).run(
        [
            np.where(weights[0] > 0, high, low).reshape(1, 1, 1, 6).repeat(16, 1).reshape(1, 4, 4, 6).astype(np.int8)
            + second.input.zero_point
        ]
    )
    assert out[0, 0, 0, 0] == known[second][1][0]


def test_a_search_of_more_effort_reaches_more_ends() -> None:
    reached = {
        effort: sum(layer.reached for seed in range(2) for layer in _reached(_network(seed, "int8", "SAME"), effort))
        for effort in (1, 8)
    }
    assert reached[8] > reached[1] > 0


def _reached(graph: Graph, effort: int) -> tuple[LayerCoverage, ...]:
    return level_coverage(graph, [[run] for run in extreme_inputs(graph, 4, 0, effort)]) or ()


def test_floats_have_no_levels() -> None:
    assert level_coverage(_dense("float32"), [[[np.zeros((1, 40), np.float32)]]]) == ()


def test_what_is_printed() -> None:
    layers = [{"operator": "a", "channels": 4, "reached": 4}, {"operator": "b", "channels": 8, "reached": 3}]
    assert _level_lines({"levels": layers}) == [
        "coverage      7 of 12 channels reached the least and the largest value of their range, in 1 of 2 layers all channels"
    ]
    assert _level_lines({"levels": []}) == _level_lines({"levels": None}) == []
