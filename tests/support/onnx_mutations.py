"""Mutants of ONNX files: their bytes changed at random (`byte_mutant`), or what they say changed (`structural_mutant`)."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import numpy as np
from onnx import AttributeProto, ModelProto, TensorProto, helper, load_model_from_string, numpy_helper
from onnx_networks import OnnxWriter, Value, onnx_network
from onnx_operators import OPERATORS, operator_file

_NUMBERS = (-(2**63), -(2**31) - 1, -7, -1, 0, 1, 2, 3, 7, 64, 65_535, 2**24, 2**31 - 1, 2**32, 2**40, 2**62, 2**63 - 1)
_FLOATS = (0.0, -0.0, -1.0, 1e-45, 1e-38, 1e38, float("inf"), float("-inf"), float("nan"), 0.5, 3.0)
#: names that end comments and strings, split lines, or lead out of a folder
NAMES = (
    "*/ int x; /*", "// \\", 'a"b', "a'b", "a\nb", "a\r\nb", "../../etc/passwd", "/dev/zero", "a\\", "??/", "%s%n", "", " ",
    "int", "main", "\x00", "\u202e", "\ufeff", "ü", "💥", "${HOME}", "{{ 7 }}", "{% raw %}", "x" * 5000, "<script>", "#if 0",
)  # fmt: skip
_KINDS = (
    "Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "Sub", "Mul", "Div", "Relu", "Clip", "LeakyRelu", "PRelu", "Sigmoid",
    "Tanh", "Softmax", "MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean", "Concat", "Split", "Slice", "Pad",
    "Resize", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Gather", "BatchNormalization", "Identity",
    "QuantizeLinear", "DequantizeLinear", "LayerNormalization", "QLinearConv", "QLinearMatMul", "QLinearAdd", "Constant",
    "ConstantOfShape", "Shape", "Cast", "Expand", "If", "Loop", "Einsum", "DynamicQuantizeLinear", "", "\x1b[31m\n",
)  # fmt: skip
_LOCATIONS = ("../w.bin", "/etc/passwd", "/dev/zero", "w.bin", "", ".", "a/../../b", "\x00", "C:\\w.bin", "\\\\host\\w")
_ATTRIBUTES = (
    "axis", "axes", "pads", "strides", "dilations", "kernel_shape", "group", "perm", "to", "mode", "ceil_mode", "auto_pad",
    "output_shape", "output_padding", "keepdims", "transA", "transB", "alpha", "beta", "allowzero", "start", "end", "value",
    "count_include_pad", "epsilon", "num_outputs", "block_size", "coordinate_transformation_mode", "nearest_mode",
)  # fmt: skip

Mutation = Callable[[random.Random, ModelProto], None]


@cache
def _network(number: int) -> bytes:
    return onnx_network(number).data


@cache
def _operator(kind: str, number: int) -> bytes:
    return operator_file(kind, number)


@cache
def _computed_shapes(number: int) -> bytes:
    """Constants that nodes compute of shapes and of other constants, as exporters leave them, and what reads these."""
    rng, w = random.Random(f"constants {number}"), OnnxWriter("int8", 17)
    value = w.input((1, 4, 3, 2), 0.1, 0)
    ints = [w.node("Shape", [value.name])[0], w.constant(np.array([2, 3, 4], np.int64)), w.constant(np.array([1]))]
    reals = [w.constant(np.arange(24, dtype=np.float32).reshape(4, 3, 2) / 8), w.constant(np.float32(0.5))]
    for _ in range(rng.randrange(3, 9)):
        kind = rng.choice(("Gather", "Concat", "Unsqueeze", "Add", "Cast", "Slice", "ConstantOfShape", "Resize", "Pad",
                           "Transpose", "Reshape", "Split", "Clip", "Tanh", "Mul", "Squeeze"))  # fmt: skip
        x, some = rng.choice(ints), rng.choice(reals)
        one = w.constant(np.array([rng.choice((0, 1, 1, 2))], np.int64))
        if kind == "Gather":
            ints.append(w.node(kind, [x, w.constant(np.int64(0))])[0])
        elif kind == "Concat":
            ints.append(w.node(kind, [x, one, x], axis=0)[0])
        elif kind in ("Unsqueeze", "Squeeze"):
            ints.append(w.node(kind, [x, w.constant(np.array([0]))])[0])
        elif kind == "Slice":
            ints.append(w.node(kind, [x, w.constant(np.array([0])), one])[0])
        elif kind == "Split":
            ints += w.node(kind, [x], 2)
        elif kind == "ConstantOfShape":
            reals.append(w.node(kind, [one])[0])
        elif kind == "Cast":
            reals.append(w.node(kind, [x], to=1)[0])
        elif kind in ("Add", "Mul"):
            reals.append(w.node(kind, [some, rng.choice(reals)])[0])
        elif kind in ("Clip", "Tanh", "Transpose"):
            reals.append(w.node(kind, [some])[0])
        elif kind == "Pad":
            reals.append(w.node(kind, [some, w.constant(np.array([0, 1, 0, 0, 0, 1]))])[0])
        elif kind == "Resize":
            sizes = w.node("Concat", [w.constant(np.array([1, 4])), w.constant(np.array([6, 4]))], axis=0)[0]
            real = w.node(kind, [w.real(value), "", "", sizes], mode="nearest")[0]
            reals.append(w.node("Reshape", [real, x])[0])
        else:
            reals.append(w.node(kind, [some, x])[0])
    made = w.node("Add", [w.real(value), reals[0]])[0]
    made = w.node("Reshape", [made, w.node("Concat", [one, w.constant(np.array([-1]))], axis=0)[0]])[0]
    return w.model([w.quantize(made, Value("", (1, 24), 0.05, 0))])


def _sound_file(rng: random.Random) -> bytes:
    """A network, or one operator, or constants that nodes compute."""
    if rng.random() < 0.15:
        return _computed_shapes(rng.randrange(100))
    if rng.random() < 0.5:
        return _network(rng.randrange(60))
    return _operator(rng.choice(list(OPERATORS)), rng.randrange(8))


def byte_mutant(seed: int) -> bytes:
    """A network's bytes with some of them changed, removed or added."""
    rng = random.Random(f"mutant {seed}")
    data = bytearray(_sound_file(rng))
    way = rng.random()
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(data))
        if way < 0.5:
            data[at] = rng.randrange(256)
        elif way < 0.7:
            data[at] ^= 1 << rng.randrange(8)
        elif way < 0.8:
            del data[at : at + rng.randrange(1, 9)]
        elif way < 0.9:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif at > 10:
            del data[at:]
    return bytes(data)


