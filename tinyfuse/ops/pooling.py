"""AVERAGE_POOL_2D and MAX_POOL_2D, int8: any filter, stride and padding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ir.fixedpoint import clamp
from tinyfuse.ops.base import RowWindow, Rule
from tinyfuse.ops.convolution import ACTIVATIONS, Clamped, clamp_range, windows_along
from tinyfuse.ops.images import ImageOperator


@dataclass(frozen=True)
class Pool2D(Clamped):
    """padding: "SAME" or "VALID"; filter, stride: (rows, columns); activation: one of ACTIVATIONS;
    clamp: (low, high) in stored units where a rewrite narrowed it."""

    padding: str
    filter: tuple[int, int]
    stride: tuple[int, int]
    activation: str = "NONE"
    clamp: tuple[int, int] | None = None


def pool_extents(op: Op) -> tuple[tuple[int, int], tuple[int, int]]:
    """((output rows, padding on top), (output columns, padding on the left))."""
    a, (_, height, width, _) = op.attributes_as(Pool2D), op.input.shape
    return (
        windows_along(height, a.filter[0], a.stride[0], 1, a.padding),
        windows_along(width, a.filter[1], a.stride[1], 1, a.padding),
    )


def _unquantized(op: Op) -> Tensor | None:
    return next((t for t in (op.input, op.output) if t.quant is None or t.quant.per_channel), None)


def _bad_window(op: Op) -> bool:
    pool = op.attributes_as(Pool2D)
    return not all(1 <= extent <= 32767 for extent in pool.filter + pool.stride)


def _bad_shape(op: Op) -> Tensor | None:
    (rows, _), (columns, _) = pool_extents(op)
    good = rows > 0 and columns > 0 and op.output.shape == (op.input.shape[0], rows, columns, op.input.shape[3])
    return None if good else op.output


def _requantized(op: Op) -> Tensor | None:
    same = abs(op.input.scale - op.output.scale) <= 1e-6 and op.input.zero_point == op.output.zero_point
    return None if same else op.output


class _Pool(ImageOperator):
    options_table = "Pool2DOptions"
    pools = True
    rules: tuple[Rule, ...] = (
        Rule("one input and one output", lambda op: len(op.inputs) != 1 or len(op.outputs) != 1 or None in op.inputs),
        Rule(
            "input and output are int8",
            lambda op: next((t for t in (op.input, op.output) if t.dtype != "int8"), None),
            "quantize the model to int8 (full integer quantization)",
        ),
        Rule("input and output have one scale and one zero point", _unquantized),
        Rule(
            "input and output have rank 4 and no empty dimension",
            lambda op: next((t for t in (op.input, op.output) if len(t.shape) != 4 or min(t.shape) < 1), None),
        ),
        Rule(
            "filter and stride are from 1 to 32767",
            _bad_window,
        ),
        Rule(
            "the output has the input's batch and channels, and the dimensions that filter, stride and padding give",
            _bad_shape,
        ),
        Rule(
            "input and output have the same scale and zero point",
            _requantized,
            "TensorFlow Lite Micro refuses it too",
        ),
        Rule(
            f"the fused activation is one of {', '.join(ACTIVATIONS)}",
            lambda op: op.attributes_as(Pool2D).activation not in ACTIVATIONS,
        ),
    )

    def attributes(self, options: Mapping[str, Any]) -> Pool2D:
        return Pool2D(
            options.get("padding", "SAME"),
            (options.get("filter_height", 0), options.get("filter_width", 0)),
            (options.get("stride_h", 0), options.get("stride_w", 0)),
            options.get("fused_activation_function", "NONE"),
        )

    def window(self, op: Op) -> RowWindow:
        (_, top), _ = pool_extents(op)
        pool = op.attributes_as(Pool2D)
        return RowWindow(pool.filter[0], pool.stride[0], top)

    def image(self, op: Op, *inputs: Array | None) -> Array:
        (rows, top), (columns, left) = pool_extents(op)
        (filter_h, filter_w), (stride_h, stride_w) = op.attributes_as(Pool2D).filter, op.attributes_as(Pool2D).stride
        result = np.empty(op.output.shape, np.int64)
        data = given(inputs[0])[0].astype(np.int64)
        for y in range(rows):
            y0 = y * stride_h - top
            for x in range(columns):
                x0 = x * stride_w - left
                window = data[max(0, y0) : y0 + filter_h, max(0, x0) : x0 + filter_w]
                result[0, y, x] = self.pool(window)
        return clamp(result, *clamp_range(op))

    def pool(self, window: Array) -> Array:
        """One output pixel [C] of the window's real input pixels [rows, columns, C]."""
        raise NotImplementedError


class AveragePoolOperator(_Pool):
    """The mean of the window's stored values, padding not counted, halves away from zero."""

    kind = "AVERAGE_POOL_2D"
    summary = "mean of windows of rows and columns"

    def pool(self, window: Array) -> Array:
        total, count = window.sum(axis=(0, 1)), window.shape[0] * window.shape[1]
        mean: Array = np.sign(total) * ((np.abs(total) + count // 2) // count)
        return mean


class MaxPoolOperator(_Pool):
    """The greatest of the window's stored values, padding left out."""

    kind = "MAX_POOL_2D"
    summary = "greatest value of windows of rows and columns"

    def pool(self, window: Array) -> Array:
        greatest: Array = window.max(axis=(0, 1))
        return greatest
