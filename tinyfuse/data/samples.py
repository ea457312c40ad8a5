"""Data sets for the inputs of a model, opened without reading them, and read in batches."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from tinyfuse.data.arrays import memory_source, npy_source, npz_sources
from tinyfuse.data.doubts import range_doubts
from tinyfuse.data.folders import folder_source
from tinyfuse.data.inputs import InputSpec, ValueRange, real_values, saturated_count, stored_values
from tinyfuse.data.media import PICTURES, SOUNDS, picture, sound
from tinyfuse.data.sources import Source, is_file, rechunk
from tinyfuse.data.text import csv_source
from tinyfuse.errors import UsageError
from tinyfuse.ir import Array

#: bytes of a batch of usual size, as the model's inputs store it
BATCH_BYTES = 1 << 23
#: samples whose ranges are looked at for `Samples.doubts`
_LOOKED_AT = 256


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive samples of a data set.

    start   number of the first sample
    count   number of samples
    """

    start: int
    count: int
    _inputs: tuple[InputSpec, ...]
    _arrays: tuple[Array, ...]
    _values: ValueRange | None

    @cached_property
    def stored(self) -> dict[str, Array]:
        """Values as the model stores them, by input name: [count, *shape] of the input's dtype, or [count, frames,
        *shape] if the data have frames. UsageError if a number does not fit the input."""
        return {
            spec.name: np.ascontiguousarray(stored_values(spec, array, self._values)) for spec, array in self._columns
        }

    @cached_property
    def real(self) -> dict[str, Array]:
        """Real numbers of the samples by input name: float32 in the shape of `stored`."""
        return {
            spec.name: np.ascontiguousarray(real_values(spec, array, self._values)) for spec, array in self._columns
        }

    @property
    def saturated(self) -> int:
        """Number of real numbers that became the smallest or largest value of their input."""
        return sum(
            saturated_count(spec, array if self._values is None else real_values(spec, array, self._values))
            for spec, array in self._columns
        )

    @property
    def _columns(self) -> Iterator[tuple[InputSpec, Array]]:
        return zip(self._inputs, self._arrays, strict=True)


