"""CMSIS-NN's addition and multiplication of tensors of one shape."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis_common import SUCCESS, CmsisKernel
from tinyfuse.kernels.rows import extent, input_pointer
from tinyfuse.ops.base import Call, Constant, Context, Expr, Site, Statement
from tinyfuse.ops.binary import ADD_SHIFT, add_multipliers, mul_multiplier
from tinyfuse.ops.convolution import clamp_range


class _CmsisBinary(CmsisKernel):
    """Goes forward, element by element: the output may be an operand."""

    by_row, rings = True, True
    in_place = (0, 1)

    def accepts(self, op: Op, context: Context) -> bool:
        same_shape = all(tensor.shape == op.output.shape for tensor in op.inputs)
        return super().accepts(op, context) and same_shape

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return tuple(
            Constant(f"operand{i}", tensor.data.reshape(-1), "int8_t")
            for i, tensor in enumerate(op.inputs)
            if tensor.is_constant
        )

    def _operands(self, op: Op, site: Site) -> tuple[Expr, ...]:
        row = f" + {site.row} * {extent(op.output, site)}" if site.row is not None else ""
        return tuple(
            f"{site.constant(f'operand{i}')}{row}" if view is None else input_pointer(site, i)
            for i, view in enumerate(site.inputs)
        )


class CmsisAdd(_CmsisBinary):
    """ADD without broadcasting."""

    name = "arm_elementwise_add_s8"

    def call(self, op: Op, site: Site, context: Context) -> tuple[Statement, ...]:
        (a, a_shift), (b, b_shift), (out, out_shift) = add_multipliers(op)
        args = (
            *self._operands(op, site),
            -op.inputs[0].zero_point, a, a_shift, -op.inputs[1].zero_point, b, b_shift, ADD_SHIFT,
            site.outputs[0].pointer, op.output.zero_point, out, out_shift, *clamp_range(op),
            extent(op.output, site),
        )  # fmt: skip
        return (Call(self.name, args, SUCCESS),)


class CmsisMul(_CmsisBinary):
    """MUL without broadcasting."""

    name = "arm_elementwise_mul_s8"

    def call(self, op: Op, site: Site, context: Context) -> tuple[Statement, ...]:
        args = (
            *self._operands(op, site),
            -op.inputs[0].zero_point, -op.inputs[1].zero_point, site.outputs[0].pointer,
            op.output.zero_point, *mul_multiplier(op), *clamp_range(op), extent(op.output, site),
        )  # fmt: skip
        return (Call(self.name, args, SUCCESS),)
