"""SVDF, int8 with a state of int16 or int8, or float32: a fully connected layer, and a filter over its last results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given, float_math
from tinyfuse.ir.fixedpoint import RANGE, clamp, multiply_by_quantized_multiplier
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.real import sum_in_order
from tinyfuse.ops.sequence.svdf_scaling import feature_multiplier, time_multiplier


@dataclass(frozen=True)
class Svdf:
    """Attributes of SVDF. rank: number of filters that add up to one output. activation: for float32; TFLM applies none
    to int8."""

    rank: int = 0
    activation: str = "NONE"


#: fused activations of float32: what an output is clamped to from above and then from below, None where it isn't
CLAMPS: dict[str, tuple[float | None, float | None]] = {
    "NONE": (None, None),
    "RELU": (None, 0.0),
    "RELU_N1_TO_1": (1.0, -1.0),
    "RELU6": (6.0, 0.0),
}


#: activations that are not clamps: 1 if the sign bit is set, else 0; and tanh
SIGN_BIT, TANH = "SIGN_BIT", "TANH"


def real_activation(op: Op, output: Array) -> Array:
    """float32 activation: a clamp by fmin and fmax, which replace a NaN by the bound, or a function that is not a
    clamp."""
    if op.attributes_as(Svdf).activation == SIGN_BIT:
        return np.signbit(output).astype(np.float32)
    if op.attributes_as(Svdf).activation == TANH:
        return float_math.tanh(output)
    high, low = CLAMPS[op.attributes_as(Svdf).activation]
    if high is not None:
        output = np.where(output < high, output, np.float32(high))
    return output if low is None else np.where(output > low, output, np.float32(low))


def _bad_dtype(op: Op) -> Tensor | None:
    x, features, time, bias, state = op.operands
    if x.dtype == "float32":
        return next((t for t in (*op.operands, op.output) if t.dtype != "float32"), None)
    expected = ((x, ("int8",)), (op.output, ("int8",)), (features, ("int8",)), (bias, ("int32",)),
                (time, ("int8", "int16")), (state, (time.dtype,)))  # fmt: skip
    return next((tensor for tensor, dtypes in expected if tensor.dtype not in dtypes), None)


def _bad_shape(op: Op) -> Tensor | None:
    x, features, time, bias, state = op.operands
    for tensor in (x, op.output, features, time, state):
        if len(tensor.shape) != 2:
            return tensor
    (batches, inputs), (filters, memory), rank = x.shape, time.shape, op.attributes_as(Svdf).rank
    if rank < 1 or filters % rank or features.shape != (filters, inputs):
        return features
    if bias.shape != (filters // rank,):
        return bias
    if state.shape != (batches, memory * filters):
        return state
    return None if op.output.shape == (batches, filters // rank) else op.output


def _is_real(op: Op) -> bool:
    return op.input.dtype == "float32"


def _unquantized(op: Op) -> Tensor | None:
    if _is_real(op):
        return None
    x, features, time, _, state = op.operands
    return next((t for t in (x, features, time, state, op.output) if t.quant is None or t.quant.per_channel), None)


def _bad_zero_point(op: Op) -> Tensor | None:
    if _is_real(op):
        return None
    _, features, time, _, state = op.operands
    asymmetric = (t for t in (features, time, state) if t.zero_point)
    return next((t for t in asymmetric if t.dtype == "int16" or t is not state), None)


def _bias_scale_off(op: Op) -> Tensor | None:
    if _is_real(op):
        return None
    _, _, time, bias, state = op.operands
    scale = bias.quant.scale[0] if bias.quant is not None and bias.quant.scale else 0.0
    product = float(np.float32(state.scale) * np.float32(time.scale))
    return None if abs(scale - product) < 1e-5 else bias


def _sums(terms: Array) -> Array:
    """Sums over the last axis, float32; each sum is rounded, in TFLM's order."""
    return sum_in_order(np.moveaxis(terms, -1, 0))


