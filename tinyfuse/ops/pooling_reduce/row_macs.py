"""ROW_MACS, OUTPUT_OF_SUMS and MEAN_OF_SUM: operators of ours, made by rewrite/split_full_height.py
alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ops.core.convolution import requantize_channels
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow
from tinyfuse.ops.pooling_reduce.reduce_scaling import outputs_of_totals, reduced_count


@dataclass(frozen=True)
class RowMacs:
    """Attributes of ROW_MACS: the layer's geometry along a row. depthwise: output channel c reads only input channel c
    / (U / C)."""

    stride: int
    dilation: int
    pad_left: int
    depthwise: bool


@dataclass(frozen=True)
class PartOfLayer:
    """Attributes of OUTPUT_OF_SUMS: `layer`, the operator before it was split."""

    layer: Op

    def __str__(self) -> str:
        return f"of {self.layer.kind}"


class RowMacsFamily(OpFamily):
    """ROW_MACS: int8 [1, H, W, C] and weights int8 [H, kernel columns, U, terms] -> int32 [1, H, columns, U]. Output
    row y is the sum that rows 0 to y add to the accumulators of a layer whose window is as high as the image. `terms`
    are the C input channels, or 1 for a depthwise convolution."""

    kind = "ROW_MACS"
    summary = "what the rows up to each row add to a layer's accumulators"
    in_files = False
    partial = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        geometry, weights = op.attributes_as(RowMacs), given(inputs[1]).astype(np.int64)
        values = given(inputs[0])[0].astype(np.int64) - op.input.zero_point
        columns = np.arange(op.output.shape[2]) * geometry.stride - geometry.pad_left
        sums = np.zeros(op.output.shape[1:], np.int64)
        for k in range(weights.shape[1]):
            x = columns + k * geometry.dilation
            window = values[:, np.clip(x, 0, values.shape[1] - 1)]
            window = window * ((x >= 0) & (x < values.shape[1]))[None, :, None]
            if geometry.depthwise:
                repeated = np.repeat(window, weights.shape[2] // window.shape[2], axis=2)
                sums += repeated * weights[:, None, k, :, 0]
            else:
                sums += np.einsum("hxc,huc->hxu", window, weights[:, k])
        return (sums.cumsum(axis=0).astype(np.int32)[None],)

    def macs(self, op: Op) -> int:
        height, kernel, units, terms = op.operand(1).shape
        return height * op.output.shape[2] * kernel * units * terms

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW


def _last_row(op: Op) -> RowWindow:
    """Row window of an operator with one output row, which reads only the last input row."""
    return RowWindow(1, 1, -(op.input.shape[1] - 1))


class OutputOfSumsFamily(OpFamily):
    """OUTPUT_OF_SUMS: the last row of ROW_MACS, with bias added and requantized as the layer does -> int8 [1, 1,
    columns, U]."""

    kind = "OUTPUT_OF_SUMS"
    summary = "the last row of ROW_MACS, requantized"
    in_files = False

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (requantize_channels(op.attributes_as(PartOfLayer).layer, given(inputs[0])[:, -1:].astype(np.int64)),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return _last_row(op)


class MeanOfSumFamily(OpFamily):
    """MEAN_OF_SUM: the last row of ROW_SUM, requantized as a MEAN over rows and columns does; sums of floats are
    divided -> [1, 1, 1, C] of the image's dtype."""

    kind = "MEAN_OF_SUM"
    summary = "the last row of a ROW_SUM, requantized"
    in_files = False

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        layer = op.attributes_as(PartOfLayer).layer
        last, count = given(inputs[0])[:, -1:], reduced_count(layer)
        if op.output.dtype == "float32":
            return (last / np.float32(count),)
        return (outputs_of_totals(layer, last.astype(np.int64) - count * layer.input.zero_point),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return _last_row(op)
