"""The ONNX twin of a quantized .tflite network: the same layers, weights and scales, in channels-first QDQ format."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx_networks import OnnxWriter, Value

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Op, Tensor
from tinyfuse.ops.core.convolution import Clamped, Conv2D, geometry
from tinyfuse.ops.pooling_reduce.pooling import Pool2D, pool_output_and_padding
from tinyfuse.ops.pooling_reduce.reduce_scaling import reduced_axes


def onnx_twin(data: bytes) -> bytes:
    """The twin of a .tflite file of CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, ADD, pools, MEAN, RESHAPE and SOFTMAX."""
    return _Twin(data).data()


class _Twin:
    def __init__(self, data: bytes):
        self.graph = read_tflite("model.tflite", data)
        self.w = OnnxWriter("int8", 17)
        self.values: dict[Tensor, Value] = {}

    def data(self) -> bytes:
        for tensor in self.graph.inputs:
            self.values[tensor] = self.w.input(self.shape(tensor), tensor.scale, tensor.zero_point)
        for op in self.graph.ops:
            made = _KINDS[op.kind](self, op)
            if op.output not in self.values:
                self.values[op.output] = self.w.quantize(made, self.like(op.output))
        return self.w.model([self.values[tensor] for tensor in self.graph.outputs])

    @staticmethod
    def shape(tensor: Tensor) -> tuple[int, ...]:
        if len(tensor.shape) != 4:
            return tensor.shape
        n, h, w, c = tensor.shape
        return n, c, h, w

    def like(self, tensor: Tensor) -> Value:
        return Value("", self.shape(tensor), tensor.scale, tensor.zero_point)

    def real(self, tensor: Tensor) -> str:
        return self.w.real(self.values[tensor])

    def activated(self, op: Op, name: str) -> str:
        activation = op.attributes_as(Clamped).activation
        if activation == "RELU":
            return self.w.node("Relu", [name])[0]
        if activation == "RELU6":
            return self.w.node("Clip", [name, self.w.constant(np.float32(0)), self.w.constant(np.float32(6))])[0]
        return name

    def layer(self, op: Op, kind: str, weights: np.ndarray, **more: object) -> str:
        scales = np.array(op.operand(1).quantization.scale, np.float32)
        scales = scales if len(scales) > 1 else scales.reshape(())
        inputs = [self.real(op.input), self.w.weights(weights, scales, 0)]
        bias = op.optional(2)
        if bias is not None:
            products = (np.float32(op.input.scale) * scales).astype(np.float32)
            parts = [bias.values.reshape(-1).astype(np.int32), products, np.zeros(products.shape, np.int32)]
            axis = {"axis": 0} if products.ndim else {}
            inputs.append(self.w.node("DequantizeLinear", [self.w.constant(np.asarray(p)) for p in parts], **axis)[0])
        return self.activated(op, self.w.node(kind, inputs, **more)[0])

    def conv(self, op: Op) -> str:
        g, attributes = geometry(op), op.attributes_as(Conv2D)
        depthwise = op.kind == "DEPTHWISE_CONV_2D"
        weights = op.operand(1).values.transpose((3, 0, 1, 2) if depthwise else (0, 3, 1, 2))
        ends = [
            (g.out_h - 1) * g.stride_h + (g.kernel_h - 1) * g.dilation_h + 1 - g.in_h - g.pad_top,
            (g.out_w - 1) * g.stride_w + (g.kernel_w - 1) * g.dilation_w + 1 - g.in_w - g.pad_left,
        ]
        pads = [g.pad_top, g.pad_left, *(max(0, end) for end in ends)]
        return self.layer(
            op, "Conv", weights, group=g.groups, kernel_shape=[g.kernel_h, g.kernel_w],
            strides=list(attributes.stride), dilations=list(attributes.dilation), pads=pads,
        )  # fmt: skip

    def dense(self, op: Op) -> str:
        return self.layer(op, "Gemm", self.flat_weights(op), transB=1)

    def flat_weights(self, op: Op) -> np.ndarray:
        """Weights in the order of what the layer reads: a flattened image has its channels first here."""
        weights = op.operand(1).values
        shape = self.flattened.get(op.input)
        if shape is None:
            return weights
        _, h, w, c = shape
        return weights.reshape(-1, h, w, c).transpose(0, 3, 1, 2).reshape(len(weights), -1)

    @property
    def flattened(self) -> dict[Tensor, tuple[int, ...]]:
        """The shapes of images by the vectors that they are flattened to."""
        return {
            op.output: op.input.shape
            for op in self.graph.ops
            if op.kind == "RESHAPE" and len(op.input.shape) == 4 and len(op.output.shape) == 2
        }

    def add(self, op: Op) -> str:
        return self.activated(op, self.w.node("Add", [self.real(t) for t in op.operands])[0])

    def pool(self, op: Op) -> str:
        attributes = op.attributes_as(Pool2D)
        (rows, top), (columns, left) = pool_output_and_padding(op)
        _, height, width, _ = op.input.shape
        ends = [
            (rows - 1) * attributes.stride[0] + attributes.filter[0] - height - top,
            (columns - 1) * attributes.stride[1] + attributes.filter[1] - width - left,
        ]
        kind = "MaxPool" if op.kind == "MAX_POOL_2D" else "AveragePool"
        pads = [top, left, *(max(0, end) for end in ends)]
        return self.w.node(
            kind, [self.real(op.input)], kernel_shape=list(attributes.filter), strides=list(attributes.stride), pads=pads
        )[0]  # fmt: skip

    def mean(self, op: Op) -> str:
        assert reduced_axes(op) == (1, 2)
        made = self.w.node("GlobalAveragePool", [self.real(op.input)])[0]
        return made if len(op.output.shape) == 4 else self.w.node("Flatten", [made])[0]

    def reshape(self, op: Op) -> str:
        shape = self.w.constant(np.array(self.shape(op.output), np.int64))
        return self.w.node("Reshape", [self.real(op.input), shape])[0]

    def softmax(self, op: Op) -> str:
        return self.w.node("Softmax", [self.real(op.input)], axis=-1)[0]


_KINDS: dict[str, Callable[[_Twin, Op], str]] = {
    "CONV_2D": _Twin.conv,
    "DEPTHWISE_CONV_2D": _Twin.conv,
    "FULLY_CONNECTED": _Twin.dense,
    "ADD": _Twin.add,
    "AVERAGE_POOL_2D": _Twin.pool,
    "MAX_POOL_2D": _Twin.pool,
    "MEAN": _Twin.mean,
    "RESHAPE": _Twin.reshape,
    "SOFTMAX": _Twin.softmax,
}
