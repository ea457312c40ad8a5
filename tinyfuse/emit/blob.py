"""Weights in a file of their own (--weights-blob), which NAME_bind checks and NAME.c reads by offset.

    offset  bytes  little-endian
    0       4      "TFWB".
    4       4      version of this format.
    8       4      bytes of the whole file.
    12      4      CRC-32 (zlib's) of all bytes from 16 on.
    16      32     SHA-256 of the code that reads it.
    48      32     SHA-256 of the model file; NAME_bind ignores it.
    80      16     version of tinyfuse, padded with zeros; NAME_bind ignores it.
    96             the arrays, each at its alignment.

The digest of the code leaves out comments, names of tensors, and the names of the model and of tinyfuse's version. A
model that was trained further has the same code and another blob if its shapes and the quantization of its activations
did not change, so one firmware accepts the weights of both.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tinyfuse import __version__
from tinyfuse.emit.weights import WeightArray

MAGIC, FORMAT = b"TFWB", 1
#: alignment of a blob in memory; no array needs more
BLOB_ALIGN = 16
CHECKED_FROM, CODE_AT, CODE_BYTES = 16, 16, 32
_HEADER = struct.Struct("<4sIII32s32s16s")

#: strings (group 1, kept) and comments
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|/\*.*?\*/', re.DOTALL)
_ABOUT = re.compile(r"^#define \w+_(?:TINYFUSE_VERSION|MODEL_SHA256) .*$", re.MULTILINE)


@dataclass(frozen=True)
class Blob:
    """Values that the templates print of a blob.

    offsets  array's symbol -> its offset in the file
    bytes    size of the file
    code     digest of the code as lines of a C initializer

    The other fields are constants of the format.
    """

    offsets: Mapping[str, int]
    bytes: int
    code: tuple[str, ...]
    format: int = FORMAT
    align: int = BLOB_ALIGN
    checked_from: int = CHECKED_FROM
    code_at: int = CODE_AT
    code_bytes: int = CODE_BYTES


def make_blob(arrays: Iterable[WeightArray], code: bytes = bytes(CODE_BYTES)) -> Blob:
    """Lays out a blob of these arrays in order. `code` is the result of `code_digest`."""
    offsets, position = {}, _HEADER.size
    for array in arrays:
        position = -(-position // array.align) * array.align
        offsets[array.symbol] = position
        position += array.bytes
    return Blob(offsets, position, hex_rows(code))


def hex_rows(data: bytes) -> tuple[str, ...]:
    """Lines of a C initializer with 16 bytes each."""
    return tuple(", ".join(f"0x{byte:02X}u" for byte in data[i : i + 16]) for i in range(0, len(data), 16))


def code_digest(texts: Iterable[str]) -> bytes:
    """SHA-256 of the module's C files, whose texts hold no weights and no details of a blob."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(_ABOUT.sub("", _COMMENT.sub(lambda found: found[1] or " ", text)).encode() + b"\0")
    return digest.digest()


def blob_bytes(arrays: Iterable[WeightArray], blob: Blob, code: bytes, model_sha256: str) -> bytes:
    """Content of NAME_weights.bin. `blob` is the layout of `arrays`, `code` the result of `code_digest`."""
    data = bytearray(blob.bytes)
    for array in arrays:
        offset = blob.offsets[array.symbol]
        data[offset : offset + array.bytes] = array.data.tobytes()
    version = __version__.encode()[:16]
    data[: _HEADER.size] = _HEADER.pack(MAGIC, FORMAT, blob.bytes, 0, code, bytes.fromhex(model_sha256), version)
    crc = zlib.crc32(data[CHECKED_FROM:])
    data[12:16] = struct.pack("<I", crc)
    return bytes(data)
