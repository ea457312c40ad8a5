"""Convolutions between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND, as older converters write dilated ones, become dilated
convolutions if that is exact."""

from __future__ import annotations

import numpy as np
import pytest
from executors import assert_exact, assert_reference_is_tflm, plan_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import Sketch, Value
from tflite_builder import ModelBuilder

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph
from tinyfuse.rewrite.dilate import dilate
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle


def blocks(sketch: Sketch, kind: str, x: Value, shape, block, around, quant=None) -> Value:
    """SPACE_TO_BATCH_ND or BATCH_TO_SPACE_ND with this output shape."""
    y = sketch.value(shape, *(quant or (x.scale, x.zero_point)))
    numbers = [
        sketch.model.tensor(name, np.shape(values), "int32", data=np.array(values, np.int32))
        for name, values in (("block", block), ("around", around))
    ]
    sketch.model.op(kind, [x.index, *numbers], [y.index], table=False)
    return y


def split(sketch: Sketch, x: Value, block, paddings, quant=None) -> Value:
    counts = [(dim + sum(pair)) // b for dim, b, pair in zip(x.shape[1:-1], block, paddings, strict=True)]
    shape = (x.shape[0] * int(np.prod(block)), *counts, x.shape[-1])
    return blocks(sketch, "SPACE_TO_BATCH_ND", x, shape, block, paddings, quant)


def join(sketch: Sketch, x: Value, block, crops) -> Value:
    dims = [n * b - sum(pair) for n, b, pair in zip(x.shape[1:-1], block, crops, strict=True)]
    shape = (x.shape[0] // int(np.prod(block)), *dims, x.shape[-1])
    return blocks(sketch, "BATCH_TO_SPACE_ND", x, shape, block, crops)


def image_model(
    zero_point: int = 0, paddings=((2, 3), (2, 2)), crops=((0, 1), (0, 0)), block=(2, 2), dims=(7, 6),
    kernel=(3, 3), depthwise=False, between=None, **options,
) -> bytes:  # fmt: skip
    sketch = Sketch(3)
    x = sketch.value((1, *dims, 4), 0.05, zero_point)
    y = split(sketch, x, block, paddings, between)
    options = {"padding": "VALID", **options}
    y = sketch.depthwise(y, kernel, **options) if depthwise else sketch.conv(y, 5, kernel, **options)
    return sketch.build([x], [join(sketch, y, block, crops)])


def sequence_model(length=11, block=4, paddings=(0, 1), crops=(0, 1), kernel=2, columns=False, zero_point=-9) -> bytes:
    """A dilated Conv1D as converters write it, of rank 3; causal by default."""
    sketch = Sketch(4)
    x = sketch.value((1, length, 6), 0.05, zero_point)
    y = split(sketch, x, (block,), (paddings,))
    batch, count, depth = y.shape
    y = sketch.reshape(y, (batch, 1, count, depth) if columns else (batch, count, 1, depth))
    y = sketch.conv(y, 5, (1, kernel) if columns else (kernel, 1), padding="VALID")
    y = sketch.reshape(y, (batch, max(y.shape[1:3]), 5))
    return sketch.build([x], [join(sketch, y, (block,), (crops,))])


def graph_of(data: bytes) -> Graph:
    return read_tflite("model.tflite", data)


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


def assert_same(before: Graph, after: Graph) -> None:
    inputs = input_set(before, 5, 0)
    wanted, found = (ReferenceOracle(graph).run_all(inputs) for graph in (before, after))
    np.testing.assert_array_equal(wanted, found)


def float_model(kind: str = "CONV_2D", weight: float = 0.5) -> bytes:
    """A float model padded on all sides; one weight has this value."""
    model, rng = ModelBuilder(), np.random.default_rng(7)
    channels = 3 if kind == "CONV_2D" else 2
    weights = rng.normal(size=(channels, 3, 3, 2) if kind == "CONV_2D" else (1, 3, 3, 2)).astype(np.float32)
    weights[0, 0, 0, 0] = weight
    x, y = model.tensor("x", (1, 6, 5, 2), "float32"), model.tensor("y", (1, 6, 5, channels), "float32")
    between = model.tensor("blocks", (4, 5, 5, 2), "float32"), model.tensor("sums", (4, 3, 3, channels), "float32")
    numbers = {"block": (2, 2), "paddings": ((2, 2), (2, 3)), "crops": ((0, 0), (0, 1))}
    block, paddings, crops = (
        model.tensor(name, np.shape(values), "int32", data=np.array(values, np.int32))
        for name, values in numbers.items()
    )
    model.op("SPACE_TO_BATCH_ND", [x, block, paddings], [between[0]], table=False)
    options = {"depth_multiplier": 1} if kind == "DEPTHWISE_CONV_2D" else {}
    layer = [between[0], model.tensor("weights", weights.shape, "float32", data=weights)]
    bias = model.tensor("bias", (channels,), "float32", data=rng.normal(size=channels).astype(np.float32))
    model.op(kind, [*layer, bias], [between[1]], padding="VALID", stride_h=1, stride_w=1, **options)
    model.op("BATCH_TO_SPACE_ND", [between[1], block, crops], [y], table=False)
    return model.build([x], [y])


_SAME = {
    "padded": image_model(),
    "padded as the convolution pads": image_model(paddings=((0, 1), (0, 0)), padding="SAME"),
    "depthwise": image_model(depthwise=True),
    "rows alone": image_model(block=(3, 1), paddings=((0, 2), (0, 0)), crops=((0, 2), (0, 0))),
    "nothing outside is read": image_model(17, paddings=((0, 1), (0, 0)), crops=((0, 1), (0, 0)), kernel=(2, 2)),
    "dilated before": image_model(dims=(11, 12), paddings=((0, 1), (0, 0)), crops=((0, 1), (0, 0)), dilation=(2, 1)),
    "floats": float_model(),
    "floats, depthwise": float_model("DEPTHWISE_CONV_2D"),
    "cropped in front": image_model(paddings=((3, 2), (4, 2)), crops=((1, 0), (2, 0))),
}
_SEQUENCES = {
    "in rows": sequence_model(),
    "in columns": sequence_model(columns=True),
    "padded": sequence_model(paddings=(4, 1), crops=(0, 1), zero_point=0),
    "one pixel a block": sequence_model(length=3, kernel=1, columns=True),
}
_OTHERS = {
    "zeros that are no zero": image_model(5),
    "other quantization": image_model(between=(0.07, 0)),
    "a stride": image_model(stride=(2, 1)),
    "cropped into the image": image_model(crops=((3, 0), (0, 0))),
    "rows at the end left out": image_model(paddings=((0, 1), (0, 0)), crops=((0, 3), (0, 0))),
    "zeros times an infinite weight": float_model(weight=np.inf),
    "zeros that are no zero in a sequence": sequence_model(paddings=(4, 1)),
}


@pytest.mark.parametrize("name", _SAME)
def test_a_convolution_of_blocks_becomes_a_dilated_one(name: str) -> None:
    graph = graph_of(_SAME[name])
    after = dilate(graph)
    assert len(after.ops) == 1
    assert_same(graph, after)


@pytest.mark.parametrize("name", _SEQUENCES)
def test_so_does_one_of_a_sequence(name: str) -> None:
    graph = graph_of(_SEQUENCES[name])
    after = dilate(graph)
    assert kinds(after) == ["RESHAPE", "CONV_2D", "RESHAPE"]
    assert_same(graph, after)


@pytest.mark.parametrize("name", _OTHERS)
def test_others_stay(name: str) -> None:
    graph = graph_of(_OTHERS[name])
    assert dilate(graph) is graph


def test_what_others_read_stays() -> None:
    sketch = Sketch(5)
    x = sketch.value((1, 4, 4, 3), 0.05, 0)
    between = split(sketch, x, (2, 2), ((2, 2), (2, 2)))
    y = join(sketch, sketch.conv(between, 5, (3, 3), padding="VALID"), (2, 2), ((0, 0), (0, 0)))
    graph = graph_of(sketch.build([x], [y, between]))
    assert dilate(graph) is graph


@st.composite
def _models(draw) -> bytes:
    """All combinations of blocks, paddings, crops and the convolution's padding; some can't become dilated."""
    block = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    padding = draw(st.sampled_from(["SAME", "VALID"]))
    dims, paddings, crops = [], [], []
    for b, k in zip(block, kernel, strict=True):
        before, after = draw(st.integers(0, 4)), draw(st.integers(0, 4))
        count = -(-(1 + before + after) // b) + k - 1 + draw(st.integers(0, 2))
        whole = (count if padding == "SAME" else count - k + 1) * b
        dims.append(count * b - before - after)
        paddings.append((before, after))
        first = draw(st.integers(0, min(3, whole - 1)))
        crops.append((first, draw(st.integers(0, min(3, whole - 1 - first)))))
    return image_model(
        draw(st.sampled_from([0, 0, 7])), paddings, crops, block, dims, kernel, draw(st.booleans()), padding=padding
    )


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(_models())
def test_random_ones_keep_every_bit(data: bytes) -> None:
    graph = graph_of(data)
    assert_same(graph, dilate(graph))


@pytest.mark.parametrize(
    "data", [_SAME["padded"], _SAME["floats"], _SEQUENCES["in rows"], _OTHERS["zeros that are no zero"]]
)
def test_exact_from_tflm_to_c(data: bytes) -> None:
    pytest.importorskip("tflite_micro")
    assert_reference_is_tflm(data)
    assert_exact(plan_of(data))
