"""Pointwise convolutions of four or eight input channels (runtime_c/tinyfuse_pointwise_few_channels.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import Constant, require_proven
from tinyfuse.kernels.core.methods import of_calls
from tinyfuse.kernels.counts.layers import few_channels_counts
from tinyfuse.kernels.layers.common.params import divide_by_pixels
from tinyfuse.kernels.layers.int8_dsp.im2col_blocks import PointwiseInBlocks
from tinyfuse.kernels.requantize.single_rounding import single_rounding
from tinyfuse.ops.core.convolution import is_plain_pointwise

#: pixels for which a channel's weights are loaded once: more would take scratch and save little
_BLOCK = 64


class FewChannelsPointwise(PointwiseInBlocks):
    """1x1 convolution of int8 with stride 1 and four or eight input channels, which keeps an output channel's weights,
    int16 in flash, in registers."""

    name = "tinyfuse_pointwise_few_channels_s8"
    headers = ("tinyfuse_pointwise_few_channels.h",)
    weights = "unpacked"
    arrays, form_of = ("channels",), None
    division = of_calls(divide_by_pixels, 1)
    counts = of_calls(few_channels_counts, _BLOCK)

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
        return min(_BLOCK, op.output.shape[1] * op.output.shape[2])
