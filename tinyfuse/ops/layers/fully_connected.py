"""FULLY_CONNECTED, int8, int16 and float32: any batch, weights with or without a zero point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import INT4, Array, Op, Tensor, given
from tinyfuse.ops.core.convolution import (
    REAL_MULTIPLIER,
    Requantized,
    bias_values,
    quantized,
    real_multiplier,
    requantize_channels,
    rounds_by,
    with_bias,
)
from tinyfuse.ops.core.convolution_rules import QUANTIZATION_RULES, TENSOR_RULES, size_along
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow, Rule
from tinyfuse.ops.core.real import real_outputs


@dataclass(frozen=True)
class FullyConnected(Requantized):
    """Attributes of FULLY_CONNECTED: the fused activation; as in Conv2D, the clamp if a rewrite narrowed it, and the
    dtype of sums if there is no bias."""

    activation: str = "NONE"
    clamp: tuple[int, int] | tuple[float, float] | None = None
    weights_format: str = "DEFAULT"
    quantized_bias_type: str = "FLOAT32"


def _bad_shape(op: Op) -> Tensor | None:
    weights, output = op.operand(1), op.output
    if len(weights.shape) != 2 or min(weights.shape) < 1:
        return weights
    if not output.shape or output.shape[-1] != weights.shape[0]:
        return output
    batches = output.elements // weights.shape[0]
    good = batches >= 1 and op.input.elements == batches * weights.shape[1]
    return None if good else op.input


def _bad_weights_quant(op: Op) -> Tensor | None:
    weights = op.operand(1)
    quant = weights.quant
    if not quantized(op):
        return None
    if quant is None or len(quant.zero_point) != len(quant.scale):
        return weights
    if len(quant.scale) == 1:
        return None if -128 <= quant.zero_point[0] <= 127 else weights
    named = size_along(weights, quant.axis)
    good = len(quant.scale) == weights.shape[0] == named and not any(quant.zero_point)
    return None if good else weights


def _bias_scale_off(op: Op) -> Tensor | None:
    bias = op.optional(2)
    if bias is None or not quantized(op) or op.operand(1).quantization.per_channel:
        return None
    scale = bias.quant.scale[0] if bias.quant is not None and bias.quant.scale else 0.0
    difference = abs(op.input.scale * op.operand(1).scale - scale)
    return bias if difference / op.output.scale > 0.02 else None


def _unbounded_product(op: Op) -> Tensor | None:
    """Return the bias, or else the weights, where a sum times the layer's real scale may leave int32: LiteRT converts
    that product unchecked, and what it becomes depends on the machine."""
    weights, bias = op.operand(1), op.optional(2)
    if not rounds_by(op, REAL_MULTIPLIER):
        return None
    sums = np.array([255.0 * weights.shape[1]])
    if weights.is_constant:
        sums = np.abs(weights.values.astype(np.float64) - weights.zero_point).sum(axis=1)
    reach = 255.0 * sums
    if bias is not None:
        reach = reach + (np.abs(bias_values(op)) if bias.is_constant else 2.0**31)
    beyond = reach.clip(0, 2.0**31).max() * real_multiplier(op) >= 2.0**31 - 1
    return (bias or weights) if beyond else None


class FullyConnectedFamily(OpFamily):
    """FULLY_CONNECTED. Weights are [out_c, in_c]; input [..., in_c] and output [..., out_c] are flattened to [batches,
    channels]."""

    kind = "FULLY_CONNECTED"
    zero_scales = (1,)
    computes_uint8 = True
    options_table = "FullyConnectedOptions"
    data_and_weights, channel_axis = (0, 1), 0
    summary = "matrix times vectors, plus a bias"
    rules = (
        *TENSOR_RULES,
        Rule("weights are [outputs, inputs], and input and output hold whole batches of these",
             _bad_shape),
        Rule("weights are stored in the default format",
             lambda op: op.attributes_as(FullyConnected).weights_format != "DEFAULT"),
        Rule("quantized weights have one scale and zero point, or a scale per output with zero points 0",
             _bad_weights_quant),
        Rule("weights of int4 have one scale",
             lambda op: op.operand(1).dtype == INT4 and op.operand(1).quantization.per_channel,
             "convert with one scale for all outputs: TensorFlow Lite Micro refuses this layer, too"),
        *QUANTIZATION_RULES,
        Rule("the bias has the scale of input times weights (within 0.02 of the output's scale)",
             _bias_scale_off, "TensorFlow Lite Micro refuses this layer, too"),
        Rule("sums of a uint8 layer, times input scale * weight scale / output scale, are within 32 bits",
             _unbounded_product, "such a product may not fit 32 bits, and LiteRT's result depends on the machine then: "
             "look for a bias that is far too large"),
    )  # fmt: skip

    def closed_shape(self, op: Op, output: Tensor) -> Sequence[int] | None:
        weights = op.optional(1)
        if weights is None or len(weights.shape) != 2 or len(output.shape) != 2:
            return super().closed_shape(op, output)
        return op.input.elements // max(weights.shape[1], 1), output.shape[1]

    def attributes(self, options: Mapping[str, Any]) -> FullyConnected:
        return FullyConnected(
            activation=options.get("fused_activation_function", "NONE"),
            weights_format=options.get("weights_format", "DEFAULT"),
            quantized_bias_type=options.get("quantized_bias_type", "FLOAT32"),
        )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        computed = (self._function if quantized(op) else self._real)(with_bias(op, inputs), *inputs)
        return (computed.reshape(op.output.shape),)

    def _function(self, op: Op, *inputs: Array | None) -> Array:
        """Outputs of a layer of integers, [batches, channels]."""
        weights = op.operand(1)
        values = given(inputs[0]).reshape(-1, weights.shape[1]).astype(np.float64) - op.input.zero_point
        zero_point = 0 if weights.quantization.per_channel else weights.zero_point
        total = values @ (given(inputs[1]).astype(np.float64) - zero_point).T  # exact: far below 2^53
        return requantize_channels(op, total.astype(np.int64))

    def _real(self, op: Op, *inputs: Array | None) -> Array:
        """Outputs of a float32 layer, float32 [batches, channels]: every product and sum is rounded, in TFLM's
        order."""
        weights = given(inputs[1])
        values = given(inputs[0]).reshape(-1, weights.shape[1])
        total = np.zeros((values.shape[0], weights.shape[0]), np.float32)
        with np.errstate(all="ignore"):
            for i in range(weights.shape[1]):
                total += values[:, i, None] * weights[:, i]
        return real_outputs(op, total)

    def sums_channels(self, op: Op) -> bool:
        return op.input.shape[-1] == op.operand(1).shape[1]

    def by_vectors(self, op: Op) -> bool:
        return self.sums_channels(op) and op.input.shape[:-1] == op.output.shape[:-1]

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        images = op.input.is_image and op.output.is_image and op.operand(1).is_constant
        return SAME_ROW if index == 0 and images and op.input.shape[1] == op.output.shape[1] else None

    def macs(self, op: Op) -> int:
        return op.output.elements * op.operand(1).shape[1]
