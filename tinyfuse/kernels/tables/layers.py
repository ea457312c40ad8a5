"""Kernels of layers, the operators with weights, in order of preference."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis.conv import CmsisConv, CmsisDepthwise
from tinyfuse.kernels.cmsis.fully_connected import CmsisFullyConnected, CmsisFullyConnectedPerChannel
from tinyfuse.kernels.cmsis.layers_s4 import CmsisConvS4, CmsisDepthwiseS4, CmsisFullyConnectedS4
from tinyfuse.kernels.cmsis.layers_s16 import CmsisConvS16, CmsisDepthwiseS16, CmsisFullyConnectedS16
from tinyfuse.kernels.cmsis.transpose_conv import CmsisReverseConv, CmsisTransposeConv
from tinyfuse.kernels.core.kernel import Kernel, by_rows
from tinyfuse.kernels.layers.float32 import portable as float32
from tinyfuse.kernels.layers.int4.conv_dsp import Int4ConvRow, Int4Pointwise
from tinyfuse.kernels.layers.int4.dense_dsp import Int4Dense
from tinyfuse.kernels.layers.int4.helium import Int4MveConvRow, Int4MveDense, Int4MvePointwise
from tinyfuse.kernels.layers.int8_dsp import conv, depthwise
from tinyfuse.kernels.layers.int8_dsp.conv import FewChannelsPointwise
from tinyfuse.kernels.layers.int8_dsp.dense import Dense, DenseReal, DenseWide, FullyConnectedReal, FullyConnectedWhole
from tinyfuse.kernels.layers.int8_dsp.dense_five_outputs import DenseFiveOutputs
from tinyfuse.kernels.layers.int8_dsp.depthwise_1d import DepthwiseAlongRow, DepthwiseColumns
from tinyfuse.kernels.layers.int8_dsp.half_even import (
    CONV_HALF_EVEN,
    DEPTHWISE_HALF_EVEN,
    FULLY_CONNECTED_HALF_EVEN,
    TRANSPOSE_CONV_HALF_EVEN,
)
from tinyfuse.kernels.layers.int8_dsp.int16_weights import Int16WeightsConvRow, Int16WeightsDense, Int16WeightsPointwise
from tinyfuse.kernels.layers.int8_dsp.transpose_conv import TransposeConvPointwiseRow, TransposeConvRow
from tinyfuse.kernels.layers.int8_dsp.winograd import WinogradAlongRow, WinogradRows
from tinyfuse.kernels.layers.int8_helium import conv_2x4, conv_4x2
from tinyfuse.kernels.layers.int8_helium.conv_4x2 import WeightStationaryConvRow
from tinyfuse.kernels.layers.int8_helium.depthwise_1d import Depthwise1D
from tinyfuse.kernels.layers.int8_helium.depthwise_interleaved import (
    InterleavedDepthwiseRow,
    SmallInterleavedDepthwiseRow,
)
from tinyfuse.kernels.layers.int8_luts.dsp import LookedUpMatmul
from tinyfuse.kernels.layers.int8_no_dsp import paired_weights
from tinyfuse.kernels.layers.int16.dsp import DenseS16, Depthwise3x3RowS16, PackedConvRowS16, PackedDepthwiseRowS16
from tinyfuse.kernels.layers.int16.helium import MveConvRowS16, MveDenseS16, MveDepthwiseRowS16, MvePointwiseS16
from tinyfuse.kernels.layers.int16.portable import ConvRowS16, DepthwiseRowS16, FullyConnectedS16, TransposeConvRowS16
from tinyfuse.kernels.layers.palettized.dsp import (
    PalettizedConvRow,
    PalettizedConvRows,
    PalettizedDense,
    PalettizedPointwise,
    PalettizedPointwiseRow,
)
from tinyfuse.kernels.layers.uint8_weights16 import portable as weights16
from tinyfuse.kernels.program.computed_layer import computed_layer_kernels
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, REAL_MULTIPLIER, rounds_by


def layer_dtype(op: Op) -> str:
    """Key of a layer's kernels in LAYERS: its dtype; "int8 x int16" if its weights are wider than its data; "int8 by a
    real number" if it is requantized by REAL_MULTIPLIER, "int8, half to even" if by FLOAT_HALF_EVEN."""
    if rounds_by(op, FLOAT_HALF_EVEN):
        return "int8, half to even"
    if rounds_by(op, REAL_MULTIPLIER):
        return "int8 by a real number"
    wide = (op.output.dtype, op.operand(1).dtype) == ("int8", "int16")
    return "int8 x int16" if wide else op.output.dtype


#: kernels of pointwise convolutions that keep their constants in the order of pairs of channels
_POINTWISE = (Int16WeightsPointwise(), paired_weights.PairedPointwise(), conv.Pointwise(), conv.Pointwise4x2())

