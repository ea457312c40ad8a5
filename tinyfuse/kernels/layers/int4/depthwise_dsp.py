"""Depthwise convolutions with int4 weights for cores with the DSP extension and no Helium.

Every call expands the weights to int8 in scratch (runtime_c/tinyfuse_weights_s4.h) and then runs an int8 kernel. The
expansion is cheap: a channel's few weights serve a whole row.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import INT4, Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.statements import Statement
from tinyfuse.kernels.core.wrapper import Wrapper
from tinyfuse.kernels.layers.common.params import conv_row_call
from tinyfuse.kernels.layers.int8_dsp.depthwise import Depthwise3x3Row, PackedDepthwiseRow, form_argument

#: weights that are expanded together
_BLOCK = c_constant("tinyfuse_weights_s4.h", "TINYFUSE_BLOCK_S4")


class Int4Depthwise(Wrapper):
    """Wrapper of `kernel`, an int8 depthwise convolution, for int4 weights stored two to a byte.

    A call for row y reads only the input rows of y's own window (from RowWindow.first(y) on), and
    writes only its output row.
    """

    int4_weights = True
    columns = 0  # each part of a row would expand all weights

    def __init__(self, kernel: Kernel):
        headers = tuple(header.removesuffix(".h") + "_s4.h" for header in kernel.headers)
        super().__init__(kernel, name=kernel.name.removesuffix("_s8") + "_s4", headers=headers)

    def accepts(self, op: Op, context: Context) -> bool:
        # for --optimize ram, int8 weights in flash need no scratch
        wanted = context.target.dsp and not context.target.mve and context.optimize != "ram"
        fits = wanted and op.operand(1).dtype == INT4 and self.kernel.accepts(op, context)
        return fits and bool(((weights := self._weights(op, context)[0].data) >= -8).all() and (weights <= 7).all())

    def _weights(self, op: Op, context: Context) -> tuple[Constant, Constant]:
        weights, channels = self.kernel.constants(op, context)
        return weights, channels

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights, channels = self._weights(op, context)
        values = np.pad(weights.data, (0, -weights.data.size % _BLOCK)).reshape(-1, 2, _BLOCK // 2)
        nibbles = (values + 8).astype(np.uint8)
        words = (nibbles[:, 0] | nibbles[:, 1] << 4).reshape(-1).view("<u4").astype(np.uint32)
        return Constant("weights", words, "uint32_t"), channels

    def scratch(self, op: Op, context: Context) -> int:
        return _BLOCK * self._blocks(op, context) + self.kernel.scratch(op, context)

    def _blocks(self, op: Op, context: Context) -> int:
        return -(-self._weights(op, context)[0].data.size // _BLOCK)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch, self._blocks(op, context), form_argument(op))


#: kernels in order of preference
INT4_DEPTHWISE: tuple[Kernel, ...] = (Int4Depthwise(Depthwise3x3Row()), Int4Depthwise(PackedDepthwiseRow()))
