"""Kernels of elementwise operators with two inputs (runtime_c/tinyfuse_elementwise.h, tinyfuse_binary*.h,
tinyfuse_division.h)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, Kernel, element_access_orders
from tinyfuse.kernels.core.methods import of_calls, of_operator
from tinyfuse.kernels.core.rows import (
    constant_operands,
    divide_by_elements,
    element_count,
    output_pointer,
    piece_pointer,
    row_pointers,
)
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement, c_loops
from tinyfuse.kernels.counts.common import Counts, element_counts
from tinyfuse.ops.core import binary as arithmetic
from tinyfuse.ops.core.convolution import clamp_range
from tinyfuse.ops.core.real import real_clamp
from tinyfuse.ops.elementwise.division import div_multiplier, reciprocals

# --- parameters ------------------------------------------------------------------------------

#: C struct of a kernel's parameters, and its fields
Fields = tuple[str, Mapping[str, Any]]
Parameters = Callable[[Op], Fields]

#: header of the operators that most models use
COMMON_HEADER = "tinyfuse_elementwise.h"


def _operand_fields(op: Op, multipliers: Sequence[arithmetic.Multiplier]) -> dict[str, int]:
    """Fields of the operands' zero points and multipliers."""
    (a, a_shift), (b, b_shift), *_ = multipliers
    return {
        "a_zero_point": op.operand(0).zero_point, "a_multiplier": a, "a_right": -a_shift,
        "b_zero_point": op.operand(1).zero_point, "b_multiplier": b, "b_right": -b_shift,
    }  # fmt: skip


def _result_fields(op: Op, multiplier: tuple[int, int], low: int, high: int) -> dict[str, int]:
    """Fields of the result's zero point, multiplier and clamp."""
    return {
        "out_zero_point": op.output.zero_point, "out_multiplier": multiplier[0], "out_shift": multiplier[1],
        "act_min": low, "act_max": high,
    }  # fmt: skip


def rescaling_parameters(
    multipliers: Callable[[Op], Sequence[arithmetic.Multiplier]], clamps: bool = True
) -> Parameters:
    """Parameters of operators that rescale both operands to one scale. `multipliers` returns the multipliers of the
    operands and of the result."""

    def fields(op: Op) -> Fields:
        found = multipliers(op)
        low, high = clamp_range(op) if clamps else RANGE[op.output.dtype]
        return "tinyfuse_binary", _operand_fields(op, found) | _result_fields(op, found[2], low, high)

    return fields


def mul_parameters(op: Op) -> Fields:
    """Parameters of MUL; its operands are not rescaled."""
    operands = _operand_fields(op, ((0, 0), (0, 0)))
    return "tinyfuse_binary", operands | _result_fields(op, arithmetic.mul_multiplier(op), *clamp_range(op))


def float_sum_parameters(op: Op) -> Fields:
    """Parameters of an int8 ADD computed in float32."""
    first, second, rest = map(float, arithmetic.sum_terms(op))
    low, high = clamp_range(op)
    return "tinyfuse_float_sum", {
        "a_factor": first, "b_factor": second, "rest": rest, "offset": op.attributes_as(arithmetic.FloatBinary).offset,
        "act_min": low, "act_max": high,
    }  # fmt: skip


def float_product_parameters(op: Op) -> Fields:
    """Parameters of an int8 MUL computed in float32."""
    offset, (low, high) = op.attributes_as(arithmetic.FloatBinary).offset, clamp_range(op)
    return "tinyfuse_float_product", {
        "a_zero_point": op.operand(0).zero_point, "b_zero_point": op.operand(1).zero_point,
        "factor": float(arithmetic.product_factor(op)), "before": float(op.output.zero_point + offset),
        "offset": offset, "act_min": low, "act_max": high,
    }  # fmt: skip


def clamp_f32_parameters(op: Op) -> Fields:
    """Parameters of float32 operators with a fused activation."""
    low, high = real_clamp(op)
    return "tinyfuse_range_f32", {"low": low, "high": high}


def clamp_s32_parameters(op: Op) -> Fields:
    """Parameters of int32 operators with a fused activation."""
    low, high = arithmetic.whole_clamp(op)
    return "tinyfuse_range_s32", {"low": low, "high": high}


def prelu_parameters(op: Op) -> Fields:
    """Parameters of PRELU of int8, or of int16, whose zero points are 0."""
    (same, same_shift), (scaled, scaled_shift) = arithmetic.prelu_multipliers(op)
    fields = {
        "alpha_zero_point": op.operand(1).zero_point, "out_zero_point": op.output.zero_point,
        "multiplier": same, "shift": same_shift, "alpha_multiplier": scaled, "alpha_shift": scaled_shift,
    }  # fmt: skip
    if op.output.dtype == "int8":
        return "tinyfuse_prelu", {"in_zero_point": op.operand(0).zero_point, **fields}
    del fields["out_zero_point"]
    return "tinyfuse_prelu_wide", fields


