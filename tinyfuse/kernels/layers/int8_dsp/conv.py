"""Kernels of int8 CONV_2D (runtime_c/tinyfuse_conv.h, tinyfuse_conv_packed.h, tinyfuse_pointwise*.h,
tinyfuse_matmul_4x2.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, RowKernel, require_proven
from tinyfuse.kernels.core.methods import always, of_calls, of_operator
from tinyfuse.kernels.core.statements import Expr, Statement
from tinyfuse.kernels.counts.im2col import packed_4_pixel_counts, packed_counts, pointwise_counts
from tinyfuse.kernels.counts.layers import few_channels_counts, layer_counts
from tinyfuse.kernels.counts.windows import byte_window_counts
from tinyfuse.kernels.layers.common import params
from tinyfuse.kernels.layers.int8_dsp import lanes
from tinyfuse.kernels.layers.int8_dsp.dense import Dense, DenseWide, dense_call
from tinyfuse.kernels.layers.int8_dsp.im2col_blocks import Im2colRow, InBlocks, PointwiseInBlocks
from tinyfuse.kernels.requantize.half_even import share_of_single_rounding
from tinyfuse.kernels.requantize.single_rounding import single_rounding
from tinyfuse.ops.core.convolution import geometry, is_plain_pointwise


class ConvRow(RowKernel):
    """Convolution of int8 of any kernel size, stride, dilation, padding and groups, in portable C."""

    name = "tinyfuse_conv_row_s8"
    no_inline = True
    headers = ("tinyfuse_conv.h",)
    columns = 1
    row_access_orders = of_operator(params.orders_by_pixels)
    counts = of_calls(byte_window_counts)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return params.plain_weights(op), params.general_channels(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return params.conv_row_call(self, op, site)


_SHORT_ROW = c_constant("tinyfuse_conv_packed.h", "TINYFUSE_SHORT_ROW")


def has_own_code(op: Op) -> bool:
    """Return whether a layer's call is compiled as a copy of its own.

    That is so where a kernel row has at most TINYFUSE_SHORT_ROW bytes and a pixel's bytes are not a multiple of four:
    the compiler then knows the row's length.
    """
    g = geometry(op)
    return g.in_c % 4 != 0 and g.kernel_w * g.in_c <= _SHORT_ROW


#: names of the code that gathers windows at the image's borders: for pixels whose bytes are not a multiple of four, and
#: for those whose bytes are. The compiler specializes each if a single call uses it. The code that layers share calls
#: both
AT_BORDERS, WINDOWS_OF_WORDS = CODE_OF_WINDOWS = "windows at borders", "windows of words at borders"


def kind_of_windows(op: Op, own: bool) -> str:
    """Return the end of a cost path, which names the code that gathers windows.

    It is empty if a pixel's bytes are a multiple of four. `own`: whether the kernel has a copy of the code compiled for
    short rows (`has_own_code`).
    """
    if geometry(op).in_c % 4 == 0:
        return ""
    return " of its own" if own and has_own_code(op) else " of odd rows"


class MatmulKernel(InBlocks):
    """Kernel that multiplies blocks of pixels by weights (runtime_c/tinyfuse_matmul.h).

    least_pixels  pixels of a block if the plan wants the least scratch
    shifts        True if the C also has forms for channels with left shifts, and for rounding halves to even
    """

    least_pixels = 1
    shifts = False
    arrays: tuple[str, ...] = ("weights", "channels")
    counts = of_calls(layer_counts)

    def layer(self, op: Op, context: Context) -> lanes.Matmul | None:
        """The layer in the kernel's fastest form that is proven exact; None where there is none."""
        found, dsp = lanes.matmul_layer(op, context), context.target.dsp
        if found is None and self.shifts:
            return lanes.half_even_layer(op, dsp, dense=False) or lanes.shifting_layer(op, dsp, dense=False)
        return found

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and self.layer(op, context) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return lanes.matmul_constants(require_proven(self.layer(op, context)))

    def input_bytes(self, context: Context) -> int:
        return lanes.column_bytes(context)

    def last_arguments(self, op: Op, context: Context) -> tuple[Expr, ...]:
        return (self.form(op, context),)

    def block(self, op: Op, context: Context) -> int:
        return self.least_pixels if context.wants_least_scratch(op) else lanes.block_pixels(context)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        form = self.form(op, context)
        lines = share_of_single_rounding(op, 2) if form == lanes.HALF_EVEN else 0.0
        path = lanes.cost_path(form, context.target.fpu, lines)
        return f"{path}, blocks of {self.block(op, context)}"

    def windows(self, op: Op) -> str:
        """Return the end of a cost path that names the code which gathers the operator's windows."""
        return ""

    def form(self, op: Op, context: Context) -> str:
        """Return the C's argument `form`."""
        return require_proven(self.layer(op, context)).form

    def copy_of_code(self, op: Op, context: Context) -> str:
        """Return the name of the code that the compiler specializes: one for each form."""
        return f"{self.name} {lanes.form_name(self.form(op, context))}"


