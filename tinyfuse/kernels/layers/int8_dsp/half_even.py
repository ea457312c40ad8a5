"""Portable kernels of any layer that is requantized as onnxruntime does it (runtime_c/tinyfuse_half_even.h)."""

from __future__ import annotations

from copy import copy

from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.layers.int8_dsp.conv import ConvRow
from tinyfuse.kernels.layers.int8_dsp.dense import FullyConnectedWhole
from tinyfuse.kernels.layers.int8_dsp.depthwise import DepthwiseRow
from tinyfuse.kernels.layers.int8_dsp.transpose_conv import TransposeConvRow


def _rounding_half_even(kernel: Kernel) -> Kernel:
    """Form of a portable kernel whose C function rounds half to even. It costs the same."""
    form = copy(kernel)
    form.name, form.costs_as = kernel.name.replace("_s8", "_half_even_s8"), kernel.name
    return form


CONV_HALF_EVEN = _rounding_half_even(ConvRow())
DEPTHWISE_HALF_EVEN = _rounding_half_even(DepthwiseRow())
FULLY_CONNECTED_HALF_EVEN = _rounding_half_even(FullyConnectedWhole())
TRANSPOSE_CONV_HALF_EVEN = _rounding_half_even(TransposeConvRow())
