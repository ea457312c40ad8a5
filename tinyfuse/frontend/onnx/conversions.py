"""The kinds of ONNX nodes that are converted, each with its conversion."""

from __future__ import annotations

from tinyfuse.frontend.onnx import movement, pooling
from tinyfuse.frontend.onnx.elementwise import BINARY, UNARY, convert_binary, convert_prelu, convert_unary
from tinyfuse.frontend.onnx.graph import Kind
from tinyfuse.frontend.onnx.layers import check_weights, convert_conv, convert_dense
from tinyfuse.frontend.onnx.normalizing import convert_batch_norm, convert_layer_norm
from tinyfuse.frontend.onnx.quantizing import (
    QLINEAR,
    check_scales,
    convert_dequantize,
    convert_qlinear,
    convert_quantize,
)
from tinyfuse.frontend.onnx.resizing import convert_resize

KINDS: dict[str, Kind] = {
    "QuantizeLinear": Kind(convert_quantize, 2, 3, check_scales),
    "DequantizeLinear": Kind(convert_dequantize, 2, 3),
    **{kind: Kind(convert_qlinear, least, most) for kind, (least, most) in QLINEAR.items()},
    "Conv": Kind(convert_conv, 2, 3, check_weights),
    "ConvTranspose": Kind(convert_conv, 2, 3, check_weights),
    "Gemm": Kind(convert_dense, 2, 3, check_weights),
    "MatMul": Kind(convert_dense, 2, 2, check_weights),
    **dict.fromkeys(UNARY, Kind(convert_unary)),
    "Clip": Kind(convert_unary, 1, 3),
    **dict.fromkeys(BINARY, Kind(convert_binary, 2, 2)),
    "PRelu": Kind(convert_prelu, 2, 2),
    "BatchNormalization": Kind(convert_batch_norm, 5, 5),
    "LayerNormalization": Kind(convert_layer_norm, 2, 3),
    "MaxPool": Kind(pooling.convert_max_pool),
    "AveragePool": Kind(pooling.convert_average_pool),
    "GlobalAveragePool": Kind(pooling.convert_mean),
    "ReduceMean": Kind(pooling.convert_mean, 1, 2),
    "Softmax": Kind(pooling.convert_softmax),
    "Reshape": Kind(movement.convert_reshape, 1, 2),
    "Flatten": Kind(movement.convert_flatten),
    "Squeeze": Kind(movement.convert_squeeze, 1, 2),
    "Unsqueeze": Kind(movement.convert_unsqueeze, 1, 2),
    "Transpose": Kind(movement.convert_transpose),
    "Identity": Kind(movement.convert_identity),
    "Dropout": Kind(movement.convert_identity, 1, 3),
    "Constant": Kind(movement.convert_constant, 0, 0),
    "ConstantOfShape": Kind(movement.convert_constant_of_shape),
    "Shape": Kind(movement.convert_shape),
    "Cast": Kind(movement.convert_cast),
    "Gather": Kind(movement.convert_gather, 2, 2),
    "Slice": Kind(movement.convert_slice, 1, 5),
    "Split": Kind(movement.convert_split, 1, 2),
    "Concat": Kind(movement.convert_concat, 1, 1024),
    "Pad": Kind(movement.convert_pad, 1, 4),
    "Resize": Kind(convert_resize, 1, 4),
}
