"""A cost table in the cycles of a board: a target's, each kernel's factors times the cycles that its instructions took.

A board counts whole groups, of a few models: too little to solve for every loop of every kernel as
benchmarks/measure_costs.py does it for instructions. So the loops' proportions stay, and a kernel has one unknown:
cycles of a predicted instruction. Least squares of relative errors over all groups find them, none negative, each drawn
a little to the board's mean, so that what groups can't tell apart is alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tinyfuse.cost.fit import nnls
from tinyfuse.cost.table import CostTable

#: how much a kernel's distance from the mean weighs beside a group's relative error
_DRAWN = 0.05


@dataclass(frozen=True)
class Sample:
    """A group on a board. predicted: instructions by entry of the cost table; cycles: counted."""

    predicted: Mapping[str, float]
    cycles: float


@dataclass(frozen=True)
class Rate:
    """Cycles of a predicted instruction of a kernel. groups: how many had it; mean_error, worst_error: of the cycles
    that the rates give for these groups, relative."""

    cycles: float
    groups: int
    mean_error: float
    worst_error: float


def rates(samples: Sequence[Sample]) -> tuple[float, dict[str, Rate]]:
    """(the mean over all samples, the rate of each entry that one has). `samples` is not empty, and none of its figures
    is 0."""
    mean = sum(s.cycles for s in samples) / sum(sum(s.predicted.values()) for s in samples)
    names = sorted({name for sample in samples for name in sample.predicted})
    rows = np.array([[mean * s.predicted.get(name, 0.0) / s.cycles for name in names] for s in samples])
    drawn = _DRAWN * np.eye(len(names))
    found = nnls(np.vstack([rows, drawn]), np.concatenate([np.ones(len(rows)), np.full(len(names), _DRAWN)]))
    errors = np.abs(rows @ found - 1)
    return mean, {
        name: Rate(float(mean * found[i]), int(here.sum()), float(errors[here].mean()), float(errors[here].max()))
        for i, name in enumerate(names)
        for here in [rows[:, i] > 0]
    }


def table_text(table: CostTable, mean: float, found: Mapping[str, Rate], about: Mapping[str, str]) -> str:
    """The table's file, in the format of targets/costs. Kernels that no group had are taken for the mean."""
    lines = [
        "# Cycles of every kernel on a board; made by `tinyfuse board calibrate`, not by hand.",
        "# factors: cycles a count of each feature; shapes: groups on the board that had the kernel, 0: none, and",
        "# it is taken for the board's mean; mean_error, worst_error: relative, of these groups' cycles.",
        "[about]",
        *(f"{key} = {_quoted(value)}" for key, value in about.items()),
        "",
        "[loop]",
        f"factors = {_inline(table.loop, mean)}",
    ]
    for name, factors in sorted(table.kernels.items()):
        rate = found.get(name)
        lines += ["", f"[kernels.{_quoted(name)}]", f"shapes = {rate.groups if rate else 0}"]
        if rate:
            lines += [f"mean_error = {rate.mean_error:.4f}", f"worst_error = {rate.worst_error:.4f}"]
        lines.append(f"factors = {_inline(factors, rate.cycles if rate else mean)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """As a basic string of TOML."""
    kept = "".join(c if c.isprintable() else "?" for c in text)
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _inline(factors: Mapping[str, float], times: float) -> str:
    return "{" + ", ".join(f"{name} = {_number(factor * times)}" for name, factor in factors.items()) + "}"


def _number(value: float) -> str:
    assert math.isfinite(value)
    return f"{value:.4g}"
