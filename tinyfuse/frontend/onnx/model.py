"""The contents of an ONNX file: nodes, constants, and the shapes of its inputs and outputs.

External data is read from the model's own folder only. Everything that is wrong is collected, each with its node or
tensor.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tinyfuse.frontend.onnx.messages import DTYPES, EXTERNAL, FIELDS_OF_DTYPES, SCHEMA
from tinyfuse.frontend.onnx.protobuf import Malformed, Message, decode
from tinyfuse.frontend.tensors import HINT_DAMAGED, HINT_SMALLER, HINT_UNSOUND, MAX_RANK, Problems
from tinyfuse.ir import MAX_TENSOR_BYTES, Array
from tinyfuse.ir.graph import quoted, shown

#: versions of the standard operators that are read
LEAST_OPSET, MOST_OPSET = 10, 28
#: domains of operators: the standard one, and onnxruntime's own
STANDARD, MICROSOFT = ("", "ai.onnx"), "com.microsoft"

#: AttributeType -> (field of the value, its default if the file leaves it out)
_FLOAT, _INT, _STRING, _TENSOR, _FLOATS, _INTS, _STRINGS = 1, 2, 3, 4, 6, 7, 8
_FIELDS = {
    _FLOAT: ("f", 0.0), _INT: ("i", 0), _STRING: ("s", b""), _FLOATS: ("floats", []), _INTS: ("ints", []),
    _STRINGS: ("strings", []),
}  # fmt: skip
#: name of an attribute -> types that it has in the standard operators and onnxruntime's
_TYPES_OF = {
    name: types
    for names, types in (
        ("alpha beta cubic_coeff_a epsilon extrapolation_value gamma lambd max min momentum ratio value_float",
         (_FLOAT,)),
        ("activations equation", (_STRING, _STRINGS)),
        ("allowzero antialias axis block_size blocksize ceil_mode channels_last count_include_pad end exclude_outside "
         "exclusive group keepdims largest noop_with_empty_axes num_outputs opset reverse saturate select_last_index "
         "sorted spatial start stash_type storage_order to transA transB upper value_int", (_INT,)),
        ("approximate auto_pad coordinate_transformation_mode direction keep_aspect_ratio_policy mode nearest_mode "
         "padding_mode rounding_type value_string", (_STRING,)),
        ("axes dilations ends kernel_shape output_padding output_shape pads perm shape split starts strides value_ints",
         (_INTS,)),
        ("scales value_floats", (_FLOATS,)),
        ("value", (_TENSOR, _FLOAT)),
    )
    for name in names.split()
}  # fmt: skip

HINT_FIXED = "export the model with fixed shapes, batch 1 (torch.onnx.export without dynamic axes)"


@dataclass(frozen=True, eq=False)
class Node:
    """A node of the graph: `inputs` and `outputs` are names, "" for one that is left out."""

    index: int
    kind: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(repr=False)

    def input(self, i: int) -> str:
        """The name of input `i`, "" where it is left out."""
        return self.inputs[i] if i < len(self.inputs) else ""

    def __str__(self) -> str:
        name = self.name or (self.outputs[0] if self.outputs else "")
        kind = f"{self.domain}.{self.kind}" if self.domain not in (*STANDARD, MICROSOFT) else self.kind
        return f"node {self.index} {shown(kind)} {quoted(name)}"


@dataclass(frozen=True, eq=False)
class Border:
    """An input or output of the graph. A dimension that the file leaves open is None."""

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        shape = "?" if self.shape is None else ",".join("?" if dim is None else str(dim) for dim in self.shape)
        return f"tensor {quoted(self.name)} {self.dtype}[{shape}]"


@dataclass(frozen=True, eq=False)
class OnnxModel:
    """Content of an ONNX file.

    constants  read-only arrays by name
    producer   program that wrote the file, with its version
    faulty     names of values that have a problem, or are of a node that has one
    """

    producer: str
    opset: int
    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    inputs: tuple[Border, ...]
    outputs: tuple[Border, ...]
    faulty: frozenset[str] = frozenset()


def read_model(path: str, data: bytes, problems: Problems) -> OnnxModel | None:
    """Return the model in a file; None if nothing can be read. Faults are recorded in `problems`."""
    try:
        message = decode(data, "Model", SCHEMA)
    except Malformed as malformed:
        problems.require(False, f"damaged file: {malformed}", HINT_DAMAGED)
        return None
    return _Reader(path, problems).model(message)


class _Reader:
    def __init__(self, path: str, problems: Problems):
        self.folder = Path(path).resolve().parent if path else None
        self.problems, self.require = problems, problems.require
        self.constant_bytes = 0
        self.faulty: set[str] = set()

    def model(self, message: Message) -> OnnxModel | None:
        graph: Message = message.get("graph", {})
        if not self.require(bool(graph.get("node")), "the file has no graph of nodes", HINT_DAMAGED):
            return None
        versions = {entry.get("domain", ""): entry.get("version", 0) for entry in message.get("opset_import", [])}
        opset = next((versions[domain] for domain in STANDARD if domain in versions), 0)
        text = f"operator set {opset} is not one of {LEAST_OPSET} to {MOST_OPSET}"
        hint = "export the model again with opset_version=17"
        self.require(LEAST_OPSET <= opset <= MOST_OPSET, text, hint)
        hint = "inline them: onnx.inliner.inline_local_functions"
        self.require(not message.get("functions"), "the file defines model-local functions", hint)
        hint = "save the model with dense weights"
        self.require(not graph.get("sparse_initializer"), "the file has sparse constants", hint)
        constants = {}
        for tensor in graph.get("initializer", []):
            name = tensor.get("name", "")
            array = self.array(tensor, name)
            if array is None:
                self.faulty.add(name)
            else:
                constants[name] = array
        nodes = tuple(self.node(i, node) for i, node in enumerate(graph["node"]))
        inputs = tuple(self.border(info) for info in graph.get("input", []) if info.get("name", "") not in constants)
        outputs = tuple(self.border(info) for info in graph.get("output", []))
        self.require(bool(outputs), "the graph has no output", HINT_UNSOUND)
        self.require_once(inputs, nodes, set(constants))
        producer = " ".join(message[key] for key in ("producer_name", "producer_version") if message.get(key))
        return OnnxModel(producer, opset, nodes, constants, inputs, outputs, frozenset(self.faulty))

    def require_once(self, inputs: Sequence[Border], nodes: Sequence[Node], known: set[str]) -> None:
        """Require that every value is made once. `known`: names of constants."""
        for border in inputs:
            self.require(border.name not in known, "is listed twice among the inputs", HINT_UNSOUND, tensor=border)
            known.add(border.name)
        for node in nodes:
            for name in filter(None, node.outputs):
                once = self.require(name not in known, f"{quoted(name)} is computed before", HINT_UNSOUND, node)
                known.add(name)
                if not once:
                    self.faulty.add(name)

    def border(self, info: Message) -> Border:
        """An input or output of the graph, with the shape that the file tells."""
        tensor: Message = info.get("type", {}).get("tensor_type", {})
        shape = None
        if "shape" in tensor:
            dims = [dim.get("dim_value") for dim in tensor["shape"].get("dim", [])]
            shape = tuple(dim if dim is not None and dim > 0 else None for dim in dims)
        dtype = DTYPES.get(tensor.get("elem_type", 0), "no dtype")
        return Border(info.get("name", ""), dtype, shape)

    def node(self, index: int, message: Message) -> Node:
        inputs, outputs = (tuple(message.get(key, [])) for key in ("input", "output"))
        node = Node(
            index, message.get("op_type", ""), message.get("domain", ""), message.get("name", ""), inputs, outputs, {}
        )
        before = self.problems.count
        self.require(bool(outputs and outputs[0]), "it has no output", HINT_UNSOUND, node)
        attributes = {}
        for attribute in message.get("attribute", []):
            found = self.attribute(node, attribute)
            if found is not None:
                attributes[attribute.get("name", "")] = found
        if self.problems.count > before:
            self.faulty |= set(outputs)
        return Node(index, node.kind, node.domain, node.name, inputs, outputs, attributes)

    def attribute(self, node: Node, message: Message) -> Any:
        """The value of an attribute: a number, a text, a list of these, or an array; None for other types."""
        name, sort = message.get("name", ""), message.get("type", 0)
        if not self.require(
            sort in _TYPES_OF.get(name, (sort,)), f"its attribute {quoted(name)} has the wrong type", HINT_UNSOUND, node
        ):
            return None
        if sort == _TENSOR:
            return self.array(message.get("t", {}), f"{node}, attribute {name}")
        key, default = _FIELDS.get(sort, ("", None))
        # a number that is 0, or a list that is empty, may be left out
        found = message.get(key, default)
        if key == "s":
            return bytes(found).decode("utf-8", "replace")
        return [bytes(raw).decode("utf-8", "replace") for raw in found] if key == "strings" else found

    def array(self, message: Message, name: str) -> Array | None:
        """The values of a constant, read-only; None where they can't be read."""
        shape = tuple(message.get("dims", []))
        dtype = DTYPES.get(message.get("data_type", 0), "no dtype")
        place = f"constant {quoted(name)}: "
        hint = "export the model in float32, or quantize it to int8"
        if not self.require(dtype in FIELDS_OF_DTYPES, f"{place}{dtype} is not supported", hint):
            return None
        sound = len(shape) <= MAX_RANK and all(0 <= dim < 2**31 for dim in shape)
        if not self.require(sound, f"{place}its shape is {list(shape)}", HINT_UNSOUND):
            return None
        item = np.dtype(dtype).newbyteorder("<")
        count = math.prod(shape)
        self.constant_bytes += count * item.itemsize
        message_text = f"all constants together have more than {MAX_TENSOR_BYTES:,} bytes"
        if self.constant_bytes > MAX_TENSOR_BYTES:
            # noted once, for the first constant beyond the limit
            if self.constant_bytes - count * item.itemsize <= MAX_TENSOR_BYTES:
                self.require(False, message_text, HINT_SMALLER)
            return None
        if message.get("data_location") == EXTERNAL:
            raw = self.external(message, place, count * item.itemsize)
            values = None if raw is None else np.frombuffer(raw, item)
        elif "raw_data" in message:
            raw = message["raw_data"]
            fits = len(raw) == count * item.itemsize
            text = f"{place}its shape needs {count * item.itemsize} bytes of data, but there are {len(raw)}"
            values = np.frombuffer(raw, item) if self.require(fits, text, HINT_UNSOUND) else None
        else:
            values = self.listed(message.get(FIELDS_OF_DTYPES[dtype], []), item, place, count)
        if values is None:
            return None
        values = values.astype(dtype, copy=False).reshape(shape)
        values.setflags(write=False)
        return values

    def listed(self, numbers: list[Any], item: np.dtype[Any], place: str, count: int) -> Array | None:
        """The values of a constant whose file lists them as numbers."""
        text = f"{place}its shape needs {count} values, but there are {len(numbers)}"
        if not self.require(len(numbers) == count, text, HINT_UNSOUND):
            return None
        if item.kind == "u":
            numbers = [number % 2**64 for number in numbers]
        if item.kind in "iu":
            ends = np.iinfo(item)
            inside = all(ends.min <= number <= ends.max for number in numbers)
            if not self.require(inside, f"{place}a value is beyond {item.name}", HINT_UNSOUND):
                return None
        return np.array(numbers, item)

    def external(self, message: Message, place: str, size: int) -> bytes | None:
        """The bytes of a constant in another file, which must lie in the model's folder."""
        entries = {entry.get("key", ""): entry.get("value", "") for entry in message.get("external_data", [])}
        location = entries.get("location", "")
        hint = "save the weights inside the file: onnx.save(model, path, save_as_external_data=False)"
        if self.folder is None or not location or "\0" in location:
            self.require(False, f"{place}its data lies in another file, which is not named", hint)
            return None
        file = Path(os.path.realpath(self.folder / location))
        inside = not os.path.isabs(location) and file.is_relative_to(self.folder)
        if not self.require(inside, f"{place}its data lies outside the model's folder ({location!r})", hint):
            return None
        try:
            offset, length = int(entries.get("offset") or 0), int(entries.get("length") or size)
        except ValueError:
            offset, length = -1, 0
        text = f"{place}its data in {location!r} has {length} bytes; its shape needs {size}"
        if not self.require(offset >= 0 and length == size, text, HINT_UNSOUND):
            return None
        try:
            status = os.stat(file)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(None, "not a regular file")
            with file.open("rb") as opened:
                opened.seek(min(offset, status.st_size))
                data = opened.read(size)
        except OSError as error:
            hint = f"put {location!r} beside the model"
            self.require(False, f"{place}{location!r} can't be read: {error.strerror}", hint)
            return None
        text = f"{place}{location!r} ends before byte {offset + size}"
        return data if self.require(len(data) == size, text, HINT_DAMAGED) else None
