"""Values that the names of an ONNX graph have while it is converted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tinyfuse.frontend.onnx.functions import IDENTITY, Variants
from tinyfuse.ir import Array, Quant, Tensor
from tinyfuse.ir.fixedpoint import RANGE

#: quantized dtypes of activations
STORED = ("int8", "uint8")


@dataclass(frozen=True)
class Quantization:
    """Scale and zero point of a tensor, as its file has them.

    scale       float32, [] or [n]
    zero_point  integers of the stored dtype, of the scale's shape
    dtype       stored dtype
    axis        dimension with a scale per index, where there are several
    """

    scale: Array
    zero_point: Array
    dtype: str
    axis: int = 0

    @property
    def per_tensor(self) -> bool:
        return bool(self.scale.size == 1)

    @property
    def signed(self) -> Quant:
        """The quantization of the same values as int8: uint8 less 128."""
        shift = 128 if self.dtype == "uint8" else 0
        scales = tuple(float(scale) for scale in self.scale.reshape(-1))
        points = tuple(int(point) - shift for point in self.zero_point.reshape(-1))
        return Quant(scales, points, self.axis if len(scales) > 1 else 0)

    def matches(self, other: Quantization) -> bool:
        """Tell whether both stand for the same numbers."""
        same = self.dtype == other.dtype and self.scale.shape == other.scale.shape
        return same and np.array_equal(self.scale, other.scale) and np.array_equal(self.zero_point, other.zero_point)

    def quantize(self, values: Array) -> Array:
        """Stored int8 values (uint8 less 128) of float32 numbers, as onnxruntime computes them: halves to even.
        NaN becomes the lowest one."""
        with np.errstate(all="ignore"):
            quotient = np.nan_to_num(values.astype(np.float32) / np.float32(self.scale.item()), nan=-np.inf)
        low, high = RANGE["int8"]
        point = self.signed.zero_point[0]
        stored: Array = np.clip(np.rint(quotient.astype(np.float64)) + point, low, high).astype(np.int8)
        return stored


@dataclass(frozen=True, eq=False)
class Constant:
    """Values that the file holds, or that constant nodes compute."""

    array: Array


@dataclass(frozen=True, eq=False)
class Stored:
    """A computed tensor of stored int8 values; `dtype` is that of the file, int8 or uint8."""

    tensor: Tensor
    dtype: str

    @property
    def quantization(self) -> Quantization:
        """Scale and zero point as the file has them."""
        point = self.tensor.zero_point + (128 if self.dtype == "uint8" else 0)
        return Quantization(np.array(self.tensor.scale, np.float32), np.array(point, self.dtype), self.dtype)


@dataclass(frozen=True, eq=False)
class QuantizedConstant:
    """A constant behind a DequantizeLinear: stored integers with their quantization."""

    array: Array
    quantization: Quantization

    @property
    def real(self) -> Array:
        """The constant's real numbers, float32."""
        q = self.quantization
        shape = [1] * self.array.ndim
        if not q.per_tensor:
            shape[q.axis] = q.scale.size
        stored = self.array.astype(np.int64) - q.zero_point.astype(np.int64).reshape(shape)
        with np.errstate(over="ignore"):
            return (stored * q.scale.astype(np.float64).reshape(shape)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Function:
    """Value that is a float32 function of each element of `source`: of a DequantizeLinear alone, or also of operators
    after it.

    variants  elementwise functions of float32 numbers (functions.py)
    kinds     kinds of the nodes after the DequantizeLinear, in order; () for the numbers themselves
    real      computes the function in float32 instead: emits operators, and returns their output
    """

    source: Stored
    variants: Variants = IDENTITY
    kinds: tuple[str, ...] = ()
    real: Callable[[], Tensor] | None = None


@dataclass(frozen=True, eq=False)
class Real:
    """A computed tensor that isn't quantized: float32, or integers of shapes and indexes."""

    tensor: Tensor


Value = Constant | Stored | QuantizedConstant | Function | Real
