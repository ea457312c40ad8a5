"""Least squares with factors that are not negative: what a kernel's measurements say of its loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyfuse.cost.table import Alone
from tinyfuse.ir import Array, Float64s
from tinyfuse.kernels.counts.common import Counts

#: errors of a sample are weighed with this many instructions more than it has: what a call costs
#: matters less than what its loops do
_SMALL = 1000

#: features whose removal worsens the mean relative error by less than this are removed
_WORTH = 0.001


#: of kernels that are called once: instructions of a sample that tells of it; what each figure of another form of what
#: they take must spare of the relative error; samples that are enough for two figures; the least and the largest share
#: that tells of the same code
SMALL, WORTH, SOME, LEAST, MOST = 500, 0.001, 6, 0.6, 1.3

#: more than two figures: at most so many, each of so many samples
_FIGURES, _SAMPLES = 4, 10

#: counts that are so only in the mean, over values of inputs: what stands beside one of them tells of these values
_OF_VALUES = ("exps",)

#: iterations of a search for least absolute errors, and the error that is none
_ITERATIONS, _NONE = 30, 1e-4


@dataclass(frozen=True)
class Fit:
    """factors: instructions a count of each feature that matters; mean and worst: errors relative to a
    sample's instructions and _SMALL more."""

    factors: dict[str, float]
    mean: float
    worst: float


def fit(samples: Sequence[tuple[Counts, float]]) -> Fit:
    """The factors with which the features of every sample add up to its instructions.

    Relative errors are minimized: every sample counts alike, unless it is small. Factors are instructions
    of a loop's body, so none is negative; that also keeps predictions outside of the grid sane.
    Counts that hardly help are left out, the least useful first.
    """
    every = dict.fromkeys(name for counts, _ in samples for name in counts)
    names = [name for name in every if any(counts.get(name) for counts, _ in samples)]
    measured = np.array([instructions for _, instructions in samples], float)
    weights = 1 / (measured + _SMALL)
    rows = np.array([[counts.get(name, 0) for name in names] for counts, _ in samples]) * weights[:, None]
    wanted = measured * weights
    # of any factors the same squared error, from no more rows than there are features and one
    triangle = np.linalg.qr(np.column_stack([rows, wanted]), mode="r") / np.sqrt(len(samples))
    few, few_wanted = triangle[:, :-1], triangle[:, -1]
    chosen = _positive(few, few_wanted, list(range(len(names))))
    error = _error(few, few_wanted, chosen)
    while len(chosen) > 1:
        trials = [[c for c in chosen if c != left_out] for left_out in chosen]
        errors_of = [_error(few, few_wanted, trial) for trial in trials]
        least = int(np.argmin(errors_of))
        if errors_of[least] > error + _WORTH:
            break
        chosen = _positive(few, few_wanted, trials[least])
    factors = nnls(rows[:, chosen], wanted)
    errors = np.abs(rows[:, chosen] @ factors - wanted)
    return Fit(
        {names[c]: float(f) for c, f in zip(chosen, factors, strict=True) if f > 0},
        float(errors.mean()), float(errors.max()),
    )  # fmt: skip


def _positive(rows: Array, wanted: Array, columns: list[int]) -> list[int]:
    factors = nnls(rows[:, columns], wanted)
    return [column for column, factor in zip(columns, factors, strict=True) if factor > 0]


def _error(rows: Array, wanted: Array, columns: list[int]) -> float:
    factors = nnls(rows[:, columns], wanted)
    return float(np.linalg.norm(rows[:, columns] @ factors - wanted))


#: of a kernel that is called once: what its factors say, its counts, what it took
Once = tuple[float, Counts, float]


