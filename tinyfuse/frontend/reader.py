"""Reads a .tflite file into a Graph: with its two helpers, the only place that knows FlatBuffers.

The file is hostile until `tinyfuse.frontend.flatbuffer_check` has walked it; after that, what it says is
still checked, and every fault is collected, each with its operator or tensor.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

from tinyfuse.errors import CompileError, Problem
from tinyfuse.frontend.ethos_u import resolve_programs
from tinyfuse.frontend.file_formats import HINT_CONVERT, foreign_format, irregular
from tinyfuse.frontend.flatbuffer_check import Damaged, TooLarge, check_flatbuffer
from tinyfuse.frontend.flatbuffer_table import Table
from tinyfuse.frontend.flexbuffer import integers_of, numbers_of
from tinyfuse.frontend.model_kind import compiled_for_another, sort_of
from tinyfuse.frontend.schema import TABLES, Field, enumerators
from tinyfuse.frontend.tensors import (
    HINT_DAMAGED,
    HINT_SMALLER,
    HINT_UNSOUND,
    Model,
    Problems,
    TensorReader,
    text,
)
from tinyfuse.frontend.uint8 import as_int8, is_uint8, uint8_problems
from tinyfuse.frontend.variables import plain_outputs, resolve_variables
from tinyfuse.ir import Digest, Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.program.constant_output import with_written_outputs
from tinyfuse.ops.program.control_flow import Calls, called_graphs

MAX_FILE_BYTES = 64 << 20
_LONGEST_CUSTOM_CODE = 64
_LONGEST_CUSTOM_OPTIONS = 1 << 16
#: kind of an operator whose code is out of range
_NO_KIND = "?"


def read_tflite(path: str | os.PathLike[str], data: bytes | None = None) -> Graph:
    """Read a .tflite file into a graph (from `data`, when given; then `path` is for messages only).

    Constants are read-only arrays of the tensor's dtype and shape that share the file's bytes; they may be unaligned.
    Raises CompileError with every fault that could be found.
    """
    name = os.fspath(path)
    data = load_file(name) if data is None else bytes(data)
    check_file(name, data)
    return _graph(name, data, read_model(name, data))


def check_file(name: str, data: bytes) -> None:
    """Check that `data` is a sound FlatBuffer of the schema's tables, so that they may be read. Raises CompileError,
    which calls the file `name`."""
    if len(data) > MAX_FILE_BYTES:
        message = f"the file has more than {MAX_FILE_BYTES:,} bytes"
        raise CompileError(name, Problem(message, hint=HINT_SMALLER))
    if not data:
        raise CompileError(name, Problem("the file is empty", hint=HINT_CONVERT))
    if data[4:8] != b"TFL3":
        raise CompileError(name, foreign_format(name, data))
    try:
        check_flatbuffer(data)
    except Damaged as damaged:
        raise CompileError(name, Problem(f"damaged file: {damaged}", hint=HINT_DAMAGED)) from None
    except TooLarge as large:
        raise CompileError(name, Problem(f"the model is too large: {large}", hint=HINT_SMALLER)) from None


def read_model(name: str, data: bytes) -> Model:
    """Return the tables of a checked file. Raises CompileError if its metadata of compression is damaged."""
    try:
        return Model.of(data)
    except (Damaged, TooLarge) as wrong:
        raise CompileError(name, Problem(f"damaged metadata of compression: {wrong}", hint=HINT_DAMAGED)) from None


#: prefix of a custom operator's name -> (what it is, what to do)
_CUSTOM = {
    "Flex": (
        ": it is an operator of TensorFlow that the converter left as it was (SELECT_TF_OPS)",
        "convert the model with TFLITE_BUILTINS_INT8 alone",
    ),
}
_ANY_CUSTOM = (
    ": it is a custom operator, whose code is in the program that the model was made for",
    "what it computes isn't in the file: use built-in operators",
)


def unsupported(op: Op) -> Problem | None:
    """Return why no family of tinyfuse/ops compiles an operator of this kind; None if one does."""
    if op.kind in FAMILIES:
        return None
    what, hint = "", "take it out of the model or replace it: `tinyfuse operators` lists what is supported"
    if op.kind.startswith("CUSTOM "):
        code = op.kind.removeprefix("CUSTOM ")
        what, hint = next((told for prefix, told in _CUSTOM.items() if code.startswith(prefix)), _ANY_CUSTOM)
    return Problem(f"this operator is not supported{what}", operator=str(op), hint=hint)


def load_file(path: str) -> bytes:
    """Read a model file, at most one byte more than MAX_FILE_BYTES. Raises CompileError if it can't be read."""
    try:
        wrong = irregular(path)
        if wrong is not None:
            raise CompileError(path, wrong)
        with open(path, "rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        message = "there is no such file"
        raise CompileError(path, Problem(message, hint="check the path")) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        message = f"the file can't be read: {reason}"
        raise CompileError(path, Problem(message, hint="check path and permissions")) from None


def _graph(path: str, data: bytes, model: Model) -> Graph:
    problems = Problems()
    version, subgraphs = model.version, len(model.subgraphs)
    problems.require(version == 3, f"schema version {version} is not 3", HINT_CONVERT)
    problems.require(subgraphs > 0, "the file has no graph", HINT_UNSOUND)
    problems.stop(path)

    tensors = TensorReader(data, model, 0, problems)
    reader = _OpReader(model, 0, tensors, problems)
    inputs, outputs = reader.ends("input", "inputs"), reader.ends("output", "outputs")
    ops = reader.ops()
    problems.require(bool(ops), "the graph has no operators", HINT_CONVERT)
    warnings, notes = tensors.open_batches(inputs)
    called: list[int] = []
    digest = Digest(data)
    nested = _CalledGraphs(path, data, digest, model, problems)
    ops = nested.resolved(ops, (0,))

    def subgraph_ops(number: int) -> tuple[Op, ...]:
        called.append(number)
        return _OpReader(model, number, TensorReader(data, model, number, problems), problems).ops()

    ops = resolve_programs(path, ops, model, tensors, problems)
    ops, outputs = plain_outputs(ops, outputs)
    ops = resolve_variables(ops, subgraph_ops, subgraphs, tensors.bad | nested.bad, problems)
    nested.check_order(ops)
    unread = subgraphs - 1 - len({*called, *nested.graphs})
    if unread > 0:
        warnings.append(f"{unread} of {subgraphs} subgraphs are not read: nothing calls them")
    _check_order(inputs, ops, outputs, tensors.bad, problems)
    other = compiled_for_another(ops)
    if other is not None:
        raise CompileError(path, other)
    if problems.found:  # then add all reasons at once: no later stage sees the operators
        problems.first(sort_of(ops))
        for op in ops:
            problem = unsupported(op) if op.kind != _NO_KIND else None
            if problem is not None:
                problems.require(False, problem.message, problem.hint, op)
    problems.stop(path)
    graph = Graph(path, digest, ops, tuple(inputs), tuple(outputs), tuple(warnings), notes=tuple(notes))
    graph = with_written_outputs(graph)
    if not is_uint8(ops):
        return graph
    unfit = list(uint8_problems(ops))
    if unfit:
        raise CompileError(path, unfit)
    return as_int8(graph)


#: most nested levels of graphs that run graphs
_DEEPEST = 16


class _CalledGraphs:
    """Reads the graphs that IF and WHILE run, each once."""

    def __init__(self, path: str, data: bytes, digest: Digest, model: Model, problems: Problems):
        self.path, self.data, self.digest, self.model, self.problems = path, data, digest, model, problems
        self.graphs: dict[int, Graph] = {}
        self.readers: list[TensorReader] = []

    def resolved(self, ops: tuple[Op, ...], callers: tuple[int, ...]) -> tuple[Op, ...]:
        """Return operators with the graphs that they run; they belong to the innermost of the graphs `callers`.

        Notes a problem if a graph doesn't exist or would run itself.
        """
        return tuple(self._resolved(op, callers) if isinstance(op.attributes, Calls) else op for op in ops)

    def _resolved(self, op: Op, callers: tuple[int, ...]) -> Op:
        calls, count = op.attributes_as(Calls), len(self.model.subgraphs)
        require = self.problems.require
        for number in calls.numbers:
            message = f"it runs subgraph {number}, of {count}"
            good = require(0 <= number < count, message, HINT_UNSOUND, op)
            good = good and require(number not in callers, "it runs the subgraph that it is in", HINT_UNSOUND, op)
            message = f"it runs a subgraph {_DEEPEST} levels deep"
            hint = "take IF and WHILE apart: so many in one another are not supported"
            if not good or not require(len(callers) <= _DEEPEST, message, hint, op):
                return op
        graphs = tuple(self._graph(number, callers) for number in calls.numbers)
        return replace(op, attributes=replace(calls, graphs=graphs))

    def _graph(self, number: int, callers: tuple[int, ...]) -> Graph:
        if number not in self.graphs:
            with self.problems.inside(f"subgraph {number}"):
                tensors = TensorReader(self.data, self.model, number, self.problems)
                reader = _OpReader(self.model, number, tensors, self.problems)
                inputs = reader.tensors_of("an input", "inputs")
                outputs = reader.tensors_of("an output", "outputs")
                ops, outputs = plain_outputs(self.resolved(reader.ops(), (*callers, number)), outputs)
                self.readers.append(tensors)
            self.graphs[number] = Graph(self.path, self.digest, ops, tuple(inputs), tuple(outputs))
        return self.graphs[number]

    @property
    def bad(self) -> set[Tensor]:
        """Tensors of all these graphs whose problems are noted already."""
        return {tensor for reader in self.readers for tensor in reader.bad}

    def check_order(self, ops: tuple[Op, ...]) -> None:
        """Check the order of the graphs that operators run, each once, after variables are resolved."""
        bad, waiting, seen = self.bad, [called for op in ops for called in called_graphs(op)], set()
        while waiting:
            number, graph = waiting.pop(0)
            if number not in seen:
                seen.add(number)
                with self.problems.inside(f"subgraph {number}"):
                    _check_order(list(graph.inputs), graph.ops, list(graph.outputs), bad, self.problems)
                waiting += [called for op in graph.ops for called in called_graphs(op)]


def _check_order(
    inputs: list[Tensor],
    ops: tuple[Op, ...],
    outputs: list[Tensor],
    bad: set[Tensor],
    problems: Problems,
) -> None:
    """Check that every activation is computed once and before it is read; ignores `bad` tensors. Outputs may be
    constants."""
    known: set[Tensor] = set()
    for tensor in inputs:
        message = "is an input of the graph, but has constant data"
        problems.require(not tensor.is_constant, message, HINT_UNSOUND, tensor=tensor)
        message = "is an input of the graph, but a variable"
        problems.require(not tensor.is_state, message, HINT_UNSOUND, tensor=tensor)
        message = "is an input of the graph, but a resource"
        problems.require(tensor.dtype != "resource", message, HINT_UNSOUND, tensor=tensor)
        message = "is listed twice among the inputs of the graph"
        problems.require(tensor not in known, message, HINT_UNSOUND, tensor=tensor)
        known.add(tensor)
    for op in ops:
        for tensor in op.activations:
            message = "is read before it is computed"
            problems.require(tensor in known or tensor in bad, message, HINT_UNSOUND, op, tensor)
        for tensor in op.outputs:
            message = "is computed, but has constant data"
            problems.require(not tensor.is_constant, message, HINT_UNSOUND, op, tensor)
            message = "is computed, but a variable: only the operator that keeps it may change it"
            problems.require(not tensor.is_state, message, HINT_UNSOUND, op, tensor)
            message = "is computed a second time"
            problems.require(tensor not in known, message, HINT_UNSOUND, op, tensor)
            known.add(tensor)
    for tensor in outputs:
        message = "is an output of the graph, but nothing computes it"
        computed = tensor in known or tensor in bad or tensor.is_constant
        problems.require(computed, message, HINT_UNSOUND, tensor=tensor)


def kind_of(model: Model, number: int) -> str:
    """Return the kind of the operators with the code `number`; "?" if the file has no such code."""
    if number >= len(model.operator_codes):
        return _NO_KIND
    code = model.operator_codes[number]
    # Old files have only the first field, new ones may leave it out or fill it with a placeholder, 127:
    # the greater one is right (TFLM, schema_utils.cc, GetBuiltinCode).
    builtin = max(code["deprecated_builtin_code"], code["builtin_code"])
    kind = enumerators("BuiltinOperator").get(builtin, f"BUILTIN {builtin}")
    if kind != "CUSTOM":
        return kind
    custom = text(code["custom_code"])[:_LONGEST_CUSTOM_CODE]
    return f"CUSTOM {repr(custom)[1:-1]}"


class _OpReader:
    """Reads the operators of a subgraph."""

    def __init__(self, model: Model, subgraph: int, tensors: TensorReader, problems: Problems):
        self.model, self.tensors, self.require = model, tensors, problems.require
        self.problems = problems
        self.subgraph = model.subgraphs[subgraph]

    def ops(self) -> tuple[Op, ...]:
        return tuple(self.op(i, table) for i, table in enumerate(self.subgraph["operators"]))

    def ends(self, end: str, field: str) -> list[Tensor]:
        """Return the tensors of the main graph's inputs or outputs. A model may have no inputs (a counter, for
        example)."""
        there = bool(self.subgraph.numbers(field)) or end == "input"
        self.require(there, f"the graph has no {end}", HINT_CONVERT)
        return self.tensors_of(f"an {end}", field)

    def tensors_of(self, end: str, field: str) -> list[Tensor]:
        """Return the tensors of the graph's inputs or outputs."""
        found = []
        for i in self.subgraph.numbers(field):
            message = self.out_of_range(f"{end} of the graph", i)
            if self.require(0 <= i < self.tensors.count, message, HINT_UNSOUND):
                found.append(self.tensors.tensor(i))
                self.tensors.require_elements(found[-1])
        return found

    def out_of_range(self, what: str, index: int) -> str:
        return f"{what} is tensor {index}, of {self.tensors.count}"

    def op(self, index: int, table: Table) -> Op:
        """Return the operator at an index. Tensors out of range are left out and noted as problems."""
        inputs, outputs = table.numbers("inputs"), table.numbers("outputs")
        valid = range(self.tensors.count)
        tensor = self.tensors.tensor
        code = table["opcode_index"]
        op = Op(
            kind_of(self.model, code),
            tuple(tensor(i) if i in valid else None for i in inputs),
            tuple(tensor(i) for i in outputs if i in valid),
            index=index,
        )
        self.require(op.kind != _NO_KIND, f"its operator code {code} is out of range", HINT_UNSOUND, op)
        for end, indexes in (("an input", inputs), ("an output", outputs)):
            for i in indexes:
                # -1 is an optional input that is left out
                if i not in valid and (i, end) != (-1, "an input"):
                    self.require(False, self.out_of_range(end, i), HINT_UNSOUND, op)
        read = Op(op.kind, op.inputs, op.outputs, self.attributes(op, table), index)
        family = FAMILIES.get(op.kind)
        if family is None:
            return read
        known, hidden = family.instead(read), family.hidden_states(read)
        for at, looked_at in enumerate(op.inputs + op.outputs):
            if looked_at is not None and at not in known:
                self.tensors.require_elements(looked_at)
        given = tuple(known.get(i, tensor) for i, tensor in enumerate(read.inputs))
        return replace(read, inputs=given + hidden) if known or hidden else read

    def attributes(self, op: Op, table: Table) -> Any:
        """Return the attributes that the operator's family reads from its options; None for kinds without a family."""
        if op.kind not in FAMILIES:
            return None
        before = self.problems.count
        options = self.options(op, table)
        return FAMILIES[op.kind].attributes(options) if self.problems.count == before else None

    def options(self, op: Op, table: Table) -> dict[str, Any]:
        """Return the fields of an operator's option table: numbers, enumerators' names or tuples. A custom
        operator has one field, `custom_options`, its raw bytes."""
        if op.kind.startswith("CUSTOM "):
            size = len(table["custom_options"])
            fits = self.require(size <= _LONGEST_CUSTOM_OPTIONS, f"its options take {size} bytes", HINT_SMALLER, op)
            data = table["custom_options"].tobytes() if fits else b""
            if FAMILIES[op.kind].named_options:
                return self.numbers(op, data)
            keys = FAMILIES[op.kind].option_keys
            return {"custom_options": data} if keys is None else self.flexbuffer(op, data, keys)
        # the union's type is checked before any option is read
        expected, number = FAMILIES[op.kind].options_table, table["builtin_options_type"]
        given = enumerators("BuiltinOptions").get(number, f"type {number}")
        if expected is None or given == "NONE":
            return {}
        message = f"its options are of {given}, not of {expected}"
        if not self.require(given == expected, message, HINT_UNSOUND, op):
            return {}
        options = table.union("builtin_options", expected)
        if options is None:
            return {}
        return {field.name: self.option(op, options, field) for field in TABLES[expected] if field.type != "-"}

    def flexbuffer(self, op: Op, data: bytes, keys: tuple[str, ...]) -> dict[str, Any]:
        """Return the integers of a custom operator's FlexBuffer, which must have exactly `keys`: TFLM reads them
        by position."""
        if not data:
            return {}
        try:
            options = integers_of(data)
        except Damaged as damaged:
            self.require(False, f"its options: {damaged}", HINT_DAMAGED, op)
            return {}
        known = ", ".join(keys)
        good = self.require(tuple(options) == keys, f"its options are not {known}, in this order", HINT_UNSOUND, op)
        return dict(options) if good else {}

    def numbers(self, op: Op, data: bytes) -> dict[str, Any]:
        """Return the numbers of a custom operator's FlexBuffer by key."""
        try:
            return dict(numbers_of(data)) if data else {}
        except Damaged as damaged:
            self.require(False, f"its options: {damaged}", HINT_DAMAGED, op)
            return {}

    def option(self, op: Op, options: Table, field: Field) -> Any:
        if field.type.startswith("["):
            return options.numbers(field.name)
        found = value = options[field.name]
        if field.type == "string":
            return text(value)
        if field.enum:
            value = enumerators(field.enum).get(value)
        if value is None or (field.type == "float" and not math.isfinite(value)):
            self.require(False, f"its option {field.name} is {found}, which means nothing", HINT_UNSOUND, op)
        return value
