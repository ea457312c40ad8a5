"""Non-negative least squares that fit a kernel's cost factors to measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyfuse.cost.table import Alone
from tinyfuse.ir import Array, Float64s
from tinyfuse.kernels.counts.common import Counts

#: instructions added to a sample's own in relative errors, so that a call's fixed cost matters less than its loops
_CALL_INSTRUCTIONS = 1000

#: a feature is removed if the mean relative error grows by less than this
_MIN_FEATURE_GAIN = 0.001


#: kernels with a single call: smallest sample in instructions; relative error that each further figure must save;
#: samples needed for two figures; least and largest share that still means the same code
MIN_INSTRUCTIONS, MIN_GAIN, MIN_SAMPLES, MIN_SHARE, MAX_SHARE = 500, 0.001, 6, 0.6, 1.3

#: most figures of a form with more than two, and samples needed per figure
_MAX_FIGURES, _SAMPLES_PER_FIGURE = 5, 6

#: counts that are averages over input values: other factors fitted together with them would depend on these values
_VALUE_COUNTS = ("exps",)

#: iterations of the search for least absolute errors, and an error that counts as zero
_ITERATIONS, _ZERO_ERROR = 30, 1e-4


@dataclass(frozen=True)
class Fit:
    """Result of a fit.

    factors      instructions per count of each feature that matters
    mean, worst  errors relative to a sample's instructions + _CALL_INSTRUCTIONS
    """

    factors: dict[str, float]
    mean: float
    worst: float


def fit(samples: Sequence[tuple[Counts, float]]) -> Fit:
    """Finds the factors with which each sample's features add up to its instructions.

    It minimizes relative errors: all samples have the same weight, except small ones. Factors are instructions of a
    loop's body, so none is negative, which also keeps predictions outside the measured grid plausible. Features that
    hardly improve the fit are removed, the least useful first.
    """
    every = dict.fromkeys(name for counts, _ in samples for name in counts)
    names = [name for name in every if any(counts.get(name) for counts, _ in samples)]
    measured = np.array([instructions for _, instructions in samples], float)
    weights = 1 / (measured + _CALL_INSTRUCTIONS)
    rows = np.array([[counts.get(name, 0) for name in names] for counts, _ in samples]) * weights[:, None]
    wanted = measured * weights
    # QR keeps the squared error of any factors, and reduces the rows to features + 1
    triangle = np.linalg.qr(np.column_stack([rows, wanted]), mode="r") / np.sqrt(len(samples))
    few, few_wanted = triangle[:, :-1], triangle[:, -1]
    chosen = _positive(few, few_wanted, list(range(len(names))))
    error = _error(few, few_wanted, chosen)
    while len(chosen) > 1:
        trials = [[c for c in chosen if c != left_out] for left_out in chosen]
        errors_of = [_error(few, few_wanted, trial) for trial in trials]
        least = int(np.argmin(errors_of))
        if errors_of[least] > error + _MIN_FEATURE_GAIN:
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


#: sample of a kernel with a single call: (instructions by its factors, its counts, measured instructions)
Once = tuple[float, Counts, float]


def fit_once(samples: Sequence[Once]) -> Alone:
    """Fits the cost of kernels that a module calls in one place.

    The result corrects the table's instructions either by a factor (`share`), or by an addend per call or per
    pixel. With enough samples, the factor and addends per count of several features are combined: two figures, or more
    with more samples, as long as each improves the fit. Compilers that know a call's constants save most where calls,
    rows or windows begin; loops get better or worse. Errors are absolute, because single calls may compile to something
    else.
    """
    said, took = (np.array(each) for each in zip(*((said, took) for said, _, took in samples), strict=True))
    every = dict.fromkeys(name for _, counts, _ in samples for name in counts)
    names = ("calls", *(name for name in every if name not in ("calls", *_VALUE_COUNTS)))
    columns = {name: np.array([counts.get(name, 0) for _, counts, _ in samples], float) for name in names}
    columns = {name: column for name, column in columns.items() if column.any()}
    forms: list[tuple[str, ...]] = [(name,) for name in ("calls", "pixels") if name in columns]
    enough = len(samples) >= MIN_SAMPLES
    if enough:
        forms = [(name,) for name in columns] + [("share", name) for name in columns]
        forms += [("calls", name) for name in columns if name != "calls"] * ("calls" in columns)
    columns["share"] = said
    least, alone = _fit_least_absolute(said[:, None], took, took)[1], Alone(round(float(np.median(took / said)), 3))
    form: tuple[str, ...] = ()
    while forms:
        tried = [(*_fit_form(each, columns, said, took), each) for each in forms]
        error, found, longer = min(tried, key=lambda each: each[0] + MIN_GAIN * len(each[2]))
        if error + MIN_GAIN * (len(longer) - len(form)) >= least:
            break
        least, alone, form = error, found, longer
        more = enough and len(form) < min(_MAX_FIGURES, len(samples) // _SAMPLES_PER_FIGURE)
        forms = [(*form, name) for name in columns if name not in form] if more else []
    return alone


def _fit_form(form: tuple[str, ...], columns: dict[str, Array], said: Array, took: Array) -> tuple[float, Alone]:
    """Fits one form: (error, result). The error is infinite if the share is not plausible for the same code."""
    wanted = took if "share" in form else took - said
    factors, error = _fit_least_absolute(np.column_stack([columns[name] for name in form]), wanted, took)
    more = {name: round(float(factor), 3) for name, factor in zip(form, factors, strict=True)}
    alone = Alone(more.pop("share", 1.0), more)
    return (error if MIN_SHARE <= alone.share <= MAX_SHARE else np.inf), alone


def _fit_least_absolute(rows: Array, wanted: Array, took: Array) -> tuple[Array, float]:
    """Factors with the least absolute error, by reweighted least squares; and that error, relative to `took`.

    The error is corrected for the degrees of freedom that the factors use up.
    """
    weights = 1 / (took + MIN_INSTRUCTIONS)
    scale: Array = weights
    for _ in range(_ITERATIONS):
        factors: Array = np.linalg.lstsq(rows * scale[:, None], wanted * scale, rcond=1e-10)[0]
        errors = (rows @ factors - wanted) * weights
        scale = weights / np.sqrt(np.maximum(np.abs(errors), _ZERO_ERROR))
    return factors, float(np.abs(errors).mean()) * len(rows) / max(1, len(rows) - rows.shape[1])


def nnls(a: Array, b: Array) -> Array:
    """Solves min |a x - b| for x >= 0; a: [samples, features], b: [samples].

    Source: Lawson and Hanson, "Solving Least Squares Problems", 1974, chapter 23. A set of free columns grows by the
    one with the steepest gradient, and drops those whose factor would become negative.
    """
    scale = np.linalg.norm(a, axis=0)
    scale[scale == 0] = 1
    a = a / scale
    x, free = np.zeros(a.shape[1]), np.zeros(a.shape[1], bool)
    useless = np.zeros(a.shape[1], bool)  # no better than a combination of free columns
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
    """Solves plain least squares over the free columns; zero for the rest."""
    solution = np.zeros(a.shape[1])
    solution[free] = np.linalg.lstsq(a[:, free], b, rcond=1e-10)[0]
    return solution
