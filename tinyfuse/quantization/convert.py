"""Converts a float model and calibration data into a quantized model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tinyfuse.emit.output_folder import write_file
from tinyfuse.errors import CompileError, Problem, UsageError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Array, Graph
from tinyfuse.progress import Progress
from tinyfuse.quantization.float_file import float_file
from tinyfuse.quantization.islands import Island, float_operators, priced_islands
from tinyfuse.quantization.recipes import FLOAT, SCHEMES, Recipe, layers_of, recipe
from tinyfuse.quantization.session import Quantizer, Refused
from tinyfuse.targets import Target
from tinyfuse.toolchain.extras import require_package

#: with fewer samples than this, a warning is given
_FEW_SAMPLES = 32


@dataclass(frozen=True)
class Wish:
    """Settings for the quantization of a model.

    scheme    one of SCHEMES: bits of activations and weights
    float_io  leave inputs and outputs float32
    ranges    one of RANGES: how ranges are taken from the samples
    layers    NAME=SCHEME for layers with another scheme
    """

    scheme: str = "int8"
    float_io: bool = False
    ranges: str = "full"
    layers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Quantized:
    """A quantized model.

    data          the .tflite file's bytes.
    weights_read  tensors whose weights were integers or float16 in the file, and were made float32 for the quantizer.
    samples       number of samples from which the ranges were taken.
    islands       operators that stay float32 although this was not asked for.
    instructions  predicted for an inference without fusion, islands included; None if a kernel was not measured.
    warnings      sentences for the user.
    """

    data: bytes
    weights_read: int
    samples: int
    islands: tuple[Island, ...]
    instructions: int | None
    warnings: tuple[str, ...]

    def with_warnings(self, more: Iterable[str]) -> Quantized:
        """Return a copy with `more` warnings before its own."""
        return replace(self, warnings=(*more, *self.warnings))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all. Raises UsageError if it cannot be written."""
        write_file(Path(path), self.data)


@dataclass(frozen=True)
class FloatModel:
    """A float model in the form that the quantizer takes: path for messages, bytes, graph, and number of weight tensors
    that became float32."""

    path: str
    data: bytes
    graph: Graph
    weights_read: int


def read_float_model(path: str, data: bytes) -> FloatModel:
    """Read a model to quantize. Raises CompileError if it cannot be read, or has nothing to quantize."""
    found = float_file(path, data)
    graph = read_tflite(path, found.data)
    if not float_operators(graph):
        hint = f"compile it as it is: tinyfuse gen {path}"
        raise CompileError(
            path, Problem("the model is quantized already: no operator computes with float32", hint=hint)
        )
    return FloatModel(path, found.data, graph, found.weights)


def quantize_model(
    model: FloatModel, batches: Iterable[Mapping[str, Array]], count: int, wish: Wish, target: Target,
    progress: Progress,
) -> Quantized:  # fmt: skip
    """Quantize a model with the ranges of `count` samples.

    batches  samples by input name: arrays [n, *shape] of the input's dtype
    target   the core for which costs are predicted

    Raises CompileError if the quantizer refuses the model, or tinyfuse cannot compile the result; ToolMissing without
    ai-edge-quantizer.
    """
    require_package("ai_edge_quantizer")
    layers = layers_of(model.graph, wish.layers)
    wanted = recipe(wish.scheme, wish.float_io, layers)
    with Quantizer(model.data, wanted, wish.ranges) as quantizer:
        calibrate(quantizer, model, batches, count, progress)
        progress("quantizing")
        try:
            data = quantizer.quantize(wanted)
        except Refused as refused:
            raise _refusal(quantizer, model, wish, layers, refused) from None
        graph = read_tflite(model.path, data)
        progress(
            "predicting the cost of layers that stay float32"
            if float_operators(graph)
            else "checking the quantized model"
        )
        islands, instructions = priced_islands(graph, target)
        asked = {name for name, scheme in layers if scheme == FLOAT}
        islands = [island for island in islands if island.tensor not in asked]
        warnings = [*_few(count), *_island_warnings(quantizer, model, wish, islands, instructions, target)]
    return Quantized(data, model.weights_read, count, tuple(islands), instructions, tuple(warnings))


