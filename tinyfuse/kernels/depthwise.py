"""Our kernels of DEPTHWISE_CONV_2D (runtime_c/tinyfuse_depthwise*.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.packing import conv_params, general_channels, plain_weights
from tinyfuse.ops.base import Call, Constant, Context, Kernel, Site, Statement


class DepthwiseRow(Kernel):
    """Any depthwise convolution, in portable C.

    A call for row y reads only the input rows of y's own window (from RowWindow.first(y) on), and
    writes only its output row, which must not overlap them.
    """

    name = "tinyfuse_depthwise_row_s8"
    headers = ("tinyfuse_depthwise.h",)
    by_row, whole, rings = True, False, True

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return plain_weights(op), general_channels(op)

    def call(self, op: Op, site: Site, context: Context) -> tuple[Statement, ...]:
        return conv_params(op, site), Call(
            self.name,
            ("&p", site.inputs[0].pointer, site.row, site.outputs[0].pointer,
             site.constant("weights"), site.constant("channels")),
        )  # fmt: skip
