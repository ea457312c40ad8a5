"""From what operators took to the factors of their kernels: for measure_costs.py."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from tinyfuse.cost.fit import Fit, fit
from tinyfuse.kernels.base import Kernel
from tinyfuse.kernels.counts import Counts

#: a table with fewer samples says nothing
FEWEST = 3


@dataclass(frozen=True)
class Figures:
    """What some code took: instructions, estimated cycles (0 on a core without a table), bytes loaded from flash."""

    instructions: float = 0
    cycles: float = 0
    flash: float = 0


#: the names of Figures
QUANTITIES = tuple(each.name for each in fields(Figures))


@dataclass(frozen=True)
class Sample:
    """One stage that was measured: of what it took, `own` is of the group's own code around the kernel (the row loop,
    the arguments)."""

    kind: str
    kernel: Kernel
    entry: str
    counts: Counts
    loop: Counts
    took: Figures
    own: Figures


@dataclass(frozen=True)
class Fits:
    """By the names of Figures, factors of the row loop, and of each entry; and what all samples of an entry, and of a C
    function, took, "" for all there are."""

    loop: dict[str, Fit]
    kernels: dict[str, dict[str, Fit]]
    shapes: dict[str, int]
    took: dict[str, Figures]


def fit_all(samples: list[Sample], jobs: list[tuple[str, str]]) -> Fits:
    """The factors of the loop from the own code around our kernels, then those of every job's kernel."""
    ours = [s for s in samples if s.kernel.library == "tinyfuse" and s.own.instructions > 0]
    loop = {name: fit([(s.loop, getattr(s.own, name)) for s in ours]) for name in QUANTITIES}
    distinct: dict[str, dict[tuple, Sample]] = {}  # forms of a kernel that differ by rows have whole calls in common
    for sample in samples:
        known = sample.took.instructions > _around(sample, loop["instructions"])
        if known and (sample.kind, sample.kernel.name) in jobs:
            distinct.setdefault(sample.entry, {})[*sample.counts.values(), sample.took] = sample
    by_entry = {entry: list(found.values()) for entry, found in distinct.items()}
    kernels = {
        entry: {name: fit([(s.counts, _alone(s, name, loop[name])) for s in found]) for name in QUANTITIES}
        for entry, found in sorted(by_entry.items())
        if len(found) >= FEWEST
    }
    functions: dict[str, list[Sample]] = {"": samples}
    for entry, of_entry in by_entry.items():
        functions.setdefault(function_of(entry), []).extend(of_entry)
    took = {name: added(sample.took for sample in found) for name, found in (functions | by_entry).items()}
    return Fits(loop, kernels, {entry: len(found) for entry, found in by_entry.items()}, took)


def function_of(entry: str) -> str:
    """The C function of an entry."""
    return entry.partition(" ")[0]


def added(figures: Iterable[Figures]) -> Figures:
    every = list(figures)
    return Figures(*(sum(getattr(each, name) for each in every) for name in QUANTITIES))


def _around(sample: Sample, loop: Fit) -> float:
    """The share of the row loop."""
    return sum(factor * sample.loop.get(name, 0) for name, factor in loop.factors.items())


def _alone(sample: Sample, name: str, loop: Fit) -> float:
    """What the kernel itself took of a quantity."""
    return max(0.0, getattr(sample.took, name) - _around(sample, loop))
