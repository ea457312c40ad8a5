"""CMSIS-NN's batch matrix multiplication, since 7.0."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import RANGE, reduced_multiplier
from tinyfuse.kernels.cmsis.common import MAX_DIM, SUCCESS, CmsisKernel, buffer, dims, per_tensor
from tinyfuse.kernels.cmsis.conv_paths import round_up
from tinyfuse.kernels.core.c_types import CTYPE, SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.movement.copies import strided_copy
from tinyfuse.ops.core.convolution import TWO_ROUNDINGS, rounds_by
from tinyfuse.ops.core.walk import Walk, walk_of
from tinyfuse.ops.matmul.batch_matmul import BatchMatMul
from tinyfuse.ops.matmul.matmul_scaling import matmul_multiplier


class CmsisBatchMatMul(CmsisKernel):
    """BATCH_MATMUL with up to two leading dimensions that broadcast differently.

    The output must not overlap an operand. The function takes both operands as rows of `depth` elements: a constant one
    that is stored otherwise is transposed by the compiler, others into scratch before the call.
    """

    headers = ("arm_nnfunctions.h", "tinyfuse_strided.h")
    since = (7, 0)

    def __init__(self, dtype: str = "int8"):
        self.dtype = dtype
        self.name = f"arm_batch_matmul_{SUFFIX[dtype]}"

    def accepts(self, op: Op, context: Context) -> bool:
        fits = super().accepts(op, context) and op.input.dtype == self.dtype
        dims = (*op.output.shape[-2:], _depth(op))
        return (
            fits
            and rounds_by(op, TWO_ROUNDINGS)
            and len(leading_dimensions(op)) <= 2
            and max(dims) <= MAX_DIM
            and (self.dtype == "int8" or _doubled_fits(op))
        )

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        values = ((i, _by_depth(op, i, tensor.values)) for i, tensor in enumerate(op.operands) if tensor.is_constant)
        return tuple(
            Constant(f"operand{i}", np.ascontiguousarray(data).reshape(-1), CTYPE[self.dtype]) for i, data in values
        )

    def scratch(self, op: Op, context: Context) -> int:
        transposed = sum(round_up(op.operand(i).bytes, 16) for i in (0, 1) if _transposition(op, i) is not None)
        return round_up(self._sums(op, context), 16) + transposed

    def _sums(self, op: Op, context: Context) -> int:
        """Return the scratch bytes for sums; 0 for int16, which has no zero points."""
        return sums_scratch(op.output.shape[-1], context) if self.dtype == "int8" else 0

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (rows, columns), depth = op.output.shape[-2:], _depth(op)
        batches = leading_dimensions(op)
        (a, b), (c, d) = [(1, 1)] * (2 - len(batches)) + batches
        sums = self._sums(op, context)
        statements, operands = self._operands(op, site, round_up(sums, 16))
        fields = {
            "input_offset": -op.operand(0).zero_point,
            "filter_offset": -op.operand(1).zero_point,
            "output_offset": op.output.zero_point,
            "activation": dict(zip(("min", "max"), RANGE[self.dtype], strict=True)),
        }
        args = (
            "&context", "&params", "&quantization", "&left_dims", operands[0], "&right_dims", operands[1],
            "&output_dims", site.output.pointer,
        )  # fmt: skip
        return (
            *statements,
            buffer("context", site.scratch if sums else "NULL", sums),
            Let("cmsis_nn_bmm_params", "params", {"fc_params": fields}),
            per_tensor("quantization", matmul_multiplier(op)),
            dims("left", a, c, rows, depth),
            dims("right", b, d, columns, depth),
            dims("output", max(a, b), max(c, d), rows, columns),
            Call(self.name, args, SUCCESS),
        )

    def _operands(self, op: Op, site: CallSite, start: int) -> tuple[list[Statement], list[Expr]]:
        """Return (statements that transpose operands into scratch from byte `start` on, C pointers to both
        operands)."""
        statements: list[Statement] = []
        pointers: list[Expr] = []
        for i, access in enumerate(site.inputs):
            walk = _transposition(op, i)
            if access is None:
                pointers.append(site.constant(f"operand{i}"))
            elif walk is None:
                pointers.append(access.pointer)
            else:
                cast = "" if self.dtype == "int8" else "(void *)"
                pointers.append(f"({CTYPE[self.dtype]} *){cast}({site.scratch} + {start})")
                statements += strided_copy(walk, f"transposed{i}", access.pointer, f"{site.scratch} + {start}")
                start += round_up(op.operand(i).bytes, 16)
        return statements, pointers


def _doubled_fits(op: Op) -> bool:
    """Return whether every unclamped output, doubled, fits int32: CMSIS-NN's function stores it doubled."""
    multiplier, shift = matmul_multiplier(op)
    greatest = _depth(op) * 2**30 * int(reduced_multiplier(multiplier))
    return shift <= 14 and greatest >> 14 - shift < 2**31


def sums_scratch(columns: int, context: Context) -> int:
    """Return the bytes that ctx.buf must have: on MVE a sum per column of the right matrix, else 0."""
    return 4 * columns if context.target.mve else 0


def leading_dimensions(op: Op) -> list[tuple[int, int]]:
    """Return the sizes (in the first operand, in the second) of the leading dimensions, without those of 1.

    Adjacent dimensions that broadcast in the same way are merged into one.
    """
    shapes = [tensor.shape[:-2] for tensor in op.operands]
    rank = max(map(len, shapes))
    found: list[tuple[int, int]] = []
    for a, b in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True):
        if a == b == 1:
            continue
        if found and (_kind(a, b) == _kind(*found[-1])):
            found[-1] = (found[-1][0] * a, found[-1][1] * b)
        else:
            found.append((a, b))
    return found


def _kind(a: int, b: int) -> tuple[bool, bool]:
    return a == 1, b == 1


def _depth(op: Op) -> int:
    return op.operand(0).shape[-2 if op.attributes_as(BatchMatMul).adj_x else -1]


def _by_depth(op: Op, index: int, data: Array) -> Array:
    """Return a view of an operand's data with the dimension that the sums run over as the last one."""
    stored_so = op.attributes_as(BatchMatMul).adj_y if index == 1 else not op.attributes_as(BatchMatMul).adj_x
    return data if stored_so else data.swapaxes(-1, -2)


def _transposition(op: Op, index: int) -> Walk | None:
    """Return how an operand computed at run time is transposed; None for a constant, or one that is stored as
    needed."""
    tensor = op.operand(index)
    data = np.empty(tensor.shape, tensor.dtype)  # only its strides are used
    walk = walk_of(_by_depth(op, index, data), data)
    return None if tensor.is_constant or walk.in_order else walk
