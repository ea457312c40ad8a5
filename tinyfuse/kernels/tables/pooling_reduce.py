"""Kernels of pooling, softmax, normalization and reductions, in order of preference."""

from __future__ import annotations

from tinyfuse.kernels.cmsis.pooling_reduce import CmsisAveragePool, CmsisMaxPool, CmsisSoftmax, CmsisSoftmaxS16
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.pooling_reduce import softmax
from tinyfuse.kernels.pooling_reduce.along_axis import ArgExtreme, CumsumWhole
from tinyfuse.kernels.pooling_reduce.pool import AverageOfSumRow, MveRowSumRow, PoolRow, RowExtremeRow, RowSumRow
from tinyfuse.kernels.pooling_reduce.reduce import Reduce, ReduceExtreme, ReduceFloatSum, ReduceMeanHalfEven, ReduceSum
from tinyfuse.kernels.pooling_reduce.row_macs import MeanOfSumRow, OutputOfSumsRow, RowMacsRow
from tinyfuse.kernels.pooling_reduce.softmax import LogSoftmaxWhole, Normalization
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN

#: kind -> kernels
POOLING_REDUCE: dict[str, tuple[Kernel, ...]] = {
    "AVERAGE_POOL_2D": (
        PoolRow("average"), PoolRow("average", header="tinyfuse_pool_up.h", up=True), PoolRow("average", "int16"),
        PoolRow("average", "float32"), CmsisAveragePool(), CmsisAveragePool("int16"),
    ),
    "MAX_POOL_2D": (
        PoolRow("max"), PoolRow("max", "int16"), PoolRow("max", "float32"),
        CmsisMaxPool(), CmsisMaxPool("int16"),
    ),
    "L2_POOL_2D": (PoolRow("l2", "float32", "tinyfuse_l2_f32.h"),),
    "SOFTMAX": (
        softmax.SoftmaxLookup(), softmax.SoftmaxInt8("int8"), softmax.SoftmaxInt8("int16"), softmax.SoftmaxTables(),
        softmax.SoftmaxFloats(), CmsisSoftmax(), CmsisSoftmax("int16"), CmsisSoftmaxS16(),
    ),
    "TABLE_SOFTMAX": (softmax.TableSoftmax(),),
    "LOG_SOFTMAX": (LogSoftmaxWhole(), Normalization("log_softmax", "float32", "tinyfuse_softmax_f32.h")),
    "L2_NORMALIZATION": (
        Normalization("l2_normalization", "int8", "tinyfuse_l2_normalization.h"),
        Normalization("l2_normalization", "float32", "tinyfuse_l2_f32.h"),
    ),
    "MEAN": (ReduceMeanHalfEven(), ReduceSum("int8"), ReduceSum("int16"), ReduceFloatSum()),
    "SUM": (ReduceSum("int8"), ReduceSum("int16"), ReduceFloatSum()),
    "REDUCE_MAX": (ReduceExtreme(), Reduce("max", "float32")),
    "REDUCE_MIN": (ReduceExtreme(), Reduce("min", "float32")),
    "REDUCE_ALL": (Reduce("all", "bool"),),
    "CUMSUM": (CumsumWhole("int8"), CumsumWhole("float32")),
    "ARG_MAX": (ArgExtreme("int8"), ArgExtreme("float32")),
    "ARG_MIN": (ArgExtreme("int8"), ArgExtreme("float32")),
    "ROW_SUM": (MveRowSumRow(), RowSumRow("int8"), RowSumRow("int16"), RowSumRow("float32")),
    "ROW_MAX": (RowExtremeRow("int8"), RowExtremeRow("int16"), RowExtremeRow("float32")),
    "ROW_MIN": (RowExtremeRow("int8"), RowExtremeRow("int16"), RowExtremeRow("float32")),
    "AVERAGE_OF_SUM": (AverageOfSumRow("int8"), AverageOfSumRow("int16"), AverageOfSumRow("float32")),
    "ROW_MACS": (RowMacsRow(),),
    "OUTPUT_OF_SUMS": (OutputOfSumsRow(FLOAT_HALF_EVEN), OutputOfSumsRow()),
    "MEAN_OF_SUM": (
        MeanOfSumRow("int8", FLOAT_HALF_EVEN), MeanOfSumRow("int8"), MeanOfSumRow("int16"), MeanOfSumRow("float32"),
    ),
}  # fmt: skip
