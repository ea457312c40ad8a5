"""Converts the nodes of an ONNX file into a graph of tinyfuse operators.

Nodes are converted in their order. A DequantizeLinear makes no operator: nodes between it and a QuantizeLinear are
computed in stored integers if onnxruntime does so, otherwise in float32. Images are [1, C, H, W] in the file:
operators over rows and columns get a TRANSPOSE to [1, H, W, C] in front and one back behind them, which
rewrite/cancel_transposes.py removes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tinyfuse.errors import Problem
from tinyfuse.frontend.layouts import channels_first, channels_last
from tinyfuse.frontend.onnx.model import HINT_FIXED, MICROSOFT, STANDARD, Border, Node, OnnxModel, read_model
from tinyfuse.frontend.onnx.rewritten import Change, rewritten
from tinyfuse.frontend.onnx.values import (
    STORED,
    Constant,
    Function,
    Quantization,
    QuantizedConstant,
    Real,
    Stored,
    Value,
)
from tinyfuse.frontend.tensors import HINT_SMALLER, HINT_UNSOUND, MAX_RANK, Problems, Refused, constant_tensor
from tinyfuse.ir import MAX_TENSOR_BYTES, ONNXRUNTIME, Array, Digest, Graph, Op, Quant, Tensor
from tinyfuse.ir.graph import quoted
from tinyfuse.ops.elementwise.table import TABLE_VALUES, Table
from tinyfuse.ops.program.constant_output import with_written_outputs

#: dtypes that an input or output of the graph may have
_BORDERS = ("float32", "int8", "uint8", "int32", "int64", "bool")


#: quantizations of stored values that no node dequantizes: each stands for its own integer
_AS_STORED = {dtype: Quantization(np.array(1, np.float32), np.zeros((), dtype), dtype) for dtype in STORED}


#: maximum bytes of all constants that nodes compute from constants
_MOST_CONSTANT_BYTES = 8 * MAX_TENSOR_BYTES


def require_shape(shape: Sequence[int]) -> None:
    """Refuse a computed shape that no tensor can have. Dimensions of 0 are allowed, for constants."""
    sound = len(shape) <= MAX_RANK and all(dim >= 0 for dim in shape)
    if not sound or math.prod(max(dim, 1) for dim in shape) > MAX_TENSOR_BYTES:
        raise Refused(f"its shape {list(shape)} is impossible", "export the model again, with fixed shapes")


def checked_axis(axis: int, rank: int) -> int:
    """Return a dimension counted from the first; refuse one that isn't there."""
    if not -rank <= axis < rank:
        raise Refused(f"axis {axis} is beyond {rank} dimensions", "export the model again, with fixed shapes")
    return axis % rank


_HINT_UNSUPPORTED = "take it out of the model or replace it: docs/onnx.md lists what is supported"
_HINT_DYNAMIC = "the file is quantized dynamically: use quantize_static instead of quantize_dynamic"
_HINT_FLOW = "export the model without control flow (torch.onnx.export of a traced module), or fold it with onnxsim"
#: kind of an operator that isn't supported -> hint
_HINTS = {
    **dict.fromkeys(("DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "DynamicQuantizeMatMul",
                     "MatMulIntegerToFloat", "DynamicQuantizeLSTM"), _HINT_DYNAMIC),
    **dict.fromkeys(("If", "Loop", "Scan"), _HINT_FLOW),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), "convert it to .tflite, whose LSTM is read (see `tinyfuse operators`)"),
}  # fmt: skip


class _Unknown(Exception):
    """Raised for a node that reads the result of a refused node, and so has no problem of its own to report."""


Conversion = Callable[["Converter", Node], None]


@dataclass(frozen=True)
class Kind:
    """Describes how nodes of a kind are converted.

    convert       adds operators, and sets the values of the node's outputs
    least, most   number of inputs that a node may have; the first `least` may not be left out
    check_alone   refuses faults that do not depend on the node's computed inputs
    """

    convert: Conversion
    least: int = 1
    most: int = 1
    check_alone: Conversion | None = None


