"""Constants as our C kernels expect them, and the parameter structs of their calls."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.ops.base import Constant, Let, Site
from tinyfuse.ops.convolution import bias_values, channel_multipliers, clamp_range, geometry

#: tinyfuse_requant
REQUANT = np.dtype([("bias", "<i4"), ("multiplier", "<i4"), ("shift", "<i4")])


def general_channels(op: Op) -> Constant:
    """Per output channel: bias, multiplier and shift as TensorFlow Lite Micro has them."""
    channels = np.zeros(op.output.shape[-1], REQUANT)
    channels["bias"] = bias_values(op)
    channels["multiplier"], channels["shift"] = channel_multipliers(op)
    return Constant("channels", channels, "tinyfuse_requant")


def plain_weights(op: Op) -> Constant:
    """The weights in the order of the file."""
    return Constant("weights", np.ascontiguousarray(op.inputs[1].data).reshape(-1), "int8_t")


def output_fields(op: Op) -> dict[str, int]:
    low, high = clamp_range(op)
    return {"out_zero_point": op.output.zero_point, "act_min": low, "act_max": high}


def conv_params(op: Op, site: Site) -> Let:
    """`const tinyfuse_conv p`: geometry and quantization of a (depthwise) convolution."""
    g = geometry(op)
    fields = {
        "in_h": g.in_h, "in_w": g.in_w, "in_c": g.in_c, "in_ring": site.inputs[0].ring_rows,
        "out_w": g.out_w, "out_c": g.out_c, "groups": g.groups,
        "kernel_h": g.kernel_h, "kernel_w": g.kernel_w,
        "stride_h": g.stride_h, "stride_w": g.stride_w,
        "dilation_h": g.dilation_h, "dilation_w": g.dilation_w,
        "pad_top": g.pad_top, "pad_left": g.pad_left,
        "in_zero_point": op.input.zero_point,
    }  # fmt: skip
    return Let("tinyfuse_conv", "p", fields | output_fields(op))
