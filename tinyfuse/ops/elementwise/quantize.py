"""QUANTIZE and DEQUANTIZE: the float borders of a model, and changes of quantization inside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import FLOAT16, Array, Op, Tensor, given
from tinyfuse.ir.fixedpoint import INT32_MAX, INT32_MIN, RANGE, multiply_by_quantized_multiplier, quantize_multiplier
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow, Rule


@dataclass(frozen=True)
class HalfEven:
    """Attributes of a QUANTIZE from float32 to int8 that rounds halves to even, as onnxruntime's QuantizeLinear does.

    by_reciprocal  whether numbers are multiplied by 1 / scale, rounded to float32, instead of divided by the scale:
            as ExecuTorch does

    before  number that is added to the quotient before it is rounded, and subtracted from the result after it: the zero
            point in the file's dtype, where onnxruntime's QLinear operators add it in float32; else 0
    """

    before: int = 0
    by_reciprocal: bool = False


_RESCALES = (
    ("int8", "int8"), ("int8", "uint8"), ("uint8", "int8"),
    ("int8", "int16"), ("int16", "int8"), ("int16", "int16"),
    ("int8", "int32"), ("int16", "int32"), ("int32", "int8"), ("int32", "int16"),
)  # fmt: skip
QUANTIZES = (("float32", "int8"), ("float32", "int16"), *_RESCALES)
DEQUANTIZES = (("int8", "float32"), ("uint8", "float32"), ("int16", "float32"))
#: (input, output) dtypes of DEQUANTIZE for constants, which are computed when the model is compiled. LiteRT accepts
#: float16, TFLM refuses it
_WIDENED = (FLOAT16, "float32")
_FLOATS = ("float32", FLOAT16)


def _unquantized(op: Op) -> Tensor | None:
    for tensor in (op.input, op.output):
        if tensor.dtype not in _FLOATS and (tensor.quant is None or tensor.quant.per_channel):
            return tensor
    return None


def _rules(pairs: tuple[tuple[str, str], ...]) -> tuple[Rule, ...]:
    names = ", ".join(f"{a} to {b}" for a, b in pairs)
    return (
        Rule("one input and one output", lambda op: len(op.inputs) != 1 or len(op.outputs) != 1 or None in op.inputs),
        Rule(
            f"the dtypes are one of: {names}",
            lambda op: (op.input.dtype, op.output.dtype) not in pairs,
            "TensorFlow Lite Micro has no kernel for other pairs",
        ),
        Rule("integer tensors are each quantized by one scale and one zero point", _unquantized),
        Rule("input and output have the same shape", lambda op: op.input.shape != op.output.shape),
    )


class _Elementwise(OpFamily):
    converts = True
    elementwise = True
    rows_alike = True

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW if len(op.output.shape) == 4 and op.output.shape[0] == 1 else None


class QuantizeFamily(_Elementwise):
    """QUANTIZE. From float32: round(value / scale) in float32, halves away from zero, saturated. TFLM first converts to
    int32 and leaves out-of-range values undefined; here they saturate too, as Arm's VCVT does (x86's conversion gives
    the lowest value). A NaN becomes the lowest value."""

    kind = "QUANTIZE"
    zero_scales = (0,)
    takes_uint8 = True
    summary = "from float, or from one quantization to another"
    rules = (
        *_rules(QUANTIZES),
        Rule(
            "the input's scale is below 2^13 times the output's",
            lambda op: op.input.dtype != "float32" and quantize_multiplier(op.input.scale / op.output.scale)[1] > 13,
        ),
        Rule(
            "the zero point of int32 is 0",
            lambda op: next((t for t in (op.input, op.output) if t.dtype == "int32" and t.zero_point), None),
        ),
        Rule(
            "an int32 input's scale is below the output's",
            lambda op: op.input.dtype == "int32" and quantize_multiplier(op.input.scale / op.output.scale)[1] > 0,
            "TensorFlow Lite Micro would overflow",
        ),
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        low, high = RANGE.get(op.output.dtype, (INT32_MIN, INT32_MAX))
        if op.input.dtype == "float32":
            scale, by_reciprocal = np.float32(op.output.scale), getattr(op.attributes, "by_reciprocal", False)
            with np.errstate(over="ignore", invalid="ignore"):
                quotient: Array = given(inputs[0]) * (1 / scale) if by_reciprocal else given(inputs[0]) / scale
            quotient = np.nan_to_num(quotient, nan=-65536.0, posinf=65536.0, neginf=-65536.0)
            exact = np.clip(quotient.astype(np.float64), -65536, 65536)
            if isinstance(op.attributes, HalfEven):
                before = np.float32(op.attributes.before)
                rounded = np.rint(exact.astype(np.float32) + before).astype(np.int64) - op.attributes.before
            else:
                rounded = np.copysign(np.floor(np.abs(exact) + 0.5), exact).astype(np.int64)
        else:
            multiplier = quantize_multiplier(op.input.scale / op.output.scale)
            rounded = multiply_by_quantized_multiplier(
                given(inputs[0]).astype(np.int64) - op.input.zero_point, *multiplier
            )
        return (np.clip(rounded + op.output.zero_point, low, high).astype(op.output.dtype),)


class DequantizeFamily(_Elementwise):
    """DEQUANTIZE: scale * (value - zero point), rounded once to float32; a float16 input keeps its value."""

    kind = "DEQUANTIZE"
    zero_scales = (0,)
    takes_uint8 = True
    summary = "to float"
    rules = _rules((*DEQUANTIZES, _WIDENED))

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        if op.input.dtype == FLOAT16:
            return (given(inputs[0]).astype(np.float32),)
        exact = op.input.scale * (given(inputs[0]).astype(np.float64) - op.input.zero_point)
        return (exact.astype(np.float32),)
