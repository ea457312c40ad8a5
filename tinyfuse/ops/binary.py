"""What ADD and MUL derive from their quantization: attributes and fixed-point multipliers."""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.fixedpoint import quantize_multiplier
from tinyfuse.ir import Op


@dataclass(frozen=True)
class Binary:
    """activation: one of ACTIVATIONS; clamp: (low, high) in stored units where a rewrite narrowed it."""

    activation: str = "NONE"
    clamp: tuple[int, int] | None = None


#: left shift of ADD's operands, so that rescaling keeps a fraction
ADD_SHIFT = 20


def add_multipliers(op: Op) -> tuple[tuple[int, int], ...]:
    """(multiplier, shift) of ADD's first operand, second operand and sum, as TFLM derives them."""
    a, b = op.inputs[0].scale, op.inputs[1].scale
    twice_larger = 2.0 * max(a, b)
    real = (a / twice_larger, b / twice_larger, twice_larger / (2.0**ADD_SHIFT * op.output.scale))
    return tuple(quantize_multiplier(value) for value in real)


def mul_multiplier(op: Op) -> tuple[int, int]:
    """(multiplier, shift) of MUL's product."""
    return quantize_multiplier(op.inputs[0].scale * op.inputs[1].scale / op.output.scale)
