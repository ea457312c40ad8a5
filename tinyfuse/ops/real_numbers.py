"""Converts between stored values and the real numbers that they stand for."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Quant, Tensor
from tinyfuse.ops import FAMILIES


def converts(op: Op) -> bool:
    """Tell whether an operator changes how numbers are stored, not the numbers."""
    family = FAMILIES.get(op.kind)
    return family is not None and family.converts


def real_numbers(stored: Array, quant: Quant | None) -> Array:
    """Return scale * (stored - zero_point) as float32 in the same shape; the values themselves without a quant."""
    if quant is None:
        return stored.astype(np.float32, copy=False)
    shape = [1] * stored.ndim
    if quant.per_channel:
        shape[quant.axis] = -1
    scale, zero_point = (np.array(each, np.float64).reshape(shape) for each in (quant.scale, quant.zero_point))
    return (scale * (stored.astype(np.float64) - zero_point)).astype(np.float32)


def quantized_numbers(real: Array, dtype: str, quant: Quant) -> Array:
    """Return float32 numbers as `dtype` stores them, in the same shape, by the arithmetic of QUANTIZE."""
    op = Op("QUANTIZE", (Tensor("", real.shape, "float32"),), (Tensor("", real.shape, dtype, quant),))
    (stored,) = FAMILIES["QUANTIZE"].reference(op, real)
    return np.asarray(stored)
