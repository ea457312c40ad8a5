"""Kernels of LOOKED_UP: convolutions whose outputs pass through a lookup table (LUT) before they are stored.

Elementwise operators that follow a layer then cost one load an output instead of a pass over the row. Single-rounding
requantization is exact more often than without tables: outputs that the table maps to the same result need not be told
apart. The C is runtime_c/tinyfuse_matmul.h. Helium has no such kernels: the pass over the row looks sixteen bytes up at
once there, and a table within the layer saved 0.2 % of a model at most. Depthwise convolutions have none either,
because no public model used one.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, require_proven
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.core.wrapper import Wrapper
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.layers.int8_dsp import lanes
from tinyfuse.kernels.layers.int8_dsp.conv import AT_BORDERS, MatmulKernel
from tinyfuse.kernels.requantize.signed_rounding import SignedRounding, signed_rounding
from tinyfuse.kernels.requantize.single_rounding import SingleRounding, fit_to_tables, single_rounding
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.layers.looked_up import LookedUp


class LookedUpMatmul(Wrapper):
    """Convolution of int8 with lookup tables by runtime_c/tinyfuse_matmul.h, on a core with the DSP extension and no
    Helium.

    A call reads and writes the same parts of tensors as a call of `kernel`.
    """

    costs_with = "tinyfuse_matmul_lut"

    def __init__(self, plain: MatmulKernel):
        name = plain.name.replace("_packed", "_packed_lut").replace("pointwise", "pointwise_lut")
        super().__init__(plain, name=name, costs_as=plain.name)
        self._block, self._windows = plain.block, plain.windows

    def inner(self, op: Op) -> Op:
        return layer_of(op)

    def accepts(self, op: Op, context: Context) -> bool:
        layer, target = layer_of(op), context.target
        packed = target.dsp and not target.mve and context.weights in ("packed", "auto")
        fits = layer.operand(1).dtype == "int8" and not FAMILIES[layer.kind].depthwise
        return packed and fits and super().accepts(op, context) and _matmul_of(op, context) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        tables = Constant("tables", self._tables(op, context), "int8_t", align=1)
        return *lanes.matmul_constants(matmul_of(op, context)), tables

    def _tables(self, op: Op, context: Context) -> Array:
        """Return int8 tables, [results] for all channels or [out_c, results]. The first result is that of the form's
        least value."""
        signed = require_proven(_signed_rounding(op)) if self.form(op, context) == lanes.SIGNED_ROUNDING else None
        return _from_least(op) if signed is None else signed.table

    def counts(self, op: Op, by_row: bool) -> Counts:
        plain = self.kernel.counts(layer_of(op), by_row)
        signed_rounding = op.output.elements if _single_rounding(op) is None and _signed_rounding(op) is not None else 0
        return {
            **plain,
            "table_outputs": op.output.elements,
            "table_pairs": plain["block_pairs"],
            "signed_rounding_outputs": signed_rounding,
        }

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        """Return the call of the layer's C function with tables, their size and the form."""
        *lets, call = self.kernel.call(layer_of(op), site, context)
        if not isinstance(call, Call):
            raise InternalFault("a kernel of tables", "what it computes isn't one call")
        tables = self._tables(op, context)
        each = tables.shape[-1]
        more = (f"{site.constant('tables')} + {each // 2}", each if tables.ndim > 1 else 0)
        return *lets, Call(self.name, (*call.args[:-1], *more, self.form(op, context)))

    def form(self, op: Op, context: Context) -> str:
        return matmul_of(op, context).form

    def copy_of_code(self, op: Op, context: Context) -> str:
        """Return the name of the code that the compiler specializes: one for each form, unless the call has its own."""
        return AT_BORDERS if self.own_code(op) else f"{self.name} {lanes.form_name(self.form(op, context))}"

    def single_calls_as(self, op: Op) -> str | None:
        """Return the cost entry of single calls; None where pixels are not whole words, because the code that gathers
        windows then decides their costs, not the lookup."""
        return None if self._windows(layer_of(op)) else self.costs_with

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        # sign-dependent rounding adds a count of its own
        form, layer = lanes.form_name(self.form(op, context)).replace("signed", "single"), layer_of(op)
        return f"{form}, blocks of {self._block(layer, context)}{self._windows(layer)}"


def layer_of(op: Op) -> Op:
    """Return the layer whose outputs a LOOKED_UP looks up."""
    return op.attributes_as(LookedUp).layer


def _from_least(op: Op) -> Array:
    """Return the lookup tables, int8 [256] or [out_c, 256], whose entries are for the values -128 to 127 in this
    order."""
    results = op.attributes_as(LookedUp).table.operand(1).values
    return np.roll(results, 128, axis=-1)


def matmul_of(op: Op, context: Context) -> lanes.Matmul:
    """Return the layer in the fastest form that is proven exact for its tables."""
    return require_proven(_matmul_of(op, context))


def _matmul_of(op: Op, context: Context) -> lanes.Matmul | None:
    layer = layer_of(op)
    once = lanes.single_rounding_layer(layer, _single_rounding(op), context.target.dsp)
    return once or lanes.signed_rounding_layer(layer, _signed_rounding(op)) or lanes.matmul_layer(layer, context)


@lru_cache(maxsize=512)
def _single_rounding(op: Op) -> SingleRounding | None:
    """Single-rounding requantization that is exact for the values that the tables give, else one that is exact without
    the tables; None if there is neither."""
    return fit_to_tables(layer_of(op), _from_least(op)) or single_rounding(layer_of(op))


@lru_cache(maxsize=512)
def _signed_rounding(op: Op) -> SignedRounding | None:
    """Return sign-dependent rounding for a layer with one table; None if it is not exact, or if channels have their own
    tables."""
    tables = _from_least(op)
    return signed_rounding(layer_of(op), tables) if tables.ndim == 1 else None
