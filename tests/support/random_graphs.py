"""Random small networks as .tflite bytes: chains, branches, residuals, odd sizes, every padding.

`Sketch` adds layers to a ModelBuilder and keeps track of shapes and quantization; `networks` is the
hypothesis strategy that draws what to add. Weights come from a seeded generator, so that hypothesis
shrinks the structure, not a million numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from tflite_builder import ModelBuilder


@dataclass(frozen=True)
class Value:
    """An activation of the sketch: tensor index, shape and quantization. For other dtypes than int8, `scale` is still a
    128th of the range."""

    index: int
    shape: tuple[int, ...]
    scale: float
    zero_point: int
    dtype: str = "int8"

    @property
    def stored_scale(self) -> np.float32:
        """Real value of one stored unit; 1 for floats."""
        return np.float32({"int8": self.scale, "int16": self.scale / 256, "float32": 1.0}[self.dtype])


class Sketch:
    """Layers with random weights; every method takes and returns Values."""

    def __init__(self, seed: int, dead: float = 0.0, dtype: str = "int8", far: bool = False):
        """`dead`: the share of filters that are switched off, by zero weights or by their bias; `dtype`: that of the
        next values, int8, int16 or float32. It may be changed: `converted` brings values along. `far`: whether a channel
        of some depthwise layers has a multiplier far above the others', or beyond 1."""
        self.dtype = dtype
        self.rng = np.random.default_rng(seed)
        self.dead = dead
        self.model = ModelBuilder()
        self.names = 0
        #: scale and zero point of what the next layers give; None: each has its own
        self.results: tuple[float, int] | None = None
        self.far = far

    def value(self, shape, scale: float | None = None, zero_point: int | None = None, name: str = "") -> Value:
        if scale is None:
            scale = float(np.float32(self.rng.uniform(0.02, 0.2)))
        if zero_point is None:
            zero_point = int(self.rng.choice([-128, int(self.rng.integers(-128, 128))]))
        self.names += 1
        zero_point = zero_point if self.dtype == "int8" else 0
        value = Value(len(self.model._tensors), tuple(shape), scale, zero_point, self.dtype)
        quantization = {"scale": value.stored_scale, "zero_point": zero_point} if self.dtype != "float32" else {}
        self.model.tensor(name or f"v{self.names}", shape, self.dtype, **quantization)
        return value

    def converted(self, x: Value) -> Value:
        """Converts a value to the sketch's dtype."""
        if x.dtype == self.dtype:
            return x
        y = self.value(x.shape, x.scale)
        self.model.op("DEQUANTIZE" if self.dtype == "float32" else "QUANTIZE", [x.index], [y.index])
        return y

    def _layer(self, kind: str, x: Value, weights_shape, axis: int, out_shape, **options) -> Value:
        channels = weights_shape[axis]
        per_channel = kind != "FULLY_CONNECTED" and self.rng.random() < 0.7
        scales = self.rng.uniform(0.002, 0.02, channels if per_channel else 1).astype(np.float32)
        weights = self.rng.integers(-127, 128, weights_shape).astype(np.int8)
        spread = 60 * 60 * np.sqrt(weights.size / channels)
        bias = self.rng.integers(-int(spread), int(spread) + 1, channels).astype(np.int32)
        weights, bias = self._switch_off(weights, bias, axis)
        median = float(np.median(scales))
        reach = x.scale * median * spread
        drawn = weights.reshape(-1)  # decides, so that nothing more is drawn
        if self.far and kind == "DEPTHWISE_CONV_2D" and x.dtype == "int8" and per_channel and drawn[0] % 3 == 0:
            scales[:1] = median * spread / 128 * 0.4 * 10.0 ** (drawn[-1] / 127)
        own = float(np.float32(reach * self.rng.uniform(0.5, 3) / 128)), None
        y = self.value(out_shape, *(self.results or own))
        w, b = self._weights(x, weights, scales, axis, bias)
        self.model.op(kind, [x.index, w, b], [y.index], **options)
        return y

    def _weights(self, x: Value, weights: np.ndarray, scales: np.ndarray, axis: int, bias: np.ndarray):
        """Tensors of a layer's weights and bias; the arguments are those for int8 data."""
        self.names += 1
        names = f"w{self.names}", f"b{self.names}"
        bias_scales = scales * np.float32(x.scale)
        if x.dtype == "float32":
            along = [-1 if d == axis else 1 for d in range(weights.ndim)]
            real = weights.astype(np.float32) * (scales.reshape(along) if scales.size > 1 else scales[0])
            real_bias = (bias * bias_scales).astype(np.float32)
            return (
                self.model.tensor(names[0], weights.shape, "float32", data=real),
                self.model.tensor(names[1], bias.shape, "float32", data=real_bias),
            )
        zeros, dtype = np.zeros(scales.size), "int32"
        if x.dtype == "int16":
            bias, bias_scales, dtype = bias.astype(np.int64) * 256, scales * x.stored_scale, "int64"
        return (
            self.model.tensor(names[0], weights.shape, "int8", scales, zeros, axis, weights),
            self.model.tensor(names[1], bias.shape, dtype, bias_scales, zeros, 0, bias),
        )

    def _switch_off(self, weights: np.ndarray, bias: np.ndarray, axis: int):
        """Switches filters off: zero weights (the bias decides), or a bias that saturates the clamp; some inputs are
        unread."""
        filters = np.moveaxis(weights, axis, 0)
        for channel in range(filters.shape[0]):
            if self.rng.random() < self.dead:
                if self.rng.random() < 0.5:
                    filters[channel] = 0
                else:
                    bias[channel] = self.rng.choice([-(2**30), 2**30, -(2**22), 2**22])
        if axis == 0:
            weights[..., self.rng.random(weights.shape[-1]) < self.dead / 4] = 0
        return weights, bias

    def conv(self, x: Value, filters: int, kernel, stride=(1, 1), padding="SAME", dilation=(1, 1), activation="NONE"):
        rows, columns = _dims(x.shape, kernel, stride, padding, dilation)
        return self._layer(
            "CONV_2D", x, (filters, *kernel, x.shape[3]), 0, (x.shape[0], rows, columns, filters),
            **_options(stride, padding, dilation, activation),
        )  # fmt: skip

    def depthwise(
        self, x: Value, kernel, stride=(1, 1), padding="SAME", dilation=(1, 1), activation="NONE", multiplier=1
    ):
        rows, columns = _dims(x.shape, kernel, stride, padding, dilation)
        channels = x.shape[3] * multiplier
        return self._layer(
            "DEPTHWISE_CONV_2D", x, (1, *kernel, channels), 3, (x.shape[0], rows, columns, channels),
            depth_multiplier=multiplier, **_options(stride, padding, dilation, activation),
        )  # fmt: skip

    def fully_connected(self, x: Value, units: int, activation="NONE") -> Value:
        depth = int(np.prod(x.shape[1:]))
        if len(x.shape) != 2:
            x = self.reshape(x, (x.shape[0], depth))
        return self._layer(
            "FULLY_CONNECTED", x, (units, depth), 0, (x.shape[0], units), fused_activation_function=activation
        )

    def reshape(self, x: Value, shape) -> Value:
        y = self.value(shape, x.scale, x.zero_point)
        self.names += 1
        new_shape = self.model.tensor(f"s{self.names}", (len(shape),), "int32", data=np.array(shape, np.int32))
        self.model.op("RESHAPE", [x.index, new_shape], [y.index], new_shape=tuple(shape))
        return y

    def relu(self, x: Value, kind="RELU", same: bool = True) -> Value:
        y = self.value(x.shape, x.scale, x.zero_point) if same else self.value(x.shape)
        self.model.op(kind, [x.index], [y.index], table=False)
        return y

    def unary(self, x: Value, kind: str) -> Value:
        scale, zero_point = _RESULTS.get(kind, (None, None))
        if kind == "LOGISTIC" and x.dtype == "int16":
            scale = 1 / 128
        if kind == "HARD_SWISH" and x.dtype != "float32":  # TFLM refuses scales that are too far apart
            scale = float(np.float32(x.scale * 2.0 ** self.rng.uniform(-6, 8)))
        y = self.value(x.shape, scale, zero_point)
        options = {"alpha": 0.2} if kind == "LEAKY_RELU" else {}
        self.model.op(kind, [x.index], [y.index], table=bool(options), **options)
        return y

    def add(self, x: Value, other: Value, activation="NONE", kind="ADD") -> Value:
        """Applies ADD or another kind of two inputs; `other` may be broadcast."""
        y = self.value(x.shape)
        options = {"fused_activation_function": activation} if kind in _ACTIVATED else {}
        self.model.op(kind, [x.index, other.index], [y.index], table=bool(options), **options)
        return y

    def scale_channels(self, x: Value, kind: str) -> Value:
        """Applies MUL, ADD or another kind with one constant for each channel, as a batch normalization leaves them."""
        return self.with_constant(x, kind, (x.shape[-1],))

    def with_constant(self, x: Value, kind: str, shape=()) -> Value:
        """Applies an operator whose second input is a random constant of this shape."""
        self.names += 1
        data = self.rng.integers(-127, 128, shape or (1,)).astype(np.int8).reshape(shape)
        zero_point = 3 if x.dtype == "int8" else 0
        like = Value(len(self.model._tensors), data.shape, 0.03, zero_point, x.dtype)
        if x.dtype == "float32":
            self.model.tensor(
                f"k{self.names}", data.shape, "float32", data=np.asarray(data * np.float32(0.03), np.float32)
            )
        else:
            stored = data if x.dtype == "int8" else np.asarray(data.astype(np.int16) * 256, np.int16)
            quantization = {"scale": like.stored_scale, "zero_point": zero_point}
            self.model.tensor(f"k{self.names}", data.shape, x.dtype, **quantization, data=stored)
        return self.add(x, like, kind=kind)

    def gate(self, x: Value) -> Value:
        """Squeeze and excitation: scales each channel of x by a factor computed from all of x."""
        squeezed = self.pool(x, "AVERAGE_POOL_2D", x.shape[1:3], (1, 1))
        factor = self.unary(self.conv(squeezed, x.shape[3], (1, 1)), "LOGISTIC")
        return self.add(x, factor, kind="MUL")

    def pad(self, x: Value, top: int, bottom: int, left: int, right: int) -> Value:
        _, h, w, c = x.shape
        amounts = np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
        self.names += 1
        constant = self.model.tensor(f"p{self.names}", (4, 2), "int32", data=amounts)
        y = self.value((x.shape[0], h + top + bottom, w + left + right, c), x.scale, x.zero_point)
        self.model.op("PAD", [x.index, constant], [y.index])
        return y

    def pool(self, x: Value, kind: str, size, stride, padding="VALID") -> Value:
        rows, columns = _dims(x.shape, size, stride, padding, (1, 1))
        y = self.value((x.shape[0], rows, columns, x.shape[3]), x.scale, x.zero_point)
        self.model.op(
            kind, [x.index], [y.index], padding=padding, filter_height=size[0], filter_width=size[1],
            stride_h=stride[0], stride_w=stride[1],
        )  # fmt: skip
        return y

    def concatenate(self, values: list[Value], axis: int) -> Value:
        """Concatenates values with the first one's quantization, which the kernel requires."""
        shape = list(values[0].shape)
        shape[axis] = sum(value.shape[axis] for value in values)
        y = self.value(shape, values[0].scale, values[0].zero_point)
        self.model.op(
            "CONCATENATION", [v.index for v in values], [y.index], axis=axis, fused_activation_function="NONE"
        )
        return y

    def requantize_to(self, x: Value, like: Value) -> Value:
        y = self.value(x.shape, like.scale, like.zero_point)
        self.model.op("QUANTIZE", [x.index], [y.index])
        return y

    def requantize(self, x: Value) -> Value:
        y = self.value(x.shape)
        self.model.op("QUANTIZE", [x.index], [y.index])
        return y

    def mean(self, x: Value, keep_dims: bool = False) -> Value:
        """Applies a mean over rows and columns."""
        n, _, _, c = x.shape
        y = self.value((n, 1, 1, c) if keep_dims else (n, c))
        self.model.op("MEAN", [x.index, self.constant([1, 2])], [y.index], keep_dims=keep_dims)
        return y

    def softmax(self, x: Value) -> Value:
        y = self.value(x.shape, 1 / 128 if x.dtype == "int16" else 1 / 256, -128)
        self.model.op("SOFTMAX", [x.index], [y.index], beta=1.0)
        return y

    # --- what only moves: the first input's quantization ----------------------------------------

    def moved(self, kind: str, x: Value, shape, *numbers, **options) -> Value:
        """Applies an operator whose other inputs are constant int32 numbers."""
        y = self.value(shape, x.scale, x.zero_point)
        constants = [self.constant(n) for n in numbers]
        self.model.op(kind, [x.index, *constants], [y.index], **options)
        return y

    def constant(self, numbers) -> int:
        data = np.array(numbers, np.int32)
        self.names += 1
        return self.model.tensor(f"n{self.names}", data.shape, "int32", data=data)

    def transpose(self, x: Value, order) -> Value:
        return self.moved("TRANSPOSE", x, [x.shape[d] for d in order], order)

    def mirror_pad(self, x: Value, top: int, bottom: int, left: int, right: int, mode="REFLECT") -> Value:
        n, h, w, c = x.shape
        amounts = [[0, 0], [top, bottom], [left, right], [0, 0]]
        return self.moved("MIRROR_PAD", x, (n, h + top + bottom, w + left + right, c), amounts, mode=mode)

    def resize(self, x: Value, size, kind="RESIZE_BILINEAR", **options) -> Value:
        return self.moved(kind, x, (x.shape[0], *size, x.shape[3]), size, **options)

    def slice(self, x: Value, begin, size) -> Value:
        return self.moved("SLICE", x, size, begin, size)

    def split(self, x: Value, axis: int, parts: int) -> list[Value]:
        shape = list(x.shape)
        shape[axis] //= parts
        outputs = [self.value(shape, x.scale, x.zero_point) for _ in range(parts)]
        self.model.op("SPLIT", [self.constant(axis), x.index], [y.index for y in outputs], num_splits=parts)
        return outputs

    def depth_to_space(self, x: Value, block: int) -> Value:
        n, h, w, c = x.shape
        return self.moved("DEPTH_TO_SPACE", x, (n, h * block, w * block, c // block**2), block_size=block)

    def space_to_depth(self, x: Value, block: int) -> Value:
        n, h, w, c = x.shape
        return self.moved("SPACE_TO_DEPTH", x, (n, h // block, w // block, c * block**2), block_size=block)

    # --- products -------------------------------------------------------------------------------

    def transpose_conv(self, x: Value, filters: int, kernel, stride=(2, 2), activation="NONE") -> Value:
        """Applies a transposed convolution, padded so that the image grows by the stride."""
        n, h, w, c = x.shape
        shape = (n, h * stride[0], w * stride[1], filters)
        weights = self.rng.integers(-127, 128, (filters, *kernel, c)).astype(np.int8)
        scales = self.rng.uniform(0.002, 0.02, filters).astype(np.float32)
        bias = self.rng.integers(-5000, 5001, filters).astype(np.int32)
        w, b = self._weights(x, weights, scales, 0, bias)
        y = self.value(shape, float(np.float32(x.scale * 0.01 * 3000 * np.sqrt(c * weights[0, ..., 0].size) / 128)))
        self.model.op(
            "TRANSPOSE_CONV", [self.constant(shape), w, x.index, b], [y.index], padding="SAME",
            stride_h=stride[0], stride_w=stride[1], fused_activation_function=activation,
        )  # fmt: skip
        return y

    def matmul(self, x: Value, other: Value, adj_y: bool = False) -> Value:
        columns = other.shape[-2 if adj_y else -1]
        spread = 5000 * np.sqrt(x.shape[-1])
        y = self.value((*x.shape[:-1], columns), float(np.float32(x.scale * other.scale * spread / 128)))
        self.model.op("BATCH_MATMUL", [x.index, other.index], [y.index], adj_x=False, adj_y=adj_y)
        return y

    def dense(self, x: Value, units: int, activation="NONE") -> Value:
        """Applies a fully connected layer to the last dimension, keeping the others."""
        return self._layer(
            "FULLY_CONNECTED", x, (units, x.shape[-1]), 0, (*x.shape[:-1], units),
            fused_activation_function=activation, keep_num_dims=True,
        )  # fmt: skip

    def build(self, inputs: list[Value], outputs: list[Value]) -> bytes:
        return self.model.build([v.index for v in inputs], [v.index for v in outputs])


#: what has a fused activation
_ACTIVATED = ("ADD", "SUB", "MUL")
#: functions of one value; what the outputs of some must have
UNARY = ("LOGISTIC", "TANH", "LEAKY_RELU", "HARD_SWISH", "ELU", "ABS")
_RESULTS = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
#: functions of two values
BINARY = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "PRELU")


def of_two(kind: str, x: Value, other: Value) -> str:
    """The operator kind, or another one if squares of such large scales would overflow, which a rule refuses."""
    return "MAXIMUM" if kind == "SQUARED_DIFFERENCE" and max(x.scale, other.scale) > 1 else kind


def _dims(shape, kernel, stride, padding, dilation) -> tuple[int, int]:
    result = []
    for dim, k, s, d in zip(shape[1:3], kernel, stride, dilation, strict=True):
        span = (k - 1) * d + 1
        result.append(-(-dim // s) if padding == "SAME" else (dim - span) // s + 1)
    return result[0], result[1]


def _options(stride, padding, dilation, activation) -> dict:
    return {
        "padding": padding, "stride_h": stride[0], "stride_w": stride[1],
        "dilation_h_factor": dilation[0], "dilation_w_factor": dilation[1],
        "fused_activation_function": activation,
    }  # fmt: skip


ACTIVATIONS = st.sampled_from(["NONE", "NONE", "RELU", "RELU6"])


@st.composite
def networks(draw, most_layers: int = 8) -> bytes:
    """A .tflite of up to `most_layers` layers and a tail, with one or two inputs and outputs."""
    sketch = Sketch(draw(st.integers(0, 2**20)), draw(st.sampled_from([0.0, 0.0, 0.3, 0.8])), far=True)
    channels = draw(st.integers(1, 20) | st.sampled_from([31, 64, 70]))
    batch = draw(st.sampled_from([1, 1, 1, 1, 1, 2]))
    start = sketch.value((batch, draw(st.integers(1, 12)), draw(st.integers(1, 10)), channels))
    x, older, inputs = start, [], [start]
    if draw(st.integers(0, 3)) == 3:
        inputs.append(sketch.value(start.shape))
        x = sketch.add(start, inputs[1], draw(ACTIVATIONS))
    for _ in range(draw(st.integers(1, most_layers))):
        older.append(x)
        x = draw_layer(draw, sketch, x, older)
    outputs = [x]
    tail = draw(st.sampled_from(["none", "fc", "pool", "softmax", "mean"]))
    if tail == "pool":
        outputs = [sketch.pool(x, "AVERAGE_POOL_2D", x.shape[1:3], (1, 1))]
    elif tail == "mean":
        outputs = [sketch.mean(x)]
    elif tail != "none":
        outputs = [sketch.fully_connected(x, draw(st.integers(1, 12)), draw(ACTIVATIONS))]
        if tail == "softmax":
            outputs = [sketch.softmax(outputs[0])]
    if older and draw(st.booleans()):
        outputs.append(draw(st.sampled_from(older)))  # an inner tensor that the caller wants too
    return sketch.build(inputs, list(dict.fromkeys(outputs)))


def draw_layer(draw, sketch: Sketch, x: Value, older: list[Value]) -> Value:
    kinds = ["conv", "depthwise", "pointwise", "separable", "relu", "norm", "pool", "pad", "unary", "swish", "gate",
             "concat", "requantize", "grow", "mirror", "crop", "blocks", "transpose"]  # fmt: skip
    twins = [v for v in older[:-1] if v.shape == x.shape]
    kind = draw(st.sampled_from(kinds + ["residual"] * 3 if twins else kinds))
    kernel = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    stride = (draw(st.integers(1, 3)), draw(st.integers(1, 2)))
    dilation = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 2)]))
    padding = "SAME"
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    if span[0] <= x.shape[1] and span[1] <= x.shape[2]:
        padding = draw(st.sampled_from(["SAME", "VALID"]))
    activation = draw(ACTIVATIONS)
    filters = draw(st.integers(1, 20))
    if kind == "conv":
        return sketch.conv(x, filters, kernel, stride, padding, dilation, activation)
    if kind == "depthwise":
        multiplier = draw(st.sampled_from([1, 1, 1, 2]))
        return sketch.depthwise(x, kernel, stride, padding, dilation, activation, multiplier)
    if kind == "grow":
        return _draw_larger(draw, sketch, x, filters)
    if kind in ("mirror", "crop", "blocks", "transpose"):
        return _draw_moved(draw, sketch, x, kind)
    if kind == "pointwise":
        return sketch.conv(x, filters, (1, 1), activation=activation)
    if kind == "separable":
        middle = sketch.depthwise(x, kernel, stride, padding, dilation, activation)
        return sketch.conv(middle, filters, (1, 1), activation=draw(ACTIVATIONS))
    if kind == "relu":
        return sketch.relu(x, draw(st.sampled_from(["RELU", "RELU6"])), draw(st.booleans()))
    if kind == "norm":
        first = draw(st.sampled_from(("MUL", "MUL", *BINARY)))
        return sketch.scale_channels(sketch.scale_channels(x, first), "ADD")
    if kind == "residual":
        joined, other = draw(st.sampled_from(("ADD", "ADD", *BINARY))), draw(st.sampled_from(twins))
        return sketch.add(x, other, activation, of_two(joined, x, other))
    if kind == "unary":
        return sketch.unary(x, draw(st.sampled_from(UNARY)))
    if kind == "swish":
        return sketch.add(x, sketch.unary(x, "LOGISTIC"), kind="MUL")
    if kind == "gate":
        return sketch.gate(x)
    if kind == "concat":
        return sketch.concatenate([x, sketch.relu(x)], draw(st.sampled_from([3, 3, 1, 2])))
    if kind == "requantize":
        return sketch.requantize(x)
    if kind == "pad":
        return sketch.pad(x, *(draw(st.integers(0, 2)) for _ in range(4)))
    size = (min(kernel[0], x.shape[1]), min(kernel[1], x.shape[2]))
    which = draw(st.sampled_from(["AVERAGE_POOL_2D", "MAX_POOL_2D"]))
    return sketch.pool(x, which, size, stride, draw(st.sampled_from(["SAME", "VALID"])))


def _draw_larger(draw, sketch: Sketch, x: Value, filters: int) -> Value:
    """Resizes the image to more or fewer rows and columns."""
    _, height, width, _ = x.shape  # TRANSPOSE_CONV takes one image
    if x.shape[0] == 1 and draw(st.booleans()) and height * width <= 64:
        kernel = (draw(st.integers(1, 4)), draw(st.integers(1, 3)))
        stride = (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
        return sketch.transpose_conv(x, filters, kernel, stride, draw(ACTIVATIONS))
    size = (draw(st.integers(1, 12)), draw(st.integers(1, 10)))
    kind = draw(st.sampled_from(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"]))
    corners, centers = draw(st.sampled_from([(False, False), (True, False), (False, True)]))
    return sketch.resize(x, size, kind, align_corners=corners, half_pixel_centers=centers)


def _draw_moved(draw, sketch: Sketch, x: Value, kind: str) -> Value:
    _, height, width, channels = x.shape
    if kind == "mirror":
        most = [min(2, dim - 1) for dim in (height, height, width, width)]
        return sketch.mirror_pad(x, *(draw(st.integers(0, m)) for m in most))
    if kind == "crop":
        begin = [0, draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1)), 0]
        size = [x.shape[0], draw(st.integers(1, height - begin[1])), draw(st.integers(1, width - begin[2])), channels]
        return sketch.slice(x, begin, size)
    if kind == "blocks" and height % 2 == width % 2 == 0:
        return sketch.space_to_depth(x, 2)
    if kind == "blocks" and channels % 4 == 0:
        return sketch.depth_to_space(x, 2)
    return sketch.transpose(x, (0, 2, 1, 3))
