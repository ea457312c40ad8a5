"""L2_NORMALIZATION, int8: every vector along the last dimension over its length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ir.fixedpoint import clamp, inverse_sqrt_multiplier, multiply_by_quantized_multiplier
from tinyfuse.ops.base import OpFamily, Rule
from tinyfuse.ops.movement import ends


@dataclass(frozen=True)
class L2Norm:
    """activation: as in the file."""

    activation: str = "NONE"


class L2NormalizationOperator(OpFamily):
    """Outputs are in 128ths with zero point 0, whatever the file says of the output's quantization
    (TFLM, reference/integer_ops/l2normalization.h)."""

    kind = "L2_NORMALIZATION"
    options_table = "L2NormOptions"
    summary = "vectors along the last dimension, over their length"
    rules = (
        ends(1),
        Rule(
            "input and output are int8",
            lambda op: next((t for t in (op.input, op.output) if t.dtype != "int8"), None),
            "quantize the model to int8 (full integer quantization)",
        ),
        Rule(
            "the input has one scale and one zero point",
            lambda op: op.input if op.input.quant is None or op.input.quant.per_channel else None,
        ),
        Rule(
            "input and output have one shape of rank 1 to 4, with up to 33025 values in the last dimension",
            lambda op: (
                op.input.shape != op.output.shape or not 1 <= len(op.input.shape) <= 4 or op.input.shape[-1] > 33025
            ),  # squares of 255 that fit 31 bits
        ),
        Rule(
            "no fused activation",
            lambda op: op.attributes_as(L2Norm).activation != "NONE",
            "TensorFlow Lite Micro refuses it too",
        ),
    )

    def attributes(self, options: Mapping[str, Any]) -> L2Norm:
        return L2Norm(options.get("fused_activation_function", "NONE"))

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        vectors = given(inputs[0]).reshape(-1, op.input.shape[-1]).astype(np.int64) - op.input.zero_point
        result = np.empty(vectors.shape, np.int8)
        for i, vector in enumerate(vectors):
            multiplier, shift = inverse_sqrt_multiplier(int((vector * vector).sum()))
            result[i] = clamp(multiply_by_quantized_multiplier(vector, multiplier, shift + 7), -128, 127)
        return (result.reshape(op.output.shape),)
