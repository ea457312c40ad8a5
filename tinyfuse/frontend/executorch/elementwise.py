"""Calls that compute each element of the result from the operands' elements at the same place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.frontend.executorch.arguments import INT8, Arguments, real
from tinyfuse.frontend.executorch.graph import NHWC, Converter
from tinyfuse.frontend.executorch.portable import broadcast_operands
from tinyfuse.frontend.executorch.program import Value
from tinyfuse.frontend.executorch.quantization import Quantizations
from tinyfuse.frontend.tensors import HINT_UNSOUND, Refused, constant_tensor
from tinyfuse.ir import Op, Quant, Tensor
from tinyfuse.ir.fixedpoint import quantize_multiplier
from tinyfuse.ops.core.binary import ADD_SHIFT, Binary, add_multipliers
from tinyfuse.ops.elementwise.quantize import HalfEven
from tinyfuse.ops.elementwise.table import TABLE_VALUES, Table

#: ScalarType of int8
_CHAR = 1
_HINT_INT8 = "quantize activations to int8, with quant_min -128 and quant_max 127"


def _common_shape(c: Converter, values: Sequence[Value], out: Value) -> tuple[int, ...] | None:
    """Return the shape in memory of values and result; None where their sizes or orders of dimensions differ."""
    alike = all(value.sizes == out.sizes and value.lies_as(out.dim_order) for value in values)
    return c.memory_shape(out) if alike else None


def _operands(c: Converter, a: Arguments, ends: tuple[int, int] = INT8) -> tuple[list[Tensor], tuple[int, ...]]:
    """Return the operands of a call, and the shape of its result.

    Both operands have that shape, or one of them has one value for each channel.

    ends  least and greatest zero point of an operand
    """
    values = [a.value("self"), a.value("other")]
    points = [a.integer(f"{name}_zero_point", ends) for name in ("self", "other")]
    shape = _common_shape(c, values, a.out)
    if shape is not None:
        return [c.read(v, shape, c.quant(v, point)) for v, point in zip(values, points, strict=True)], shape
    channels = {value.sizes[1] for value in values if len(value.sizes) == 4}
    single = any(len(value.sizes) == 4 and value.elements == value.sizes[1] for value in values)
    if len(channels) != 1 or not single or len(values[0].sizes) != len(values[1].sizes) or not a.out.lies_as(NHWC):
        sizes = " and ".join(str(list(value.sizes)) for value in values)
        raise Refused(
            f"its operands have sizes {sizes}", "give both one shape, or one of them a value for each channel"
        )
    images = [c.image(a, name, point) for name, point in zip(("self", "other"), points, strict=True)]
    return images, tuple(np.broadcast_shapes(*(image.shape for image in images)))


def state_add(q: Quantizations, a: Arguments) -> None:
    """State the ratios of scales that a sum's multipliers give."""
    values = [a.value("self"), a.value("other")]
    factors = [real(*a.multiplier(name)) for name in ("self", "other", "output")]
    for value, name in zip((*values, a.out), ("self", "other", "output"), strict=True):
        q.has(value, a.integer(f"{name}_zero_point", INT8))
    if min(factors) > 0:
        q.relate(values[:1], values[1:], factors[0] / factors[1])
        larger = values[0] if factors[0] >= factors[1] else values[1]
        q.relate((larger,), (a.out,), factors[2] * 2.0 ** (ADD_SHIFT["int8"] - 1))


def convert_add(c: Converter, a: Arguments) -> None:
    """quantized_add: ADD, whose scales give the call's multipliers."""
    wanted = tuple(a.multiplier(name) for name in ("self", "other", "output"))
    operands, shape = _operands(c, a)
    attributes = Binary(clamp=a.clamp())
    result = Tensor("", shape, "int8", c.quantizations.quant(a.out))
    if add_multipliers(Op("ADD", tuple(operands), (result,))) == wanted:
        c.set(a, "ADD", operands, shape, attributes)
        return
    # scales from other calls give other multipliers: let this ADD have its own scales of second operand and result
    first, second = operands
    factors = [real(*multiplier) for multiplier in wanted]
    if min(factors) > 0:
        ratio = second.quantization.zero_point
        quant = Quant((first.scale * factors[1] / factors[0],), ratio)
        second = c.emit("RESHAPE", (second,), second.shape, "int8", quant, f"{second.name} (other scale)")
        scale = max(first.scale, second.scale) / (factors[2] * 2.0 ** (ADD_SHIFT["int8"] - 1))
        result = Tensor("", shape, "int8", Quant((scale,), (0,)))
        if add_multipliers(Op("ADD", (first, second), (result,))) == wanted:
            c.set_scaled(a, "ADD", (first, second), shape, attributes, scale)
            return
    raise Refused("its multipliers are not those of a sum", "quantize the model again with CortexMQuantizer")


#: least and greatest zero point of a product's operands. Zero points beyond int8 add a constant to an operand, as
#: Hardswish does; with these ones no kernel's products overflow.
_PRODUCT_POINTS = (-(2**13), 2**13)


def state_mul(q: Quantizations, a: Arguments) -> None:
    """Records the zero points of a product's operands and output, and that the output's scale is the product of the
    operands' scales divided by the multiplier."""
    values = (a.value("self"), a.value("other"))
    for value, name in zip(values, ("self", "other"), strict=True):
        point = a.integer(f"{name}_zero_point", _PRODUCT_POINTS)
        if INT8[0] <= point <= INT8[1]:
            q.has(value, point)
    q.has(a.out, a.integer("output_zero_point", INT8))
    q.relate(values, (a.out,), real(*a.multiplier("output")))


