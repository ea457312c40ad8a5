"""An evaluation: all batches of a data set through the module, the interpreter and the float model."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import numpy as np

from tinyfuse.data.inputs import input_specs, real_values
from tinyfuse.data.labels import Labels
from tinyfuse.data.samples import Batch, Samples
from tinyfuse.emit.header import tensor_symbols
from tinyfuse.errors import UsageError
from tinyfuse.evaluate.classes import class_figures, confusion_matrix, threshold_figures, worst_mistakes
from tinyfuse.evaluate.emulated import EmulatedModule
from tinyfuse.evaluate.interpreters import Interpreted, InterpretedFloat
from tinyfuse.evaluate.metrics import ERRORS, Measure, Metric, TopK, measure_of, user_function
from tinyfuse.evaluate.native import NativeModule
from tinyfuse.evaluate.options import EvaluateOptions
from tinyfuse.evaluate.result import Evaluation
from tinyfuse.evaluate.statistics import Score
from tinyfuse.evaluate.streams import Feeding, feeding_of
from tinyfuse.ir import Array
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress
from tinyfuse.toolchain.cmsis_nn import Tree
from tinyfuse.verify.bounds import has_bounds
from tinyfuse.verify.comparison import same_bits
from tinyfuse.verify.emulation import Emulator
from tinyfuse.verify.oracle import ReferenceOracle, make_oracle

#: samples of a batch, so that progress is seen
_MOST_SAMPLES = 1000
#: models that compute a batch at the same time
_JOBS = 2


class Computing(Protocol):
    """Runs the module: a NativeModule or an EmulatedModule."""

    emulator: str
    compiler: str
    compiler_opt: str

    def run(self, inputs: Sequence[Array]) -> list[Array]: ...


def evaluate_plan(
    plan: Plan, tree: Tree | None, model: bytes, machine: Emulator, samples: Samples, labels: Labels,
    classes: tuple[str, ...], how: EvaluateOptions, float_path: str | None, progress: Progress,
) -> Evaluation:  # fmt: skip
    """Measures the module over a data set, and beside it the `model` file's bytes in an interpreter and the float
    model.

    `machine` is the emulator that `how` asks for. `samples` were opened for the inputs of `feeding_of(plan)`.
    `classes` has names in the output's order, () if they are not known. Raises what `Module.evaluate` raises.
    """
    feeding, frames = feeding_of(plan), samples.frames
    if len(labels) != len(samples):
        raise UsageError(f"--labels: {len(labels):,} labels for {len(samples):,} samples; give one per sample")
    output = scored_output(plan, how.scores)
    measure = measure_of(how.metric, labels, plan.source.outputs[output].elements, user_function(how.metric))
    _check_limits(how, measure)
    calls = feeding.calls(frames)
    oracle = make_oracle(how.oracle, model, feeding.graph)
    interpreted = Interpreted(oracle, feeding)
    float_model = (
        None if float_path is None else InterpretedFloat(float_path, feeding, plan.source.layouts, how.timeout)
    )
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as work:
        progress(f"compiling for {machine.name}")
        computing = _compiled(plan, tree, machine, calls, how, Path(work))
        loop = _Loop(plan, feeding, output, measure, computing, interpreted, float_model)
        loop.run(samples, calls, progress)
    found = loop.module
    score, of_float = found.score(), None if loop.floating is None else loop.floating.score()
    names = _class_names(classes or labels.names, plan.source.outputs[output].elements)
    top = found if isinstance(found, TopK) else None
    differs = loop.differing > 0
    libm = has_bounds(plan.source)
    unproven = isinstance(oracle, ReferenceOracle)
    return Evaluation(
        metric=how.metric,
        samples=len(samples),
        score=score,
        interpreter=loop.interpreted.score(),
        float_model=of_float,
        agreement=_agreement(found, loop.floating),
        exact=not differs and not unproven,
        faulty=differs and not libm,
        differing=loop.differing,
        first_difference=loop.first_difference,
        unproven=unproven and not differs,
        passed=_passes(how, score),
        classes=() if top is None else class_figures(measure.labels, top.predicted, names),
        confusion=() if top is None else confusion_matrix(measure.labels, top.predicted, len(names)),
        mistakes=() if top is None else worst_mistakes(measure.labels, top),
        thresholds=() if top is None else threshold_figures(measure.labels, top, len(names)),
        saturated=loop.saturated,
        notes=_notes(samples, loop.saturated),
        warnings=(*samples.doubts(), *oracle.warnings, *_doubts(labels, measure, classes), *_libm(loop, libm)),
        oracle=interpreted.name,
        float_by=None if float_model is None else float_model.name,
        emulator=computing.emulator,
        compiler=computing.compiler,
        compiler_opt=computing.compiler_opt,
    )


def _compiled(
    plan: Plan, tree: Tree | None, machine: Emulator, calls: int, how: EvaluateOptions, work: Path
) -> Computing:
    """Module compiled for this machine, or for an emulated core. The folder `work` must outlive it."""
    if machine.name == "host":
        return NativeModule(plan, calls, how.compiler, how.compiler_opt, how.timeout, work)
    return EmulatedModule(plan, tree, machine, calls, how.compiler, how.compiler_opt, how.timeout, work)


class _Loop:
    """Runs all batches. Results are in `module`, `interpreted`, `floating` (their metrics), `differing`,
    `first_difference` and `saturated`."""

    def __init__(
        self, plan: Plan, feeding: Feeding, output: int, measure: Measure, computing: Computing,
        interpreter: Interpreted, float_model: InterpretedFloat | None,
    ):  # fmt: skip
        self._plan, self._feeding, self._measure = plan, feeding, measure
        self._computing, self._interpreter, self._float_model = computing, interpreter, float_model
        self._outputs = input_specs(plan.source.outputs)
        self._scored = self._outputs[output].name
        self.module, self.interpreted = measure.make(), measure.make()
        self.floating: Metric | None = None if float_model is None else measure.make()
        self.differing, self.saturated = 0, 0
        self.first_difference: int | None = None

    def run(self, samples: Samples, calls: int, progress: Progress) -> None:
        """Runs every batch of the data set, with all models at the same time."""
        done, total = 0, len(samples)
        with ThreadPoolExecutor(_JOBS) as pool:
            for batch in samples.batches(min(samples.batch_size, _MOST_SAMPLES)):
                progress(f"evaluating {done:,} of {total:,} samples on {self._computing.emulator}")
                self._add(batch, calls, samples.frames, pool)
                done += batch.count

    def _add(self, batch: Batch, calls: int, frames: int | None, pool: ThreadPoolExecutor) -> None:
        stored = batch.stored
        asked = pool.submit(self._interpreter.run, stored, frames)
        of_float = None if self._float_model is None else pool.submit(self._float_model.run, batch.real, frames)
        computed = self._computing.run(self._feeding.to_module(stored, calls))
        expected = asked.result()
        labels = self._measure.labels[batch.start : batch.start + batch.count]
        self._compare(batch.start, computed, expected)
        self.module.add(self._real(computed), self._scored, labels)
        self.interpreted.add(self._real(expected), self._scored, labels)
        if of_float is not None and self.floating is not None:
            self.floating.add(self._real_floats(of_float.result()), self._scored, labels)
        self.saturated += batch.saturated

    def _compare(self, start: int, computed: list[Array], expected: list[Array]) -> None:
        differs = np.zeros(len(computed[0]), np.bool_)
        for found, wanted in zip(computed, expected, strict=True):
            differs |= ~same_bits(found, wanted).reshape(len(found), -1).all(axis=1)
        if differs.any() and self.first_difference is None:
            self.first_difference = start + int(differs.argmax())
        self.differing += int(differs.sum())

    def _real(self, outputs: list[Array]) -> dict[str, Array]:
        """Outputs converted to real numbers, by name."""
        return {spec.name: real_values(spec, array) for spec, array in zip(self._outputs, outputs, strict=True)}

    def _real_floats(self, outputs: list[Array]) -> dict[str, Array]:
        """Outputs of the float model under the names of the module's."""
        path = "" if self._float_model is None else self._float_model.path
        if len(outputs) != len(self._outputs):
            raise UsageError(f"--float {path}: it has {len(outputs)} outputs, the model {len(self._outputs)}")
        found = {}
        for spec, array in zip(self._outputs, outputs, strict=True):
            if array[0].size != spec.elements:
                raise UsageError(
                    f"--float {path}: its output for {spec.name!r} has {array[0].size:,} numbers, not {spec.elements:,}"
                )
            found[spec.name] = array.astype(np.float32).reshape(len(array), *spec.shape)
        return found


