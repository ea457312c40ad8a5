"""GELU, which TFLM lacks, with the arithmetic of LiteRT's reference kernel: for int8, a table that is computed in
float32.

Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, double_math, float_math
from tinyfuse.ir.float_math import Floats
from tinyfuse.ops.core.family import Rule
from tinyfuse.ops.core.uint8_functions import nearest
from tinyfuse.ops.core.unary import RATIO_RULE, UnaryFamily, saturate, unary_rules

_F32 = np.float32
_ROOT_2_OVER_PI, _ROOT_HALF = _F32(math.sqrt(2 / math.pi)), _F32(-math.sqrt(0.5))


@dataclass(frozen=True)
class Gelu:
    """Attributes of GELU: `approximate` selects the formula with tanh instead of erfc."""

    approximate: bool = False


class GeluFamily(UnaryFamily):
    """GELU of int8 or float32. Every float32 step is rounded. For int8, erfc and tanh are double functions rounded to
    float32; for float32 they are our own."""

    kind = "GELU"
    in_tflm = False
    computes_uint8 = True
    options_table = "GeluOptions"
    summary = "x times the share of a normal distribution below x"
    rules = (
        *unary_rules("int8", "float32"),
        RATIO_RULE,
        Rule(
            "an int8 input's scale is below 2^100",
            lambda op: op.input.dtype == "int8" and op.input.scale >= 2.0**100,
        ),
    )
    ulp_of = 1.0  # far below x = 0, 1 + tanh and x * erfc are small, but their errors are not

    def attributes(self, options: Mapping[str, Any]) -> Gelu:
        return Gelu(bool(options.get("approximate", False)))

    def function(self, op: Op, values: Array) -> Array:
        x = _F32(op.input.scale) * (values.astype(np.int64) - op.input.zero_point).astype(_F32)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if op.attributes_as(Gelu).approximate:
                share = _F32(1) + _each(math.tanh, _ROOT_2_OVER_PI * (x + _F32(0.044715) * x * x * x))
            else:
                share = _each(math.erfc, x * _ROOT_HALF)
            scaled = _F32(0.5) * x * share * (_F32(1) / _F32(op.output.scale))
        return saturate(nearest(scaled) + op.output.zero_point)

    def real(self, op: Op, x: Floats) -> Floats:
        if op.attributes_as(Gelu).approximate:
            cube = _F32(0.044715) * x * x * x
            share = _F32(1) + float_math.tanh(_ROOT_2_OVER_PI * (x + cube))
        else:
            share = double_math.erfc(x * _ROOT_HALF)
        return (_F32(0.5) * x) * share

    def ulp(self, op: Op) -> int | None:
        """Most units in the last place by which a float32 result may differ from LiteRT's; None for other dtypes.
        LiteRT's tanh is -1 below -8, an error of up to four units, which the product with x / 2 makes up to six."""
        if op.input.dtype != "float32":
            return None
        return 6 if op.attributes_as(Gelu).approximate else 3


def _each(function: Any, values: Array) -> Array:
    """float32 of the same shape: a function of doubles of each value."""
    return np.array([function(x) for x in values.reshape(-1).tolist()], _F32).reshape(values.shape)
