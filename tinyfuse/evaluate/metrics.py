"""Metrics of outputs against labels, added up batch by batch."""

from __future__ import annotations

import re
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tinyfuse.data.labels import Labels
from tinyfuse.errors import UsageError
from tinyfuse.evaluate.statistics import Score, average_precision, mean, roc_area, share
from tinyfuse.ir import Array

#: the most bytes of outputs that a metric may keep, if it needs all outputs at once
MAX_KEPT_BYTES = 1 << 30
#: metrics of which less is better
ERRORS = ("mae",)

#: a function of a user: real outputs by name, [samples, *shape], and the labels
UserFunction = Callable[[Mapping[str, Array], Array], Any]


class Metric(ABC):
    """Adds up outputs of samples in their order, then gives their score."""

    @abstractmethod
    def add(self, outputs: Mapping[str, Array], scored: str, labels: Array) -> None:
        """Adds a batch: real outputs by name, [samples, *shape], and the labels of its samples. `scored`: name of the
        output that metrics of a single output use."""

    @abstractmethod
    def score(self) -> Score:
        """Return the metric's value over all batches that were added."""


class TopK(Metric):
    """Share of samples whose label is among the k best outputs. Of equal outputs the first counts as better, as in
    NAME_argmax. Keeps the scores of each sample that classes.py needs."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._kept: list[tuple[Array, ...]] = []

    def add(self, outputs: Mapping[str, Array], scored: str, labels: Array) -> None:
        scores = class_scores(outputs[scored])
        rows = np.arange(len(scores))
        of_label = scores[rows, labels]
        before = np.arange(scores.shape[1]) < labels[:, None]
        same = scores == of_label[:, None]
        better = (scores > of_label[:, None]).sum(axis=1) + (same & before).sum(axis=1)
        predicted = scores.argmax(axis=1)
        best = scores[rows, predicted]
        self._kept.append((better < self._k, predicted.astype(np.int32), best, of_label, scores[:, -1].copy()))

    def score(self) -> Score:
        return share(int(self.correct.sum()), len(self.correct))

    def _joined(self, place: int) -> Array:
        return np.concatenate([kept[place] for kept in self._kept])

    @property
    def correct(self) -> Array:
        """True for each sample that counts as correct."""
        return self._joined(0)

    @property
    def predicted(self) -> Array:
        """Each sample's best class."""
        return self._joined(1)

    @property
    def best(self) -> Array:
        """Score of each sample's best class."""
        return self._joined(2)

    @property
    def of_label(self) -> Array:
        """Score of each sample's label."""
        return self._joined(3)

    @property
    def of_last(self) -> Array:
        """Each sample's score of the last class."""
        return self._joined(4)


class MeanError(Metric):
    """Mean absolute error: over the elements of a sample, then over samples."""

    def __init__(self) -> None:
        self._errors: list[Array] = []

    def add(self, outputs: Mapping[str, Array], scored: str, labels: Array) -> None:
        real = outputs[scored].reshape(len(labels), -1).astype(np.float64)
        self._errors.append(np.abs(real - labels.reshape(len(labels), -1)).mean(axis=1))

    def score(self) -> Score:
        return mean(np.concatenate(self._errors))


class Ranking(Metric):
    """Metric of how scores rank the samples of each class: auc or map."""

    def __init__(self, precision: bool) -> None:
        self._precision, self._bytes = precision, 0
        self._scores: list[Array] = []
        self._labels: list[Array] = []

    def add(self, outputs: Mapping[str, Array], scored: str, labels: Array) -> None:
        scores = class_scores(outputs[scored])
        self._bytes = _kept_bytes(self._bytes + scores.nbytes)
        self._scores.append(scores)
        self._labels.append(labels)

    def score(self) -> Score:
        scores, labels = np.concatenate(self._scores), np.concatenate(self._labels)
        hits = labels > 0 if labels.ndim == 2 else labels[:, None] == np.arange(scores.shape[1])
        some = [c for c in range(scores.shape[1]) if hits[:, c].any() and (self._precision or not hits[:, c].all())]
        if labels.ndim == 1 and scores.shape[1] == 2:  # the other class has the same curve
            some = [c for c in some if c == 1] or some
        if self._precision:
            return Score(float(np.mean([average_precision(scores[:, c], hits[:, c]) for c in some])))
        areas = [roc_area(scores[:, c], hits[:, c]) for c in some]
        return areas[0] if len(areas) == 1 else Score(float(np.mean([area.value for area in areas])))


class UserMetric(Metric):
    """A user's function, called once with all outputs. It returns the score, or one number per sample, whose mean is
    the score."""

    def __init__(self, name: str, function: UserFunction) -> None:
        self._name, self._function, self._bytes = name, function, 0
        self._outputs: dict[str, list[Array]] = {}
        self._labels: list[Array] = []

    def add(self, outputs: Mapping[str, Array], scored: str, labels: Array) -> None:
        self._bytes = _kept_bytes(self._bytes + sum(array.nbytes for array in outputs.values()))
        for name, array in outputs.items():
            self._outputs.setdefault(name, []).append(array)
        self._labels.append(labels)

    def score(self) -> Score:
        outputs = {name: np.concatenate(arrays) for name, arrays in self._outputs.items()}
        labels = np.concatenate(self._labels)
        try:
            found = np.asarray(self._function(outputs, labels), np.float64)
        except Exception as error:
            line = traceback.extract_tb(error.__traceback__)[-1].lineno
            told = " ".join(str(error).split())
            raise UsageError(f"--metric {self._name}: {type(error).__name__}: {told} (line {line})") from None
        if found.shape not in ((), (len(labels),)):
            told = f"it returned an array of shape {list(found.shape)}; return one number, or one per sample"
            raise UsageError(f"--metric {self._name}: {told}")
        if not np.isfinite(found).all():
            raise UsageError(f"--metric {self._name}: it returned NaN or infinity")
        return mean(found) if found.ndim else Score(float(found))


