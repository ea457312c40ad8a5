"""The operator families, by kind (the schema's name). A new operator is one file and one line here."""

from collections.abc import MutableMapping, Sequence
from functools import lru_cache

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ops.core.family import OpFamily
from tinyfuse.ops.elementwise.activations import (
    EluFamily,
    HardSwishFamily,
    LeakyReluFamily,
    LogisticFamily,
    Relu6Family,
    ReluFamily,
    TanhFamily,
)
from tinyfuse.ops.elementwise.add_n import AddNFamily
from tinyfuse.ops.elementwise.cast import CastFamily
from tinyfuse.ops.elementwise.division import DivFamily, FloorDivFamily, FloorModFamily
from tinyfuse.ops.elementwise.elementwise import (
    AddFamily,
    MaximumFamily,
    MinimumFamily,
    MulFamily,
    PreluFamily,
    SquaredDifferenceFamily,
    SubFamily,
)
from tinyfuse.ops.elementwise.gelu import GeluFamily
from tinyfuse.ops.elementwise.logic import COMPARISONS, LogicalAndFamily, LogicalNotFamily, LogicalOrFamily
from tinyfuse.ops.elementwise.merged import FusedLoopFamily
from tinyfuse.ops.elementwise.power import PowFamily
from tinyfuse.ops.elementwise.quantize import DequantizeFamily, QuantizeFamily
from tinyfuse.ops.elementwise.select import SelectFamily
from tinyfuse.ops.elementwise.table import ChannelTablesFamily, TableFamily
from tinyfuse.ops.elementwise.unary_math import FLOAT_FUNCTIONS, AbsFamily, RsqrtFamily
from tinyfuse.ops.layers.computed_layer import ComputedLayerFamily
from tinyfuse.ops.layers.conv_2d import Conv2DFamily
from tinyfuse.ops.layers.depthwise_conv_2d import DepthwiseConv2DFamily
from tinyfuse.ops.layers.fully_connected import FullyConnectedFamily
from tinyfuse.ops.layers.looked_up import LookedUpFamily
from tinyfuse.ops.layers.tiled import TiledFamily
from tinyfuse.ops.layers.transpose_conv import TransposeConvFamily
from tinyfuse.ops.matmul.batch_matmul import BatchMatMulFamily
from tinyfuse.ops.matmul.rows_matmul import RowsMatMulFamily
from tinyfuse.ops.movement.batch_space import BatchToSpaceFamily, SpaceToBatchFamily
from tinyfuse.ops.movement.broadcast_to import BroadcastArgsFamily, BroadcastToFamily, TileFamily
from tinyfuse.ops.movement.concatenation import ConcatenationFamily
from tinyfuse.ops.movement.dynamic_update_slice import DynamicUpdateSliceFamily
from tinyfuse.ops.movement.embedding_lookup import EmbeddingLookupFamily
from tinyfuse.ops.movement.fill import FillFamily, ZerosLikeFamily
from tinyfuse.ops.movement.gather import GatherFamily
from tinyfuse.ops.movement.gather_nd import GatherNdFamily
from tinyfuse.ops.movement.mirror_pad import MirrorPadFamily
from tinyfuse.ops.movement.one_hot import OneHotFamily
from tinyfuse.ops.movement.pack import PackFamily
from tinyfuse.ops.movement.pad import PadFamily, PadV2Family
from tinyfuse.ops.movement.planes import PlanesFamily, PlanesToRowsFamily, RowsToPlanesFamily
from tinyfuse.ops.movement.reshape import ReshapeFamily
from tinyfuse.ops.movement.resize import ResizeBilinearFamily, ResizeNearestNeighborFamily
from tinyfuse.ops.movement.reverse_sequence import ReverseSequenceFamily
from tinyfuse.ops.movement.scatter_nd import ScatterNdFamily
from tinyfuse.ops.movement.shape import ShapeFamily
from tinyfuse.ops.movement.slice import SliceFamily, StridedSliceFamily
from tinyfuse.ops.movement.slice_at import SliceAtFamily
from tinyfuse.ops.movement.space_depth import DepthToSpaceFamily, SpaceToDepthFamily
from tinyfuse.ops.movement.split import SplitFamily, SplitVFamily, UnpackFamily
from tinyfuse.ops.movement.squeeze import ExpandDimsFamily, SqueezeFamily
from tinyfuse.ops.movement.transpose import TransposeFamily
from tinyfuse.ops.movement.update_state import UpdateStateFamily
from tinyfuse.ops.movement.where import WhereFamily
from tinyfuse.ops.pooling_reduce.arg_max import ArgMaxFamily, ArgMinFamily
from tinyfuse.ops.pooling_reduce.at_axes import AtAxesFamily
from tinyfuse.ops.pooling_reduce.cumsum import CumsumFamily
from tinyfuse.ops.pooling_reduce.l2_normalization import L2NormalizationFamily
from tinyfuse.ops.pooling_reduce.log_softmax import LogSoftmaxFamily
from tinyfuse.ops.pooling_reduce.pooling import AveragePoolFamily, L2PoolFamily, MaxPoolFamily
from tinyfuse.ops.pooling_reduce.reduce import (
    MeanFamily,
    ReduceAllFamily,
    ReduceMaxFamily,
    ReduceMinFamily,
    ReduceProdFamily,
    SumFamily,
)
from tinyfuse.ops.pooling_reduce.reverse import ReverseV2Family
from tinyfuse.ops.pooling_reduce.row_macs import MeanOfSumFamily, OutputOfSumsFamily, RowMacsFamily
from tinyfuse.ops.pooling_reduce.row_sum import AverageOfSumFamily, RowMaxFamily, RowMinFamily, RowSumFamily
from tinyfuse.ops.pooling_reduce.softmax import SoftmaxFamily
from tinyfuse.ops.pooling_reduce.table_softmax import TableSoftmaxFamily
from tinyfuse.ops.program.computed import (
    BatchToSpaceAtFamily,
    ComputedLstmFamily,
    ComputedSvdfFamily,
    MirrorPadAtFamily,
    PadWithFamily,
    SpaceToBatchAtFamily,
)
from tinyfuse.ops.program.constant_output import ConstantOutputFamily
from tinyfuse.ops.program.control_flow import IfFamily, WhileFamily
from tinyfuse.ops.program.decode import DecodeFamily
from tinyfuse.ops.program.detection import DetectionFamily
from tinyfuse.ops.program.ethos_u import EthosUFamily
from tinyfuse.ops.program.feed_rows import FeedRowsFamily
from tinyfuse.ops.program.interpret import run_through
from tinyfuse.ops.sequence.await_window import AwaitRowsFamily, AwaitWindowFamily
from tinyfuse.ops.sequence.circular_buffer import CircularBufferFamily
from tinyfuse.ops.sequence.lstm import LstmFamily
from tinyfuse.ops.sequence.move_sum import MoveSumFamily
from tinyfuse.ops.sequence.ring_push import RingPushFamily
from tinyfuse.ops.sequence.ring_rows import RingRowsFamily
from tinyfuse.ops.sequence.signal_filter_bank import (
    FilterBankFamily,
    FilterBankLogFamily,
    FilterBankSquareRootFamily,
    PcanFamily,
    SpectralSubtractionFamily,
)
from tinyfuse.ops.sequence.signal_spectrum import (
    EnergyFamily,
    FftAutoScaleFamily,
    IrfftFamily,
    RfftFamily,
    WindowFamily,
)
from tinyfuse.ops.sequence.signal_streams import DelayFamily, FramerFamily, OverlapAddFamily, StackerFamily
from tinyfuse.ops.sequence.svdf import SvdfFamily
from tinyfuse.ops.sequence.variables import (
    AssignOnceFamily,
    AssignVariableFamily,
    CallOnceFamily,
    ReadVariableFamily,
    VarHandleFamily,
)


def _run(graph: Graph, inputs: Sequence[Array], states: MutableMapping[Tensor, Array]) -> list[Array]:
    """Outputs of a graph that an operator runs, computed by the references."""
    return run_through(FAMILIES, graph, inputs, states)


def graph_macs(graph: Graph) -> int:
    """Multiply-accumulates of all operators of a graph."""
    return sum(FAMILIES[op.kind].macs(op) for op in graph.ops)


#: MACs of the graphs that an operator runs, cached because they are asked for often
_macs = lru_cache(maxsize=1024)(graph_macs)


def _compute(op: Op, *inputs: Array | None) -> tuple[Array, ...]:
    """Outputs of an operator that is a part of another one, by its family's reference."""
    return FAMILIES[op.kind].reference(op, *inputs)


def _macs_of(op: Op) -> int:
    """Return the multiply-accumulates of an operator that is a part of another one."""
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
        TableSoftmaxFamily(),
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
        FusedLoopFamily(_compute),
        TiledFamily(_compute, _macs_of),
        LookedUpFamily(_compute, _macs_of),
    )
}
