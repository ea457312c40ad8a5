"""Kernels of ROW_MACS, OUTPUT_OF_SUMS and MEAN_OF_SUM (runtime_c/tinyfuse_row_macs.h; means of other dtypes than int8:
runtime_c/tinyfuse_reduce_wide.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import scale_bits
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, RowKernel
from tinyfuse.kernels.core.rows import previous_row, row_pointer
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts, element_counts
from tinyfuse.kernels.layers.common.params import general_channels, output_fields
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, TWO_ROUNDINGS, rounds_by
from tinyfuse.ops.pooling_reduce.reduce_scaling import mean_factor, reduced_count, sum_scaling
from tinyfuse.ops.pooling_reduce.row_macs import PartOfLayer, RowMacs


class RowMacsRow(Kernel):
    """Kernel of ROW_MACS: adds a row's products to the previous row's accumulators, in place, in a ring of one row."""

    name = "tinyfuse_row_macs_s8"
    headers = ("tinyfuse_row_macs.h",)
    by_row, whole, rings, accumulates = True, False, True, True

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        # [H, kernel, U, terms]; a dot product reads contiguous weights: terms of a filter, or depthwise units
        weights = op.operand(1).values
        return (Constant("weights", np.ascontiguousarray(weights).reshape(-1), "int8_t"),)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "depthwise" if op.attributes_as(RowMacs).depthwise else "dense"

    def counts(self, op: Op, by_row: bool) -> Counts:
        counts, weights = element_counts(op, by_row), op.operand(1)
        kernel = weights.shape[1]
        # taps are looped over for each pixel, or for each sum; taps in the padding are only tested
        taps = {"taps": counts["rows"] * kernel, "sum_taps": counts["outputs"] * kernel}
        return {**counts, **taps, "macs": weights.elements * op.output.shape[2]}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        _, _, columns, units = op.output.shape
        _, _, width, channels = op.input.shape
        _, kernel, _, terms = op.operand(1).shape
        g = op.attributes_as(RowMacs)
        fields = {
            "in_w": width, "in_c": channels, "out_w": columns, "units": units, "kernel_w": kernel,
            "stride_w": g.stride, "dilation_w": g.dilation, "pad_left": g.pad_left,
            "in_zero_point": op.input.zero_point,
        }  # fmt: skip
        source, previous = row_pointer(site.input(0), site.output_row), previous_row(site, columns * units)
        weights = f"{site.constant('weights')} + {site.output_row} * {kernel * units * terms}"
        function = "tinyfuse_row_macs_depthwise_s8" if g.depthwise else self.name
        arguments = ("&p", source, weights, previous, site.output.pointer)
        return Let("tinyfuse_row_macs", "p", fields), Call(function, arguments)


class OutputOfSumsRow(RowKernel):
    """Kernel of OUTPUT_OF_SUMS: computes the only output row from the last accumulators, by bias, requantization and
    clamp per channel."""

    headers = ("tinyfuse_row_macs.h",)

    def __init__(self, rounding: str = TWO_ROUNDINGS):
        self.rounding = rounding
        self.name = "tinyfuse_output_of_sums" + ("_half_even" if rounding == FLOAT_HALF_EVEN else "")

    def accepts(self, op: Op, context: Context) -> bool:
        return rounds_by(op.attributes_as(PartOfLayer).layer, self.rounding)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (general_channels(op.attributes_as(PartOfLayer).layer),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        _, height, columns, units = op.input.shape
        fields = {"columns": columns, "units": units} | output_fields(op.attributes_as(PartOfLayer).layer)
        source = row_pointer(site.input(0), str(height - 1))
        arguments = ("&p", source, site.constant("channels"), site.output.pointer)
        return Let("tinyfuse_output_of_sums_params", "p", fields), Call(self.name, arguments)


class MeanOfSumRow(RowKernel):
    """Kernel of MEAN_OF_SUM: computes the only output row from the last sums, with one multiplier for all channels, or
    one divisor for float32."""

    def __init__(self, dtype: str, rounding: str = TWO_ROUNDINGS):
        self.dtype, self.rounding = dtype, rounding
        self.name = "tinyfuse_mean_of_sum" + ("" if dtype == "int8" else f"_{SUFFIX[dtype]}")
        self.headers = ("tinyfuse_row_macs.h" if dtype == "int8" else "tinyfuse_reduce_wide.h",)
        if rounding == FLOAT_HALF_EVEN:
            self.name, self.headers = "tinyfuse_mean_of_sum_half_even", ("tinyfuse_mean_half_even.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and rounds_by(op.attributes_as(PartOfLayer).layer, self.rounding)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        layer = op.attributes_as(PartOfLayer).layer
        count = reduced_count(layer)
        source = row_pointer(site.input(0), str(op.input.shape[1] - 1))
        scaling: tuple[int, ...] = (count,)
        if self.rounding == FLOAT_HALF_EVEN:
            scaling = (count * layer.input.zero_point, scale_bits(mean_factor(layer)), layer.output.zero_point)
        elif self.dtype != "float32":
            scaling = (count * layer.input.zero_point, *sum_scaling(layer), layer.output.zero_point)
        return (Call(self.name, (source, site.output.pointer, op.output.elements, *scaling)),)
