"""The weights in a file of their own (--weights-blob), which NAME_bind checks and NAME.c reads by offset.

    offset  bytes  little-endian
    0       4      "TFWB"
    4       4      version of this format
    8       4      bytes of the whole file
    12      4      CRC-32 (as zlib's) of what follows
    16      32     SHA-256 of the code that reads it
    48      32     SHA-256 of the model file, for people: NAME_bind doesn't look at it
    80      16     version of tinyfuse, padded with zeros; likewise
    96             the arrays, each at its alignment

What the code is, is its text without comments, names of tensors in them, and without what names the model and the tool:
a model that was trained further has another blob and the same code where its shapes and the quantization of its
activations are the same, so that one firmware takes the weights of both.
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
#: of the start of a blob in memory: no array asks for more
BLOB_ALIGN = 16
CHECKED_FROM, CODE_AT, CODE_BYTES = 16, 16, 32
_HEADER = struct.Struct("<4sIII32s32s16s")

#: strings are kept, comments and the two lines of the header that name model and tool are not
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|/\*.*?\*/', re.DOTALL)
_ABOUT = re.compile(r"^#define \w+_(?:TINYFUSE_VERSION|MODEL_SHA256) .*$", re.MULTILINE)


@dataclass(frozen=True)
class Blob:
    """What the templates print of it: `offsets` of the arrays by their symbols, `bytes` of the whole, and the digest of
    the code as C, a line a row; then what is the same for all."""

    offsets: Mapping[str, int]
    bytes: int
    code: tuple[str, ...]
    format: int = FORMAT
    align: int = BLOB_ALIGN
    checked_from: int = CHECKED_FROM
    code_at: int = CODE_AT
    code_bytes: int = CODE_BYTES


def make_blob(arrays: Iterable[WeightArray], code: bytes = bytes(CODE_BYTES)) -> Blob:
    """The blob of these arrays, one after the other. `code`: of `code_digest`."""
    offsets, position = {}, _HEADER.size
    for array in arrays:
        position = -(-position // array.align) * array.align
        offsets[array.symbol] = position
        position += array.bytes
    return Blob(offsets, position, hex_rows(code))


def hex_rows(data: bytes) -> tuple[str, ...]:
    """Bytes as C, a line a row of 16."""
    return tuple(", ".join(f"0x{byte:02X}u" for byte in data[i : i + 16]) for i in range(0, len(data), 16))


def code_digest(texts: Iterable[str]) -> bytes:
    """SHA-256 of the module's files of C, but its weights and what a blob of it would know of the code."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(_ABOUT.sub("", _COMMENT.sub(lambda found: found[1] or " ", text)).encode() + b"\0")
    return digest.digest()


def blob_bytes(arrays: Iterable[WeightArray], blob: Blob, code: bytes, model_sha256: str) -> bytes:
    """The file of the arrays that `blob` was made of. `code`: of `code_digest`."""
    data = bytearray(blob.bytes)
    for array in arrays:
        offset = blob.offsets[array.symbol]
        data[offset : offset + array.bytes] = array.data.tobytes()
    version = __version__.encode()[:16]
    data[: _HEADER.size] = _HEADER.pack(MAGIC, FORMAT, blob.bytes, 0, code, bytes.fromhex(model_sha256), version)
    crc = zlib.crc32(data[CHECKED_FROM:])
    data[12:16] = struct.pack("<I", crc)
    return bytes(data)
