"""Convolutions by tiles of four pixels by two output channels (runtime_c/tinyfuse_matmul_4x2.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import counted_by
from tinyfuse.kernels.counts.im2col import packed_4_pixel_counts
from tinyfuse.kernels.layers.int8_dsp.conv import MatmulKernel, PackedConvRow, Pointwise, PointwiseRow
from tinyfuse.kernels.layers.int8_dsp.lanes import LANES, SINGLE_ROUNDING

_HEADERS = ("tinyfuse_matmul_4x2.h",)


class _Tile4x2(MatmulKernel):
    """Base of layers with an even number of output channels; the weights of two channels share the lanes of a word.

    Each weight is loaded once for four pixels: fewer cycles if flash is slow, for more scratch.
    """

    headers = _HEADERS
    counts = counted_by(packed_4_pixel_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        target = context.target
        if context.optimize != "speed" or not target.dsp or target.mve or not super().accepts(op, context):
            return False
        layer = self.layer(op, context)
        return op.output.shape[3] % 2 == 0 and layer is not None and layer.form in (LANES, SINGLE_ROUNDING)

    def block(self, op: Op, context: Context) -> int:
        return 4


class Pointwise4x2(_Tile4x2, Pointwise):
    """1x1 convolution of int8 with stride 1, four pixels times two channels at a time."""

    name = "tinyfuse_pointwise_4x2_s8"


class Pointwise4x2Row(_Tile4x2, PointwiseRow):
    """1x1 convolution of int8 with stride 1, four pixels times two channels at a time, one output row a call."""

    name = Pointwise4x2.name


class Conv4x2Row(_Tile4x2, PackedConvRow):
    """Convolution of int8 without groups, by im2col, four pixels times two channels at a time."""

    name = "tinyfuse_conv_4x2_row_s8"
