"""Models with state, built in code: {name: bytes of a .tflite}. tests/exact/test_streams.py compares each with TFLM,
frame by frame.

Each is a stream's model: verified frame by frame against TFLM (tests/exact/test_streams.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tflite
from tflite_builder import ModelBuilder


def _integers(rng: np.random.Generator, shape, dtype: str = "int8", limit: int = 127) -> np.ndarray:
    return rng.integers(-limit, limit + 1, shape).astype(dtype)


def product(*scales: float) -> float:
    """Product of scales in float32, as TFLM and converters compute it."""
    result = np.float32(1)
    for scale in scales:
        result *= np.float32(scale)
    return float(result)


# --- SVDF --------------------------------------------------------------------------------------


def add_svdf(model: ModelBuilder, x: int, x_scale: float, sizes: tuple[int, ...], state: str, name: str,
             scale: float = 0.02, zero_point: int = 7, state_zero_point: int = 0) -> int:  # fmt: skip
    """An SVDF after tensor `x`; `sizes`: batches, inputs, units, rank, memory."""
    batches, inputs, units, rank, memory = sizes
    rng = np.random.default_rng(sum(sizes))
    filters = units * rank
    limit, state_scale = (2000, 0.0005) if state == "int16" else (127, 0.02)
    features = model.tensor(f"{name}_features", (filters, inputs), scale=0.01, zero_point=0,
                            data=_integers(rng, (filters, inputs)))  # fmt: skip
    time = model.tensor(f"{name}_time", (filters, memory), state, scale=0.001, zero_point=0,
                        data=_integers(rng, (filters, memory), state, limit))  # fmt: skip
    bias = model.tensor(f"{name}_bias", (units,), "int32", scale=product(state_scale, 0.001), zero_point=0,
                        data=_integers(rng, units, "int32", 3000))  # fmt: skip
    kept = model.tensor(f"{name}_state", (batches, memory * filters), state, scale=state_scale,
                        zero_point=state_zero_point, is_variable=True)  # fmt: skip
    y = model.tensor(f"{name}_out", (batches, units), scale=scale, zero_point=zero_point)
    model.op("SVDF", [x, features, time, bias, kept], [y], rank=rank, fused_activation_function="RELU")
    return y


def svdf(state: str, sizes: tuple[int, ...], scale: float, state_zero_point: int = 0) -> bytes:
    model = ModelBuilder()
    x = model.tensor("x", (sizes[0], sizes[1]), scale=0.1, zero_point=-3)
    y = add_svdf(model, x, 0.1, sizes, state, "svdf", scale, 7, state_zero_point)
    return model.build([x], [y])


def real_svdf(sizes: tuple[int, ...], activation: str) -> bytes:
    """A float32 SVDF; the fourth of `sizes` is its filters' rank."""
    batches, inputs, units, rank, memory = sizes
    rng = np.random.default_rng(sum(sizes))
    model, filters = ModelBuilder(), units * rank
    shapes = {"features": (filters, inputs), "time": (filters, memory), "bias": (units,)}
    x = model.tensor("x", (batches, inputs), "float32")
    weights = [
        model.tensor(name, shape, "float32", data=rng.normal(size=shape).astype(np.float32))
        for name, shape in shapes.items()
    ]
    kept = model.tensor("state", (batches, memory * filters), "float32", is_variable=True)
    y = model.tensor("y", (batches, units), "float32")
    model.op("SVDF", [x, *weights, kept], [y], rank=rank, fused_activation_function=activation)
    return model.build([x], [y])


def keyword_spotter() -> bytes:
    """Features of a frame -> SVDF -> SVDF -> fully connected -> softmax."""
    model = ModelBuilder()
    rng = np.random.default_rng(3)
    x = model.tensor("features", (1, 40), scale=0.1, zero_point=-3)
    a = add_svdf(model, x, 0.1, (1, 40, 16, 2, 10), "int16", "first", 0.05, -128)
    b = add_svdf(model, a, 0.05, (1, 16, 12, 1, 8), "int8", "second", 0.004, -20, 3)
    weights = model.tensor("weights", (4, 12), scale=0.02, zero_point=0, data=_integers(rng, (4, 12)))
    bias = model.tensor("bias", (4,), "int32", scale=product(0.004, 0.02), zero_point=0,
                        data=_integers(rng, 4, "int32", 900))  # fmt: skip
    logits = model.tensor("logits", (1, 4), scale=0.05, zero_point=2)
    model.op("FULLY_CONNECTED", [b, weights, bias], [logits])
    scores = model.tensor("scores", (1, 4), scale=1 / 256, zero_point=-128)
    model.op("SOFTMAX", [logits], [scores], beta=1.0)
    return model.build([x], [scores])


