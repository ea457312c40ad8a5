"""Classes, confusion matrix, mistakes and thresholds of a classification."""

from __future__ import annotations

import numpy as np

from tinyfuse.evaluate.metrics import TopK
from tinyfuse.evaluate.result import MAX_MATRIX, MAX_MISTAKES, THRESHOLDS, ClassScore, Mistake, Threshold
from tinyfuse.ir import Array


def confusion_matrix(labels: Array, predicted: Array, classes: int) -> tuple[tuple[int, ...], ...]:
    """Number of samples by [label][predicted]; () for more than MAX_MATRIX classes."""
    if classes > MAX_MATRIX:
        return ()
    counts = np.bincount(labels * classes + predicted, minlength=classes * classes)
    return tuple(tuple(map(int, row)) for row in counts.reshape(classes, classes))


def class_figures(labels: Array, predicted: Array, names: tuple[str, ...]) -> tuple[ClassScore, ...]:
    """Precision and recall of each class. `names` has one name per class."""
    samples, taken = (np.bincount(each, minlength=len(names)) for each in (labels, predicted))
    right = np.bincount(labels[labels == predicted], minlength=len(names))
    return tuple(
        ClassScore(
            name,
            int(samples[c]),
            int(taken[c]),
            float(right[c] / taken[c]) if taken[c] else None,
            float(right[c] / samples[c]) if samples[c] else None,
        )
        for c, name in enumerate(names)
    )


def worst_mistakes(labels: Array, found: TopK) -> tuple[Mistake, ...]:
    """Mistakes whose best score exceeds the label's score by the most, the worst first."""
    predicted, best, of_label = found.predicted, found.best, found.of_label
    wrong = np.flatnonzero(predicted != labels)
    with np.errstate(invalid="ignore"):  # infinities of float outputs
        margins = np.nan_to_num(best[wrong] - of_label[wrong], nan=0.0)
    chosen = wrong[np.argsort(-margins, kind="stable")[:MAX_MISTAKES]]
    return tuple(Mistake(int(i), int(labels[i]), int(predicted[i]), float(of_label[i]), float(best[i])) for i in chosen)


def threshold_figures(labels: Array, found: TopK, classes: int) -> tuple[Threshold, ...]:
    """Figures of thresholds from the smallest score to the largest. With two classes, the scores of class 1 are
    compared with the threshold; otherwise each sample's best score."""
    scores = found.of_last if classes == 2 else found.best
    finite = scores[np.isfinite(scores)]
    if not finite.size:
        return ()
    right = found.predicted == labels
    thresholds = np.linspace(float(finite.min()), float(finite.max()), THRESHOLDS, dtype=np.float32)
    if classes == 2:
        return tuple(_detected(float(t), labels, scores >= t) for t in thresholds)
    return tuple(_answered(float(t), right, scores >= t) for t in thresholds)


def _answered(threshold: float, right: Array, taken: Array) -> Threshold:
    """Figures of a threshold that a sample's best score must reach for an answer. `taken`: samples that reach it."""
    return Threshold(threshold, float(taken.mean()), float(right[taken].mean()) if taken.any() else None, None, None)


def _detected(threshold: float, labels: Array, taken: Array) -> Threshold:
    """Confusion figures for two classes at a threshold. `taken`: samples whose score of class 1 reaches it."""
    hits, false_alarms = (float(taken[labels == label].mean()) if (labels == label).any() else None for label in (1, 0))
    return Threshold(threshold, 1.0, float((taken == (labels == 1)).mean()), hits, false_alarms)
