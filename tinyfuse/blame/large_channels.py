"""Finds the layer whose large channel makes a later layer inaccurate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyfuse.blame.causes import SPREAD, channel_magnitudes, channel_spread, constant_weights
from tinyfuse.blame.layers import Layer, read_by
from tinyfuse.blame.measure import Errors
from tinyfuse.ir import Tensor

#: layers and their errors, by the float model's tensors that they make
Made = Mapping[Tensor, tuple[Layer, Errors]]


def layer_with_large_channel(layer: Layer, made: Made) -> Layer | None:
    """Return the earlier layer that has a channel SPREAD times as large as the median one, if that spoils this layer;
    None without one.

    Constant weights are spoiled if those for the channel are as much smaller than the others, because few levels are
    left for them. A layer without weights, such as a pool, is spoiled because it passes the channel on.
    """
    read = read_by(layer.float_steps)
    if len(read) != 1 or read[0] not in made:
        return None
    before, errors = made[read[0]]
    if channel_spread(errors) < SPREAD or not _has_small_weights(layer, errors):
        return None
    passes_on = constant_weights(before.float_steps) is None
    return (layer_with_large_channel(before, made) if passes_on else None) or before


def _has_small_weights(layer: Layer, errors: Errors) -> bool:
    """Tell whether the weights with which a layer reads a large channel of its input are small; True for a layer
    without weights. `errors` are those of the input."""
    found = constant_weights(layer.float_steps)
    if found is None:
        return True
    weights, axis = found
    inputs = weights.values.ndim - 1
    if axis == inputs:  # depthwise: each channel has a scale of its own
        return False
    magnitudes, largest = channel_magnitudes(weights, inputs), np.atleast_1d(errors.channels.largest)
    if magnitudes.shape != largest.shape:
        return False
    is_large = largest >= SPREAD * np.median(largest[largest > 0])
    return bool((is_large & (SPREAD * magnitudes <= magnitudes.max())).any())
