"""Samples in .npy and .npz files. Nothing is unpickled, and no file is in memory as a whole."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from tinyfuse.data.inputs import InputSpec
from tinyfuse.data.sources import Source, check_bytes, check_dtype, divide
from tinyfuse.errors import UsageError
from tinyfuse.ir import Array

#: bytes of a .npz file's list of members: zipfile makes an object for each
_MAX_DIRECTORY = 1 << 20
#: signature of the record that ends a zip file, and the most bytes from there to the file's end
_END, _END_BYTES = b"PK\x05\x06", (1 << 16) + 22
#: exceptions that damaged files raise
BAD_ARRAY = (
    *(OSError, ValueError, EOFError, OverflowError, TypeError, RuntimeError, NotImplementedError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, SyntaxError, tokenize.TokenError),
)


@dataclass(frozen=True)
class Header:
    """Header of an array in a file; `fortran`: the first dimension varies fastest."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[np.generic]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class NpySource(Source):
    """A .npy file. It is mapped anew for each piece, so that memory that was read is released.

    sample   shape of one sample as it lies in the array
    """

    header: Header
    sample: tuple[int, ...]

    def pieces(self, size: int) -> Iterator[Array]:
        for start in range(0, self.count, size):
            try:
                mapped = np.load(self.path, mmap_mode="r", allow_pickle=False)
            except BAD_ARRAY as error:
                raise UsageError(f"{self.path}: {first_line(error)}") from None
            if mapped.shape != self.header.shape or mapped.dtype != self.header.dtype:
                raise UsageError(f"{self.path}: the file changed while it was read")
            yield np.array(mapped[None] if self.sample == mapped.shape else mapped[start : start + size])


@dataclass(frozen=True)
class NpzSource(Source):
    """Source of the array `member` of a .npz file, read from beginning to end; `sample` as in NpySource."""

    member: str
    header: Header
    sample: tuple[int, ...]

    def pieces(self, size: int) -> Iterator[Array]:
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as file:
                header = read_header(file)
                if header != self.header:
                    raise UsageError(f"{self.path}: the file changed while it was read")
                item = math.prod(self.sample) * header.dtype.itemsize
                for start in range(0, self.count, size):
                    taken = min(size, self.count - start)
                    data = file.read(taken * item)
                    if len(data) != taken * item:
                        raise UsageError(f"{self.path}: the array {self.member!r} ends early")
                    yield np.frombuffer(data, header.dtype).reshape(taken, *self.sample)
        except BAD_ARRAY as error:
            raise UsageError(f"{self.path}: {first_line(error)}") from None


@dataclass(frozen=True, eq=False)
class MemorySource(Source):
    """Source of samples in an array that the caller passes; `sample` as in NpySource."""

    array: Array
    sample: tuple[int, ...]

    def pieces(self, size: int) -> Iterator[Array]:
        array = self.array[None] if self.sample == self.array.shape else self.array
        for start in range(0, self.count, size):
            yield array[start : start + size]


def memory_source(name: str, array: Array, spec: InputSpec, streams: bool) -> MemorySource:
    """Source of the samples in an array, which messages call `name`. UsageError if it does not fit the input."""
    check_dtype(name, array.dtype)
    found = divide(name, array.shape, spec, streams)
    return MemorySource(name, found.count, found.frames, array.dtype, False, array, found.sample)


def npy_source(path: str, spec: InputSpec, streams: bool) -> NpySource:
    """Source of the samples of a .npy file. UsageError if it is no .npy file, is damaged, or does not fit the input."""
    header = npy_header(path)
    found = divide(path, header.shape, spec, streams)
    check_bytes(path, spec, found.frames, header.dtype)
    return NpySource(path, found.count, found.frames, header.dtype, False, header, found.sample)


def npy_header(path: str) -> Header:
    """Header of a .npy file, after checking that the file holds all its numbers. UsageError if it does not, or is no
    .npy file of numbers."""
    try:
        with open(path, "rb") as file:
            if file.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
                raise UsageError(f"{path} is not a .npy file; numpy.save writes one")
            file.seek(0)
            header = read_header(file)
            held = Path(path).stat().st_size - file.tell()
    except BAD_ARRAY as error:
        raise UsageError(f"{path} is not a .npy file of numbers: {first_line(error)}") from None
    _check_header(path, header, held)
    return header


def npz_sources(path: str, by_name: Mapping[str, InputSpec], streams: bool) -> dict[InputSpec, NpzSource]:
    """Sources of the arrays of a .npz file, by the input that each is for. `by_name`: the inputs under all their names.
    A single array may have any name if there is only one input."""
    found: dict[InputSpec, NpzSource] = {}
    for name, member, header in _members(path):
        told = f"{path}: the array {name!r}"
        specs = set(by_name.values())
        spec = by_name.get(name, next(iter(specs)) if len(specs) == 1 and name in ("arr_0", "x", "X", "data") else None)
        if spec is None:
            known = ", ".join(sorted({s.symbol for s in specs}))
            raise UsageError(f"{told} is of no input; the model's are {known}")
        if spec in found:
            raise UsageError(f"{told}: the input {spec.name!r} is given twice")
        if header.fortran and len(header.shape) > 1:
            raise UsageError(f"{told} is in column-major order: save numpy.ascontiguousarray of it")
        division = divide(told, header.shape, spec, streams)
        check_bytes(told, spec, division.frames, header.dtype)
        found[spec] = NpzSource(
            path, division.count, division.frames, header.dtype, False, member, header, division.sample
        )
    return found


def _members(path: str) -> list[tuple[str, str, Header]]:
    """Name, member and header of each array of a .npz file."""
    found = []
    try:
        _check_directory(path)
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.filename.endswith(".npy"):
                    raise UsageError(f"{path}: {info.filename!r} in it is not an array")
                with archive.open(info) as file:
                    header = read_header(file)
                    held = info.file_size - file.tell()
                _check_header(f"{path}: the array {info.filename[:-4]!r}", header, held)
                found.append((info.filename[:-4], info.filename, header))
    except BAD_ARRAY as error:
        raise UsageError(f"{path} is not a .npz file of numbers: {first_line(error)}") from None
    return found


def _check_directory(path: str) -> None:
    """Raise UsageError for a zip file with a list of members that is too long to read."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _END_BYTES))
        tail = file.read(_END_BYTES)
    at = tail.rfind(_END)
    if at >= 0 and int.from_bytes(tail[at + 12 : at + 16], "little") > _MAX_DIRECTORY:
        raise UsageError(f"{path}: too many files in it")


def read_header(file: IO[bytes]) -> Header:
    """Header of an array in a file, up to its numbers. ValueError if the bytes are not a header."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"its format has version {version[0]}.{version[1]}, not 1.0 or 2.0")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    return Header(tuple(shape), bool(fortran), dtype)


def _check_header(path: str, header: Header, held: int) -> None:
    """Raise UsageError if the file holds fewer bytes than the header says, or if its elements are not numbers."""
    if header.dtype.hasobject:
        raise UsageError(f"{path} holds Python objects, which are not loaded: save an array of numbers")
    check_dtype(path, header.dtype)
    if any(dim < 0 for dim in header.shape) or header.bytes > held:
        raise UsageError(f"{path}: the file ends before its array of shape {list(header.shape)} does")


def first_line(error: BaseException) -> str:
    """The first line of an error of numpy or the system."""
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]
