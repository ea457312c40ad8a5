"""Parameters, scale constants and access orders of fully connected layers, which compute one batch after another."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Array, Op
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, Division
from tinyfuse.kernels.core.statements import Let
from tinyfuse.kernels.layers.common.params import output_fields
from tinyfuse.kernels.requantize.two_roundings import has_one_scale

#: layout of the C struct tinyfuse_dense_scale
SCALE = np.dtype([("multiplier", "<i4"), ("shift", "<i4")])


def divide_by_channels(op: Op, together: int, by_row: bool) -> Division | None:
    """Return how a fully connected layer is cut into calls: by output channels, a multiple of `together` a call.

    None for a layer of several batches: its outputs of some channels do not lie side by side.
    """
    channels, rows = op.operand(1).shape[0], op.output.shape[1] if by_row else 1
    return Division(channels, together, along=False) if op.output.elements == channels * rows else None


def scale_constants(channels: Array) -> tuple[Constant, Constant]:
    """Return the constants "biases", int32 [out_c], and "scales", tinyfuse_dense_scale [out_c] or [1].

    `channels` are tinyfuse_requant [out_c]. One scale is kept where all channels have the same.
    """
    scales = channels[:1] if has_one_scale(channels["multiplier"], channels["shift"]) else channels
    return (
        Constant("biases", np.ascontiguousarray(channels["bias"]), "int32_t"),
        Constant("scales", scales[["multiplier", "shift"]].astype(SCALE), "tinyfuse_dense_scale"),
    )


def fully_connected_params(op: Op, site: CallSite, batches: int) -> Let:
    """Return the declaration `const tinyfuse_fully_connected p`, sizes and quantization of the layer."""
    out_c, in_c = op.operand(1).shape
    zero_points = op.operand(1).quantization.zero_point
    return Let("tinyfuse_fully_connected", "p", {
        "batches": batches, "in_c": in_c, "out_c": site.piece.count if site.piece else out_c,
        "in_zero_point": op.input.zero_point, "weights_zero_point": zero_points[0],
    } | output_fields(op))  # fmt: skip


def orders_by_batches(op: Op, buffered: bool) -> dict[int, AccessOrder]:
    """Return the access order of input 0 for a call that computes one batch after another.

    `buffered` says that a batch is copied to scratch before its outputs are written.
    """
    read, written = op.operand(1).shape[1], op.output.shape[-1]
    size = ITEM_BYTES[op.output.dtype]
    return {0: AccessOrder(read * size, written * size, buffered)}
