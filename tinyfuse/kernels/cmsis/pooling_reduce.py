"""CMSIS-NN's average and maximum pooling, and its softmax."""

from __future__ import annotations

import math

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis import common as cmsis
from tinyfuse.kernels.cmsis.common import SUCCESS, CmsisKernel
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts, pool_counts
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.ops.pooling_reduce.pooling import Pool2D, pool_output_and_padding
from tinyfuse.ops.pooling_reduce.softmax_scaling import int16_scaling, softmax_scaling
from tinyfuse.ops.pooling_reduce.softmax_tables import exp_table, reciprocal_table


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


#: exact lengths of int16 rows. A row of one has output 1, which leaves int16. The sum of more than eight exps may begin
#: with 18 ones, and leaves int32 when it is rounded
_ROWS_S16 = range(2, 9)


class CmsisSoftmax(CmsisKernel):
    """SOFTMAX from int8 to int8, and since 7.0 to int16."""

    stack_bytes = 1024

    def __init__(self, out_dtype: str = "int8"):
        self.out_dtype = out_dtype
        self.name = "arm_softmax_s8" if out_dtype == "int8" else "arm_softmax_s8_s16"

    def accepts(self, op: Op, context: Context) -> bool:
        # GCC 12.2 fails on 4.0's MVE code with an internal error; later releases know to avoid it
        since = (7, 0) if self.out_dtype == "int16" else (4, 1) if context.target.mve else (4, 0)
        # exps that add up to 512 or more make it shift by more bits than a word has
        short = op.input.shape[-1] <= 511
        bytes_in = (op.input.dtype, op.output.dtype) == ("int8", self.out_dtype)
        return super().accepts(op, context) and bytes_in and short and context.cmsis_nn >= since

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        depth = op.input.shape[-1]
        rows = op.input.elements // depth
        args = (site.input(0).pointer, rows, depth, *softmax_scaling(op), site.output.pointer)
        return (Call(self.name, args),)


class CmsisSoftmaxS16(CmsisKernel):
    """SOFTMAX of int16, by the tables of TensorFlow Lite Micro, since 7.0."""

    name, since = "arm_softmax_s16", (7, 0)

    def accepts(self, op: Op, context: Context) -> bool:
        fits = super().accepts(op, context) and op.input.dtype == "int16"
        return fits and op.input.shape[-1] in _ROWS_S16 and int16_scaling(op)[1] <= 15

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return Constant("exps", exp_table(), "int16_t"), Constant("reciprocals", reciprocal_table(), "int16_t")

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        depth = op.input.shape[-1]
        tables = {"exp_lut": site.constant("exps"), "one_by_one_lut": site.constant("reciprocals")}
        pointers = "&tables", site.output.pointer
        args = (site.input(0).pointer, op.input.elements // depth, depth, *int16_scaling(op), *pointers)
        return Let("cmsis_nn_softmax_lut_s16", "tables", tables), Call(self.name, args, SUCCESS)
