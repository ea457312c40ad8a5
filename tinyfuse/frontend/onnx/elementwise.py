"""Elementwise nodes: functions of one value, and arithmetic of two.

A function of stored values keeps its float32 form until a QuantizeLinear makes a table of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tinyfuse.frontend.onnx.graph import Converter, Refused, constant_tensor
from tinyfuse.frontend.onnx.model import Node
from tinyfuse.frontend.onnx.targets import clip_bounds, target_of
from tinyfuse.frontend.onnx.values import Constant, Function, QuantizedConstant, Real
from tinyfuse.ir import Array, Tensor
from tinyfuse.ops.core.binary import Binary, FloatBinary
from tinyfuse.ops.elementwise.activations import LeakyRelu

Compute = Callable[[Array], Array]
_F32 = np.float32


def _by_doubles(function: Callable[[float], float]) -> Compute:
    """A function of float32 numbers computed in double precision, rounded once."""
    return lambda values: np.array([function(x) for x in values.astype(np.float64).tolist()], _F32)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


#: coefficients of x**13, x**11, ... and of x**6, x**4, ... of the rational function that stands for tanh in Eigen and
#: onnxruntime (core/mlas/lib/tanh.cpp), within -9 to 9
_TANH_OVER = (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05,
    6.37261928875436e-04, 4.89352455891786e-03,
)  # fmt: skip
_TANH_UNDER = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)


def _tanh(values: Array) -> Array:
    """tanh of float32 numbers as onnxruntime computes it, each product and sum rounded once."""
    x = np.clip(values, _F32(-9), _F32(9))
    squared = x * x

    def polynomial(coefficients: tuple[float, ...]) -> Array:
        total = np.full(x.shape, coefficients[0], _F32)
        for coefficient in coefficients[1:]:
            total = (total.astype(np.float64) * squared.astype(np.float64) + np.float64(_F32(coefficient))).astype(_F32)
        return total

    quotient: Array = polynomial(_TANH_OVER) * x / polynomial(_TANH_UNDER)
    return quotient


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _function(c: Converter, node: Node) -> Compute | None:
    """The float32 function of one value that a node computes; None where it is none."""
    a, kind = node.attributes, node.kind
    if kind in ("Relu", "Clip"):
        low, high = clip_bounds(c, node)
        return lambda x: np.minimum(np.maximum(x, _F32(low)), _F32(high))
    if kind == "LeakyRelu":
        alpha = _F32(a.get("alpha", 0.01))
        return lambda x: np.where(x >= 0, x, alpha * x)
    if kind == "HardSigmoid":
        scale, offset = _F32(a.get("alpha", 0.2)), _F32(a.get("beta", 0.5))
        return lambda x: np.clip(scale * x + offset, _F32(0), _F32(1))
    if kind == "HardSwish":
        return lambda x: x * np.clip(_F32(1 / 6) * x + _F32(0.5), _F32(0), _F32(1))
    if kind == "Elu":
        alpha_ = float(a.get("alpha", 1.0))
        return _by_doubles(lambda x: x if x >= 0 else alpha_ * math.expm1(x))
    if kind == "Gelu":
        if a.get("approximate", "none") == "tanh":
            return _by_doubles(lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
        return _by_doubles(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))
    return _FUNCTIONS.get(kind)


_FUNCTIONS: dict[str, Compute] = {
    "Sigmoid": _by_doubles(_sigmoid),
    "Tanh": _tanh,
    "Erf": _by_doubles(math.erf),
    "Softplus": _by_doubles(_softplus),
    "Mish": _by_doubles(lambda x: x * math.tanh(_softplus(x))),
    "Abs": np.abs,
    "Neg": np.negative,
    "Sqrt": np.sqrt,
    "Reciprocal": lambda x: _F32(1) / x,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Exp": _by_doubles(lambda x: math.exp(x) if x < 709 else math.inf),
    "Softsign": lambda x: x / (_F32(1) + np.abs(x)),
}

#: kinds of functions of one value that are also computed in float32, where every bit is defined: the operator that does
_REAL = {"Relu": "RELU", "Abs": "ABS", "Neg": "NEG", "Sqrt": "SQRT", "Floor": "FLOOR", "Ceil": "CEIL"}
UNARY = ("Relu", "Clip", "LeakyRelu", "HardSigmoid", "HardSwish", "Elu", "Gelu", *_FUNCTIONS)


def convert_unary(c: Converter, node: Node) -> None:
    """A function of one value: of stored values it waits for the QuantizeLinear behind it."""
    value = c.values[node.input(0)]
    function = _function(c, node)
    assert function is not None, "the table of conversions names functions alone"
    if isinstance(value, (Constant, QuantizedConstant)):
        array = value.array if isinstance(value, Constant) else value.real
        with np.errstate(all="ignore"):
            c.set(node, Constant(np.asarray(function(array.astype(_F32)), _F32)))
        return
    if isinstance(value, Function):
        before = value.compute
        c.set(node, Function(value.source, lambda x: function(before(x)), (*value.kinds, node.kind)))
        return
    c.set(node, Real(_real_unary(c, node, c.real(node.input(0)))))


def _real_unary(c: Converter, node: Node, source: Tensor) -> Tensor:
    name = node.outputs[0]
    if source.dtype != "float32":
        raise Refused(f"it computes {source.dtype}", "give it float32 values", node.input(0))
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
#: of these, onnxruntime computes stored values by kernels of their own (QLinearAdd, QLinearMul)
_STORED = ("Add", "Mul")


def convert_binary(c: Converter, node: Node) -> None:
    """Arithmetic of two operands that broadcast."""
    if len(node.inputs) != 2:
        raise Refused(f"it has {len(node.inputs)} inputs", "use operators of two inputs")
    kind, function = _BINARY[node.kind]
    a, b = (c.values[name] for name in node.inputs)
    known = [_known(value) for value in (a, b)]
    if known[0] is not None and known[1] is not None:
        with np.errstate(all="ignore"):
            c.set(node, Constant(_folded(node.kind, known[0], known[1])))
        return
    if node.kind in _STORED and _stored_arithmetic(c, node, kind):
        return
    one = _function_of_one(a, b, known, function)
    if one is not None:
        c.set(node, Function(one.source, one.compute, (*one.kinds, node.kind)))
        return
    x, y = (c.real(name) for name in node.inputs)
    shape = np.broadcast_shapes(x.shape, y.shape) if _broadcasts(x, y) else None
    if shape is None:
        raise Refused(f"{list(x.shape)} and {list(y.shape)} don't broadcast", "export the model again")
    attributes = Binary() if kind in ("ADD", "SUB", "MUL", "DIV") else None
    c.set(node, Real(c.emit(kind, (x, y), shape, x.dtype, node.outputs[0], None, attributes, node)))


def _known(value: object) -> Array | None:
    """The numbers of a constant; None for what is computed."""
    if isinstance(value, QuantizedConstant):
        return value.real
    return value.array if isinstance(value, Constant) else None


def _folded(kind: str, a: Array, b: Array) -> Array:
    if kind == "Div" and a.dtype.kind in "iu":  # integers: towards zero
        return np.trunc(a / np.where(b == 0, 1, b)).astype(a.dtype)
    return np.asarray(_BINARY[kind][1](a, b), a.dtype)


def _broadcasts(x: Tensor, y: Tensor) -> bool:
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return True


def _function_of_one(
    a: object, b: object, known: list[Array | None], function: Callable[[Array, Array], Array]
) -> Function | None:
    """The operands' result as a function of one stored value; None where it is none."""
    if isinstance(a, Function) and isinstance(b, Function) and a.source is b.source and (a.kinds or b.kinds):
        return Function(a.source, lambda x: np.asarray(function(a.compute(x), b.compute(x)), _F32), a.kinds + b.kinds)
    for value, other, flip in ((a, known[1], False), (b, known[0], True)):
        if (
            isinstance(value, Function)
            and other is not None
            and other.size == 1
            and len(other.shape) <= len(value.source.tensor.shape)
        ):
            number = np.asarray(other.reshape(-1)[0], _F32)
            return Function(value.source, _with_number(function, value.compute, number, flip), value.kinds)
    return None


def _with_number(function: Callable[[Array, Array], Array], compute: Compute, number: Array, flip: bool) -> Compute:
    """A function of two numbers, one of which is constant: the first with `flip`, else the second."""
    if flip:
        return lambda x: np.asarray(function(number, compute(x)), _F32)
    return lambda x: np.asarray(function(compute(x), number), _F32)


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