def structural_mutant(seed: int) -> bytes:
    """A network of which one to four things are absurd: shapes, edges, names, attributes, constants, operators."""
    rng = random.Random(f"structural mutant {seed}")
    model = load_model_from_string(_sound_file(rng))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if model.graph.node and model.graph.initializer and model.graph.input:
            rng.choice(MUTATIONS)(rng, model)
    return bytes(model.SerializeToString())


def _shape(rng: random.Random, model: ModelProto) -> None:
    border = rng.choice([*model.graph.input, *model.graph.output]).type.tensor_type
    dims = border.shape.dim
    way = rng.random()
    if way < 0.2:
        del dims[:]
    elif way < 0.4:
        dims.add().dim_value = rng.choice(_NUMBERS)
    elif way < 0.5 and dims:
        rng.choice(dims).dim_param = rng.choice(NAMES)
    elif way < 0.6:
        border.elem_type = rng.randrange(-1, 30)
    elif dims:
        rng.choice(dims).dim_value = rng.choice(_NUMBERS)


def _edge(rng: random.Random, model: ModelProto) -> None:
    """An input of a node becomes another value: of a later node, a cycle; or its output the name of another."""
    nodes = model.graph.node
    node = rng.choice(nodes)
    names = [name for other in nodes for name in (*other.input, *other.output)] + ["", "nowhere"]
    ends = node.output if rng.random() < 0.3 else node.input
    if len(ends) and rng.random() < 0.7:
        ends[rng.randrange(len(ends))] = rng.choice(names)
    elif rng.random() < 0.5:
        ends.append(rng.choice(names))
    else:
        del ends[-1:]