def comparison_parameters(op: Op) -> Fields:
    """Parameters of int8 comparisons: multipliers, shifts and zero points of both operands."""
    return "tinyfuse_comparison", _operand_fields(op, arithmetic.comparison_multipliers(op))


# --- kernels ---------------------------------------------------------------------------------


class _BinaryKernel(Kernel):
    """Base of kernels of a binary elementwise operator whose operands have one dtype.

    work       name of the count of elements in fused loops; empty if tinyfuse_fused_loop.h lacks the kind.
    like       kind whose costs apply, because the C differs only in a sign; empty: the kernel has its own.
    in_floats  int8 operands are computed in float32, like those of FloatBinary.
    """

    by_row, rings = True, True

    variant = ""
    constants = of_operator(constant_operands)

    @property
    def computes_floats(self) -> bool:
        return self.in_floats or super().computes_floats

    def __init__(
        self, kind: str, dtype: str, parameters: Parameters | None, header: str,
        work: str = "", like: str = "", in_floats: bool = False,
    ):  # fmt: skip
        self.dtype, self.parameters, self.headers, self.in_floats = dtype, parameters, (header,), in_floats
        self._function, self._work = kind.lower(), work
        self.name = f"tinyfuse_{kind.lower()}{self.variant}_{SUFFIX[dtype]}"
        self.costs_as = f"tinyfuse_{like.lower()}{self.variant}_{SUFFIX[dtype]}" if like else None

    def element(self, op: Op) -> Element | None:
        computed = isinstance(op.attributes, arithmetic.FloatBinary) == self.in_floats
        if not self._work or not computed or op.operand(0).dtype != self.dtype:
            return None
        # without parameters, one function serves the stored integers of every dtype
        for_all_integers = self.dtype != "float32" and self.parameters is None
        suffix = "" if for_all_integers or self.dtype == "int8" else f"_{SUFFIX[self.dtype]}"
        return Element(self._function, self._work, self.parameters(op) if self.parameters else None, suffix=suffix)

    def accepts(self, op: Op, context: Context) -> bool:
        if isinstance(op.attributes, arithmetic.FloatBinary) != self.in_floats:
            return False
        if self.dtype == "int32" and arithmetic.clamps_whole(op) != (self.parameters is not None):
            return False  # int32 has no parameters except a clamp
        return op.operand(0).dtype == self.dtype

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        """Let the output overwrite operands that are not broadcast. They must have its dtype, unless the output's
        elements are bytes: C compilers assume that objects of other types do not overlap."""
        whole = [i for i, tensor in enumerate(op.operands) if tensor.elements == op.output.elements]
        dtype, of_bytes = op.output.dtype, ITEM_BYTES[op.output.dtype] == 1
        return element_access_orders(op, [i for i in whole if of_bytes or op.operand(i).dtype == dtype])

    def with_parameters(self, op: Op, lets: tuple[Let, ...], *args: Expr) -> tuple[Statement, ...]:
        """Statements of a call: definition of the parameters, if there are any, `lets`, and the call."""
        if self.parameters is None:
            return *lets, Call(self.name, args)
        ctype, fields = self.parameters(op)
        return Let(ctype, "p", fields), *lets, Call(self.name, ("&p", *args))


def have_one_size(op: Op) -> bool:
    """Tells whether the operands have as many elements as the output, so that none is broadcast."""
    return all(tensor.elements == op.output.elements for tensor in op.operands)


