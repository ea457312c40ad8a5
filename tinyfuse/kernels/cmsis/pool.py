"""CMSIS-NN's average and maximum pooling."""

from __future__ import annotations

import math

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis import common as cmsis
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts, pool_counts
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.ops.pooling_reduce.pooling import Pool2D, pool_output_and_padding


class _CmsisPool(cmsis.CmsisRows):
    """Base of int8 pooling by CMSIS-NN (since CMSIS-NN 7.0 also of int16). The output must not overlap the input."""

    function: str
    several_rows = cmsis.SEVERAL_ROWS

    def __init__(self, dtype: str = "int8"):
        self.dtype = dtype
        self.name = f"{self.function}_{SUFFIX[dtype]}"

    def accepts(self, op: Op, context: Context) -> bool:
        if not super().accepts(op, context) or op.output.dtype != self.dtype or op.attributes_as(Pool2D).halves_up:
            return False
        # sums of more elements would leave int32
        fits = math.prod(op.attributes_as(Pool2D).filter) < 2**16
        return self.dtype == "int8" or (context.cmsis_nn >= (7, 0) and fits)

    def window(self, op: Op) -> RowWindow:
        (_, top), _ = pool_output_and_padding(op)
        pool = op.attributes_as(Pool2D)
        return RowWindow(pool.filter[0], pool.stride[0], top)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return pool_counts(op, by_row, self.rows_a_call)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        _, (out_w, pad_w) = pool_output_and_padding(op)
        _, _, in_w, channels = op.input.shape
        pool = op.attributes_as(Pool2D)
        (filter_h, filter_w), stride_w = pool.filter, pool.stride[1]
        source = cmsis.image(self.window(op), site, self.rows_a_call)
        fields = {
            "stride": cmsis.tile(source.stride, stride_w),
            "padding": cmsis.tile(source.pad_top, pad_w),
            "activation": cmsis.activation(op),
        }
        return (
            *source.statements,
            cmsis.buffer("context", site.scratch, self.scratch(op, context)),
            Let("cmsis_nn_pool_params", "params", fields),
            cmsis.dims("input", 1, source.rows, in_w, channels),
            cmsis.dims("filter", 1, filter_h, filter_w, 1),
            cmsis.dims("output", 1, source.out_rows, out_w, channels),
            Call(
                self.name,
                ("&context", "&params", "&input_dims", source.pointer, "&filter_dims", "&output_dims",
                 site.output.pointer),
                cmsis.SUCCESS,
            ),
        )  # fmt: skip


class CmsisAveragePool(_CmsisPool):
    """AVERAGE_POOL_2D by CMSIS-NN."""

    function = "arm_avgpool"

    def scratch(self, op: Op, context: Context) -> int:
        return average_scratch(op.input.shape[3], context)


class CmsisMaxPool(_CmsisPool):
    """MAX_POOL_2D by CMSIS-NN."""

    function = "arm_max_pool"


def average_scratch(channels: int, context: Context) -> int:
    """Return the bytes that ctx.buf of an average pooling must have: a sum per channel with DSP and without MVE, else
    0."""
    return 4 * channels if context.target.dsp and not context.target.mve else 0
