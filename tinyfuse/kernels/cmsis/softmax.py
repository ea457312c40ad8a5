"""CMSIS-NN's softmax."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.base import Call, CallSite, Context, Statement
from tinyfuse.kernels.cmsis.common import CmsisKernel
from tinyfuse.ops.softmax_scaling import softmax_scaling


class CmsisSoftmax(CmsisKernel):
    """SOFTMAX from int8 to int8."""

    name = "arm_softmax_s8"
    stack_bytes = 1024

    def accepts(self, op: Op, context: Context) -> bool:
        # GCC 12.2 fails on 4.0's MVE code with an internal error; later releases know to avoid it
        compiles = not context.target.mve or context.cmsis_nn > (4, 0)
        # exps that add up to 512 or more make it shift by more bits than a word has
        short = op.input.shape[-1] <= 511
        bytes_alone = op.input.dtype == op.output.dtype == "int8"
        return super().accepts(op, context) and bytes_alone and short and compiles

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        depth = op.input.shape[-1]
        rows = op.input.elements // depth
        args = (site.input(0).pointer, rows, depth, *softmax_scaling(op), site.output.pointer)
        return (Call(self.name, args),)