def fit_once(samples: Sequence[Once], sundry: bool = False) -> Alone:
    """What a kernel takes that is called once. A share; or all, and instructions a call or, of one entry (not
    `sundry`), a pixel; or, of enough samples of one entry, the nearest two figures among a share, instructions a call
    and instructions a count of another feature, and of more samples more such features. What compilers know of the
    constants saves most where calls, rows or windows begin, and loops may be better or worse for it. Errors are
    absolute ones, as now and then something else becomes of a call."""
    said, took = (np.array(each) for each in zip(*((said, took) for said, _, took in samples), strict=True))
    every = dict.fromkeys(name for _, counts, _ in samples for name in counts)
    names = ("calls", *(name for name in every if name not in ("calls", *_OF_VALUES)))
    columns = {name: np.array([counts.get(name, 0) for _, counts, _ in samples], float) for name in names}
    columns = {name: column for name, column in columns.items() if column.any()}
    begun = ("calls",) if sundry else ("calls", "pixels")
    forms: list[tuple[str, ...]] = [(name,) for name in begun if name in columns]
    enough = len(samples) >= SOME and not sundry
    if enough:
        forms = [(name,) for name in columns] + [("share", name) for name in columns]
        forms += [("calls", name) for name in columns if name != "calls"] * ("calls" in columns)
    columns["share"] = said
    least, alone = _nearest(said[:, None], took, took)[1], Alone(round(float(np.median(took / said)), 3))
    form: tuple[str, ...] = ()
    while forms:
        tried = [(*_once(each, columns, said, took), each) for each in forms]
        error, found, longer = min(tried, key=lambda each: each[0] + WORTH * len(each[2]))
        if error + WORTH * (len(longer) - len(form)) >= least:
            break
        least, alone, form = error, found, longer
        more = enough and len(form) < min(_FIGURES, len(samples) // _SAMPLES)
        forms = [(*form, name) for name in columns if name not in form] if more else []
    return alone


def _once(form: tuple[str, ...], columns: dict[str, Array], said: Array, took: Array) -> tuple[float, Alone]:
    """The error of a form, and what it says; infinite for what isn't of the same code."""
    wanted = took if "share" in form else took - said
    factors, error = _nearest(np.column_stack([columns[name] for name in form]), wanted, took)
    more = {name: round(float(factor), 3) for name, factor in zip(form, factors, strict=True)}
    alone = Alone(more.pop("share", 1.0), more)
    return (error if LEAST <= alone.share <= MOST else np.inf), alone


def _nearest(rows: Array, wanted: Array, took: Array) -> tuple[Array, float]:
    """The factors of the columns that leave the least absolute error, relative to what was taken, by reweighted least
    squares; and that error, larger by as much as so many factors hide in so many samples."""
    weights = 1 / (took + SMALL)
    scale: Array = weights
    for _ in range(_ITERATIONS):
        factors: Array = np.linalg.lstsq(rows * scale[:, None], wanted * scale, rcond=1e-10)[0]
        errors = (rows @ factors - wanted) * weights
        scale = weights / np.sqrt(np.maximum(np.abs(errors), _NONE))
    return factors, float(np.abs(errors).mean()) * len(rows) / max(1, len(rows) - rows.shape[1])


def nnls(a: Array, b: Array) -> Array:
    """The x >= 0 with the least |a x - b| (Lawson and Hanson, "Solving Least Squares Problems", 1974,
    chapter 23: a set of free columns grows by the one with the steepest gradient, and gives back
    those whose factor would become negative). a: [samples, features], b: [samples]."""
    scale = np.linalg.norm(a, axis=0)
    scale[scale == 0] = 1
    a = a / scale
    x, free = np.zeros(a.shape[1]), np.zeros(a.shape[1], bool)
    useless = np.zeros(a.shape[1], bool)  # as good as a combination of free columns
    for _ in range(10 * a.shape[1]):
        gradient = np.where(free | useless, 0, a.T @ (b - a @ x))
        best = int(np.argmax(gradient))
        if gradient[best] <= 1e-9 * np.linalg.norm(b):
            break
        free[best] = True
        solution = _solved(a, b, free)
        if solution[best] <= 0:
            free[best], useless[best] = False, True
            continue
        useless[:] = False
        while (solution[free] <= 0).any():
            falling = free & (solution <= 0)
            step = np.min(x[falling] / (x[falling] - solution[falling]))
            x = x + step * (solution - x)
            free &= x > 1e-12
            x[~free] = 0
            solution = _solved(a, b, free)
        x = solution
    found: Float64s = x / scale
    return found


def _solved(a: Array, b: Array, free: Array) -> Array:
    """Plain least squares over the free columns, zero for the rest."""
    solution = np.zeros(a.shape[1])
    solution[free] = np.linalg.lstsq(a[:, free], b, rcond=1e-10)[0]
    return solution
