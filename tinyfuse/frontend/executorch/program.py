"""Reads an ExecuTorch program: the values and kernel calls of its method, each checked.

Source of the format: schema/program.fbs and the extended header of ExecuTorch's public repository, release 1.5.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tinyfuse.frontend.flatbuffer_table import Table, root
from tinyfuse.frontend.schema import UNIONS
from tinyfuse.frontend.tensors import HINT_DAMAGED, HINT_SMALLER, HINT_UNSOUND, MAX_RANK, Problems
from tinyfuse.ir import ITEM_BYTES, MAX_TENSOR_BYTES, Array, quoted
from tinyfuse.ir.graph import shown

#: ScalarType -> dtype
_DTYPES = {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 6: "float32", 11: "bool"}
#: extended header after root offset and identifier: magic, header length, length of the FlatBuffer, start of the
#: segments
_HEADER = struct.Struct("<4sIQQ")
#: names of methods that tell the quantization of an int8 input or output
_BORDER = re.compile(r"(input|output)(\d{1,4})_(scale|zp|quant_min|quant_max|dtype)")
#: KernelTypes of numbers -> field
_NUMBERS = {"Int": "int_val", "Bool": "bool_val", "Double": "double_val"}
_HINT_INSIDE = "save the program with its weights inside: leave out external_constants"
_HINT_FIXED = "export the module with inputs of a fixed shape (no dynamic_shapes)"
_HINT_DELEGATE = "lower the module with CortexMQuantizer and CortexMPassManager alone, without a partitioner"


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of the program.

    number     its place among the values
    sizes      its logical dimensions, an image as [N, C, H, W]
    dim_order  dimensions from the slowest to the fastest in memory: (0, 2, 3, 1) is NHWC
    data       the constant's elements in the order of memory, [elements]; None for computed values
    place      (memory, offset in bytes) of a planned value; None for constants
    """

    number: int
    dtype: str
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    data: Array | None
    place: tuple[int, int] | None

    @property
    def elements(self) -> int:
        return math.prod(self.sizes)

    @property
    def bytes(self) -> int:
        return self.elements * ITEM_BYTES[self.dtype]

    def lies_as(self, order: Sequence[int]) -> bool:
        """Tell whether memory has the value's dimensions in that order; dimensions of size 1 may lie anywhere."""
        return [d for d in self.dim_order if self.sizes[d] > 1] == [d for d in order if self.sizes[d] > 1]

    def __str__(self) -> str:
        return f"value {self.number} {self.dtype}{list(self.sizes)}"


#: an argument of a call; None if it is left out or never read
Argument = Value | int | float | tuple[int, ...] | tuple[float, ...] | tuple[Value, ...] | None


@dataclass(frozen=True, eq=False)
class Call:
    """A kernel call: `kind` is name and overload, "cortex_m::pad.out"; `index` its place among the instructions."""

    index: int
    kind: str
    arguments: tuple[Argument, ...]

    @property
    def name(self) -> str:
        """Name of the operator without its namespace and overload, such as "pad"."""
        return self.kind.partition("::")[2].partition(".")[0]

    def __str__(self) -> str:
        return f"call {self.index} {shown(self.kind)}"


