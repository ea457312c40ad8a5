"""`--slide` where time is upsampled: TRANSPOSE_CONV, RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR along the frames."""

from __future__ import annotations

import pytest
from executors import plan_of
from random_graphs import Sketch
from sliding_models import assert_slides, step_of
from stream_program import assert_all_stream

from tinyfuse.ops import FAMILIES
from tinyfuse.slide import account


def upsampled(
    kind: str, factor: int, stride: int = 2, padding: str = "VALID", dtype: str = "int8", kernel: int = 4, height=25,
    **options: bool,
) -> bytes:  # fmt: skip
    """Downsamples frames by two, upsamples them, and applies windows of three rows."""
    s = Sketch(3, dtype=dtype)
    frames = s.value((1, height, 2, 3), name="frames")
    x = s.conv(frames, 4, (stride + 1, 1), (stride, 1), padding=padding)
    if kind == "TRANSPOSE_CONV":
        x = s.transpose_conv(x, 4, (kernel, 2), (factor, 1))
    else:
        x = s.resize(x, (x.shape[1] * factor, x.shape[2] * 2), kind, **options)
    x = s.conv(x, 5, (3, 1), padding=padding)
    return s.build([frames], [s.conv(x, 2, (x.shape[1], 1), padding="VALID")])


#: per model: rows that a step of so many frames makes of what is upsampled, those that see a border among them; None
#: where it runs whole
MODELS = {
    "transposed": (upsampled("TRANSPOSE_CONV", 2), 2, 4),
    "transposed, phases": (upsampled("TRANSPOSE_CONV", 2), 1, 4),
    "transposed, to more frames": (upsampled("TRANSPOSE_CONV", 3, 1, kernel=5), 1, 5),
    "transposed, padding": (upsampled("TRANSPOSE_CONV", 2, padding="SAME"), 2, 8),
    "transposed floats": (upsampled("TRANSPOSE_CONV", 2, dtype="float32", kernel=3), 4, 5),
    "taps that leave rows out": (upsampled("TRANSPOSE_CONV", 3, kernel=2), 2, None),
    "nearest": (upsampled("RESIZE_NEAREST_NEIGHBOR", 2), 2, 2),
    "nearest by three": (upsampled("RESIZE_NEAREST_NEIGHBOR", 3, half_pixel_centers=True), 4, 6),
    "columns alone": (upsampled("RESIZE_NEAREST_NEIGHBOR", 1), 2, 1),
    "bilinear": (upsampled("RESIZE_BILINEAR", 2), 2, 3),
    "bilinear, phases": (upsampled("RESIZE_BILINEAR", 4), 3, 15),
    "bilinear, middles": (upsampled("RESIZE_BILINEAR", 2, half_pixel_centers=True), 2, 4),
    "bilinear floats": (upsampled("RESIZE_BILINEAR", 2, dtype="float32"), 2, 3),
    "bilinear that drifts": (upsampled("RESIZE_BILINEAR", 3), 2, None),
    "aligned corners": (upsampled("RESIZE_BILINEAR", 2, align_corners=True), 2, None),
}


@pytest.mark.parametrize("name", MODELS)
def test_upsampling(name: str) -> None:
    """Compares references at once and row by row; only rows that are new or depend on padding are computed."""
    data, step, rows = MODELS[name]
    graph = step_of(data, step, by_row=True)
    assert_slides(graph, more=8)
    (made,) = [s for s in account(graph.window) if s.op.kind.startswith(("RESIZE", "TRANSPOSE"))]
    assert (made.made if made.end is None else None) == rows
    whole = graph.window.whole
    assert sum(FAMILIES[op.kind].macs(op) for op in graph.ops) < sum(FAMILIES[op.kind].macs(op) for op in whole.ops)


def test_the_contract() -> None:
    """Tests the C: kernels compute some rows of a larger image."""
    names = ("transposed, phases", "transposed, padding", "transposed floats", "nearest", "bilinear, middles",
             "bilinear floats")  # fmt: skip
    options = [{"optimize": "speed"}, {"fusion": "none"}, {"optimize": "ram"}, {}, {"feed_rows": True}, {}]
    assert_all_stream([
        plan_of(MODELS[name][0], slide=MODELS[name][1], **some) for name, some in zip(names, options, strict=True)
    ])  # fmt: skip
