"""What BATCH_MATMUL derives from its quantization."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import quantize_multiplier


def matmul_multiplier(op: Op) -> tuple[int, int]:
    """(multiplier, shift) of a sum of products; TFLM multiplies both scales in float32."""
    product = np.float32(op.operand(0).scale) * np.float32(op.operand(1).scale)
    return quantize_multiplier(float(product) / op.output.scale)
