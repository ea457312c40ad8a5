"""Oracles that compute a model's outputs: the runtime that the file was made for, or our own numpy references.

TensorFlow Lite Micro (TFLM) is the reference for every bit. It has no kernels for uint8 models, so their reference is
LiteRT with its reference kernels (OpResolverType.BUILTIN_REF: no XNNPACK, no optimized kernels). These agree with TFLM
except for FULLY_CONNECTED: they multiply sums by a double and round once, while TFLM rounds twice in fixed point. So
LiteRT is used only if TFLM cannot run a model that has no such layer, and a warning says so. A result that only our own
references confirm is unproven.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.metadata import version
from typing import Protocol

import numpy as np

import tinyfuse
from tinyfuse.errors import EmulationFailed, ToolMissing, UsageError
from tinyfuse.frontend.graph_file import called_file
from tinyfuse.frontend.inside_file import inside_file
from tinyfuse.frontend.onnx.conversions import KINDS
from tinyfuse.frontend.onnx.graph import file_for_onnxruntime
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.frontend.uint8 import was_uint8
from tinyfuse.ir import EXECUTORCH, FORMATS, ONNXRUNTIME, Array, Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import REAL_MULTIPLIER, rounds_by
from tinyfuse.ops.program.interpret import run_graph
from tinyfuse.options import ORACLES
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.toolchain.extras import PACKAGES, require_package
from tinyfuse.verify.closed_file import closed_file
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.executorch_native import NativeProgram
from tinyfuse.verify.interpreter_process import InterpreterFailed, run_interpreter
from tinyfuse.verify.pieces import piece_file, pieces
from tinyfuse.verify.runnable import check_runs_here

_TIME_LIMIT = 600.0


class Oracle(Protocol):
    """Computes a model's outputs.

    `run_streams` maps inputs[stream][frame][index] to outputs[stream][frame][index]: arrays with the dtypes and shapes
    of the graph's inputs and outputs. A stream begins with the state of a new interpreter and passes it from frame to
    frame. `run_all` is for streams of one frame, `run` for a single one; one call for many is faster.
    """

    name: str
    version: str
    warnings: tuple[str, ...]

    def run_streams(self, inputs: list[list[list[np.ndarray]]]) -> list[list[list[np.ndarray]]]: ...

    def run_all(self, inputs: list[list[np.ndarray]]) -> list[list[np.ndarray]]: ...

    def run(self, inputs: list[np.ndarray]) -> list[np.ndarray]: ...


def make_oracle(kind: str, model_bytes: bytes, graph: Graph) -> Oracle:
    """Oracle of that kind, one of ORACLES, for the file `model_bytes` from which `graph` was read.

    "auto" is `_oracle_for` the model. ToolMissing if an interpreter is not installed, UsageError if it cannot run the
    model, CompileError if nothing here can.
    """
    check_runs_here(graph)
    if kind == "reference":
        return ReferenceOracle(graph)
    format_name = FORMATS[graph.runtime]
    if kind in (*_INTERPRETERS, "cmsis-nn") and _FORMATS.get(kind, "tflite") != format_name:
        raise UsageError(f"{kind} can't run this model: it is a .{format_name} file (hint: leave out --oracle)")
    if kind == "onnxruntime":
        return _onnx_oracle(model_bytes, graph)
    if kind == "cmsis-nn":
        return CmsisNnOracle(model_bytes, graph)
    if kind in _INTERPRETERS:
        return InterpreterOracle(kind, model_bytes, graph)
    if kind != "auto":
        raise UsageError(f"unknown oracle {kind!r}; known: {', '.join(ORACLES)}")
    return _oracle_for(model_bytes, graph)


def _oracle_for(model_bytes: bytes, graph: Graph) -> Oracle:
    """Oracle for "auto".

    It is TFLM, with LiteRT for operators that TFLM lacks. It is LiteRT alone, with a warning, if TFLM cannot run the
    model and LiteRT has the same arithmetic, and for every uint8 model. It is our reference, which proves nothing, if
    neither can run the model. ToolMissing if the interpreter to be used is not installed.
    """
    if graph.runtime == ONNXRUNTIME:
        return _onnx_oracle(model_bytes, graph)
    if graph.runtime == EXECUTORCH:
        return _executorch_oracle(model_bytes, graph)
    if was_uint8(graph):
        reasons = ["TFLM has no kernels of uint8"]
    else:
        try:
            return InterpreterOracle("tflm", model_bytes, graph)
        except UsageError as error:
            reasons = [_first_line(error)]
        try:
            if parts := pieces(graph):
                return PiecesOracle(model_bytes, graph, parts)
        except UsageError:
            pass  # LiteRT may run all of it
    scaled = next((op for op in graph.ops if op.kind == "FULLY_CONNECTED" and _rounds_twice(op)), None)
    if scaled is None:
        try:
            oracle: Oracle = InterpreterOracle("litert", model_bytes, graph)
        except UsageError as error:
            reasons.append(_first_line(error))
        else:
            oracle.warnings = (f"compared with litert, not with TFLM: {'; '.join(reasons)}",)
            return oracle
    else:
        reasons.append(f"litert rounds otherwise: {scaled}")
    oracle = ReferenceOracle(graph)
    oracle.warnings = (f"unproven: compared with our own reference alone: {'; '.join(reasons)}",)
    return oracle


def _onnx_oracle(model_bytes: bytes, graph: Graph) -> Oracle:
    """Oracle of an ONNX model: onnxruntime. If onnxruntime's sums depend on the CPU: our own reference, which proves
    nothing."""
    judged = file_for_onnxruntime(graph.path, model_bytes, KINDS)
    if judged.float_sums:
        oracle: Oracle = ReferenceOracle(graph)
        what = f"onnxruntime sums in float32, in an order that depends on the CPU: {', '.join(judged.float_sums)}"
        oracle.warnings = (f"unproven: compared with our own reference alone: {what}",)
        return oracle
    oracle = InterpreterOracle("onnxruntime", judged.data, graph)
    if judged.replaced:
        what = "where the file's float32 sums have no order that a standard defines"
        oracle.warnings += (
            f"onnxruntime ran a copy of the file with integer sums in {', '.join(judged.replaced)}, {what}",
        )
    if judged.near_ties:
        what = f"a result lies so near to a rounding boundary that CPUs may differ: {', '.join(judged.near_ties)}"
        oracle.warnings += (f"unproven on other CPUs than this one: {what}",)
    return oracle


def _executorch_oracle(model_bytes: bytes, graph: Graph) -> Oracle:
    """Oracle of an ExecuTorch program: CMSIS-NN itself if CMSIS_NN_PATH names it, else ExecuTorch's Python operators.

    If neither is available: our reference, which proves nothing.
    """
    if os.environ.get("CMSIS_NN_PATH"):
        return CmsisNnOracle(model_bytes, graph)
    try:
        return InterpreterOracle("executorch", model_bytes, graph)
    except ToolMissing as missing:
        oracle = ReferenceOracle(graph)
        oracle.warnings = (f"unproven: compared with our own reference alone: {missing}",)
        return oracle


def _rounds_twice(op: Op) -> bool:
    """Tell whether a FULLY_CONNECTED scales its sums in fixed point, as in TFLM but not in LiteRT."""
    return op.output.dtype != "float32" and not rounds_by(op, REAL_MULTIPLIER)


def _first_line(error: UsageError) -> str:
    return str(error).splitlines()[0]


#: kind -> format of its files; others run tflite
_FORMATS = {"onnxruntime": "onnx", "executorch": "pte", "cmsis-nn": "pte"}

#: kind -> Python package
_INTERPRETERS = {"tflm": "tflite_micro", "litert": "ai_edge_litert", "onnxruntime": "onnxruntime",
                 "executorch": "executorch"}  # fmt: skip


class _Runs(ABC):
    """Base of oracles that compute each run as a stream of one frame."""

    @abstractmethod
    def run_streams(self, inputs: list[list[list[np.ndarray]]]) -> list[list[list[np.ndarray]]]:
        """See Oracle.run_streams."""

    def run(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        return self.run_all([inputs])[0]

    def run_all(self, inputs: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
        return [frames[0] for frames in self.run_streams([[run] for run in inputs])]


class InterpreterOracle(_Runs):
    """Interpreter from PyPI, in a process of its own."""

    def __init__(self, kind: str, model_bytes: bytes, graph: Graph):
        require_package(_INTERPRETERS[kind])
        if FORMATS[graph.runtime] == "tflite":
            model_bytes = inside_file(model_bytes)
        self.name = kind
        self.version = version(PACKAGES[_INTERPRETERS[kind]].name)
        self.warnings: tuple[str, ...] = ()
        self._model = closed_file(model_bytes, graph) if kind == "tflm" else model_bytes
        self._layouts, zeros = graph.layouts, input_set(graph, 3, seed=0)[2]
        graph = graph if graph.layouts is None else graph.layouts.file
        self._outputs = graph.outputs
        self._last = [op for op in graph.ops if op.kind in FAMILIES and set(op.outputs) <= set(graph.outputs)]
        # CALL_ONCE runs once per interpreter, even after a reset
        self._afresh = bool(graph.states)
        self._loops = any(op.kind == "WHILE" for op in graph.ops)
        tensors = {t for op in graph.ops for t in (*op.inputs, *op.outputs) if t is not None}
        # Generous: every tensor twice (for scratch), and TFLM's own structures.
        self._arena_bytes = 2 * sum(t.bytes for t in tensors) + 2 * len(model_bytes) + (1 << 20)
        # Finds models that cannot be run; some fail only in an inference.
        self.run(zeros)

    def run_streams(self, inputs: list[list[list[np.ndarray]]]) -> list[list[list[np.ndarray]]]:
        return [
            [
                self._of_module(self._settled([self._checked(a, t) for a, t in zip(frame, self._outputs, strict=True)]))
                for frame in stream
            ]
            for stream in self._infer([[self._of_file(frame) for frame in stream] for stream in inputs], [])
        ]

    def _infer(self, inputs: list[list[list[np.ndarray]]], indexes: list[int]) -> list[list[list[np.ndarray]]]:
        """Outputs, or the tensors with these `indexes` in the file, as [stream][frame][position]."""
        try:
            return run_interpreter(
                self.name, self._model, inputs, _TIME_LIMIT, self._arena_bytes, self._afresh, indexes
            )
        except EmulationFailed as stopped:
            hint = "if a WHILE never ends, the module does not either" if self._loops else "give fewer --runs"
            raise EmulationFailed(f"{stopped} (hint: {hint})") from None
        except InterpreterFailed as failed:
            raise UsageError(f"{self.name} can't run this model: {failed}") from None

    def tensors(self, inputs: list[list[np.ndarray]], indexes: list[int]) -> list[list[np.ndarray]]:
        """Values of the tensors with these indexes in the file, computed by the interpreter, [run][position];
        intermediate tensors too."""
        return [frame for (frame,) in self._infer([[self._of_file(run)] for run in inputs], indexes)]

    def for_subgraph(self, number: int) -> InterpreterOracle:
        """Oracle of subgraph `number`, a called graph without state; its `tensors` runs that graph alone."""
        oracle = copy.copy(self)
        oracle._model, oracle._layouts = called_file(self._model, number), None
        oracle._arena_bytes = 2 * self._arena_bytes  # the graph is there twice
        return oracle

    def _of_file(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Module's inputs in the layouts of the file."""
        if self._layouts is None:
            return inputs
        return _transpose_all(inputs, [None if order is None else np.argsort(order) for order in self._layouts.inputs])

    def _of_module(self, outputs: list[np.ndarray]) -> list[np.ndarray]:
        """File's outputs in the layouts of the module."""
        return outputs if self._layouts is None else _transpose_all(outputs, self._layouts.outputs)

    def _settled(self, outputs: list[np.ndarray]) -> list[np.ndarray]:
        """Outputs with values that operators leave undefined replaced (OpFamily.settled)."""
        known = dict(zip(self._outputs, outputs, strict=True))
        for op in self._last:
            known |= zip(op.outputs, FAMILIES[op.kind].settled(op, [known[t] for t in op.outputs]), strict=True)
        return [known[t] for t in self._outputs]

    def _checked(self, array: np.ndarray, tensor: Tensor) -> np.ndarray:
        if _FORMATS.get(self.name) == "pte" and array.size == tensor.elements:
            array = array.reshape(tensor.shape)  # in the order of memory
        if array.shape != tensor.shape or array.dtype != np.dtype(tensor.dtype):
            raise UsageError(f"{self.name} computes {array.dtype}{list(array.shape)} for the output {tensor}")
        return array