def convert_mul(c: Converter, a: Arguments) -> None:
    """quantized_mul: MUL, whose scales give the call's multiplier."""
    wanted = a.multiplier("output")
    operands, shape = _operands(c, a, _PRODUCT_POINTS)
    far = any(not INT8[0] <= operand.zero_point <= INT8[1] for operand in operands)
    if wanted[0] == 0 or (far and wanted[1] > 0):
        raise Refused("its multiplier is 0, or its products overflow", "quantize the model again with CortexMQuantizer")
    product = operands[0].scale * operands[1].scale
    own = c.quantizations.quant(a.out).scale[0]
    scale = own if quantize_multiplier(product / own) == wanted else product / real(*wanted)
    c.set_scaled(a, "MUL", operands, shape, Binary(), scale)


def state_div(q: Quantizations, a: Arguments) -> None:
    """Record the zero points of a quotient's operands and output."""
    for value, name in zip((a.value("self"), a.value("other"), a.out), ("self", "other", "output"), strict=True):
        q.has(value, a.integer(f"{name}_zero_point", INT8))


def convert_div(c: Converter, a: Arguments) -> None:
    """quantized_div by one constant number: a table of its kernel's float32 quotients."""
    value, other = a.value("self"), a.value("other")
    if other.data is None or len(set(other.data.tolist())) != 1:
        raise Refused("it divides by a computed value", "divide by a constant, or multiply")
    divisor = np.float32(int(other.data[0]) - a.integer("other_zero_point", INT8))
    numbers = (TABLE_VALUES.astype(np.int32) - a.integer("self_zero_point", INT8)).astype(np.float32)
    quotients = numbers / divisor if divisor else np.zeros(256, np.float32)
    products = quotients * np.float32(a.scale("output_scale"))
    rounded = np.copysign(np.floor(np.abs(products.astype(np.float64)) + 0.5), products)
    _set_table(c, a, value, np.clip(rounded + a.integer("output_zero_point", INT8), *INT8).astype(np.int8), "DIV")


def _set_table(c: Converter, a: Arguments, value: Value, results: np.ndarray, kind: str) -> None:
    """Convert a call into a TABLE. `results` are those of TABLE_VALUES."""
    shape = _common_shape(c, (value,), a.out)
    if shape is None:
        raise Refused(f"it makes {a.out} of {value}", HINT_UNSOUND)
    table = constant_tensor(f"table_{a.call.index}", results)
    c.set(a, "TABLE", (c.read(value, shape), table), shape, Table((kind,)))


def state_nothing(q: Quantizations, a: Arguments) -> None:
    """State nothing: the call's kernel reads no quantization."""


def convert_table(c: Converter, a: Arguments) -> None:
    """quantized_activation: a table of 256 results, that of -128 first."""
    table = a.constant("lut", "int8").reshape(-1)
    if len(table) != 256:
        raise Refused(f"its table has {len(table)} values", HINT_UNSOUND)
    _set_table(c, a, a.value("input"), table[TABLE_VALUES.astype(np.int64) + 128], "ACTIVATION")


def state_choice(q: Quantizations, a: Arguments) -> None:
    """Record that the greater or lesser of two values has the quantization of both."""
    if a.out.dtype == "int8":
        q.alike(a.value("self"), a.out)
        q.alike(a.value("other"), a.out)


def convert_choice(c: Converter, a: Arguments) -> None:
    """Convert `minimum` and `maximum`."""
    if any(value.dtype not in ("int8", "float32") for value in (a.value("self"), a.value("other"), a.out)):
        raise Refused("its operands are neither int8 nor float32", _HINT_INT8)
    # of 0.0 and -0.0, which are equal, MINIMUM takes the second operand and std::min the first
    operands, shape = broadcast_operands(c, a, ("other", "self"), c.quant(a.out))
    c.set(a, a.call.name.upper(), operands, shape)


def _converted_value(c: Converter, a: Arguments, dtype: str, result: str) -> tuple[Value, tuple[int, ...]]:
    """Return the input of a conversion between int8 and float32, and its shape. Refused for other dtypes or bounds."""
    ends = a.integer("quant_min"), a.integer("quant_max")
    if ends != INT8 or a.integer("dtype") != _CHAR:
        raise Refused(f"it quantizes to another dtype, or to {ends[0]} to {ends[1]}", _HINT_INT8)
    value = a.value("input")
    shape = _common_shape(c, (value,), a.out)
    if shape is None or (value.dtype, a.out.dtype) != (dtype, result):
        raise Refused(f"it makes {a.out} of {value}", _HINT_INT8)
    return value, shape


def state_quantize(q: Quantizations, a: Arguments) -> None:
    """Record the quantization of the result."""
    q.has(a.out, a.integer("zero_point", INT8), a.scale("scale"))


def state_dequantize(q: Quantizations, a: Arguments) -> None:
    """State the quantization of the input."""
    q.has(a.value("input"), a.integer("zero_point", INT8), a.scale("scale"))


def convert_quantize(c: Converter, a: Arguments) -> None:
    """quantize_per_tensor, from float32: the product with 1 / scale is rounded, halves to even."""
    value, shape = _converted_value(c, a, "float32", "int8")
    c.set(a, "QUANTIZE", (c.read(value, shape),), shape, HalfEven(by_reciprocal=True))


def convert_dequantize(c: Converter, a: Arguments) -> None:
    """Convert dequantize_per_tensor to a DEQUANTIZE to float32."""
    value, shape = _converted_value(c, a, "int8", "float32")
    quant = Quant((a.scale("scale"),), (a.integer("zero_point", INT8),))
    c.set(a, "DEQUANTIZE", (c.read(value, shape, quant),), shape)
