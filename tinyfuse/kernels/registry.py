"""Which kernels serve which operator, in order of preference: the one place where meaning meets C.

A new kernel is a file in this package and a name here. The first one of a list that accepts an operator
computes it, unless the cost table finds another surely faster (tinyfuse/schedule/kernel_choice/select.py).
"""

from __future__ import annotations

from functools import cache, lru_cache

from tinyfuse.ir import INT4, Op
from tinyfuse.kernels.cmsis.batch_matmul import CmsisBatchMatMul
from tinyfuse.kernels.cmsis.common import CmsisRows
from tinyfuse.kernels.cmsis.elementwise import CmsisAdd, CmsisMinMax, CmsisMul
from tinyfuse.kernels.cmsis.lstm import CmsisLstm
from tinyfuse.kernels.cmsis.pad import CmsisPad
from tinyfuse.kernels.cmsis.pool import CmsisAveragePool, CmsisMaxPool
from tinyfuse.kernels.cmsis.softmax import CmsisSoftmax, CmsisSoftmaxS16
from tinyfuse.kernels.cmsis.svdf import CmsisSvdf, CmsisSvdfInt8
from tinyfuse.kernels.cmsis.transpose import CmsisTranspose
from tinyfuse.kernels.core.each_image import EachImage
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.elementwise.add_sub_single_rounding import SingleRoundingSum
from tinyfuse.kernels.elementwise.binary import (
    COMMON,
    Parameters,
    binary_kernels,
    clamped_kernels,
    comparison,
    float_kernels,
    fused,
    int16_kernels,
    prelu,
    prelu_wide,
    product,
    rescaled,
    wide_kernels,
)
from tinyfuse.kernels.elementwise.cast import Cast
from tinyfuse.kernels.elementwise.division import floored, int8_quotients
from tinyfuse.kernels.elementwise.fused_loop import FusedLoop, FusedLoopByFours
from tinyfuse.kernels.elementwise.logic import Not
from tinyfuse.kernels.elementwise.lookup_table import ChannelLookup, Clamp, Lookup, WideLookup
from tinyfuse.kernels.elementwise.quantize import Convert, InvertSign
from tinyfuse.kernels.elementwise.scale_and_add import ScaledSum, ScaledSumMve
from tinyfuse.kernels.elementwise.select import AddN, Select
from tinyfuse.kernels.elementwise.unary import (
    ClampWide,
    GeluReal,
    LeakySlope,
    Magnitude,
    Rectifier,
    Sigmoid,
    TwoSlopes,
    float_function,
)
from tinyfuse.kernels.layers.common.column_blocks import ColumnBlocks, lying
from tinyfuse.kernels.layers.int8_dsp.conv import (
    PackedConvRow,
    Pointwise,
    PointwiseRow,
)
from tinyfuse.kernels.layers.int8_dsp.depthwise import Depthwise3x3Row
from tinyfuse.kernels.layers.int8_helium.conv_4x2 import (
    FourPointwise,
    FourPointwiseRow,
)
from tinyfuse.kernels.layers.int8_luts.dsp import LookedUpDepthwise, LookedUpMatmul
from tinyfuse.kernels.layers.int8_luts.helium import LookedUpColumns, LookedUpFours
from tinyfuse.kernels.matmul.batch_matmul import BatchMatMulWhole, RowsMatMulRow
from tinyfuse.kernels.matmul.rows_matmul import WideBatchMatMul, WideRowsMatMul
from tinyfuse.kernels.movement.at_axes import along_computed_axes
from tinyfuse.kernels.movement.batch_space import BatchSpace
from tinyfuse.kernels.movement.concatenation import Concatenate, PackWhole
from tinyfuse.kernels.movement.constant_output import CopyConstant
from tinyfuse.kernels.movement.copy import Copy
from tinyfuse.kernels.movement.gather import GatherSlices
from tinyfuse.kernels.movement.indexed import IndexedCopy, IndexedRow, Indexes
from tinyfuse.kernels.movement.pad import Pad, PadRow
from tinyfuse.kernels.movement.planes import TO_PLANES, TO_ROWS
from tinyfuse.kernels.movement.resize_bilinear import Bilinear, BilinearRow
from tinyfuse.kernels.movement.scatter_gather import (
    BroadcastShapes,
    EmbeddingFloats,
    EmbeddingRows,
    GatherPlaces,
    HotVectors,
    ReverseStarts,
    UpdateInState,
    UpdateSlice,
    scatter_kernels,
)
from tinyfuse.kernels.movement.strided import StridedCopy
from tinyfuse.kernels.pooling_reduce.arg_max import ArgExtreme
from tinyfuse.kernels.pooling_reduce.cumsum import CumsumWhole
from tinyfuse.kernels.pooling_reduce.normalization import Floats, L2Normalize, LogSoftmaxWhole
from tinyfuse.kernels.pooling_reduce.pool import PoolRow, WidePoolRow
from tinyfuse.kernels.pooling_reduce.reduce import Reduce, ReduceExtreme, ReduceFloatSum, ReduceSum
from tinyfuse.kernels.pooling_reduce.row_macs import MeanOfSumRow, OutputOfSumsRow, RowMacsRow
from tinyfuse.kernels.pooling_reduce.row_sum import AverageOfSumRow, MveRowSumRow, RowExtremeRow, RowSumRow
from tinyfuse.kernels.pooling_reduce.softmax import SoftmaxFloats, SoftmaxInt8, SoftmaxLookup, SoftmaxTables
from tinyfuse.kernels.program.computed import COMPUTED_OPERANDS
from tinyfuse.kernels.program.control_flow import If, While
from tinyfuse.kernels.program.detection import DetectionKernel
from tinyfuse.kernels.program.ethos_u import EthosUProgram
from tinyfuse.kernels.program.feed_rows import FeedRow
from tinyfuse.kernels.program.tiled import TiledRows
from tinyfuse.kernels.sequence.circular_buffer import CircularBufferKernel
from tinyfuse.kernels.sequence.lstm import LstmReal, LstmWhole
from tinyfuse.kernels.sequence.signal_library import SIGNAL_LIBRARY
from tinyfuse.kernels.sequence.slide import AwaitRows, AwaitWindow, CopyRingRows, MoveSums
from tinyfuse.kernels.sequence.svdf import SvdfActivated, SvdfReal, SvdfWhole
from tinyfuse.kernels.sequence.variables import AssignOnce, AssignVariable, ReadVariable, RingPush
from tinyfuse.kernels.tables.layers import LAYERS, layer_dtype
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.binary import add_multipliers, squared_difference_multipliers
from tinyfuse.ops.core.movement import Movement
from tinyfuse.ops.core.unary import UnaryFamily
from tinyfuse.ops.elementwise.cast import CASTS
from tinyfuse.ops.elementwise.logic import COMPARISONS, Comparison
from tinyfuse.ops.elementwise.quantize import DEQUANTIZES, QUANTIZES
from tinyfuse.ops.elementwise.table import TableFamily
from tinyfuse.ops.elementwise.unary_math import FloatFunction
from tinyfuse.ops.layers.tiled import TILE_ROWS
from tinyfuse.ops.movement.mirror_pad import mirror_indexes
from tinyfuse.ops.movement.resize import bilinear_places, nearest_indexes, real_places


