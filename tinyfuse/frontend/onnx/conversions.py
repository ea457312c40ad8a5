"""The kinds of ONNX nodes that are converted, each with its conversion."""

from __future__ import annotations

from tinyfuse.frontend.onnx import movement, pooling
from tinyfuse.frontend.onnx.elementwise import BINARY, UNARY, convert_binary, convert_unary
from tinyfuse.frontend.onnx.graph import Conversion
from tinyfuse.frontend.onnx.layers import convert_conv, convert_dense
from tinyfuse.frontend.onnx.quantizing import QLINEAR, convert_dequantize, convert_qlinear, convert_quantize

CONVERSIONS: dict[str, Conversion] = {
    "QuantizeLinear": convert_quantize,
    "DequantizeLinear": convert_dequantize,
    **dict.fromkeys(QLINEAR, convert_qlinear),
    "Conv": convert_conv,
    "ConvTranspose": convert_conv,
    "Gemm": convert_dense,
    "MatMul": convert_dense,
    **dict.fromkeys(UNARY, convert_unary),
    **dict.fromkeys(BINARY, convert_binary),
    "MaxPool": pooling.convert_max_pool,
    "AveragePool": pooling.convert_average_pool,
    "GlobalAveragePool": pooling.convert_mean,
    "ReduceMean": pooling.convert_mean,
    "Softmax": pooling.convert_softmax,
    "Reshape": movement.convert_reshape,
    "Flatten": movement.convert_flatten,
    "Squeeze": movement.convert_squeeze,
    "Unsqueeze": movement.convert_unsqueeze,
    "Transpose": movement.convert_transpose,
    "Identity": movement.convert_identity,
    "Dropout": movement.convert_identity,
    "Constant": movement.convert_constant,
    "ConstantOfShape": movement.convert_constant_of_shape,
    "Shape": movement.convert_shape,
    "Cast": movement.convert_cast,
    "Gather": movement.convert_gather,
    "Slice": movement.convert_slice,
    "Split": movement.convert_split,
    "Concat": movement.convert_concat,
    "Pad": movement.convert_pad,
    "Resize": movement.convert_resize,
    "Upsample": movement.convert_resize,
}
