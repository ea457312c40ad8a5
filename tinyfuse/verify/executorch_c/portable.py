"""C of PyTorch's operators of float32, as ExecuTorch's portable kernels compute them."""

from __future__ import annotations

import math

import numpy as np

from tinyfuse.frontend.executorch.arguments import Arguments
from tinyfuse.verify.executorch_c.declarations import CTYPES, Declarations, Writer, float_literal, loop, memory_places

_BINARY = {"add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y", "minimum": "x < y ? x : y",
           "maximum": "x > y ? x : y"}  # fmt: skip
_UNARY = {"relu": "x < 0.0f ? 0.0f : x", "abs": "fabsf(x)", "neg": "-x", "sqrt": "sqrtf(x)", "floor": "floorf(x)",
          "ceil": "ceilf(x)"}  # fmt: skip


def _binary(c: Declarations, a: Arguments) -> list[str]:
    ctype, lines = CTYPES[a.out.dtype], []
    for letter, name in (("x", "self"), ("y", "other")):
        value = a.value(name)
        places = np.broadcast_to(memory_places(value), a.out.sizes).transpose(a.out.dim_order)
        lines.append(f"const {ctype} {letter} = {c.pointer(value)}[{c.index(a, places, letter)}];")
    return loop(a.out.elements, *lines, f"{c.pointer(a.out)}[i] = {_BINARY[a.call.name]};")


def _unary(c: Declarations, a: Arguments) -> list[str]:
    return _map(c, a, _UNARY[a.call.name])


def _clamp(c: Declarations, a: Arguments) -> list[str]:
    low, high = a.optional_number("min"), a.optional_number("max")
    text = "x" if low is None else f"(x < {float_literal(low)} ? {float_literal(low)} : x)"
    return _map(c, a, text if high is None else f"({float_literal(high)} < {text} ? {float_literal(high)} : {text})")


def _map(c: Declarations, a: Arguments, text: str) -> list[str]:
    """Write a loop that computes each element of the result from the element `x` of the input."""
    places = memory_places(a.value("input")).transpose(a.out.dim_order)
    read = f"{c.pointer(a.value('input'))}[{c.index(a, places, 'input')}]"
    return loop(a.out.elements, f"const float x = {read};", f"{c.pointer(a.out)}[i] = {text};")


def _mean(c: Declarations, a: Arguments) -> list[str]:
    value = a.value("input")
    axes = sorted(dim % len(value.sizes) for dim in a.integers("dim"))
    places = np.moveaxis(memory_places(value), axes, range(-len(axes), 0))
    count = math.prod(value.sizes[axis] for axis in axes)
    name = c.constant(f"places_{a.call.index}", places, "uint32_t")
    return loop(
        a.out.elements, "float total = 0.0f;",
        f"for (int32_t k = 0; k < {count}; ++k) {{ total += {c.pointer(value)}[{name}[i * {count} + k]]; }}",
        f"{c.pointer(a.out)}[i] = total / {float_literal(count)};",
    )  # fmt: skip


def _layer_norm(c: Declarations, a: Arguments) -> list[str]:
    value, count = a.value("input"), math.prod(a.integers("normalized_shape"))
    epsilon, scaled = float_literal(a.number("eps")), "(row[k] - mean) / deviation"
    for sign, name in (("*", "weight"), ("+", "bias")):
        if (constant := a.optional(name)) is not None:
            scaled = f"({scaled}) {sign} {c.pointer(constant)}[k]"
    return loop(
        value.elements // count, f"const float *row = {c.pointer(value)} + i * {count};",
        "float total = 0.0f, squares = 0.0f;",
        f"for (int32_t k = 0; k < {count}; ++k) {{ total += row[k]; squares += row[k] * row[k]; }}",
        f"const float mean = total / {float_literal(count)};",
        f"const float deviation = sqrtf(squares / {float_literal(count)} - mean * mean + {epsilon});",
        f"for (int32_t k = 0; k < {count}; ++k) {{ {c.pointer(a.out)}[i * {count} + k] = {scaled}; }}",
    )  # fmt: skip


WRITERS: dict[str, Writer] = {
    **{f"aten::{name}.out": _binary for name in _BINARY},
    **{f"aten::{name}.out": _unary for name in _UNARY},
    "aten::clamp.out": _clamp,
    "aten::hardtanh.out": _clamp,
    "aten::mean.out": _mean,
    "aten::native_layer_norm.out": _layer_norm,
}
