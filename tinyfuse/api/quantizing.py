"""`quantize`, and the data that it is given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from tinyfuse.api.settings import Model
from tinyfuse.data.inputs import input_specs
from tinyfuse.data.samples import AllData, open_samples
from tinyfuse.data.spread import spread_batches
from tinyfuse.errors import UsageError
from tinyfuse.evaluate.options import parse_values
from tinyfuse.frontend.reader import load_file
from tinyfuse.progress import Progress, silent
from tinyfuse.quantization.convert import FloatModel, Quantized, Wish, quantize_model, read_float_model
from tinyfuse.quantization.recipes import SCHEMES
from tinyfuse.quantization.session import RANGES
from tinyfuse.targets import load_target
from tinyfuse.toolchain.extras import require_package


def quantize(
    model: Model, data: AllData, *, scheme: Literal["int8", "int16x8", "int8x4"] = "int8", float_io: bool = False,
    ranges: Literal["full", "average"] = "full", layers: Sequence[str] = (), samples: int = 500,
    values: str | None = None, target: str = "cortex-m4", on_progress: Progress = silent,
) -> Quantized:  # fmt: skip
    """Quantizes a float model by Google's ai-edge-quantizer, with the ranges of values that its tensors have on sample
    data.

    model     path or bytes of a float32 .tflite, or of one whose weights alone are int8 or float16
    data      a path, "NAME=PATH" for each input, or arrays: .npy, .npz, .csv, pictures, sounds, folders of them
    scheme    activations and weights: "int8", "int16x8" (int16, int8), or "int8x4" (int4 weights where kernels accept
              them)
    float_io  inputs and outputs stay float32
    ranges    "full": from the smallest to the largest value; "average": a moving average of each sample's range
    layers    "NAME=SCHEME" for layers by the names of their outputs, which may contain * and ?; SCHEME may be "float"
    samples   number of samples that are used, evenly spread over the data
    values    real numbers that the bytes 0 and 255 stand for: "0,1"
    target    core for which the costs of layers that stay float32 are predicted

    CompileError  the model can't be read, quantized or compiled afterwards: every reason, with its place
    UsageError    the data don't fit the model, or a value is not allowed
    ToolMissing   ai-edge-quantizer isn't installed: the extra `quantize`
    """
    wish = checked_wish(scheme, float_io, ranges, tuple(layers), samples)
    core = load_target(target)
    found = float_model(model)
    require_package("ai_edge_quantizer")
    given = open_samples(data, input_specs(found.graph.inputs), values=parse_values(values))
    count = min(samples, len(given))
    made = quantize_model(found, spread_batches(given, samples), count, wish, core, on_progress)
    return made.with_warnings(given.doubts())


def checked_wish(scheme: str, float_io: bool, ranges: str, layers: tuple[str, ...], samples: int) -> Wish:
    """The checked settings of a quantization as a Wish. UsageError for values that are not allowed."""
    for name, value, known in (("scheme", scheme, tuple(SCHEMES)), ("ranges", ranges, RANGES)):
        if value not in known:
            raise UsageError(f"{name}={value!r}: choose one of {', '.join(known)}")
    if samples < 1:
        raise UsageError(f"samples={samples!r}: give 1 or more")
    return Wish(scheme, float_io, ranges, layers)


def float_model(model: Model) -> FloatModel:
    """Float model from a path or from a file's bytes. CompileError if it can't be read, or is quantized."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return read_float_model("model.tflite", bytes(model))
    if isinstance(model, (str, os.PathLike)):
        return read_float_model(os.fspath(model), load_file(os.fspath(model)))
    raise TypeError(f"a model is a path or the bytes of a .tflite file, not {type(model).__name__}")
