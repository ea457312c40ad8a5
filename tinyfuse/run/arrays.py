"""Converts between .npy and .npz files and a model's inputs and outputs."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinyfuse.data.arrays import BAD_ARRAY, first_line
from tinyfuse.data.inputs import input_specs, saturated_count, stored_values
from tinyfuse.emit.header import tensor_symbols
from tinyfuse.errors import UsageError
from tinyfuse.ir import Array, Tensor

#: largest array in a file, in bytes; no emulated board has more memory
_MAX_BYTES = 1 << 28

#: most inferences of one `run`: each takes some hundred bytes before the emulator starts
MOST_RUNS = 1 << 18


@dataclass(frozen=True)
class ModelInput:
    """Values of one input: `values[run]` is an array of the tensor's shape and dtype. `note` is a sentence about a
    conversion of the user's numbers; None without one."""

    tensor: Tensor
    values: list[np.ndarray]
    note: str | None


def runs_of(inputs: Sequence[ModelInput]) -> int:
    """Number of inferences; 1 for a model without inputs."""
    return len(inputs[0].values) if inputs else 1


def read_inputs(arguments: tuple[str, ...], tensors: tuple[Tensor, ...]) -> list[ModelInput]:
    """Reads the model's inputs, in its order, from `--input` arguments.

    An argument is NAME=FILE.npy, a FILE.npz with one array per name, or FILE.npy for a model with one input. A name is
    the tensor's or that in the C API. UsageError if an input is missing, unknown or given twice, if its array does not
    fit, or if inputs are for different numbers of runs.
    """
    names = dict(_names(tensors))
    named = [
        (f"--input {argument}", name, array) for argument in arguments for name, array in _named_arrays(argument, names)
    ]
    return take_inputs(named, tensors)


def take_inputs(named: Iterable[tuple[str, str | None, np.ndarray]], tensors: tuple[Tensor, ...]) -> list[ModelInput]:
    """Model inputs, in the model's order, from arrays: (name in messages, input's name, values).

    The input's name may be None if the model has only one. UsageError as in `read_inputs`.
    """
    by_name = dict(_names(tensors))
    symbols = tensor_symbols(tensors)
    expected = ", ".join(f"{s} ({t.dtype}{list(t.shape)})" for s, t in zip(symbols, tensors, strict=True))
    found: dict[Tensor, np.ndarray] = {}
    for told, name, array in named:
        if not tensors:
            raise UsageError(f"{told}: the model has no inputs")
        if name is None and len(tensors) > 1:
            raise UsageError(f"{told}: say for which input, with NAME=FILE; the model's inputs are {expected}")
        if name is not None and name not in by_name:
            raise UsageError(f"{told}: the model has no input {name!r}; its inputs are {expected}")
        tensor = by_name[name] if name is not None else tensors[0]
        if tensor in found:
            raise UsageError(f"{told}: the input {tensor.name!r} is given twice")
        found[tensor] = array
    missing = [s for s, t in zip(symbols, tensors, strict=True) if t not in found]
    if missing:
        raise UsageError(f"no --input for {', '.join(missing)}; the model's inputs are {expected}")
    inputs = [_model_input(tensor, found[tensor]) for tensor in tensors]
    counts = {len(i.values) for i in inputs}
    if len(counts) > 1:
        told = ", ".join(f"{i.tensor.name!r}: {len(i.values)}" for i in inputs)
        raise UsageError(f"the inputs are for different numbers of runs ({told})")
    return inputs


def _names(tensors: tuple[Tensor, ...]) -> Iterator[tuple[str, Tensor]]:
    """Yields names of each input with its tensor: those in the C API, then the tensors' own."""
    yield from zip(tensor_symbols(tensors), tensors, strict=True)
    yield from ((tensor.name, tensor) for tensor in tensors)