class EqualShapes(_BinaryKernel):
    """Binary elementwise kernel of operands that have the output's shape. One loop reads them forward, so that the
    output may overwrite one of them."""

    division = of_calls(divide_by_elements)

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Counts of `element_counts`, in which constant operands are among the "inputs". Also "rests": elements of a
        call that do not fill eight; "raised": elements whose rescaled value is not shifted right; "clamped_outputs"."""
        counts, elements = element_counts(op, by_row), op.output.elements
        calls, fields = counts["calls"], {} if self.parameters is None else self.parameters(op)[1]
        clamped = "act_min" in fields and (fields["act_min"], fields["act_max"]) != RANGE[self.dtype]
        return {
            **counts,
            "inputs": elements * len(op.operands),
            "rests": calls * (elements // calls % 8),
            "raised": elements * (fields.get("out_shift", -1) >= 0),
            "clamped_outputs": elements * clamped,
        }

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and have_one_size(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        row = 0 if site.row is None else op.output.elements // op.output.shape[1]
        operands = (piece_pointer(pointer, site) for pointer in row_pointers(site, [row] * len(site.inputs)))
        return self.with_parameters(op, (), *operands, output_pointer(site), element_count(op.output, site))


class Broadcast(_BinaryKernel):
    """Binary elementwise kernel of operands of any shapes that broadcast, which are read forward by strides. The output
    may therefore overwrite an operand that is not repeated. By rows, an operand that the run computes has as many rows
    as the output, or one row that is read for each of the output's."""

    variant = "_broadcast"

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Counts of `element_counts`, and "strips": how often the innermost loop starts."""
        strips = op.output.elements // max(1, self._loops(op, by_row).dims[-1])
        return {**element_counts(op, by_row), "strips": strips}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        steps, by_row = [0, 0], site.row is not None
        if by_row:
            steps = [arithmetic.operand_strides(tensor.shape, op.output.shape)[1] for tensor in op.operands]
        loops = self._loops(op, by_row)
        nest = {
            "dim": c_loops(loops.dims, arithmetic.MOST_LOOPS, 1),
            "a_stride": c_loops(loops.a_strides, arithmetic.MOST_LOOPS, 0),
            "b_stride": c_loops(loops.b_strides, arithmetic.MOST_LOOPS, 0),
        }
        let = Let("tinyfuse_broadcast", "nest", nest)
        return self.with_parameters(op, (let,), "&nest", *row_pointers(site, steps), site.output.pointer)

    @staticmethod
    def _loops(op: Op, by_row: bool) -> arithmetic.Loops:
        """Loops of a call."""
        output, (a, b) = op.output.shape, (tensor.shape for tensor in op.operands)
        if by_row:
            a, b = (((1,) * (4 - len(shape)) + shape)[2:] for shape in (a, b))
            output = output[2:]
        return arithmetic.broadcast_loops(output, a, b)


#: dtype -> header of most operators
_HEADERS = {
    "int8": "tinyfuse_binary.h", "int32": "tinyfuse_binary.h", "bool": "tinyfuse_binary.h",
    "int16": "tinyfuse_binary_s16.h", "float32": "tinyfuse_binary_f32.h",
}  # fmt: skip


def kernels(
    kind: str, dtype: str, parameters: Parameters | None = None, work: str = "", like: str = "", header: str = "",
    in_floats: bool = False,
) -> tuple[Kernel, ...]:  # fmt: skip
    """Kernels of a kind for operands of one dtype, best first. `parameters`: function that returns the C function's
    parameters, None if it takes none; other arguments: see _BinaryKernel."""
    given = kind, dtype, parameters, header or _HEADERS[dtype], work, like, in_floats
    return EqualShapes(*given), Broadcast(*given)


def in_floats(kind: str, parameters: Parameters) -> tuple[Kernel, ...]:
    """Return the kernels of an operator kind whose int8 operands are computed in float32, the best first."""
    return kernels(kind, "int8", parameters, header="tinyfuse_float_binary.h", in_floats=True)


def clamped_kernels(kind: str) -> tuple[Kernel, ...]:
    """Kernels of a kind for int32 with a fused activation."""
    return kernels(f"{kind}_clamped", "int32", clamp_s32_parameters, header="tinyfuse_binary_wide.h")


def wide_kernels(kind: str, *dtypes: str, like: str = "") -> tuple[Kernel, ...]:
    """Kernels of a kind for int64, or for int32 and bool if few models use the kind with them."""
    wide = "tinyfuse_binary_wide.h"
    return tuple(k for dtype in dtypes for k in kernels(kind, dtype, like=like, header=wide))


def _div_parameters(op: Op) -> Fields:
    """Parameters of int8 DIV."""
    multiplier, shift = div_multiplier(op)
    low, high = clamp_range(op)
    return "tinyfuse_div", {
        "a_zero_point": op.operand(0).zero_point, "b_zero_point": op.operand(1).zero_point,
        "out_zero_point": op.output.zero_point, "multiplier": multiplier, "shift": shift,
        "act_min": low, "act_max": high,
    }  # fmt: skip


class _WithReciprocals(Kernel):
    """Mixin that adds the table of reciprocals to a kernel's constants and parameters."""

    indivisible = True

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        table = Constant("reciprocals", reciprocals().astype(np.int32), "int32_t")
        return *super().constants(op, context), table

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        params, *rest = super().call(op, site, context)  # type: ignore[safe-super]
        assert isinstance(params, Let)
        assert isinstance(params.value, Mapping)
        return replace(params, value={"reciprocals": site.constant("reciprocals"), **params.value}), *rest


class _DivEqual(_WithReciprocals, EqualShapes):
    pass


class _DivBroadcast(_WithReciprocals, Broadcast):
    pass


def int8_div_kernels() -> tuple[Kernel, ...]:
    """Kernels of int8 DIV."""
    return tuple(sort("DIV", "int8", _div_parameters, "tinyfuse_division.h") for sort in (_DivEqual, _DivBroadcast))
