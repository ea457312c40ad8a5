"""Convolutions, linear layers and matrix products: multipliers and shifts become scales of weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse.frontend.executorch.arguments import INT8, Arguments, real, require_multipliers
from tinyfuse.frontend.executorch.graph import Converter
from tinyfuse.frontend.executorch.quantization import Quantizations
from tinyfuse.frontend.tensors import HINT_UNSOUND, Refused, constant_tensor
from tinyfuse.ir import Array, Quant, Tensor
from tinyfuse.ops.core.convolution import Conv2D, DepthwiseConv2D, scales_of_multipliers
from tinyfuse.ops.layers.fully_connected import FullyConnected
from tinyfuse.ops.layers.transpose_conv import TransposeConv
from tinyfuse.ops.matmul.batch_matmul import BatchMatMul

#: the negative of a zero point, which CMSIS-NN adds to its inputs
_NEGATED = (-INT8[1], -INT8[0])


def state_layer(q: Quantizations, a: Arguments) -> None:
    """Records the zero points of a layer's input and output, which its call gives as offsets."""
    q.has(a.value("input"), -a.integer("input_offset", _NEGATED))
    q.has(a.out, a.integer("output_offset", INT8))


def _image(c: Converter, a: Arguments) -> Tensor:
    return c.image(a, zero_point=-a.integer("input_offset", _NEGATED))


def _weights(a: Arguments, values: Array, channel_axis: int, data: Tensor, out: Quant,
             multipliers: Sequence[int], shifts: Sequence[int]) -> Tensor:  # fmt: skip
    """Constant weights whose scales give the layer's multipliers and shifts."""
    require_multipliers(multipliers, shifts)
    channels = values.shape[channel_axis]
    if len(multipliers) != channels:
        raise Refused(f"it has {len(multipliers)} multipliers for {channels} channels", HINT_UNSOUND)
    scales = scales_of_multipliers(multipliers, shifts, data.scale, out.scale[0])
    return constant_tensor(f"weights_{a.call.index}", values, Quant(scales, (0,) * channels, channel_axis))


def _channel_multipliers(a: Arguments) -> tuple[list[int], list[int]]:
    multipliers, shifts = (a.constant(f"requantize_{what}", "int32") for what in ("multipliers", "shifts"))
    return multipliers.reshape(-1).tolist(), shifts.reshape(-1).tolist()


def _bias(a: Arguments, values: Array) -> Tensor:
    return constant_tensor(f"bias_{a.call.index}", values.astype(np.int32).reshape(-1))


def _biases(a: Arguments) -> list[Tensor]:
    """The bias of a layer, or nothing."""
    return [] if a.optional("bias") is None else [_bias(a, a.constant("bias", "int32"))]


def _settings(a: Arguments) -> dict[str, Any]:
    rows, columns = a.pair("padding")
    return {
        "padding": (rows, rows, columns, columns) if rows or columns else "VALID",
        "stride": a.pair("stride"),
        "dilation": a.pair("dilation"),
        "clamp": a.clamp(),
    }


def _require_padding(a: Arguments, kernel: Sequence[int]) -> None:
    if not all(0 <= pad < 2**15 for pad in a.pair("padding")) or min(kernel) < 1:
        raise Refused(f"its padding is {list(a.pair('padding'))}", HINT_UNSOUND)


def convert_conv(c: Converter, a: Arguments) -> None:
    """quantized_conv2d: weights [out_c, rows, columns, in_c / groups], as CONV_2D has them."""
    data, weights, quant = _image(c, a), a.constant("weight", "int8"), c.quantizations.quant(a.out)
    if weights.ndim != 4 or weights.shape[3] < 1 or data.shape[3] % weights.shape[3]:
        raise Refused(f"its weights are {list(weights.shape)}", HINT_UNSOUND)
    _require_padding(a, weights.shape[1:3])
    filters = _weights(a, weights, 0, data, quant, *_channel_multipliers(a))
    c.set_image(a, "CONV_2D", (data, filters, *_biases(a)), Conv2D(**_settings(a)))


def convert_depthwise(c: Converter, a: Arguments) -> None:
    """quantized_depthwise_conv2d: weights [1, rows, columns, out_c], as DEPTHWISE_CONV_2D has them."""
    data, weights, quant = _image(c, a), a.constant("weight", "int8"), c.quantizations.quant(a.out)
    if weights.ndim != 4:
        raise Refused(f"its weights are {list(weights.shape)}", HINT_UNSOUND)
    _require_padding(a, weights.shape[1:3])
    filters = _weights(a, weights, 3, data, quant, *_channel_multipliers(a))
    multiplier = a.integer("depth_multiplier", (1, 2**15))
    c.set_image(
        a,
        "DEPTHWISE_CONV_2D",
        (data, filters, *_biases(a)),
        DepthwiseConv2D(depth_multiplier=multiplier, **_settings(a)),
    )


