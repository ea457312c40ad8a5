"""Our kernels of FULLY_CONNECTED (runtime_c/tinyfuse_fully_connected*.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.packing import general_channels, output_fields, plain_weights
from tinyfuse.ops.base import Call, Constant, Context, Kernel, Let, Site, Statement


class FullyConnectedWhole(Kernel):
    """Any fully connected layer, in portable C. The output must not overlap the input."""

    name = "tinyfuse_fully_connected_s8"
    headers = ("tinyfuse_fully_connected.h",)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return plain_weights(op), general_channels(op)

    def call(self, op: Op, site: Site, context: Context) -> tuple[Statement, ...]:
        out_c, in_c = op.inputs[1].shape
        zero_points = op.inputs[1].quant.zero_point
        params = Let("tinyfuse_fully_connected", "p", {
            "batches": op.output.elements // out_c, "in_c": in_c, "out_c": out_c,
            "in_zero_point": op.input.zero_point, "weights_zero_point": zero_points[0],
        } | output_fields(op))  # fmt: skip
        return params, Call(
            self.name,
            ("&p", site.inputs[0].pointer, site.outputs[0].pointer,
             site.constant("weights"), site.constant("channels")),
        )  # fmt: skip
