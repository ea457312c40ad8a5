"""Names of classes for a model's outputs: of text files, or of the metadata that a .tflite file may have.

The metadata (TensorFlow Lite Support, metadata_schema.fbs) is a FlatBuffer inside a buffer of the file. For each output
it names files with one label per line, in a zip archive that is appended to the model. A file that is sound as a model
may have hostile metadata: all sizes are bounded, and metadata that can't be read causes a warning, not an error.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Sequence

import numpy as np

from tinyfuse.errors import UsageError
from tinyfuse.frontend.file_formats import irregular
from tinyfuse.frontend.flatbuffer_check import Damaged, TooLarge, check_flatbuffer
from tinyfuse.frontend.flatbuffer_table import Table, root
from tinyfuse.ir import Graph, Tensor, quoted

#: labels of each output, in the model's order; empty where there are none
Labels = tuple[tuple[str, ...], ...]

#: most bytes of a label and of a label file; most labels in a file
MAX_LABEL, MAX_FILE, MAX_LABELS = 1000, 1 << 20, 1 << 16

_NAME, _ROOT = b"TFLITE_METADATA", "ModelMetadata"
#: AssociatedFileType of axis labels and of value labels; the first file found counts
_TYPES = (2, 3)
#: most files in an archive, and the four bytes in front of each directory entry
_MOST_FILES, _ENTRY = 1000, b"PK\x01\x02"
#: exceptions of zipfile and zlib for damaged, encrypted or hostile archives
_BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError, KeyError, struct.error)


def labels_of(graph: Graph, data: bytes, files: Sequence[str] = ()) -> tuple[Labels, tuple[str, ...]]:
    """Return the labels of a graph's outputs, and warnings.

    Labels come from `files`, the first for the first output, else from the metadata in `data`, the file that the graph
    was read from. Raises UsageError if one of `files` has no labels, or not one for each element of its output's last
    dimension.
    """
    if len(files) > len(graph.outputs):
        count = len(graph.outputs)
        raise UsageError(
            f"--labels: {len(files)} files for {count} output{'s' if count > 1 else ''}; give one for each"
        )
    found = _of_metadata(data, len(graph.outputs) - len(files), len(files))
    given = [_given(path, tensor) for path, tensor in zip(files, graph.outputs, strict=False)]
    labels = (*given, *(each if isinstance(each, tuple) else () for each in found))
    warnings = [_unreadable(graph, i, each) for i, each in enumerate(found, len(files)) if isinstance(each, str)]
    return (labels if any(labels) else ()), tuple(warnings)


def _unreadable(graph: Graph, output: int, why: str) -> str:
    name = quoted(graph.outputs[output].name)
    return f"the labels of output {name} in the model's metadata are left out: {why}; --labels FILE gives others"


# --- text ----------------------------------------------------------------------------------------


def _given(path: str, output: Tensor) -> tuple[str, ...]:
    """Return the labels in a user's file: one for each element of the output's last dimension."""
    found = label_lines(path)
    last = output.shape[-1] if output.shape else 1
    if len(found) != last:
        raise UsageError(
            f"--labels {path}: {len(found)} labels for {output}, whose last dimension is {last}; write one per line"
        )
    return found


def label_lines(path: str, option: str = "--labels") -> tuple[str, ...]:
    """Return the names in a file of an option, one per line. Raises UsageError if it has none or can't be read."""
    try:
        wrong = irregular(path)
        if wrong is not None:
            raise UsageError(f"{option} {path}: {wrong.message}")
        with open(path, "rb") as file:
            return _lines(file.read(MAX_FILE + 1))
    except Damaged as damaged:
        raise UsageError(f"{option} {path}: {damaged}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{option} {path}: the file can't be read: {reason}") from None


def _lines(data: bytes) -> tuple[str, ...]:
    """Split a file's bytes into labels, one per line, without empty lines at its end. Raises Damaged."""
    if len(data) > MAX_FILE:
        raise Damaged(f"it has more than {MAX_FILE:,} bytes")
    try:
        lines = data.decode("utf-8-sig").rstrip("\r\n").split("\n")
    except UnicodeDecodeError as error:
        raise Damaged(f"it is not UTF-8 text, at byte {error.start}") from None
    labels = tuple(line.removesuffix("\r") for line in lines)
    if not any(labels):
        raise Damaged("it has no labels: write one per line")
    if len(labels) > MAX_LABELS:
        raise Damaged(f"it has more than {MAX_LABELS:,} lines")
    for number, label in enumerate(labels, 1):
        if "\0" in label:
            raise Damaged(f"line {number} has a NUL in it")
        if len(label.encode()) > MAX_LABEL:
            raise Damaged(f"line {number} has more than {MAX_LABEL:,} bytes")
    return labels


# --- metadata ------------------------------------------------------------------------------------


def _of_metadata(data: bytes, count: int, first: int) -> list[tuple[str, ...] | str]:
    """Return, for `count` outputs from output `first` on, the labels in the metadata, (), or a message why they
    can't be read."""
    nothing: list[tuple[str, ...] | str] = [()] * count
    if _NAME not in data or not count:
        return nothing
    try:
        outputs = _described(data)
    except (Damaged, TooLarge) as wrong:
        return [f"the metadata are damaged: {wrong}", *nothing[1:]]
    budget, found = MAX_FILE, nothing
    for i, output in enumerate(outputs[first : first + count]):
        name = _label_file(output)
        if name is None:
            continue
        try:
            text = _unpacked(data, name, budget)
            budget -= len(text)
            found[i] = _lines(text)
        except Damaged as damaged:
            found[i] = f"file {name!a}: {damaged}"
    return found


def _described(data: bytes) -> list[Table]:
    """Return the metadata tables of the first graph's outputs, after checking the metadata."""
    model = root(data)
    buffers = model["buffers"]
    for entry in model["metadata"]:
        if entry["name"] == _NAME and entry["buffer"] < len(buffers):
            inner: np.ndarray = buffers[entry["buffer"]]["data"]
            check_flatbuffer(inner.tobytes(), _ROOT)
            graphs = root(inner.tobytes(), _ROOT)["subgraph_metadata"]
            return list(graphs[0]["output_tensor_metadata"]) if graphs else []
    return []


def _label_file(output: Table) -> str | None:
    """Return the name of an output's label file; among several, the one without a language."""
    files = [file for kind in _TYPES for file in output["associated_files"] if file["type"] == kind]
    files.sort(key=lambda file: len(file["locale"]) > 0)
    return files[0]["name"].decode("utf-8", "replace") if files else None


def _unpacked(data: bytes, name: str, most: int) -> bytes:
    """Return a file of the archive behind the model, if it has at most `most` bytes. Raises Damaged."""
    if data.count(_ENTRY) > _MOST_FILES:  # counted first: zipfile makes an object for each entry
        raise Damaged(f"the archive behind the model has more than {_MOST_FILES} files")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entry = archive.getinfo(name)
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise Damaged("it is packed in a way that is not supported: use deflate")
            with archive.open(entry) as file:
                text = file.read(most + 1)
    except _BAD_ARCHIVE as error:
        what = (
            "it is not there" if isinstance(error, KeyError) else f"the archive behind the model is damaged ({error})"
        )
        raise Damaged(what) from None
    if len(text) > most:
        raise Damaged(f"labels are more than {MAX_FILE:,} bytes in all")
    return text
