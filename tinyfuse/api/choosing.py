"""`choose_bits`: bits for each layer, chosen by cost and data."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np

from tinyfuse.api.evaluating import LabelData, evaluate_module
from tinyfuse.api.quantizing import checked_wish, float_model
from tinyfuse.api.settings import Model
from tinyfuse.bits.search import BitSearch, ChosenBits, Goal
from tinyfuse.data.inputs import input_specs
from tinyfuse.data.samples import AllData, Samples, open_samples
from tinyfuse.data.spread import spread_batches
from tinyfuse.errors import UsageError
from tinyfuse.evaluate.metrics import is_share
from tinyfuse.evaluate.options import EvaluateOptions, parse_values
from tinyfuse.evaluate.result import Evaluation
from tinyfuse.ir import Array
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress, silent
from tinyfuse.quantization.convert import calibrate
from tinyfuse.quantization.recipes import layers_of, recipe
from tinyfuse.quantization.session import Quantizer
from tinyfuse.targets import load_target
from tinyfuse.toolchain.extras import require_package

#: samples of which blame measures the errors of layers
_BLAMED = 32


def choose_bits(
    model: Model, data: AllData, labels: LabelData, *, accuracy_loss: float, test_data: AllData | None = None,
    metric: str = "top1", max_ram: int | None = None, max_flash: int | None = None,
    max_instructions: int | None = None, explore: bool = False, float_io: bool = False,
    ranges: Literal["full", "average"] = "full", layers: Sequence[str] = (), samples: int = 500,
    values: str | None = None, target: str = "cortex-m4", on_progress: Progress = silent,
) -> ChosenBits:  # fmt: skip
    """Quantizes a float model so that it loses little accuracy within limits of costs.

    All layers are int8 at first. Layers become int16 in the order of the error that they add, until the loss is met;
    weights become int4 where flash is short. At most 20 plans are evaluated, each exactly as its module computes.

    model, data, float_io, ranges, layers, samples, values   as in `quantize`; `data` are real numbers.
    labels         labels of test_data if given, otherwise of data, in the forms of `Module.evaluate`.
    accuracy_loss  how much worse than the float model's the metric may be: percentage points if it is a share,
                   otherwise the metric's unit.
    test_data      data to evaluate, which should not be those of the calibration.
    metric         as in `Module.evaluate`. Higher is better, except for mae.
    max_ram        maximum bytes of arena and state.
    max_flash      maximum bytes of weights and code.
    max_instructions     maximum of the predicted instructions of an inference.
    explore        evaluate 20 plans for the front, even if fewer are enough.
    target         core for which costs are predicted.

    Raises what `quantize` and `Module.evaluate` raise. If no plan is within the limits, `chosen` is None.
    """
    if not accuracy_loss >= 0:
        raise UsageError(f"accuracy_loss={accuracy_loss!r}: give 0 or more")
    wish = checked_wish("int8", float_io, ranges, tuple(layers), samples)
    core, found = load_target(target), float_model(model)
    for package in ("ai_edge_quantizer", "ai_edge_litert"):
        require_package(package)
    pinned = tuple(layers_of(found.graph, wish.layers))
    specs, scale = input_specs(found.graph.inputs), parse_values(values)
    given = open_samples(data, specs, values=scale)
    tests = given if test_data is None else open_samples(test_data, specs, values=scale)
    _check_real(tests)
    how = EvaluateOptions(metric=metric, values=values or "0,255")  # unsigned bytes are the numbers themselves
    goal = Goal(accuracy_loss, max_ram, max_flash, max_instructions)
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as folder, Quantizer(
        found.data, recipe("int8", float_io, pinned), ranges
    ) as quantizer:  # fmt: skip
        path = Path(folder, "float.tflite")
        path.write_bytes(found.data)
        float_models = iter([str(path)])  # evaluated with the first plan only: its score does not change

        def evaluate(plan: Plan, file: bytes) -> Evaluation:
            tested, float_file = data if test_data is None else test_data, next(float_models, None)
            return evaluate_module(plan, file, tested, labels, (), float_file, how, None, on_progress)

        calibrate(quantizer, found, spread_batches(given, samples), min(samples, len(given)), on_progress)
        search = BitSearch(
            found, quantizer, partial(spread_batches, given, _BLAMED), min(_BLAMED, len(given)),
            float_io, pinned, core, goal, evaluate, on_progress,
        )  # fmt: skip
        result = search.run(explore)
    doubts = [*given.doubts(), *_shared_samples(given, tests, samples), *_few_samples(tests, accuracy_loss, metric)]
    return result.with_warnings(doubts)


def _check_real(samples: Samples) -> None:
    """Raise UsageError for integers that a quantized input would take for stored values."""
    for spec, source in zip(samples.inputs, samples.sources, strict=True):
        if spec.dtype == "float32" and source.dtype.kind in "iu" and source.dtype != np.uint8:
            raise UsageError(f"the data for {spec.name!r} are {source.dtype}: give real numbers, such as float32")


def _shared_samples(given: Samples, tests: Samples, most: int) -> list[str]:
    """Return a warning where samples of the calibration are evaluated too."""
    if tests is given:
        return ["the data are calibrated with and evaluated: new data may be less accurate; give others as --test-data"]
    known = set(_digests(spread_batches(given, most)))
    same = sum(digest in known for digest in _digests(batch.stored for batch in tests.batches()))
    if not same:
        return []
    return [f"{same:,} of {len(tests):,} evaluated samples are calibrated with too: new data may be less accurate"]


def _digests(batches: Iterable[Mapping[str, Array]]) -> Iterator[bytes]:
    for batch in batches:
        for sample in zip(*batch.values(), strict=True):
            yield sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in sample)).digest()


def _few_samples(tests: Samples, loss: float, metric: str) -> list[str]:
    if not is_share(metric) or not 0 < loss * len(tests) < 100:
        return []
    return [f"a loss of {loss:g} points is less than one of {len(tests):,} samples: give more"]