def _named_arrays(argument: str, names: Collection[str]) -> list[tuple[str | None, Array]]:
    """Arrays of an argument with their names; None for an array without a name."""
    before, equals, path = argument.partition("=")
    name: str | None = before
    # a path may contain "="
    if not equals or (before not in names and os.path.exists(argument)):
        name, path = None, argument
    loaded = _load(path)
    if isinstance(loaded, np.ndarray):
        return [(name, loaded)]
    if name is not None:
        raise UsageError(f"--input {argument}: a .npz names its arrays itself; leave out {name}=")
    return list(loaded.items())


def _load(path: str) -> Array | dict[str, Array]:
    """Array of a .npy file, or arrays of a .npz file by name. UsageError for other files and for pickled objects."""
    try:
        if not Path(path).is_file():
            raise UsageError(f"{path}: there is no such file")
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                too_large = [m.filename for m in archive.infolist() if m.file_size > _MAX_BYTES]
            if too_large:
                raise UsageError(f"{path}: {too_large[0]} has more than {_MAX_BYTES:,} bytes")
            with np.load(path, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        with open(path, "rb") as file:
            if file.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
                raise UsageError(f"{path} is not a .npy or .npz file, which numpy.save and numpy.savez write")
        # mapped, so that a header that claims more than the file holds is an error, not an allocation
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        return array
    except BAD_ARRAY as error:
        raise UsageError(f"{path} is not a .npy or .npz file of numbers: {first_line(error)}") from None


def _model_input(tensor: Tensor, array: Array) -> ModelInput:
    runs = _runs(tensor, array)
    (spec,) = input_specs((tensor,))
    values, note = stored_values(spec, array), None
    if array.dtype.kind == "f" and tensor.dtype != "float32":
        outside = saturated_count(spec, array)
        how = f"with scale {spec.scale:g}, zero point {spec.zero_point}"
        note = f"input {tensor.name!r}: {array.dtype} was quantized {how}"
        if outside:
            note += f"; {outside:,} of {array.size:,} values saturated"
    return ModelInput(tensor, list(np.ascontiguousarray(values).reshape(runs, *tensor.shape)), note)


def _runs(tensor: Tensor, array: Array) -> int:
    """Number of inferences that an array is for. UsageError if its shape does not fit.

    It has the tensor's shape, possibly without a batch of 1, or a dimension of runs instead of the batch or before it.
    """
    inner = tensor.shape[1:] if tensor.shape[:1] == (1,) else tensor.shape
    if array.shape in (tensor.shape, inner):
        return 1
    if array.ndim and array.shape[0] > 0 and array.shape[1:] in (tensor.shape, inner):
        if array.shape[0] > MOST_RUNS:
            raise UsageError(
                f"the input {tensor.name!r} is for {array.shape[0]:,} runs, more than {MOST_RUNS:,}: split it"
            )
        return int(array.shape[0])
    raise UsageError(
        f"the input {tensor.name!r} has the shape {list(tensor.shape)}, but the array has {list(array.shape)}; "
        f"it may have [runs, {', '.join(map(str, inner))}] for several inferences"
    )


def output_file(path: str, tensors: tuple[Tensor, ...], arrays: Sequence[np.ndarray]) -> bytes:
    """Content of a .npy file with the only output, or of a .npz file with all outputs by their names in the C API.
    UsageError for another suffix."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".npy", ".npz"):
        raise UsageError(f"--output {path}: name a .npy or .npz file")
    if suffix == ".npy" and len(arrays) > 1:
        raise UsageError(f"--output {path}: the model has {len(arrays)} outputs; name a .npz file")
    file = io.BytesIO()
    if suffix == ".npy":
        np.save(file, arrays[0])
        return file.getvalue()
    with zipfile.ZipFile(file, "w") as archive:
        for symbol, array in zip(tensor_symbols(tensors), arrays, strict=True):
            with archive.open(zipfile.ZipInfo(f"{symbol}.npy"), "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return file.getvalue()
