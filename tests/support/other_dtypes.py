"""An int8 operator or model with other numbers: int16 data with int8 weights (16x8), or float32.

    python tests/support/other_dtypes.py MODEL.tflite int16|float32 OUT.tflite

The structure stays. int16: a tensor's range becomes symmetric about 0, weights stay as they are, biases become
int64. float32: weights and biases are what the stored ones mean.
"""

from __future__ import annotations

import sys
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]

import numpy as np
from tflite_builder import ModelBuilder

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op, Quant, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import Clamped

#: outputs whose scale int16 fixes
_FIXED_SCALE = {"SOFTMAX": 2.0**-15, "LOGISTIC": 2.0**-15, "TANH": 2.0**-15}


def other_dtype(op: Op, dtype: str, bias: str = "int64") -> Op:
    """An int8 operator in int16 (with a bias of that dtype) or float32."""
    graph = graph_in(Graph("", "", (op,), op.activations, op.outputs), dtype, bias)
    return graph.ops[0]


def graph_in(graph: Graph, dtype: str, bias: str = "int64") -> Graph:
    """The graph with every tensor in another dtype."""
    new: dict[Tensor, Tensor] = {}
    for op in graph.ops:
        for tensor in op.activations:
            new.setdefault(tensor, _data(tensor, dtype))
        for tensor in op.outputs:
            new.setdefault(tensor, _data(tensor, dtype, _FIXED_SCALE.get(op.kind)))
        for i, tensor in enumerate(op.inputs):
            if tensor is not None and tensor.is_constant:
                new[tensor] = _constant(op, i, tensor, new, dtype, bias)
    ops = tuple(
        replace(op, inputs=tuple(t and new[t] for t in op.inputs), outputs=tuple(new[t] for t in op.outputs))
        for op in graph.ops
    )
    inputs, outputs = (tuple(new[t] for t in tensors) for tensors in (graph.inputs, graph.outputs))
    return replace(graph, ops=ops, inputs=inputs, outputs=outputs)


def _data(tensor: Tensor, dtype: str, scale: float | None = None) -> Tensor:
    if tensor.dtype != "int8" or tensor.quant is None:
        return tensor
    if dtype == "float32":
        return replace(tensor, dtype=dtype, quant=None)
    reach = max(127 - tensor.zero_point, 128 + tensor.zero_point)
    found = float(np.float32(scale or tensor.scale * reach / 32767))
    return replace(tensor, dtype="int16", quant=Quant((found,), (0,)))


def _constant(op: Op, i: int, tensor: Tensor, new: dict[Tensor, Tensor], dtype: str, bias: str) -> Tensor:
    family = FAMILIES[op.kind]
    if family.data_and_weights is None or not isinstance(op.attributes, Clamped):
        return _data_constant(tensor, dtype)
    data, weights = (op.operand(at) for at in family.data_and_weights)
    if tensor is weights:
        return _floats(tensor, tensor.quantization) if dtype == "float32" else tensor
    if i < 2:  # a shape
        return tensor
    quant = weights.quantization
    old = Quant(tuple(data.scale * s for s in quant.scale), (0,) * len(quant.scale))
    if dtype == "float32":
        return _floats(tensor, old)
    scales = tuple(float(np.float32(new[data].scale * s)) for s in quant.scale)
    values = np.round(tensor.values * (data.scale / new[data].scale)).astype(bias)
    return replace(tensor, dtype=bias, quant=Quant(scales, (0,) * len(scales)), data=values)


def _data_constant(tensor: Tensor, dtype: str) -> Tensor:
    """An operand of an elementwise operator; anything else than int8 is a shape or an axis."""
    if tensor.dtype != "int8" or tensor.quant is None:
        return tensor
    if dtype == "float32":
        return _floats(tensor, tensor.quantization)
    into = _data(tensor, dtype)
    values = (tensor.values.astype(np.float64) - tensor.zero_point) * tensor.scale / into.scale
    return replace(into, data=np.clip(np.round(values), -32768, 32767).astype(np.int16))


def _floats(tensor: Tensor, quant: Quant) -> Tensor:
    """Real values of the stored values, in float32."""
    scale, zero_point = np.array(quant.scale), np.array(quant.zero_point)
    if quant.per_channel:
        shape = [1] * len(tensor.shape)
        shape[quant.axis] = -1
        scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
    values = ((tensor.values.astype(np.float64) - zero_point) * scale).astype(np.float32)
    return replace(tensor, dtype="float32", quant=None, data=values)


# --- the file --------------------------------------------------------------------------------


def model_bytes(graph: Graph) -> bytes:
    """The .tflite of a graph as it was read, before any rewrite."""
    builder, indexes = ModelBuilder(), {None: -1}
    for op in graph.ops:
        for t in (*op.inputs, *op.outputs):
            if t not in indexes:
                quant = (t.quant.scale, t.quant.zero_point, t.quant.axis) if t.quant else (None, None, 0)
                indexes[t] = builder.tensor(t.name, t.shape, t.dtype, *quant, t.data)
        options = schema_options(op)
        inputs, outputs = ([indexes[t] for t in tensors] for tensors in (op.inputs, op.outputs))
        builder.op(op.kind, inputs, outputs, table=options is not None, **(options or {}))
    return builder.build(*([indexes[t] for t in tensors] for tensors in (graph.inputs, graph.outputs)))


#: fields of attributes -> of the schema's options; pairs: rows, columns
_PAIRS = {
    "stride": ("stride_h", "stride_w"),
    "dilation": ("dilation_h_factor", "dilation_w_factor"),
    "filter": ("filter_height", "filter_width"),
}
_NAMES = {"activation": "fused_activation_function"}


def schema_options(op: Op) -> dict[str, object] | None:
    """The schema's options that say what the attributes of a layer, a pool or an elementwise operator say."""
    if not is_dataclass(op.attributes):
        return None
    options: dict[str, object] = {}
    for field in fields(op.attributes):
        value = getattr(op.attributes, field.name)
        if field.name in _PAIRS:
            options |= dict(zip(_PAIRS[field.name], value, strict=True))
        elif field.name == "quantized_bias_type":
            # a depthwise convolution's table has no such field, and FLOAT32 is what an absent one means
            options |= {field.name: value} if value != "FLOAT32" else {}
        elif field.name not in ("clamp", "float_scales", "halves_up", "rounding"):  # no file has these
            options[_NAMES.get(field.name, field.name)] = value
    return options


def main(source: str, dtype: str, out: str) -> None:
    graph = read_tflite(source, Path(source).read_bytes())
    Path(out).write_bytes(model_bytes(graph_in(graph, dtype)))


if __name__ == "__main__":
    main(*sys.argv[1:])
