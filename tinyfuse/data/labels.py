"""Labels of a data set: classes, numbers or names, one per sample."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinyfuse.data.arrays import BAD_ARRAY, first_line, npy_header
from tinyfuse.data.folders import class_of_file, folder_files
from tinyfuse.data.sources import check_dtype, is_file
from tinyfuse.data.text import fields_of, text_lines
from tinyfuse.errors import UsageError
from tinyfuse.ir import Array

#: the most bytes of all labels in memory, and of a line of a text file
MAX_LABEL_BYTES, _MAX_LINE = 1 << 30, 1 << 20
#: the most names of classes
MAX_CLASSES = 1 << 16


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of samples, in their order.

    values  int64 or float64, [samples] or [samples, ...]
    names   of the classes, where labels are names: a value is its name's place here; else ()
    """

    values: Array
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def are_classes(self) -> bool:
        """True where each label is one whole number from 0 on."""
        return self.values.ndim == 1 and self.values.dtype.kind == "i" and bool((self.values >= 0).all())


def read_labels(path: str | os.PathLike[str], classes: Sequence[str] = ()) -> Labels:
    """The labels in a file.

    A .npy file has an array whose first dimension is that of the samples. A .csv or .txt file has a line per sample: a
    number, several, or a name. Names are classes: numbered as in `classes`, or where these are not given in alphabetic
    order. A folder of data files is its own labels: each file's class is the folder inside in which it lies. UsageError
    for other files, for NaN, and for a name that is not in `classes`.
    """
    name = os.fspath(path)
    if not is_file(name):
        return _named(name, [class_of_file(name, file) or "" for file in folder_files(name)], classes, "file")
    ending = Path(name).suffix.lower()
    if ending == ".npy":
        values = _from_array(name)
    elif ending in (".csv", ".txt"):
        return _from_lines(name, list(text_lines(name, _MAX_LINE)), classes)
    else:
        raise UsageError(f"{name}: labels are in a .npy, .csv or .txt file, or a folder with one folder per class")
    return Labels(_checked(name, values))


def labels_of_values(values: Sequence[object] | Array, classes: Sequence[str] = ()) -> Labels:
    """Labels from an array, or from a sequence of numbers or names. Errors as `read_labels`."""
    if not isinstance(values, np.ndarray) and len(values) and all(isinstance(value, str) for value in values):
        return _named("labels", [str(value) for value in values], classes, "label")
    array = np.asarray(values)
    check_dtype("labels", array.dtype)
    return Labels(_checked("labels", array))


def _from_array(path: str) -> Array:
    size = npy_header(path).bytes
    if size > MAX_LABEL_BYTES:
        raise UsageError(f"{path}: labels of {size:,} bytes, more than {MAX_LABEL_BYTES:,}")
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        return array
    except BAD_ARRAY as error:
        raise UsageError(f"{path} is not a .npy file of numbers: {first_line(error)}") from None


def _from_lines(path: str, texts: list[tuple[int, str]], classes: Sequence[str]) -> Labels:
    """Labels of (number, text) of each line; the first line may name columns of numbers."""
    if not texts:
        raise UsageError(f"{path}: there are no labels in it")
    lines = [fields_of(path, number, text) for number, text in texts]
    numbers = _numbers(lines)
    if numbers is None and len(lines) > 1:
        numbers = _numbers(lines[1:])
    if numbers is not None:
        return Labels(_checked(path, numbers))
    if Path(path).suffix.lower() == ".txt":  # a name may have commas
        return _named(path, [text for _, text in texts], classes, "line")
    if any(len(fields) > 1 for fields in lines):
        raise UsageError(f"{path}: a line has several names; write one per line, or numbers alone")
    return _named(path, [fields[0] for fields in lines], classes, "line")


def _numbers(lines: list[list[str]]) -> Array | None:
    """Array [lines, numbers] if every line has the same number of numbers and nothing else; otherwise None."""
    if any(len(fields) != len(lines[0]) for fields in lines):
        return None
    try:
        array = np.array(lines, np.float64)
    except ValueError:
        return None
    return array


def _named(path: str, found: list[str], classes: Sequence[str], what: str) -> Labels:
    """Return labels from a list of class names."""
    if "" in found:
        raise UsageError(
            f"{path}: {what} {found.index('') + 1} has no class"
            + (": put files into one folder per class" if what == "file" else "")
        )
    names = tuple(classes) or tuple(sorted(set(found)))
    if len(names) > MAX_CLASSES:
        raise UsageError(f"{path}: more than {MAX_CLASSES:,} different names")
    numbers = {name: number for number, name in enumerate(names)}
    strange = next((name for name in found if name not in numbers), None)
    if strange is not None:
        raise UsageError(f"{path}: the label {strange[:60]!r} is none of the classes {_told(names)}")
    return Labels(np.array([numbers[name] for name in found], np.int64), names)


def _told(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")


def _checked(path: str, values: Array) -> Array:
    """Labels as int64 where all are whole numbers, else float64. UsageError for NaN, infinity, and where there are
    none."""
    if not values.ndim or not values.size:
        raise UsageError(f"{path}: there are no labels in it")
    labels = values.reshape(_without_ones(values.shape))
    if labels.dtype.kind != "f":
        return labels.astype(np.int64)
    finite = np.isfinite(labels)
    if not finite.all():
        number = int(np.unravel_index(int(np.argmin(finite)), labels.shape)[0])
        raise UsageError(f"{path}: the label of sample {number} is NaN or infinite")
    whole = bool((labels == np.floor(labels)).all() and (np.abs(labels) < 2**53).all())
    return labels.astype(np.int64 if whole else np.float64)


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of an array without its dimensions of 1, except the first dimension."""
    return (shape[0], *(dim for dim in shape[1:] if dim != 1))
