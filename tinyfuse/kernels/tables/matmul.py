"""Kernels of products of two computed matrices, in order of preference."""

from __future__ import annotations

from tinyfuse.kernels.cmsis.batch_matmul import CmsisBatchMatMul
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.matmul.batch_matmul import BatchMatMulWhole, RowsMatMulRow, WideBatchMatMul, WideRowsMatMul
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN

#: kind -> kernels
MATMUL: dict[str, tuple[Kernel, ...]] = {
    "BATCH_MATMUL": (
        WideBatchMatMul(), *map(BatchMatMulWhole, ("int8", "int16", "float32")),
        WideBatchMatMul(FLOAT_HALF_EVEN), BatchMatMulWhole("int8", FLOAT_HALF_EVEN),
        *map(CmsisBatchMatMul, ("int8", "int16")),
    ),
    "ROWS_MATMUL": (
        WideRowsMatMul(), *map(RowsMatMulRow, ("int8", "int16", "float32")),
        WideRowsMatMul(FLOAT_HALF_EVEN), RowsMatMulRow("int8", FLOAT_HALF_EVEN),
    ),
}  # fmt: skip
