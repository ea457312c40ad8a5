"""`quantize`, and the data that it is given."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from tinyfuse.api.settings import Model
from tinyfuse.data.inputs import InputSpec, ValueRange, input_specs
from tinyfuse.data.memory import samples_of_arrays
from tinyfuse.data.samples import Samples, open_samples
from tinyfuse.data.spread import spread_batches
from tinyfuse.errors import UsageError
from tinyfuse.frontend.reader import load_file
from tinyfuse.progress import Progress, silent
from tinyfuse.quantization.convert import FloatModel, Quantized, Wish, quantize_model, read_float_model
from tinyfuse.quantization.recipes import SCHEMES
from tinyfuse.quantization.session import RANGES
from tinyfuse.targets import load_target
from tinyfuse.toolchain.extras import need

Path = str | os.PathLike[str]
#: data for a model: paths as the command line takes them, or arrays; one, or one by each input's name
Data = Path | Sequence[str] | Mapping[str, Path] | np.ndarray | Mapping[str, np.ndarray]


def quantize(
    model: Model, data: Data, *, scheme: Literal["int8", "int16x8", "int8x4"] = "int8", float_io: bool = False,
    ranges: Literal["full", "average"] = "full", layers: Sequence[str] = (), samples: int = 500,
    values: ValueRange | None = None, target: str = "cortex-m4", on_progress: Progress = silent,
) -> Quantized:  # fmt: skip
    """Quantizes a float model with the ranges that its tensors have on data, by Google's ai-edge-quantizer.

    model     path or bytes of a float32 .tflite, or of one whose weights alone are int8 or float16
    data      a path, "NAME=PATH" for each input, or arrays: .npy, .npz, .csv, pictures, sounds, folders of them
    scheme    bits of activations and weights: "int8", "int16x8", or "int8x4", weights of 4 bits where kernels take them
    float_io  inputs and outputs stay float32
    ranges    "full": from the smallest to the largest value; "average": a moving average of each sample's
    layers    "NAME=SCHEME" for layers by the names of their outputs, which may hold * and ?; SCHEME may be "float"
    samples   how many of the data are used, spread evenly
    values    real numbers that 0 and 255 of unsigned bytes stand for
    target    the core for which the costs of what stays float32 are predicted

    CompileError  the model can't be read, quantized or compiled afterwards: every reason, with its place
    UsageError    the data don't fit, or a value that can't be
    ToolMissing   ai-edge-quantizer isn't installed: the extra `quantize`
    """
    wish = checked_wish(scheme, float_io, ranges, tuple(layers), samples)
    core = load_target(target)
    found = float_model(model)
    need("ai_edge_quantizer")
    given = samples_of(data, input_specs(found.graph.inputs), values)
    count = min(samples, len(given))
    made = quantize_model(found, spread_batches(given, samples), count, wish, core, on_progress)
    return made.with_warnings(given.doubts())


def checked_wish(scheme: str, float_io: bool, ranges: str, layers: tuple[str, ...], samples: int) -> Wish:
    """The wish of these values. UsageError for one that can't be."""
    for name, value, known in (("scheme", scheme, tuple(SCHEMES)), ("ranges", ranges, RANGES)):
        if value not in known:
            raise UsageError(f"{name}={value!r}: choose one of {', '.join(known)}")
    if samples < 1:
        raise UsageError(f"samples={samples!r}: give 1 or more")
    return Wish(scheme, float_io, ranges, layers)


def float_model(model: Model) -> FloatModel:
    """The float model of a path or of a file's bytes. CompileError where it can't be read, or is quantized."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return read_float_model("model.tflite", bytes(model))
    if isinstance(model, (str, os.PathLike)):
        return read_float_model(os.fspath(model), load_file(os.fspath(model)))
    raise TypeError(f"a model is a path or the bytes of a .tflite file, not {type(model).__name__}")


def samples_of(data: Data, inputs: Sequence[InputSpec], values: ValueRange | None) -> Samples:
    """The samples of paths or arrays. UsageError where they don't fit the inputs."""
    if isinstance(data, np.ndarray):
        return samples_of_arrays(data, inputs)
    if isinstance(data, Mapping) and data and all(isinstance(each, np.ndarray) for each in data.values()):
        return samples_of_arrays({name: np.asarray(each) for name, each in data.items()}, inputs)
    return open_samples(data, inputs, values=values)  # type: ignore[arg-type]  # an array is none of these
