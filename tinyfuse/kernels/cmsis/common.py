"""What the records of CMSIS-NN's functions share (docs/cmsis-nn.md has the facts they rest on)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Array, Op
from tinyfuse.kernels.base import CallSite, Constant, Context, Kernel, Let, Statement
from tinyfuse.kernels.rows import row_pointer
from tinyfuse.ops.base import RowWindow
from tinyfuse.ops.convolution import bias_values, channel_multipliers, clamp_range

SUCCESS = "ARM_CMSIS_NN_SUCCESS"

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
    """A function that computes a whole image, or one output row from the image of its window.

    By rows the window's rows must lie in order: the input is whole, or one row of it is all that a
    window takes.
    """

    headers = ("arm_nnfunctions.h", "tinyfuse_window.h")
    by_row = True

    def takes_rings(self, op: Op) -> bool:
        return self.window(op).kernel == 1 and not op.reads_ring

    @abstractmethod
    def window(self, op: Op) -> RowWindow:
        """The input rows that an output row reads."""


# --- rows ------------------------------------------------------------------------------------


def row_extents(window: RowWindow, out_h: int, in_h: int) -> set[tuple[int, int]]:
    """(rows that exist, padding rows above them) of every output row's window, as
    tinyfuse_window_at has them."""
    dims = set()
    for y in range(out_h):
        rows = max(0, window.needed(y, in_h) - window.first(y))
        dims.add((rows, min(window.kernel, max(0, window.pad_top - y * window.stride))))
    return dims


@dataclass(frozen=True)
class Image:
    """The image that a call computes from: C for its start, its rows, and its padding above."""

    statements: tuple[Statement, ...]
    pointer: str
    rows: int | str
    out_rows: int
    pad_top: int | str


def image(window: RowWindow, site: CallSite) -> Image:
    """The whole input, or for a call by rows the window of the site's row."""
    source, output = site.input(0), site.output
    in_h, out_h = source.tensor.shape[1], output.tensor.shape[1]
    if site.row is None:
        return Image((), source.pointer, in_h, out_h, window.pad_top)
    in_order = source.ring_rows >= in_h or window.kernel == 1
    if not in_order:
        raise InternalFault("a kernel's call", f"rows of {source.tensor} are not in order in a ring")
    if window.kernel == 1 and row_extents(window, out_h, in_h) == {(1, 0)}:
        row = site.row if window.stride == 1 else f"({site.row} * {window.stride})"
        return Image((), row_pointer(source, row), 1, 1, 0)
    numbers = f"{window.stride}, {window.pad_top}, {window.kernel}, {in_h}"
    let = Let("tinyfuse_window", "window", f"tinyfuse_window_at({site.row}, {numbers})")
    return Image((let,), row_pointer(source, "window.first"), "window.rows", 1, "window.pad_top")


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
