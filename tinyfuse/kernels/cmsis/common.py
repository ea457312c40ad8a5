"""Base classes, rows and arguments of kernels that call CMSIS-NN (docs/cmsis-nn.md, docs/kernels-cmsis-nn.md)."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.rows import row_pointer
from tinyfuse.kernels.core.statements import Let, Statement
from tinyfuse.ops.core.convolution import bias_values, channel_multipliers, clamp_range
from tinyfuse.ops.core.family import RowWindow

SUCCESS = "ARM_CMSIS_NN_SUCCESS"

#: rows per call that are tried for functions with a long setup, or with blocks of several pixels
SEVERAL_ROWS = (2, 4, 8)

#: CMSIS-NN keeps dimensions in uint16_t and positions in int16_t variables
MAX_DIM = 32767


class CmsisKernel(Kernel):
    """Kernel that calls a function of CMSIS-NN, for Cortex-M only: the host lacks arm_acle.h, so it cannot compile
    CMSIS-NN. `since`: the first version whose function is called."""

    library = "cmsis-nn"
    headers: tuple[str, ...] = ("arm_nnfunctions.h",)
    stack_bytes = 768
    since = (4, 0)

    def accepts(self, op: Op, context: Context) -> bool:
        return context.target.cpu is not None and context.cmsis_nn >= self.since


class CmsisRows(CmsisKernel):
    """CMSIS-NN function that computes a whole image, or one output row from the image of its window.

    `several` makes forms that compute more rows per call. The rows of a window must be contiguous and in order: the
    input is whole, a sliding ring, or a window has one row.
    """

    headers = ("arm_nnfunctions.h", "tinyfuse_window.h")
    by_row, in_order = True, True

    #: rows per call of the forms that `several` makes. More rows share the cost of a call's setup and leave fewer
    #: incomplete blocks of pixels
    several_rows: tuple[int, ...] = ()

    def several(self, rows: int) -> CmsisRows:
        """Return the form of this kernel that computes `rows` rows a call."""
        form = copy(self)
        form.rows_a_call, form.whole = rows, False
        return form

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and (self.rows_a_call == 1 or self._takes_several(op, context))

    def _takes_several(self, op: Op, context: Context) -> bool:
        """Return whether the plan may call for several rows and no row's window is all padding."""
        if context.divided or not self.rows_a_call < op.output.shape[1] or not self.rows_a_call <= context.at_once:
            return False
        return all(rows for rows, _, _ in rows_of_calls(self.window(op), op.output.shape[1], op.input.shape[1]))

    def takes_rings(self, op: Op) -> bool:
        return self.window(op).kernel == 1 and self.rows_a_call == 1 and not op.reads_ring

    @abstractmethod
    def window(self, op: Op) -> RowWindow:
        """Return the input rows that an output row reads."""


# --- rows ------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def rows_of_calls(window: RowWindow, out_h: int, in_h: int, at_once: int = 1) -> frozenset[tuple[int, int, int]]:
    """Return (rows that exist, padding rows above them, output rows) of every different call for `at_once` rows.

    The C function tinyfuse_window_at computes the same.
    """
    dims, calls = set(), range(0, out_h, at_once)
    for at_border in (calls, reversed(calls)):
        for y in at_border:
            count, start = min(at_once, out_h - y), y * window.stride - window.pad_top
            rows = max(0, window.needed(y + count - 1, in_h) - window.first(y))
            dims.add((rows, min(window.kernel, max(0, -start)), count))
            end = start + (count - 1) * window.stride + window.kernel
            if start >= 0 and end <= in_h and (count, window.spread) == (at_once, 1):
                break  # so are all calls up to the other border
    return frozenset(dims)


@dataclass(frozen=True)
class Image:
    """The image that a call computes from.

    statements  declarations before the call
    pointer     C for its first byte
    rows        input rows that exist
    out_rows    output rows of the call
    pad_top     rows of padding above
    stride      vertical stride
    """

    statements: tuple[Statement, ...]
    pointer: str
    rows: int | str
    out_rows: int | str
    pad_top: int | str
    stride: int


