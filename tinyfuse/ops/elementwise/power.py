"""POW of float32 and int32, which TFLM lacks. LiteRT calls libm's pow; here float32 powers are computed in float64 and
rounded once."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, double_math
from tinyfuse.ir.float_math import Floats
from tinyfuse.ops.core.family import Rule
from tinyfuse.ops.elementwise.elementwise import SHAPE_RULES, TWO_INPUTS, BinaryFamily, binary_dtypes

#: result for powers that do not fit int32. LiteRT returns either this or the wrapped power
_NO_ROOM = -(2**31)
#: largest exponent that tests of a computed exponent use
_TRIED = 9


def _negative(op: Op) -> Tensor | None:
    exponents = op.operand(1)
    return exponents if op.output.dtype == "int32" and exponents.is_constant and (exponents.values < 0).any() else None


def _largest_base(exponent: int) -> int:
    """The greatest base whose power with this exponent fits int32; an arbitrary one for exponent 0."""
    return int((2.0**31 - 1) ** (1 / max(1, exponent))) if exponent < 32 else 1


class PowFamily(BinaryFamily):
    """POW.

    Floats follow C99 for infinities, zeros and NaN; a negative base with a fractional power gives NaN. Int32 results
    out of range become the least int32, and a computed power below 0 gives 0, where LiteRT stops.
    """

    kind = "POW"
    in_tflm = False
    summary = "a to the power of b, with broadcasting"
    rules = (
        TWO_INPUTS,
        binary_dtypes("float32", "int32"),
        *SHAPE_RULES,
        Rule(
            "at most four dimensions where shapes are broadcast",
            lambda op: len(op.output.shape) > 4 and any(t.shape != op.output.shape for t in op.operands),
            "LiteRT's reference kernel has four loops",
        ),
        Rule("powers of int32 are not negative", _negative, "LiteRT refuses it too"),
    )

    def real(self, op: Op, a: Floats, b: Floats) -> Floats:
        return double_math.power(a, b)

    def function(self, op: Op, a: Array, b: Array) -> Array:
        base, exponents = np.broadcast_arrays(a.astype(np.int64), b.astype(np.int64))
        # from exponent 32 on, only powers of -1, 0 and 1 fit int32, and these depend only on whether it is even
        times = np.where(exponents > 33, 32 + exponents % 2, exponents)
        power, room = np.where(exponents < 0, 0, 1), np.full(base.shape, True)
        for time in range(33):
            product = np.where(time < times, power * base, power)
            room &= (product >= -(2**31)) & (product < 2**31)
            power = np.where(room, product, 0)
        return np.where(room, power, _NO_ROOM).astype(np.int32)

    def tried(self, op: Op, index: int) -> tuple[Array, ...]:
        """Test values whose powers fit int32."""
        if op.output.dtype != "int32":
            return ()
        tensor, exponents = op.operand(index), op.operand(1)
        most = int(exponents.values.max()) if exponents.is_constant else _TRIED
        low, high = (-_largest_base(most), _largest_base(most)) if index == 0 else (0, most)
        places = np.arange(tensor.elements).reshape(tensor.shape)
        return tuple(((places * step) % (high - low + 1) + low).astype(np.int32) for step in (0, 1, 3, 7))

    def ulp(self, op: Op) -> int | None:
        return 1 if op.output.dtype == "float32" else None
