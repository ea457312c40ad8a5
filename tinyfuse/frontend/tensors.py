"""Tensors of a .tflite file: shape, dtype, quantization and constant data, each checked.

Part of `tinyfuse.frontend.reader`; what is read here has passed `tinyfuse.frontend.flatbuffer_check`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from tinyfuse.errors import CompileError, Problem
from tinyfuse.frontend.compressed import LookedUp, compressed_tensors
from tinyfuse.frontend.flatbuffer_table import Table, root
from tinyfuse.frontend.schema import enumerators
from tinyfuse.ir import FLOAT16, INT4, ITEM_BYTES, MAX_TENSOR_BYTES, Array, Quant, Tensor
from tinyfuse.ops.program.decode import Undecodable, decode_lookup

#: greatest rank that any TensorFlow Lite kernel takes
MAX_RANK = 8
#: most problems that are listed; further ones are only counted
MAX_PROBLEMS = 100

#: hint for bytes that no converter writes
HINT_DAMAGED = "the file is damaged or cut short: copy or convert it again"
#: hint for readable contents that make no sense: an interpreter may run them, with other results
HINT_UNSOUND = "the file contradicts itself: make it again, with another version of the converter if it stays so"
HINT_SMALLER = "no microcontroller holds such a model: make it smaller"
HINT_QUANTIZE = "quantize the whole model to int8 when converting it"
#: hint for dtypes that quantization doesn't remove
_HINTS_OF_DTYPES = {
    "string": "leave text out of the model: give it what the firmware has made numbers of",
    "complex64": "compute real and imaginary parts apart, as real numbers",
    "complex128": "compute real and imaginary parts apart, as real numbers",
    "float64": "compute in float32, or quantize the whole model to int8 when converting it",
}
_TOO_LARGE = f"more than {MAX_TENSOR_BYTES:,} bytes"
_HINT_FIXED_SHAPE = "give the model a fixed input shape before converting it"
_HINT_EMPTY = "nothing can be computed of a tensor without elements: take it out of the model"
_HINT_SPARSE = "convert the model without sparsity"
_HINT_EXTERNAL = "convert the model with its weights inside the file"

#: dtypes that only constants may have
_CONSTANT = (INT4, FLOAT16)
_SUPPORTED = f"(only {', '.join(ITEM_BYTES)}, and {' and '.join(_CONSTANT)} of weights)"
_DTYPES = {value: name.lower() for value, name in enumerators("TensorType").items()}
#: dtype -> range of zero points; int32 where they are unused, because TFLM keeps them in 32 bits
_ZERO_POINT_RANGE = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1)}
_INT32 = (-(2**31), 2**31 - 1)


def reset_value(tensor: Tensor, zero_point: int) -> np.ndarray:
    """Return the value of a state like `tensor` after a reset, one element broadcast to its shape: every byte is
    the low byte of the zero point, whatever the dtype."""
    item = _stored_as(tensor.dtype)
    element = np.frombuffer(bytes([zero_point & 0xFF]) * item.itemsize, item)
    return np.broadcast_to(element.reshape(()), tensor.shape)


def nibbles(raw: Array, count: int) -> Array:
    """Return int8 [count] from the bytes of an int4 tensor: two's complement, low nibble first. Read-only, like
    other constants."""
    pairs = np.stack([raw << 4, raw & 0xF0], axis=1).reshape(-1)[:count]
    values: Array = pairs.view(np.int8) >> 4
    values.setflags(write=False)
    return values


class Refused(Exception):
    """Reason why a reader can't convert an operator: what is wrong, what to do, and the tensor that it concerns."""

    def __init__(self, message: str, hint: str, tensor: str | None = None):
        super().__init__(message)
        self.message, self.hint, self.tensor = message, hint, tensor


