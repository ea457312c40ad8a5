"""Kernels of LOOKED_UP: convolutions whose outputs pass through a lookup table (LUT) before they are stored.

Elementwise operators that follow a layer then cost one load an output instead of a pass over the row. Single-rounding
requantization is exact more often than without tables: outputs that the table maps to one result may be confused. The C
is runtime_c/tinyfuse_matmul.h and tinyfuse_depthwise_3x3.h. Helium has no such kernels: the pass over the row looks
sixteen bytes up at once there, and a table within the layer saved 0.2 % of a model at most.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache

import numpy as np

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, require_proven
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.core.wrapper import Wrapper
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.layers.int8_dsp.conv import AT_BORDERS, MatmulKernel
from tinyfuse.kernels.layers.int8_dsp.depthwise import Depthwise3x3Row
from tinyfuse.kernels.layers.int8_dsp.lanes import (
    Matmul,
    form_name,
    matmul_constants,
    matmul_layer,
    signed_rounding_layer,
    single_rounding_layer,
)
from tinyfuse.kernels.requantize.signed_rounding import SignedRounding, signed_rounding
from tinyfuse.kernels.requantize.single_rounding import SingleRounding, fit_to_tables, single_rounding
from tinyfuse.kernels.requantize.two_roundings import bounded
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.elementwise.table import MOST_CHANNEL_BYTES
from tinyfuse.ops.layers.looked_up import LookedUp


class LookedUpLayer(Wrapper):
    """A convolution `kernel` with lookup tables, on a core with the DSP extension and no Helium.

    A call reads and writes the tensors' parts that one of `kernel` does.
    """

    #: says that `kernel` computes depthwise convolutions
    depthwise: bool

    def __init__(self, plain: Kernel, name: str):
        super().__init__(plain, name=name, costs_as=plain.name)

    def inner(self, op: Op) -> Op:
        return layer_of(op)

    def accepts(self, op: Op, context: Context) -> bool:
        layer, target = layer_of(op), context.target
        packed = target.dsp and not target.mve and context.weights in ("packed", "auto")
        fits = layer.operand(1).dtype == "int8" and FAMILIES[layer.kind].depthwise == self.depthwise
        return packed and fits and super().accepts(op, context)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return *self.layer_constants(op, context), Constant("tables", self._tables(op, context), "int8_t", align=1)

    def _tables(self, op: Op, context: Context) -> Array:
        """Return int8 tables, [results] for all channels or [out_c, results], from the least value of the form on."""
        signed_rounding = self.signed_rounding(op, context)
        return _from_least(op) if signed_rounding is None else signed_rounding.tables

    @abstractmethod
    def signed_rounding(self, op: Op, context: Context) -> SignedRounding | None:
        """Return the layer's requantization with sign-dependent rounding, if its form uses one."""

    @abstractmethod
    def layer_constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """Return the layer's constants without the tables."""

    @abstractmethod
    def form(self, op: Op, context: Context) -> str:
        """Return the C's last argument, the form."""

    def counts(self, op: Op, by_row: bool) -> Counts:
        signed_rounding = op.output.elements if _single_rounding(op) is None and _signed_rounding(op) is not None else 0
        return {
            **self.kernel.counts(layer_of(op), by_row),
            "table_outputs": op.output.elements,
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


class LookedUpMatmul(LookedUpLayer):
    """A convolution by runtime_c/tinyfuse_matmul.h with lookup tables."""

    depthwise = False
    costs_with = "tinyfuse_matmul_lut"

    def __init__(self, plain: MatmulKernel):
        super().__init__(plain, plain.name.replace("_packed", "_packed_lut").replace("pointwise", "pointwise_lut"))
        self._block, self._windows = plain.block, plain.windows

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and _matmul_of(op, context) is not None

    def layer_constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return matmul_constants(matmul_of(op, context))

    def signed_rounding(self, op: Op, context: Context) -> SignedRounding | None:
        return _signed_rounding(op) if "SIGNED_ROUNDING" in matmul_of(op, context).form else None

    def form(self, op: Op, context: Context) -> str:
        return matmul_of(op, context).form

    def copy_of_code(self, op: Op, context: Context) -> str:
        """Return the name of the code that the compiler specializes: one for each form, unless the call has its own."""
        return AT_BORDERS if self.own_code(op) else f"{self.name} {form_name(self.form(op, context))}"

    def single_calls_as(self, op: Op) -> str | None:
        """Return the cost entry of single calls; None where code that gathers odd rows decides them, not the lookup."""
        return None if self._windows(layer_of(op)) else self.costs_with

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        form, layer = _costs_of(form_name(self.form(op, context))), layer_of(op)
        return f"{form}, blocks of {self._block(layer, context)}{self._windows(layer)}"

    def counts(self, op: Op, by_row: bool) -> Counts:
        counts = super().counts(op, by_row)
        return {**counts, "table_pairs": counts["block_pairs"]}


class LookedUpDepthwise(LookedUpLayer):
    """A depthwise 3x3 convolution with lookup tables."""

    depthwise = True
    costs_with = "tinyfuse_depthwise_3x3_lut"

    def __init__(self, plain: Depthwise3x3Row):
        super().__init__(plain, "tinyfuse_depthwise_3x3_lut_row_s8")
        self._plain_constants = plain.rounding_constants

    def accepts(self, op: Op, context: Context) -> bool:
        fits = super().accepts(op, context)
        return fits and (self._form(op, context) != "BOUNDED" or bounded(layer_of(op)) is not None)

    def layer_constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        line = self.signed_rounding(op, context) or _single_rounding(op) or _single_rounding(op, own_shifts=True)
        return self._plain_constants(layer_of(op), context, line)

    def signed_rounding(self, op: Op, context: Context) -> SignedRounding | None:
        return None if _single_rounding(op) is not None else _signed_rounding(op)

    def form(self, op: Op, context: Context) -> str:
        return f"TINYFUSE_QUAD_{self._form(op, context)}"

    def _form(self, op: Op, context: Context) -> str:
        signed_rounding = self.signed_rounding(op, context)
        if signed_rounding is not None:
            return "SIGNED_ROUNDING" if signed_rounding.bits == 8 else "SIGNED_ROUNDING_WIDE"
        if _single_rounding(op) is not None:
            return "SINGLE_ROUNDING"
        return "OWN_SHIFTS" if _single_rounding(op, own_shifts=True) is not None else "BOUNDED"

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return _costs_of(self._form(op, context).lower())


def _costs_of(form: str) -> str:
    """Return the form whose costs a form has; sign-dependent rounding adds a count of its own."""
    return "single_rounding" if form.startswith("signed_rounding") else form


def layer_of(op: Op) -> Op:
    """Return the layer whose outputs a LOOKED_UP looks up."""
    return op.attributes_as(LookedUp).layer


def _from_least(op: Op) -> Array:
    """Return the tables int8 [256] or [out_c, 256] with the results of -128 to 127, in this order."""
    results = op.attributes_as(LookedUp).table.operand(1).values
    return np.roll(results, 128, axis=-1)


def matmul_of(op: Op, context: Context) -> Matmul:
    """Return the layer in the fastest form that is proven exact for its tables."""
    return require_proven(_matmul_of(op, context))


def _matmul_of(op: Op, context: Context) -> Matmul | None:
    once = single_rounding_layer(layer_of(op), _single_rounding(op), context.target.dsp) or signed_rounding_layer(
        layer_of(op), _signed_rounding(op)
    )
    return once or matmul_layer(layer_of(op), context)


@lru_cache(maxsize=512)
def _single_rounding(op: Op, own_shifts: bool = False) -> SingleRounding | None:
    """Return a single-rounding requantization that is exact through the tables, or else without them; None if none
    is."""
    return fit_to_tables(layer_of(op), _from_least(op), own_shifts) or single_rounding(layer_of(op), own_shifts)


@lru_cache(maxsize=512)
def _signed_rounding(op: Op) -> SignedRounding | None:
    """Return sign-dependent rounding for the tables; None if there is none or its larger tables exceed their limit."""
    found = signed_rounding(layer_of(op), _from_least(op))
    return found if found is not None and found.tables.nbytes <= MOST_CHANNEL_BYTES else None
