"""Elementwise nodes: functions of one value, and arithmetic of two.

A function of stored values keeps its float32 form until a QuantizeLinear makes a table of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tinyfuse.frontend.onnx import functions
from tinyfuse.frontend.onnx.functions import FUNCTIONS, Variants
from tinyfuse.frontend.onnx.graph import Converter, require_shape
from tinyfuse.frontend.onnx.model import Node
from tinyfuse.frontend.onnx.targets import clip_bounds, target_of
from tinyfuse.frontend.onnx.values import Constant, Function, QuantizedConstant, Real, Value
from tinyfuse.frontend.tensors import Refused, constant_tensor
from tinyfuse.ir import Array, Tensor
from tinyfuse.ops.core.binary import Binary, FloatBinary
from tinyfuse.ops.elementwise.activations import LeakyRelu

_F32 = np.float32


def _function(c: Converter, node: Node) -> Variants:
    """The float32 function of one value that a node computes."""

    def number(name: str, default: float) -> np.float32:
        return _F32(node.attributes.get(name, default))

    match node.kind:
        case "Clip":
            return functions.clip(*clip_bounds(c, node))
        case "LeakyRelu":
            return functions.leaky_relu(number("alpha", 0.01))
        case "HardSigmoid":
            return functions.hard_sigmoid(number("alpha", 0.2), number("beta", 0.5))
        case "Elu":
            return functions.elu(number("alpha", 1.0))
        case "Gelu":
            return functions.gelu(node.attributes.get("approximate", "none"))
    return FUNCTIONS[node.kind]


#: kind of a function of one value -> operator that computes it in float32; only kinds whose every bit is defined
_REAL = {"Relu": "RELU", "Abs": "ABS", "Neg": "NEG", "Sqrt": "SQRT", "Floor": "FLOOR", "Ceil": "CEIL"}
UNARY = ("Clip", "LeakyRelu", "HardSigmoid", "Elu", "Gelu", *FUNCTIONS)


def convert_unary(c: Converter, node: Node) -> None:
    """Convert a function of one value. A function of a DequantizeLinear's result is only recorded (`Function`): the
    QuantizeLinear that follows makes a table of it."""
    value = c.values[node.input(0)]
    function = _function(c, node)
    if (known := _known(value)) is not None:
        with np.errstate(all="ignore"):
            c.set(node, Constant(function[0](known.astype(_F32))))
        return
    if isinstance(value, Function):
        variants, kinds = functions.chained(value.variants, function), (*value.kinds, node.kind)
        c.set(node, Function(value.source, variants, kinds, lambda: _real_unary(c, node, c.real(node.input(0)))))
        return
    c.set(node, Real(_real_unary(c, node, c.real(node.input(0)))))


def _real_unary(c: Converter, node: Node, source: Tensor) -> Tensor:
    name = node.outputs[0]
    if source.dtype != "float32":
        raise Refused(f"its input is {source.dtype}, not float32", "give it float32 values", node.input(0))
    if node.kind == "Clip":
        low, high = clip_bounds(c, node)
        for kind, bound, end in (("MAXIMUM", low, -np.inf), ("MINIMUM", high, np.inf)):
            if bound != end:
                source = c.emit(
                    kind,
                    (source, constant_tensor(f"{name} (bound)", np.array([bound], _F32))),
                    source.shape,
                    "float32",
                    name,
                )
        return source
    if node.kind == "LeakyRelu":
        return c.emit(
            "LEAKY_RELU",
            (source,),
            source.shape,
            "float32",
            name,
            None,
            LeakyRelu(node.attributes.get("alpha", 0.01)),
            node,
        )
    if node.kind not in _REAL:
        raise Refused(
            "it is computed in float32, for which there is no kernel",
            "put it between a DequantizeLinear and a QuantizeLinear: there it becomes a table",
        )
    return c.emit(_REAL[node.kind], (source,), source.shape, "float32", name, None, None, node)


#: kind -> the operator of two operands, and its numpy function
_BINARY: dict[str, tuple[str, Callable[[Array, Array], Array]]] = {
    "Add": ("ADD", np.add),
    "Sub": ("SUB", np.subtract),
    "Mul": ("MUL", np.multiply),
    "Div": ("DIV", np.divide),
    "Max": ("MAXIMUM", np.maximum),
    "Min": ("MINIMUM", np.minimum),
}
BINARY = tuple(_BINARY)
#: kinds of _BINARY that onnxruntime computes directly on stored values (QLinearAdd, QLinearMul)
_STORED = ("Add", "Mul")


def convert_binary(c: Converter, node: Node) -> None:
    """Convert arithmetic of two operands that broadcast."""
    if len(node.inputs) != 2:
        raise Refused(f"it has {len(node.inputs)} inputs, not two", "use several operators with two inputs each")
    kind, function = _BINARY[node.kind]
    a, b = (c.values[name] for name in node.inputs)
    known = [_known(value) for value in (a, b)]
    if known[0] is not None and known[1] is not None:
        with np.errstate(all="ignore"):
            c.set(node, Constant(_folded(node.kind, known[0], known[1])))
        return
    if node.kind in _STORED and _stored_arithmetic(c, node, kind):
        return
    one = _function_of_one(c, node, (a, b), function)
    c.set(node, Real(_real_binary(c, node)) if one is None else one)


def _real_binary(c: Converter, node: Node) -> Tensor:
    """The result of two operands computed in float32."""
    kind, (x, y) = _BINARY[node.kind][0], [c.real(name) for name in node.inputs]
    return real_arithmetic(c, kind, x, y, node.outputs[0], node)


def real_arithmetic(c: Converter, kind: str, x: Tensor, y: Tensor, name: str, node: Node) -> Tensor:
    """Return the float32 result of an operator of two operands that are not quantized."""
    shape = _common_shape(x, y)
    attributes = Binary() if kind in ("ADD", "SUB", "MUL", "DIV") else None
    return c.emit(kind, (x, y), shape, x.dtype, name, None, attributes, node)


def _known(value: Value) -> Array | None:
    """Return the numbers of a constant; None for a computed value."""
    if isinstance(value, QuantizedConstant):
        return value.real
    return value.array if isinstance(value, Constant) else None


def _folded(kind: str, a: Array, b: Array) -> Array:
    """Return the float32 result of an operator of two constants."""
    if a.dtype != b.dtype or a.dtype.kind not in "iuf":
        raise Refused(f"its constants are {a.dtype} and {b.dtype}, not numbers of one dtype", "export the model again")
    require_shape(_common_shape(a, b))
    if kind == "Div" and a.dtype.kind in "iu":  # integers: towards zero
        return np.trunc(a / np.where(b == 0, 1, b)).astype(a.dtype)
    return np.asarray(_BINARY[kind][1](a, b), a.dtype)


def _broadcasts(x: Tensor | Array, y: Tensor | Array) -> bool:
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return True


def _common_shape(x: Tensor | Array, y: Tensor | Array) -> tuple[int, ...]:
    """The shape that two operands broadcast to."""
    if not _broadcasts(x, y):
        raise Refused(f"{list(x.shape)} and {list(y.shape)} don't broadcast", "export the model again")
    return np.broadcast_shapes(x.shape, y.shape)


def _function_of_one(
    c: Converter, node: Node, operands: Sequence[Value], function: Callable[[Array, Array], Array]
) -> Function | None:
    """Return the result of two operands as a function of one stored value; None if it depends on more."""
    sources = [value.source for value in operands if isinstance(value, Function)]
    if not sources or any(source is not sources[0] for source in sources):
        return None
    kinds: tuple[str, ...] = ()
    variants = []
    for value in operands:
        known = _known(value)
        if isinstance(value, Function):
            variants.append(value.variants)
            kinds += value.kinds
        elif known is not None and known.size == 1 and known.ndim <= len(sources[0].tensor.shape):
            variants.append(functions.constant(known.item()))
        else:
            return None
    one, two = variants
    both = functions.combined(one, two, lambda f, g: lambda x: function(f(x), g(x)))
    return Function(sources[0], both, (*kinds, node.kind), lambda: _real_binary(c, node))


def convert_prelu(c: Converter, node: Node) -> None:
    """Convert PRelu: a function of one value if it has one slope, otherwise float32 with several constant slopes."""
    value, slopes = c.values[node.input(0)], c.constant(node, 1)
    shape = c.shape(node.input(0))
    if slopes is None or slopes.dtype != np.float32 or slopes.ndim > len(shape):
        raise Refused("its slopes don't fit its input", "export the model again", node.input(1))

    def real() -> Tensor:
        operands = c.real(node.input(0)), constant_tensor(f"{node.outputs[0]} (slopes)", slopes)
        return real_arithmetic(c, "PRELU", *operands, node.outputs[0], node)

    if isinstance(value, Function) and slopes.size == 1:
        variants = functions.chained(value.variants, functions.leaky_relu(slopes.reshape(-1)[0]))
        c.set(node, Function(value.source, variants, (*value.kinds, node.kind), real))
    else:
        c.set(node, Real(real()))


def _stored_arithmetic(c: Converter, node: Node, kind: str) -> bool:
    """Convert an Add or Mul that onnxruntime computes by QLinearAdd or QLinearMul; tell whether it is one."""
    operands = []
    for name in node.inputs:
        value = c.values[name]
        if isinstance(value, Function) and not value.kinds:
            operands.append(value.source.tensor)
            dtype = value.source.dtype
        elif isinstance(value, QuantizedConstant) and value.quantization.per_tensor and value.array.dtype != np.int32:
            stored = value.array.astype(np.int16) - (128 if value.quantization.dtype == "uint8" else 0)
            operands.append(constant_tensor(name, stored.astype(np.int8), value.quantization.signed))
            dtype = value.quantization.dtype
        else:
            return False
    target = target_of(c, node)
    if target is None or target.clamps or target.quantization.dtype != dtype or not _broadcasts(*operands):
        return False
    shape = np.broadcast_shapes(operands[0].shape, operands[1].shape)
    made = c.emit(
        kind,
        operands,
        shape,
        "int8",
        target.name,
        target.quantization.signed,
        FloatBinary(offset=128 if dtype == "uint8" else 0),
        node,
    )
    target.take(c, made)
    return True