def scored_output(plan: Plan, name: str | None) -> int:
    """Index of the output that is scored. UsageError if no output has the name."""
    outputs = plan.source.outputs
    names = [(symbol, tensor.name) for symbol, tensor in zip(tensor_symbols(outputs), outputs, strict=True)]
    if name is None:
        return 0
    number = next((number for number, known in enumerate(names) if name in known), None)
    if number is None:
        raise UsageError(f"--scores {name}: the model's outputs are {', '.join(symbol for symbol, _ in names)}")
    return number


def _class_names(known: tuple[str, ...], elements: int) -> tuple[str, ...]:
    """Names of `elements` classes: the known ones, otherwise their numbers."""
    classes = max(2, elements)
    return (*known[:classes], *map(str, range(len(known), classes)))


def _agreement(found: Metric, floating: Metric | None) -> float | None:
    if not isinstance(found, TopK) or not isinstance(floating, TopK):
        return None
    return float((found.predicted == floating.predicted).mean())


def _check_limits(how: EvaluateOptions, measure: Measure) -> None:
    if how.at_least is not None and measure.name in ERRORS:
        raise UsageError(f"--at-least {how.at_least:g}: a lower {measure.name} is better; give --at-most instead")
    share = measure.k is not None or measure.name in ("auc", "map")
    if share and any(limit is not None and not 0 <= limit <= 1 for limit in (how.at_least, how.at_most)):
        raise UsageError(f"{measure.name} is a number from 0 to 1: write --at-least 0.90 for 90 %")