def calibrate(
    quantizer: Quantizer, model: FloatModel, batches: Iterable[Mapping[str, Array]], count: int, progress: Progress
) -> None:
    """Take samples into account, and report progress. Raises CompileError if LiteRT cannot run the model, UsageError
    without samples."""
    done = 0
    for batch in batches:
        progress(f"calibrating: {done} of {count} samples")
        try:
            quantizer.calibrate(batch)
        except Refused as refused:
            message = f"LiteRT can't run this model on the calibration data: {_first_line(refused)}"
            raise CompileError(model.path, Problem(message, hint="check it with LiteRT's interpreter")) from None
        done += len(next(iter(batch.values())))
    if not done:
        raise UsageError("the calibration data have no samples")


def _few(count: int) -> list[str]:
    if count >= _FEW_SAMPLES:
        return []
    return [f"ranges are from few samples ({count}): give some hundred that are like real inputs"]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]


def _refusal(
    quantizer: Quantizer, model: FloatModel, wish: Wish, layers: Sequence[tuple[str, str]], refused: Refused
) -> CompileError:
    """Return the error for a model that the quantizer refuses. It names the operators that it accepts the model
    without."""
    problems = []
    for kind in dict.fromkeys(op.kind for op in model.graph.ops):
        if not _is_refused(quantizer, recipe(wish.scheme, wish.float_io, layers, left=kind)):
            message = f"ai-edge-quantizer can't quantize it to {wish.scheme}: {_first_line(refused)}"
            problems += [
                Problem(message, operator=str(op), hint=f"leave it float32: --layer '{op.outputs[0].name}=float'")
                for op in model.graph.ops
                if op.kind == kind and op.outputs
            ]
    if not problems:
        others = [each for each in SCHEMES if not _is_refused(quantizer, recipe(each, wish.float_io))]
        hint = f"--scheme {others[0]} works" if others else "quantize it with TensorFlow's converter"
        problems = [Problem(f"ai-edge-quantizer refuses this model: {_first_line(refused)}", hint=hint)]
    return CompileError(model.path, problems)


def _is_refused(quantizer: Quantizer, wanted: Recipe) -> bool:
    try:
        quantizer.quantize(wanted)
    except Refused:
        return True
    return False


def _island_warnings(
    quantizer: Quantizer, model: FloatModel, wish: Wish, islands: Sequence[Island], total: int | None, target: Target
) -> list[str]:
    """Return a sentence for each kind of operator that stays float32: the operators, their cost, and a remedy."""
    warnings = []
    for kind in dict.fromkeys(island.kind for island in islands):
        alike = [island for island in islands if island.kind == kind]
        costs = [island.instructions for island in alike]
        cost = ""
        if total and None not in costs:
            spent = sum(each for each in costs if each is not None)
            cost = f"; with their conversions {spent:,} of {total:,} instructions on {target.name} without fusion"
        named = ", ".join(repr(island.tensor) for island in alike[:3]) + ("..." if len(alike) > 3 else "")
        warnings.append(
            f"{len(alike)} {kind} ({named}) {'stays' if len(alike) == 1 else 'stay'} float32: ai-edge-quantizer has no "
            f"{wish.scheme} form of it{cost}. {_way_on(quantizer, model, wish, kind)}"
        )
    return warnings


def _way_on(quantizer: Quantizer, model: FloatModel, wish: Wish, kind: str) -> str:
    for scheme in SCHEMES:
        if scheme == wish.scheme:
            continue
        try:
            other = read_tflite(model.path, quantizer.quantize(recipe(scheme, wish.float_io)))
        except (Refused, CompileError):
            continue
        if not any(op.kind == kind for op in float_operators(other)):
            return f"--scheme {scheme} quantizes it"
    return "TensorFlow's converter may have one; or train the network with another operator in its place"
