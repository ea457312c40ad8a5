"""The operator families, by kind (the schema's name). A new operator is one file and one line here."""

from collections.abc import MutableMapping, Sequence
from functools import lru_cache

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ops.activations import (
    EluFamily,
    HardSwishFamily,
    LeakyReluFamily,
    LogisticFamily,
    Relu6Family,
    ReluFamily,
    TanhFamily,
)
from tinyfuse.ops.add_n import AddNFamily
from tinyfuse.ops.arg_extreme import ArgMaxFamily, ArgMinFamily
from tinyfuse.ops.at_axes import AtAxesFamily
from tinyfuse.ops.await_window import AwaitRowsFamily, AwaitWindowFamily
from tinyfuse.ops.base import OpFamily
from tinyfuse.ops.batch_matmul import BatchMatMulFamily
from tinyfuse.ops.batch_space import BatchToSpaceFamily, SpaceToBatchFamily
from tinyfuse.ops.broadcast_to import BroadcastArgsFamily, BroadcastToFamily, TileFamily
from tinyfuse.ops.cast import CastFamily
from tinyfuse.ops.circular_buffer import CircularBufferFamily
from tinyfuse.ops.computed import (
    BatchToSpaceAtFamily,
    ComputedLstmFamily,
    ComputedSvdfFamily,
    MirrorPadAtFamily,
    PadWithFamily,
    SpaceToBatchAtFamily,
)
from tinyfuse.ops.computed_layer import ComputedLayerFamily
from tinyfuse.ops.concatenation import ConcatenationFamily
from tinyfuse.ops.constant_output import ConstantOutputFamily
from tinyfuse.ops.control_flow import IfFamily, WhileFamily
from tinyfuse.ops.conv_2d import Conv2DFamily
from tinyfuse.ops.cumsum import CumsumFamily
from tinyfuse.ops.decode import DecodeFamily
from tinyfuse.ops.depthwise_conv_2d import DepthwiseConv2DFamily
from tinyfuse.ops.detection import DetectionFamily
from tinyfuse.ops.division import DivFamily, FloorDivFamily, FloorModFamily
from tinyfuse.ops.dynamic_update_slice import DynamicUpdateSliceFamily
from tinyfuse.ops.elementwise import (
    AddFamily,
    MaximumFamily,
    MinimumFamily,
    MulFamily,
    PreluFamily,
    SquaredDifferenceFamily,
    SubFamily,
)
from tinyfuse.ops.embedding_lookup import EmbeddingLookupFamily
from tinyfuse.ops.ethos_u import EthosUFamily
from tinyfuse.ops.feed_rows import FeedRowsFamily
from tinyfuse.ops.fill import FillFamily, ZerosLikeFamily
from tinyfuse.ops.fully_connected import FullyConnectedFamily
from tinyfuse.ops.gather import GatherFamily
from tinyfuse.ops.gather_nd import GatherNdFamily
from tinyfuse.ops.gelu import GeluFamily
from tinyfuse.ops.interpret import run_through
from tinyfuse.ops.l2_normalization import L2NormalizationFamily
from tinyfuse.ops.log_softmax import LogSoftmaxFamily
from tinyfuse.ops.logic import COMPARISONS, LogicalAndFamily, LogicalNotFamily, LogicalOrFamily
from tinyfuse.ops.looked_up import LookedUpFamily
from tinyfuse.ops.lstm import LstmFamily
from tinyfuse.ops.merged import MergedFamily
from tinyfuse.ops.mirror_pad import MirrorPadFamily
from tinyfuse.ops.move_sum import MoveSumFamily
from tinyfuse.ops.one_hot import OneHotFamily
from tinyfuse.ops.pack import PackFamily
from tinyfuse.ops.pad import PadFamily, PadV2Family
from tinyfuse.ops.planes import PlanesFamily, PlanesToRowsFamily, RowsToPlanesFamily
from tinyfuse.ops.pooling import AveragePoolFamily, L2PoolFamily, MaxPoolFamily
from tinyfuse.ops.power import PowFamily
from tinyfuse.ops.quantize import DequantizeFamily, QuantizeFamily
from tinyfuse.ops.reduce import (
    MeanFamily,
    ReduceAllFamily,
    ReduceMaxFamily,
    ReduceMinFamily,
    ReduceProdFamily,
    SumFamily,
)
from tinyfuse.ops.reshape import ReshapeFamily
from tinyfuse.ops.resize import ResizeBilinearFamily, ResizeNearestNeighborFamily
from tinyfuse.ops.reverse import ReverseV2Family
from tinyfuse.ops.reverse_sequence import ReverseSequenceFamily
from tinyfuse.ops.ring_push import RingPushFamily
from tinyfuse.ops.ring_rows import RingRowsFamily
from tinyfuse.ops.row_macs import MeanOfSumFamily, OutputOfSumsFamily, RowMacsFamily
from tinyfuse.ops.row_sum import AverageOfSumFamily, RowMaxFamily, RowMinFamily, RowSumFamily
from tinyfuse.ops.rows_matmul import RowsMatMulFamily
from tinyfuse.ops.scatter_nd import ScatterNdFamily
from tinyfuse.ops.select import SelectFamily
from tinyfuse.ops.shape import ShapeFamily
from tinyfuse.ops.signal_filter_bank import (
    FilterBankFamily,
    FilterBankLogFamily,
    FilterBankSquareRootFamily,
    PcanFamily,
    SpectralSubtractionFamily,
)
from tinyfuse.ops.signal_spectrum import (
    EnergyFamily,
    FftAutoScaleFamily,
    IrfftFamily,
    RfftFamily,
    WindowFamily,
)
from tinyfuse.ops.signal_streams import DelayFamily, FramerFamily, OverlapAddFamily, StackerFamily
from tinyfuse.ops.slice import SliceFamily, StridedSliceFamily
from tinyfuse.ops.slice_at import SliceAtFamily
from tinyfuse.ops.softmax import SoftmaxFamily
from tinyfuse.ops.space_depth import DepthToSpaceFamily, SpaceToDepthFamily
from tinyfuse.ops.split import SplitFamily, SplitVFamily, UnpackFamily
from tinyfuse.ops.squeeze import ExpandDimsFamily, SqueezeFamily
from tinyfuse.ops.svdf import SvdfFamily
from tinyfuse.ops.table import ChannelTablesFamily, TableFamily
from tinyfuse.ops.tiled import TiledFamily
from tinyfuse.ops.transpose import TransposeFamily
from tinyfuse.ops.transpose_conv import TransposeConvFamily
from tinyfuse.ops.unary_math import FLOAT_FUNCTIONS, AbsFamily, RsqrtFamily
from tinyfuse.ops.update_state import UpdateStateFamily
from tinyfuse.ops.variables import (
    AssignOnceFamily,
    AssignVariableFamily,
    CallOnceFamily,
    ReadVariableFamily,
    VarHandleFamily,
)
from tinyfuse.ops.where import WhereFamily


