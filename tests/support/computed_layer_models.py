"""Models of one layer whose weights, bias or both are computed at run time."""

from __future__ import annotations

import numpy as np
from tflite_builder import ModelBuilder

#: of data, weights, result
SCALES = {"int8": (0.07, 0.02, 0.05), "int16": (2e-4, 0.02, 3e-4), "float32": (None, None, None)}
BIAS = {"int8": "int32", "int16": "int64", "float32": "float32"}

CONV = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}


class Layer:
    """A layer with inputs `x`, `w` and `b`; those in `computed` are outputs of operators."""

    def __init__(self, dtype: str, computed: str = "w", per_channel: bool = False):
        self.model, self.dtype, self.computed, self.per_channel = ModelBuilder(), dtype, computed, per_channel
        self.rng, self.inputs = np.random.default_rng(3), []

    def operand(
        self, letter: str, shape: tuple[int, ...], dtype: str, scale, zero_point: int = 0, axis: int = 0
    ) -> int:
        """The tensor for a letter: a MINIMUM of a model input with itself, or a constant."""
        quant = (None, None) if dtype == "float32" else (scale, zero_point)
        axis_more = {"axis": axis} if np.ndim(scale) else {}
        if letter not in self.computed:
            low, high = (-8, 9) if dtype == "float32" else (-100, 100)
            data = self.rng.integers(low, high, shape).astype(dtype)
            return self.model.tensor(letter, shape, dtype, *quant, **axis_more, data=data)
        given = self.model.tensor(f"{letter} in", shape, dtype, *quant, **axis_more)
        made = self.model.tensor(letter, shape, dtype, *quant, **axis_more)
        self.inputs.append(given)
        kind = "RESHAPE" if dtype == "int16" or letter == "b" else "MINIMUM"
        self.model.op(kind, [given, given] if kind == "MINIMUM" else [given], [made])
        return made

    def build(self, kind: str, data, weights, result, channels: int, axis: int = 0, bias: str | None = None, **options):
        """Builds the model from shapes of data, weights and result; `axis`: channel dimension of the weights."""
        x_scale, w_scale, y_scale = SCALES[self.dtype]
        zero = 0 if self.dtype == "int16" else 5
        x = self.operand("x", data, self.dtype, x_scale, zero)
        of_weights = w_scale if not self.per_channel else [w_scale * (1 + i % 3) for i in range(channels)]
        zeros = 0 if not self.per_channel else [0] * channels
        w = self.operand("w", weights, "float32" if self.dtype == "float32" else "int8", of_weights, zeros, axis)
        inputs = [x, w]
        if kind == "TRANSPOSE_CONV":
            shape = self.model.tensor("shape", (4,), "int32", data=np.array(result, np.int32))
            inputs = [shape, w, x]
        if bias is not None:
            b_scale = None if x_scale is None else x_scale * w_scale
            inputs.append(self.operand("b", (channels,), bias, b_scale))
        y = self.model.tensor("y", result, self.dtype, y_scale, None if y_scale is None else zero - 16 * bool(zero))
        self.model.op(kind, inputs, [y], **options)
        return self.model.build(self.inputs, [y])


def conv(dtype="int8", computed="xw", batch=1, groups=1, bias=None, per_channel=False, **options) -> bytes:
    more = CONV | options
    same = more["padding"] == "SAME"
    strides, dilation = (more["stride_h"], more["stride_w"]), more["dilation_h_factor"]
    height, width = (
        -(-size // stride) if same else (size - 2 * dilation - 1) // stride + 1
        for size, stride in zip((9, 8), strides, strict=True)
    )
    return Layer(dtype, computed, per_channel).build(
        "CONV_2D", (batch, 9, 8, 4), (6, 3, 3, 4 // groups), (batch, height, width, 6), 6, bias=bias, **more
    )


def depthwise(dtype="int8", computed="xw", batch=1, multiplier=1, bias=None, per_channel=False, **options) -> bytes:
    more = CONV | {"depth_multiplier": multiplier} | options
    height, width = (9, 8) if more["padding"] == "SAME" else (7, 6)
    channels = 4 * multiplier
    return Layer(dtype, computed, per_channel).build(
        "DEPTHWISE_CONV_2D", (batch, 9, 8, 4), (1, 3, 3, channels), (batch, height, width, channels), channels, 3,
        bias=bias, **more,
    )  # fmt: skip


def transposed(dtype="int8", computed="xw", batch=1, bias=None, per_channel=False, padding="SAME") -> bytes:
    height, width = (10, 8) if padding == "SAME" else (11, 9)
    return Layer(dtype, computed, per_channel).build(
        "TRANSPOSE_CONV", (batch, 5, 4, 3), (6, 3, 3, 3), (batch, height, width, 6), 6, bias=bias,
        padding=padding, stride_h=2, stride_w=2,
    )  # fmt: skip


def dense(dtype="int8", computed="xw", bias=None, per_channel=False, activation="NONE") -> bytes:
    return Layer(dtype, computed, per_channel).build(
        "FULLY_CONNECTED", (3, 7), (5, 7), (3, 5), 5, bias=bias, fused_activation_function=activation
    )


MODELS: dict[str, bytes] = {
    **{f"{make.__name__} {dtype}": make(dtype) for make in (conv, depthwise, transposed) for dtype in SCALES},
    **{
        f"{make.__name__} {dtype}, all computed": make(dtype, "xwb", batch=2, bias=BIAS[dtype])
        for make in (conv, depthwise, transposed)
        for dtype in SCALES
    },
    **{
        f"{make.__name__} {dtype}, scales a channel": make(dtype, bias=BIAS[dtype], per_channel=True)
        for make in (conv, depthwise, transposed)
        for dtype in ("int8", "int16")
    },
    "conv strides": conv(stride_h=2, stride_w=3, padding="VALID"),
    "conv float32, dilation": conv("float32", dilation_h_factor=2, dilation_w_factor=2),
    "conv groups": conv(groups=2, bias="int32", fused_activation_function="RELU6"),
    "conv float32, groups": conv("float32", "wb", groups=2, bias="float32", fused_activation_function="RELU"),
    "conv int16, int32 sums": conv("int16", "xwb", bias="int32"),
    "conv, constant data": conv(computed="w", bias="int32"),
    "conv, computed bias alone": conv(computed="xb", bias="int32", batch=3),
    "depthwise VALID": depthwise(padding="VALID", dilation_h_factor=1),
    "depthwise multiplier": depthwise("int8", "wb", multiplier=2, bias="int32"),
    "depthwise float32, multiplier": depthwise("float32", multiplier=3, fused_activation_function="RELU_N1_TO_1"),
    "transposed VALID": transposed(padding="VALID", bias="int32"),
    "transposed int16, bias int16": transposed("int16", "xwb", bias="int16"),
    "dense, bias": dense(bias="int32", activation="RELU_N1_TO_1"),
    "dense, all computed": dense(computed="xwb", bias="int32"),
    "dense, computed bias alone": dense(computed="xb", bias="int32"),
    "dense, scales a channel": dense(per_channel=True),
    "dense, constant data": dense(computed="w", bias="int32", activation="RELU"),
    "dense int16": dense("int16"),
    "dense int16, all computed": dense("int16", "xwb", bias="int64"),
    "dense int16, int32 sums": dense("int16", "xwb", bias="int32", per_channel=True),
    "dense float32, all computed": dense("float32", "xwb", bias="float32", activation="RELU6"),
    "dense float32, computed bias alone": dense("float32", "xb", bias="float32"),
}
