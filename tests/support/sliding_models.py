"""Models over a time axis, and the check of `--slide` against the whole model on each window."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from random_graphs import Sketch, Value, draw_layer

from tinyfuse.compiler import graphs_to_plan
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Window
from tinyfuse.options import Options
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle
from tinyfuse.verify.windows import WindowOracle


def step_of(data: bytes, step: int, axis: int | None = None, by_row: bool = False) -> Graph:
    """The step graph of a model that keeps as much state as possible."""
    return steps_of_model(data, step, axis, by_row)[-1]


def steps_of_model(data: bytes, step: int, axis: int | None = None, by_row: bool = False) -> list[Graph]:
    """All step graphs from which `gen` would choose."""
    source = read_tflite("model.tflite", data)
    return graphs_to_plan(source, Options("net", slide=step, slide_axis=axis, feed_rows=by_row))


def assert_slides(graph: Graph, seed: int = 0, more: int = 6) -> None:
    """Compares by the references: a stream of steps gives the whole model's result for each window, for the first
    `more` full windows, and for some of them again after a reset. So does the graph that takes rows one by one, if
    there is one."""
    window = graph.window
    assert window is not None
    steps = input_set(graph, window.steps_to_fill - 1 + more, seed)
    streams = [steps, steps[2:]]
    expected = WindowOracle(window, ReferenceOracle(window.whole)).run_streams(streams)
    all_found = [ReferenceOracle(graph).run_streams(streams)]
    if window.by_row is not None:
        all_found.append([_by_row(window, stream) for stream in streams])
    for found in all_found:
        for wanted, computed in zip(expected, found, strict=True):
            for step, (outputs, ours) in enumerate(zip(wanted, computed, strict=True)):
                for a, b in zip(outputs, ours, strict=True):
                    assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), (step, graph)


def _by_row(window: Window, stream: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
    """Outputs of each step if a run takes one frame; only the last run of a step has outputs."""
    assert window.by_row is not None and window.rows is not None
    number, rows = window.input, window.rows
    shape = window.by_row.inputs[number].shape
    runs = [
        [part if i == number else array for i, array in enumerate(step)]
        for step in stream
        for part in step[number].reshape(rows, *shape)
    ]
    (found,) = ReferenceOracle(window.by_row).run_streams([runs])
    assert not any(array.any() for run, outputs in enumerate(found) if (run + 1) % rows for array in outputs)
    return found[rows - 1 :: rows]


@st.composite
def time_networks(draw, most_layers: int = 7) -> bytes:
    """A .tflite whose first input has frames: up to `most_layers` layers, most of which slide, and a tail."""
    sketch = Sketch(draw(st.integers(0, 2**20)), far=True)
    start = sketch.value((1, draw(st.integers(6, 30)), draw(st.integers(1, 4)), draw(st.integers(1, 5))))
    x, older, inputs = start, [], [start]
    if draw(st.integers(0, 7)) == 7:
        inputs.append(sketch.value(draw(st.sampled_from([start.shape, (1, 1, 1, start.shape[3])]))))
        x = sketch.add(start, inputs[1])
    for _ in range(draw(st.integers(1, most_layers))):
        older.append(x)
        hostile = draw(st.integers(0, 9)) == 9
        x = draw_layer(draw, sketch, x, older) if hostile else _draw_sliding(draw, sketch, x, older)
    outputs = [x]
    tail = draw(st.sampled_from(["none", "fc", "pool", "mean"]))
    if tail == "pool":
        outputs = [sketch.pool(x, "AVERAGE_POOL_2D", x.shape[1:3], (1, 1))]
    elif tail == "mean":
        outputs = [sketch.mean(x)]
    elif tail == "fc":
        outputs = [sketch.fully_connected(x, draw(st.integers(1, 6)))]
    if draw(st.integers(0, 5)) == 5:
        outputs.append(draw(st.sampled_from(older)))
    return sketch.build(inputs, list(dict.fromkeys(outputs)))


def _draw_sliding(draw, sketch: Sketch, x: Value, older: list[Value]) -> Value:
    """A layer whose rows may move with the window."""
    _, height, width, _ = x.shape
    twins = [v for v in older[:-1] if v.shape == x.shape]
    kinds = ["conv", "depthwise", "pool", "unary", "concat", "pad", "block"] + ["up"] * (height < 40)
    kind = draw(st.sampled_from(kinds + ["add"] * 3 * bool(twins)))
    kernel = (draw(st.integers(1, 4)), draw(st.integers(1, 3)))
    stride = (draw(st.sampled_from([1, 1, 1, 2])), draw(st.sampled_from([1, 1, 2])))
    dilation = draw(st.sampled_from([(1, 1), (1, 1), (2, 1)])) if stride == (1, 1) else (1, 1)
    inside = (kernel[0] - 1) * dilation[0] + 1 <= height and kernel[1] <= width
    padding = draw(st.sampled_from(["SAME", "VALID"])) if inside else "SAME"
    if kind == "conv":
        return sketch.conv(x, draw(st.integers(1, 8)), kernel, stride, padding, dilation, "RELU")
    if kind == "depthwise":
        return sketch.depthwise(x, kernel, stride, padding, dilation)
    if kind == "pool":
        size = (min(kernel[0], height), min(kernel[1], width))
        which = draw(st.sampled_from(["AVERAGE_POOL_2D", "MAX_POOL_2D"]))
        return sketch.pool(x, which, size, stride, padding)
    if kind == "add":
        return sketch.add(x, draw(st.sampled_from(twins)))
    if kind == "unary":
        return sketch.unary(x, "LOGISTIC")
    if kind == "pad":
        return sketch.pad(x, *(draw(st.integers(0, 2)) for _ in range(4)))
    if kind == "block":  # branches of different depth
        y = sketch.depthwise(sketch.depthwise(x, (kernel[0], 1)), (3, 1))
        return sketch.add(x, y)
    if kind == "up":
        factor = draw(st.sampled_from([1, 2, 2, 3]))
        if draw(st.booleans()):
            return sketch.transpose_conv(x, draw(st.integers(1, 5)), kernel, (factor, 1))
        which = draw(st.sampled_from(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"]))
        return sketch.resize(x, (height * factor, width), which, half_pixel_centers=draw(st.booleans()))
    return sketch.concatenate([x, sketch.relu(x)], 3)


@st.composite
def frame_networks(draw, most_layers: int = 6) -> bytes:
    """A .tflite over [1, T, C], as Keras' layers over time are converted: convolutions over columns between EXPAND_DIMS
    and RESHAPE, layers on each frame, movement of channels or frames, and a tail that sees all of time."""
    s = Sketch(
        draw(st.integers(0, 2**20)), dtype=draw(st.sampled_from(["int8", "int8", "int8", "int16", "float32"])), far=True
    )
    length, channels = draw(st.integers(6, 30)), draw(st.integers(1, 6))
    flat = draw(st.integers(0, 4)) == 0
    start = s.value((1, length * channels) if flat else (1, length, channels))
    x, older = s.reshape(start, (1, length, channels)) if flat else start, []
    for _ in range(draw(st.integers(1, most_layers))):
        older.append(x)
        x = _draw_of_frames(draw, s, x, older)
    outputs = [_draw_tail(draw, s, x)]
    if draw(st.integers(0, 5)) == 5:
        outputs.append(draw(st.sampled_from([v for v in older if v is not start])) if len(older) > 1 else x)
    return s.build([start], list(dict.fromkeys(outputs)))


def _draw_of_frames(draw, s: Sketch, x: Value, older: list[Value]) -> Value:
    _, length, channels = x.shape
    twins = [v for v in older[:-1] if v.shape == x.shape]
    kinds = ["conv"] * 4 + ["dense", "pool", "unary", "split", "crop", "pack", "norm", "swap", "softmax"]
    kind = draw(st.sampled_from(kinds + ["add"] * 4 * bool(twins)))
    if kind == "conv":
        padding = draw(st.sampled_from(["SAME", "VALID", "VALID", "causal"]))
        stride, dilation = draw(st.sampled_from([1, 1, 2, 3])), draw(st.sampled_from([1, 1, 2]))
        return conv1d(s, x, draw(st.integers(1, 6)), draw(st.integers(1, 5)), stride, padding, dilation)
    if kind == "dense":
        return s.dense(x, draw(st.integers(1, 6)))
    if kind == "pool":
        size = min(length, draw(st.integers(1, 4)))
        which = draw(st.sampled_from(["AVERAGE_POOL_2D", "MAX_POOL_2D"]))
        padding, stride = draw(st.sampled_from(["SAME", "VALID"])), draw(st.sampled_from([1, 2]))
        pooled = s.pool(s.reshape(x, (1, length, 1, channels)), which, (size, 1), (stride, 1), padding)
        return s.reshape(pooled, (1, pooled.shape[1], channels))
    if kind == "add":
        return s.add(x, draw(st.sampled_from(twins)))
    if kind == "split" and channels % 2 == 0:
        a, b = s.split(x, 2, 2)
        return s.concatenate([b, a, b][: draw(st.integers(2, 3))], 2)
    if kind == "crop" and length > 4:
        first, last = draw(st.integers(0, 2)), draw(st.integers(0, 1))
        return frames_from(s, x, first, length - first - last)
    if kind == "pack" and length > 1:
        axis = draw(st.sampled_from([2, 3]))
        packed = stacked(s, [x, x], axis)
        return s.reshape(packed, (1, length, 2 * channels))
    if kind == "norm" and channels > 1:
        return s.add(x, mean_over(s, x, [2], True), kind="SUB")
    if kind == "swap":  # moves no byte
        return s.reshape(s.transpose(s.reshape(x, (1, length, 1, channels)), (0, 1, 3, 2)), (1, length, channels))
    if kind == "softmax" and x.dtype != "int16" and channels > 1:
        return s.softmax(x) if x.dtype == "int8" else s.relu(x)
    return s.unary(x, "LOGISTIC") if x.dtype != "float32" else s.relu(x)


def _draw_tail(draw, s: Sketch, x: Value) -> Value:
    tail = draw(st.sampled_from(["none", "mean", "mean", "sum", "max", "last", "flat", "pool"]))
    _, length, channels = x.shape
    if tail in ("mean", "sum", "max"):
        kind = {"mean": "MEAN", "sum": "SUM", "max": "REDUCE_MAX"}[tail]
        kind = "MEAN" if kind == "REDUCE_MAX" and x.dtype == "int16" else kind
        axes = draw(st.sampled_from([[1], [1], [1, 2], [-2]]))
        return mean_over(s, x, axes, draw(st.booleans()), kind)
    if tail == "last":
        last = frames_from(s, x, length - 1, 1)
        return s.fully_connected(last, 3)
    if tail == "flat":
        return s.fully_connected(x, 3)
    if tail == "pool":
        return s.pool(s.reshape(x, (1, length, 1, channels)), "AVERAGE_POOL_2D", (length, 1), (1, 1))
    return x


def conv1d(s: Sketch, x: Value, filters: int, kernel: int, stride=1, padding="VALID", dilation=1) -> Value:
    """Keras' Conv1D as converted: over the columns of [1, 1, T, C]; SAME if there are fewer frames than its window
    has."""
    _, length, channels = x.shape
    reach = (kernel - 1) * dilation + 1
    if padding == "causal":
        padded = s.value((1, length + reach - 1, channels), x.scale, x.zero_point)
        s.model.op("PAD", [x.index, s.constant([[0, 0], [reach - 1, 0], [0, 0]])], [padded.index])
        x, length, padding = padded, length + reach - 1, "VALID"
    dilation = dilation if stride == 1 else 1
    padding = padding if reach <= length else "SAME"
    image = s.value((1, 1, length, channels), x.scale, x.zero_point)
    s.model.op("EXPAND_DIMS", [x.index, s.constant(1)], [image.index])
    y = s.conv(image, filters, (1, kernel), (1, stride), padding, (1, dilation), "RELU")
    return s.reshape(y, (1, y.shape[2], filters))


def mean_over(s: Sketch, x: Value, axes: list[int], keep_dims: bool, kind: str = "MEAN") -> Value:
    """MEAN or another reduction over any dimensions."""
    gone = {axis % len(x.shape) for axis in axes}
    sizes = [(1 if d in gone else dim) for d, dim in enumerate(x.shape) if keep_dims or d not in gone]
    y = s.value(sizes, x.scale, x.zero_point)
    s.model.op(kind, [x.index, s.constant(axes)], [y.index], keep_dims=keep_dims)
    return y


def frames_from(s: Sketch, x: Value, first: int, count: int) -> Value:
    """STRIDED_SLICE of some frames."""
    begin, end = [0, first, 0], [0, first + count, 0]
    y = s.value((1, count, x.shape[2]), x.scale, x.zero_point)
    numbers = [s.constant(n) for n in (begin, end, [1, 1, 1])]
    s.model.op("STRIDED_SLICE", [x.index, *numbers], [y.index], begin_mask=5, end_mask=5)
    return y


def stacked(s: Sketch, values: list[Value], axis: int) -> Value:
    """PACK of frames."""
    shape = list(values[0].shape)
    y = s.value((*shape[:axis], len(values), *shape[axis:]), values[0].scale, values[0].zero_point)
    s.model.op("PACK", [v.index for v in values], [y.index], values_count=len(values), axis=axis)
    return y


def wake_word(height: int = 20, dtype: str = "int8") -> bytes:
    """A streaming wake word model: separable layers without padding along time, then a dense layer."""
    s = Sketch(26, dtype=dtype)
    x = frames = s.value((1, height, 1, 6), name="frames")
    for kernel in (3, 4):
        x = s.conv(s.depthwise(x, (kernel, 1), padding="VALID"), 8, (1, 1), activation="RELU")
    return s.build([frames], [s.fully_connected(x, 3)])


def padded(height: int = 21) -> bytes:
    """A model like kws: SAME padding along time, stride 2 first, a residual over two layers, an average over all."""
    s = Sketch(39)
    frames = s.value((1, height, 4, 1), name="frames")
    x = s.conv(frames, 6, (5, 3), (2, 2), activation="RELU")
    y = s.depthwise(x, (3, 3), activation="RELU")
    x = s.add(x, s.conv(y, 6, (1, 1)))
    x = s.depthwise(x, (3, 3))
    return s.build([frames], [s.fully_connected(s.pool(x, "AVERAGE_POOL_2D", x.shape[1:3], (1, 1)), 4)])


def gesture(samples: int = 32, causal: bool = False) -> bytes:
    """Keras' Conv1D as its converter writes it: EXPAND_DIMS, a convolution over columns, RESHAPE; then a mean over
    time."""
    s = Sketch(59)
    frames = s.value((1, samples, 3), name="accelerometer")
    x, length = frames, samples
    for kernel, filters in ((5, 6), (3, 8)):
        if causal:
            amounts = s.model.tensor(f"pad{kernel}", (3, 2), "int32",
                                     data=np.array([[0, 0], [kernel - 1, 0], [0, 0]], np.int32))  # fmt: skip
            padded = s.value((1, length + kernel - 1, x.shape[2]), x.scale, x.zero_point)
            s.model.op("PAD", [x.index, amounts], [padded.index])
            x, length = padded, length + kernel - 1
        image = s.value((1, 1, length, x.shape[2]), x.scale, x.zero_point)
        axis = s.model.tensor(f"axis{kernel}", (), "int32", data=np.array(1, np.int32))
        s.model.op("EXPAND_DIMS", [x.index, axis], [image.index])
        y = s.conv(image, filters, (1, kernel), padding="VALID", activation="RELU")
        length -= kernel - 1
        x = s.reshape(y, (1, length, filters))
    mean = s.value((1, x.shape[2]), x.scale, x.zero_point)
    along = s.model.tensor("along", (1,), "int32", data=np.array([1], np.int32))
    s.model.op("MEAN", [x.index, along], [mean.index], keep_dims=False)
    return s.build([frames], [s.fully_connected(mean, 4)])


def dense_first() -> bytes:
    """A model of which nothing can be reused between windows."""
    s = Sketch(2)
    frames = s.value((1, 6, 1, 4), name="frames")
    return s.build([frames], [s.fully_connected(frames, 3)])
