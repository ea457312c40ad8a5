"""CMSIS-NN's transposition, since 7.0."""

from __future__ import annotations

from math import prod

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis.common import SUCCESS, CmsisKernel, dims
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite
from tinyfuse.kernels.core.statements import Call, Let, Statement, c_array
from tinyfuse.ops.movement.transpose import permutation

#: the most columns for the MVE code, which gathers eight elements, a row apart, by offsets of 16 bits
_MOST_COLUMNS = 0xFFFF // 7


class CmsisTranspose(CmsisKernel):
    """Kernel of TRANSPOSE of int8. It passes the shape to CMSIS-NN with as few dimensions as possible."""

    name, since = "arm_transpose_s8", (7, 0)

    def accepts(self, op: Op, context: Context) -> bool:
        fits = super().accepts(op, context) and op.input.dtype == "int8"
        shape, _ = fewest_dimensions(op)
        return fits and len(shape) <= 4 and max(shape[-2:]) <= _MOST_COLUMNS

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        shape, order = fewest_dimensions(op)
        if order == (0, 2, 1):
            # the MVE code has a fast path for this order in four dimensions
            shape, order = (1, *shape), (0, 1, 3, 2)
        permutations = "(const uint32_t[])" + c_array(f"{d}u" for d in order)
        args = (site.input(0).pointer, site.output.pointer, "&input_dims", "&output_dims", "&params")
        return (
            # CMSIS-NN takes dimensions from field n on, so the names h, w and c mean nothing
            dims("input", *shape),
            dims("output", *(shape[d] for d in order)),
            Let("cmsis_nn_transpose_params", "params", {"num_dims": len(shape), "permutations": permutations}),
            Call(self.name, args, SUCCESS),
        )


def fewest_dimensions(op: Op) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return (input dimensions, permutation) of the same transposition with the fewest dimensions.

    Dimensions of 1 are dropped, and neighbours that stay side by side are merged. That also avoids two errors:
    CMSIS-NN exchanges two dimensions, and the last two of four, even where they are in order.
    """
    runs: list[list[int]] = []
    before = None
    kept = [d for d, dim in enumerate(op.input.shape) if dim > 1]
    for d in permutation(op):
        if d not in kept:
            continue
        if before is not None and kept.index(d) == kept.index(before) + 1:
            runs[-1].append(d)
        else:
            runs.append([d])
        before = d
    if not runs:
        return (1,), (0,)
    by_input = sorted(runs)
    dims = tuple(prod(op.input.shape[d] for d in run) for run in by_input)
    return dims, tuple(by_input.index(run) for run in runs)
