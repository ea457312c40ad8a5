"""L2_NORMALIZATION: divides every vector along the last dimension by its Euclidean length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ir.fixedpoint import clamp, inverse_sqrt_multiplier, multiply_by_quantized_multiplier
from tinyfuse.ops.core.dtypes import computed_dtype
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.movement import ends
from tinyfuse.ops.core.real import sum_in_order

_SHORTEST = np.float32(1e-6)


@dataclass(frozen=True)
class L2Norm:
    """Attributes of L2_NORMALIZATION: `activation`, as in the file."""

    activation: str = "NONE"


def _unquantized(op: Op) -> Tensor | None:
    quant = op.input.quant
    return op.input if op.input.dtype == "int8" and (quant is None or quant.per_channel) else None


class L2NormalizationFamily(OpFamily):
    """L2_NORMALIZATION. int8 outputs are in 128ths with zero point 0, whatever quantization the file gives (TFLM,
    reference/integer_ops/l2normalization.h). A float32 vector shorter than 10^-6 is treated as one of that length."""

    kind = "L2_NORMALIZATION"
    options_table = "L2NormOptions"
    summary = "vectors along the last dimension, over their length"
    rules = (
        ends(1),
        computed_dtype("int8", "float32"),
        Rule("an int8 input has one scale and one zero point", _unquantized),
        Rule(
            "input and output have the same shape, of rank 1 to 4, with up to 33025 values in the last dimension",
            lambda op: (
                op.input.shape != op.output.shape or not 1 <= len(op.input.shape) <= 4 or op.input.shape[-1] > 33025
            ),  # the sum of this many squares of 255 fits 31 bits
        ),
        Rule(
            "no fused activation",
            lambda op: op.attributes_as(L2Norm).activation != "NONE",
            "TensorFlow Lite Micro refuses it too",
        ),
    )

    def by_vectors(self, op: Op) -> bool:
        return True

    def attributes(self, options: Mapping[str, Any]) -> L2Norm:
        return L2Norm(options.get("fused_activation_function", "NONE"))

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        vectors = given(inputs[0]).reshape(-1, op.input.shape[-1])
        result = self.real(vectors) if op.output.dtype == "float32" else self.function(op, vectors.astype(np.int64))
        return (result.reshape(op.output.shape),)

    def function(self, op: Op, stored: Array) -> Array:
        """Stored results, int8 [n, depth], for stored vectors, int64."""
        vectors = stored - op.input.zero_point
        result = np.empty(vectors.shape, np.int8)
        for i, vector in enumerate(vectors):
            multiplier, shift = inverse_sqrt_multiplier(int((vector * vector).sum()))
            result[i] = clamp(multiply_by_quantized_multiplier(vector, multiplier, shift + 7), -128, 127)
        return result

    def real(self, vectors: Array) -> Array:
        """Results for float32 vectors [n, depth]."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            lengths = np.sqrt(sum_in_order((vectors * vectors).T))
            quotients: Array = vectors / np.where(lengths < _SHORTEST, _SHORTEST, lengths)[:, None]
        return quotients
