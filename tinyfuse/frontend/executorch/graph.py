"""Converts the calls of an ExecuTorch program into a graph of tinyfuse operators.

A tensor of the graph has its value's elements in the order of memory, in whatever shape its maker gave it; each reader
asks for the shape that it needs. Images lie in memory as NHWC: their sizes are [N, C, H, W] with dim_order
(0, 2, 3, 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tinyfuse.errors import CompileError, Problem
from tinyfuse.frontend.executorch.arguments import Arguments
from tinyfuse.frontend.executorch.memory import values_among, with_views
from tinyfuse.frontend.executorch.program import Call, Value, read_program
from tinyfuse.frontend.executorch.quantization import Quantizations
from tinyfuse.frontend.flatbuffer_check import Damaged, TooLarge, check_flatbuffer
from tinyfuse.frontend.tensors import HINT_DAMAGED, HINT_SMALLER, HINT_UNSOUND, Problems, Refused, constant_tensor
from tinyfuse.ir import EXECUTORCH, Digest, Graph, Op, Quant, Tensor

#: the order of an image's dimensions in memory
NHWC = (0, 2, 3, 1)
_HINT_DIALECT = "only ExecuTorch's Cortex-M dialect is read: docs/pytorch.md shows how to make it"
#: layers that CortexMQuantizer may leave in float32
_FLOAT_LAYERS = ("convolution", "conv1d", "linear", "addmm", "mm", "bmm", "avg_pool2d", "max_pool2d_with_indices")
_HINT_FLOAT = (
    "CortexMQuantizer left this layer in float32, where no standard orders its sums: give it an image "
    "(Conv2d and MaxPool2d over one row instead of Conv1d and MaxPool1d), Linear or torch.bmm"
)
_HINT_LAYOUT = "export the module with its images in channels_last: x.to(memory_format=torch.channels_last)"


@dataclass(frozen=True)
class Kind:
    """How calls of a kind are converted.

    names    names of the operator's arguments, the last of them "out"
    int8     names of the arguments that must be int8
    convert  adds operators and sets the tensor of the result
    state    records what the call implies about quantizations
    """

    names: tuple[str, ...]
    int8: tuple[str, ...]
    convert: Callable[[Converter, Arguments], None]
    state: Callable[[Quantizations, Arguments], None]


def read_executorch(path: str, data: bytes, kinds: Mapping[str, Kind]) -> Graph:
    """Return the graph of a .pte file. Raises CompileError with every fault that could be found."""
    try:
        check_flatbuffer(data, "Program")
    except Damaged as damaged:
        raise CompileError(path, Problem(f"damaged file: {damaged}", hint=HINT_DAMAGED)) from None
    except TooLarge as large:
        raise CompileError(path, Problem(f"the model is too large: {large}", hint=HINT_SMALLER)) from None
    problems = Problems()
    program = read_program(data, problems)
    if program is None:
        problems.stop(path)
        raise AssertionError("a file without a program has problems")
    calls = with_views(program, problems)
    converter = Converter(problems, kinds, program.outputs)
    for value, (scale, zero_point) in program.borders.items():
        converter.quantizations.has(value, zero_point, scale)
    graph = converter.graph(path, Digest(data), program.inputs, calls)
    problems.stop(path)
    return graph


class Converter:
    """Converts one program. Conversions of calls (layers.py and others) call its methods."""

    def __init__(self, problems: Problems, kinds: Mapping[str, Kind], outputs: Sequence[Value]):
        self.problems, self.kinds, self.outputs = problems, kinds, outputs
        self.quantizations = Quantizations()
        self.tensors: dict[Value, Tensor] = {}
        self.ops: list[Op] = []
        self.names = {value: f"output_{i}" for i, value in enumerate(outputs)}
        self._unknown: set[Value] = set()

    def graph(self, path: str, digest: Digest, inputs: Sequence[Value], calls: Sequence[Call]) -> Graph:
        named = [(call, arguments) for call in calls if (arguments := self.arguments(call)) is not None]
        self.quantizations.solve()
        borders = [self.graph_input(i, value) for i, value in enumerate(inputs)]
        for call, arguments in named:
            self.convert(call, arguments)
        results = [tensor for value in self.outputs if (tensor := self.graph_output(value)) is not None]
        return Graph(path, digest, tuple(self.ops), tuple(borders), tuple(results), runtime=EXECUTORCH)

    def arguments(self, call: Call) -> Arguments | None:
        """Return a call's arguments, and record the quantizations that they imply.

        None, with a recorded problem, if they are not supported.
        """
        try:
            kind = self.kinds.get(call.kind)
            if kind is None:
                hint = _HINT_FLOAT if call.name in _FLOAT_LAYERS else _HINT_DIALECT
                raise Refused("this operator is not supported", hint)
            arguments = Arguments(call, kind.names)
            for name in kind.int8:
                arguments.require_int8(name)
            kind.state(self.quantizations, arguments)
        except Refused as refused:
            self.refuse(call, refused)
            return None
        return arguments

    def convert(self, call: Call, arguments: Arguments) -> None:
        """Convert a call. If that fails, note its problem; its result is unknown then."""
        if any(value in self._unknown for value in values_among(call.arguments)):
            self._lose_result(call)
            return
        try:
            self.kinds[call.kind].convert(self, arguments)
        except Refused as refused:
            self.refuse(call, refused)

    def refuse(self, call: Call, refused: Refused) -> None:
        self._lose_result(call)
        self.problems.require(False, refused.message, refused.hint, call, refused.tensor)

    def _lose_result(self, call: Call) -> None:
        """Note that a call's results are unknown, so that their readers report no problems that follow from its own."""
        self._unknown |= set(values_among(call.arguments[-1:]))

    def graph_input(self, i: int, value: Value) -> Tensor:
        """The tensor of an input of the graph."""
        supported = value.dtype in ("float32", "int8")
        self.problems.require(
            supported, f"{value.dtype} inputs are not supported", "give it float32 or int8", None, value
        )
        self.problems.require(value.elements > 0, "has no elements", HINT_UNSOUND, None, value)
        shape = self.memory_shape(value)
        tensor = Tensor(f"input_{i}", shape, value.dtype, self.quant(value))
        self.tensors[value] = tensor
        return tensor

    def graph_output(self, value: Value) -> Tensor | None:
        if value in self._unknown:
            return None
        made = {tensor for op in self.ops for tensor in op.outputs}
        computed = self.tensors.get(value) in made
        if not self.problems.require(computed, "is an output, but no call computes it", HINT_UNSOUND, None, value):
            return None
        return self.tensors[value]

    # --- values ------------------------------------------------------------------------------

    def quant(self, value: Value, zero_point: int | None = None) -> Quant | None:
        """The quantization of an int8 value, with the reader's zero point if it has one; None for other dtypes."""
        if value.dtype != "int8":
            return None
        found = self.quantizations.quant(value)
        return found if zero_point is None else Quant(found.scale, (zero_point,))

    def memory_shape(self, value: Value) -> tuple[int, ...]:
        """A value's sizes in the order of memory: NHWC for an image."""
        image = len(value.sizes) == 4 and value.lies_as(NHWC)
        return tuple(value.sizes[d] for d in (NHWC if image else value.dim_order))

    def read(self, value: Value, shape: Sequence[int], quant: Quant | None = None) -> Tensor:
        """A value's tensor in that shape. Without `quant` it has the value's own quantization."""
        quant = quant or self.quant(value)
        if value.data is not None:
            return constant_tensor(f"value_{value.number}", value.data.reshape(shape), quant)
        tensor = self.tensors.get(value)
        if tensor is None:
            raise Refused(f"it reads {value}, which nothing before it computes", HINT_UNSOUND)
        if tensor.shape == tuple(shape) and tensor.quant == quant:
            return tensor
        return self.emit("RESHAPE", (tensor,), shape, value.dtype, quant, f"{tensor.name} (view)")

    def image(self, arguments: Arguments, name: str = "input", zero_point: int | None = None) -> Tensor:
        """Return the argument of this name as an image [N, H, W, C]. Raises Refused if it is not in channels_last
        order."""
        value = arguments.value(name)
        return self.read(value, self.image_shape(arguments, value), self.quant(value, zero_point))

    def image_shape(self, arguments: Arguments, value: Value) -> list[int]:
        """The shape [N, H, W, C] of an image. Its sizes are [N, C, H, W], except for operators named _nhwc."""
        order = (0, 1, 2, 3) if "_nhwc." in arguments.call.kind else NHWC
        if len(value.sizes) != 4 or not value.lies_as(order):
            raise Refused(f"{value} is not an image in channels_last", _HINT_LAYOUT, str(value))
        return [value.sizes[d] for d in order]

    def plain(self, value: Value, zero_point: int | None = None) -> Tensor:
        """Return the tensor of a value. Raises Refused if its dimensions are not in memory in their order."""
        self.require_plain(value)
        return self.read(value, value.sizes, self.quant(value, zero_point))

    def require_plain(self, value: Value) -> None:
        if not value.lies_as(range(len(value.sizes))):
            raise Refused(f"{value} has its dimensions in the order {list(value.dim_order)}", _HINT_LAYOUT, str(value))

    def set(self, arguments: Arguments, kind: str, inputs: Sequence[Tensor], shape: Sequence[int],
            attributes: object = None) -> None:  # fmt: skip
        """Let an operator compute the result of a call, in any shape that has as many elements."""
        out, index = arguments.out, arguments.call.index
        if math.prod(shape) != out.elements:
            raise Refused(f"its result has sizes {list(out.sizes)}, not those of {list(shape)}", HINT_UNSOUND)
        name = self.names.get(out, f"value_{out.number}")
        self.tensors[out] = self.emit(kind, inputs, shape, out.dtype, self.quant(out), name, attributes, index)

    def set_scaled(self, arguments: Arguments, kind: str, inputs: Sequence[Tensor], shape: Sequence[int],
                   attributes: object, scale: float) -> None:  # fmt: skip
        """Sets the call's int8 output to the result of an operator whose output must have this scale. If the call's
        output has another scale, a RESHAPE of the same stored values follows."""
        out = arguments.out
        own = self.quantizations.quant(out)
        if own.scale[0] != scale:
            quant = Quant((scale,), own.zero_point)
            made = self.emit(kind, inputs, shape, "int8", quant, f"value_{out.number} (other scale)", attributes,
                             arguments.call.index)  # fmt: skip
            kind, inputs, attributes = "RESHAPE", (made,), None
        self.set(arguments, kind, inputs, shape, attributes)

    def permuted(self, arguments: Arguments, tensor: Tensor, order: Sequence[int]) -> Tensor:
        """Tensor with its dimensions in another order, by a TRANSPOSE."""
        shape = tuple(tensor.shape[d] for d in order)
        inputs = (tensor, self._order(arguments, order))
        name = f"{tensor.name} (permuted)"
        return self.emit("TRANSPOSE", inputs, shape, tensor.dtype, tensor.quant, name, None, arguments.call.index)

    def set_permuted(self, arguments: Arguments, tensor: Tensor, order: Sequence[int]) -> None:
        """Let a tensor with its dimensions in another order be the result of a call."""
        shape = [tensor.shape[d] for d in order]
        self.set(arguments, "TRANSPOSE", (tensor, self._order(arguments, order)), shape)

    def _order(self, arguments: Arguments, order: Sequence[int]) -> Tensor:
        return constant_tensor(f"order_{arguments.call.index}", np.array(order, np.int32))

    def set_image(self, arguments: Arguments, kind: str, inputs: Sequence[Tensor], attributes: object) -> None:
        """Let an operator compute a result that is an image."""
        self.set(arguments, kind, inputs, self.image_shape(arguments, arguments.out), attributes)

    def emit(self, kind: str, inputs: Sequence[Tensor], shape: Sequence[int], dtype: str, quant: Quant | None,
             name: str, attributes: object = None, index: int = -1) -> Tensor:  # fmt: skip
        """Add an operator; return its output."""
        output = Tensor(name, tuple(shape), dtype, quant)
        self.ops.append(Op(kind, tuple(inputs), (output,), attributes, index))
        return output