class SvdfFamily(OpFamily):
    """SVDF. Inputs: x [B, I], feature weights [F, I], time weights [F, M], bias [F / rank], and the state [B, F * M]:
    the results of each filter in the last M runs, the newest last.

    Source: Nakkiran et al. 2015, "Compressing Deep Neural Networks using a Rank-Constrained Topology".
    """

    kind = "SVDF"
    options_table = "SVDFOptions"
    data_and_weights = (0, 1)
    summary = "the sum over the last M results of each filter, each weighed; keeps them as state"
    updates = (4,)
    rules = (
        Rule("five inputs and one output",
             lambda op: len(op.inputs) != 5 or len(op.outputs) != 1 or None in op.inputs),
        Rule("input, output and feature weights are int8, the bias int32; time weights and state are both "
             "int16 or both int8; or all are float32", _bad_dtype,
             "quantize the model to int8 (full integer quantization)"),
        Rule("shapes agree: [B, I], [F, I], [F, M], [F / rank], [B, F * M] and [B, F / rank]", _bad_shape),
        Rule("every tensor but the bias has one scale and one zero point, unless they are float32", _unquantized),
        Rule("weights, and a state of int16, have zero point 0", _bad_zero_point),
        Rule("the bias has the scale of state times time weights (within 1e-5)", _bias_scale_off,
             "TensorFlow Lite Micro refuses this layer, too"),
        Rule("a requantization multiplier is below 2^31",
             lambda op: not _is_real(op) and max(feature_multiplier(op)[1], time_multiplier(op)[1]) > 30),
        Rule(f"the fused activation of float32 is one of {', '.join((*CLAMPS, TANH, SIGN_BIT))}",
             lambda op: _is_real(op) and op.attributes_as(Svdf).activation not in (*CLAMPS, TANH, SIGN_BIT)),
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> Svdf:
        return Svdf(options.get("rank", 0), options.get("fused_activation_function", "NONE"))

    def computing(self, op: Op) -> Op | None:
        return None if all(t.is_constant for t in op.operands[1:4]) else replace(op, kind="COMPUTED_SVDF")

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        if _is_real(op):
            return self.real(op, *all_given(inputs))
        x, features, time, bias, state = (value.astype(np.int64) for value in all_given(inputs))
        dtype, zero_point = op.operand(4).dtype, op.operand(4).zero_point
        (batches, _), (filters, memory) = x.shape, time.shape
        sums = ((x - op.input.zero_point) @ features.T).astype(np.int32)
        newest = np.clip(multiply_by_quantized_multiplier(sums, *feature_multiplier(op)), *RANGE[dtype])
        state = np.roll(state.reshape(batches, filters, memory), -1, axis=2)
        # TFLM adds the zero point after the clamp, and an int8 wraps
        state[:, :, -1] = (newest + zero_point).astype(dtype)
        filtered = ((state - zero_point) * time).sum(axis=2)
        total = (filtered.reshape(batches, -1, op.attributes_as(Svdf).rank).sum(axis=2) + bias).astype(np.int32)
        scaled = multiply_by_quantized_multiplier(total, *time_multiplier(op))
        output = clamp(scaled + op.output.zero_point, *RANGE["int8"])
        return output, state.reshape(op.operand(4).shape).astype(dtype)

    @staticmethod
    def real(op: Op, x: Array, features: Array, time: Array, bias: Array, state: Array) -> tuple[Array, Array]:
        """(output, new state) of a float32 SVDF; terms are added in order, and each product and sum is rounded."""
        (batches, _), (filters, memory) = x.shape, time.shape
        state = np.roll(state.reshape(batches, filters, memory), -1, axis=2)
        with np.errstate(all="ignore"):
            state[:, :, -1] = _sums(x[:, None, :] * features)
            filtered = _sums(state * time).reshape(batches, -1, op.attributes_as(Svdf).rank)
            output = _sums(np.concatenate([np.broadcast_to(bias, filtered.shape[:2])[..., None], filtered], axis=2))
        return real_activation(op, output), state.reshape(op.operand(4).shape)

    def ulp(self, op: Op) -> int | None:
        return 3 if _is_real(op) and op.attributes_as(Svdf).activation == TANH else None

    def macs(self, op: Op) -> int:
        features, time = op.operand(1), op.operand(2)
        return op.input.shape[0] * (features.elements + time.elements)