class Problems:
    """Collects the problems of a file."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self.count = 0
        self._place = ""

    def require(
        self,
        holds: bool,
        message: str,
        hint: str | None = None,
        operator: object = None,
        tensor: object = None,
    ) -> bool:
        """Note a problem if a condition doesn't hold; return the condition. The text of `operator` and `tensor` names
        the place."""
        if not holds:
            self.count += 1
            if self.count <= MAX_PROBLEMS:
                place, about = (None if where is None else str(where) for where in (operator, tensor))
                self.found.append(Problem(f"{self._place}{message}", place, about, hint))
        return holds

    @contextmanager
    def inside(self, place: str) -> Iterator[None]:
        """Mark the problems noted inside the `with` block as belonging to part `place` of the file."""
        before, self._place = self._place, f"in {place}: "
        yield
        self._place = before

    def first(self, problem: Problem | None) -> None:
        """Put a problem that explains the others in front of them."""
        if problem is not None:
            self.found.insert(0, problem)

    def stop(self, path: str) -> None:
        """Raise CompileError with all problems recorded so far; do nothing without any."""
        if self.count > MAX_PROBLEMS:
            self.found.append(Problem(f"and {self.count - MAX_PROBLEMS} more problems"))
        if self.found:
            raise CompileError(path, self.found)


@cache
def _stored_as(dtype: str) -> np.dtype:
    """Return the numpy dtype in which a file stores a tensor dtype."""
    return np.dtype(dtype).newbyteorder("<")


def _open_axes(table: Table, rank: int) -> tuple[int, ...]:
    """Return the dimensions that a tensor's shape_signature leaves open."""
    signature = table.numbers("shape_signature")
    return tuple(axis for axis, dim in enumerate(signature) if dim == -1) if len(signature) == rank else ()


def text(raw: bytes) -> str:
    """Decode a string of the file, replacing bytes that are not UTF-8."""
    return raw.decode("utf-8", "replace")


@dataclass(frozen=True)
class Model:
    """Tables of a file that other tables refer to by number."""

    version: int
    operator_codes: list[Table]
    subgraphs: list[Table]
    buffers: list[Table]
    metadata: list[Table]
    compressed: Mapping[tuple[int, int], LookedUp]

    @staticmethod
    def of(data: bytes) -> Model:
        """Read the tables of `data`. Raises Damaged or TooLarge if the metadata of compressed tensors can't be read."""
        table = root(data)
        return Model(
            table["version"],
            table["operator_codes"],
            table["subgraphs"],
            table["buffers"],
            table["metadata"],
            compressed_tensors(table),
        )


