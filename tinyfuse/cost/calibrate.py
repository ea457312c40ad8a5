"""Cost table in a board's cycles: a target's table, each kernel's factors scaled by measured cycles per instruction.

A board counts whole groups of a few models, which is too little data to solve for every loop of every kernel as
benchmarks/measure_costs.py does for instructions. So the loops' proportions stay, and a kernel has one unknown: its
cycles per predicted instruction. They are found by non-negative least squares of relative errors over all groups, each
drawn slightly towards the board's mean, so that kernels that the groups cannot tell apart get equal rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tinyfuse.cost.fit import nnls
from tinyfuse.cost.table import CostTable

#: weight of a kernel's distance from the mean rate, relative to a group's error (Tikhonov regularization)
_DRAWN = 0.05


@dataclass(frozen=True)
class Sample:
    """A group measured on a board: predicted instructions by entry of the cost table, and counted cycles."""

    predicted: Mapping[str, float]
    cycles: float


@dataclass(frozen=True)
class Rate:
    """Cycles per predicted instruction of a kernel.

    groups                   number of measured groups that have it
    mean_error, worst_error  relative errors of the cycles that the rates give for these groups
    """

    cycles: float
    groups: int
    mean_error: float
    worst_error: float


def rates(samples: Sequence[Sample]) -> tuple[float, dict[str, Rate]]:
    """Finds (mean rate over all samples, rate of each entry). `samples` must not be empty, and no figure in them 0."""
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
    """Table file in the format of targets/costs. Kernels that no group had get the mean rate."""
    lines = [
        "# Cycles of every kernel on a board; made by `tinyfuse board calibrate`, not by hand.",
        "# factors: cycles a count of each feature; shapes: groups on the board that had the kernel, 0: none, and",
        "# it is taken for the board's mean; mean_error, worst_error: relative, of these groups' cycles.",
        "# alone, sole: corrections of a kernel that a module calls once, as in the core's table.",
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
        cycles = rate.cycles if rate else mean
        lines.append(f"factors = {_inline(factors, cycles)}")
        for form, corrections in (("alone", table.alone), ("sole", table.sole)):
            if name in corrections:
                each = corrections[name].in_cycles(cycles)
                lines.append(f"{form} = {_inline({'share': each.share, **each.more}, 1)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Text as a basic string of TOML."""
    kept = "".join(c if c.isprintable() else "?" for c in text)
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _inline(factors: Mapping[str, float], times: float) -> str:
    return "{" + ", ".join(f"{name} = {_number(factor * times)}" for name, factor in factors.items()) + "}"


def _number(value: float) -> str:
    assert math.isfinite(value)
    return f"{value:.4g}"