def read_onnx(path: str, data: bytes, kinds: Mapping[str, Kind]) -> Graph:
    """Return the graph of an ONNX file. Raises CompileError with every fault that could be found."""
    problems = Problems()
    model = read_model(path, data, problems)
    if model is None:
        problems.stop(path)
        raise AssertionError("a file without a graph has problems")
    converter = Converter(model, problems, kinds)
    graph = converter.graph(path, Digest(data))
    problems.stop(path)
    return with_written_outputs(graph)


@dataclass(frozen=True)
class Judged:
    """Variant of a file that onnxruntime runs as the reference (rewritten.py).

    data        the file
    replaced    nodes that differ from the original file's
    float_sums  nodes whose sums onnxruntime computes in float32, in an order that depends on the CPU
    near_ties   tables with a result that may differ from one CPU to another
    """

    data: bytes
    replaced: tuple[str, ...]
    float_sums: tuple[str, ...]
    near_ties: tuple[str, ...]


def file_for_onnxruntime(path: str, data: bytes, kinds: Mapping[str, Kind]) -> Judged:
    """Return the file that onnxruntime runs instead of the original, which was read without problems."""
    problems = Problems()
    model = read_model(path, data, problems)
    problems.stop(path)
    assert model is not None, "a file without problems was read"
    converter = Converter(model, problems, kinds)
    converter.graph(path, Digest(data))
    replaced = tuple(str(node) for node in model.nodes if node.index in converter.changes)
    judged = rewritten(data, converter.changes)
    return Judged(judged, replaced, tuple(converter.float_sums), tuple(converter.near_ties))