# --- LSTM --------------------------------------------------------------------------------------


def add_lstm(model: ModelBuilder, x: int, shape: tuple[int, int, int], units: int, name: str, *,
             time_major: bool = False, cell_scale: float = 2.0**-11, clip: float = 0.0,
             recurrent: float = 0.02, dtype: str = "int8") -> int:  # fmt: skip
    """An LSTM after tensor `x` with scale 0.05 (int16: 0.05 / 256) and shape [B, T, I] or [T, B, I]. `recurrent`: scale
    of the weights of the hidden state."""
    if dtype == "float32":
        return _add_real_lstm(model, x, shape, units, name, time_major, clip)
    wide = dtype == "int16"
    x_scale, bias_dtype = (0.05 / 256, "int64") if wide else (0.05, "int32")
    shown = {"scale": 2.0**-15 if wide else 1 / 128, "zero_point": 0 if wide else 5}
    rng = np.random.default_rng(units)
    first, second, inputs = shape
    tensors = [x]
    for width, scale in ((inputs, 0.012), (units, recurrent)):
        for gate in ("input", "forget", "cell", "output"):
            tensors.append(model.tensor(f"{name}_{gate}_{scale}", (units, width), scale=scale, zero_point=0,
                                        data=_integers(rng, (units, width))))  # fmt: skip
    tensors += [-1] * 3
    for gate in ("input", "forget", "cell", "output"):
        tensors.append(model.tensor(f"{name}_{gate}_bias", (units,), bias_dtype, scale=product(x_scale, 0.012),
                                    zero_point=0, data=_integers(rng, units, bias_dtype, 4000 << 8 * wide)))  # fmt: skip
    batches = second if time_major else first
    hidden = model.tensor(f"{name}_hidden", (batches, units), dtype, **shown, is_variable=True)
    cell = model.tensor(f"{name}_cell", (batches, units), "int16", scale=cell_scale, zero_point=0, is_variable=True)
    tensors += [-1, -1, hidden, cell] + [-1] * 4
    y = model.tensor(f"{name}_out", (first, second, units), dtype, **shown)
    model.op("UNIDIRECTIONAL_SEQUENCE_LSTM", tensors, [y], fused_activation_function="TANH", cell_clip=clip,
             time_major=time_major)  # fmt: skip
    return y


def _add_real_lstm(
    model: ModelBuilder, x: int, shape: tuple[int, int, int], units: int, name: str, time_major: bool, clip: float
) -> int:
    rng = np.random.default_rng(units)
    first, second, inputs = shape

    def drawn(part: str, of: tuple[int, ...]) -> list[int]:
        values = [rng.normal(0, 0.4, of).astype(np.float32) for _ in range(4)]
        return [model.tensor(f"{name}_{part}{i}", of, "float32", data=data) for i, data in enumerate(values)]

    batches = second if time_major else first
    states = [model.tensor(f"{name}_{s}", (batches, units), "float32", is_variable=True) for s in ("hidden", "cell")]
    y = model.tensor(f"{name}_out", (first, second, units), "float32")
    weights, recurrent, biases = drawn("in", (units, inputs)), drawn("rec", (units, units)), drawn("bias", (units,))
    tensors = [x, *weights, *recurrent, *[-1] * 3, *biases, -1, -1, *states, *[-1] * 4]
    model.op("UNIDIRECTIONAL_SEQUENCE_LSTM", tensors, [y], fused_activation_function="TANH", cell_clip=clip,
             time_major=time_major)  # fmt: skip
    return y


def lstm(shape: tuple[int, int, int], units: int, **how) -> bytes:
    model = ModelBuilder()
    dtype = how.get("dtype", "int8")
    if dtype == "float32":
        x = model.tensor("x", shape, dtype)
        return model.build([x], [add_lstm(model, x, shape, units, "lstm", **how)])
    scale, zero_point = (0.05, -7) if dtype == "int8" else (0.05 / 256, 0)
    x = model.tensor("x", shape, dtype, scale=scale, zero_point=zero_point)
    return model.build([x], [add_lstm(model, x, shape, units, "lstm", **how)])


# --- resource variables ------------------------------------------------------------------------


def add_handle(model: ModelBuilder, name: str) -> int:
    handle = model.tensor(f"{name}_handle", (), "resource")
    model.op("VAR_HANDLE", [], [handle], shared_name=name, container="")
    return handle


