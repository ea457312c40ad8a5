"""Tensors of a .tflite file: shape, dtype, quantization and constant data, each checked.

Part of `tinyfuse.tflite_reader`; what is read here has passed `tinyfuse.flatbuffer_check`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tflite
from flatbuffers import number_types

from tinyfuse.errors import CompileError, Problem
from tinyfuse.flatbuffer_check import enumerators
from tinyfuse.ir import ITEM_BYTES, Op, Quant, Tensor

#: bytes of one tensor, and of all constants together (which may share a buffer of the file): more than
#: microcontrollers have, and little enough that compiling takes less than a GiB and 10 s
MAX_TENSOR_BYTES = 1 << 25
#: ranks beyond this are of no kernel of TensorFlow Lite
MAX_RANK = 8
#: problems that are told one by one; more are only counted
MAX_PROBLEMS = 100

HINT_DAMAGED = "the file is damaged or cut short: copy or convert it again"
HINT_CONVERT = "give a .tflite file, as TensorFlow Lite's converter writes it"
_HINT_QUANTIZE = "quantize the whole model to int8 when converting it"
_HINT_FIXED_SHAPE = "give the model a fixed input shape before converting it"
_HINT_SPARSE = "convert the model without sparsity"
_HINT_EXTERNAL = "convert the model with its weights inside the file"

_DTYPES = {value: name.lower() for value, name in enumerators("TensorType").items()}
#: what zero points may be; int32 where they mean nothing, because TFLM keeps them in 32 bits
_ZERO_POINT_RANGE = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1)}
_INT32 = (-(2**31), 2**31 - 1)


def reset_value(tensor: Tensor, zero_point: int) -> np.ndarray:
    """What a state like `tensor` holds after a reset, an array of one element, broadcast: every byte is
    the low byte of the zero point, whatever the dtype."""
    item = np.dtype(tensor.dtype).newbyteorder("<")
    element = np.frombuffer(bytes([zero_point & 0xFF]) * item.itemsize, item)
    return np.broadcast_to(element.reshape(()), tensor.shape)


class Problems:
    """What is wrong with a file, collected."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self.count = 0

    def require(
        self,
        holds: bool,
        message: str,
        hint: str | None = None,
        operator: Op | None = None,
        tensor: Tensor | None = None,
    ) -> bool:
        """Notes a problem where a condition doesn't hold; gives the condition back."""
        if not holds:
            self.count += 1
            if self.count <= MAX_PROBLEMS:
                place = [None if where is None else str(where) for where in (operator, tensor)]
                self.found.append(Problem(message, *place, hint=hint))
        return holds

    def stop(self, path: str) -> None:
        """Raises what was found, if anything."""
        if self.count > MAX_PROBLEMS:
            self.found.append(Problem(f"and {self.count - MAX_PROBLEMS} more problems"))
        if self.found:
            raise CompileError(path, self.found)


def numbers(table: Any, accessor: str) -> tuple[Any, ...]:
    """A vector of numbers of a table as a tuple; empty where the field is absent."""
    if not getattr(table, f"{accessor}Length")():
        return ()
    return tuple(getattr(table, f"{accessor}AsNumpy")().tolist())


def text(raw: bytes | None) -> str:
    """A string of the file; bytes that are no UTF-8 are replaced."""
    return (raw or b"").decode("utf-8", "replace")


