"""Moves constants that lie after a file's flatbuffer into it.

Files of more than 2 GB must store constants there, and some writers do so in smaller files. TensorFlow Lite Micro does
not read that place, and offsets count from the file's first byte, so that a file inside another one would lose its
constants.
"""

from __future__ import annotations

from tinyfuse.frontend.file_around import FileAround
from tinyfuse.frontend.flatbuffer_table import Table, root


def inside_file(data: bytes) -> bytes:
    """Return a model file like the sound file `data` with all its constants in buffers; `data` itself if they are."""
    buffers: list[Table] = root(data)["buffers"]
    if not any(_lies_outside(buffer) for buffer in buffers):
        return data
    file = FileAround(data)
    written = [
        file.table("Buffer", data=file.data(data[buffer["offset"] : buffer["offset"] + buffer["size"]]))
        if _lies_outside(buffer)
        else file.kept([buffer])[0]
        for buffer in buffers
    ]
    model = root(data)
    others = {name: file.tables(file.kept(model[name])) for name in ("operator_codes", "subgraphs", "metadata")}
    return file.finished(file.table("Model", version=3, buffers=file.tables(written), **others))


def _lies_outside(buffer: Table) -> bool:
    """Tell whether a buffer's content lies after the flatbuffer; the schema defines offsets 0 and 1 as unset."""
    return not len(buffer["data"]) and buffer["offset"] > 1 and buffer["size"] > 0
