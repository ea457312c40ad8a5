"""Kernels that call CMSIS-NN: addition and multiplication of int8 and int16 tensors of one shape, maximum and minimum
of int8."""

from __future__ import annotations

from collections.abc import Mapping

from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.cmsis.common import SUCCESS, CmsisKernel, buffer, dims
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, element_access_orders
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.rows import constant_operands, element_count, row_pointers
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.ops.core.binary import ADD_SHIFT, add_multipliers, mul_multiplier
from tinyfuse.ops.core.convolution import clamp_range


class _CmsisBinary(CmsisKernel):
    """Base of elementwise operators of two tensors by CMSIS-NN. The output may overwrite an operand."""

    by_row, rings = True, True
    in_place = (0, 1)
    function: str
    constants = of_operator(constant_operands)

    def __init__(self, dtype: str = "int8"):
        self.dtype, self.since = dtype, (4, 0) if dtype == "int8" else (7, 0)
        self.name = f"{self.function}_{SUFFIX[dtype]}"

    def accepts(self, op: Op, context: Context) -> bool:
        same_shape = all(tensor.shape == op.output.shape for tensor in op.operands)
        return super().accepts(op, context) and same_shape and op.output.dtype == self.dtype

    def _operands(self, op: Op, site: CallSite) -> list[str]:
        row = int(element_count(op.output, site))
        return row_pointers(site, [0 if _is_number(tensor) else row for tensor in op.operands])


class CmsisAdd(_CmsisBinary):
    """ADD by CMSIS-NN, without broadcasting."""

    function = "arm_elementwise_add"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (a, a_shift), (b, b_shift), (out, out_shift) = add_multipliers(op)
        args = (
            *self._operands(op, site),
            -op.operand(0).zero_point, a, a_shift, -op.operand(1).zero_point, b, b_shift, ADD_SHIFT[self.dtype],
            site.output.pointer, op.output.zero_point, out, out_shift, *clamp_range(op),
            element_count(op.output, site),
        )  # fmt: skip
        return (Call(self.name, args, SUCCESS),)


class CmsisMul(_CmsisBinary):
    """MUL by CMSIS-NN, without broadcasting."""

    function = "arm_elementwise_mul"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        args = (
            *self._operands(op, site),
            -op.operand(0).zero_point, -op.operand(1).zero_point, site.output.pointer,
            op.output.zero_point, *mul_multiplier(op), *clamp_range(op), element_count(op.output, site),
        )  # fmt: skip
        return (Call(self.name, args, SUCCESS),)


class CmsisMinMax(_CmsisBinary):
    """MAXIMUM and MINIMUM of int8 tensors of one shape, or of a tensor and a constant number, since 7.0.

    All elements are passed as channels of one pixel, so that the function's outer loops run once.
    """

    def __init__(self, kind: str):
        self.function = f"arm_{kind.lower()}"
        super().__init__()
        self.since = (7, 0)

    def accepts(self, op: Op, context: Context) -> bool:
        fits = CmsisKernel.accepts(self, op, context)
        full = [tensor for tensor in op.operands if not _is_number(tensor)]
        return fits and op.output.dtype == "int8" and bool(full) and all(t.shape == op.output.shape for t in full)

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return element_access_orders(op, [i for i, tensor in enumerate(op.operands) if not _is_number(tensor)])

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        numbers = [_is_number(tensor) for tensor in op.operands]
        a, b = self._operands(op, site)
        a_dims, b_dims = ("&one_dims" if number else "&all_dims" for number in numbers)
        return (
            buffer("context"),
            *([dims("one", 1, 1, 1, 1)] if any(numbers) else []),
            dims("all", 1, 1, 1, int(element_count(op.output, site))),
            Call(self.name, ("&context", a, a_dims, b, b_dims, site.output.pointer, "&all_dims"), SUCCESS),
        )


def _is_number(tensor: Tensor) -> bool:
    return tensor.is_constant and tensor.elements == 1
