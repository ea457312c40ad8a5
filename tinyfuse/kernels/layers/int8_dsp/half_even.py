"""Portable kernels of any layer that is requantized as onnxruntime does it (runtime_c/tinyfuse_half_even.h)."""

from __future__ import annotations

from tinyfuse.kernels.layers.int8_dsp.conv import ConvRow
from tinyfuse.kernels.layers.int8_dsp.dense import FullyConnectedWhole
from tinyfuse.kernels.layers.int8_dsp.depthwise import DepthwiseRow
from tinyfuse.kernels.layers.int8_dsp.transpose_conv import TransposeConvRow


class HalfEvenConvRow(ConvRow):
    """Convolution of int8 that is rounded half to even, in portable C; by rows."""

    name = "tinyfuse_conv_row_half_even_s8"
    costs_as = ConvRow.name


class HalfEvenDepthwiseRow(DepthwiseRow):
    """Depthwise convolution of int8 that is rounded half to even, in portable C; by rows."""

    name = "tinyfuse_depthwise_row_half_even_s8"
    costs_as = DepthwiseRow.name


class HalfEvenFullyConnected(FullyConnectedWhole):
    """Fully connected layer of int8 that is rounded half to even, in portable C."""

    name = "tinyfuse_fully_connected_half_even_s8"
    costs_as = FullyConnectedWhole.name


class HalfEvenTransposeConvRow(TransposeConvRow):
    """Transposed convolution of int8 that is rounded half to even, in portable C; by rows."""

    name = "tinyfuse_transpose_conv_row_half_even_s8"
    costs_as = TransposeConvRow.name
