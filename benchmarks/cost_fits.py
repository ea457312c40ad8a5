"""From what operators took to the factors of their kernels: for measure_costs.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from tinyfuse.cost.fit import LEAST, MOST, SMALL, WORTH, Fit, Once, fit, fit_once
from tinyfuse.cost.table import Alone
from tinyfuse.kernels.base import Kernel
from tinyfuse.kernels.counts import Counts

#: a table with fewer samples says nothing
FEWEST = 3

#: of the counts of layers, what tells of blocks of pixels of whatever size
_ANY_BLOCKS = frozenset("blocks block_pairs block_pair_words twos two_pairs two_pair_words odd_pixel_words".split())


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
    the arguments). weight: how often it counts in a fit; alone: its module calls the kernel once; beside: of an entry
    that a kernel costs with, what the table has of the kernel that it costs as, which is no part of what it took."""

    kind: str
    kernel: Kernel
    entry: str
    counts: Counts
    loop: Counts
    took: Figures
    own: Figures
    weight: int = 1
    alone: bool = False
    beside: Figures = Figures()


@dataclass(frozen=True)
class Fits:
    """By the names of Figures, factors of the row loop, and of each entry; what all samples of an entry, and of a C
    function, took, "" for all there are; and what a kernel takes where it is called once."""

    loop: dict[str, Fit]
    kernels: dict[str, dict[str, Fit]]
    shapes: dict[str, int]
    took: dict[str, Figures]
    alone: dict[str, Alone]


def fit_all(samples: list[Sample], jobs: list[tuple[str, str]]) -> Fits:
    """The factors of the loop from the own code around our kernels, then those of every job's kernel."""
    ours = [s for s in samples if s.kernel.library == "tinyfuse" and s.own.instructions > 0]
    loop = {name: fit([(s.loop, getattr(s.own, name)) for s in _weighed(ours)]) for name in QUANTITIES}
    distinct: dict[str, dict[tuple, Sample]] = {}  # forms of a kernel that differ by rows have whole calls in common
    for sample in samples:
        known = _whole(sample) > _around(sample, loop["instructions"].factors) and not _folded(sample)
        if known and (sample.kind, sample.kernel.name) in jobs:
            distinct.setdefault(sample.entry, {})[*sample.counts.values(), sample.took] = sample
    by_entry = {entry: list(found.values()) for entry, found in distinct.items()}
    several = {entry: [s for s in found if not s.alone] for entry, found in by_entry.items()}
    several = {entry: found if len(found) >= FEWEST else by_entry[entry] for entry, found in several.items()}
    kernels = _factors(several, loop)
    alone = called_once_fits(
        by_entry, {entry: fits["instructions"].factors for entry, fits in kernels.items()}, loop["instructions"].factors
    )
    # beyond these factors don't fit: then all samples have one fit
    doubted = {entry: by_entry[entry] for entry, found in alone.items() if not LEAST <= found.share <= MOST}
    kernels |= _factors(doubted, loop)
    alone = {entry: found for entry, found in alone.items() if entry not in doubted}
    functions: dict[str, list[Sample]] = {"": samples}
    for entry, of_entry in by_entry.items():
        functions.setdefault(function_of(entry), []).extend(of_entry)
    took = {name: added(sample.took for sample in found) for name, found in (functions | by_entry).items()}
    return Fits(loop, kernels, {entry: len(found) for entry, found in by_entry.items()}, took, alone)


def _folded(sample: Sample) -> bool:
    """Whether a merged loop has less than an instruction for each load, store and operator: compilers know what some of
    it comes to."""
    if sample.kind != "MERGED":
        return False
    others = ("calls", "runs", "rests", "rest_works", "spills")
    return sample.took.instructions < sum(count for name, count in sample.counts.items() if name not in others)


def _factors(by_entry: dict[str, list[Sample]], loop: dict[str, Fit]) -> dict[str, dict[str, Fit]]:
    """Of each entry with enough samples."""
    return {
        entry: {
            name: fit([(_of_path(entry, s.counts), _kernel(s, name, loop[name].factors)) for s in _weighed(found)])
            for name in QUANTITIES
        }
        for entry, found in sorted(by_entry.items())
        if len(found) >= FEWEST
    }


def _of_path(entry: str, counts: Counts) -> Counts:
    """The counts that tell of an entry's path: of blocks of pixels, those of its own size alone. Few samples would take
    others for what they stand beside."""
    found = re.search(r"blocks of (\d)", entry)
    own = f"by_{found[1]}_" if found else ""
    if not own or not any(name.startswith(own) for name in counts):
        return counts
    return {
        name: count for name, count in counts.items()
        if name not in _ANY_BLOCKS and (name.startswith(own) or not re.match(r"by_\d_", name))
    }  # fmt: skip


def _weighed(samples: Iterable[Sample]) -> list[Sample]:
    """Each as often as it counts."""
    return [sample for sample in samples for _ in range(sample.weight)]


def function_of(entry: str) -> str:
    """The C function of an entry."""
    return entry.partition(" ")[0]


def added(figures: Iterable[Figures]) -> Figures:
    every = list(figures)
    return Figures(*(sum(getattr(each, name) for each in every) for name in QUANTITIES))


def _around(sample: Sample, loop: Mapping[str, float]) -> float:
    """The share of the row loop."""
    return sum(factor * sample.loop.get(name, 0) for name, factor in loop.items())


def called_once_fits(
    by_entry: dict[str, list[Sample]], factors: Mapping[str, Mapping[str, float]], loop: Mapping[str, float]
) -> dict[str, Alone]:
    """Of entries with those factors, what kernels take that are called once: by an entry's own samples or, where these
    are too few, by its C function's."""
    of_entries: dict[str, list[Once]] = {}
    for entry, known in factors.items():
        for sample in by_entry.get(entry, []):
            said = sample.beside.instructions + sum(f * sample.counts.get(name, 0) for name, f in known.items())
            if sample.alone and said > SMALL:
                of_entries.setdefault(entry, []).append((said, sample.counts, _whole(sample) - _around(sample, loop)))
    of_functions: dict[str, list[Once]] = {}
    for entry, found in of_entries.items():
        of_functions.setdefault(function_of(entry), []).extend(found)
    enough = {
        entry: of_entries[entry]
        if len(of_entries.get(entry, ())) >= FEWEST
        else of_functions.get(function_of(entry), [])
        for entry in factors
    }
    fits = {
        entry: fit_once(found, len(of_entries.get(entry, ())) < FEWEST)
        for entry, found in enough.items()
        if len(found) >= FEWEST
    }
    return {entry: each for entry, each in fits.items() if each.more or abs(each.share - 1) >= WORTH}


def _whole(sample: Sample) -> float:
    """Instructions, those beside the entry too."""
    return sample.took.instructions + sample.beside.instructions


def _kernel(sample: Sample, name: str, loop: Mapping[str, float]) -> float:
    """What the kernel itself took of a quantity."""
    return max(0.0, getattr(sample.took, name) - _around(sample, loop))