class TensorReader:
    """Reads the tensors of a subgraph, each on first use.

    A tensor with problems still has a name and a shape, for messages; it is in `bad`, so that faults that follow from
    it are not reported.
    """

    def __init__(self, data: bytes, model: Model, subgraph: int, problems: Problems):
        self.data, self.model, self.require = data, model, problems.require
        self.problems = problems
        self.subgraph = subgraph
        self.tables: list[Table] = model.subgraphs[subgraph]["tensors"]
        self.count = len(self.tables)
        self.bad: set[Tensor] = set()
        self._read: dict[int, Tensor] = {}
        self._constant_bytes = 0

    def tensor(self, index: int) -> Tensor:
        """Return the tensor at an index below `count`."""
        if index not in self._read:
            before = self.problems.count
            tensor = self._read[index] = self._tensor(index, self.tables[index])
            if self.problems.count > before:
                self.bad.add(tensor)
        return self._read[index]

    def open_batches(self, inputs: list[Tensor]) -> tuple[list[str], list[str]]:
        """Return (warnings, notes) about inputs with an open batch.

        A batch taken as 1 is a note, because every converter leaves it open. Any other open dimension is noted as a
        problem. Only the graph's inputs are checked: other open shapes follow from theirs (rewrite/close_shapes.py).
        """
        warnings, notes = list[str](), list[str]()
        for tensor in inputs:
            table = self.tables[tensor.index]
            shape, signature = table.numbers("shape"), table.numbers("shape_signature")
            if -1 in shape[:1] + signature[:1] and tensor.shape:
                batch = tensor.shape[0]
                told = notes if batch == 1 else warnings
                told.append(f"{tensor}: the batch is open (-1); it is taken as {batch}")
            for axis, dim in enumerate(signature[1:], start=1):
                message = f"dimension {axis} is open (-1)"
                self.require(dim != -1, message, _HINT_FIXED_SHAPE, tensor=tensor)
        return warnings, notes

    def require_elements(self, tensor: Tensor) -> None:
        """Note a problem if a used tensor has no elements.

        Unused tensors may be empty: a RESHAPE to a scalar has int32[0] as its input 1.
        """
        if tensor not in self.bad and not tensor.elements:
            axis = tensor.shape.index(0)
            self._wrong(tensor, f"dimension {axis} is 0", _HINT_EMPTY)
            self.bad.add(tensor)

    def _tensor(self, index: int, table: Table) -> Tensor:
        number = table["type"]
        dtype = _DTYPES.get(number) or f"type {number}"
        shape = table.numbers("shape")
        rank = len(shape)
        shape = (1, *shape[1:MAX_RANK]) if shape[:1] == (-1,) else shape[:MAX_RANK]
        found = Tensor(text(table["name"]), shape, dtype, index=index)

        good = True
        if rank > MAX_RANK:
            good = self._wrong(found, f"rank {rank} is more than {MAX_RANK}", f"give it at most {MAX_RANK} dimensions")
        good &= self._dims(found)
        if good and (dtype == "resource" or not found.elements):
            return found  # a variable's handle (variables.py resolves it), or empty (`require_elements`)
        if dtype not in ITEM_BYTES and dtype not in _CONSTANT:
            hint = _HINTS_OF_DTYPES.get(dtype, HINT_QUANTIZE)
            good = self._wrong(found, f"{dtype} is not supported {_SUPPORTED}", hint)
        if table["sparsity"] is not None:
            good = self._wrong(found, "sparse tensors are not supported", _HINT_SPARSE)
        if not good:
            return found
        looked_up = self.model.compressed.get((self.subgraph, index))
        data = None if looked_up is not None else self._constant(found, table)
        if data is None and dtype in _CONSTANT:
            self._wrong(found, f"{dtype} is supported for constant weights alone", HINT_QUANTIZE)
        constant = data is not None or looked_up is not None
        quant = self._quantization(found, table["quantization"], constant)
        if looked_up is not None:
            data = self._looked_up(replace(found, quant=quant), table, looked_up)
        if not table["is_variable"]:
            return Tensor(found.name, shape, dtype, quant, data, index, open_axes=_open_axes(table, rank))
        if data is not None:
            self._wrong(found, "is a variable, but has constant data", HINT_UNSOUND)
        if dtype in _CONSTANT:  # a problem that is noted already
            return found
        # TFLM resets a state to the zero point in every byte for int8, else to 0
        zero_point = quant.zero_point[0] if quant and quant.zero_point and dtype == "int8" else 0
        return Tensor(found.name, shape, dtype, quant, None, index, reset_value(found, zero_point))

    def _wrong(self, tensor: Tensor, message: str, hint: str) -> bool:
        """Note a problem of a tensor; return False."""
        return self.require(False, message, hint, tensor=tensor)

    def _dims(self, tensor: Tensor) -> bool:
        good = True
        for axis, dim in enumerate(tensor.shape):
            if dim < 0:
                hint = _HINT_FIXED_SHAPE if dim == -1 else HINT_UNSOUND
                good = self._wrong(tensor, f"dimension {axis} is {dim}", hint)
        if math.prod(tensor.shape) * ITEM_BYTES.get(tensor.dtype, 1) > MAX_TENSOR_BYTES:
            good = self._wrong(tensor, f"it has {_TOO_LARGE}", HINT_SMALLER)
        return good

    def _quantization(self, tensor: Tensor, table: Table | None, constant: bool) -> Quant | None:
        """Return scales and zero points as TFLM reads them.

        Return None if either is absent. The first zero point serves all scales if their numbers differ
        (micro_allocator.cc). The operators' rules check per-channel counts and dimensions, because a bias's are never
        used.
        """
        if table is None:
            return None
        scale, zero_point = table.numbers("scale"), table.numbers("zero_point")
        if not scale or not zero_point:
            message = "only affine quantization (scale and zero point) is supported"
            self.require(table["details_type"] == 0, message, HINT_QUANTIZE, tensor=tensor)
            return None
        if len(zero_point) != len(scale):
            zero_point = zero_point[:1] * len(scale)
        # a constant of zeros may have scale 0; families that accept it set zero_scales
        least = 0.0 if constant else None
        sound = min(scale) > 0 and sum(scale) < math.inf  # fast path: one sum instead of a test of each scale
        wrong = (
            None if sound else next((value for value in scale if not (0 < value < math.inf or value == least)), None)
        )
        if wrong is not None:
            self._wrong(tensor, f"a scale is {wrong}; it must be positive and finite", HINT_QUANTIZE)
        low, high = _ZERO_POINT_RANGE.get(tensor.dtype, _INT32)
        if not (low <= min(zero_point) and max(zero_point) <= high):
            wrong = next(value for value in zero_point if not low <= value <= high)
            self._wrong(tensor, f"a zero point is {wrong}; it must be in {low}..{high}", HINT_QUANTIZE)
        return Quant(scale, zero_point, table["quantized_dimension"] if len(scale) > 1 else 0)

    def _counted(self, tensor: Tensor) -> bool:
        """Tell whether all constants so far, with this one, fit the size limit; the problem is noted once."""
        before, self._constant_bytes = self._constant_bytes, self._constant_bytes + tensor.bytes
        fits = not before <= MAX_TENSOR_BYTES < self._constant_bytes
        self.require(fits, f"all constants together have {_TOO_LARGE}", HINT_SMALLER, tensor=tensor)
        return self._constant_bytes <= MAX_TENSOR_BYTES

    def _looked_up(self, tensor: Tensor, table: Table, how: LookedUp) -> np.ndarray | None:
        """Return the values of a compressed tensor, read-only; None if they can't be decoded."""
        count = len(self.model.buffers)
        inside = max(table["buffer"], how.value_buffer) < count
        message = f"it is compressed, with buffers beyond the file's {count}"
        if not self.require(inside, message, HINT_UNSOUND, tensor=tensor) or not self._counted(tensor):
            return None
        data, values = (self.model.buffers[i]["data"].tobytes() for i in (table["buffer"], how.value_buffer))
        channels = len(tensor.quant.scale) if tensor.quant is not None else 1
        stride = len(values) // ITEM_BYTES[tensor.dtype] // channels if tensor.dtype in ITEM_BYTES else 0
        try:
            found = decode_lookup(data, values, how.bits, stride, tensor)
        except Undecodable:
            self._wrong(tensor, "it is compressed, and an index lies beyond the data or their table", HINT_UNSOUND)
            return None
        found.setflags(write=False)
        return found

    def _constant(self, tensor: Tensor, table: Table) -> np.ndarray | None:
        """Return the tensor's data, a read-only view of the file; None for an activation."""
        if table["external_buffer"]:
            self._wrong(tensor, "its data lies in another file (external buffer)", _HINT_EXTERNAL)
        number, count = table["buffer"], len(self.model.buffers)
        if number >= count:
            self._wrong(tensor, f"refers to buffer {number}, of {count}", HINT_UNSOUND)
            return None
        raw = self._raw(tensor, self.model.buffers[number])
        if not raw.size:
            return None
        if raw.size < tensor.bytes:
            message = f"its shape needs {tensor.bytes} bytes of data, but there are {raw.size}"
            self._wrong(tensor, message, HINT_UNSOUND)
            return None
        raw = raw[: tensor.bytes]  # TFLM ignores further bytes
        self._counted(tensor)
        if tensor.dtype == "bool" and int(raw.max()) > 1:
            self._wrong(tensor, "a bool constant has values other than 0 and 1", HINT_UNSOUND)
        if tensor.dtype == INT4:
            return nibbles(raw, tensor.elements).reshape(tensor.shape)
        return raw.view(_stored_as(tensor.dtype)).reshape(tensor.shape)

    def _raw(self, tensor: Tensor, buffer: Table) -> np.ndarray:
        """Return the bytes of a buffer, which may lie after the flatbuffer; empty if they lie outside the file."""
        raw: np.ndarray = buffer["data"]
        if raw.size:
            return raw
        start, size = buffer["offset"], buffer["size"]
        if start <= 1 or not size:  # the schema defines offsets 0 and 1 as unset
            return raw
        if start + size > len(self.data):
            message = f"its data (bytes {start} to {start + size}) lies outside the file"
            self._wrong(tensor, message, HINT_DAMAGED)
            return raw
        return np.frombuffer(self.data, np.uint8, size, start)


def constant_tensor(name: str, array: Array, quant: Quant | None = None) -> Tensor:
    """A constant tensor of a NumPy array, with its dtype and shape, and a quantization."""
    data = np.asarray(array, order="C")
    data.setflags(write=False)
    return Tensor(name, data.shape, str(data.dtype), quant, data)
