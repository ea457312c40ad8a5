"""POW of float32, which TFLM lacks: LiteRT calls libm's pow. Here it is computed in float64 and rounded once."""

from __future__ import annotations

from tinyfuse.ir import Op, double_math
from tinyfuse.ir.float_math import Floats
from tinyfuse.ops.base import Rule
from tinyfuse.ops.elementwise import SHAPE_RULES, TWO_INPUTS, BinaryOperator, binary_dtypes


class PowOperator(BinaryOperator):
    """What C99 says of infinities, zeros and NaN; NaN of negative numbers to powers that are not whole."""

    kind = "POW"
    in_tflm = False
    summary = "a to the power of b, with broadcasting"
    rules = (
        TWO_INPUTS,
        binary_dtypes("float32"),
        *SHAPE_RULES,
        Rule(
            "at most four dimensions where shapes are broadcast",
            lambda op: len(op.output.shape) > 4 and any(t.shape != op.output.shape for t in op.operands),
            "LiteRT's reference kernel has four loops",
        ),
    )

    def real(self, op: Op, a: Floats, b: Floats) -> Floats:
        return double_math.power(a, b)

    def ulp(self, op: Op) -> int | None:
        return 1