def kernels_of(kind: str) -> tuple[Kernel, ...]:
    """The kernels of an operator kind, the preferred first; those of the families of images for one image."""
    return KERNELS.get(kind, ())


def kernels_for(op: Op) -> tuple[Kernel, ...]:
    """The kernels of `op`'s kind, made fit for it: of a layer those of its dtypes; a batch of images takes those of
    one image in a loop; of images of a single column convolutions may also make several rows a call."""
    kernels = kernels_of(op.kind)
    if op.kind in LAYERS:
        kernels = _of_dtypes(op.kind, layer_dtype(op), op.operand(1).dtype == INT4)
    if FAMILIES[op.kind].one_image and op.output.shape[0] != 1:
        return tuple(EachImage(kernel, FAMILIES[op.kind].image_input) for kernel in kernels)
    if op.kind == "CONV_2D" and lying(op) is not None:
        return (
            *kernels,
            *(ColumnBlocks(k) for k in kernels if k.by_row and not (k.whole or k.indivisible) and k.rows_a_call == 1),
        )
    return (*kernels, *_several_rows(kernels))


@cache
def _of_dtypes(kind: str, dtype: str, int4: bool) -> tuple[Kernel, ...]:
    """Those of a layer's `layer_dtype`, without those of int4 where the weights aren't."""
    return tuple(kernel for kernel in LAYERS[kind].get(dtype, ()) if int4 or not kernel.int4_weights)


