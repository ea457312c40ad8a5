"""REDUCE_MAX, REDUCE_MIN, SUM, MEAN and MAX_POOL_2D over all rows of an image take its rows one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from executors import assert_all_exact, plan_of
from random_graphs import Sketch
from tflite_builder import ModelBuilder

from tinyfuse.plan import Plan

#: (rows, columns, channels): words of channels and a rest, less than a word, a sequence
SHAPES = ((12, 5, 9), (9, 4, 8), (7, 3, 2), (33, 1, 6), (16, 6, 20))
DTYPES = ("int8", "int16", "float32")


def reduced(kind: str, shape: tuple[int, int, int], dtype: str, axes: tuple[int, ...], keep_dims: bool) -> bytes:
    """A PAD, so that rows come one at a time, and the reduction."""
    rows, columns, channels = shape
    model, quant = ModelBuilder(), {"scale": 0.05, "zero_point": 0 if dtype == "int16" else -3}
    x = model.tensor("x", (1, rows - 2, columns, channels), dtype, **quant)
    amounts = model.tensor("amounts", (4, 2), "int32", data=np.array([[0, 0], [1, 1], [0, 0], [0, 0]], np.int32))
    padded = model.tensor("padded", (1, rows, columns, channels), dtype, **quant)
    model.op("PAD", [x, amounts], [padded], table=False)
    if kind == "MAX_POOL_2D":
        y = model.tensor("y", (1, 1, 1, channels), dtype, **quant)
        window = {"filter_height": rows, "filter_width": columns, "stride_h": 1, "stride_w": 1, "padding": "VALID"}
        model.op(kind, [padded], [y], fused_activation_function="RELU", **window)
    else:
        kept = [1 if i in axes else dim for i, dim in enumerate((1, *shape))]
        result = kept if keep_dims else [dim for i, dim in enumerate((1, *shape)) if i not in axes]
        y = model.tensor("y", tuple(result), dtype, **quant)
        numbers = model.tensor("axes", (len(axes),), "int32", data=np.array(axes, np.int32))
        model.op(kind, [padded, numbers], [y], keep_dims=keep_dims)
    return model.build([x], [y])


def plans(target: str) -> list[Plan]:
    """Plans of all kinds, dtypes and shapes."""
    found = []
    for kind in ("REDUCE_MAX", "REDUCE_MIN", "SUM", "MEAN", "MAX_POOL_2D"):
        for dtype in DTYPES[:: 2 if kind in ("REDUCE_MAX", "REDUCE_MIN") else 1]:
            for i, shape in enumerate(SHAPES):
                axes = (1,) if i % 2 and kind != "MAX_POOL_2D" else (1, 2)
                data = reduced(kind, shape, dtype, axes, keep_dims=bool(i % 3))
                found.append(plan_of(data, target, kernels="tinyfuse", optimize="ram"))
    return found


@pytest.mark.parametrize("target", ["host", "cortex-m4", "cortex-m55", "cortex-m0plus"])
def test_rows_are_reduced_one_after_the_other(target: str) -> None:
    made = plans(target)
    kinds = [op.kind for plan in made for op in plan.graph.ops]
    assert all(kinds.count(kind) >= 5 for kind in ("ROW_MAX", "ROW_MIN", "ROW_SUM")), kinds
    assert_all_exact(made, runs=3)


def test_an_image_that_is_reduced_never_is_whole() -> None:
    """A ring of the convolution's output is kept, as before a MEAN."""

    def arena(kind: str) -> int:
        sketch = Sketch(3)
        x = sketch.value((1, 32, 32, 1))
        image = sketch.conv(x, 16, (3, 3))
        y = sketch.value((1, 16), image.scale, image.zero_point)
        sketch.model.op(kind, [image.index, sketch.constant([1, 2])], [y.index], keep_dims=False)
        return plan_of(sketch.build([x], [y]), "cortex-m4").arena_bytes

    assert arena("REDUCE_MAX") == arena("REDUCE_MIN") == arena("MEAN") < 32 * 32 * 4
