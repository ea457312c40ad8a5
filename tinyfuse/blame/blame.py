"""Measures each layer of a quantized model beside the float model, and names the worst."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tinyfuse.blame.causes import SPOILED, Weights, cause_of, channel_spread, range_used, weights_of
from tinyfuse.blame.large_channels import layer_with_large_channel
from tinyfuse.blame.layers import REAL, Layer, layers_of
from tinyfuse.blame.match import Pairs, matched_tensors
from tinyfuse.blame.measure import Errors, Sample, Values, add_sample, energy, real
from tinyfuse.blame.tails import Tails, decibels
from tinyfuse.errors import UsageError
from tinyfuse.ir import Array, Graph
from tinyfuse.ops.real_numbers import converts
from tinyfuse.progress import Progress
from tinyfuse.quantization.convert import FloatModel
from tinyfuse.rewrite.fold_constants import fold_constants

#: how many layers are named in words
WORST = 3
#: bytes of values in memory at a time
_CHUNK_BYTES = 1 << 27


@dataclass(frozen=True)
class Int16Cost:
    """Changes if a layer is int16 instead of int8, together with its readers, which would otherwise lose its finer
    steps.

    layers   names of the outputs of all layers that become int16
    instructions, ram_bytes  predicted increase, per inference, and of arena and state
    snr_db, int8_snr_db      signal-to-noise ratio of the model's outputs with int16, and without
    """

    layers: tuple[str, ...]
    instructions: int | None
    ram_bytes: int
    snr_db: float | None
    int8_snr_db: float | None


@dataclass(frozen=True)
class LayerErrors:
    """Errors of a layer. Ratios are in decibels, None if there is no error.

    operator, kind, tensor, dtype   layer of the quantized model; `tensor` is the name of its output
    float_tensor  name of the float model's counterpart of the output
    snr_db        signal-to-noise ratio of its output in the quantized model
    own_snr_db    ratio of the error that the layer itself adds, on quantized float inputs
    output_snr_db ratio of the model's outputs if all other layers were float32
    share         its share of the output errors that the layers cause one by one; all shares add up to 1
    saturated     share of the float values that its output cannot store
    range_used    share of its range that the float values fill
    levels_used, levels   number of stored values that occurred, and that exist; None for float32
    channel_spread        largest channel of the float values over the median one
    weights       magnitudes of its weights, if these are constant
    cause, advice a word, and a sentence on a remedy
    due_to        `tensor` of an earlier layer whose large channel spoils this one; None without one
    int16         changes by int16; None if that was not asked for, or nothing can compute it
    """

    operator: str
    kind: str
    tensor: str
    float_tensor: str
    dtype: str
    snr_db: float | None
    own_snr_db: float | None
    output_snr_db: float | None
    share: float
    saturated: float
    range_used: float | None
    levels_used: int | None
    levels: int | None
    channel_spread: float
    weights: Weights | None
    cause: str
    advice: str
    due_to: str | None
    int16: Int16Cost | None = None


@dataclass(frozen=True)
class Blame:
    """Errors of a quantized model's layers, in the order of the model.

    samples    number of measured samples.
    snr_db     signal-to-noise ratio of the model's outputs; None if they have no error.
    layers     one for each operator with a counterpart in the float model, and for each quantized input.
    worst      indexes into `layers`, the worst first, by their share plus the shares of layers that are due to them.
    unmatched  operators without a counterpart, whose errors count for the next layer.
    warnings   sentences.
    """

    samples: int
    snr_db: float | None
    layers: tuple[LayerErrors, ...]
    worst: tuple[int, ...]
    unmatched: tuple[str, ...]
    warnings: tuple[str, ...]


def blame_layers(
    quantized: Graph, model: FloatModel, batches: Iterable[Mapping[str, Array]], count: int, progress: Progress
) -> Blame:
    """Measure the layers of a quantized graph on `count` samples.

    model    the float model from which the graph was made
    batches  samples by the names of the float model's inputs: float32 [n, *shape]

    Raises UsageError if the two models do not belong together, or keep state; ToolMissing without LiteRT.
    """
    quantized, floats, pairs = _prepared(quantized, model)
    layers = layers_of(quantized, floats, pairs)
    progress("starting LiteRT")
    sums = _Sums(layers, pairs, Tails(model.data, floats))
    sums.add_all(quantized, batches, count, progress)
    return _blame(sums, quantized, pairs)


def output_snr(
    quantized: Graph, model: FloatModel, batches: Iterable[Mapping[str, Array]], count: int, progress: Progress
) -> float | None:
    """Return the signal-to-noise ratio of a quantized graph's outputs in decibels; None if they have no error. Takes
    and raises what `blame_layers` does."""
    quantized, floats, pairs = _prepared(quantized, model)
    sums = _Sums([], pairs, Tails(model.data, floats))
    sums.add_all(quantized, batches, count, progress)
    return decibels(1.0, sums.output_noise(sums.noises))


def _prepared(quantized: Graph, model: FloatModel) -> tuple[Graph, Graph, Pairs]:
    """Return both graphs with their constants computed, and the pairs of tensors that correspond."""
    for graph in (quantized, model.graph):
        if graph.states:
            raise UsageError(
                f"{graph.path}: blame cannot measure this model, because it keeps a state between inferences"
            )
    quantized, floats = fold_constants(quantized), fold_constants(model.graph)
    return quantized, floats, matched_tensors(quantized, floats)


class _Sums:
    """Errors of all samples so far.

    errors   errors of each layer.
    signals  energy of each score of the float model.
    noises   energy of the errors of the quantized model's scores, [score], and of the errors that each layer's own
             error causes in the float model's scores, [layer][score].
    """

    def __init__(self, layers: Sequence[Layer], pairs: Pairs, tails: Tails) -> None:
        self.layers, self.tails, self.samples, self._pairs = layers, tails, 0, pairs
        self.errors = [Errors() for _ in layers]
        counterparts = {other: tensor for tensor, other in pairs.items() if tensor.dtype in REAL}
        self._scores = [counterparts.get(score) for score in tails.scores]
        self.signals = np.zeros(len(tails.scores))
        self.noises = np.zeros(len(tails.scores))
        self.alone = np.zeros((len(layers), len(tails.scores)))

    @property
    def has_unmatched_scores(self) -> bool:
        """Tell whether the quantized model has no tensor for some score."""
        return None in self._scores

    def add_all(self, quantized: Graph, batches: Iterable[Mapping[str, Array]], count: int, progress: Progress) -> None:
        """Add all samples. UsageError if there are none."""
        size = max(1, _CHUNK_BYTES // max(1, self.tails.bytes_of_sample))
        for inputs in _chunks(batches, self.tails.graph, size):
            values, samples = self.tails.values(inputs), list[Sample]()
            for run in values:
                progress(f"comparing layers: sample {self.samples + len(samples) + 1} of {count}")
                samples.append(add_sample(self.layers, self.errors, quantized, self._pairs, run))
            self.add(values, samples, progress)
        if not self.samples:
            raise UsageError("the data have no samples")

    def add(self, values: Sequence[Values], samples: Sequence[Sample], progress: Progress) -> None:
        """Add samples: all values of the float model, and all values of the quantized model."""
        scores = self.tails.scores
        for run, sample in zip(values, samples, strict=True):
            self.signals += [energy(run[score]) for score in scores]
            self.noises += [
                0.0 if tensor is None else energy(real(tensor, sample.values[tensor]).reshape(score.shape) - run[score])
                for tensor, score in zip(self._scores, scores, strict=True)
            ]
        for place, layer in enumerate(self.layers):
            progress(f"following errors to the outputs: layer {place + 1} of {len(self.layers)}")
            found = self.tails.scores_with(layer.float_output, [sample.alone[place] for sample in samples], values)
            for run, made in zip(values, found, strict=True):
                self.alone[place] += [energy(a - run[score]) for a, score in zip(made, scores, strict=True)]
        self.samples += len(samples)

    def output_noise(self, noises: Array) -> float:
        """Return noise over signal, summed over the scores."""
        known = self.signals > 0
        return float((noises[known] / self.signals[known]).sum())


def _chunks(batches: Iterable[Mapping[str, Array]], graph: Graph, size: int) -> Iterator[list[list[Array]]]:
    """Yield the inputs of at most `size` samples at a time: [run][index]."""
    held = list[list[Array]]()
    for batch in batches:
        columns = [batch[tensor.name] for tensor in graph.inputs]
        for run in zip(*columns, strict=True):
            pairs = zip(run, graph.inputs, strict=True)
            held.append([np.ascontiguousarray(array, t.dtype).reshape(t.shape) for array, t in pairs])
            if len(held) == size:
                yield held
                held = []
    if held:
        yield held


def _blame(sums: _Sums, quantized: Graph, pairs: Pairs) -> Blame:
    noises = [sums.output_noise(row) for row in sums.alone]
    total = sum(noises) or 1.0
    if not np.isfinite(total):
        raise UsageError("the float model computes NaN or infinite values for these data")
    made = {layer.float_output: (layer, errors) for layer, errors in zip(sums.layers, sums.errors, strict=True)}
    layers = tuple(
        _layer_errors(layer, errors, noise, noise / total, quantized, layer_with_large_channel(layer, made))
        for layer, errors, noise in zip(sums.layers, sums.errors, noises, strict=True)
    )
    shares = [each.share + sum(other.share for other in layers if other.due_to == each.tensor) for each in layers]
    order = sorted(range(len(layers)), key=lambda place: -shares[place])
    known = {layer.op for layer in sums.layers} | {op for layer in sums.layers for op in layer.steps}
    unmatched = [str(op) for op in quantized.ops if not any(t in pairs for t in op.outputs) and not converts(op)]
    unknown = [str(op) for op in quantized.ops if op not in known]
    warnings = []
    if unmatched:
        told = ", ".join(unmatched[:3]) + ("..." if len(unmatched) > 3 else "")
        warnings.append(f"{len(unmatched)} operators have no counterpart in the float model: {told}")
    if sums.has_unmatched_scores:
        warnings.append("some outputs have no float32 counterpart: their errors are not measured")
    score = decibels(1.0, sums.output_noise(sums.noises))
    return Blame(
        sums.samples, score, layers, tuple(place for place in order[:WORST] if shares[place] > 0),
        tuple(dict.fromkeys([*unmatched, *unknown])), tuple(warnings),
    )  # fmt: skip


def _layer_errors(
    layer: Layer, errors: Errors, noise: float, share: float, graph: Graph, spoiled_by: Layer | None
) -> LayerErrors:
    weights = weights_of(layer)
    cause, advice = cause_of(layer, errors, weights, graph, spoiled_by)
    counted = errors.levels.size
    return LayerErrors(
        operator=str(layer),
        kind="INPUT" if layer.is_input else layer.op.kind,
        tensor=layer.output.name,
        float_tensor=layer.float_output.name,
        dtype=layer.output.dtype,
        snr_db=decibels(errors.signal, errors.noise),
        own_snr_db=decibels(errors.own_signal, errors.own),
        output_snr_db=decibels(1.0, noise),
        share=share,
        saturated=errors.saturated / errors.elements,
        range_used=range_used(layer, errors),
        levels_used=int((errors.levels > 0).sum()) if counted else None,
        levels=counted or None,
        channel_spread=channel_spread(errors),
        weights=weights,
        cause=cause,
        advice=advice,
        due_to=spoiled_by.output.name if spoiled_by is not None and cause == SPOILED else None,
    )
