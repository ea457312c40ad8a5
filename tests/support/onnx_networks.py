"""Random quantized ONNX networks, in the QDQ format or with QLinear operators, written by the `onnx` package.

onnx_network(7).data    the file's bytes; a seed says all of a network
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

_TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "float32": TensorProto.FLOAT}


@dataclass(frozen=True)
class Value:
    """A stored tensor: its name, shape and quantization."""

    name: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int


@dataclass
class OnnxWriter:
    """Collects nodes and constants. dtype: that of activations; opset: version of the standard operators."""

    dtype: str = "int8"
    opset: int = 17
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    count: int = 0

    def name(self, what: str) -> str:
        self.count += 1
        return f"{what}_{self.count}"

    @property
    def low(self) -> int:
        return int(np.iinfo(self.dtype).min)

    def constant(self, array: np.ndarray, what: str = "constant") -> str:
        name = self.name(what)
        self.constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def node(self, kind: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[str]:
        names = [self.name(kind.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=names[0], **attributes))
        return names

    def scales(self, value: Value) -> list[str]:
        return [
            self.constant(np.array(value.scale, np.float32), "scale"),
            self.constant(np.array(value.zero_point, self.dtype), "point"),
        ]

    def input(self, shape: Sequence[int], scale: float, zero_point: int, real: bool = False) -> Value:
        """A graph input; with `real` it is float32, and quantized at once."""
        name = self.name("input")
        kind = _TYPES["float32" if real else self.dtype]
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        value = Value(name, tuple(shape), scale, zero_point)
        return self.quantize(name, value) if real else value

    def real(self, value: Value) -> str:
        """The float32 numbers of a stored tensor."""
        return self.node("DequantizeLinear", [value.name, *self.scales(value)])[0]

    def quantize(self, name: str, like: Value) -> Value:
        stored = self.node("QuantizeLinear", [name, *self.scales(like)])[0]
        return Value(stored, like.shape, like.scale, like.zero_point)

    def weights(self, array: np.ndarray, scale: np.ndarray, axis: int) -> str:
        points = np.zeros(scale.shape, array.dtype)
        inputs = [self.constant(array, "weights"), self.constant(scale.astype(np.float32)), self.constant(points)]
        more = {"axis": axis} if scale.ndim else {}
        return self.node("DequantizeLinear", inputs, **more)[0]

    def model(self, outputs: Sequence[Value], real: bool = False) -> bytes:
        """The file's bytes; with `real` its outputs are float32."""
        ends = []
        for value in outputs:
            name = self.real(value) if real else value.name
            kind = _TYPES["float32" if real else self.dtype]
            ends.append(helper.make_tensor_value_info(name, kind, list(value.shape)))
        graph = helper.make_graph(self.nodes, "network", self.inputs, ends, self.constants)
        domains = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=domains, producer_name="tinyfuse tests")
        model.ir_version = 8
        return bytes(model.SerializeToString())


@dataclass(frozen=True)
class OnnxNetwork:
    seed: int
    data: bytes = field(repr=False)


def onnx_network(seed: int) -> OnnxNetwork:
    """A network of two to eight layers and other operators, branches among them."""
    return OnnxNetwork(seed, _Drawer(seed).data())


