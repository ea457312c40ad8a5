"""The operator families, by kind (the schema's name). A new operator is one file and one line here."""

from collections.abc import MutableMapping, Sequence
from functools import lru_cache

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ops.activations import (
    EluOperator,
    HardSwishOperator,
    LeakyReluOperator,
    LogisticOperator,
    Relu6Operator,
    ReluOperator,
    TanhOperator,
)
from tinyfuse.ops.add_n import AddNOperator
from tinyfuse.ops.arg_extreme import ArgMaxOperator, ArgMinOperator
from tinyfuse.ops.at_axes import AtAxesOperator
from tinyfuse.ops.await_window import AwaitRowsOperator, AwaitWindowOperator
from tinyfuse.ops.base import OpFamily
from tinyfuse.ops.batch_matmul import BatchMatMulOperator
from tinyfuse.ops.batch_space import BatchToSpaceOperator, SpaceToBatchOperator
from tinyfuse.ops.broadcast_to import BroadcastArgsOperator, BroadcastToOperator, TileOperator
from tinyfuse.ops.cast import CastOperator
from tinyfuse.ops.circular_buffer import CircularBufferOperator
from tinyfuse.ops.computed import (
    BatchToSpaceAtOperator,
    ComputedLstmOperator,
    ComputedSvdfOperator,
    MirrorPadAtOperator,
    PadWithOperator,
    SpaceToBatchAtOperator,
)
from tinyfuse.ops.computed_layer import ComputedLayerOperator
from tinyfuse.ops.concatenation import ConcatenationOperator
from tinyfuse.ops.constant_output import ConstantOutputOperator
from tinyfuse.ops.control_flow import IfOperator, WhileOperator
from tinyfuse.ops.conv_2d import Conv2DOperator
from tinyfuse.ops.cumsum import CumsumOperator
from tinyfuse.ops.decode import DecodeOperator
from tinyfuse.ops.depthwise_conv_2d import DepthwiseConv2DOperator
from tinyfuse.ops.detection import DetectionOperator
from tinyfuse.ops.division import DivOperator, FloorDivOperator, FloorModOperator
from tinyfuse.ops.dynamic_update_slice import DynamicUpdateSliceOperator
from tinyfuse.ops.elementwise import (
    AddOperator,
    MaximumOperator,
    MinimumOperator,
    MulOperator,
    PreluOperator,
    SquaredDifferenceOperator,
    SubOperator,
)
from tinyfuse.ops.embedding_lookup import EmbeddingLookupOperator
from tinyfuse.ops.ethos_u import EthosUOperator
from tinyfuse.ops.feed_rows import FeedRowsOperator
from tinyfuse.ops.fill import FillOperator, ZerosLikeOperator
from tinyfuse.ops.fully_connected import FullyConnectedOperator
from tinyfuse.ops.gather import GatherOperator
from tinyfuse.ops.gather_nd import GatherNdOperator
from tinyfuse.ops.gelu import GeluOperator
from tinyfuse.ops.interpret import run_through
from tinyfuse.ops.l2_normalization import L2NormalizationOperator
from tinyfuse.ops.log_softmax import LogSoftmaxOperator
from tinyfuse.ops.logic import COMPARISONS, LogicalAndOperator, LogicalNotOperator, LogicalOrOperator
from tinyfuse.ops.looked_up import LookedUpOperator
from tinyfuse.ops.lstm import LstmOperator
from tinyfuse.ops.merged import MergedOperator
from tinyfuse.ops.mirror_pad import MirrorPadOperator
from tinyfuse.ops.move_sum import MoveSumOperator
from tinyfuse.ops.one_hot import OneHotOperator
from tinyfuse.ops.pack import PackOperator
from tinyfuse.ops.pad import PadOperator, PadV2Operator
from tinyfuse.ops.planes import PlanesOperator, PlanesToRowsOperator, RowsToPlanesOperator
from tinyfuse.ops.pooling import AveragePoolOperator, L2PoolOperator, MaxPoolOperator
from tinyfuse.ops.power import PowOperator
from tinyfuse.ops.quantize import DequantizeOperator, QuantizeOperator
from tinyfuse.ops.reduce import (
    MeanOperator,
    ReduceAllOperator,
    ReduceMaxOperator,
    ReduceMinOperator,
    ReduceProdOperator,
    SumOperator,
)
from tinyfuse.ops.reshape import ReshapeOperator
from tinyfuse.ops.resize import ResizeBilinearOperator, ResizeNearestNeighborOperator
from tinyfuse.ops.reverse import ReverseV2Operator
from tinyfuse.ops.reverse_sequence import ReverseSequenceOperator
from tinyfuse.ops.ring_push import RingPushOperator
from tinyfuse.ops.ring_rows import RingRowsOperator
from tinyfuse.ops.row_macs import MeanOfSumOperator, OutputOfSumsOperator, RowMacsOperator
from tinyfuse.ops.row_sum import AverageOfSumOperator, RowSumOperator
from tinyfuse.ops.rows_matmul import RowsMatMulOperator
from tinyfuse.ops.scatter_nd import ScatterNdOperator
from tinyfuse.ops.select import SelectOperator
from tinyfuse.ops.shape import ShapeOperator
from tinyfuse.ops.signal_filter_bank import (
    FilterBankLogOperator,
    FilterBankOperator,
    FilterBankSquareRootOperator,
    PcanOperator,
    SpectralSubtractionOperator,
)
from tinyfuse.ops.signal_spectrum import (
    EnergyOperator,
    FftAutoScaleOperator,
    IrfftOperator,
    RfftOperator,
    WindowOperator,
)
from tinyfuse.ops.signal_streams import DelayOperator, FramerOperator, OverlapAddOperator, StackerOperator
from tinyfuse.ops.slice import SliceOperator, StridedSliceOperator
from tinyfuse.ops.slice_at import SliceAtOperator
from tinyfuse.ops.softmax import SoftmaxOperator
from tinyfuse.ops.space_depth import DepthToSpaceOperator, SpaceToDepthOperator
from tinyfuse.ops.split import SplitOperator, SplitVOperator, UnpackOperator
from tinyfuse.ops.squeeze import ExpandDimsOperator, SqueezeOperator
from tinyfuse.ops.svdf import SvdfOperator
from tinyfuse.ops.table import ChannelTablesOperator, TableOperator
from tinyfuse.ops.tiled import TiledOperator
from tinyfuse.ops.transpose import TransposeOperator
from tinyfuse.ops.transpose_conv import TransposeConvOperator
from tinyfuse.ops.unary_math import FLOAT_FUNCTIONS, AbsOperator, RsqrtOperator
from tinyfuse.ops.update_state import UpdateStateOperator
from tinyfuse.ops.variables import (
    AssignOnceOperator,
    AssignVariableOperator,
    CallOnceOperator,
    ReadVariableOperator,
    VarHandleOperator,
)
from tinyfuse.ops.where import WhereOperator


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
        Conv2DOperator(),
        DepthwiseConv2DOperator(),
        FullyConnectedOperator(),
        TransposeConvOperator(),
        BatchMatMulOperator(),
        AveragePoolOperator(),
        MaxPoolOperator(),
        L2PoolOperator(),
        SoftmaxOperator(),
        LogSoftmaxOperator(),
        L2NormalizationOperator(),
        ReshapeOperator(),
        AddOperator(),
        SubOperator(),
        MulOperator(),
        MaximumOperator(),
        MinimumOperator(),
        SquaredDifferenceOperator(),
        PreluOperator(),
        DivOperator(),
        FloorDivOperator(),
        FloorModOperator(),
        AddNOperator(),
        SelectOperator(),
        *COMPARISONS,
        LogicalAndOperator(),
        LogicalOrOperator(),
        LogicalNotOperator(),
        ReluOperator(),
        Relu6Operator(),
        LogisticOperator(),
        TanhOperator(),
        LeakyReluOperator(),
        HardSwishOperator(),
        EluOperator(),
        AbsOperator(),
        RsqrtOperator(),
        *FLOAT_FUNCTIONS,
        CastOperator(),
        MeanOperator(),
        SumOperator(),
        ReduceMaxOperator(),
        ReduceMinOperator(),
        ReduceAllOperator(),
        ReduceProdOperator(),
        CumsumOperator(),
        ArgMaxOperator(),
        ArgMinOperator(),
        PadOperator(),
        PadV2Operator(),
        MirrorPadOperator(),
        GatherOperator(),
        ResizeNearestNeighborOperator(),
        ResizeBilinearOperator(),
        ConcatenationOperator(),
        SqueezeOperator(),
        ExpandDimsOperator(),
        SliceOperator(),
        StridedSliceOperator(),
        SplitOperator(),
        SplitVOperator(),
        PackOperator(),
        UnpackOperator(),
        TransposeOperator(),
        SpaceToDepthOperator(),
        DepthToSpaceOperator(),
        SpaceToBatchOperator(),
        BatchToSpaceOperator(),
        BroadcastToOperator(),
        TileOperator(),
        ReverseV2Operator(),
        FillOperator(),
        GatherNdOperator(),
        EmbeddingLookupOperator(),
        DynamicUpdateSliceOperator(),
        ScatterNdOperator(),
        OneHotOperator(),
        ReverseSequenceOperator(),
        ShapeOperator(),
        BroadcastArgsOperator(),
        ZerosLikeOperator(),
        WhereOperator(),
        QuantizeOperator(),
        DequantizeOperator(),
        SvdfOperator(),
        LstmOperator(),
        ReadVariableOperator(),
        AssignVariableOperator(),
        VarHandleOperator(),
        CallOnceOperator(),
        CircularBufferOperator(),
        FramerOperator(),
        WindowOperator(),
        FftAutoScaleOperator(),
        RfftOperator(),
        IrfftOperator(),
        EnergyOperator(),
        FilterBankOperator(),
        FilterBankSquareRootOperator(),
        SpectralSubtractionOperator(),
        PcanOperator(),
        FilterBankLogOperator(),
        StackerOperator(),
        DelayOperator(),
        OverlapAddOperator(),
        DecodeOperator(),
        EthosUOperator(),
        IfOperator(_run, _macs),
        WhileOperator(_run, _macs),
        DetectionOperator(),
        GeluOperator(),
        PowOperator(),
        # ours alone: no file has them, rewrites make them
        RowSumOperator(),
        AverageOfSumOperator(),
        RowMacsOperator(),
        RowsMatMulOperator(),
        OutputOfSumsOperator(),
        MeanOfSumOperator(),
        ComputedLayerOperator(),
        ConstantOutputOperator(),
        SliceAtOperator(),
        AtAxesOperator(),
        AssignOnceOperator(),
        PadWithOperator(),
        MirrorPadAtOperator(),
        SpaceToBatchAtOperator(),
        BatchToSpaceAtOperator(),
        ComputedLstmOperator(),
        ComputedSvdfOperator(),
        RingPushOperator(),
        UpdateStateOperator(),
        TableOperator(),
        ChannelTablesOperator(),
        RingRowsOperator(),
        MoveSumOperator(),
        AwaitRowsOperator(),
        AwaitWindowOperator(),
        FeedRowsOperator(),
        PlanesOperator(),
        PlanesToRowsOperator(),
        RowsToPlanesOperator(),
        MergedOperator(_compute),
        TiledOperator(_compute, _macs_of),
        LookedUpOperator(_compute, _macs_of),
    )
}
