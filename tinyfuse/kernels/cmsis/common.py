"""What the records of CMSIS-NN's functions share (docs/cmsis-nn.md, docs/kernels-cmsis-nn.md)."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.kernel import CallSite, Constant, Context, Kernel
from tinyfuse.kernels.core.rows import row_pointer
from tinyfuse.kernels.core.statements import Let, Statement
from tinyfuse.ops.core.convolution import bias_values, channel_multipliers, clamp_range
from tinyfuse.ops.core.family import RowWindow

SUCCESS = "ARM_CMSIS_NN_SUCCESS"

#: rows a call of functions that set up much for a call, or compute several pixels at a time
SEVERAL_ROWS = (2, 4, 8)

#: CMSIS-NN keeps dimensions in uint16_t and positions in int16_t variables
MAX_DIM = 32767


class CmsisKernel(Kernel):
    """A function of CMSIS-NN on a Cortex-M; the host has no arm_acle.h to compile it with."""

    library = "cmsis-nn"
    headers: tuple[str, ...] = ("arm_nnfunctions.h",)
    stack_bytes = 768

    def accepts(self, op: Op, context: Context) -> bool:
        return context.target.cpu is not None


class CmsisRows(CmsisKernel):
    """A function that computes a whole image, or one output row from the image of its window; `several` makes forms of
    it that compute more rows a call.

    By rows the window's rows must lie in order: the input is whole, a ring that slides, or one row of it is all that
    a window takes.
    """

    headers = ("arm_nnfunctions.h", "tinyfuse_window.h")
    by_row, in_order = True, True

    #: rows a call of its other forms: what a call sets up, and pixels that are left over from blocks, count less there
    several_rows: tuple[int, ...] = ()

    def several(self, rows: int) -> CmsisRows:
        """The form that makes so many rows a call."""
        form = copy(self)
        form.rows_a_call, form.whole = rows, False
        return form

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and (self.rows_a_call == 1 or self._takes_several(op, context))

    def _takes_several(self, op: Op, context: Context) -> bool:
        """Whether calls for several rows are wanted, and no row's window is all padding."""
        if context.divided or not self.rows_a_call < op.output.shape[1] or not self.rows_a_call <= context.at_once:
            return False
        return all(rows for rows, _, _ in rows_of_calls(self.window(op), op.output.shape[1], op.input.shape[1]))

    def takes_rings(self, op: Op) -> bool:
        return self.window(op).kernel == 1 and self.rows_a_call == 1 and not op.reads_ring

    @abstractmethod
    def window(self, op: Op) -> RowWindow:
        """The input rows that an output row reads."""


# --- rows ------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def rows_of_calls(window: RowWindow, out_h: int, in_h: int, at_once: int = 1) -> frozenset[tuple[int, int, int]]:
    """(rows that exist, padding rows above them, output rows) of every call for so many output rows, as
    tinyfuse_window_at has them."""
    dims, calls = set(), range(0, out_h, at_once)
    for at_border in (calls, reversed(calls)):
        for y in at_border:
            count, start = min(at_once, out_h - y), y * window.stride - window.pad_top
            rows = max(0, window.needed(y + count - 1, in_h) - window.first(y))
            dims.add((rows, min(window.kernel, max(0, -start)), count))
            end = start + (count - 1) * window.stride + window.kernel
            if start >= 0 and end <= in_h and (count, window.spread) == (at_once, 1):
                break  # so are all up to the other border
    return frozenset(dims)


@dataclass(frozen=True)
class Image:
    """The image that a call computes from: C for its start, its rows, and its padding above; how many output rows it
    makes, and how far apart these are in it."""

    statements: tuple[Statement, ...]
    pointer: str
    rows: int | str
    out_rows: int | str
    pad_top: int | str
    stride: int


def image(window: RowWindow, site: CallSite, at_once: int = 1) -> Image:
    """The whole input, or for a call by rows the windows of so many rows from the site's row on."""
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
    # of one output row the stride means nothing, and 1 keeps the path for stride 1 open
    stride = 1 if at_once == 1 else window.stride
    exists = all(pad == 0 and rows == count for rows, pad, count in rows_of_calls(window, out_h, in_h, at_once))
    if window.kernel == 1 and exists:
        row = site.row if window.stride == 1 else f"({site.row} * {window.stride})"
        return Image(counted, row_pointer(source, row), count, count, 0, stride)
    numbers = f"{count}, {window.stride}, {window.pad_top}, {window.kernel}, {in_h}"
    let = Let("tinyfuse_window", "window", f"tinyfuse_window_at({site.row}, {numbers})")
    return Image((*counted, let), row_pointer(source, "window.first"), "window.rows", count, "window.pad_top", stride)


# --- arguments -------------------------------------------------------------------------------


def function_context(site: CallSite, scratch: int) -> Let:
    """The scratch, as cmsis_nn_context."""
    return Let("cmsis_nn_context", "context", {"buf": site.scratch, "size": scratch})


def dims(name: str, n: int, h: int | str, w: int, c: int) -> Let:
    """`const cmsis_nn_dims NAME_dims`."""
    return Let("cmsis_nn_dims", f"{name}_dims", {"n": n, "h": h, "w": w, "c": c})


def tile(h: int | str, w: int) -> dict[str, int | str]:
    """The fields of a cmsis_nn_tile."""
    return {"w": w, "h": h}


def activation(op: Op) -> dict[str, int]:
    """The fields of a cmsis_nn_activation: the operator's clamp."""
    low, high = clamp_range(op)
    return {"min": low, "max": high}


def channel_constants(op: Op) -> tuple[Constant, ...]:
    """Weights as in the file, bias, multipliers and shifts, one an output channel.

    The bias is there even when the operator has none: some functions add an offset to the pointer.
    """
    multipliers, shifts = channel_multipliers(op)
    channels = int32s("multipliers", multipliers), int32s("shifts", shifts)
    return weights_constant(op), bias_constant(op), *channels


def weights_constant(op: Op) -> Constant:
    """The weights in the order of the file."""
    return Constant("weights", np.ascontiguousarray(op.operand(1).values).reshape(-1), "int8_t")


def bias_constant(op: Op) -> Constant:
    """The bias, int32 [out_c], zeros where the operator has none."""
    return int32s("bias", bias_values(op))


def int32s(name: str, values: Array) -> Constant:
    """An array of int32."""
    return Constant(name, values.astype(np.int32), "int32_t")


def per_channel(site: CallSite) -> Let:
    """CMSIS-NN's struct has pointers to non-const, though it only reads."""
    return Let(
        "cmsis_nn_per_channel_quant_params",
        "quantization",
        {
            "multiplier": f"(int32_t *){site.constant('multipliers')}",
            "shift": f"(int32_t *){site.constant('shifts')}",
        },
    )
