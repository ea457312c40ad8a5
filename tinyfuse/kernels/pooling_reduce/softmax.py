"""Kernels of SOFTMAX (runtime_c/tinyfuse_softmax*.h), LOG_SOFTMAX (tinyfuse_log_softmax.h) and L2_NORMALIZATION
(tinyfuse_l2_normalization.h, tinyfuse_l2_f32.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.methods import always
from tinyfuse.kernels.core.rows import vectors
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts, element_counts
from tinyfuse.ops.pooling_reduce import softmax_scaling as scalings
from tinyfuse.ops.pooling_reduce.softmax import exps_of_differences
from tinyfuse.ops.pooling_reduce.softmax_tables import exp_table, reciprocal_table
from tinyfuse.ops.pooling_reduce.table_softmax import output_factor


class SoftmaxInt8(Kernel):
    """SOFTMAX of int8 to int8 or int16, vector by vector of the last dimension."""

    headers = ("tinyfuse_softmax.h",)
    by_row, rings = True, True

    #: instructions of the slowest exponential divided by those of an average one: the slowest multiplies by all
    #: factors, the average one by half of them. Measured on Cortex-M55, M4, M3 and M0+
    longest_exp = 1.2

    def __init__(self, out_dtype: str):
        self.out_dtype = out_dtype
        self.name = "tinyfuse_softmax_s8" if out_dtype == "int8" else "tinyfuse_softmax_s8_s16"
        self.in_place = (0,) if out_dtype == "int8" else ()

    def accepts(self, op: Op, context: Context) -> bool:
        return (op.input.dtype, op.output.dtype) == ("int8", self.out_dtype)

    def scratch(self, op: Op, context: Context) -> int:
        return 4 * op.input.shape[-1]

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Counts of `element_counts`, and exponentials ("exps"): values that are far enough below the vector's largest
        count as zero and need none. Assumes evenly distributed values."""
        rows, reach = op.input.elements // op.input.shape[-1], 1 - scalings.softmax_scaling(op)[2]
        exps = rows + (op.input.elements - rows) * min(1.0, reach / 256)
        return {**element_counts(op, by_row), "exps": exps}

    def slowest_counts(self, op: Op, by_row: bool) -> Counts:
        """Counts if every value needs an exponential, and each takes the longest."""
        counts = {**self.counts(op, by_row), "exps": op.input.elements}
        return {name: self.longest_exp * count for name, count in counts.items()}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        multiplier, left_shift, least = scalings.softmax_scaling(op)
        depth, (pointer, rows) = op.input.shape[-1], vectors(op, site)
        fields = {
            "rows": rows, "depth": depth,
            "multiplier": multiplier, "left_shift": left_shift, "least_difference": least,
        }  # fmt: skip
        pointers = (pointer, site.output.pointer, site.scratch)
        return Let("tinyfuse_softmax", "p", fields), Call(self.name, ("&p", *pointers))


#: fewest values for which a table of about 800 bytes pays: each byte of flash must save 32 instructions, and the table
#: saves 150 (Cortex-M4) to 590 (Cortex-M0+) per value
_MANY_VALUES = 160


class SoftmaxLookup(SoftmaxInt8):
    """SOFTMAX of int8 with a table of the exponentials of all differences, for many values."""

    longest_exp = 1.0
    scratch = always(0)

    def __init__(self) -> None:
        super().__init__("int8")
        self.name, self.headers = "tinyfuse_softmax_lookup_s8", ("tinyfuse_softmax_lookup.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and op.input.elements >= _MANY_VALUES

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        exps = exps_of_differences(op)
        # Helium looks up every lane, so exps that count as zero need an entry
        return (Constant("exps", np.append(exps, np.int32(0)) if context.target.mve else exps, "int32_t"),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        pointer, rows = vectors(op, site)
        fields = {"rows": rows, "depth": op.input.shape[-1], "differences": len(exps_of_differences(op))}
        pointers = (pointer, site.output.pointer)
        return Let("tinyfuse_softmax_lookup", "p", fields), Call(self.name, ("&p", *pointers, site.constant("exps")))


class TableSoftmax(Kernel):
    """SOFTMAX over the last dimension with onnxruntime's arithmetic, by a table of exponentials."""

    name = "tinyfuse_table_softmax_s8"
    headers = ("tinyfuse_table_softmax.h",)
    by_row, rings = True, True
    in_place = (0,)

    @property
    def computes_floats(self) -> bool:
        return True

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("exps", op.operand(1).values, "float"),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        sizes = (*vectors(op, site), op.input.shape[-1])
        scaling = (output_factor(op), op.output.zero_point)
        return (Call(self.name, (*sizes, site.constant("exps"), *scaling, site.output.pointer)),)


class SoftmaxTables(Kernel):
    """SOFTMAX of int16, with tables of exponentials and reciprocals."""

    name = "tinyfuse_softmax_rows_s16"
    headers = ("tinyfuse_softmax_s16.h",)
    by_row, rings = True, True
    in_place = (0,)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.input.dtype == "int16"

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return Constant("exps", exp_table(), "int16_t"), Constant("reciprocals", reciprocal_table(), "int16_t")

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (multiplier, shift), depth = scalings.int16_scaling(op), op.input.shape[-1]
        pointer, rows = vectors(op, site)
        fields = {
            "rows": rows, "depth": depth, "multiplier": multiplier, "shift": shift,
            "exps": site.constant("exps"), "reciprocals": site.constant("reciprocals"),
        }  # fmt: skip
        pointers = (pointer, site.output.pointer)
        return Let("tinyfuse_softmax_s16", "p", fields), Call(self.name, ("&p", *pointers))


class SoftmaxFloats(Kernel):
    """SOFTMAX of float32."""

    name, dtype = "tinyfuse_softmax_f32", "float32"
    headers = ("tinyfuse_softmax_f32.h",)
    by_row, rings = True, True
    in_place = (0,)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        depth, beta = op.input.shape[-1], op.attributes_as(scalings.Softmax).beta
        return (Call(self.name, (*vectors(op, site), depth, beta, site.output.pointer)),)


class Normalization(Kernel):
    """L2_NORMALIZATION, or LOG_SOFTMAX of float32, vector by vector of the last dimension."""

    in_place = (0,)

    def __init__(self, function: str, dtype: str, header: str):
        self.dtype, self.name, self.headers = dtype, f"tinyfuse_{function}_{SUFFIX[dtype]}", (header,)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        depth = op.input.shape[-1]
        scaling = (op.input.zero_point,) if self.dtype == "int8" else ()
        args = (site.input(0).pointer, op.input.elements // depth, depth, *scaling, site.output.pointer)
        return (Call(self.name, args),)


class LogSoftmaxWhole(Kernel):
    """LOG_SOFTMAX of int8, vector by vector of the last dimension."""

    name, dtype = "tinyfuse_log_softmax_s8", "int8"
    headers = ("tinyfuse_log_softmax.h",)
    in_place = (0,)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        multiplier, left_shift, least = scalings.difference_scaling(op.input.scale)
        depth = op.input.shape[-1]
        fields = {
            "rows": op.input.elements // depth, "depth": depth,
            "multiplier": multiplier, "left_shift": left_shift, "least_difference": least,
        }  # fmt: skip
        args = ("&p", *scalings.reverse_scaling(op.input.scale), site.input(0).pointer, site.output.pointer)
        return Let("tinyfuse_softmax", "p", fields), Call(self.name, args)
