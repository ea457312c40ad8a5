"""Kernels of QUANTIZE, DEQUANTIZE and CAST (runtime_c/tinyfuse_quantize*.h, tinyfuse_invert_sign.h and
tinyfuse_cast.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.ir.fixedpoint import quantize_multiplier
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.counts.common import Counts, byte_counts, element_counts
from tinyfuse.kernels.elementwise.unary import ElementByElement, places
from tinyfuse.ops.elementwise.quantize import HalfEven


class InvertSign(ElementByElement):
    """QUANTIZE between int8 and uint8 with one scale and zero points that differ by 128."""

    name = "tinyfuse_invert_sign"
    headers = ("tinyfuse_invert_sign.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        if {op.input.dtype, op.output.dtype} != {"int8", "uint8"} or op.input.scale != op.output.scale:
            return False
        apart = op.output.zero_point - op.input.zero_point
        return apart == (128 if op.output.dtype == "uint8" else -128)


class QuantizeHalfEven(ElementByElement):
    """QUANTIZE from float32 to int8 by onnxruntime's arithmetic."""

    name = "tinyfuse_quantize_half_even_f32_s8"
    headers = ("tinyfuse_quantize_half_even.h",)
    by_reciprocal = False

    def accepts(self, op: Op, context: Context) -> bool:
        dtypes = (op.input.dtype, op.output.dtype) == ("float32", "int8")
        return dtypes and isinstance(op.attributes, HalfEven) and op.attributes.by_reciprocal == self.by_reciprocal

    def parameters(self, op: Op) -> tuple[Expr, ...]:
        before = op.attributes_as(HalfEven).before
        return op.output.scale, before, op.output.zero_point - before


class QuantizeByReciprocal(QuantizeHalfEven):
    """QUANTIZE from float32 to int8 by ExecuTorch's arithmetic."""

    name = "tinyfuse_quantize_by_reciprocal_f32_s8"
    by_reciprocal = True

    def parameters(self, op: Op) -> tuple[Expr, ...]:
        return float(np.float32(1) / np.float32(op.output.scale)), op.output.zero_point


class Convert(ElementByElement):
    """QUANTIZE or DEQUANTIZE from dtype `source` to `result`."""

    headers = ("tinyfuse_quantize.h",)

    def __init__(self, source: str, result: str):
        self.source, self.result = source, result
        verb = "quantize" if source == "float32" else "dequantize" if result == "float32" else "rescale"
        self.name = f"tinyfuse_{verb}_{SUFFIX[source]}_{SUFFIX[result]}"
        # going forward, an output element may reach no further than the input element that it is made of
        self.in_place = (0,) if ITEM_BYTES[result] <= ITEM_BYTES[source] else ()

    def accepts(self, op: Op, context: Context) -> bool:
        plain = not isinstance(op.attributes, HalfEven)
        return plain and (op.input.dtype, op.output.dtype) == (self.source, self.result)

    def parameters(self, op: Op) -> tuple[Expr, ...]:
        quantized = op.output if self.source == "float32" else op.input
        return quantized.scale, quantized.zero_point

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        if "float32" in (self.source, self.result):
            return super().call(op, site, context)
        multiplier, shift = quantize_multiplier(op.input.scale / op.output.scale)
        params = {
            "in_zero_point": op.input.zero_point, "out_zero_point": op.output.zero_point,
            "multiplier": multiplier, "shift": shift,
        }  # fmt: skip
        return Let("tinyfuse_rescale", "p", params), Call(self.name, ("&p", *places(op, site)))


class Cast(ElementByElement):
    """CAST from dtype `source` to `result`."""

    headers = ("tinyfuse_cast.h",)

    def __init__(self, source: str, result: str):
        self.source, self.result = source, result
        self.name = f"tinyfuse_cast_{SUFFIX[source]}_{SUFFIX[result]}"
        # C allows bytes, or objects of the same type, to overlap the input
        self.in_place = (0,) if result in ("int8", "bool") or result == source else ()
        self.costs_as = "tinyfuse_copy" if result == source else None

    @property
    def computes_floats(self) -> bool:
        return super().computes_floats and self.source != self.result

    def accepts(self, op: Op, context: Context) -> bool:
        return (op.input.dtype, op.output.dtype) == (self.source, self.result)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return element_counts(op, by_row) if self.costs_as is None else byte_counts(op, by_row)
