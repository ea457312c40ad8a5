"""Reads a model file of any supported format into a Graph."""

from __future__ import annotations

import os

from tinyfuse.errors import CompileError, Problem
from tinyfuse.frontend.executorch.graph import read_executorch
from tinyfuse.frontend.executorch.kinds import KINDS as CALLS
from tinyfuse.frontend.file_formats import is_executorch, is_onnx
from tinyfuse.frontend.onnx.conversions import KINDS
from tinyfuse.frontend.onnx.graph import read_onnx
from tinyfuse.frontend.reader import MAX_FILE_BYTES, load_file, read_tflite
from tinyfuse.frontend.tensors import HINT_SMALLER
from tinyfuse.ir import Graph


def read_model(path: str | os.PathLike[str], data: bytes | None = None) -> Graph:
    """Read a .tflite, .onnx or .pte file into a graph.

    Reads from `data`, when given; then `path` is for messages, and the folder of external data.

    The format is recognized by the contents. Raises CompileError with every fault that could be found.
    """
    name = os.fspath(path)
    data = load_file(name) if data is None else bytes(data)
    if not is_onnx(name, data) and not is_executorch(data):
        return read_tflite(name, data)
    if len(data) > MAX_FILE_BYTES:
        raise CompileError(name, Problem(f"the file has more than {MAX_FILE_BYTES:,} bytes", hint=HINT_SMALLER))
    if is_executorch(data):
        return read_executorch(name, data, CALLS)
    return read_onnx(name, data, KINDS)
