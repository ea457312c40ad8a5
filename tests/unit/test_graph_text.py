"""The text of a graph shows everything that rewrites change, and nothing about the machine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from known_architectures import attention, mobilenet_v3, two_inputs, u_net
from stream_models import every_kind_of_state, lstm, streaming_convolutions
from tflite_builder import ModelBuilder

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op
from tinyfuse.ir.text import graph_text
from tinyfuse.rewrite import rewrite

MODELS = {
    "attention": attention(), "every kind of state": every_kind_of_state(), "lstm": lstm((1, 3, 4), 5),
    "mobilenet v3": mobilenet_v3(), "streams": streaming_convolutions(), "two inputs": two_inputs(), "u-net": u_net(),
}  # fmt: skip


def read(data: bytes, path: str = "model.tflite") -> Graph:
    return read_tflite(path, data)


def small() -> Graph:
    """A padding and a convolution."""
    model = ModelBuilder()
    x = model.tensor("x", (1, 4, 4, 1), scale=0.5, zero_point=-3)
    around = model.tensor("around", (4, 2), "int32", data=np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    padded = model.tensor("padded", (1, 6, 6, 1), scale=0.5, zero_point=-3)
    weights = np.arange(-9, 9, dtype=np.int8).reshape(2, 3, 3, 1)
    w = model.tensor("w", (2, 3, 3, 1), "int8", np.array([0.25, 0.5]), np.zeros(2), 0, weights)
    b = model.tensor("b", (2,), "int32", np.array([0.125, 0.25]), np.zeros(2), 0, np.array([7, -8], np.int32))
    y = model.tensor("y", (1, 4, 4, 2), scale=0.75, zero_point=0)
    model.op("PAD", [x, around], [padded])
    model.op("CONV_2D", [padded, w, b], [y], padding="VALID", stride_h=1, stride_w=1)
    return read(model.build([x], [y]))


def test_a_text_in_full() -> None:
    assert graph_text(small()) == (
        "input  %0 int8[1,4,4,1] scale 0.5 zero -3 'x'\n"
        "op 0 PAD\n"
        "  input  %0\n"
        "  input  %1 int32[4,2] 'around' = 0 0 1 1 1 1 0 0\n"
        "  output %2 int8[1,6,6,1] scale 0.5 zero -3 'padded'\n"
        "op 1 CONV_2D rounding='two_roundings' padding='VALID' stride=(1, 1) dilation=(1, 1) activation='NONE' clamp=None "
        "quantized_bias_type='FLOAT32' float_scales=False\n"
        "  input  %2\n"
        "  input  %3 int8[2,3,3,1] scale 0.25 to 0.5 (2, axis 0) 'w' = -9 to 8, crc32 b4125edd\n"
        "  input  %4 int32[2] scale 0.125 to 0.25 (2, axis 0) 'b' = 7 -8\n"
        "  output %5 int8[1,4,4,2] scale 0.75 zero 0 'y'\n"
        "output %5\n"
    )


@pytest.mark.parametrize("name", MODELS)
def test_the_same_file_has_the_same_text_wherever_it_lies(name: str) -> None:
    before = read(MODELS[name])
    text = graph_text(before)
    assert text == graph_text(read(MODELS[name], "/elsewhere/another.tflite"))
    after = graph_text(rewrite(before, "rows", "auto", "ram"))
    assert after == graph_text(rewrite(read(MODELS[name]), "rows", "auto", "ram"))
    for shown in (text, after):
        assert not [sign for sign in (" object at ", "array(", "Tensor(") if sign in shown]
        assert len(shown) < 100_000


@pytest.mark.parametrize("name", MODELS)
def test_every_tensor_has_a_name_of_its_own(name: str) -> None:
    graph = rewrite(read(MODELS[name]), "rows", "auto", "ram")
    tensors = {t for op in graph.ops for t in (*op.inputs, *op.outputs) if t is not None} | {*graph.inputs}
    tensors |= {t.cursor for t in tensors if t.cursor is not None}
    words = graph_text(graph).split()
    assert len({word for word in words if word.startswith("%")}) == len(tensors)


def changed(graph: Graph, place: int, /, **fields: object) -> Graph:
    ops = list(graph.ops)
    ops[place] = replace(ops[place], **fields)
    return replace(graph, ops=tuple(ops))


def with_tensor(op: Op, place: int, **fields: object) -> tuple[object, ...]:
    """The operator with one changed input."""
    tensor = op.inputs[place]
    assert tensor is not None
    return (*op.inputs[:place], replace(tensor, **fields), *op.inputs[place + 1 :])


def test_what_changes_is_seen() -> None:
    graph = small()
    conv = graph.ops[1]
    weights = conv.inputs[1]
    assert weights is not None
    assert weights.data is not None
    assert weights.quant is not None
    turned = np.flip(weights.data, 0)  # the same values: only the checksum tells
    wider = replace(weights.quant, scale=(0.25, float(np.float32(0.5) * np.float32(1 + 2**-23))))
    others = [
        changed(graph, 1, view=True),
        changed(graph, 1, kind="OTHER"),
        changed(graph, 1, index=-1),
        changed(graph, 1, attributes=replace(conv.attributes, clamp=(0, 5))),
        changed(graph, 1, inputs=with_tensor(conv, 1, data=turned)),
        changed(graph, 1, inputs=with_tensor(conv, 1, quant=wider)),
        changed(graph, 1, inputs=with_tensor(conv, 1, dtype="uint8")),
        changed(graph, 1, inputs=(*conv.inputs[:2], None)),
        replace(graph, ops=graph.ops[::-1]),
        replace(graph, outputs=graph.inputs),
    ]
    texts = {graph_text(each) for each in (graph, *others)}
    assert len(texts) == 1 + len(others)
