"""Operators that read one tensor run in one group, which reads each of its rows while it is there: the search
finds that, where it takes less RAM, for an input of the model and, as a ring, for a tensor that is computed."""

from __future__ import annotations

from functools import cache

import pytest
from core_rotation import on_one_core
from executors import assert_all_exact, plan_of
from random_graphs import Sketch, Value
from test_op_kernels import target_or_skip

from tinyfuse.plan import Plan


def shared(sketch: Sketch, inner: bool, channels: int = 16) -> tuple[Value, Value]:
    """Returns the model's input and the tensor that siblings read: the same one, or the output of a convolution."""
    x = sketch.value((1, 24, 12, 3 if inner else channels))
    return x, sketch.conv(x, channels, (3, 3)) if inner else x


def convolutions(inner: bool) -> bytes:
    """Three convolutions of one tensor, added up."""
    sketch = Sketch(1)
    x, t = shared(sketch, inner)
    first, second, third = (sketch.conv(t, 8, kernel) for kernel in ((1, 1), (3, 3), (5, 3)))
    return sketch.build([x], [sketch.add(sketch.add(first, second), third)])


def mixed_branches(inner: bool) -> bytes:
    """Pointwise, 3x3 and depthwise convolutions, and a pool with a convolution after it, concatenated."""
    sketch = Sketch(2)
    x, t = shared(sketch, inner)
    first = sketch.conv(t, 4, (1, 1))
    pooled = sketch.pool(t, "MAX_POOL_2D", (3, 3), (1, 1), "SAME")
    others = sketch.conv(t, 4, (3, 3)), sketch.depthwise(t, (3, 3)), sketch.conv(pooled, 4, (1, 1))
    joined = sketch.concatenate([first, *(sketch.requantize_to(v, first) for v in others)], 3)
    return sketch.build([x], [sketch.conv(joined, 4, (1, 1))])


def projection(inner: bool) -> bytes:
    """A residual block with a convolution in its shortcut."""
    sketch = Sketch(3)
    x, t = shared(sketch, inner)
    body = sketch.conv(sketch.conv(t, 8, (3, 3), (2, 2)), 8, (3, 3))
    return sketch.build([x], [sketch.add(body, sketch.conv(t, 8, (1, 1), (2, 2)))])


def siblings(dtype: str) -> bytes:
    """Layers that are merged into one, before and among others, as in an inception block."""
    sketch = Sketch(5, dtype=dtype)
    x = sketch.value((1, 12, 10, 6))
    sketch.results = (0.9, -30)
    y = sketch.concatenate([sketch.conv(x, n, (3, 3), (2, 2)) for n in (8, 5, 16)], 3)
    narrow, wide = [sketch.conv(y, n, (1, 1)) for n in (4, 12)], sketch.conv(y, 6, (3, 3))
    return sketch.build([x], [sketch.concatenate([*narrow, wide], 3)])


def halves(dtype: str, kernel: tuple[int, int]) -> bytes:
    """Layers with split channels: a gated unit, and a block that continues with half of them (CSP)."""
    sketch = Sketch(6, dtype=dtype)
    x = sketch.value((1, 12, 10, 6))
    first, second = sketch.split(sketch.conv(x, 16, kernel), 3, 2)
    y = sketch.add(first, sketch.unary(second, "LOGISTIC"), kind="MUL")
    y = sketch.unary(sketch.conv(y, 10, (1, 1)), "TANH")
    first, second = sketch.split(y, 3, 2)
    sketch.results = (first.scale, first.zero_point)
    joined = sketch.concatenate([first, second, sketch.conv(second, 7, (3, 3))], 3)
    return sketch.build([x], [sketch.conv(joined, 4, (1, 1))])


def two_inputs() -> bytes:
    """Branches of two inputs; only the last operators join them."""
    sketch = Sketch(4)
    x, other = sketch.value((1, 20, 6, 4)), sketch.value((1, 20, 6, 4))
    joined = sketch.add(sketch.conv(x, 16, (3, 3)), sketch.conv(other, 16, (1, 1)))
    return sketch.build([x, other], [sketch.pool(joined, "MAX_POOL_2D", (2, 2), (2, 2))])


@cache
def smallest(data: bytes) -> Plan:
    return plan_of(data, optimize="ram")


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("network", [convolutions, mixed_branches, projection])
def test_all_readers_of_a_tensor_are_in_one_group(network, inner: bool) -> None:
    plan = smallest(network(inner))
    tensor = plan.graph.ops[0].output if inner else plan.graph.inputs[0]
    readers = set(plan.graph.consumers[tensor])
    (group,) = (group for group in plan.groups if readers.intersection(group.ops))
    assert len(readers) > 1 and readers <= set(group.ops)
    if inner:  # a ring as high as the highest of the windows
        assert tensor in {op.output for op in group.ops} and tensor not in group.outputs
        assert plan.storage[tensor].ring_rows <= 6 < tensor.shape[1]


def test_branches_of_two_inputs_are_one_group() -> None:
    assert [len(group.ops) for group in smallest(two_inputs()).groups] == [4]


@on_one_core("cortex-m4", "cortex-m55", host=True)
def test_siblings_are_exact(target: str) -> None:
    """Siblings become one layer, with and without other layers among them."""
    target_or_skip(target)
    plans = [plan_of(siblings(dtype), target, kernels="tinyfuse") for dtype in ("int8", "int16", "float32")]
    assert_all_exact(plans, runs=3)
    for plan in plans:
        assert [op.kind for op in plan.graph.ops] == ["CONV_2D", "CONV_2D", "CONV_2D", "CONCATENATION"]


@pytest.mark.parametrize("target", ["host", "cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_layers_whose_channels_are_split_are_exact(target: str) -> None:
    target_or_skip(target)
    networks = [("int8", (1, 1)), ("int8", (3, 3)), ("int16", (3, 2)), ("float32", (2, 3))]
    # they take turns, whose plans for the least RAM take seconds; Cortex-M0+ has the host's kernels
    turns = {
        "host": networks[1::2],
        "cortex-m0plus": networks[:1],
        "cortex-m4": networks[1:2],
        "cortex-m55": networks[2:3],
    }
    networks = turns[target]
    plans = [plan_of(halves(*network), target, optimize="ram") for network in networks]
    assert_all_exact(plans, runs=3)
    for plan in plans:
        assert "SPLIT" not in {op.kind for op in plan.graph.ops}


def test_groups_of_branches_are_exact() -> None:
    networks = [network(inner) for network in (convolutions, mixed_branches, projection) for inner in (False, True)]
    assert_all_exact([smallest(data) for data in (*networks, two_inputs())], runs=2)