def initialization(values: dict[str, tuple[np.ndarray, float, int]]) -> ModelBuilder:
    """A subgraph that initializes variables: name -> (array, scale, zero point)."""
    model = ModelBuilder()
    for name, (data, scale, zero_point) in values.items():
        value = model.tensor(f"{name}_initial", data.shape, str(data.dtype), scale, zero_point, data=data)
        model.op("ASSIGN_VARIABLE", [add_handle(model, name), value], [])
    return model


def accumulator(initialized: bool) -> bytes:
    """sum = sum + x, which is also the output; a second variable holds the sum before."""
    model = ModelBuilder()
    x = model.tensor("x", (1, 6), scale=0.1, zero_point=-3)
    if initialized:
        model.op("CALL_ONCE", [], [], init_subgraph_index=1)
    total, last = add_handle(model, "total"), add_handle(model, "last")
    quant = {"scale": 0.2, "zero_point": 11}
    before, after = model.tensor("before", (1, 6), **quant), model.tensor("after", (1, 6), **quant)
    model.op("READ_VARIABLE", [total], [before])
    model.op("ADD", [x, before], [after])
    model.op("ASSIGN_VARIABLE", [total, after], [])
    older = model.tensor("older", (6, 1), **quant)
    model.op("READ_VARIABLE", [last], [older])
    model.op("ASSIGN_VARIABLE", [last, before], [])
    called = []
    if initialized:
        values = np.arange(-3, 3, dtype=np.int8).reshape(1, 6)
        called = [initialization({"total": (values, 0.2, 11), "last": (values[:, ::-1].copy(), 0.2, 11)})]
    return model.build([x], [after, older], called=called)


# --- streaming convolutions ----------------------------------------------------------------------


class StreamingNet:
    """Streaming layers one after the other; the next one reads tensor `x`."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.model = ModelBuilder()
        self.rng = np.random.default_rng(5)
        self.quant = {"scale": 0.05, "zero_point": -6}
        self.shape = tuple(shape)
        self.input = self.x = self.model.tensor("frame", shape, **self.quant)
        self.initial: dict[str, tuple[np.ndarray, float, int]] = {}

    def _tensor(self, name: str, shape: Sequence[int]) -> int:
        return self.model.tensor(name, shape, **self.quant)

    def window(self, name: str, rows: int, axis: int = 1, idiom: str = "slice behind") -> None:
        """`rows` of time along `axis`; this frame's rows are the last ones."""
        model, new = self.model, self.shape[axis]
        old = rows if idiom == "slice before" else rows - new
        state_shape = tuple(old if d == axis else e for d, e in enumerate(self.shape))
        window_shape = tuple(rows if d == axis else e for d, e in enumerate(self.shape))
        handle = add_handle(model, name)
        before = self._tensor(f"{name}_before", state_shape)
        model.op("READ_VARIABLE", [handle], [before])
        if idiom == "slice before":
            before = self._slice(f"{name}_kept", before, state_shape, axis, new)
        window = self._tensor(f"{name}_window", window_shape)
        model.op("CONCATENATION", [before, self.x], [window], axis=axis - 4 if new == 1 else axis)
        after = window
        if idiom != "slice before":
            after = self._slice(f"{name}_after", window, window_shape, axis, new, idiom == "SLICE behind")
        model.op("ASSIGN_VARIABLE", [handle, after], [])
        self.x, self.shape = window, window_shape

    def initialize(self, name: str, shape: tuple[int, ...]) -> None:
        self.initial[name] = (_integers(self.rng, shape), 0.05, -6)

    def _slice(self, name: str, x: int, shape: Sequence[int], axis: int, start: int, plain: bool = False) -> int:
        """`x` without its first `start` indexes along an axis."""
        begin = [start if d == axis else 0 for d in range(len(shape))]
        size = [e - b for e, b in zip(shape, begin, strict=True)]
        result = self._tensor(name, size)

        def vector(part: str, values: Sequence[int]) -> int:
            data = np.array(values, np.int32)
            return self.model.tensor(f"{name}_{part}", data.shape, "int32", data=data)

        if plain:
            self.model.op("SLICE", [x, vector("begin", begin), vector("size", size)], [result])
        else:
            ends = vector("end", shape)
            steps = vector("steps", [1] * len(shape))
            self.model.op("STRIDED_SLICE", [x, vector("begin", begin), ends, steps], [result])
        return result

    def conv(self, name: str, kernel: tuple[int, int], channels: int, depthwise: bool = False,
             stride: tuple[int, int] = (1, 1), dilation: int = 1) -> None:  # fmt: skip
        _, height, width, inputs = self.shape
        shape = (1, *kernel, inputs) if depthwise else (channels, *kernel, inputs)
        channels = inputs if depthwise else channels
        weights = self.model.tensor(f"{name}_weights", shape, scale=0.01, zero_point=0,
                                    data=_integers(self.rng, shape, limit=60))  # fmt: skip
        bias = self.model.tensor(f"{name}_bias", (channels,), "int32", scale=product(0.05, 0.01), zero_point=0,
                                 data=_integers(self.rng, channels, "int32", 800))  # fmt: skip
        out_h = (height - (kernel[0] - 1) * dilation - 1) // stride[0] + 1
        out_w = (width - kernel[1]) // stride[1] + 1
        result = self._tensor(name, (1, out_h, out_w, channels))
        options = {
            "padding": "VALID", "stride_h": stride[0], "stride_w": stride[1],
            "dilation_h_factor": dilation, "dilation_w_factor": 1, "fused_activation_function": "RELU",
        }  # fmt: skip
        if depthwise:
            options["depth_multiplier"] = 1
        self.model.op("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", [self.x, weights, bias], [result], **options)
        self.x, self.shape = result, (1, out_h, out_w, channels)

    def pad_columns(self, name: str, left: int, right: int) -> None:
        batch, height, width, channels = self.shape
        amounts = np.array([[0, 0], [0, 0], [left, right], [0, 0]], np.int32)
        constant = self.model.tensor(f"{name}_amounts", (4, 2), "int32", data=amounts)
        self.shape = (batch, height, left + width + right, channels)
        result = self._tensor(name, self.shape)
        self.model.op("PAD", [self.x, constant], [result])
        self.x = result

    def reshape(self, name: str, shape: tuple[int, ...]) -> None:
        result = self._tensor(name, shape)
        self.model.op("RESHAPE", [self.x], [result])
        self.x, self.shape = result, shape

    def build(self) -> bytes:
        called = [initialization(self.initial)] if self.initial else []
        return self.model.build([self.input], [self.x], called=called)