def image(window: RowWindow, site: CallSite, at_once: int = 1) -> Image:
    """Return the whole input, or for a call by rows the windows of `at_once` rows from the site's row on."""
    source, output = site.input(0), site.output
    in_h, out_h = source.tensor.shape[1], output.tensor.shape[1]
    if site.row is None:
        return Image((), source.pointer, in_h, out_h, window.pad_top, window.stride)
    in_order = source.ring_rows == 1 or source.ring_rows >= in_h
    if not in_order and (window.kernel > 1 or at_once > 1):
        raise InternalFault("a kernel's call", f"rows of {source.tensor} are not in order in a ring")
    count: int | str = at_once if out_h % at_once == 0 else "out_rows"
    left = f"tinyfuse_min({at_once}, {out_h} - {site.row})"
    counted = () if count == at_once else (Let("int32_t", "out_rows", left),)
    # the vertical stride does not matter for one output row; 1 allows CMSIS-NN's fast path
    stride = 1 if at_once == 1 else window.stride
    exists = all(pad == 0 and rows == count for rows, pad, count in rows_of_calls(window, out_h, in_h, at_once))
    if window.kernel == 1 and exists:
        row = site.row if window.stride == 1 else f"({site.row} * {window.stride})"
        return Image(counted, row_pointer(source, row), count, count, 0, stride)
    numbers = f"{count}, {window.stride}, {window.pad_top}, {window.kernel}, {in_h}"
    let = Let("tinyfuse_window", "window", f"tinyfuse_window_at({site.row}, {numbers})")
    return Image((*counted, let), row_pointer(source, "window.first"), "window.rows", count, "window.pad_top", stride)


# --- arguments -------------------------------------------------------------------------------


def buffer(name: str, pointer: str = "NULL", size: int = 0) -> Let:
    """Return the declaration of a cmsis_nn_context, by default an empty one."""
    return Let("cmsis_nn_context", name, {"buf": pointer, "size": size})


def dims(name: str, n: int, h: int | str = 1, w: int = 1, c: int = 1) -> Let:
    """Return the declaration `const cmsis_nn_dims NAME_dims`."""
    return Let("cmsis_nn_dims", f"{name}_dims", {"n": n, "h": h, "w": w, "c": c})


def tile(h: int | str, w: int) -> dict[str, int | str]:
    """Return the fields of a cmsis_nn_tile."""
    return {"w": w, "h": h}


def per_tensor(name: str, scale: tuple[int, int]) -> Let:
    """Return the declaration of a cmsis_nn_per_tensor_quant_params. `scale`: multiplier and shift."""
    return Let("cmsis_nn_per_tensor_quant_params", name, {"multiplier": scale[0], "shift": scale[1]})


def activation(op: Op) -> dict[str, int]:
    """Return the fields of a cmsis_nn_activation, the operator's clamp."""
    low, high = clamp_range(op)
    return {"min": low, "max": high}


def channel_constants(op: Op) -> tuple[Constant, ...]:
    """Return the constants "weights", "bias", "multipliers" and "shifts", one bias, multiplier and shift per output
    channel.

    The bias exists even if the operator has none: some functions add an offset to the pointer.
    """
    multipliers, shifts = channel_multipliers(op)
    channels = int32s("multipliers", multipliers), int32s("shifts", shifts)
    return weights_constant(op), bias_constant(op), *channels


def weights_constant(op: Op) -> Constant:
    """Return the constant "weights", int8 in the order of the file."""
    return Constant("weights", np.ascontiguousarray(op.operand(1).values).reshape(-1), "int8_t")


def bias_constant(op: Op) -> Constant:
    """Return the constant "bias", int32 [out_c], zeros if the operator has none."""
    return int32s("bias", bias_values(op))


def int32s(name: str, values: Array) -> Constant:
    """Return a constant of int32."""
    return Constant(name, values.astype(np.int32), "int32_t")


def per_channel(site: CallSite) -> Let:
    """Return the declaration of cmsis_nn_per_channel_quant_params.

    The casts drop const: the struct has pointers to non-const, though CMSIS-NN only reads.
    """
    multipliers, shifts = (f"(int32_t *){site.constant(name)}" for name in ("multipliers", "shifts"))
    return Let("cmsis_nn_per_channel_quant_params", "quantization", {"multiplier": multipliers, "shift": shifts})
