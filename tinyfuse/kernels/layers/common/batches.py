"""Parameters, scales and access orders of fully connected layers, which go from batch to batch."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Array, Op
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, Division
from tinyfuse.kernels.core.statements import Let
from tinyfuse.kernels.layers.common.params import output_fields
from tinyfuse.kernels.requantize.two_roundings import has_one_scale

#: tinyfuse_dense_scale
SCALE = np.dtype([("multiplier", "<i4"), ("shift", "<i4")])


def of_channels(op: Op, together: int, by_row: bool) -> Division | None:
    """The division of a dense layer: some output channels a piece, a multiple of so many; of one batch alone."""
    channels, rows = op.operand(1).shape[0], op.output.shape[1] if by_row else 1
    return Division(channels, together, along=False) if op.output.elements == channels * rows else None


def scale_constants(channels: Array) -> tuple[Constant, Constant]:
    """Constants "biases" and "scales" of tinyfuse_requant [out_c]: biases [out_c], scales [out_c] or one for all."""
    scales = channels[:1] if has_one_scale(channels["multiplier"], channels["shift"]) else channels
    return (
        Constant("biases", np.ascontiguousarray(channels["bias"]), "int32_t"),
        Constant("scales", scales[["multiplier", "shift"]].astype(SCALE), "tinyfuse_dense_scale"),
    )


def fully_connected_params(op: Op, site: CallSite, batches: int) -> Let:
    """`const tinyfuse_fully_connected p`."""
    out_c, in_c = op.operand(1).shape
    zero_points = op.operand(1).quantization.zero_point
    return Let("tinyfuse_fully_connected", "p", {
        "batches": batches, "in_c": in_c, "out_c": site.piece.count if site.piece else out_c,
        "in_zero_point": op.input.zero_point, "weights_zero_point": zero_points[0],
    } | output_fields(op))  # fmt: skip


def orders_by_batches(op: Op, buffered: bool) -> dict[int, AccessOrder]:
    """One batch after the other."""
    read, written = op.operand(1).shape[1], op.output.shape[-1]
    size = ITEM_BYTES[op.output.dtype]
    return {0: AccessOrder(read * size, written * size, buffered)}
