"""Specifications of a model's inputs for data sets, and the conversion of numbers to the values that an input
stores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyfuse.emit.header import tensor_symbols
from tinyfuse.errors import UsageError
from tinyfuse.ir import Array, Quant, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops.real_numbers import quantized_numbers, real_numbers

#: real numbers that 0 and 255 of unsigned bytes stand for
ValueRange = tuple[float, float]


@dataclass(frozen=True)
class InputSpec:
    """An input of a model.

    name, symbol   the tensor's name in the file, and its name in the C API; data may be given under either
    shape          of one inference
    dtype          numpy's name, such as "int8"
    scale, zero_point   real value = scale * (stored - zero_point); None without a per-tensor quantization
    """

    name: str
    symbol: str
    shape: tuple[int, ...]
    dtype: str
    scale: float | None = None
    zero_point: int | None = None

    @property
    def elements(self) -> int:
        """Number of elements of the input in one inference."""
        return math.prod(self.shape)

    @property
    def quant(self) -> Quant | None:
        """The quantization; None without one."""
        return None if self.scale is None or self.zero_point is None else Quant((self.scale,), (self.zero_point,))

    @property
    def quantized(self) -> bool:
        """True where integers of 8 or 16 bits store real numbers."""
        return self.scale is not None and self.dtype in RANGE

    @property
    def real_range(self) -> tuple[float, float] | None:
        """Smallest and largest real number that the input can store; None where it is not quantized."""
        if self.scale is None or self.zero_point is None or self.dtype not in RANGE:
            return None
        low, high = RANGE[self.dtype]
        return self.scale * (low - self.zero_point), self.scale * (high - self.zero_point)

    def __str__(self) -> str:
        return f"{self.symbol} ({self.dtype}[{','.join(map(str, self.shape))}])"


def input_specs(tensors: Sequence[Tensor]) -> tuple[InputSpec, ...]:
    """The specifications of a graph's inputs, in its order."""
    specs = []
    for tensor, symbol in zip(tensors, tensor_symbols(tuple(tensors)), strict=True):
        plain = tensor.quant is not None and not tensor.quant.per_channel and tensor.dtype != "float32"
        scale, zero_point = (float(tensor.scale), tensor.zero_point) if plain else (None, None)
        specs.append(InputSpec(tensor.name, symbol, tensor.shape, tensor.dtype, scale, zero_point))
    return tuple(specs)


def stored_values(spec: InputSpec, array: Array, values: ValueRange | None = None) -> Array:
    """Numbers converted to the values that the input stores, in the same shape.

    Integers are taken as they are. Floats for a quantized input are real numbers: they are quantized as the generated
    NAME_quantize_INPUT does it. With `values`, unsigned bytes stand for real numbers too (`real_of_bytes`). UsageError
    if the input can't take numbers of this dtype or size.
    """
    if values is not None and array.dtype == np.uint8:
        array = real_of_bytes(array, values)
    if array.dtype.kind not in "biuf":
        raise UsageError(
            f"the input {spec.name!r} is {spec.dtype}; an array of {array.dtype} cannot be converted to it"
        )
    if spec.dtype == "float32":
        return array.astype(np.float32, copy=False)
    if array.dtype.kind == "f":
        return _quantized(spec, array)
    stored = np.dtype(spec.dtype)
    if array.dtype == stored:
        return array
    if array.dtype.kind != stored.kind and array.dtype.itemsize == stored.itemsize:
        raise UsageError(_other_sign(spec, array))
    low, high = (0, 1) if spec.dtype == "bool" else (np.iinfo(stored).min, np.iinfo(stored).max)
    least, most = (int(array.min()), int(array.max())) if array.size else (low, high)
    if least < low or most > high:
        raise UsageError(f"the input {spec.name!r} is {spec.dtype}; the array's values go from {least} to {most}")
    return array.astype(stored)


def real_values(spec: InputSpec, array: Array, values: ValueRange | None = None) -> Array:
    """float32 of an array, in its shape: floats are converted, integers of a quantized input by its scale and zero
    point, and unsigned bytes by `values`, if given."""
    if values is not None and array.dtype == np.uint8:
        return real_of_bytes(array, values)
    quant = spec.quant
    if array.dtype.kind == "f" or quant is None:
        return array.astype(np.float32, copy=False)
    return real_numbers(stored_values(spec, array), quant)


def real_of_bytes(array: Array, values: ValueRange) -> Array:
    """float32 of unsigned bytes: 0 stands for the first of `values`, 255 for the second; values between them are
    interpolated linearly."""
    low, high = values
    return (low + array.astype(np.float64) * ((high - low) / 255)).astype(np.float32)


def saturated_count(spec: InputSpec, array: Array) -> int:
    """Number of real numbers beyond the input's range, which become its smallest or largest value."""
    if array.dtype.kind != "f" or spec.scale is None or spec.zero_point is None or spec.dtype not in RANGE:
        return 0
    low, high = RANGE[spec.dtype]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        exact = array.astype(np.float32, copy=False).astype(np.float64) / spec.scale + spec.zero_point
    return int((~((exact > low - 1) & (exact < high + 1))).sum())


def _quantized(spec: InputSpec, array: Array) -> Array:
    """Real numbers by the arithmetic of QUANTIZE, which the generated header's helper has too."""
    quant = spec.quant
    if quant is None or spec.dtype not in RANGE:
        raise UsageError(f"the input {spec.name!r} is {spec.dtype} without a scale: give integers, not {array.dtype}")
    with np.errstate(over="ignore"):
        reals = array.astype(np.float32, copy=False)
    return quantized_numbers(reals, spec.dtype, quant)


def _other_sign(spec: InputSpec, array: Array) -> str:
    """Reason to refuse integers that are as wide as the input's, but signed where it is unsigned, or the other way
    round."""
    stored = f"the input {spec.name!r} is {spec.dtype}, but the array is {array.dtype}"
    how = f"array.astype(numpy.{spec.dtype}) where these are the stored values"
    if array.dtype == np.uint8 and spec.dtype == "int8":
        how += "; uint8 pixels that become int8 by subtracting 128: (array ^ 128).view(numpy.int8)"
    return f"{stored}: give {how}; or real numbers as float32, which are quantized"
