"""Kernels of QUANTIZE and DEQUANTIZE (runtime_c/tinyfuse_quantize.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.ir.fixedpoint import quantize_multiplier
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Division, Kernel
from tinyfuse.kernels.core.rows import divide_by_elements, element_count, input_pointer, output_pointer
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.ops.elementwise.quantize import HalfEven


class InvertSign(Kernel):
    """QUANTIZE between int8 and uint8 with one scale and zero points that differ by 128, going forward."""

    name = "tinyfuse_invert_sign"
    headers = ("tinyfuse_invert_sign.h",)
    by_row, rings = True, True
    in_place = (0,)

    def accepts(self, op: Op, context: Context) -> bool:
        if {op.input.dtype, op.output.dtype} != {"int8", "uint8"} or op.input.scale != op.output.scale:
            return False
        apart = op.output.zero_point - op.input.zero_point
        return apart == (128 if op.output.dtype == "uint8" else -128)

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return divide_by_elements(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (input_pointer(site, 0), output_pointer(site), element_count(op.output, site))),)


class QuantizeHalfEven(Kernel):
    """QUANTIZE from float32 to int8 by onnxruntime's arithmetic, element by element, going forward."""

    name = "tinyfuse_quantize_half_even_f32_s8"
    headers = ("tinyfuse_quantize_half_even.h",)
    by_row, rings = True, True
    in_place = (0,)

    def accepts(self, op: Op, context: Context) -> bool:
        dtypes = (op.input.dtype, op.output.dtype) == ("float32", "int8")
        return dtypes and isinstance(op.attributes, HalfEven) and not op.attributes.by_reciprocal

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return divide_by_elements(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        before = op.attributes_as(HalfEven).before
        scaling = (op.output.scale, before, op.output.zero_point - before)
        pointers = (input_pointer(site, 0), output_pointer(site))
        return (Call(self.name, (*pointers, element_count(op.output, site), *scaling)),)


class QuantizeByReciprocal(Kernel):
    """QUANTIZE from float32 to int8 by ExecuTorch's arithmetic, element by element, going forward."""

    name = "tinyfuse_quantize_by_reciprocal_f32_s8"
    headers = ("tinyfuse_quantize_half_even.h",)
    by_row, rings = True, True
    in_place = (0,)

    def accepts(self, op: Op, context: Context) -> bool:
        dtypes = (op.input.dtype, op.output.dtype) == ("float32", "int8")
        return dtypes and isinstance(op.attributes, HalfEven) and op.attributes.by_reciprocal

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return divide_by_elements(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        factor = float(np.float32(1) / np.float32(op.output.scale))
        pointers = (input_pointer(site, 0), output_pointer(site))
        return (Call(self.name, (*pointers, element_count(op.output, site), factor, op.output.zero_point)),)


class Convert(Kernel):
    """QUANTIZE or DEQUANTIZE from dtype `source` to `result`, element by element, going forward."""

    headers = ("tinyfuse_quantize.h",)
    by_row, rings = True, True

    def __init__(self, source: str, result: str):
        self.source, self.result = source, result
        verb = "quantize" if source == "float32" else "dequantize" if result == "float32" else "rescale"
        self.name = f"tinyfuse_{verb}_{SUFFIX[source]}_{SUFFIX[result]}"
        # going forward, an output element may reach no further than the input element that it is made of
        self.in_place = (0,) if ITEM_BYTES[result] <= ITEM_BYTES[source] else ()

    def accepts(self, op: Op, context: Context) -> bool:
        plain = not isinstance(op.attributes, HalfEven)
        return plain and (op.input.dtype, op.output.dtype) == (self.source, self.result)

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return divide_by_elements(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        pointers = (input_pointer(site, 0), output_pointer(site))
        count = element_count(op.output, site)
        if "float32" in (self.source, self.result):
            quantized = op.output if self.source == "float32" else op.input
            return (Call(self.name, (*pointers, count, quantized.scale, quantized.zero_point)),)
        multiplier, shift = quantize_multiplier(op.input.scale / op.output.scale)
        params = {
            "in_zero_point": op.input.zero_point, "out_zero_point": op.output.zero_point,
            "multiplier": multiplier, "shift": shift,
        }  # fmt: skip
        return Let("tinyfuse_rescale", "p", params), Call(self.name, ("&p", *pointers, count))
