"""Our kernels of LOOKED_UP (runtime_c/tinyfuse_matmul.h): convolutions whose outputs are looked up as they are stored.

What follows a layer element for element takes a look an output, and no pass over the row. A layer has a step line more
often than without tables: steps between outputs that a table makes one result of need not be at their place.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Array, Op
from tinyfuse.kernels.base import (
    AccessOrder,
    Call,
    CallSite,
    Constant,
    Context,
    Division,
    Expr,
    Kernel,
    Statement,
    proven,
)
from tinyfuse.kernels.conv import MatmulKernel
from tinyfuse.kernels.counts import Counts
from tinyfuse.kernels.matmul import Matmul, block_pixels, form_name, matmul_constants, matmul_layer, on_line
from tinyfuse.kernels.step_line import StepLine, line_to_tables
from tinyfuse.ops.looked_up import LookedUp

#: where a table that begins with the result of -128 has that of 0
_MIDDLE = 128


class LookedUpMatmul(Kernel):
    """What `plain` computes, with tables, on cores with the DSP extension and no vectors. A call reads and writes what
    one of `plain` does."""

    costs_with = "tinyfuse_matmul_tables"

    def __init__(self, plain: MatmulKernel):
        self._plain, self.costs_as = plain, plain.name
        self.name = plain.name.replace("_packed", "_packed_tables").replace("pointwise", "pointwise_tables")
        self.headers = plain.headers
        self.by_row, self.whole, self.rings = plain.by_row, plain.whole, plain.rings

    def accepts(self, op: Op, context: Context) -> bool:
        target, layer = context.target, op.attributes_as(LookedUp).layer
        packed = context.weights in ("packed", "auto") and layer.operand(1).dtype == "int8"
        if not target.dsp or target.mve or not packed:
            return False
        return self._plain.accepts(layer, context) and matmul_of(op, context) is not None

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return self._plain.access_orders(op.attributes_as(LookedUp).layer)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return *matmul_constants(proven(matmul_of(op, context))), Constant("tables", _from_least(op), "int8_t", align=1)

    def scratch(self, op: Op, context: Context) -> int:
        return self._plain.scratch(op.attributes_as(LookedUp).layer, context)

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return self._plain.division(op.attributes_as(LookedUp).layer, by_row, context)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return f"{form_name(proven(matmul_of(op, context)).form)}, blocks of {block_pixels(context)}"

    def counts(self, op: Op, by_row: bool) -> Counts:
        counts = self._plain.counts(op.attributes_as(LookedUp).layer, by_row)
        return {**counts, "table_outputs": op.output.elements, "table_pairs": counts["block_pairs"]}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        """That of the layer, with tables, and in their form."""
        *lets, call = self._plain.call(op.attributes_as(LookedUp).layer, site, context)
        tables = _from_least(op)
        more = (f"{site.constant('tables')} + {_MIDDLE}", 256 if tables.ndim > 1 else 0)
        return *lets, Call(self.name, (*_arguments(call)[:-1], *more, proven(matmul_of(op, context)).form))


def _arguments(call: Statement) -> tuple[Expr, ...]:
    if not isinstance(call, Call):
        raise InternalFault("a kernel of tables", "what it computes isn't one call")
    return call.args


def _from_least(op: Op) -> Array:
    """int8 [256] or [out_c, 256]: the results of -128 to 127."""
    return np.roll(op.attributes_as(LookedUp).table.operand(1).values, _MIDDLE, axis=-1)


def matmul_of(op: Op, context: Context) -> Matmul | None:
    """The layer in the fastest form that is proven exact for its tables; None where there is none."""
    layer = op.attributes_as(LookedUp).layer
    return on_line(layer, _line(op), context.target.dsp) or matmul_layer(layer, context)


@lru_cache(maxsize=512)
def _line(op: Op) -> StepLine | None:
    return line_to_tables(op.attributes_as(LookedUp).layer, _from_least(op))