@dataclass(frozen=True)
class Program:
    """The method of a program: its calls, in order, and its inputs and outputs.

    borders  (scale, zero point) of the int8 inputs and outputs for which the program gives them
    """

    calls: tuple[Call, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    borders: Mapping[Value, tuple[float, int]]


def read_program(data: bytes, problems: Problems) -> Program | None:
    """Return the program of a file that check_flatbuffer has walked; None where a problem leaves nothing to read."""
    return _Reader(data, problems).program()


def _constant_result(plan: Table) -> float | None:
    """The number that a method without calls returns; None for other methods."""
    outputs, values = plan.numbers("outputs"), plan["values"]
    if len(outputs) != 1 or not 0 <= outputs[0] < len(values):
        return None
    entry = values[outputs[0]]
    sort = UNIONS["KernelTypes"].get(entry["val_type"], "")
    table = entry.union("val", sort) if sort in _NUMBERS else None
    return None if table is None else float(table[_NUMBERS[sort]])


class _Reader:
    def __init__(self, data: bytes, problems: Problems):
        self.data, self.require = data, problems.require
        self.table = root(data, "Program")
        self.constant_bytes = 0
        self.values: list[Argument] = []

    def program(self) -> Program | None:
        named = [(plan["name"].decode("utf-8", "replace"), plan) for plan in self.table["execution_plan"]]
        plans = [(name, plan) for name, plan in named if not _BORDER.fullmatch(name)]
        names = ", ".join(shown(name) for name, _ in plans)
        hint = "export a program with one method"
        if not self.require(len(plans) == 1, f"the program has {len(plans)} methods: {names}", hint):
            return None
        plan: Table = plans[0][1]
        for delegate in plan["delegates"]:
            name = quoted(delegate["id"].decode("utf-8", "replace"))
            self.require(False, f"a part of it is compiled for the delegate {name}", _HINT_DELEGATE)
        if not self.require(len(plan["chains"]) == 1, f"it has {len(plan['chains'])} chains, not one", HINT_UNSOUND):
            return None
        for number, entry in enumerate(plan["values"]):
            self.values.append(self.value(number, entry))
        kinds = [self.kind(entry) for entry in plan["operators"]]
        calls = []
        for index, instruction in enumerate(plan["chains"][0]["instructions"]):
            call = self.call(index, instruction, kinds)
            if call is not None:
                calls.append(call)
        inputs, outputs = self.ends(plan, "inputs"), self.ends(plan, "outputs")
        return Program(tuple(calls), inputs, outputs, self.borders(dict(named), inputs, outputs))

    def borders(
        self, plans: Mapping[str, Table], inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> dict[Value, tuple[float, int]]:
        """Quantizations of inputs and outputs, from the methods that QuantizeInputs and QuantizeOutputs add."""
        told: dict[tuple[str, str], dict[str, float]] = {}
        for name, plan in plans.items():
            matched, number = _BORDER.fullmatch(name), _constant_result(plan)
            if matched is not None and number is not None:
                told.setdefault((matched[1], matched[2]), {})[matched[3]] = number
        found = {}
        for (end, index), numbers in told.items():
            values = inputs if end == "input" else outputs
            scale, point = numbers.get("scale", math.nan), numbers.get("zp", math.nan)
            sound = int(index) < len(values) and 0 < scale < math.inf and point in range(-128, 128)
            if self.require(sound, f"its methods do not give a valid quantization of {end} {index}", HINT_UNSOUND):
                found[values[int(index)]] = scale, int(point)
        return found

    def kind(self, table: Table) -> str:
        name, overload = (table[key].decode("utf-8", "replace") for key in ("name", "overload"))
        return f"{name}.{overload}" if overload else name

    def ends(self, plan: Table, end: str) -> tuple[Value, ...]:
        """The tensors of the method's inputs or outputs."""
        found = []
        for number in plan.numbers(end):
            value = self.values[number] if 0 <= number < len(self.values) else None
            if self.require(isinstance(value, Value), f"value {number} of its {end} is not a tensor", HINT_UNSOUND):
                assert isinstance(value, Value)
                found.append(value)
        if end == "outputs":
            self.require(bool(found), "the method has no output", HINT_UNSOUND)
        return tuple(found)

    def call(self, index: int, instruction: Table, kinds: Sequence[str]) -> Call | None:
        """Return a kernel call. None for a delegate's, which was reported before, and for others, with a problem."""
        sort = UNIONS["InstructionArguments"].get(instruction["instr_args_type"])
        table = None if sort is None else instruction.union("instr_args", sort)
        if sort == "DelegateCall":
            return None
        if sort != "KernelCall" or table is None:
            hint = "export a module without control flow"
            self.require(False, f"instruction {index} is not a kernel call", hint)
            return None
        if not self.require(0 <= table["op_index"] < len(kinds), f"call {index} names no operator", HINT_UNSOUND):
            return None
        numbers = table.numbers("args")
        inside = all(0 <= number < len(self.values) for number in numbers)
        if not self.require(inside, f"call {index} has arguments that are not there", HINT_UNSOUND):
            return None
        return Call(index, kinds[table["op_index"]], tuple(self.values[number] for number in numbers))

    # --- values ------------------------------------------------------------------------------

    def value(self, number: int, entry: Table) -> Argument:
        """Return value `number` of the program. Lists refer to other values by number, which are read before them."""
        sort = UNIONS["KernelTypes"].get(entry["val_type"])
        table = None if sort is None else entry.union("val", sort)
        if table is None:
            return None
        if sort == "ProgramTensor":
            return self.tensor(number, table)
        if sort == "IntList":
            numbers = [self.element(i, int) for i in table["items"].tolist()]
            return tuple(number for number in numbers if isinstance(number, int)) if None not in numbers else None
        if sort == "DoubleList":
            return tuple(table["items"].tolist())
        if sort == "TensorList":
            values = [self.element(i, Value) for i in table["items"].tolist()]
            return tuple(value for value in values if isinstance(value, Value)) if None not in values else None
        found: int | float = table[_NUMBERS[sort or ""]]
        return found

    def element(self, number: int, sort: type) -> Argument:
        found = self.values[number] if 0 <= number < len(self.values) else None
        return found if isinstance(found, sort) else None

    def tensor(self, number: int, table: Table) -> Value | None:
        """A tensor; None where it has a problem."""
        place = f"value {number}"
        sizes = tuple(table.numbers("sizes"))
        order = tuple(table["dim_order"].tolist())
        dtype = _DTYPES.get(table["scalar_type"])
        if dtype is None:  # the code that reads it reports the problem
            return None
        sound = len(sizes) <= MAX_RANK and all(size >= 0 for size in sizes) and sorted(order) == list(range(len(sizes)))
        if not self.require(
            sound,
            f"its sizes {list(sizes)} or their order {list(order)} in memory is impossible",
            HINT_UNSOUND,
            None,
            place,
        ):
            return None
        if not self.require(table["shape_dynamism"] == 0, "its shape is dynamic", _HINT_FIXED, None, place):
            return None
        small = math.prod(sizes) * ITEM_BYTES[dtype] <= MAX_TENSOR_BYTES
        if not self.require(small, f"it has more than {MAX_TENSOR_BYTES:,} bytes", HINT_SMALLER, None, place):
            return None
        if not self.require(table["storage_offset"] == 0, "it is a part of another tensor", HINT_UNSOUND, None, place):
            return None
        planned, extra, buffer = table["allocation_info"], table["extra_tensor_info"], table["data_buffer_idx"]
        outside = extra is not None and extra["location"] != 0
        if not self.require(not outside, "its data lies in another file", _HINT_INSIDE, None, place):
            return None
        if planned is None:
            raw = self.constant(buffer, math.prod(sizes) * ITEM_BYTES[dtype], place) if buffer else None
            values = None if raw is None else np.frombuffer(raw, np.dtype(dtype).newbyteorder("<")).astype(dtype)
            if values is not None:
                values.setflags(write=False)
            return Value(number, dtype, sizes, order, values, None)
        hint = "export a module without state: give it as inputs and outputs"
        if not self.require(buffer == 0, "it is a buffer that the program changes", hint, None, place):
            return None
        offset = planned["memory_offset_high"] << 32 | planned["memory_offset_low"]
        return Value(number, dtype, sizes, order, None, (planned["memory_id"], offset))

    def constant(self, buffer: int, size: int, place: str) -> bytes | None:
        """Return the bytes of a constant; None if the file does not contain them."""
        self.constant_bytes += size
        text = f"all constants together have more than {MAX_TENSOR_BYTES:,} bytes"
        if self.constant_bytes > MAX_TENSOR_BYTES:
            # noted once, for the first constant beyond the limit
            self.require(self.constant_bytes - size > MAX_TENSOR_BYTES, text, HINT_SMALLER)
            return None
        segment: Table | None = self.table["constant_segment"]
        offsets = () if segment is None else segment.numbers("offsets")
        if not offsets:
            inline = self.table["constant_buffer"]
            raw = inline[buffer]["storage"].tobytes()[:size] if buffer < len(inline) else b""
        else:
            assert segment is not None, "which has offsets"
            begin, end = self.segment(segment["segment_index"])
            begin = begin + offsets[buffer] if buffer < len(offsets) else end
            raw = self.data[begin : min(begin + size, end)]
        text = f"its shape needs {size} bytes of data, but there are {len(raw)}"
        return raw if self.require(len(raw) == size, text, HINT_DAMAGED, None, place) else None

    def segment(self, index: int) -> tuple[int, int]:
        """(first byte, byte after the last) of a segment in the file; (0, 0) if the file does not contain it."""
        segments = self.table["segments"]
        if index >= len(segments) or len(self.data) < 8 + _HEADER.size:
            return 0, 0
        magic, _, _, base = _HEADER.unpack_from(self.data, 8)
        begin = base + segments[index]["offset"]
        if magic != b"eh00" or begin > len(self.data):
            return 0, 0
        return begin, min(begin + segments[index]["size"], len(self.data))