@dataclass(frozen=True, eq=False)
class Samples:
    """A data set for all inputs of a model.

    inputs   in the model's order
    sources  one per input
    values   real numbers that 0 and 255 of unsigned bytes stand for; None: they are stored values
    """

    inputs: tuple[InputSpec, ...]
    sources: tuple[Source, ...]
    values: ValueRange | None = None

    def __len__(self) -> int:
        return self.sources[0].count

    @property
    def frames(self) -> int | None:
        """Inferences of each sample, where the data have a dimension of frames; else None."""
        return self.sources[0].frames

    @property
    def batch_size(self) -> int:
        """Number of samples in a batch."""
        sample = sum(
            spec.elements * max(4, source.dtype.itemsize)
            for spec, source in zip(self.inputs, self.sources, strict=True)
        )
        return max(1, BATCH_BYTES // (sample * (self.frames or 1)))

    def batches(self, size: int | None = None, limit: int | None = None) -> Iterator[Batch]:
        """Yields the samples in order, `size` in a batch (None: a suitable number), at most `limit` in all.

        UsageError, with the number of the sample, for NaN and infinity.
        """
        size, most = size or self.batch_size, len(self) if limit is None else min(limit, len(self))
        streams = [rechunk(source.pieces(size), size) for source in self.sources]
        start = 0
        while start < most:
            arrays = []
            for stream, spec, source in zip(streams, self.inputs, self.sources, strict=True):
                array = next(stream)[: most - start]
                frames = () if source.frames is None else (source.frames,)
                array = array.reshape(len(array), *frames, *spec.shape)
                _check_finite(spec, array, start)
                arrays.append(_stored_pixels(array) if self._subtracts(spec, source) else array)
            count = len(arrays[0])
            yield Batch(start, count, self.inputs, tuple(arrays), self.values)
            start += count

    def doubts(self) -> tuple[str, ...]:
        """A sentence for each input whose first samples have values that do not suit it."""
        batch = next(self.batches(limit=_LOOKED_AT))
        return tuple(
            doubt
            for spec, source in zip(self.inputs, self.sources, strict=True)
            if (doubt := range_doubts(spec, batch.real[spec.name], source.dtype)) is not None
        )

    def _subtracts(self, spec: InputSpec, source: Source) -> bool:
        """True where pixels become int8 by subtracting 128: 0 to 255 are the input's whole range."""
        return source.pixels and self.values is None and spec.dtype == "int8"


#: a file or folder of data, or an array
Data = str | os.PathLike[str] | Array
#: data for all inputs of a model
AllData = Data | Sequence[str] | Mapping[str, Data]


def open_samples(
    paths: AllData,
    inputs: Sequence[InputSpec],
    *,
    streams: bool = False,
    values: ValueRange | None = None,
) -> Samples:
    """Opens the samples of files for all inputs of a model. It reads only headers, except for .csv files, which it
    reads as a whole.

    paths    one for a model with one input; else "NAME=PATH" for each, a mapping of names to paths, or a .npz file.
             An array may replace a path. Messages then have no name for it.
             A path is a .npy, .npz or .csv file, a picture, a sound, or a folder of such files, which are taken in the
             order of their names. A name is the tensor's, or that in the C API
    streams  whether data may have a dimension of frames behind that of the samples
    values   real numbers that 0 and 255 of unsigned bytes stand for. None: bytes are stored values, and pixels of
             pictures are from the smallest to the largest value of an int8 input

    UsageError where a file is missing, damaged, or does not fit; where inputs have different numbers of samples, or
    none. ToolMissing without Pillow or soundfile where they are needed.
    """
    if not inputs:
        raise UsageError("the model has no inputs: there is nothing to read data for")
    by_name = {name: spec for spec in reversed(inputs) for name in (spec.name, spec.symbol)}
    found: dict[InputSpec, Source] = {}
    for name, path in _named(paths, by_name):
        for spec, source in _sources(name, path, by_name, inputs, streams).items():
            if spec in found:
                raise UsageError(f"{_told(path)}: the input {spec.name!r} is given twice")
            found[spec] = source
    expected = ", ".join(map(str, inputs))
    missing = [spec.symbol for spec in inputs if spec not in found]
    if missing:
        raise UsageError(f"no data for {', '.join(missing)}; the model's inputs are {expected}")
    samples = Samples(tuple(inputs), tuple(found[spec] for spec in inputs), values)
    _check_together(samples)
    return samples


def _named(paths: AllData, names: Collection[str]) -> Iterator[tuple[str | None, str | Array]]:
    """(name, None where none was given; path or array) of each path."""
    if isinstance(paths, np.ndarray):
        yield None, paths
        return
    if isinstance(paths, Mapping):
        for name, data in paths.items():
            yield name, data if isinstance(data, np.ndarray) else os.fspath(data)
        return
    for path in [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else map(os.fspath, paths):
        before, equals, after = path.partition("=")
        # a path may hold "=" too
        is_named = equals and (before in names or not os.path.lexists(path))
        yield (before, after) if is_named else (None, path)


def _told(data: str | Array) -> str:
    """Name of a path or an array in messages."""
    return "data" if isinstance(data, np.ndarray) else data


def _sources(
    name: str | None, path: str | Array, by_name: Mapping[str, InputSpec], inputs: Sequence[InputSpec], streams: bool
) -> dict[InputSpec, Source]:
    """Sources of the samples of one path, by input."""
    expected = ", ".join(map(str, inputs))
    if name is not None and name not in by_name:
        raise UsageError(f"{_told(path)}: the model has no input {name!r}; its inputs are {expected}")
    if not isinstance(path, np.ndarray) and is_file(path) and Path(path).suffix.lower() == ".npz":
        given = by_name if name is None else {name: by_name[name]}
        return dict(npz_sources(path, given, streams))
    if name is None and len(inputs) > 1:
        raise UsageError(f"{_told(path)}: write NAME=FILE with the input's name; the inputs are {expected}")
    spec = inputs[0] if name is None else by_name[name]
    if isinstance(path, np.ndarray):
        return {spec: memory_source("data" if name is None else f"data[{name!r}]", path, spec, streams)}
    if is_file(path):
        return {spec: _file_source(path, spec, streams)}
    return {spec: folder_source(path, lambda file: _file_source(file, spec, streams))}


def _file_source(path: str, spec: InputSpec, streams: bool) -> Source:
    """Source of the samples in one file; the name's ending tells its format. UsageError for an unknown ending."""
    is_file(path)
    ending = Path(path).suffix.lower()
    if ending == ".npy":
        return npy_source(path, spec, streams)
    if ending == ".csv":
        return csv_source(path, spec)
    if ending in PICTURES:
        return picture(path, spec)
    if ending in SOUNDS:
        return sound(path, spec, streams)
    if ending == ".npz":
        (source,) = npz_sources(path, {spec.name: spec, spec.symbol: spec}, streams).values()
        return source
    known = ", ".join((".npy", ".npz", ".csv", *PICTURES, *SOUNDS))
    raise UsageError(f"{path}: unknown kind of data; a file's name must end in {known}")


def _check_together(samples: Samples) -> None:
    """Raise UsageError if the inputs' data differ in their numbers of samples or frames, if one has no samples, or if
    the meaning of its pixels is unknown."""
    counts = {source.count for source in samples.sources}
    frames = {source.frames for source in samples.sources}
    if len(counts) > 1 or len(frames) > 1:
        told = ", ".join(
            f"{spec.name!r}: {source.count}" + (f" of {source.frames} frames" if source.frames else "")
            for spec, source in zip(samples.inputs, samples.sources, strict=True)
        )
        raise UsageError(f"the inputs have different numbers of samples ({told})")
    for spec, source in zip(samples.inputs, samples.sources, strict=True):
        if source.count == 0 or source.frames == 0:
            raise UsageError(f"{source.path}: there are no samples in it")
        if source.pixels and samples.values is None and spec.dtype not in ("int8", "uint8", "float32"):
            raise UsageError(
                f"{source.path}: for an input of {spec.dtype} say with --values 0,1 what the pixels 0 and 255 mean"
            )


def _check_finite(spec: InputSpec, array: Array, start: int) -> None:
    if array.dtype.kind != "f":
        return
    finite = np.isfinite(array)
    if finite.all():
        return
    place = np.unravel_index(int(np.argmin(finite)), array.shape)
    number = array[place]
    raise UsageError(
        f"sample {start + int(place[0])} of the input {spec.name!r} has {'NaN' if np.isnan(number) else number} "
        f"at {[int(i) for i in place[1:]]}"
    )


def _stored_pixels(array: Array) -> Array:
    pixels: Array = (array ^ np.uint8(128)).view(np.int8)
    return pixels