def _passes(how: EvaluateOptions, score: Score) -> bool:
    return (how.at_least is None or score.value >= how.at_least) and (how.at_most is None or score.value <= how.at_most)


def _notes(samples: Samples, saturated: int) -> tuple[str, ...]:
    notes = [
        f"input {spec.name!r}: {source.dtype} was quantized with scale {spec.scale:g}, zero point {spec.zero_point}"
        for spec, source in zip(samples.inputs, samples.sources, strict=True)
        if spec.quantized and (source.dtype.kind == "f" or (samples.values is not None and source.dtype == np.uint8))
    ]
    if saturated:
        notes.append(f"{saturated:,} numbers are beyond what their input can store, and were saturated")
    return tuple(notes)


def _doubts(labels: Labels, measure: Measure, classes: tuple[str, ...]) -> list[str]:
    """Warnings about labels of classes. `classes`: names in the output's order, () if they are not known."""
    found: list[str] = []
    if measure.k is None:
        return found
    first = int(measure.labels[0])
    if (measure.labels == first).all():
        found.append(f"every label is class {first}: nothing is said of the others")
    if labels.names and not classes:
        order = ", ".join(f"{name} = {number}" for number, name in enumerate(labels.names[:4]))
        more = ", ..." if len(labels.names) > 4 else ""
        found.append(f"classes are numbered by the alphabet, {order}{more}; --classes FILE gives the model's order")
    return found


def _libm(loop: _Loop, libm: bool) -> list[str]:
    if not loop.differing or not libm:
        return []
    return [
        f"{loop.differing:,} samples have floats that differ from the interpreter's in some bit: the model calls "
        "functions of libm; `tinyfuse verify` tells whether they are within their bound"
    ]