def convert_transposed_conv(c: Converter, a: Arguments) -> None:
    """quantized_transpose_conv2d: weights [out_c, rows, columns, in_c], as TRANSPOSE_CONV has them."""
    data, weights, quant = _image(c, a), a.constant("weight", "int8"), c.quantizations.quant(a.out)
    if weights.ndim != 4 or weights.shape[3] != data.shape[3] or a.pair("dilation") != (1, 1):
        raise Refused("groups and dilations are not supported here", "upsample with a Resize and a Conv2d instead")
    _require_padding(a, weights.shape[1:3])
    filters = _weights(a, weights, 0, data, quant, *_channel_multipliers(a))
    stride, padding, extra = a.pair("stride"), a.pair("padding"), a.pair("output_padding")
    dims = [
        (size - 1) * step - 2 * pad + kernel + more
        for size, step, pad, kernel, more in zip(
            data.shape[1:3], stride, padding, weights.shape[1:3], extra, strict=True
        )
    ]
    fits = all(0 <= more < step for more, step in zip(extra, stride, strict=True))
    if not fits or c.image_shape(a, a.out)[1:3] != dims:
        raise Refused(f"its result has sizes {list(a.out.sizes)}, not {dims} rows and columns", HINT_UNSOUND)
    size = constant_tensor(f"shape_{a.call.index}", np.array((1, *dims, weights.shape[0]), np.int32))
    attributes = TransposeConv(padding, stride, clamp=a.clamp())
    c.set_image(a, "TRANSPOSE_CONV", (size, filters, data, *_biases(a)), attributes)


def convert_linear(c: Converter, a: Arguments) -> None:
    """quantized_linear: weights [outputs, inputs] with one multiplier.

    A program for Helium may have, instead of a bias, bias + input offset * sum of weights.
    """
    value, weights, quant = a.value("input"), a.constant("weights", "int8"), c.quantizations.quant(a.out)
    zero_point = -a.integer("input_offset", _NEGATED)
    data = c.plain(value, zero_point)
    c.require_plain(a.out)
    if weights.ndim != 2 or data.shape[-1:] != weights.shape[1:]:
        raise Refused(f"its weights {list(weights.shape)} don't fit {list(data.shape)}", HINT_UNSOUND)
    if a.integer("filter_offset") != 0:
        raise Refused("its weights have a zero point", "quantize weights symmetrically")
    outputs = weights.shape[0]
    biases = _biases(a)
    if not biases and a.optional("kernel_sum") is not None:
        sums = a.constant("kernel_sum", "int32").astype(np.int64).reshape(-1)
        if len(sums) != outputs:
            raise Refused(f"it has {len(sums)} sums for {outputs} outputs", HINT_UNSOUND)
        folded = weights.astype(np.int64).sum(axis=1) * -zero_point
        biases = [_bias(a, sums - folded)]
    multipliers, shifts = ((*a.integers(f"requantize_{what}", 1),) * outputs for what in ("multipliers", "shifts"))
    if outputs > 1:
        filters = _weights(a, weights, 0, data, quant, multipliers, shifts)
        shape = (*data.shape[:-1], outputs)
        c.set(a, "FULLY_CONNECTED", (data, filters, *biases), shape, FullyConnected(clamp=a.clamp()))
        return
    # FULLY_CONNECTED would compute the multiplier of its only scale in float32, CONV_2D does not
    rows = value.elements // weights.shape[1]
    pixels = c.read(value, (1, rows, 1, weights.shape[1]), data.quant)
    filters = _weights(a, weights.reshape(1, 1, 1, -1), 0, data, quant, multipliers, shifts)
    c.set(a, "CONV_2D", (pixels, filters, *biases), (1, rows, 1, 1), Conv2D(clamp=a.clamp()))


def state_matmul(q: Quantizations, a: Arguments) -> None:
    """Record the zero points of a matrix product's operands and the scale of its result."""
    left, right = a.value("lhs"), a.value("rhs_transposed")
    q.has(left, -a.integer("lhs_zero_point", _NEGATED))
    q.has(right, -a.integer("rhs_zero_point", _NEGATED))
    q.has(a.out, a.integer("output_zero_point", INT8))
    factor = real(*a.multiplier("output"))
    if factor > 0:
        q.compute(a.out, (left, right), lambda x, y: _product(x, y) / factor)


def _product(left: float, right: float) -> float:
    """A product of scales, as BATCH_MATMUL computes it."""
    return float(np.float32(left) * np.float32(right))


def convert_matmul(c: Converter, a: Arguments) -> None:
    """Convert quantized_batch_matmul, whose second matrix is stored transposed."""
    left, right = (
        c.plain(a.value(name), -a.integer(f"{side}_zero_point", _NEGATED))
        for name, side in (("lhs", "lhs"), ("rhs_transposed", "rhs"))
    )
    c.require_plain(a.out)
    factor = real(*a.multiplier("output"))
    good = len(left.shape) == len(right.shape) == 3 and left.shape[0] == right.shape[0]
    if not good or left.shape[2] != right.shape[2] or factor == 0:
        raise Refused(f"its matrices are {list(left.shape)} and {list(right.shape)}", HINT_UNSOUND)
    shape = (*left.shape[:2], right.shape[1])
    c.set_scaled(
        a, "BATCH_MATMUL", (left, right), shape, BatchMatMul(adj_y=True), _product(left.scale, right.scale) / factor
    )
