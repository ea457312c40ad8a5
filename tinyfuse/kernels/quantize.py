"""Our kernels of QUANTIZE and DEQUANTIZE (runtime_c/tinyfuse_quantize.h)."""

from __future__ import annotations

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.ir.fixedpoint import quantize_multiplier
from tinyfuse.kernels.base import Call, CallSite, Context, Kernel, Let, Statement
from tinyfuse.kernels.c_types import SUFFIX
from tinyfuse.kernels.rows import element_count, input_pointer


class Convert(Kernel):
    """One pair of dtypes, element by element, going forward."""

    headers = ("tinyfuse_quantize.h",)
    by_row, rings = True, True

    def __init__(self, source: str, result: str):
        self.source, self.result = source, result
        verb = "quantize" if source == "float32" else "dequantize" if result == "float32" else "rescale"
        self.name = f"tinyfuse_{verb}_{SUFFIX[source]}_{SUFFIX[result]}"
        # going forward, an output element may only reach the input element it was made of
        self.in_place = (0,) if ITEM_BYTES[result] <= ITEM_BYTES[source] else ()

    def accepts(self, op: Op, context: Context) -> bool:
        return (op.input.dtype, op.output.dtype) == (self.source, self.result)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        pointers = (input_pointer(site, 0), site.output.pointer)
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