@lru_cache
def _several_rows(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Those of CMSIS-NN's in their forms that make several rows a call."""
    rows = [kernel for kernel in kernels if isinstance(kernel, CmsisRows)]
    return tuple(kernel.several(count) for kernel in rows for count in kernel.several_rows)


def element_of(op: Op) -> Element | None:
    """How one element of `op` is computed in registers; None where it can't be a part of a merged loop."""
    kernel = _element_kernel(op) if op.kind not in LAYERS else None  # layers have none
    return kernel.element(op) if kernel is not None else None


@lru_cache(maxsize=2048)
def _element_kernel(op: Op) -> Kernel | None:
    """The kernel that tells."""
    return next((kernel for kernel in kernels_for(op) if kernel.element(op) is not None), None)


def _indexed(indexes: Indexes) -> tuple[Kernel, ...]:
    return IndexedRow(indexes), IndexedCopy(indexes)


#: of int8, single operators of which they compute too
_LOOPS: tuple[Kernel, ...] = (FusedLoopByFours(element_of, _element_kernel), FusedLoop(element_of, _element_kernel))
_WIDER_LOOPS: tuple[Kernel, ...] = (
    FusedLoopByFours(element_of, _element_kernel, "int16"),
    FusedLoop(element_of, _element_kernel, "int16"), FusedLoop(element_of, _element_kernel, "float32"),
)  # fmt: skip


def _binary(
    kind: str,
    parameters: Parameters | None,
    *more: Kernel,
    work: str,
    header: str = "tinyfuse_binary.h",
    like: str = "",
) -> tuple[Kernel, ...]:
    """Those of an operator of two inputs that are int8 or int32; `work`: what an int8 element of it is in merged
    loops; `like`: the kind whose costs it has."""
    int8 = binary_kernels(kind, "int8", parameters, header, work, like)
    own = *int8, *binary_kernels(kind, "int32", like=like)
    return *own, *_LOOPS, *more


def _comparisons(family: Comparison) -> tuple[Kernel, ...]:
    wide = [dtype for dtype in ("int64", "bool") if dtype in family.dtypes]
    like = "" if family.kind == COMPARISONS[0].kind else COMPARISONS[0].kind
    return (
        *_binary(family.kind, comparison, work="comparisons", like=like),
        *float_kernels(f"IS_{family.kind}", work="comparisons", like=like and f"IS_{like}"),
        *wide_kernels(family.kind, *wide, like=like),
    )


_MOVED = {
    kind: (StridedCopy(family.data_input, family.views),)
    for kind, family in FAMILIES.items()
    if isinstance(family, Movement)
}

_TABLE = TableFamily()
_TABLED = {
    kind: (Clamp(family.function), Lookup(family.function))
    for kind, family in FAMILIES.items()
    if isinstance(family, UnaryFamily) and not isinstance(family, FloatFunction)
}
#: of the kinds that take other dtypes than int8; some functions have their own names, beside those of tinyfuse_math.h
_WIDE: dict[str, tuple[Kernel, ...]] = {
    "RELU": (ClampWide("clamp", "int16"), TwoSlopes(), Rectifier("RELU")),
    "RELU6": (ClampWide("clamp", "int16"), Rectifier("RELU6")),
    "LEAKY_RELU": (TwoSlopes(), LeakySlope("leaky_relu", "float32")),
    "ABS": (Magnitude("abs", "int16"), *float_function("ABS")),
    "GELU": (GeluReal(False), GeluReal(True)),
    "LOGISTIC": (Sigmoid("logistic", "int16"), *float_function("LOGISTIC")),
    "TANH": (Sigmoid("tanh", "int16"), *float_function("TANH", "each_tanh")),
    **{
        kind: float_function(kind) for kind in ("HARD_SWISH", "ELU", "RSQRT", "NEG", "SQUARE", "FLOOR", "CEIL", "ROUND")
    },
    **{kind: float_function(kind, f"each_{kind.lower()}") for kind in ("EXP", "LOG", "SIN", "COS", "SQRT")},
}
_UNARY = {kind: (*_TABLED.get(kind, ()), *_WIDE.get(kind, ())) for kind in (*_TABLED, *_WIDE)}

#: kind -> kernels; operators that compute nothing at run time (SHAPE, ZEROS_LIKE, VAR_HANDLE, ...) have none
KERNELS: dict[str, tuple[Kernel, ...]] = {
    **_MOVED,
    **_UNARY,
    **{family.kind: _comparisons(family) for family in COMPARISONS},
    **{kind: tuple(kernel for kernels in of.values() for kernel in kernels) for kind, of in LAYERS.items()},
    "BATCH_MATMUL": (
        WideBatchMatMul(), *map(BatchMatMulWhole, ("int8", "int16", "float32")),
        *map(CmsisBatchMatMul, ("int8", "int16")),
    ),
    "ROWS_MATMUL": (WideRowsMatMul(), *map(RowsMatMulRow, ("int8", "int16", "float32"))),
    "AVERAGE_POOL_2D": (
        PoolRow("average"), PoolRow("average", up=True), WidePoolRow("average", "int16"),
        WidePoolRow("average", "float32"), CmsisAveragePool(), CmsisAveragePool("int16"),
    ),
    "MAX_POOL_2D": (
        PoolRow("max"), WidePoolRow("max", "int16"), WidePoolRow("max", "float32"),
        CmsisMaxPool(), CmsisMaxPool("int16"),
    ),
    "L2_POOL_2D": (WidePoolRow("l2", "float32", "tinyfuse_l2_f32.h"),),
    "SOFTMAX": (
        SoftmaxLookup(), SoftmaxInt8("int8"), SoftmaxInt8("int16"), SoftmaxTables(), SoftmaxFloats(),
        CmsisSoftmax(), CmsisSoftmax("int16"), CmsisSoftmaxS16(),
    ),
    "LOG_SOFTMAX": (LogSoftmaxWhole(), Floats("tinyfuse_log_softmax_f32", "tinyfuse_softmax_f32.h")),
    "L2_NORMALIZATION": (L2Normalize(), Floats("tinyfuse_l2_normalization_f32", "tinyfuse_l2_f32.h")),
    "RESHAPE": (Copy(),),
    "SQUEEZE": (Copy(),),
    "EXPAND_DIMS": (Copy(),),
    "ADD": (
        SingleRoundingSum(), *_binary("ADD", rescaled(add_multipliers), CmsisAdd(), work="sums", header=COMMON),
        *int16_kernels("ADD", rescaled(add_multipliers), "sums"), *float_kernels("ADD", fused, "sums"),
        CmsisAdd("int16"),
    ),
    "SUB": (
        SingleRoundingSum(), *_binary("SUB", rescaled(add_multipliers), work="sums"),
        *int16_kernels("SUB", rescaled(add_multipliers), "sums"), *float_kernels("SUB", fused, "sums"),
        *clamped_kernels("SUB"),
    ),
    "MUL": (
        *_binary("MUL", product, CmsisMul(), work="products", header=COMMON),
        *int16_kernels("MUL", product, "products"), *float_kernels("MUL", fused, "products"), *clamped_kernels("MUL"),
        CmsisMul("int16"),
    ),
    **{
        kind: (
            *_binary(kind, None, CmsisMinMax(kind), work="choices", like=like),
            *int16_kernels(kind, work="choices", like=like), *float_kernels(kind, work="choices", like=like),
            *wide_kernels(kind, "int64", like=like),
        )
        for kind, like in (("MAXIMUM", ""), ("MINIMUM", "MAXIMUM"))
    },
    "SQUARED_DIFFERENCE": (
        *binary_kernels(
            "SQUARED_DIFFERENCE", "int8", rescaled(squared_difference_multipliers, clamps=False), work="sums"
        ),
        *int16_kernels("SQUARED_DIFFERENCE", rescaled(squared_difference_multipliers, clamps=False), "sums"),
        *float_kernels("SQUARED_DIFFERENCE", work="products"), *wide_kernels("SQUARED_DIFFERENCE", "int32"),
    ),
    "PRELU": (
        *binary_kernels("PRELU", "int8", prelu), *int16_kernels("PRELU", prelu_wide),
        *float_kernels("PRELU", work="products"),
    ),
    "DIV": (
        *int8_quotients(), *wide_kernels("DIV", "int32"), *clamped_kernels("DIV"),
        *float_kernels("DIV", fused, "quotients"),
    ),
    "FLOOR_DIV": floored("FLOOR_DIV"),
    "FLOOR_MOD": floored("FLOOR_MOD"),
    "POW": (
        *binary_kernels("POW", "float32", None, "tinyfuse_power.h"),
        *binary_kernels("POW", "int32", None, "tinyfuse_power_s32.h"),
    ),
    "ADD_N": (AddN("int8"), AddN("float32")),
    "SELECT_V2": (Select("int8"), Select("int16"), Select("float32")),
    "LOGICAL_AND": binary_kernels("LOGICAL_AND", "bool", work="choices"),
    "LOGICAL_OR": binary_kernels("LOGICAL_OR", "bool", work="choices", like="LOGICAL_AND"),
    "LOGICAL_NOT": (Not(),),
    "CAST": tuple(Cast(*pair) for pair in CASTS),
    "QUANTIZE": (InvertSign(), *(Convert(*pair) for pair in QUANTIZES)),
    "DEQUANTIZE": tuple(Convert(*pair) for pair in DEQUANTIZES),
    "MEAN": (ReduceSum("int8"), ReduceSum("int16"), ReduceFloatSum()),
    "SUM": (ReduceSum("int8"), ReduceSum("int16"), ReduceFloatSum()),
    "REDUCE_MAX": (ReduceExtreme(), Reduce("max", "float32")),
    "REDUCE_MIN": (ReduceExtreme(), Reduce("min", "float32")),
    "REDUCE_ALL": (Reduce("all", "bool"),),
    "CUMSUM": (CumsumWhole("int8"), CumsumWhole("float32")),
    "ARG_MAX": (ArgExtreme("int8"), ArgExtreme("float32")),
    "ARG_MIN": (ArgExtreme("int8"), ArgExtreme("float32")),
    "PAD": (PadRow(), Pad(), PadRow(wide=True), Pad(wide=True), CmsisPad()),
    "PADV2": (PadRow(), Pad(), PadRow(wide=True), Pad(wide=True), CmsisPad()),
    "MIRROR_PAD": _indexed(mirror_indexes),
    "RESIZE_NEAREST_NEIGHBOR": _indexed(nearest_indexes),
    "RESIZE_BILINEAR": (
        BilinearRow(bilinear_places), Bilinear(bilinear_places),
        BilinearRow(real_places, "float32"), Bilinear(real_places, "float32"),
    ),
    "SPACE_TO_BATCH_ND": (BatchSpace("tinyfuse_space_to_batch"),),
    "BATCH_TO_SPACE_ND": (BatchSpace("tinyfuse_batch_to_space"),),
    "GATHER": (GatherSlices(),),
    "GATHER_ND": (GatherPlaces(),),
    "EMBEDDING_LOOKUP": (EmbeddingRows(), EmbeddingFloats()),
    "DYNAMIC_UPDATE_SLICE": (UpdateSlice(),),
    "SCATTER_ND": scatter_kernels(),
    "ONE_HOT": (HotVectors(),),
    "REVERSE_SEQUENCE": (ReverseStarts(),),
    "CONCATENATION": (Concatenate(),),
    "PACK": (PackWhole(),),
    "TRANSPOSE": (*_MOVED["TRANSPOSE"], CmsisTranspose()),
    "SVDF": (SvdfWhole(), SvdfReal(), SvdfActivated(), CmsisSvdf(), CmsisSvdfInt8()),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (LstmWhole("int8"), LstmWhole("int16"), LstmReal(), CmsisLstm()),
    "READ_VARIABLE": (ReadVariable(),),
    "ASSIGN_VARIABLE": (AssignVariable(),),
    "ASSIGN_ONCE": (AssignOnce(),),
    "CUSTOM CIRCULAR_BUFFER": (CircularBufferKernel(),),
    **SIGNAL_LIBRARY,
    "CUSTOM TFLite_Detection_PostProcess": (DetectionKernel(),),
    "CUSTOM ethos-u": (EthosUProgram(),),
    "IF": (If(),),
    "WHILE": (While(),),
    "ROW_SUM": (MveRowSumRow(), RowSumRow("int8"), RowSumRow("int16"), RowSumRow("float32")),
    "ROW_MAX": (RowExtremeRow("int8"), RowExtremeRow("int16"), RowExtremeRow("float32")),
    "ROW_MIN": (RowExtremeRow("int8"), RowExtremeRow("int16"), RowExtremeRow("float32")),
    "AVERAGE_OF_SUM": (AverageOfSumRow("int8"), AverageOfSumRow("int16"), AverageOfSumRow("float32")),
    "ROW_MACS": (RowMacsRow(),),
    "OUTPUT_OF_SUMS": (OutputOfSumsRow(),),
    "MEAN_OF_SUM": (MeanOfSumRow("int8"), MeanOfSumRow("int16"), MeanOfSumRow("float32")),
    "CONSTANT_OUTPUT": (CopyConstant(),),
    "BROADCAST_ARGS": (BroadcastShapes(),),
    **COMPUTED_OPERANDS,
    "RING_PUSH": (RingPush(),),
    "UPDATE_STATE": (UpdateInState(),),
    "TABLE": (Clamp(_TABLE.function), Lookup(_TABLE.function), WideLookup(_TABLE.function)),
    "CHANNEL_TABLES": (ChannelLookup("int8"), ChannelLookup("int16")),
    "RING_ROWS": (CopyRingRows(),),
    "MOVE_SUM": (MoveSums("int8"), MoveSums("int16")),
    "AWAIT_WINDOW": (AwaitWindow(),),
    "AWAIT_ROWS": (AwaitRows(),),
    "FEED_ROWS": (FeedRow(),),
    "PLANES_TO_ROWS": TO_ROWS,
    "ROWS_TO_PLANES": TO_PLANES,
    "FUSED_LOOP": (ScaledSum(), ScaledSumMve(), *_LOOPS, *_WIDER_LOOPS),
    "LOOKED_UP": (
        *map(LookedUpFours, (FourPointwise(), FourPointwiseRow())), LookedUpColumns(),
        *map(LookedUpMatmul, (Pointwise(), PointwiseRow(), PackedConvRow())), LookedUpDepthwise(Depthwise3x3Row()),
    ),
    "TILED": tuple(TiledRows(rows, kernels_for) for rows in TILE_ROWS),
}  # fmt: skip
KERNELS["AT_AXES"] = along_computed_axes(KERNELS)