class TensorReader:
    """The tensors of a subgraph, each read once, when it is first asked for.

    A tensor with problems still has a name and a shape, so that messages can show it; it is in
    `bad`, so that the faults that follow from it need not be told.
    """

    def __init__(self, data: bytes, model: tflite.Model, subgraph: int, problems: Problems):
        self.data, self.model, self.require = data, model, problems.require
        self.problems = problems
        self.subgraph = model.Subgraphs(subgraph)
        self.count: int = self.subgraph.TensorsLength()
        self.bad: set[Tensor] = set()
        self._read: dict[int, Tensor] = {}
        self._constant_bytes = 0

    def tensor(self, index: int) -> Tensor:
        """The tensor at an index below `count`."""
        if index not in self._read:
            before = self.problems.count
            tensor = self._read[index] = self._tensor(index, self.subgraph.Tensors(index))
            if self.problems.count > before:
                self.bad.add(tensor)
        return self._read[index]

    def open_batches(self, inputs: list[Tensor]) -> list[str]:
        """Warnings of inputs with an open batch; any other open dimension is a problem.

        Only the graph's inputs are looked at: signatures of other tensors follow from theirs, and
        a converter writes every tensor's shape for the batch that the inputs' shapes have.
        """
        warnings = []
        for tensor in inputs:
            table = self.subgraph.Tensors(tensor.index)
            shape, signature = numbers(table, "Shape"), numbers(table, "ShapeSignature")
            if -1 in shape[:1] + signature[:1] and tensor.shape:
                batch = tensor.shape[0]
                warnings.append(f"{tensor}: the batch is open (-1); it is taken as {batch}")
            for axis, extent in enumerate(signature[1:], start=1):
                message = f"dimension {axis} is open (-1)"
                self.require(extent != -1, message, _HINT_FIXED_SHAPE, tensor=tensor)
        return warnings

    def _tensor(self, index: int, table: tflite.Tensor) -> Tensor:
        dtype = _DTYPES.get(table.Type(), f"type {table.Type()}")
        shape = numbers(table, "Shape")
        rank = len(shape)
        shape = (1, *shape[1:MAX_RANK]) if shape[:1] == (-1,) else shape[:MAX_RANK]
        found = Tensor(text(table.Name()), shape, dtype, index=index)

        message = f"rank {rank} is more than {MAX_RANK}"
        good = self.require(rank <= MAX_RANK, message, HINT_DAMAGED, tensor=found)
        good &= self._extents(found)
        if good and dtype == "resource":  # a handle, without data: tflite_variables.py resolves it
            return found
        message = f"{dtype} is not supported (only {', '.join(ITEM_BYTES)})"
        good &= self.require(dtype in ITEM_BYTES, message, _HINT_QUANTIZE, tensor=found)
        message = "sparse tensors are not supported"
        good &= self.require(table.Sparsity() is None, message, _HINT_SPARSE, tensor=found)
        if not good:
            return found
        quant = self._quantization(found, table.Quantization())
        data = self._constant(found, table)
        if not table.IsVariable():
            return Tensor(found.name, shape, dtype, quant, data, index)
        self.require(data is None, "is a variable, but has constant data", HINT_DAMAGED, tensor=found)
        # as TFLM resets it: every byte the zero point of an int8 tensor, else 0
        zero_point = quant.zero_point[0] if quant and quant.zero_point and dtype == "int8" else 0
        return Tensor(found.name, shape, dtype, quant, None, index, reset_value(found, zero_point))

    def _extents(self, tensor: Tensor) -> bool:
        good = True
        for axis, extent in enumerate(tensor.shape):
            hint = _HINT_FIXED_SHAPE if extent == -1 else HINT_DAMAGED
            good &= self.require(extent > 0, f"dimension {axis} is {extent}", hint, tensor=tensor)
        size = math.prod(tensor.shape) * ITEM_BYTES.get(tensor.dtype, 1)
        message = f"it has more than {MAX_TENSOR_BYTES} bytes"
        return good & self.require(size <= MAX_TENSOR_BYTES, message, HINT_DAMAGED, tensor=tensor)

    def _quantization(
        self, tensor: Tensor, table: tflite.QuantizationParameters | None
    ) -> Quant | None:
        if table is None:
            return None
        message = "only affine quantization (scale and zero point) is supported"
        self.require(table.DetailsType() == 0, message, _HINT_QUANTIZE, tensor=tensor)
        scale, zero_point = numbers(table, "Scale"), numbers(table, "ZeroPoint")
        if not scale and not zero_point:
            return None
        if len(zero_point) == 1:  # TFLM lets one zero point stand for all channels
            zero_point *= max(1, len(scale))
        message = f"{len(scale)} scales, but {len(zero_point)} zero points"
        self.require(len(scale) == len(zero_point), message, HINT_DAMAGED, tensor=tensor)
        axis = 0
        if len(scale) > 1:
            axis = table.QuantizedDimension()
            extent = tensor.shape[axis] if 0 <= axis < len(tensor.shape) else 0
            message = f"{len(scale)} scales, but {extent} channels in dimension {axis}"
            self.require(len(scale) == extent, message, HINT_DAMAGED, tensor=tensor)
        wrong = next((value for value in scale if not 0 < value < math.inf), None)
        message = f"a scale is {wrong}; it must be positive and finite"
        self.require(wrong is None, message, _HINT_QUANTIZE, tensor=tensor)
        low, high = _ZERO_POINT_RANGE.get(tensor.dtype, _INT32)
        wrong = next((value for value in zero_point if not low <= value <= high), None)
        message = f"a zero point is {wrong}; it must be in {low}..{high}"
        self.require(wrong is None, message, _HINT_QUANTIZE, tensor=tensor)
        return Quant(scale, zero_point, axis)

    def _constant(self, tensor: Tensor, table: tflite.Tensor) -> np.ndarray | None:
        """The tensor's data, a read-only view of the file; None for an activation."""
        # external_buffer is newer than PyPI's accessors: its slot in the schema is 10
        external = table._tab.GetSlot(4 + 2 * 10, 0, number_types.Uint32Flags)
        message = "its data lies in another file (external buffer)"
        self.require(not external, message, _HINT_EXTERNAL, tensor=tensor)
        number, count = table.Buffer(), self.model.BuffersLength()
        message = f"refers to buffer {number}, of {count}"
        if not self.require(number < count, message, HINT_DAMAGED, tensor=tensor):
            return None
        buffer = self.model.Buffers(number)
        start, size = buffer.Offset(), buffer.Size()
        if buffer.DataLength():
            raw = buffer.DataAsNumpy()
        elif start > 1 and size:  # data behind the flatbuffer; the schema counts 0 and 1 as unset
            inside = start + size <= len(self.data)
            message = f"its data (bytes {start} to {start + size}) lies outside the file"
            if not self.require(inside, message, HINT_DAMAGED, tensor=tensor):
                return None
            raw = np.frombuffer(self.data, np.uint8, size, start)
        else:
            return None
        message = f"its shape needs {tensor.bytes} bytes of data, but there are {raw.size}"
        if not self.require(raw.size == tensor.bytes, message, HINT_DAMAGED, tensor=tensor):
            return None
        before, self._constant_bytes = self._constant_bytes, self._constant_bytes + raw.size
        message = f"all constants together have more than {MAX_TENSOR_BYTES} bytes"
        fits = not before <= MAX_TENSOR_BYTES < self._constant_bytes  # told once
        self.require(fits, message, HINT_DAMAGED, tensor=tensor)
        if tensor.dtype == "bool":
            message = "a bool constant has values other than 0 and 1"
            self.require(int(raw.max()) <= 1, message, HINT_DAMAGED, tensor=tensor)
        return raw.view(np.dtype(tensor.dtype).newbyteorder("<")).reshape(tensor.shape)
