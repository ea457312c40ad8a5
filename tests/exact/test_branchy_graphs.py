"""Random graphs of up to 40 operators with branches: several readers of a tensor, residuals, branches that
are joined by ADD and CONCATENATION, resized images and transposed convolutions, under every --optimize, with
and without a limit, fed by rows or not."""

from __future__ import annotations

import numpy as np
import pytest
from campaigns import assert_batches_are_exact, assert_part_is_exact, drawn_plans
from executors import assert_exact, plan_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import ACTIVATIONS, Sketch, Value

from tinyfuse.errors import CompileError
from tinyfuse.options import OPTIMIZE

MOST_OPERATORS = 40


def requantized(sketch: Sketch, x: Value, like: Value) -> Value:
    y = sketch.value(x.shape, like.scale, like.zero_point)
    sketch.model.op("QUANTIZE", [x.index], [y.index])
    return y


@st.composite
def branchy(draw, most_operators: int = MOST_OPERATORS) -> bytes:
    """A network whose operators read tensors drawn from all that exist, so that some have many readers."""
    sketch = Sketch(draw(st.integers(0, 2**20)), draw(st.sampled_from([0.0, 0.0, 0.5])))
    image = sketch.value((1, draw(st.integers(1, 14)), draw(st.integers(1, 6)), draw(st.integers(1, 12))))
    there, read = [image], set()
    wanted = draw(st.integers(5, most_operators))
    while len(sketch.model._ops) < wanted:
        # mostly a late one: else graphs are wide and flat
        x = there[-1 - draw(st.integers(0, min(3, len(there) - 1)))]
        twins = [v for v in there if v.shape == x.shape and v is not x]
        kinds = ["depthwise", "pointwise", "convolution", "relu", "pool", "resize", "transposed"]
        kinds += ["add", "join", "join rows"] * bool(twins)
        kind = draw(st.sampled_from(kinds))
        kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
        read.add(x)
        if kind == "depthwise":
            y = sketch.depthwise(x, kernel, (draw(st.sampled_from([1, 1, 1, 2])), 1), activation=draw(ACTIVATIONS))
        elif kind == "pointwise":
            y = sketch.conv(x, draw(st.integers(1, 12)), (1, 1), activation=draw(ACTIVATIONS))
        elif kind == "convolution":
            y = sketch.conv(x, draw(st.integers(1, 8)), kernel, activation=draw(ACTIVATIONS))
        elif kind == "relu":
            y = sketch.relu(x, draw(st.sampled_from(["RELU", "RELU6"])), draw(st.booleans()))
        elif kind == "resize":
            name = draw(st.sampled_from(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"]))
            y = sketch.resize(x, (draw(st.integers(1, 14)), draw(st.integers(1, 6))), name)
        elif kind == "transposed":
            stride = (draw(st.integers(1, max(1, 14 // x.shape[1]))), 1)
            y = sketch.transpose_conv(x, draw(st.integers(1, 8)), kernel, stride, draw(ACTIVATIONS))
        elif kind == "pool":
            size = (min(kernel[0], x.shape[1]), min(kernel[1], x.shape[2]))
            y = sketch.pool(x, "MAX_POOL_2D", size, (1, 1), "SAME")
        else:
            other = draw(st.sampled_from(twins))
            read.add(other)
            if kind == "add":
                y = sketch.add(x, other)
            else:
                axis = 3 if kind == "join" else 1
                if int(np.prod(x.shape)) > 2000:
                    continue
                y = sketch.concatenate([x, requantized(sketch, other, x)], axis)
        there.append(y)
    outputs = [v for v in there if v not in read] or [there[-1]]
    return sketch.build([image], outputs)


def check(data: bytes, optimize: str, limit: float, feed: bool) -> None:
    options = {"optimize": optimize, "feed_rows": feed}
    try:
        plan = plan_of(data, **options)
    except CompileError as refused:
        assert feed and refused.problems[0].message.startswith("--feed-rows: ")
        return
    if limit < 1:
        plan = plan_of(data, max_ram=int(plan.arena_bytes * limit), **options)
    assert_exact(plan, runs=4)


WAYS = (st.sampled_from(OPTIMIZE), st.sampled_from([1.0, 1.0, 0.9, 0.6]), st.booleans())


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(branchy(most_operators=20), *WAYS)
def test_branchy_graphs_are_exact(data: bytes, optimize: str, limit: float, feed: bool) -> None:
    check(data, optimize, limit, feed)


@pytest.mark.campaign
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(branchy(), *WAYS)
def test_many_branchy_graphs_are_exact(data: bytes, optimize: str, limit: float, feed: bool) -> None:
    check(data, optimize, limit, feed)


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(5))
def test_branchy_graphs_in_programs(number: int) -> None:
    """Many networks in one program, without limits and fed rows."""
    assert_part_is_exact(branchy(), 240, number, runs=3)


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_branchy_graphs_on_cores(target: str) -> None:
    assert_batches_are_exact(drawn_plans(branchy(), 48, 5, target), runs=3)
