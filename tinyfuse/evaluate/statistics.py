"""Confidence intervals, areas under curves and precisions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyfuse.ir import Array

#: standard deviations on each side of a 95 % interval of the normal distribution
_Z = 1.959963984540054

Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Score:
    """A metric's value, with its 95 % confidence interval, None for metrics without a formula for one."""

    value: float
    low: float | None = None
    high: float | None = None


def share(correct: int, total: int) -> Score:
    """The share of `correct` among `total`, with Wilson's interval (E. B. Wilson, JASA 22, 1927)."""
    p, z2 = correct / total, _Z * _Z
    middle = (p + z2 / (2 * total)) / (1 + z2 / total)
    half = _Z / (1 + z2 / total) * math.sqrt(p * (1 - p) / total + z2 / (4 * total * total))
    # rounding must not leave the value outside
    return Score(p, min(p, max(0.0, middle - half)), max(p, min(1.0, middle + half)))


def mean(values: Array) -> Score:
    """The mean of one number per sample, with the interval of the normal distribution."""
    value = float(np.mean(values))
    if len(values) < 2:
        return Score(value)
    half = _Z * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Score(value, value - half, value + half)


def roc_area(scores: Array, positive: Booleans) -> Score:
    """Probability that a positive sample has a higher score than a negative one, ties counting half, with the interval
    of Hanley and McNeil (Radiology 143, 1982). There must be both kinds."""
    positives, negatives = int(positive.sum()), int((~positive).sum())
    assert positives * negatives > 0, "a curve needs samples of both kinds"
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    above = float(ranks[places][positive].sum()) - positives * (positives + 1) / 2
    area = above / (positives * negatives)
    q1, q2 = area / (2 - area), 2 * area * area / (1 + area)
    variance = area * (1 - area) + (positives - 1) * (q1 - area * area) + (negatives - 1) * (q2 - area * area)
    half = _Z * math.sqrt(max(0.0, variance) / (positives * negatives))
    return Score(area, max(0.0, area - half), min(1.0, area + half))


def average_precision(scores: Array, positive: Booleans) -> float:
    """Sum over all thresholds of precision times the gain in recall. Samples of equal score share a threshold."""
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], positive[order]
    last = np.append(ranked[1:] != ranked[:-1], True)  # of its score
    found = np.cumsum(hits)[last]
    taken = np.flatnonzero(last) + 1
    gained = np.diff(found, prepend=0)
    return float((gained * found / taken).sum() / positive.sum())
