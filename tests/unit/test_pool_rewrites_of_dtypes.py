"""Rewrites of int16 and float32 pools, pads and reductions are exact or don't apply."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from executors import assert_all_exact, grouped_plan, plan_of
from tflite_builder import ModelBuilder

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op, Quant, Tensor
from tinyfuse.ops.core.convolution import Conv2D
from tinyfuse.options import OPTIMIZE
from tinyfuse.rewrite import rewrite
from tinyfuse.rewrite.fold_activation import fold_activation
from tinyfuse.rewrite.fold_pad import fold_pad, why_pad_stays
from tinyfuse.rewrite.intervals import channel_intervals
from tinyfuse.rewrite.prune_channels import prune_channels
from tinyfuse.rewrite.split_full_height import split_full_height
from tinyfuse.rewrite.split_global_pool import split_global_pool
from tinyfuse.verify.oracle import ReferenceOracle

DTYPES = ("int16", "float32")


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


def pooled(dtype: str, last: str = "AVERAGE_POOL_2D") -> bytes:
    """A PAD, a MAX_POOL_2D over borders, and an average over the rest, by a pool or a MEAN."""
    model, quant = ModelBuilder(), {"scale": 0.01, "zero_point": 0} if dtype == "int16" else {}
    x = model.tensor("x", (1, 8, 7, 5), dtype, **quant)
    amounts = model.tensor("amounts", (4, 2), "int32", data=np.array([[0, 0], [2, 1], [0, 2], [0, 0]], np.int32))
    padded = model.tensor("padded", (1, 11, 9, 5), dtype, **quant)
    most = model.tensor("most", (1, 6, 5, 5), dtype, **quant)
    result = model.tensor("result", (1, 1, 1, 5), dtype, **quant)
    model.op("PAD", [x, amounts], [padded], table=False)
    window = {"filter_height": 3, "filter_width": 3, "stride_h": 2, "stride_w": 2, "padding": "SAME"}
    model.op("MAX_POOL_2D", [padded], [most], **window)
    if last == "MEAN":
        axes = model.tensor("axes", (2,), "int32", data=np.array([1, 2], np.int32))
        model.op("MEAN", [most, axes], [result], keep_dims=True)
    else:
        window = {"filter_height": 6, "filter_width": 5, "stride_h": 1, "stride_w": 1, "padding": "VALID"}
        model.op(last, [most], [result], fused_activation_function="RELU", **window)
    return model.build([x], [result])


def drawn(graph: Graph, seed: int) -> list[np.ndarray]:
    """Inputs at which float32 sums are rounded."""
    rng = np.random.default_rng(seed)
    (x,) = graph.inputs
    if x.dtype == "float32":
        return [(rng.normal(size=x.shape) * 10.0 ** rng.integers(-3, 4, x.shape)).astype(np.float32)]
    return [rng.integers(-32768, 32768, x.shape).astype(x.dtype)]


def assert_same(before: Graph, after: Graph) -> None:
    """Compares bit by bit, including signs of zeros."""
    inputs = [drawn(before, seed) for seed in range(6)]
    for a, b in zip(ReferenceOracle(before).run_all(inputs), ReferenceOracle(after).run_all(inputs), strict=True):
        assert [x.tobytes() for x in a] == [x.tobytes() for x in b]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_global_average_takes_rows_in_the_same_order(dtype: str) -> None:
    graph = read_tflite("model.tflite", pooled(dtype))
    after = split_global_pool(graph)
    assert kinds(after) == ["PAD", "MAX_POOL_2D", "ROW_SUM", "AVERAGE_OF_SUM"]
    assert_same(graph, after)
    assert_same(graph, rewrite(graph, "rows", "auto", "ram"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_global_maximum_takes_rows_in_the_same_order(dtype: str) -> None:
    graph = read_tflite("model.tflite", pooled(dtype, "MAX_POOL_2D"))
    after = split_global_pool(graph)
    assert kinds(after) == ["PAD", "MAX_POOL_2D", "ROW_MAX", "AVERAGE_OF_SUM"]
    assert_same(graph, after)
    assert_same(graph, rewrite(graph, "rows", "auto", "ram"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_mean_takes_rows_in_the_same_order(dtype: str) -> None:
    graph = read_tflite("model.tflite", pooled(dtype, "MEAN"))
    after = split_full_height(graph)
    assert kinds(after) == ["PAD", "MAX_POOL_2D", "ROW_SUM", "MEAN_OF_SUM", "RESHAPE"]
    assert_same(graph, after)


@pytest.mark.parametrize("target", ["host", pytest.param("cortex-m55", marks=pytest.mark.emulated)])
def test_pools_of_rows_are_exact(target: str) -> None:
    plans = [plan_of(pooled(dtype), target, optimize=how, kernels="tinyfuse") for dtype in DTYPES for how in OPTIMIZE]
    groups = [grouped_plan(pooled(dtype), [4], target, optimize="ram") for dtype in DTYPES]
    means = [grouped_plan(pooled(dtype, "MEAN"), [4, 1], target, optimize="ram") for dtype in DTYPES]
    assert_all_exact([*plans, *groups, *means])


@pytest.mark.parametrize("dtype", DTYPES)
def test_intervals_of_int8_say_nothing_of_others(dtype: str) -> None:
    graph = read_tflite("model.tflite", pooled(dtype))
    assert channel_intervals(graph) == {}
    assert prune_channels(graph) is graph


# --- activations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activations", [("RELU",), ("RELU6", "RELU"), ("RELU", "RELU6")])
def test_activations_narrow_the_clamp_of_a_pool(dtype: str, activations: tuple[str, ...]) -> None:
    model, quant = ModelBuilder(), {"scale": 0.01, "zero_point": 0} if dtype == "int16" else {}
    x = model.tensor("x", (1, 6, 4, 3), dtype, **quant)
    window = {"filter_height": 2, "filter_width": 2, "stride_h": 2, "stride_w": 2, "padding": "VALID"}
    last = model.tensor("pooled", (1, 3, 2, 3), dtype, **quant)
    model.op("AVERAGE_POOL_2D", [x], [last], **window)
    for name in activations:
        y = model.tensor(name, (1, 3, 2, 3), dtype, **quant)
        model.op(name, [last], [y], table=False)
        last = y
    graph = read_tflite("model.tflite", model.build([x], [last]))
    after = fold_activation(graph)
    assert kinds(after) == ["AVERAGE_POOL_2D"]
    assert_same(graph, after)


# --- PAD -----------------------------------------------------------------------------------------


def padded_convolution(dtype: str, value: float | None = None, weight: float = 0.5) -> Graph:
    """A PAD, or PADV2 with a value, and a CONV_2D."""
    quant = Quant((0.1,), (0,)) if dtype == "int16" else None
    wide = "float32" if dtype == "float32" else "int8"
    x, padded, y = (Tensor(name, (1, dim, dim, 2), dtype, quant) for name, dim in (("x", 4), ("padded", 6), ("y", 4)))
    amounts = Tensor("amounts", (4, 2), "int32", data=np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    weights = Tensor("w", (2, 3, 3, 2), wide, Quant((0.1,), (0,)), np.full((2, 3, 3, 2), weight).astype(wide))
    constant = None if value is None else Tensor("value", (1,), dtype, quant, np.array([value], dtype))
    inputs = (x, amounts) if constant is None else (x, amounts, constant)
    pad = Op("PAD" if constant is None else "PADV2", inputs, (padded,))
    conv = Op("CONV_2D", (padded, weights, None), (y,), Conv2D("VALID"))
    return Graph("model.tflite", "", (pad, conv), (x,), (y,))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [None, 0.0])
def test_a_pad_of_zeros_becomes_the_convolutions_own(dtype: str, value: float | None) -> None:
    (conv,) = fold_pad(padded_convolution(dtype, value)).ops
    assert conv.attributes_as(Conv2D).padding == (1, 1, 1, 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_pad_of_another_value_stays(dtype: str) -> None:
    graph = padded_convolution(dtype, 3.0)
    assert fold_pad(graph) is graph


def test_a_pad_of_zeros_beside_a_zero_point_stays() -> None:
    """TFLM's PAD of int16 writes 0 whatever the output's zero point is."""
    graph = padded_convolution("int16")
    quant = Quant((0.1,), (7,))
    x, padded = (replace(tensor, quant=quant) for tensor in (graph.ops[0].input, graph.ops[0].output))
    pad = replace(graph.ops[0], inputs=(x, graph.ops[0].inputs[1]), outputs=(padded,))
    conv = replace(graph.ops[1], inputs=(padded, *graph.ops[1].inputs[1:]))
    assert why_pad_stays(replace(graph, ops=(pad, conv), inputs=(x,)), pad) is not None


def test_a_pad_stays_where_zero_times_a_weight_is_no_zero() -> None:
    graph = padded_convolution("float32", weight=np.inf)
    assert "not finite" in (why_pad_stays(graph, graph.ops[0]) or "")