class CmsisNnOracle(InterpreterOracle):
    """CMSIS-NN's C, compiled for this machine, called as an ExecuTorch program calls it (verify/executorch_c)."""

    def __init__(self, model_bytes: bytes, graph: Graph):
        """Raise ToolMissing without CMSIS-NN or a compiler; UsageError if one of them cannot be used."""
        self.name, self.warnings, self._loops = "cmsis-nn", (), False
        self._layouts = graph.layouts
        self._outputs = (graph if graph.layouts is None else graph.layouts.file).outputs
        self._last: list[Op] = []
        self._program = NativeProgram(model_bytes)
        self.version = self._program.version

    def _infer(self, inputs: list[list[list[np.ndarray]]], indexes: list[int]) -> list[list[list[np.ndarray]]]:
        if indexes:
            raise UsageError("cmsis-nn tells no values inside a network (hint: --oracle executorch)")
        found = iter(self._program.run([frame for stream in inputs for frame in stream], _TIME_LIMIT))
        return [[next(found) for _ in stream] for stream in inputs]


class PiecesOracle(_Runs):
    """TFLM, with LiteRT for the operators that it lacks (verify/pieces.py)."""

    name = "tflm"

    def __init__(self, model_bytes: bytes, graph: Graph, parts: list[tuple[str, Graph]]):
        """Raise UsageError if an interpreter cannot run its part."""
        model_bytes = inside_file(model_bytes)
        self._graph, self._parts = graph, list[tuple[Graph, InterpreterOracle]]()
        for kind, part in parts:
            data = piece_file(model_bytes, graph, part)
            self._parts.append((part, InterpreterOracle(kind, data, read_tflite(graph.path, data))))
        self.version = self._parts[0][1].version
        lacked = dict.fromkeys(op.kind for kind, part in parts if kind != "tflm" for op in part.ops)
        told = f"compared with TFLM, except operators that TFLM lacks, compared with litert: {', '.join(lacked)}"
        self.warnings: tuple[str, ...] = (told,)

    def run_streams(self, inputs: list[list[list[np.ndarray]]]) -> list[list[list[np.ndarray]]]:
        frames = [dict(zip(self._graph.inputs, frame, strict=True)) for stream in inputs for frame in stream]
        for part, oracle in self._parts:
            for frame, outputs in zip(
                frames, oracle.run_all([[frame[t] for t in part.inputs] for frame in frames]), strict=True
            ):
                frame |= zip(part.outputs, outputs, strict=True)
        found = iter([[frame[tensor] for tensor in self._graph.outputs] for frame in frames])
        return [[next(found) for _ in stream] for stream in inputs]


def _transpose_all(arrays: list[np.ndarray], orders: Sequence[Sequence[int] | Array | None]) -> list[np.ndarray]:
    """Arrays with dimensions in the given orders; unchanged for None."""
    return [
        a if order is None else np.ascontiguousarray(a.transpose(order))
        for a, order in zip(arrays, orders, strict=True)
    ]


class ReferenceOracle(_Runs):
    """Exact references of our own operator families. Agreement with them proves nothing, because they are no
    independent witness. CompileError if an operator has no reference."""

    name = "reference"
    version = tinyfuse.__version__

    def __init__(self, graph: Graph):
        check_runs_here(graph)
        self.warnings: tuple[str, ...] = ()
        self._graph = fold_constants(graph)  # references read the constants of their operators

    def run_streams(self, inputs: list[list[list[np.ndarray]]]) -> list[list[list[np.ndarray]]]:
        streams = []
        for stream in inputs:
            states = {tensor: tensor.initial_values for tensor in self._graph.states}
            streams.append([run_graph(FAMILIES, self._graph, frame, states) for frame in stream])
        return streams
