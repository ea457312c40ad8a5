"""uint8 models as TensorFlow 1 quantized them, made from int8 cases and networks.

CASES["CONV_2D"]    {"name": .tflite}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import conv_cases
import numpy as np
from cases import NAMED
from cases.common import model_of
from known_architectures import FAMILIES as NETWORKS
from other_dtypes import model_bytes

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op, Quant, Tensor
from tinyfuse.ops import FAMILIES

#: kinds whose layers have cases of their own below
_LAYERS = tuple(conv_cases.FAMILIES)


def shifted(tensor: Tensor | None) -> Tensor | None:
    """An int8 tensor as uint8 with the same real values; any other tensor unchanged."""
    if tensor is None or tensor.dtype != "int8":
        return tensor
    quant = tensor.quant and replace(tensor.quant, zero_point=tuple(z + 128 for z in tensor.quant.zero_point))
    data = None if tensor.data is None else np.asarray(np.asarray(tensor.data).view(np.uint8) ^ np.uint8(128))
    return replace(tensor, dtype="uint8", quant=quant, data=data)


def graph_in_uint8(graph: Graph, seed: int = 0) -> Graph:
    """The graph in uint8; weights have one scale and their own zero points."""
    rng = np.random.default_rng(seed)
    new: dict[Tensor | None, Tensor | None] = {None: None}
    for op in graph.ops:
        weights = op.inputs[1] if FAMILIES[op.kind].data_and_weights is not None else None
        for tensor in (*op.inputs, *op.outputs):
            if tensor is weights and weights is not None and weights not in new:
                new[weights] = _weights(weights, rng)
                if len(op.inputs) > 2 and op.inputs[2] is not None:
                    scale = float(np.float32(op.input.scale * new[weights].scale))
                    new[op.inputs[2]] = replace(op.inputs[2], quant=Quant((scale,), (0,)))
            new.setdefault(tensor, shifted(tensor))
    ops = tuple(
        replace(op, inputs=tuple(new[t] for t in op.inputs), outputs=tuple(new[t] for t in op.outputs))
        for op in graph.ops
    )
    inputs, outputs = (tuple(new[t] for t in tensors) for tensors in (graph.inputs, graph.outputs))
    return replace(graph, ops=ops, inputs=inputs, outputs=outputs)


def _weights(tensor: Tensor, rng: np.random.Generator) -> Tensor:
    quant = tensor.quantization
    one = Quant((max(quant.scale),), (int(rng.choice([0, quant.zero_point[0], rng.integers(-30, 30)])),))
    return shifted(replace(tensor, quant=one))


def op_in_uint8(op: Op) -> Op:
    """The operator, which has no weights, in uint8."""
    return graph_in_uint8(Graph("", "", (op,), op.activations, op.outputs)).ops[0]


#: those whose operators LiteRT takes in uint8, with the seeds of weights for which an output depends on the inputs
_SEEDS = {"mobilenet_v2": 5, "mobilenet_v3": 54, "two_inputs": 89}


def network(name: str) -> bytes:
    """A network of known_architectures.py in uint8."""
    return model_bytes(graph_in_uint8(read_tflite(name, NETWORKS[name](_SEEDS[name]))))


def _layers(kind: str, count: int) -> Iterator[tuple[str, bytes]]:
    """Random layers whose weights, less their zero point, fit int8 or need more bits."""
    rng = np.random.default_rng(5)
    for number in range(count):
        zero_point = (0, 1, -128, 127, int(rng.integers(-128, 128)))[number % 5]
        yield f"{number}, zero point {zero_point}", _layer(conv_cases.random_shape(kind, rng), zero_point, rng)
    if kind == "DEPTHWISE_CONV_2D":  # fewer channels than are packed together
        yield "three channels", _layer(conv_cases.Shape(kind, 5, 6, 3, 3, (3, 2)), 127, rng)


def _layer(shape: conv_cases.Shape, zero_point: int, rng: np.random.Generator) -> bytes:
    shape = replace(shape, per_channel=False, bias=True, groups=1, weights_zero_point=zero_point)
    op = conv_cases.make_op(shape, rng)
    inputs, outputs = tuple(map(shifted, op.inputs)), tuple(map(shifted, op.outputs))
    return conv_cases.model_of(replace(op, inputs=inputs, outputs=outputs))


def _cases() -> dict[str, dict[str, bytes]]:
    found = {kind: dict(_layers(kind, 15)) for kind in _LAYERS}
    for kind in sorted({kind for kind, family in FAMILIES.items() if family.computes_uint8} - set(_LAYERS)):
        ops = {
            name: op_in_uint8(op) for name, op in NAMED[kind].items() if op.activations and op.output.dtype == "int8"
        }
        found[kind] = {name: model_of(op) for name, op in ops.items()}
    return found


CASES = _cases()


def layers_of_uint8() -> list[Op]:
    """Convolutions of these cases with weights of 9 bits, as they are compiled."""
    graphs = (read_tflite("m", data) for kind in _LAYERS for data in CASES[kind].values())
    return [op for graph in graphs for op in graph.ops if len(op.inputs) > 1 and op.inputs[1].dtype == "int16"]