def class_scores(outputs: Array) -> Array:
    """Scores [samples, classes] from outputs [samples, ...]. A single number p per sample is the score of class 1 of
    two, and class 0 gets 1 - p. NaN is below all numbers."""
    scores = outputs.reshape(len(outputs), -1).astype(np.float32, copy=False)
    scores = np.where(np.isnan(scores), np.float32(-np.inf), scores)
    # halves are for class 1
    return (
        np.concatenate([np.nextafter(1 - scores, np.float32(-1)), scores], axis=1) if scores.shape[1] == 1 else scores
    )


def _kept_bytes(bytes: int) -> int:
    if bytes > MAX_KEPT_BYTES:
        raise UsageError(
            f"this metric needs all outputs at once, more than {MAX_KEPT_BYTES:,} bytes: give fewer samples"
        )
    return bytes


# --- what fits together --------------------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """A metric's factory, and the labels in the form that the metric takes.

    make    makes a new metric
    labels  classes, int64 [samples]; numbers, float64 [samples, elements]; as they were read for a user's metric
    k       number of best classes among which a label counts as right; None for other metrics than topK
    """

    name: str
    make: Callable[[], Metric]
    labels: Array
    k: int | None = None


def measure_of(name: str, labels: Labels, elements: int, function: UserFunction | None = None) -> Measure:
    """Metric `name` for an output of `elements` elements. UsageError if there is no such metric, or it does not accept
    the labels."""
    if function is not None:
        return Measure(name, lambda: UserMetric(name, function), labels.values)
    top = re.fullmatch(r"top([1-9]\d{0,5})", name)
    if top:
        k, classes = int(top[1]), max(2, elements)
        if k > 1 and k >= classes:
            raise UsageError(
                f"--metric {name}: the output has only {classes} classes, so every label is among the best {k}"
            )
        return Measure(name, lambda: TopK(k), class_labels(labels, classes), k)
    if name == "mae":
        values = labels.values.reshape(len(labels), -1)
        if values.shape[1] != elements:
            raise UsageError(f"--metric mae: {values.shape[1]:,} numbers per label, but the output has {elements:,}")
        return Measure(name, MeanError, values.astype(np.float64))
    if name in ("auc", "map"):
        hits = _hits(labels, max(2, elements))
        if name == "auc" and _all_alike(hits):
            raise UsageError("--metric auc: all labels are of one class; a curve needs samples of two")
        if name == "map" and hits.ndim == 2 and not (hits > 0).any():
            raise UsageError("--metric map: no sample has a class")
        return Measure(name, lambda: Ranking(precision=name == "map"), hits)
    raise UsageError(f"--metric {name}: not a metric; choose top1, top2, ..., auc, map, mae, or FILE.py:FUNCTION")


def is_share(metric: str) -> bool:
    """Tell whether a metric is a share from 0 to 1, shown in percent."""
    return metric in ("auc", "map") or re.fullmatch(r"top\d+", metric) is not None


def class_labels(labels: Labels, classes: int) -> Array:
    """Labels as class numbers, also from one-hot rows. UsageError if they are not classes, or not the output's."""
    values = labels.values
    if values.ndim == 2 and values.shape[1] == classes and _are_flags(values) and (values.sum(axis=1) == 1).all():
        return np.asarray(values.argmax(axis=1), np.int64)
    if not labels.are_classes:
        shape = list(values.shape)
        raise UsageError(
            f"labels must be class numbers from 0 on, or names of classes, one per sample; these have the shape {shape}"
        )
    most = int(values.max())
    if most >= classes:
        sample = int(values.argmax())
        name = f" ({labels.names[most]!r})" if labels.names else ""
        raise UsageError(
            f"the label of sample {sample} is class {most}{name}, but the output has {classes} classes, "
            f"0 to {classes - 1}"
        )
    return values


def _hits(labels: Labels, classes: int) -> Array:
    """Return the correct class of each sample [samples] or, if a sample may have several, flags [samples, classes].
    UsageError for rows of labels that are not flags."""
    values = labels.values
    if values.ndim == 2:
        if values.shape[1] != classes or not _are_flags(values):
            raise UsageError(f"if a sample has several classes, its label is a row of {classes} zeros and ones")
        return values
    return class_labels(labels, classes)


def _are_flags(values: Array) -> bool:
    return bool(((values == 0) | (values == 1)).all())


def _all_alike(hits: Array) -> bool:
    """Tell whether all samples have the same classes."""
    return bool((hits == hits[0]).all())


# --- functions of users --------------------------------------------------------------------------


def user_function(name: str) -> UserFunction | None:
    """Function of a metric FILE.py:FUNCTION, by running the file; None for another form of name. UsageError if the file
    is missing, fails, or lacks the function."""
    path, colon, wanted = name.rpartition(":")
    if not colon or not path.endswith(".py"):
        return None
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"--metric {name}: can't read {path}: {reason}") from None
    space: dict[str, Any] = {"__name__": Path(path).stem, "__file__": path}
    try:
        exec(compile(text, path, "exec"), space)
    except Exception as error:
        raise UsageError(f"--metric {name}: {type(error).__name__}: {' '.join(str(error).split())}") from None
    function = space.get(wanted)
    if not callable(function):
        raise UsageError(f"--metric {name}: {path} has no function {wanted!r}")
    return function  # type: ignore[no-any-return]
