"""Sources of samples for one input, and the division of arrays into samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinyfuse.data.inputs import InputSpec
from tinyfuse.errors import UsageError
from tinyfuse.ir import Array


@dataclass(frozen=True)
class Source(ABC):
    """Samples of one input in a file or folder.

    path     as the user named it
    count    number of samples
    frames   inferences of each sample, where the data have a dimension of frames; else None
    dtype    of the numbers as they lie there
    pixels   whether they are brightness, from 0 to 255
    """

    path: str
    count: int
    frames: int | None
    dtype: np.dtype[np.generic]
    pixels: bool

    @abstractmethod
    def pieces(self, size: int) -> Iterator[Array]:
        """The samples in order: arrays [n, ...] of at most `size` samples each."""


@dataclass(frozen=True)
class Division:
    """Division of an array into `count` samples of the shape `sample`, each of `frames` inferences (None: one
    inference)."""

    count: int
    sample: tuple[int, ...]
    frames: int | None = None


def divide(path: str, shape: tuple[int, ...], spec: InputSpec, streams: bool) -> Division:
    """Divides an array of the given shape into samples of an input.

    The array's first dimension counts the samples, unless the array is one sample. Dimensions of size 1 may be missing
    or additional, and a sample may be flat. With `streams` a second dimension may count the frames of each sample.
    UsageError where the shape does not fit.
    """
    wanted = (_squeezed(spec.shape), (spec.elements,))
    if shape and _squeezed(shape[1:]) in wanted:
        return Division(shape[0], shape[1:])
    if _squeezed(shape) in wanted:
        return Division(1, shape)
    if streams and len(shape) > 1 and _squeezed(shape[2:]) in wanted:
        return Division(shape[0], shape[1:], shape[1])
    inner = spec.shape[1:] if spec.shape[:1] == (1,) and len(spec.shape) > 1 else spec.shape
    frames = "frames, " if streams else ""
    form = f"[samples, {', '.join(map(str, inner))}]"
    also = f" or {form.replace('samples, ', 'samples, frames, ')}" if frames else ""
    raise UsageError(
        f"{path}: the input {spec.name!r} has the shape {list(spec.shape)}, but the array has {list(shape)}; "
        f"give {form}{also}{_transposed(shape, spec)}"
    )


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dim for dim in shape if dim != 1)


def _transposed(shape: tuple[int, ...], spec: InputSpec) -> str:
    """Advice if the array has channels first where the input has them last, or the other way round; otherwise empty."""
    if len(shape) == 4 and len(spec.shape) == 4:
        if (*shape[2:], shape[1]) == spec.shape[1:]:
            return "; channels come last here: numpy.moveaxis(array, 1, -1)"
        if (shape[3], *shape[1:3]) == spec.shape[1:]:
            return "; channels come first here: numpy.moveaxis(array, -1, 1)"
    return ""


def check_dtype(path: str, dtype: np.dtype[np.generic]) -> None:
    """Raise UsageError for a dtype that is not a plain number."""
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise UsageError(f"{path}: an array of {dtype}; give integers or floats of at most 64 bits")


def check_bytes(path: str, spec: InputSpec, frames: int | None, dtype: np.dtype[np.generic]) -> None:
    """Raise UsageError if one sample would not fit into memory."""
    size = spec.elements * (frames or 1) * dtype.itemsize
    if size > MAX_SAMPLE_BYTES:
        raise UsageError(f"{path}: one sample has {size:,} bytes, more than {MAX_SAMPLE_BYTES:,}: give fewer frames")


#: bytes of one sample with its frames, as it lies in a file
MAX_SAMPLE_BYTES = 1 << 28


def rechunk(pieces: Iterable[Array], size: int) -> Iterator[Array]:
    """Arrays of `size` samples each, the last may have fewer, from arrays of any number of them."""
    waiting: list[Array] = []
    held = 0
    for piece in pieces:
        while len(piece):
            taken, piece = piece[: size - held], piece[size - held :]
            waiting.append(taken)
            held += len(taken)
            if held == size:
                yield waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
                waiting, held = [], 0
    if waiting:
        yield waiting[0] if len(waiting) == 1 else np.concatenate(waiting)


def is_file(path: str) -> bool:
    """Tell whether a path names a regular file, not a folder. UsageError where there is nothing, a device or a pipe."""
    try:
        place = Path(path)
        if not place.exists():
            raise UsageError(f"{path}: there is no such file")
        if place.is_dir():
            return False
        if not place.is_file():
            raise UsageError(f"{path}: not a regular file")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UsageError(f"{path!r} can't be read: {getattr(error, 'strerror', None) or error}") from None
    return True