def _run(graph: Graph, inputs: Sequence[Array], states: MutableMapping[Tensor, Array]) -> list[Array]:
    """A graph that an operator runs."""
    return run_through(FAMILIES, graph, inputs, states)


def graph_macs(graph: Graph) -> int:
    """Multiply-accumulates of all operators of a graph."""
    return sum(FAMILIES[op.kind].macs(op) for op in graph.ops)


#: of the graphs that an operator runs, which is asked for often
_macs = lru_cache(maxsize=1024)(graph_macs)


def _compute(op: Op, *inputs: Array | None) -> tuple[Array, ...]:
    """An operator that is a part of another one."""
    return FAMILIES[op.kind].reference(op, *inputs)


def _macs_of(op: Op) -> int:
    """Those of an operator that is a part of another one."""
    return FAMILIES[op.kind].macs(op)


FAMILIES: dict[str, OpFamily] = {
    family.kind: family
    for family in (
        Conv2DFamily(),
        DepthwiseConv2DFamily(),
        FullyConnectedFamily(),
        TransposeConvFamily(),
        BatchMatMulFamily(),
        AveragePoolFamily(),
        MaxPoolFamily(),
        L2PoolFamily(),
        SoftmaxFamily(),
        LogSoftmaxFamily(),
        L2NormalizationFamily(),
        ReshapeFamily(),
        AddFamily(),
        SubFamily(),
        MulFamily(),
        MaximumFamily(),
        MinimumFamily(),
        SquaredDifferenceFamily(),
        PreluFamily(),
        DivFamily(),
        FloorDivFamily(),
        FloorModFamily(),
        AddNFamily(),
        SelectFamily(),
        *COMPARISONS,
        LogicalAndFamily(),
        LogicalOrFamily(),
        LogicalNotFamily(),
        ReluFamily(),
        Relu6Family(),
        LogisticFamily(),
        TanhFamily(),
        LeakyReluFamily(),
        HardSwishFamily(),
        EluFamily(),
        AbsFamily(),
        RsqrtFamily(),
        *FLOAT_FUNCTIONS,
        CastFamily(),
        MeanFamily(),
        SumFamily(),
        ReduceMaxFamily(),
        ReduceMinFamily(),
        ReduceAllFamily(),
        ReduceProdFamily(),
        CumsumFamily(),
        ArgMaxFamily(),
        ArgMinFamily(),
        PadFamily(),
        PadV2Family(),
        MirrorPadFamily(),
        GatherFamily(),
        ResizeNearestNeighborFamily(),
        ResizeBilinearFamily(),
        ConcatenationFamily(),
        SqueezeFamily(),
        ExpandDimsFamily(),
        SliceFamily(),
        StridedSliceFamily(),
        SplitFamily(),
        SplitVFamily(),
        PackFamily(),
        UnpackFamily(),
        TransposeFamily(),
        SpaceToDepthFamily(),
        DepthToSpaceFamily(),
        SpaceToBatchFamily(),
        BatchToSpaceFamily(),
        BroadcastToFamily(),
        TileFamily(),
        ReverseV2Family(),
        FillFamily(),
        GatherNdFamily(),
        EmbeddingLookupFamily(),
        DynamicUpdateSliceFamily(),
        ScatterNdFamily(),
        OneHotFamily(),
        ReverseSequenceFamily(),
        ShapeFamily(),
        BroadcastArgsFamily(),
        ZerosLikeFamily(),
        WhereFamily(),
        QuantizeFamily(),
        DequantizeFamily(),
        SvdfFamily(),
        LstmFamily(),
        ReadVariableFamily(),
        AssignVariableFamily(),
        VarHandleFamily(),
        CallOnceFamily(),
        CircularBufferFamily(),
        FramerFamily(),
        WindowFamily(),
        FftAutoScaleFamily(),
        RfftFamily(),
        IrfftFamily(),
        EnergyFamily(),
        FilterBankFamily(),
        FilterBankSquareRootFamily(),
        SpectralSubtractionFamily(),
        PcanFamily(),
        FilterBankLogFamily(),
        StackerFamily(),
        DelayFamily(),
        OverlapAddFamily(),
        DecodeFamily(),
        EthosUFamily(),
        IfFamily(_run, _macs),
        WhileFamily(_run, _macs),
        DetectionFamily(),
        GeluFamily(),
        PowFamily(),
        # ours alone: no file has them, rewrites make them
        RowSumFamily(),
        RowMaxFamily(),
        RowMinFamily(),
        AverageOfSumFamily(),
        RowMacsFamily(),
        RowsMatMulFamily(),
        OutputOfSumsFamily(),
        MeanOfSumFamily(),
        ComputedLayerFamily(),
        ConstantOutputFamily(),
        SliceAtFamily(),
        AtAxesFamily(),
        AssignOnceFamily(),
        PadWithFamily(),
        MirrorPadAtFamily(),
        SpaceToBatchAtFamily(),
        BatchToSpaceAtFamily(),
        ComputedLstmFamily(),
        ComputedSvdfFamily(),
        RingPushFamily(),
        UpdateStateFamily(),
        TableFamily(),
        ChannelTablesFamily(),
        RingRowsFamily(),
        MoveSumFamily(),
        AwaitRowsFamily(),
        AwaitWindowFamily(),
        FeedRowsFamily(),
        PlanesFamily(),
        PlanesToRowsFamily(),
        RowsToPlanesFamily(),
        MergedFamily(_compute),
        TiledFamily(_compute, _macs_of),
        LookedUpFamily(_compute, _macs_of),
    )
}