class PackedConvRow(MatmulKernel, Im2colRow):
    """Convolution of int8 without groups, by im2col and tinyfuse_matmul.h.

    own  whether a layer with short rows gets a compiled copy of its own (`has_own_code`)
    """

    name = "tinyfuse_conv_packed_row_s8"
    headers, form_of = ("tinyfuse_conv_packed.h",), None
    own, shifts = True, True
    counts = of_calls(packed_counts)
    calls_too = always(CODE_OF_WINDOWS)

    def windows(self, op: Op) -> str:
        return kind_of_windows(op, self.own)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return super().path(op, by_row, context) + self.windows(op)

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        return super().path(op, by_row, context) + " of its own" * self.own_code(op)

    def own_code(self, op: Op) -> bool:
        return self.own and has_own_code(op)

    def copy_of_code(self, op: Op, context: Context) -> str:
        return AT_BORDERS if self.own_code(op) else super().copy_of_code(op, context)

    def windows_by(self, op: Op, context: Context) -> str | None:
        if self.own_code(op):
            return None
        words = context.target.dsp and geometry(op).in_c % 4 == 0  # one function gathers all windows of bytes
        return WINDOWS_OF_WORDS if words else AT_BORDERS

    def last_arguments(self, op: Op, context: Context) -> tuple[Expr, ...]:
        return self.block(op, context), self.form(op, context)


class Pointwise(MatmulKernel, PointwiseInBlocks):
    """1x1 convolution of int8 with stride 1, by runtime_c/tinyfuse_matmul.h."""

    name = "tinyfuse_pointwise_s8"
    headers, form_of = ("tinyfuse_pointwise.h",), None
    shifts = True
    counts = of_calls(pointwise_counts)


class _ColumnRow(Dense):
    """Pointwise convolution of an int8 image one pixel wide, computed as a fully connected layer per row."""

    by_row, whole, rings = True, False, True

    def accepts(self, op: Op, context: Context) -> bool:
        return op.input.shape[2] == 1 and is_plain_pointwise(op) and super().accepts(op, context)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        pointer, _ = params.pointwise_input(op, site)
        return dense_call(self, op, site, context, pointer, batches=1)


class PointwiseColumnWideRow(_ColumnRow, DenseWide):
    """Pointwise convolution of an int8 image one pixel wide; it first extends its inputs to int16."""


class PointwiseColumnRow(_ColumnRow):
    """Pointwise convolution of an int8 image one pixel wide that reads its inputs as bytes."""


class _Tile4x2(MatmulKernel):
    """Base of layers with an even number of output channels, computed by tiles of four pixels by two channels.

    The weights of two channels share the lanes of a word. Each weight is loaded once for four pixels: fewer cycles if
    flash is slow, for more scratch.
    """

    headers = ("tinyfuse_matmul_4x2.h",)
    counts = of_calls(packed_4_pixel_counts)
    block = always(4)

    def accepts(self, op: Op, context: Context) -> bool:
        target = context.target
        if context.optimize != "speed" or not target.dsp or target.mve or not super().accepts(op, context):
            return False
        layer = self.layer(op, context)
        return op.output.shape[3] % 2 == 0 and layer is not None and layer.form in (lanes.LANES, lanes.SINGLE_ROUNDING)


class Pointwise4x2(_Tile4x2, Pointwise):
    """1x1 convolution of int8 with stride 1, four pixels times two channels at a time."""

    name = "tinyfuse_pointwise_4x2_s8"


class Conv4x2Row(_Tile4x2, PackedConvRow):
    """Convolution of int8 without groups, by im2col, four pixels times two channels at a time."""

    name = "tinyfuse_conv_4x2_row_s8"


#: pixels for which a channel's weights are loaded once: more would take scratch and save little
_FEW_CHANNELS_BLOCK = 64


class FewChannelsPointwise(PointwiseInBlocks):
    """1x1 convolution of int8 with stride 1 and four or eight input channels, which keeps an output channel's weights,
    int16 in flash, in registers."""

    name = "tinyfuse_pointwise_few_channels_s8"
    headers = ("tinyfuse_pointwise_few_channels.h",)
    weights = "unpacked"
    arrays, form_of = ("channels",), None
    division = of_calls(params.divide_by_pixels, 1)
    counts = of_calls(few_channels_counts, _FEW_CHANNELS_BLOCK)

    def accepts(self, op: Op, context: Context) -> bool:
        allowed = context.weights in ("auto", self.weights) and context.target.dsp and not context.target.mve
        narrow = is_plain_pointwise(op) and op.input.shape[3] in (4, 8)
        return allowed and narrow and context.optimize != "ram" and single_rounding(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """Return the constant "channels", int32: per output channel weights, bias, multiplier.

        Weights are multiplied by 256, two to a word: those of inputs 0 and 2, then of 1 and 3, of each four.
        """
        found = require_proven(single_rounding(op))
        out_c, in_c = found.weights.shape
        quads = 256 * found.weights.astype("<i2").reshape(out_c, in_c // 4, 2, 2).transpose(0, 1, 3, 2)
        line = found.channels()
        words = [np.ascontiguousarray(quads).reshape(out_c, in_c).view("<i4"), line["bias"][:, None]]
        channels = np.concatenate([*words, line["multiplier"][:, None]], axis=1).astype("<i4")
        return (Constant("channels", channels.reshape(-1), "int32_t"),)

    def block(self, op: Op, context: Context) -> int:
        """Return the pixels of a block, at most those of the image."""
        return min(_FEW_CHANNELS_BLOCK, op.output.shape[1] * op.output.shape[2])
