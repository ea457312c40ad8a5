"""Kernels of int8 MUL with a single rounding (runtime_c/tinyfuse_single_rounding_product.h).

onnxruntime multiplies the product of both operands by a float32 factor, adds the zero point, and rounds halves to even.
The result is a staircase of the product, which is an integer below 2^16. This file searches for integers with

    out = clamp((floor(product * multiplier / 2^15) + offset) >> shift)

for all 65,536 pairs of operands. A multiplier leaves each product an interval of offsets, and is exact if all intervals
have a common offset. The real factor is exact in 7 of 8 random operators. If ties round up and down in turn, no
multiplier is exact.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import require_proven
from tinyfuse.kernels.elementwise.add_sub_single_rounding import fit_offset
from tinyfuse.kernels.elementwise.binary import EqualShapes, Fields
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.binary import FloatBinary, product_factor
from tinyfuse.ops.core.convolution import clamp_range

#: exclusive bound of multipliers, and maximum shift
_MOST_MULTIPLIER, _MOST_SHIFT = 1 << 29, 28

#: distances of multipliers tried on either side of the nearest one
_DISTANCES = tuple(sorted({sign * step * away for step in (1, 16) for away in range(17) for sign in (-1, 1)}, key=abs))

#: step between the operand values that an estimate tests, both ends included
_ESTIMATE_STEP = 5


class ProductLine(NamedTuple):
    """Parameters of the C function tinyfuse_single_rounding_product."""

    multiplier: int
    offset: int
    shift: int


class SingleRoundingProduct(EqualShapes):
    """MUL by FloatBinary of operands with the output's shape, if `fit_product` finds exact parameters."""

    def __init__(self) -> None:
        super().__init__("single_rounding_product", "int8", _fields, "tinyfuse_single_rounding_product.h")

    def accepts(self, op: Op, context: Context) -> bool:
        equal = all(tensor.elements == op.output.elements for tensor in op.operands)
        return equal and fit_product(op) is not None

    def element(self, op: Op) -> Element | None:
        if fit_product(op) is None:
            return None
        return Element("single_rounding_product", "rounded_products", _fields(op))


def _fields(op: Op) -> Fields:
    found, (low, high) = require_proven(fit_product(op)), clamp_range(op)
    return "tinyfuse_single_rounding_product", {
        "a_zero_point": op.operand(0).zero_point, "b_zero_point": op.operand(1).zero_point,
        **found._asdict(), "act_min": low, "act_max": high,
    }  # fmt: skip


@lru_cache(maxsize=512)
def fit_product(op: Op) -> ProductLine | None:
    """Parameters with the results of an int8 MUL by FloatBinary for all pairs of stored values, or for some of them in
    an estimate; None if none are found, and for other operators."""
    if op.kind != "MUL" or not isinstance(op.attributes, FloatBinary):
        return None
    x, y = op.operands
    if not all(-128 <= tensor.zero_point <= 127 for tensor in (x, y, op.output)):
        return None
    values = np.arange(-128, 128, _ESTIMATE_STEP if op.estimate_mark else 1)
    of_a, of_b = values[:, None], values[None]
    results = FAMILIES[op.kind].reference(op, of_a.astype(np.int8), of_b.astype(np.int8))[0]
    results = results.astype(np.int64).reshape(-1)
    products = ((of_a - x.zero_point) * (of_b - y.zero_point)).reshape(-1)
    factor = float(product_factor(op))
    room = float(np.abs(products).max()) * factor + 512
    shift = min(_MOST_SHIFT, int(np.floor(30 - np.log2(room))))
    about = round((op.output.zero_point + 0.5) * 2**shift)
    for multiplier in (round(factor * 2 ** (15 + shift)) + away for away in _DISTANCES):
        if shift < 1 or not 0 < multiplier < _MOST_MULTIPLIER:
            continue
        floors = products * multiplier >> 15
        offset = fit_offset(results, floors, clamp_range(op), shift, about)
        if offset is not None and int(np.abs(floors).max()) + abs(offset) < 2**31:
            return ProductLine(multiplier, offset, shift)
    return None
