"""Reference models for a module: its own file in an interpreter, and the float model from which it was made."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

import numpy as np

from tinyfuse.data.inputs import InputSpec
from tinyfuse.errors import CompileError, Problem, UsageError
from tinyfuse.evaluate.streams import Feeding
from tinyfuse.frontend.file_formats import foreign_format
from tinyfuse.frontend.flatbuffer_check import Damaged, TooLarge, check_flatbuffer
from tinyfuse.frontend.flatbuffer_table import Table, root
from tinyfuse.frontend.reader import load_file
from tinyfuse.frontend.schema import enumerators
from tinyfuse.ir import Array, Layouts
from tinyfuse.toolchain.extras import PACKAGES, require_package
from tinyfuse.verify.interpreter_process import InterpreterFailed, run_interpreter
from tinyfuse.verify.oracle import Oracle

_FLOAT32 = {name.lower(): value for value, name in enumerators("TensorType").items()}["float32"]


class Interpreted:
    """The module's own file in the oracle's interpreter."""

    def __init__(self, oracle: Oracle, feeding: Feeding):
        self._oracle, self._feeding = oracle, feeding
        self.name = f"{oracle.name} {oracle.version}".strip()

    def run(self, stored: Mapping[str, Array], frames: int | None) -> list[Array]:
        """Outputs [samples, *shape] of each sample's last inference. Raises what the oracle raises."""
        streams = self._oracle.run_streams(self._feeding.to_interpreter(stored, frames))
        return [np.stack(arrays) for arrays in zip(*(stream[-1] for stream in streams), strict=True)]


class InterpretedFloat:
    """A float model in LiteRT, with its optimized kernels. Its inputs are those of the module by name, else in order.

    Raises ToolMissing without LiteRT, CompileError if the file is no model, UsageError if its inputs do not fit the
    module's.
    """

    def __init__(self, path: str, feeding: Feeding, layouts: Layouts | None, timeout: float):
        """Takes `layouts` if the module's inputs and outputs have other orders of dimensions than the file's."""
        require_package("ai_edge_litert")
        self.path, self._feeding, self._timeout = path, feeding, timeout
        self.name = f"litert {version(PACKAGES['ai_edge_litert'].name)}"
        self._data = load_file(path)
        self._tables = _inputs(path, self._data)
        specs, names = list(feeding.inputs), [table["name"].decode("utf-8", "replace") for table in self._tables]
        if len(names) != len(specs):
            raise UsageError(f"--float {path}: it has {len(names)} inputs, the model {len(specs)}")
        by_name = {spec.name: number for number, spec in enumerate(specs)}
        same = set(names) == by_name.keys()
        self._numbers = [by_name[name] for name in names] if same else list(range(len(specs)))
        inputs = (None,) * len(specs) if layouts is None else layouts.inputs
        self._outputs = () if layouts is None else layouts.outputs
        self._orders = [None if order is None else [int(i) for i in np.argsort(order)] for order in inputs]
        for table, number in zip(self._tables, self._numbers, strict=True):
            _check_input(path, table, specs[number], self._shape(number))

    def _shape(self, number: int) -> tuple[int, ...]:
        """Shape that the file gives input `number`."""
        shape, order = self._feeding.inputs[number].shape, self._orders[number]
        return shape if order is None else tuple(shape[i] for i in order)

    def run(self, real: Mapping[str, Array], frames: int | None) -> list[Array]:
        """Outputs of each sample's last inference, for inputs of real numbers. UsageError if LiteRT cannot run the
        model."""
        streams = [
            [[self._of_file(frame, number) for number in self._numbers] for frame in stream]
            for stream in self._feeding.to_interpreter(real, frames)
        ]
        try:
            outputs = run_interpreter("float", self._data, streams, self._timeout, afresh=self._feeding.streams)
        except InterpreterFailed as failed:
            raise UsageError(f"--float {self.path}: litert can't run it: {failed}") from None
        found = map(np.stack, zip(*(stream[-1] for stream in outputs), strict=True))
        return [self._as_module(i, array) for i, array in enumerate(found)]

    def _of_file(self, frame: list[Array], number: int) -> Array:
        """Input `number` of the module with its dimensions in the file's order."""
        order = self._orders[number]
        return frame[number] if order is None else frame[number].transpose(order)

    def _as_module(self, number: int, array: Array) -> Array:
        """An output [samples, *shape of the file] with the order of dimensions that the module has."""
        order = self._outputs[number] if number < len(self._outputs) else None
        if order is None or len(order) != array.ndim - 1:
            return array
        return array.transpose(0, *(1 + dim for dim in order))


def _inputs(path: str, data: bytes) -> list[Table]:
    """Input tensors of a file's first graph. CompileError if the file is damaged or no model."""
    if data[4:8] != b"TFL3":
        raise CompileError(path, foreign_format(path, data))
    try:
        check_flatbuffer(data)
    except (Damaged, TooLarge) as error:
        raise CompileError(path, Problem(str(error))) from None
    graphs = root(data)["subgraphs"]
    if not graphs:
        raise CompileError(path, Problem("the file has no graph", hint="check that it is the whole file"))
    tensors, numbers = graphs[0]["tensors"], graphs[0].numbers("inputs")
    if any(not 0 <= number < len(tensors) for number in numbers):
        raise CompileError(
            path, Problem("an input of its graph is not a tensor", hint="check that it is the whole file")
        )
    return [tensors[number] for number in numbers]


def _check_input(path: str, table: Table, spec: InputSpec, shape: tuple[int, ...]) -> None:
    """Raises UsageError if a file's input is not float32 with the shape of the module's input."""
    if table["type"] != _FLOAT32:
        raise UsageError(
            f"--float {path}: its input for {spec.name!r} is not float32; give the model before quantization"
        )
    found = tuple(map(int, table["shape"]))
    if (
        len(found) != len(shape)
        or any(a not in (b, 1, -1) for a, b in zip(found[:1], shape[:1], strict=True))
        or (found[1:] != shape[1:])
    ):
        raise UsageError(f"--float {path}: its input for {spec.name!r} has the shape {list(found)}, not {list(shape)}")
