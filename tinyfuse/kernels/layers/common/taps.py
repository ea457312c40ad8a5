"""Taps of depthwise convolutions: lists of them in scratch, and their order in packed weights."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.kernel import AccessOrder
from tinyfuse.kernels.layers.common.params import POINTER_BYTES
from tinyfuse.ops.core.convolution import geometry


def orders_by_columns(op: Op) -> dict[int, AccessOrder]:
    """Return the access order of input 0 for windows one column wide, else an empty dict.

    With stride 1, depth multiplier 1 and no padding, each element is read before its place is written.
    """
    g = geometry(op)
    plain = (g.kernel_w, g.stride_w, g.pad_left) == (1, 1, 0)
    return {0: AccessOrder(1, 1)} if plain and (g.in_w, g.in_c) == (g.out_w, g.out_c) else {}


#: name of the code that lists a window's taps. Kernels share it; if a single layer calls it, compilers specialize it
LISTS_OF_TAPS = "lists of taps"


def taps_scratch(op: Op, item: int = 1) -> int:
    """Return the scratch bytes of tinyfuse_depthwise_taps: a pointer a tap, an even count, and a pixel of padding if
    needed, whose elements take `item` bytes each."""
    g = geometry(op)
    padding = item * g.in_c if g.pads_rows or g.pads_columns else 0
    return (g.kernel_h * g.kernel_w + 1) // 2 * 2 * POINTER_BYTES + padding


def group_starts(channels: int, together: int) -> list[int]:
    """Return the first channels of groups of `together`; the last group ends with the last channel and may overlap."""
    return [min(start, channels - together) for start in range(0, channels, together)]


def quads_of(channels: int) -> Array:
    """Return the channels of groups of four, [groups, 4], as `group_starts` makes them."""
    return np.array(group_starts(channels, 4))[:, None] + np.arange(4)


def packed_taps(weights: Array) -> Array:
    """Return int8 weights [channels, taps] in one dimension, grouped by four channels and two taps.

    The order is that of runtime_c/tinyfuse_depthwise_packed.h; an odd count of taps gets a zero tap.
    """
    channels, taps = weights.shape
    even = np.zeros((channels, taps + taps % 2), np.int8)
    even[:, :taps] = weights
    # each group: [4 channels, pairs, 2 taps] -> [pairs, 2 halves of the channels, 2 taps, 2 channels]
    groups = even[quads_of(channels)]
    packed: Array = groups.reshape(len(groups), 2, 2, -1, 2).transpose(0, 3, 1, 4, 2).reshape(-1)
    return packed