def streaming_convolutions() -> bytes:
    """Three streaming layers: a convolution, a depthwise with initial values, a strided one."""
    net = StreamingNet((1, 1, 10, 4))
    net.model.op("CALL_ONCE", [], [], init_subgraph_index=1)
    net.initialize("second", (1, 4, 8, 8))
    net.window("first", 3)
    net.conv("conv", (3, 3), 8)
    net.window("second", 5, idiom="SLICE behind")
    net.conv("depthwise", (3, 3), 8, depthwise=True, dilation=2)
    net.window("third", 2, idiom="slice before")
    net.conv("last", (2, 6), 6, stride=(2, 1))
    return net.build()


def padded_columns() -> bytes:
    """A streaming layer with padding over the frequencies, after the rewrites."""
    net = StreamingNet((1, 1, 6, 8))
    net.window("window", 5)
    net.pad_columns("pad", 1, 2)
    net.conv("depthwise", (5, 3), 8, depthwise=True, stride=(1, 2))
    net.conv("pointwise", (1, 1), 5)
    return net.build()


def several_rows_a_frame() -> bytes:
    net = StreamingNet((1, 3, 5, 4))
    net.window("rows", 8)
    net.conv("conv", (3, 3), 5)
    return net.build()


def time_in_columns() -> bytes:
    """Convolutions over one row, as 1D convolutions are converted."""
    net = StreamingNet((1, 1, 1, 6))
    net.window("first", 7, axis=2)
    net.conv("conv", (1, 3), 8)
    net.window("second", 9, axis=2, idiom="SLICE behind")
    net.conv("depthwise", (1, 9), 8, depthwise=True)
    return net.build()


def window_without_a_ring() -> bytes:
    """A fully connected layer that needs the window's rows in order, so the ring is copied."""
    net = StreamingNet((1, 1, 2, 3))
    net.window("window", 4)
    weights = net.model.tensor("weights", (5, 24), scale=0.01, zero_point=0, data=_integers(net.rng, (5, 24)))
    bias = net.model.tensor("bias", (5,), "int32", scale=product(0.05, 0.01), zero_point=0,
                            data=_integers(net.rng, 5, "int32", 800))  # fmt: skip
    net.reshape("flat", (1, 24))
    scores = net.model.tensor("scores", (1, 5), scale=0.2, zero_point=3)
    net.model.op("FULLY_CONNECTED", [net.x, weights, bias], [scores])
    net.x = scores
    return net.build()


