"""C of int8 operators that compute element by element, and of conversions to and from float32."""

from __future__ import annotations

import numpy as np

from tinyfuse.frontend.executorch.arguments import Arguments
from tinyfuse.verify.executorch_c.declarations import Declarations, Writer, float_literal, loop


def _operands(c: Declarations, a: Arguments) -> tuple[list[str], int, bool]:
    """Return (pointers to both operands, elements of one call, whether the operands are swapped).

    An operand of one value for each channel is the second one, and a call computes one pixel.
    """
    first, second = a.value("self"), a.value("other")
    pointers = [c.pointer(first), c.pointer(second)]
    channels = first.sizes[1] if len(first.sizes) == len(second.sizes) == 4 else 0
    by_channel = channels and channels == second.sizes[1] and channels in (first.elements, second.elements)
    if not by_channel:
        return pointers, a.out.elements, False
    swapped = first.elements < second.elements
    return pointers[::-1] if swapped else pointers, channels, swapped


def _loop_over_parts(a: Arguments, statement: str, part: int) -> list[str]:
    return [f"for (int32_t at = 0; at < {a.out.elements}; at += {part}) {{", f"    {statement}", "}"]


def _add(c: Declarations, a: Arguments) -> list[str]:
    (first, second), part, swapped = _operands(c, a)
    numbers = [
        [-a.integer(f"{name}_zero_point"), a.integer(f"{name}_multiplier"), a.integer(f"{name}_shift")]
        for name in ("self", "other")
    ]
    left, right = (", ".join(map(str, each)) for each in (numbers[::-1] if swapped else numbers))
    to = ", ".join(str(a.integer(f"output_{name}")) for name in ("zero_point", "multiplier", "shift"))
    low, high = a.clamp()
    call = c.checked_call("arm_elementwise_add_s8", f"{first} + at", second, left, right, "20",
                          f"{c.pointer(a.out)} + at", to, f"{low}, {high}, {part}")  # fmt: skip
    return _loop_over_parts(a, call, part)


def _multiply(c: Declarations, a: Arguments) -> list[str]:
    (first, second), part, swapped = _operands(c, a)
    points = [-a.integer(f"{name}_zero_point") for name in ("self", "other")]
    left, right = points[::-1] if swapped else points
    to = ", ".join(str(a.integer(f"output_{name}")) for name in ("zero_point", "multiplier", "shift"))
    call = c.checked_call("arm_elementwise_mul_s8", f"{first} + at", second, f"{left}, {right}",
                          f"{c.pointer(a.out)} + at", to, f"-128, 127, {part}")  # fmt: skip
    return _loop_over_parts(a, call, part)


def _divide(c: Declarations, a: Arguments) -> list[str]:
    x, y = a.value("self"), a.value("other")
    points = [a.integer(f"{name}_zero_point") for name in ("self", "other", "output")]
    scale = float_literal(a.scale("output_scale"))
    return loop(
        a.out.elements,
        f"const float above = (float)({c.pointer(x)}[i] - {points[0]});",
        f"const float below = (float)({c.pointer(y)}[i] - {points[1]});",
        f"const float found = roundf((below != 0.0f ? above / below : 0.0f) * {scale});",
        f"{c.pointer(a.out)}[i] = stored(found, {points[2]}, -128, 127);",
    )


def _look_up(c: Declarations, a: Arguments) -> list[str]:
    lut = c.pointer(a.value("lut"))
    index = f"(uint8_t)({c.pointer(a.value('input'))}[i] + 128)"
    return loop(a.out.elements, f"{c.pointer(a.out)}[i] = {lut}[{index}];")


def _choose(c: Declarations, a: Arguments) -> list[str]:
    names = ("self", "other", "out")
    dims = [(1,) * (4 - len(a.value(name).sizes)) + a.value(name).sizes for name in names]
    texts = [f"{name} = {{{', '.join(map(str, sizes))}}}" for name, sizes in zip(names, dims, strict=True)]
    return [
        f"const cmsis_nn_dims {', '.join(texts)};",
        "const cmsis_nn_context context = space(0, 0);",
        c.checked_call(f"arm_{a.call.name}_s8", "&context", *(f"{c.pointer(a.value(n))}, &{n}" for n in names)),
    ]


def _quantize(c: Declarations, a: Arguments) -> list[str]:
    inverse = np.float32(1) / np.float32(a.scale("scale"))
    bounds = ", ".join(str(a.integer(name)) for name in ("zero_point", "quant_min", "quant_max"))
    product = f"{float_literal(inverse)} * {c.pointer(a.value('input'))}[i]"
    return loop(a.out.elements, f"{c.pointer(a.out)}[i] = stored({product}, {bounds});")


def _dequantize(c: Declarations, a: Arguments) -> list[str]:
    number = f"(float)({c.pointer(a.value('input'))}[i] - {a.integer('zero_point')})"
    return loop(a.out.elements, f"{c.pointer(a.out)}[i] = {number} * {float_literal(a.scale('scale'))};")


WRITERS: dict[str, Writer] = {
    "cortex_m::quantize_per_tensor.out": _quantize,
    "cortex_m::dequantize_per_tensor.out": _dequantize,
    "cortex_m::quantized_add.out": _add,
    "cortex_m::quantized_mul.out": _multiply,
    "cortex_m::quantized_div.out": _divide,
    "cortex_m::quantized_activation.out": _look_up,
    "cortex_m::minimum.out": _choose,
    "cortex_m::maximum.out": _choose,
}