class Converter:
    """Converts one file. Conversions of nodes (layers.py and others) call its methods."""

    def __init__(self, model: OnnxModel, problems: Problems, kinds: Mapping[str, Kind]):
        self.model, self.problems, self.kinds = model, problems, kinds
        self.values: dict[str, Value] = {name: Constant(array) for name, array in model.constants.items()}
        self.ops: list[Op] = []
        self.readers: dict[str, list[Node]] = {}
        for node in model.nodes:
            for name in filter(None, node.inputs):
                self.readers.setdefault(name, []).append(node)
        self.ends = {border.name for border in model.outputs}
        self.done: set[Node] = set()
        self.unknown: set[str] = set(model.faulty)
        #: index of a node -> nodes that onnxruntime runs before it or in its place
        self.changes: dict[int, Change] = {}
        #: nodes whose sums onnxruntime computes in float32, in an order that depends on the CPU
        self.float_sums: list[str] = []
        #: tables with a result so near to a rounding boundary that onnxruntime's may differ from one CPU to another
        self.near_ties: list[str] = []
        self.constant_bytes = 0
        self._images: dict[Tensor, Tensor] = {}
        self._reals: dict[str, Tensor] = {}

    def graph(self, path: str, digest: Digest) -> Graph:
        inputs = [tensor for border in self.model.inputs if (tensor := self.graph_input(border)) is not None]
        for node in self.model.nodes:
            if node not in self.done and any(node.outputs):
                self.convert(node)
        outputs = [tensor for border in self.model.outputs if (tensor := self.graph_output(border)) is not None]
        return Graph(path, digest, tuple(self.ops), tuple(inputs), tuple(outputs), runtime=ONNXRUNTIME)

    def convert(self, node: Node) -> None:
        """Convert a node. If that fails, record its problem; its outputs are then unknown."""
        try:
            known = node.domain in STANDARD or node.domain == MICROSOFT
            kind = self.kinds.get(node.kind) if known else None
            if kind is None:
                raise Refused("this operator is not supported", _HINTS.get(node.kind, _HINT_UNSUPPORTED))
            if any(name in self.unknown for name in (*node.inputs, *node.outputs)):
                if kind.check_alone is not None:
                    kind.check_alone(self, node)
                raise _Unknown
            missing = next((name for name in node.inputs if name and name not in self.values), None)
            if missing is not None:
                raise Refused(f"it reads {missing!r}, which nothing before it computes", HINT_UNSOUND)
            if not kind.least <= len(node.inputs) <= kind.most or "" in node.inputs[: kind.least]:
                raise Refused(
                    f"it has {len(node.inputs)} inputs, which is the wrong number, or lacks a required one",
                    HINT_UNSOUND,
                )
            kind.convert(self, node)
        except (Refused, _Unknown) as error:
            self.unknown |= set(node.outputs)
            if isinstance(error, Refused):
                self.problems.found.append(Problem(error.message, str(node), error.tensor, error.hint))

    # --- the graph's inputs and outputs ------------------------------------------------------

    def graph_input(self, border: Border) -> Tensor | None:
        """The tensor of an input of the graph; None where it can't be one."""
        known = border.dtype in _BORDERS
        message = f"{border.dtype} inputs are not supported"
        if not self.problems.require(known, message, "give it float32 or int8 data", tensor=border):
            return None
        fixed = border.shape is not None and all(dim is not None for dim in border.shape[1:])
        if not self.problems.require(fixed, "its shape is not fixed", HINT_FIXED, tensor=border):
            self.unknown.add(border.name)
            return None
        shape = tuple(1 if dim is None else dim for dim in border.shape or ())
        small = math.prod(shape) * np.dtype(border.dtype).itemsize <= MAX_TENSOR_BYTES
        message = f"it has more than {MAX_TENSOR_BYTES:,} bytes"
        if not self.problems.require(small, message, HINT_SMALLER, tensor=border):
            self.unknown.add(border.name)
            return None
        if border.dtype not in STORED:
            tensor = Tensor(border.name, shape, border.dtype)
            self.values[border.name] = Real(tensor)
            return tensor
        try:
            q = self.quantization_at_readers(border.name, border.dtype)
        except (Refused, _Unknown):  # the reader's conversion reports it
            q = _AS_STORED[border.dtype]
        tensor = Tensor(
            border.name, shape, border.dtype, replace(q.signed, zero_point=tuple(q.zero_point.reshape(-1).tolist()))
        )
        self.values[border.name] = Stored(self.as_int8(tensor, q), border.dtype)
        return tensor

    def quantization_at_readers(self, name: str, dtype: str) -> Quantization:
        """Quantization of a stored input of the graph: that of the first DequantizeLinear that reads it."""
        for node in self.readers.get(name, ()):
            if node.kind == "DequantizeLinear" and node.input(0) == name and node not in self.done:
                return self.quantization(node, 1, 2, dtype)
        return _AS_STORED[dtype]

    def as_int8(self, tensor: Tensor, q: Quantization) -> Tensor:
        """Return an int8 tensor with the values of a uint8 or int8 input."""
        if tensor.dtype == "int8":
            return tensor
        inside = Tensor(f"{tensor.name} (int8)", tensor.shape, "int8", q.signed)
        self.ops.append(Op("QUANTIZE", (tensor,), (inside,)))
        return inside

    def graph_output(self, border: Border) -> Tensor | None:
        """Return the tensor of an output of the graph; None if it is unknown or cannot be an output."""
        if border.name in self.unknown:
            return None
        value = self.values.get(border.name)
        message = "is an output of the graph, but nothing computes it"
        if not self.problems.require(value is not None, message, HINT_UNSOUND, tensor=border):
            return None
        if isinstance(value, Stored):
            if value.dtype == "int8":
                return self.renamed(value.tensor, border.name)
            quant = value.tensor.quantization
            outside = replace(quant, zero_point=tuple(point + 128 for point in quant.zero_point))
            return self.emit("QUANTIZE", (value.tensor,), value.tensor.shape, "uint8", border.name, outside)
        try:
            return self.renamed(self.real(border.name), border.name)
        except Refused as refused:
            self.problems.found.append(Problem(refused.message, None, str(border), refused.hint))
            return None

    def renamed(self, tensor: Tensor, name: str) -> Tensor:
        """Return the tensor with this name, which it has in the file."""
        if tensor.name == name or tensor.is_constant:
            return tensor
        return self.emit("RESHAPE", (tensor,), tensor.shape, tensor.dtype, name, tensor.quant)

    def requantized_view(self, tensor: Tensor, q: Quantization) -> Tensor:
        """Return a view of the stored values with another quantization."""
        return self.emit("RESHAPE", (tensor,), tensor.shape, "int8", f"{tensor.name} (other scale)", q.signed)

    # --- values ------------------------------------------------------------------------------

    def constant(self, node: Node, i: int) -> Array | None:
        """The values of a constant input; None where it is left out. Refused where it is computed."""
        name = node.input(i)
        if not name:
            return None
        if name in self.unknown:
            raise _Unknown
        value = self.values.get(name)
        if isinstance(value, QuantizedConstant):
            return value.real
        if not isinstance(value, Constant):
            hint = "export the model with fixed shapes, and fold constants (onnxsim, or torch.onnx.export's default)"
            raise Refused(f"its input {i} must be a constant", hint, name)
        return value.array

    def numbers(self, node: Node, i: int, attribute: str | None = None) -> list[int] | None:
        """Return the integers of a constant input, or of the attribute that older operator sets have instead."""
        found = self.constant(node, i)
        if found is not None:
            if found.dtype.kind not in "iu":
                raise Refused(f"its input {i} is {found.dtype}, not integers", HINT_UNSOUND, node.input(i))
            return [int(number) for number in found.reshape(-1)]
        listed = node.attributes.get(attribute) if attribute is not None else None
        return [int(number) for number in listed] if listed is not None else None

    def quantization(self, node: Node, scale: int, zero_point: int, dtype: str) -> Quantization:
        """Return the quantization that a node's inputs `scale` and `zero_point` (their numbers) give."""
        scales = self.constant(node, scale)
        points = self.constant(node, zero_point)
        if scales is None or scales.dtype != np.float32 or scales.ndim > 1 or not scales.size:
            raise Refused("its scale is neither one float32 number nor one per channel", HINT_UNSOUND)
        if not (np.isfinite(scales).all() and (scales > 0).all()):
            raise Refused("a scale is not positive and finite", "quantize the model again")
        if points is None:
            points = np.zeros(scales.shape, dtype)
        if points.dtype != dtype:
            raise Refused(f"its zero point is {points.dtype}, but its values are {dtype}", HINT_UNSOUND)
        if points.size != scales.size:
            raise Refused("scale and zero point have different sizes", HINT_UNSOUND)
        if scales.size == 1:
            scales = scales.reshape(())
        return Quantization(scales, points.reshape(scales.shape), dtype)

    def sole_reader(self, name: str) -> Node | None:
        """Return the only node that reads a value; None if others do, or the value is an output of the graph."""
        readers = self.readers.get(name, [])
        if any(not any(r.outputs) or any(name in self.unknown for name in r.outputs) for r in readers):
            raise _Unknown
        return readers[0] if len(readers) == 1 and name not in self.ends else None

    def set(self, node: Node, value: Value, output: int = 0) -> None:
        """Set the value of a node's output."""
        if isinstance(value, (Constant, QuantizedConstant)):
            self.constant_bytes += value.array.nbytes
            if self.constant_bytes > _MOST_CONSTANT_BYTES:
                raise Refused("constants that the file computes are too large", HINT_SMALLER)
        self.values[node.outputs[output]] = value

    def real(self, name: str) -> Tensor:
        """Return the tensor of real numbers with that name. A function of stored values is computed by operators in
        float32. Raises Refused for quantized values."""
        value = self.values[name]
        if isinstance(value, Real):
            return value.tensor
        if isinstance(value, Stored):
            hint = "put a DequantizeLinear in front"
            raise Refused(f"{name!r} holds quantized {value.dtype} values, but it needs real numbers", hint)
        if not isinstance(value, Function):
            return constant_tensor(name, value.array if isinstance(value, Constant) else value.real)
        if name not in self._reals:
            source = value.source.tensor
            dequantize = lambda: self.emit("DEQUANTIZE", (source,), source.shape, "float32", name)  # noqa: E731
            self._reals[name] = (value.real or dequantize)()
        return self._reals[name]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of the value of this name."""
        value = self.values[name]
        if isinstance(value, (Constant, QuantizedConstant)):
            return value.array.shape
        return (value.source if isinstance(value, Function) else value).tensor.shape

    # --- operators ---------------------------------------------------------------------------

    def emit(
        self,
        kind: str,
        inputs: Sequence[Tensor | None],
        shape: Sequence[int],
        dtype: str,
        name: str,
        quant: Quant | None = None,
        attributes: object = None,
        node: Node | None = None,
    ) -> Tensor:
        """Add an operator; return its output."""
        output = Tensor(name, tuple(shape), dtype, quant)
        if output.bytes > MAX_TENSOR_BYTES:
            raise Refused(f"its output has {output.bytes:,} bytes", HINT_SMALLER)
        self.ops.append(Op(kind, tuple(inputs), (output,), attributes, -1 if node is None else node.index))
        return output

    def transposed(self, tensor: Tensor, order: Sequence[int]) -> Tensor:
        """Return the tensor with its dimensions in another order: dimension d of the result is dimension order[d] of
        the tensor."""
        shape = [tensor.shape[axis] for axis in order]
        wanted = constant_tensor(f"{tensor.name} (order)", np.array(order, np.int32))
        return self.emit(
            "TRANSPOSE", (tensor, wanted), shape, tensor.dtype, f"{tensor.name} (transposed)", tensor.quant
        )

    def image(self, tensor: Tensor) -> Tensor:
        """Return the image [1, H, W, C] of a tensor [1, C, H, W], by a TRANSPOSE."""
        if tensor not in self._images:
            self._images[tensor] = self.transposed(tensor, channels_last(4))
        return self._images[tensor]

    def planes(self, image: Tensor) -> Tensor:
        """The tensor [1, C, H, W] of an image."""
        tensor = self.transposed(image, channels_first(4))
        self._images[tensor] = image
        return tensor

    def reshaped(self, tensor: Tensor, shape: Sequence[int], name: str) -> Tensor:
        return self.emit("RESHAPE", (tensor,), shape, tensor.dtype, name, tensor.quant)

    def table(self, function: Function, to: Quantization, name: str, kind: str) -> Stored:
        """A TABLE of a function from stored values to stored values; `kind` is that of the node that quantizes."""
        source, quant = function.source, function.source.tensor.quantization
        numbers = (TABLE_VALUES.astype(np.int64) - quant.zero_point[0]) * np.float64(quant.scale[0])
        with np.errstate(all="ignore"):
            results, *near = (to.quantize(compute(numbers.astype(np.float32))) for compute in function.variants)
        if any(not np.array_equal(results, each) for each in near):
            self.near_ties.append(f"{'/'.join(function.kinds)} to {quoted(name)}")
        if source.tensor.quant == to.signed and np.array_equal(results, TABLE_VALUES):
            return Stored(source.tensor, to.dtype)
        table, kinds = constant_tensor(f"{name} (table)", results), Table((*function.kinds, kind))
        made = self.emit("TABLE", (source.tensor, table), source.tensor.shape, "int8", name, to.signed, kinds)
        return Stored(made, to.dtype)