def every_kind_of_state() -> bytes:
    """A ring, SVDFs of both state dtypes, an LSTM, and a variable with initial values."""
    net = StreamingNet((1, 1, 4, 4))
    net.model.op("CALL_ONCE", [], [], init_subgraph_index=1)
    net.initialize("delayed", (1, 4))
    net.window("window", 3)
    net.conv("conv", (3, 3), 5)
    net.reshape("flat", (1, 10))
    first = add_svdf(net.model, net.x, 0.05, (1, 10, 6, 2, 4), "int16", "first", 0.05, -6)
    second = add_svdf(net.model, first, 0.05, (1, 6, 4, 1, 3), "int8", "second", 0.05, -6)
    handle = add_handle(net.model, "delayed")
    net.x = net.model.tensor("of_the_last_run", (1, 4), **net.quant)
    net.model.op("READ_VARIABLE", [handle], [net.x])
    net.model.op("ASSIGN_VARIABLE", [handle, second], [])
    net.reshape("sequence", (1, 1, 4))
    net.x = add_lstm(net.model, net.x, net.shape, 3, "lstm")
    return net.build()


STREAM_MODELS = {
    "every kind of state": every_kind_of_state(),
    "svdf of int16": svdf("int16", (1, 8, 4, 2, 6), 0.02),
    "svdf of int8": svdf("int8", (1, 9, 3, 1, 5), 0.001),
    "svdf whose state wraps": svdf("int8", (1, 8, 4, 2, 3), 0.001, 40),
    "svdf of two batches": svdf("int16", (2, 5, 3, 3, 4), 0.02),
    "svdf of float32": real_svdf((1, 8, 4, 2, 6), "NONE"),
    "svdf of float32, two batches": real_svdf((2, 5, 3, 3, 4), "RELU"),
    "svdf of float32, tanh": real_svdf((1, 6, 5, 2, 3), "TANH"),
    "svdf of float32, sign": real_svdf((1, 5, 6, 1, 4), "SIGN_BIT"),
    "svdf of float32 without memory": real_svdf((1, 4, 2, 1, 1), "RELU6"),
    "svdf without memory": svdf("int16", (1, 4, 2, 1, 1), 0.02),
    # longer than vectors and words, and no multiples of them
    "svdf of int16, odd sizes": svdf("int16", (1, 37, 3, 2, 19), 0.02),
    "svdf of int8, odd sizes": svdf("int8", (2, 21, 7, 1, 23), 0.001, -50),
    "keyword spotter": keyword_spotter(),
    "lstm of one step": lstm((1, 1, 8), 6),
    "lstm of steps and batches": lstm((2, 3, 5), 7),
    "lstm by time": lstm((3, 2, 4), 9, time_major=True),
    "lstm of odd sizes": lstm((1, 2, 37), 21),
    "lstm of int16": lstm((2, 3, 6), 5, dtype="int16"),
    "lstm of int16 by time, clipped": lstm((3, 2, 4), 7, time_major=True, clip=1.5, dtype="int16"),
    "lstm of int16 with a coarse cell": lstm((1, 2, 300), 4, cell_scale=2.0**-14, dtype="int16"),
    "lstm of float32": lstm((2, 5, 7), 6, dtype="float32"),
    "lstm of float32 by time, clipped": lstm((4, 2, 3), 5, time_major=True, clip=0.3, dtype="float32"),
    "lstm with a clipped cell": lstm((1, 4, 3), 5, cell_scale=2.0**-10, clip=1.5),
    "lstm with a coarse cell": lstm((1, 2, 6), 4, cell_scale=2.0**-14),
    "accumulator from zero points": accumulator(False),
    "accumulator from values": accumulator(True),
    "streaming convolutions": streaming_convolutions(),
    "padded columns": padded_columns(),
    "several rows a frame": several_rows_a_frame(),
    "time in columns": time_in_columns(),
    "window without a ring": window_without_a_ring(),
}

#: operators that are tested here alone: kinds that keep state
STATE_KINDS = ("SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE")


def of_kinds() -> dict[str, list[str]]:
    """Kind of operator -> models that have it, in any subgraph."""
    found: dict[str, list[str]] = {kind: [] for kind in STATE_KINDS}
    for name, data in STREAM_MODELS.items():
        model = tflite.Model.GetRootAs(data, 0)
        numbers = {model.OperatorCodes(i).BuiltinCode() for i in range(model.OperatorCodesLength())}
        for kind in STATE_KINDS:
            if getattr(tflite.BuiltinOperator, kind) in numbers:
                found[kind].append(name)
    return found
