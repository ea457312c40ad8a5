"""Kernels of COMPUTED_LAYER, a layer whose weights or biases the run computes: the portable kernels, which read weights
in the file's order."""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.rows import constant_operands, with_constant_input
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.core.wrapper import EachImage, WholeWrapper
from tinyfuse.kernels.layers.float32.portable import ConvRowF32, DepthwiseRowF32, TransposeConvRowF32
from tinyfuse.kernels.layers.int8_dsp.conv import ConvRow
from tinyfuse.kernels.layers.int8_dsp.dense import FullyConnectedReal, FullyConnectedWhole
from tinyfuse.kernels.layers.int8_dsp.depthwise import DepthwiseRow
from tinyfuse.kernels.layers.int8_dsp.half_even import (
    CONV_HALF_EVEN,
    DEPTHWISE_HALF_EVEN,
    FULLY_CONNECTED_HALF_EVEN,
    TRANSPOSE_CONV_HALF_EVEN,
)
from tinyfuse.kernels.layers.int8_dsp.transpose_conv import TransposeConvRow
from tinyfuse.kernels.layers.int16.portable import ConvRowS16, DepthwiseRowS16, FullyConnectedS16, TransposeConvRowS16
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, REAL_MULTIPLIER, TWO_ROUNDINGS, rounds_by
from tinyfuse.ops.layers.computed_layer import layer_of, places


class ComputedLayerWhole(WholeWrapper):
    """Kernel of a layer with computed weights or biases: calls `kernel` with pointers to these tensors instead of
    constants. Computed integer biases are copied into the parameters of the channels; float32 biases are passed as an
    array."""

    def __init__(self, kind: str, dtype: str, kernel: Kernel, rounding: str = TWO_ROUNDINGS):
        self.kind, self.rounding = kind, rounding
        self.data, self.weights_at, self.bias = places(kind)
        more = () if dtype == "float32" else ("tinyfuse_biases.h",)
        inner = kernel if kernel.whole else EachImage(kernel, self.data)
        super().__init__(inner, headers=(*kernel.headers, *more), dtype=dtype)

    def accepts(self, op: Op, context: Context) -> bool:
        layer = layer_of(op)
        same = (layer.kind, op.output.dtype) == (self.kind, self.dtype) and rounds_by(layer, self.rounding)
        return same and (self.rounding != REAL_MULTIPLIER or self.kernel.accepts(layer, context))

    def inner(self, op: Op) -> Op:
        return layer_of(op)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        computed = {"weights"} if not op.operand(self.weights_at).is_constant else set()
        if self.dtype == "float32" and self._computes_bias(op):
            computed.add("biases")
        found = [c for c in self.kernel.constants(layer_of(op), context) if c.name not in computed]
        return (*found, *constant_operands(op, {self.data: "data"}))

    def scratch(self, op: Op, context: Context) -> int:
        if self.dtype == "float32" or not self._computes_bias(op):
            return 0
        found = self.kernel.constants(layer_of(op), context)
        return sum(constant.data.nbytes for constant in found if constant.name == "channels")

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        instead: dict[str, str] = {}
        before: tuple[Statement, ...] = ()
        if not op.operand(self.weights_at).is_constant:
            instead["weights"] = site.input(self.weights_at).pointer
        if self._computes_bias(op):
            biases = site.input(self.bias).pointer
            if self.dtype == "float32":
                instead["biases"] = biases
            else:
                of = "" if self.dtype == "int8" else f"_{SUFFIX[op.operand(self.bias).dtype]}"
                args = (site.constant("channels"), biases, site.scratch, op.output.shape[-1])
                before = (Call(f"tinyfuse_biased_{SUFFIX[self.dtype]}{of}", args),)  # writes a copy of the channels
                instead["channels"] = f"(const {_CHANNEL[self.dtype]} *)(const void *){site.scratch}"
        given = with_constant_input(op, site, self.data)
        inner = replace(given, constant=lambda name: instead.get(name) or site.constant(name))
        return *before, *self.kernel.call(layer_of(op), inner, context)

    def _computes_bias(self, op: Op) -> bool:
        """Tells whether the run computes the bias."""
        bias = op.optional(self.bias)
        return bias is not None and not bias.is_constant


#: dtype -> C type of a channel's parameters
_CHANNEL = {"int8": "tinyfuse_requant", "int16": "tinyfuse_requant_s16"}


def computed_layer_kernels() -> tuple[Kernel, ...]:
    """Kernels of COMPUTED_LAYER for each kind and dtype. float32 FULLY_CONNECTED is rewritten as a matrix product and a
    sum (rewrite/computed_weights.py)."""
    return tuple(
        ComputedLayerWhole(kind, dtype, kernel, *rounding)
        for kind, dtype, kernel, *rounding in (
            ("CONV_2D", "int8", ConvRow()),
            ("CONV_2D", "int8", CONV_HALF_EVEN, FLOAT_HALF_EVEN),
            ("CONV_2D", "int16", ConvRowS16()),
            ("CONV_2D", "float32", ConvRowF32()),
            ("DEPTHWISE_CONV_2D", "int8", DepthwiseRow()),
            ("DEPTHWISE_CONV_2D", "int8", DEPTHWISE_HALF_EVEN, FLOAT_HALF_EVEN),
            ("DEPTHWISE_CONV_2D", "int16", DepthwiseRowS16()),
            ("DEPTHWISE_CONV_2D", "float32", DepthwiseRowF32()),
            ("FULLY_CONNECTED", "int8", FullyConnectedWhole()),
            ("FULLY_CONNECTED", "int8", FullyConnectedReal(), REAL_MULTIPLIER),
            ("FULLY_CONNECTED", "int8", FULLY_CONNECTED_HALF_EVEN, FLOAT_HALF_EVEN),
            ("FULLY_CONNECTED", "int16", FullyConnectedS16()),
            ("TRANSPOSE_CONV", "int8", TransposeConvRow()),
            ("TRANSPOSE_CONV", "int8", TRANSPOSE_CONV_HALF_EVEN, FLOAT_HALF_EVEN),
            ("TRANSPOSE_CONV", "int16", TransposeConvRowS16()),
            ("TRANSPOSE_CONV", "float32", TransposeConvRowF32()),
        )
    )
