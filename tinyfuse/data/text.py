"""Samples in .csv files: one per line, its numbers in the input's order."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tinyfuse.data.inputs import InputSpec
from tinyfuse.data.sources import Source
from tinyfuse.errors import UsageError
from tinyfuse.ir import Array

#: most bytes of a number with its comma
_NUMBER_BYTES = 40
_LEAST_LINE = 1 << 16


@dataclass(frozen=True)
class CsvSource(Source):
    """A .csv file; `header`: whether its first line names the columns; `elements`: numbers of a line."""

    header: bool
    elements: int

    def pieces(self, size: int) -> Iterator[Array]:
        rows: list[list[float]] = []
        for number, fields in csv_lines(self.path, _line_bytes(self.elements), self.header):
            rows.append(_numbers(self.path, number, fields, self.elements))
            if len(rows) == size:
                yield self._array(rows)
                rows = []
        if rows:
            yield self._array(rows)

    def _array(self, rows: list[list[float]]) -> Array:
        return np.array(rows, np.float64).astype(self.dtype)


def csv_source(path: str, spec: InputSpec) -> CsvSource:
    """Source of the samples of a .csv file: integers if every number in it is one, otherwise floats. UsageError if a
    line is not as long as a sample."""
    header, count, whole = False, 0, True
    for number, fields in csv_lines(path, _line_bytes(spec.elements)):
        if not count and not header and not all(map(_is_number, fields)):
            header = True
            continue
        values = _numbers(path, number, fields, spec.elements)
        whole = whole and all(value.is_integer() and abs(value) < 2**53 for value in values)
        whole = whole and not any("." in field or "e" in field.lower() for field in fields)
        count += 1
    return CsvSource(path, count, None, np.dtype(np.int64 if whole else np.float64), False, header, spec.elements)


def csv_lines(path: str, most: int, header: bool = False) -> Iterator[tuple[int, list[str]]]:
    """(number, fields) of each line as `text_lines`, without the first where that is a `header`."""
    for number, text in text_lines(path, most):
        if header:
            header = False
            continue
        yield number, fields_of(path, number, text)


def text_lines(path: str, most: int) -> Iterator[tuple[int, str]]:
    """(number, text) of each line that is not empty, without white space around it. UsageError if the file is not text,
    or has a line of more than `most` bytes."""
    number = 0
    try:
        with open(path, "rb") as file:
            while line := file.readline(most + 1):
                number += 1
                if len(line) > most:
                    raise UsageError(f"{path}: line {number} is longer than {most:,} bytes")
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if text:
                    yield number, text
    except UnicodeDecodeError:
        raise UsageError(f"{path}: line {number} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"can't read {path}: {getattr(error, 'strerror', None) or error}") from None


def fields_of(path: str, number: int, text: str) -> list[str]:
    """Fields of a line, separated by commas, semicolons or tabs. UsageError if quotes do not match."""
    separator = next((each for each in ",;\t" if each in text), ",")
    try:
        return [field.strip() for field in next(csv.reader([text], delimiter=separator))]
    except csv.Error as error:
        raise UsageError(f"{path}: line {number}: {error}") from None


def _numbers(path: str, number: int, fields: list[str], elements: int) -> list[float]:
    """Numbers of a line. UsageError if there are too many or too few, or if a field is not a number."""
    if len(fields) != elements:
        also = "; one more: put the labels into a file of their own" if len(fields) == elements + 1 else ""
        raise UsageError(
            f"{path}: line {number} has {len(fields):,} fields, but a sample has {elements:,} numbers{also}"
        )
    try:
        return [float(field) for field in fields]
    except ValueError:
        wrong = next(field for field in fields if not _is_number(field))
        raise UsageError(f"{path}: line {number}: {wrong[:40]!r} is not a number") from None


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _line_bytes(elements: int) -> int:
    return max(_LEAST_LINE, elements * _NUMBER_BYTES)
