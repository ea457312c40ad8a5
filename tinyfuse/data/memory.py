"""Samples that a program holds in arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tinyfuse.data.inputs import InputSpec
from tinyfuse.data.samples import Samples
from tinyfuse.data.sources import Source, check_bytes, check_dtype, divide
from tinyfuse.errors import UsageError
from tinyfuse.ir import Array


@dataclass(frozen=True, eq=False)
class ArraySource(Source):
    """An array of samples."""

    array: Array

    def pieces(self, size: int) -> Iterator[Array]:
        for start in range(0, self.count, size):
            yield self.array[start : start + size]


def samples_of_arrays(arrays: Array | Mapping[str, Array], inputs: Sequence[InputSpec]) -> Samples:
    """The samples of an array for a model with one input, or of one by each input's name; a name is the tensor's, or
    that in the C API. UsageError where one is missing, unknown, or does not fit."""
    expected = ", ".join(map(str, inputs))
    if not isinstance(arrays, Mapping):
        if len(inputs) != 1:
            raise UsageError(f"data: give an array for each input by name; the model's inputs are {expected}")
        arrays = {inputs[0].name: arrays}
    found: dict[InputSpec, Source] = {}
    for name, array in arrays.items():
        spec = next((each for each in inputs if name in (each.name, each.symbol)), None)
        if spec is None:
            raise UsageError(f"data[{name!r}]: the model has no such input; its inputs are {expected}")
        check_dtype(f"data[{name!r}]", array.dtype)
        division = divide(f"data[{name!r}]", array.shape, spec, False)
        check_bytes(f"data[{name!r}]", spec, None, array.dtype)
        whole = array if division.count == len(array) else array[None]
        found[spec] = ArraySource(name, division.count, None, array.dtype, False, whole)
    missing = [spec.symbol for spec in inputs if spec not in found]
    if missing:
        raise UsageError(f"no data for {', '.join(missing)}; the model's inputs are {expected}")
    if len({source.count for source in found.values()}) > 1:
        raise UsageError("data: the inputs have different numbers of samples")
    return Samples(tuple(inputs), tuple(found[spec] for spec in inputs))