#: kind -> `layer_dtype` -> kernels of layers. Only operators of that dtype are offered to them
LAYERS: dict[str, dict[str, tuple[Kernel, ...]]] = {
    "CONV_2D": {
        "int8": (
            Int4MvePointwise(), Int4MveConvRow(), Int4Pointwise(), by_rows(Int4Pointwise()), Int4ConvRow(),
            PalettizedPointwise(), PalettizedPointwiseRow(), PalettizedConvRows(), PalettizedConvRow(),
            conv_2x4.MveBufferedPointwise(), conv_4x2.MvePointwise4x2(), conv_4x2.MvePointwise4x2Row(),
            conv_2x4.MvePointwise(), conv_4x2.MveStridedPointwise4x2Row(),
            conv_4x2.MveColumnsConv4x2Row(), conv_4x2.MveChunksConv4x2Row(), WeightStationaryConvRow(),
            conv_2x4.MveConvRow(),
            FewChannelsPointwise(), *_POINTWISE, conv.PointwiseColumnWideRow(), conv.PointwiseColumnRow(),
            by_rows(FewChannelsPointwise()), *map(by_rows, _POINTWISE),
            WinogradRows(), WinogradAlongRow(),
            Int16WeightsConvRow(), paired_weights.PairedConvRow(),
            conv.PackedConvRow(), conv.Conv4x2Row(), conv.ConvRow(), CmsisConvS4(), CmsisConv(),
        ),
        "int8 x int16": (
            weights16.PackedConvRowW16(), weights16.BytesConvRowW16(), weights16.DotsConvRowW16(),
            weights16.ConvRowW16(),
        ),
        "int16": (MvePointwiseS16(), MveConvRowS16(), PackedConvRowS16(), ConvRowS16(), CmsisConvS16()),
        "float32": (float32.PackedConvRowF32(), float32.ConvRowF32()),
    },
    "DEPTHWISE_CONV_2D": {
        "int8": (
            SmallInterleavedDepthwiseRow(), conv_2x4.MveDepthwiseRow(), InterleavedDepthwiseRow(), Depthwise1D(),
            depthwise.WeightStationaryDepthwiseRow(), DepthwiseColumns(), DepthwiseAlongRow(),
            paired_weights.PairedDepthwiseRow(), depthwise.Depthwise3x3Row(), depthwise.PackedDepthwiseRow(),
            depthwise.DepthwiseRow(), CmsisDepthwiseS4(), CmsisDepthwise(),
        ),
        "int16": (
            MveDepthwiseRowS16(), Depthwise3x3RowS16(), PackedDepthwiseRowS16(), DepthwiseRowS16(), CmsisDepthwiseS16(),
        ),
        "int8 x int16": (weights16.PackedDepthwiseRowW16(), weights16.DepthwiseRowW16(), weights16.ConvRowW16()),
        "float32": (float32.PackedDepthwiseRowF32(), float32.DepthwiseRowF32()),
    },
    "FULLY_CONNECTED": {
        "int8": (
            Int4MveDense(), conv_2x4.MveDenseOneVector(), conv_2x4.MveDense(),
            Int4Dense(), PalettizedDense(), Int16WeightsDense(), paired_weights.PairedDense(),
            DenseWide(), DenseFiveOutputs(), Dense(), FullyConnectedWhole(),
            CmsisFullyConnectedS4(), CmsisFullyConnected(), CmsisFullyConnectedPerChannel(),
        ),
        "int8 by a real number": (DenseReal(), FullyConnectedReal()),
        "int16": (MveDenseS16(), DenseS16(), FullyConnectedS16(), CmsisFullyConnectedS16()),
        "float32": (float32.DenseF32(),),
    },
    "TRANSPOSE_CONV": {
        "int8": (
            *map(TransposeConvPointwiseRow, (conv_4x2.MvePointwise4x2Row(), *map(by_rows, _POINTWISE))),
            TransposeConvRow(), CmsisTransposeConv(), CmsisReverseConv(),
        ),
        "int16": (TransposeConvRowS16(),),
        "float32": (float32.TransposeConvRowF32(),),
    },
}  # fmt: skip

#: kernels of int8 that round as TensorFlow Lite Micro does, without a proof for each layer
_TWO_ROUNDINGS = (conv.ConvRow, depthwise.DepthwiseRow, FullyConnectedWhole, TransposeConvRow)

_HALF_EVEN = {
    "CONV_2D": CONV_HALF_EVEN, "DEPTHWISE_CONV_2D": DEPTHWISE_HALF_EVEN, "FULLY_CONNECTED": FULLY_CONNECTED_HALF_EVEN,
    "TRANSPOSE_CONV": TRANSPOSE_CONV_HALF_EVEN,
}  # fmt: skip
for _kind, _general in _HALF_EVEN.items():
    _proving = (k for k in LAYERS[_kind]["int8"] if k.library == "tinyfuse" and type(k) not in _TWO_ROUNDINGS)
    LAYERS[_kind]["int8, half to even"] = (*_proving, _general)

#: kind -> kernels of operators that rewrites make of layers, with a fused activation LUT or computed weights
LAYER_FORMS: dict[str, tuple[Kernel, ...]] = {
    "LOOKED_UP": tuple(map(LookedUpMatmul, (conv.Pointwise(), by_rows(conv.Pointwise()), conv.PackedConvRow()))),
    "COMPUTED_LAYER": computed_layer_kernels(),
}  # fmt: skip
