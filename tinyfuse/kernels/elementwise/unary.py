"""Kernels of functions of one value (runtime_c/tinyfuse_activation.h, tinyfuse_unary_s16.h, tinyfuse_unary_f32.h).

An int8 function has 256 results, so its reference gives all of them at compile time, for a table. If they are a clamp
of the stored value, no table is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import activation_range, quantize_multiplier
from tinyfuse.kernels.core.c_types import CTYPE, SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, require_proven
from tinyfuse.kernels.core.methods import always, of_calls
from tinyfuse.kernels.core.rows import divide_by_elements, element_count, input_pointer, output_pointer
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.counts.common import Counts, count_calls
from tinyfuse.ops.core.unary import scale_ratio
from tinyfuse.ops.elementwise.activations import LeakyRelu, alpha_multiplier, logistic_scaling, tanh_scaling
from tinyfuse.ops.elementwise.gelu import Gelu
from tinyfuse.ops.elementwise.sigmoid import SIGMOID_TABLE
from tinyfuse.ops.elementwise.table import TABLE_VALUES


class ElementByElement(Kernel):
    """Base of kernels that compute each output element from one input element, going forward."""

    by_row, rings = True, True
    in_place: tuple[int, ...] = (0,)
    division = of_calls(divide_by_elements)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (*places(op, site), *self.parameters(op))),)

    def parameters(self, op: Op) -> tuple[Expr, ...]:
        """C arguments of the call after input, output and count."""
        return ()


def places(op: Op, site: CallSite) -> tuple[str, str, int | str]:
    """C arguments of a call: input, output, and number of elements."""
    return input_pointer(site, 0), output_pointer(site), element_count(op.output, site)


class Not(ElementByElement):
    """LOGICAL_NOT (runtime_c/tinyfuse_binary.h)."""

    name = "tinyfuse_logical_not_bool"
    headers = ("tinyfuse_binary.h",)
    element = always(Element("logical_not", "choices"))


class UnaryKernel(ElementByElement):
    """Function of one value of `dtype`."""

    def __init__(self, function: str, dtype: str):
        self.function, self.dtype = function, dtype
        self.name = f"tinyfuse_{function}_{SUFFIX[dtype]}"
        self.headers = (f"tinyfuse_unary_{SUFFIX[dtype]}.h",)


class LeakyReluF32(UnaryKernel):
    """LEAKY_RELU of float32."""

    def parameters(self, op: Op) -> tuple[Expr, ...]:
        return (float(np.float32(op.attributes_as(LeakyRelu).alpha)),)


class AbsS16(UnaryKernel):
    """ABS of int16."""

    def parameters(self, op: Op) -> tuple[Expr, ...]:
        return quantize_multiplier(scale_ratio(op))


class ClampS16(UnaryKernel):
    """RELU6 of int16, and RELU if input and output have the same quantization."""

    def accepts(self, op: Op, context: Context) -> bool:
        return self._clamps(op)

    def element(self, op: Op) -> Element | None:
        return Element("clamp", "choices", numbers=self.parameters(op)) if self._clamps(op) else None

    def _clamps(self, op: Op) -> bool:
        """Tells whether the function is a clamp of the stored value."""
        return op.input.dtype == self.dtype and (op.kind == "RELU6" or op.input.quant == op.output.quant)

    def parameters(self, op: Op) -> tuple[int, int]:
        return activation_range(op.kind, op.input.scale, op.input.zero_point, self.dtype)


class TwoSlopes(UnaryKernel):
    """RELU and LEAKY_RELU of int16."""

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        below = alpha_multiplier(op) if op.kind == "LEAKY_RELU" else 0.0
        (multiplier, shift), (below_multiplier, below_shift) = map(quantize_multiplier, (scale_ratio(op), abs(below)))
        fields = {
            "multiplier": multiplier, "shift": shift,
            "below_multiplier": below_multiplier, "below_shift": below_shift, "negated": int(below < 0),
            "low": 0 if op.kind == "RELU" else -32768,
        }  # fmt: skip
        return Let("tinyfuse_two_slopes", "p", fields), Call(self.name, ("&p", *places(op, site)))


class Sigmoid(UnaryKernel):
    """LOGISTIC and TANH of int16."""

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("sigmoid", SIGMOID_TABLE, "uint16_t"),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        scaling = logistic_scaling(op) if op.kind == "LOGISTIC" else tanh_scaling(op)
        return (Call(self.name, (site.constant("sigmoid"), *places(op, site), *scaling)),)


class GeluF32(UnaryKernel):
    """GELU of float32 by the exact or the approximate formula (runtime_c/tinyfuse_power.h)."""

    def __init__(self, approximate: bool):
        super().__init__("approximate_gelu" if approximate else "gelu", "float32")
        self.approximate, self.headers = approximate, ("tinyfuse_power.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and op.attributes_as(Gelu).approximate == self.approximate


class ReluF32(UnaryKernel):
    """RELU and RELU6 of float32."""

    def element(self, op: Op) -> Element | None:
        return Element(self.function, "choices", suffix="_f32") if op.input.dtype == self.dtype else None


class _Tabled(ElementByElement):
    """Base of kernels of a function of one stored value. `function(op, values)` is its reference."""

    headers = ("tinyfuse_activation.h",)

    def __init__(self, function: Callable[[Op, Array], Array]):
        self._function = function

    def table(self, op: Op) -> Array:
        """Results for TABLE_VALUES, int8 [256] or int16 [256]."""
        return self._function(op, TABLE_VALUES)


class Clamp(_Tabled):
    """RELU6, and RELU if input and output have the same quantization."""

    name = "tinyfuse_activation_clamp_s8"

    def accepts(self, op: Op, context: Context) -> bool:
        return self._limits(op) is not None

    def _limits(self, op: Op) -> tuple[int, int] | None:
        """Least and largest result if the function is a clamp; otherwise None."""
        if not op.input.dtype == op.output.dtype == "int8":
            return None
        table = self.table(op)
        clamps = np.array_equal(table, np.clip(TABLE_VALUES, table.min(), table.max()))
        return (int(table.min()), int(table.max())) if clamps else None

    def element(self, op: Op) -> Element | None:
        limits = self._limits(op)
        return None if limits is None else Element("clamp", "choices", numbers=limits)

    def parameters(self, op: Op) -> tuple[int, int]:
        return require_proven(self._limits(op))


class Lookup(_Tabled):
    """Kernel of a function of one int8 value, by a table of 256 results of dtype `result`."""

    def __init__(self, function: Callable[[Op, Array], Array], result: str = "int8"):
        super().__init__(function)
        self.result = result
        self.name = f"tinyfuse_activation_lookup_s8{'' if result == 'int8' else '_' + SUFFIX[result]}"

    def accepts(self, op: Op, context: Context) -> bool:
        return op.input.dtype == "int8" and op.output.dtype == self.result

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("table", self.table(op), CTYPE[self.result]),)

    def element(self, op: Op) -> Element | None:
        if not op.input.dtype == op.output.dtype == self.result == "int8":
            return None
        return Element("look_up", "lookups", table=self.table(op))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (site.constant("table"), *places(op, site))),)


class ChannelLookup(Kernel):
    """Kernel of a function of one int8 value that differs by channel, by a table for each channel."""

    headers = ("tinyfuse_activation.h",)
    by_row, rings = True, True
    in_place = (0,)

    def __init__(self, result: str):
        self.dtype = result
        self.name = f"tinyfuse_channel_lookup_s8{'' if result == 'int8' else '_' + SUFFIX[result]}"

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("tables", op.operand(1).values, CTYPE[self.dtype]),)

    def element(self, op: Op) -> Element | None:
        if not op.output.dtype == self.dtype == "int8":
            return None
        return Element("look_up_channel", "channel_lookups", table=op.operand(1).values)

    def counts(self, op: Op, by_row: bool) -> Counts:
        channels = op.output.shape[-1]
        pixels = op.output.elements // channels
        return {
            "calls": count_calls(op, by_row),
            "rows": pixels,
            "words": pixels * (channels // 4),
            "rests": pixels * (channels % 4),
            "row_vectors": pixels * -(-channels // 8),
        }

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        channels = op.output.shape[-1]
        pixels = op.output.elements // (channels if site.row is None else channels * op.output.shape[1])
        args = (site.constant("tables"), input_pointer(site, 0), site.output.pointer, pixels, channels)
        return (Call(self.name, args),)
