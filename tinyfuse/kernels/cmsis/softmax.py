"""CMSIS-NN's softmax."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis.common import SUCCESS, CmsisKernel
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.ops.pooling_reduce.softmax_scaling import int16_scaling, softmax_scaling
from tinyfuse.ops.pooling_reduce.softmax_tables import exp_table, reciprocal_table

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