def _name(rng: random.Random, model: ModelProto) -> None:
    """Name a value, a node or the graph so that comments, strings or paths may break; values everywhere alike."""
    graph, name = model.graph, rng.choice(NAMES)
    made = [output for node in graph.node for output in node.output] or [""]
    if rng.random() < 0.3:
        rng.choice([graph, *graph.node]).name = name
        return
    old = rng.choice([*graph.input, *graph.output]).name if rng.random() < 0.6 else rng.choice(made)
    for named in (*graph.input, *graph.output, *graph.initializer):
        named.name = name if named.name == old else named.name
    for node in graph.node:
        for ends in (node.input, node.output):
            for i, end in enumerate(ends):
                ends[i] = name if end == old else end


def _attribute(rng: random.Random, model: ModelProto) -> None:
    node = rng.choice([n for n in model.graph.node if n.attribute] or list(model.graph.node))
    if node.attribute and rng.random() < 0.7:
        attribute = rng.choice(node.attribute)
    else:
        attribute = node.attribute.add(name=rng.choice(_ATTRIBUTES), type=AttributeProto.INTS)
    way = rng.random()
    if way < 0.15:
        node.attribute.remove(attribute)
    elif way < 0.3:
        attribute.type = rng.randrange(0, 15)
    elif way < 0.5:
        attribute.i, attribute.f, attribute.s = rng.choice(_NUMBERS), rng.choice(_FLOATS), rng.choice(NAMES).encode()
    elif way < 0.75 and attribute.ints:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(_NUMBERS)
    elif way < 0.9:
        attribute.ints.extend(rng.choice(_NUMBERS) for _ in range(rng.randrange(1, 9)))
    else:
        attribute.CopyFrom(helper.make_attribute(attribute.name, model.graph))  # a graph within itself


def _constant(rng: random.Random, model: ModelProto) -> None:
    tensor = rng.choice(model.graph.initializer)
    way = rng.random()
    if way < 0.1:  # no elements, or one
        count = rng.choice((0, 1))
        dims, tensor.dims[:] = list(tensor.dims), [count] * rng.randrange(1, 6)
        size = len(tensor.raw_data) // max(1, int(np.prod(dims)))
        tensor.raw_data = tensor.raw_data[: count * size]
    elif way < 0.2:
        tensor.dims.append(rng.choice(_NUMBERS))
    elif way < 0.35 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(_NUMBERS)
    elif way < 0.5:
        tensor.data_type = rng.randrange(-1, 30)
    elif way < 0.6:
        tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data) + 1)]
    elif way < 0.75:
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", rng.choice(_LOCATIONS)), ("offset", rng.choice(_NUMBERS)), ("length", 8)):
            if rng.random() < 0.8:
                tensor.external_data.add(key=key, value=str(value))
    elif tensor.data_location != TensorProto.EXTERNAL:
        try:
            array = numpy_helper.to_array(tensor).copy()
        except (TypeError, ValueError, KeyError):  # its dtype or dims are absurd already
            return
        if array.size:
            with np.errstate(all="ignore"):
                number = rng.choice(_FLOATS) if array.dtype.kind == "f" else rng.choice(_NUMBERS) % 2**31
                array.reshape(-1)[rng.randrange(array.size)] = np.array(number).astype(array.dtype)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _node(rng: random.Random, model: ModelProto) -> None:
    nodes = model.graph.node
    node, way = rng.choice(nodes), rng.random()
    if way < 0.5:
        node.op_type = rng.choice(_KINDS)
    elif way < 0.6:
        node.domain = rng.choice(("com.microsoft", "ai.onnx.ml", "*/", "\x1b[31m", "x" * 5000))
    elif way < 0.7:
        nodes.remove(node)
    elif way < 0.8:
        nodes.add().CopyFrom(node)
    else:
        kept = list(nodes)
        rng.shuffle(kept)
        del nodes[:]
        nodes.extend(kept)


def _header(rng: random.Random, model: ModelProto) -> None:
    way = rng.random()
    if way < 0.4 and model.opset_import:
        model.opset_import[0].version = rng.choice((*_NUMBERS, 9, 10, 11, 12, 18, 21, 26))
    elif way < 0.5:
        del model.opset_import[:]
    elif way < 0.6:
        model.ir_version = rng.choice(_NUMBERS)
    elif way < 0.8:
        model.graph.input.add().CopyFrom(rng.choice(model.graph.input))
    else:
        del model.graph.output[:]


MUTATIONS: tuple[Mutation, ...] = (
    _shape,
    _edge,
    _edge,
    _name,
    _attribute,
    _attribute,
    _constant,
    _constant,
    _node,
    _header,
)