class _Drawer:
    def __init__(self, seed: int):
        self.rng = random.Random(f"onnx {seed}")
        self.arrays = np.random.default_rng(seed)
        self.w = OnnxWriter(self.rng.choice(("int8", "uint8")), self.rng.choice((13, 17, 19)))

    def data(self) -> bytes:
        rng, w = self.rng, self.w
        image = rng.random() < 0.8
        channels = rng.randint(1, 9)
        shape = (1, channels, rng.randint(1, 9), rng.randint(1, 9)) if image else (1, channels, rng.randint(2, 16))
        value = w.input(shape, self.scale(), self.point(), real=rng.random() < 0.4)
        known = [value]
        for _ in range(rng.randint(2, 8)):
            step = rng.choice(self.steps(value))
            value = step(value)
            known.append(value)
            if len(known) > 2 and rng.random() < 0.3:
                value = self.joined(value, known)
        return w.model([value], real=rng.random() < 0.4)

    def scale(self) -> float:
        return 2.0 ** -self.rng.randint(3, 7) if self.rng.random() < 0.2 else self.rng.uniform(0.01, 0.1)

    def point(self) -> int:
        return self.rng.choice((self.w.low, self.w.low + 128, self.rng.randint(self.w.low, self.w.low + 255)))

    def steps(self, value: Value) -> list[Callable[[Value], Value]]:
        if len(value.shape) in (3, 4):
            layers = [self.conv, self.conv, self.depthwise, self.function, self.pool, self.pool, self.pad, self.cut]
            ends = [self.mean, self.flat]
            return [*layers, *layers, *ends] if len(value.shape) == 4 else [*layers, self.flat]
        return [self.dense, self.dense, self.function, self.softmax]

    def output(self, shape: Sequence[int], scale: float) -> Value:
        """A stored output whose numbers are mostly about 128 times `scale` or less."""
        factor = self.rng.choice((1.0, 1.0, 0.4, 2.5))
        scale = float(np.float32(scale * factor))
        return Value("", tuple(shape), scale, self.point())

    def layer(
        self, value: Value, kind: str, weights: np.ndarray, axis: int, shape: Sequence[int], **more: Any
    ) -> Value:
        rng, w = self.rng, self.w
        outs = weights.shape[axis]
        scales = self.arrays.uniform(0.002, 0.02, outs) if rng.random() < 0.7 else np.array(rng.uniform(0.002, 0.02))
        inputs = [w.real(value), w.weights(weights, scales, axis)]
        terms = weights.size // outs
        if kind != "MatMul" and rng.random() < 0.8:
            bias = self.arrays.integers(-3000, 3000, outs).astype(np.int32)
            products = (np.float32(value.scale) * scales.astype(np.float32)).astype(np.float32)
            constants = [w.constant(bias), w.constant(products), w.constant(np.zeros(products.shape, np.int32))]
            inputs.append(w.node("DequantizeLinear", constants, **({"axis": 0} if products.ndim else {}))[0])
        made = w.node(kind, inputs, **more)[0]
        like = self.output(shape, value.scale * float(np.mean(scales)) * 60 * (terms + 1) ** 0.5)
        if rng.random() < 0.4:
            made = w.node("Relu", [made])[0]
            like = Value("", like.shape, like.scale, w.low if rng.random() < 0.7 else self.point())
        return w.quantize(made, like)

    def window(self, dims: Sequence[int], kernel: Sequence[int]) -> tuple[dict[str, Any], list[int]]:
        """Strides, pads and dilations that fit, and the output's rows and columns."""
        rank = len(dims)
        strides = [self.rng.choice((1, 1, 2)) for _ in dims]
        dilations = [self.rng.choice((1, 1, 1, 2)) if d >= 2 * k else 1 for d, k in zip(dims, kernel, strict=True)]
        pads = [
            self.rng.randint(0, (k - 1) * d // 2 + 1) if k > 1 else 0 for k, d in zip(kernel, dilations, strict=True)
        ] * 2
        if self.rng.random() < 0.5:
            pads = [0] * (2 * rank)
        out = [
            (size + pads[i] + pads[i + rank] - (k - 1) * d - 1) // s + 1
            for i, (size, k, d, s) in enumerate(zip(dims, kernel, dilations, strides, strict=True))
        ]
        return {"strides": strides, "pads": pads, "dilations": dilations}, out

    def conv(self, value: Value) -> Value:
        channels, dims = value.shape[1], value.shape[2:]
        kernel = [self.rng.choice((1, min(d, 2), min(d, 3))) for d in dims]
        more, out = self.window(dims, kernel)
        groups = self.rng.choice([g for g in (1, 1, 2, 3) if channels % g == 0])
        outs = groups * self.rng.randint(1, 8)
        weights = self.arrays.integers(-127, 128, (outs, channels // groups, *kernel)).astype(np.int8)
        return self.layer(value, "Conv", weights, 0, (1, outs, *out), group=groups, kernel_shape=kernel, **more)

    def depthwise(self, value: Value) -> Value:
        channels, dims = value.shape[1], value.shape[2:]
        kernel = [self.rng.choice((1, min(d, 3), min(d, 5))) for d in dims]
        more, out = self.window(dims, kernel)
        outs = channels * self.rng.choice((1, 1, 2))
        weights = self.arrays.integers(-127, 128, (outs, 1, *kernel)).astype(np.int8)
        return self.layer(value, "Conv", weights, 0, (1, outs, *out), group=channels, kernel_shape=kernel, **more)

    def dense(self, value: Value) -> Value:
        outs = self.rng.randint(1, 20)
        weights = self.arrays.integers(-127, 128, (value.shape[-1], outs)).astype(np.int8)
        shape = (*value.shape[:-1], outs)
        if len(value.shape) == 2 and self.rng.random() < 0.6:
            return self.layer(value, "Gemm", weights.T, 0, shape, transB=1)
        return self.layer(value, "MatMul", weights, 1, shape)

    def function(self, value: Value) -> Value:
        rng, w = self.rng, self.w
        kind = rng.choice(("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "HardSwish", "Clip"))
        inputs = [w.real(value)]
        if kind == "Clip":
            inputs += [w.constant(np.float32(0)), w.constant(np.float32(6))]
        more = {"alpha": 0.125} if kind == "LeakyRelu" else {}
        if kind == "HardSwish" and w.opset < 14:
            kind = "Relu"
        made = w.node(kind, inputs, **more)[0]
        like = self.output(value.shape, 1 / 128 if kind in ("Sigmoid", "Tanh", "HardSigmoid") else value.scale)
        return w.quantize(made, like)

    def pool(self, value: Value) -> Value:
        dims = value.shape[2:]
        kernel = [min(d, self.rng.choice((2, 3))) for d in dims]
        strides = [self.rng.choice((1, 2)) for _ in dims]
        out = [(d - k) // s + 1 for d, k, s in zip(dims, kernel, strides, strict=True)]
        kind = self.rng.choice(("MaxPool", "AveragePool"))
        made = self.w.node(kind, [self.w.real(value)], kernel_shape=kernel, strides=strides)[0]
        shape = (*value.shape[:2], *out)
        same = kind == "MaxPool" or self.rng.random() < 0.5
        like = Value("", shape, value.scale, value.zero_point) if same else self.output(shape, value.scale)
        return self.w.quantize(made, like)

    def mean(self, value: Value) -> Value:
        made = self.w.node("GlobalAveragePool", [self.w.real(value)])[0]
        return self.w.quantize(made, self.output((*value.shape[:2], 1, 1), value.scale / 2))

    def pad(self, value: Value) -> Value:
        if len(value.shape) != 4:
            return self.function(value)
        amounts = [self.rng.randint(0, 2) for _ in range(4)]
        pads = [0, 0, *amounts[:2], 0, 0, *amounts[2:]]
        made = self.w.node("Pad", [self.w.real(value), self.w.constant(np.array(pads, np.int64))])[0]
        shape = (*value.shape[:2], value.shape[2] + amounts[0] + amounts[2], value.shape[3] + amounts[1] + amounts[3])
        return self.w.quantize(made, Value("", shape, value.scale, value.zero_point))

    def cut(self, value: Value) -> Value:
        channels = value.shape[1]
        if channels < 2:
            return self.function(value)
        count = self.rng.randint(1, channels - 1)
        bounds = [self.w.constant(np.array([number], np.int64)) for number in (channels - count, channels, 1)]
        made = self.w.node("Slice", [self.w.real(value), *bounds])[0]
        shape = (value.shape[0], count, *value.shape[2:])
        return self.w.quantize(made, Value("", shape, value.scale, value.zero_point))

    def flat(self, value: Value) -> Value:
        made = self.w.node("Flatten", [self.w.real(value)])[0]
        shape = (1, int(np.prod(value.shape)))
        return self.w.quantize(made, Value("", shape, value.scale, value.zero_point))

    def softmax(self, value: Value) -> Value:
        made = self.w.node("Softmax", [self.w.real(value)], axis=-1)[0]
        return self.w.quantize(made, Value("", value.shape, 1 / 256, self.w.low))

    def joined(self, value: Value, known: list[Value]) -> Value:
        """The sum, product or concatenation with an earlier tensor."""
        w, rng = self.w, self.rng
        others = [v for v in known if len(v.shape) == len(value.shape) and v is not value]
        alike = [v for v in others if v.shape == value.shape]
        if alike and rng.random() < 0.7:
            other = rng.choice(alike)
            kind = rng.choice(("Add", "Add", "Mul", "Sub"))
            made = w.node(kind, [w.real(value), w.real(other)])[0]
            scale = value.scale * other.scale * 64 if kind == "Mul" else max(value.scale, other.scale) * 1.4
            return w.quantize(made, self.output(value.shape, scale))
        beside = [v for v in others if v.shape[2:] == value.shape[2:] and len(v.shape) > 2]
        if beside:
            other = rng.choice(beside)
            made = w.node("Concat", [w.real(value), w.real(other)], axis=1)[0]
            shape = (1, value.shape[1] + other.shape[1], *value.shape[2:])
            return w.quantize(made, self.output(shape, max(value.scale, other.scale)))
        return value
