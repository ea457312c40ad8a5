"""Kernel for Helium of MUL followed by ADD or SUB, each with a constant per channel. Converters leave such pairs of a
batch normalization. The C is in runtime_c/tinyfuse_scaled_sum_mve.h.

The product is rounded as in TensorFlow Lite Micro, the sum once (kernels/elementwise/single_rounding.py), where
the constant operand becomes part of the offset. So an element takes only one multiplication more than a product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Int64s, Op, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Division, Kernel, element_access_orders, require_proven
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.rows import input_pointer, piece_pointer
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts, count_calls, memoized
from tinyfuse.kernels.elementwise.binary import Fields, mul_parameters
from tinyfuse.kernels.elementwise.single_rounding import fit_plane
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.binary import mul_multiplier
from tinyfuse.ops.core.convolution import clamp_range
from tinyfuse.ops.elementwise.merged import Merged, Part

_HEADER = "tinyfuse_scaled_sum_mve.h"
#: flags of the sides on which products are clamped
BELOW, ABOVE = (c_constant(_HEADER, f"TINYFUSE_SCALED_SUM_{side}") for side in ("BELOW", "ABOVE"))

#: number of channels whose constants are stored as a group
_TOGETHER = c_constant(_HEADER, "TINYFUSE_SCALED_SUM_EIGHT")

#: right shifts of products that the C supports
_RIGHT = range(1, 23)


class ScaledSumMve(Kernel):
    """MUL followed by ADD or SUB, with Helium, eight channels at a time."""

    name, headers = "tinyfuse_scaled_sum_mve_s8", (_HEADER,)
    by_row, rings = True, True
    access_orders = of_operator(element_access_orders, (0,))

    def accepts(self, op: Op, context: Context) -> bool:
        return context.target.mve and _scaled_sum(op) is not None

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return Division(_count_pixels(op, by_row))

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        found = require_proven(_scaled_sum(op))
        offsets = found.offsets + found.product.output.zero_point * found.factor
        gains, offsets = (_in_groups(values) for values in (found.gains, offsets))
        parts = gains.astype("<i2").view("<i4"), offsets[:, ::2].astype("<i4"), offsets[:, 1::2].astype("<i4")
        return (Constant("groups", np.concatenate(parts, axis=1).reshape(-1), "int32_t"),)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _counts(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        found = require_proven(_scaled_sum(op))
        ctype, fields = found.parameters
        channels = op.output.shape[-1]
        whole = replace(site, piece=None)
        pixels = _count_pixels(op, site.row is not None) if site.piece is None else site.piece.count
        pointers = (
            piece_pointer(input_pointer(whole, 0), site, channels),
            site.constant("groups"),
            piece_pointer(site.output.pointer, site, channels),
        )
        return Let(ctype, "p", fields), Call(self.name, ("&p", *pointers, pixels, channels, found.clamps))


@dataclass(frozen=True, eq=False)
class _ScaledSum:
    """MUL and ADD or SUB as the C computes them.

    product     the MUL.
    factor      factor of the product in the sum.
    gains       int64 [channels], values of the MUL's constant less its zero point.
    offsets     int64 [channels], added to the scaled products.
    parameters  struct of the C and its fields.
    clamps      sides on which products must be clamped: BELOW | ABOVE.
    """

    product: Op
    factor: int
    gains: Int64s
    offsets: Int64s
    parameters: Fields
    clamps: int


@lru_cache(maxsize=512)
def _scaled_sum(op: Op) -> _ScaledSum | None:
    """Parameters of a fused operator that is a MUL and an ADD or SUB with constants per channel; otherwise None."""
    if not isinstance(op.attributes, Merged) or len(op.activations) != 1 or len(op.attributes.parts) != 2:
        return None
    first, last = op.attributes.parts
    if first.op.kind != "MUL" or last.op.kind == "MUL" or not FAMILIES[last.op.kind].affine or op.input.dtype != "int8":
        return None
    x, gains = _operands(op, first, 0)
    _, addends = _operands(op, last, len(op.inputs))
    found = fit_plane(last.op)
    if x is None or gains is None or addends is None or found is None or -mul_multiplier(first.op)[1] not in _RIGHT:
        return None
    q_first = last.sources[0] == len(op.inputs)
    factor, of_addend = (found.a_factor, found.b_factor) if q_first else (found.b_factor, found.a_factor)
    values = _channel_values(op, gains) - gains.zero_point
    offsets = _channel_values(op, addends) * of_addend + found.offset
    low, high = clamp_range(last.op)
    sums = {"factor": factor, "shift": found.shift, "act_min": low, "act_max": high}
    of_product = {**mul_parameters(first.op)[1], "a_zero_point": x.zero_point, "b_zero_point": 0}
    fields = ("tinyfuse_scaled_sum", {"product": of_product, **sums})
    return _ScaledSum(first.op, factor, values, offsets, fields, _needed_clamps(first.op, x, values, offsets, sums))


def _operands(op: Op, part: Part, source: int) -> tuple[Tensor | None, Tensor | None]:
    """(operand of a part that comes from `source`, other operand), the latter constant, with one value or one per
    channel; None if an operand is not as described."""
    if source not in part.sources or len(part.sources) != 2:
        return None, None
    at = part.sources.index(source)
    value, other = part.op.operand(at), part.op.operand(1 - at)
    return value, other if other.is_constant and other.elements in (1, op.output.shape[-1]) else None


def _channel_values(op: Op, constant: Tensor) -> Int64s:
    """Values of a constant, int64 [channels]."""
    values: Int64s = np.broadcast_to(constant.values.reshape(-1).astype(np.int64), op.output.shape[-1:])
    return values


def _needed_clamps(mul: Op, x: Tensor, gains: Int64s, offsets: Int64s, sums: dict[str, int]) -> int:
    """Fewest sides on which products must be clamped so that the results for all stored values stay the same."""
    (multiplier, shift), (low, high) = mul_multiplier(mul), clamp_range(mul)
    products = (np.arange(-128, 128) - x.zero_point) * gains[:, None]
    scaled = (products * multiplier + (1 << 30)) >> 31
    whole = ((scaled - (products < 0) + (1 << (-shift - 1))) >> -shift) + mul.output.zero_point

    def results(sides: int) -> Array | None:
        """Results of the single-rounding addition if the products are clamped on these sides; None if sums exceed
        int32."""
        least, most = low if sides & BELOW else None, high if sides & ABOVE else None
        levels = (whole if sides == 0 else np.clip(whole, least, most)) * sums["factor"] + offsets[:, None]
        if (np.abs(levels) >= 2**31).any():
            return None
        found: Array = np.clip(levels >> sums["shift"], sums["act_min"], sums["act_max"])
        return found

    wanted = require_proven(results(BELOW | ABOVE))
    tried = ((sides, results(sides)) for sides in (0, BELOW, ABOVE))
    same = (sides for sides, found in tried if found is not None and np.array_equal(found, wanted))
    return next(same, BELOW | ABOVE)


def _in_groups(values: Int64s) -> Int64s:
    """Values [groups, channels of a group], with zeros after the last."""
    filled: Int64s = np.pad(values, (0, -len(values) % _TOGETHER)).reshape(-1, _TOGETHER)
    return filled


def _count_pixels(op: Op, by_row: bool) -> int:
    """Number of pixels of a call."""
    return op.output.elements // op.output.shape[-1] // (op.output.shape[1] if by_row else 1)


@memoized
def _counts(op: Op, by_row: bool) -> Counts:
    found, channels = require_proven(_scaled_sum(op)), op.output.shape[-1]
    pixels = op.output.elements // channels
    saturates = (clamp_range(op.attributes_as(Merged).parts[-1].op)) == RANGE["int8"]
    groups = pixels * -(-channels // _TOGETHER)
    return {
        "calls": count_calls(op, by_row),
        "pixels": pixels,
        "groups": groups,
        "clamped_sides": groups * found.clamps.bit_count(),
        "clamped_outputs": 0 if saturates else op.output.elements,
        "rests": pixels * (channels % _TOGETHER > 0),
    }
