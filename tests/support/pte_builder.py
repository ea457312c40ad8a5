"""Builds ExecuTorch programs (.pte) value by value and call by call, along the tables of frontend/schema.py."""

from __future__ import annotations

from collections.abc import Sequence

import flatbuffers
import numpy as np
from tflite_builder import write_numbers, write_offsets

from tinyfuse.frontend.schema import TABLES, UNIONS

_SCALAR_TYPES = {"uint8": 0, "int8": 1, "int32": 3, "float32": 6}
_SLOTS = {"bool": "Bool", "byte": "Int8", "ubyte": "Uint8", "int": "Int32", "uint": "Uint32", "long": "Int64",
          "ulong": "Uint64", "double": "Float64"}  # fmt: skip


class ProgramBuilder:
    """One method with planned values, one behind the other in memory 1, and constants inside the FlatBuffer."""

    def __init__(self) -> None:
        self._builder = flatbuffers.Builder(4096)
        self._values: list[int] = []
        self._buffers = [self._table("ProgramBuffer")]
        self._operators: list[tuple[str, str]] = []
        self._calls: list[int] = []
        self._end = 0

    def _table(self, table: str, **fields: int | float) -> int:
        self._builder.StartObject(len(TABLES[table]))
        for field in TABLES[table]:
            if field.name in fields:
                if field.type in _SLOTS:
                    getattr(self._builder, f"Prepend{_SLOTS[field.type]}Slot")(field.slot, fields[field.name], 0)
                else:
                    self._builder.PrependUOffsetTRelativeSlot(field.slot, fields[field.name], 0)
        return self._builder.EndObject()

    def _value(self, kind: str, **fields: int | float) -> int:
        number = next(number for number, table in UNIONS["KernelTypes"].items() if table == kind)
        self._values.append(self._table("EValue", val_type=number, val=self._table(kind, **fields)))
        return len(self._values) - 1

    def tensor(self, shape: Sequence[int], dtype: str = "int8", data: np.ndarray | None = None, **fields: int) -> int:
        """A planned value, or with `data` a constant; return its number."""
        sizes, order = write_numbers(self._builder, shape), write_numbers(self._builder, range(len(shape)), np.uint8)
        if data is None:
            place = self._table("AllocationDetails", memory_id=1, memory_offset_low=self._end)
            self._end += int(np.prod(shape)) * np.dtype(dtype).itemsize
            fields["allocation_info"] = place
        else:
            storage = self._builder.CreateByteVector(np.ascontiguousarray(data, dtype).tobytes())
            self._buffers.append(self._table("ProgramBuffer", storage=storage))
            fields["data_buffer_idx"] = len(self._buffers) - 1
        return self._value("ProgramTensor", scalar_type=_SCALAR_TYPES[dtype], sizes=sizes, dim_order=order, **fields)

    def integer(self, number: int) -> int:
        return self._value("Int", int_val=number)

    def real(self, number: float) -> int:
        return self._value("Double", double_val=number)

    def flag(self, holds: bool) -> int:
        return self._value("Bool", bool_val=holds)

    def nothing(self) -> int:
        """An argument that is left out."""
        self._values.append(self._table("EValue", val_type=1))
        return len(self._values) - 1

    def integers(self, *numbers: int) -> int:
        return self._value("IntList", items=write_numbers(self._builder, [*map(self.integer, numbers)], np.int64))

    def call(self, kind: str, *arguments: int, results: int = 1) -> None:
        """Add a call; its last arguments are its results."""
        name, _, overload = kind.rpartition(".")
        if (name, overload) not in self._operators:
            self._operators.append((name, overload))
        again = arguments[-1]
        if results > 1:
            again = self._value("TensorList", items=write_numbers(self._builder, arguments[-results:], np.int32))
        args = write_numbers(self._builder, [*arguments, again])
        call = self._table("KernelCall", op_index=self._operators.index((name, overload)), args=args)
        self._calls.append(self._table("Instruction", instr_args_type=1, instr_args=call))

    def build(self, inputs: Sequence[int], outputs: Sequence[int], delegate: str | None = None) -> bytes:
        """Return the file; with a delegate of that name, which nothing calls."""
        b = self._builder
        names = [(b.CreateString(name), b.CreateString(overload)) for name, overload in self._operators]
        operators = [self._table("KernelName", name=name, overload=overload) for name, overload in names]
        chain = self._table("Chain", instructions=write_offsets(b, self._calls))
        fields = {"values": write_offsets(b, self._values), "operators": write_offsets(b, operators)}
        fields |= {"inputs": write_numbers(b, inputs), "outputs": write_numbers(b, outputs)}
        fields |= {"name": b.CreateString("forward"), "chains": write_offsets(b, [chain])}
        fields["non_const_buffer_sizes"] = write_numbers(b, [0, self._end], np.int64)
        if delegate is not None:
            text = b.CreateString(delegate)
            fields["delegates"] = write_offsets(b, [self._table("BackendDelegate", id=text)])
        plan = write_offsets(b, [self._table("ExecutionPlan", **fields)])
        buffers = write_offsets(b, self._buffers)
        b.Finish(self._table("Program", execution_plan=plan, constant_buffer=buffers), b"ET12")
        return bytes(b.Output())
