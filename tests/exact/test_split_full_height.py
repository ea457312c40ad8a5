"""Layers as high as the image take rows as they come: the same bits from accumulators."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from executors import assert_all_exact, assert_exact, plan_of
from random_graphs import Sketch
from test_rewrites import assert_same, graph_of, kinds

from tinyfuse.cost.predict import plan_instructions
from tinyfuse.ops import FAMILIES
from tinyfuse.options import OPTIMIZE
from tinyfuse.rewrite.split_full_height import split_dense, split_full_height
from tinyfuse.schedule.plans.pick_plan import MAX_SLOWDOWN


def depthwise(
    height: int = 9, padding: str = "VALID", multiplier: int = 1, kernel: int | None = None, stride=(1, 1)
) -> bytes:
    sketch = Sketch(1)
    x = sketch.value((1, height, 5, 8))
    y = sketch.depthwise(x, (kernel or height, 3), stride, padding, multiplier=multiplier)
    return sketch.build([x], [y])


def dense(units: int = 3) -> bytes:
    sketch = Sketch(2)
    x = sketch.value((1, 8, 4, 6))
    return sketch.build([x], [sketch.softmax(sketch.fully_connected(sketch.conv(x, 12, (3, 3)), units, "RELU"))])


def convolution() -> bytes:
    sketch = Sketch(3)
    x = sketch.value((1, 9, 6, 8))
    return sketch.build([x], [sketch.conv(x, 2, (9, 3), (1, 2), "VALID", (1, 2))])


def mean(keep_dims: bool, height: int = 7, axes=(1, 2)) -> bytes:
    sketch = Sketch(4)
    x = sketch.value((1, height, 5, 6))
    y = sketch.conv(x, 11, (3, 3))
    constant = sketch.model.tensor("axes", (len(axes),), "int32", data=np.array(axes, np.int32))
    shape = tuple(1 if a in axes else e for a, e in enumerate(y.shape))
    z = sketch.value(shape if keep_dims else tuple(e for a, e in enumerate(y.shape) if a not in axes))
    sketch.model.op("MEAN", [y.index, constant], [z.index], keep_dims=keep_dims)
    return sketch.build([x], [z])


SPLIT = {
    "depthwise": (depthwise(), split_full_height),
    "depthwise with a multiplier": (depthwise(height=14, multiplier=2), split_full_height),
    "depthwise with a stride": (depthwise(stride=(3, 2)), split_full_height),
    "mean": (mean(keep_dims=False), split_full_height),
    "mean that keeps its rank": (mean(keep_dims=True), split_full_height),
    "convolution": (convolution(), split_dense),
    "fully connected": (dense(), split_dense),
}


@pytest.mark.parametrize("name", SPLIT)
def test_the_same_bits(name: str) -> None:
    data, split = SPLIT[name]
    graph = graph_of(data)
    after = split(graph)
    assert {"ROW_MACS", "ROW_SUM"} & set(kinds(after))
    assert sum(FAMILIES[op.kind].macs(op) for op in after.ops) == sum(FAMILIES[op.kind].macs(op) for op in graph.ops)
    assert_same(graph, after, runs=12)


@pytest.mark.parametrize("name", SPLIT)
def test_generated_code_is_exact(name: str) -> None:
    plan = plan_of(SPLIT[name][0], optimize="ram", feed_rows=name != "convolution")
    assert {"ROW_MACS", "ROW_SUM"} & set(kinds(plan.graph))
    assert_exact(plan, runs=6)


@pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs a cross compiler and QEMU",
)
def test_it_is_exact_on_an_emulated_core() -> None:
    how = {"kernels": "tinyfuse", "optimize": "ram"}
    assert_all_exact(
        [plan_of(SPLIT[n][0], "cortex-m4", **how) for n in ("depthwise", "mean", "fully connected")], runs=4
    )


@pytest.mark.parametrize(
    "data",
    [
        depthwise(kernel=8),  # two rows of output
        depthwise(padding="SAME", stride=(9, 1), kernel=11),  # padding above
        depthwise(height=4, kernel=4),  # accumulators as large as the image
        mean(False, axes=(1,)),
        mean(False, height=1),
    ],
)
def test_others_stay(data: bytes) -> None:
    graph = graph_of(data)
    assert split_full_height(graph) is graph


def test_a_dense_layer_with_many_outputs_stays() -> None:
    graph = graph_of(dense(units=200))
    assert split_dense(graph) is graph


@pytest.mark.parametrize(("optimize", "split"), [("speed", False), ("ram", True)])
def test_dense_layers_are_split_for_ram(optimize: str, split: bool) -> None:
    assert ("ROW_MACS" in kinds(plan_of(dense(), optimize=optimize).graph)) == split


def test_balanced_splits_a_dense_layer_that_costs_little_beside_the_others() -> None:
    fastest, balanced = (plan_of(dense(), optimize=optimize) for optimize in ("speed", "balanced"))
    assert "ROW_MACS" in kinds(balanced.graph)
    assert balanced.arena_bytes < fastest.arena_bytes
    assert plan_instructions(balanced) <= (1 + MAX_SLOWDOWN) * plan_instructions(fastest)


@pytest.mark.parametrize("optimize", OPTIMIZE)
def test_rows_are_not_kept(optimize: str) -> None:
    """Only one row of the image and the accumulators are kept: five columns of four bytes."""
    plan = plan_of(depthwise(height=40), feed_rows=True, optimize=optimize)
    assert plan.arena_bytes < 40 * 5 * 8 // 4
