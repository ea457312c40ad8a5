"""From what operators took to the factors of their kernels: for measure_costs.py."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from tinyfuse.cost.fit import MAX_SHARE, MIN_GAIN, MIN_INSTRUCTIONS, MIN_SAMPLES, MIN_SHARE, Fit, Once, fit, fit_once
from tinyfuse.cost.table import LEAST_SHARE, Alone
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.counts.common import KNOWN, Counts

#: a table with fewer samples says nothing
FEWEST = 3

#: samples of single calls that suffice to fit an entry without those of other forms of its C function
_ENOUGH_OF_ENTRY = 12

#: of the counts of layers, what tells of blocks of pixels of whatever size
_ANY_BLOCKS = frozenset("blocks block_pairs block_pair_words twos two_pairs two_pair_words odd_pixel_words".split())


#: where something begins in what gathers windows: there a single call spares something
_BEGUN = (
    "calls", "pixels", "twos", "tap_rows", "gathered_windows", "gathered_rows", "gathered_taps", "border_pixel_rows",
    "border_taps", "missing_vectors",
)  # fmt: skip


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
    the arguments). weight: how often it counts in a fit; alone: its module calls the kernel once; windows: the kernel
    gathers them by code that others share; sole: which nothing else calls; beside: of an entry that a kernel costs
    with, what the table has of the kernel that it costs as, which is no part of what it took."""

    kind: str
    kernel: Kernel
    entry: str
    counts: Counts
    loop: Counts
    took: Figures
    own: Figures
    weight: int = 1
    alone: bool = False
    windows: bool = False
    sole: bool = False
    beside: Figures = Figures()


#: what an entry's single calls take: of all of them, and where nothing else calls what gathers their windows
Singles = tuple[Alone | None, Alone | None]


@dataclass(frozen=True)
class Fits:
    """By the names of Figures, factors of the row loop, and of each entry; what all samples of an entry, and of a C
    function, took, "" for all there are; and what a kernel takes where it is called once, and where it is all that
    calls what gathers its windows."""

    loop: dict[str, Fit]
    kernels: dict[str, dict[str, Fit]]
    shapes: dict[str, int]
    took: dict[str, Figures]
    alone: dict[str, Alone]
    sole: dict[str, Alone]
    own: Figures

    def singles(self, entry: str) -> Singles:
        return self.alone.get(entry), self.sole.get(entry)


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
    alone, sole = called_once_fits(
        by_entry, {entry: fits["instructions"].factors for entry, fits in kernels.items()}, loop["instructions"].factors
    )
    # beyond these factors don't fit: then all samples have one fit
    doubted = {entry: by_entry[entry] for entry, found in alone.items() if not MIN_SHARE <= found.share <= MAX_SHARE}
    kernels = _with_passes(several | doubted, kernels | _factors(doubted, loop))
    alone = {entry: found for entry, found in alone.items() if entry not in doubted}
    took = {name: added(sample.took for sample in found) for name, found in ({"": samples} | by_entry).items()}
    own = added(sample.own for sample in ours)
    return Fits(loop, kernels, {entry: len(found) for entry, found in by_entry.items()}, took, alone, sole, own)


def _folded(sample: Sample) -> bool:
    """Whether a merged loop has less than an instruction for each load, store and operator: compilers know what some of
    it comes to."""
    if sample.kind != "FUSED_LOOP":
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


#: counts of loops of their own behind a kernel's: of few entries some sample has them
_PASSES = ("clamped_outputs", "narrowed_outputs")


def _with_passes(fitted: dict[str, list[Sample]], kernels: dict[str, dict[str, Fit]]) -> dict[str, dict[str, Fit]]:
    """Entries none of whose fitted samples has one of these loops take it for what it is in the middle of their
    function's others."""
    found: dict[str, dict[str, Fit]] = {}
    for entry, fits in kernels.items():
        without = [count for count in _PASSES if not any(sample.counts.get(count) for sample in fitted[entry])]
        others = [each for name, each in kernels.items() if function_of(name) == function_of(entry)]
        found[entry] = dict(fits)
        for name, count in itertools.product(QUANTITIES, without):
            known = [each[name].factors[count] for each in others if count in each[name].factors]
            if known:
                factors = {**found[entry][name].factors, count: float(np.median(known))}
                found[entry][name] = replace(found[entry][name], factors=factors)
    return found


def _of_path(entry: str, counts: Counts) -> Counts:
    """The counts that tell of an entry's path: of blocks of pixels, those of its own size alone. Few samples would take
    others for what they stand beside. Counts for single calls tell nothing here."""
    counts = {name: count for name, count in counts.items() if not name.startswith(KNOWN)}
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
) -> tuple[dict[str, Alone], dict[str, Alone]]:
    """Corrections (`alone`, `sole`) by entry, for kernels that a module calls once.

    `sole` is for those that are also the only caller of the code that gathers windows, `alone` for all others. They are
    fitted to the entry's own samples or, if these are too few, to those of all forms of its C function. For kernels
    that gather windows, samples of all forms and block sizes are used, because these share the code.
    """
    of_entries: dict[str, list[tuple[Sample, Once]]] = {}
    for entry, known in factors.items():
        for sample in by_entry.get(entry, []):
            said = sample.beside.instructions + sum(f * sample.counts.get(name, 0) for name, f in known.items())
            if sample.alone and said > MIN_INSTRUCTIONS:
                once = said, _distinct(sample.counts), _whole(sample) - _around(sample, loop)
                of_entries.setdefault(entry, []).append((sample, once))
    of_functions: dict[tuple[str, str], list[Once]] = {}
    of_windows: dict[tuple[str | None, bool], list[Once]] = {}
    for entry, found in of_entries.items():
        for sample, (said, counts, took) in found:
            once = said, _begun(counts), took
            if not (sample.windows and sample.sole):
                of_functions.setdefault((function_of(entry), _windows(entry)), []).append(once)
            if sample.windows and LEAST_SHARE * said < took < MAX_SHARE * said:  # else the call became something else
                of_windows.setdefault((_windows(entry), sample.sole), []).append(once)
    alone: dict[str, Alone] = {}
    sole: dict[str, Alone] = {}
    gathering = {function_of(entry) for entry, found in of_entries.items() if any(each.windows for each, _ in found)}
    for entry in factors:
        own = [once for sample, once in of_entries.get(entry, []) if not (sample.windows and sample.sole)]
        kind = _windows(entry) if function_of(entry) in gathering else None
        shared, only = (of_windows.get((kind, alike), []) for alike in (False, True))
        like = own if len(own) >= _ENOUGH_OF_ENTRY else of_functions.get((function_of(entry), _windows(entry)), [])
        if len(shared) >= MIN_SAMPLES or len(like) >= FEWEST:
            alone[entry] = fit_once(shared if len(shared) >= MIN_SAMPLES else like)
        if len(only) >= MIN_SAMPLES:
            sole[entry] = fit_once(only)
    telling = {entry: each for entry, each in alone.items() if each.more or abs(each.share - 1) >= MIN_GAIN}
    return telling, {entry: each for entry, each in sole.items() if each != telling.get(entry, Alone())}


def _distinct(counts: Counts) -> Counts:
    """Returns the counts without those that a KNOWN count repeats."""
    return {name: count for name, count in counts.items() if KNOWN + name not in counts}


def _begun(counts: Counts) -> Counts:
    """Returns the counts of begun calls, rows and blocks (_BEGUN), and the KNOWN ones."""
    return {name: count for name, count in counts.items() if name in _BEGUN or name.startswith(KNOWN)}


def _windows(entry: str) -> str:
    """Of entries that differ by forms and sizes of blocks alone, what is behind those: which windows are gathered."""
    forms = "each|rectified|saturated|lines|half.even( saturated)?|bounded|shifted|single_rounding|own_shifts"
    return re.sub(rf".* \w+, blocks of \d| ({forms})$", "", entry)


def _whole(sample: Sample) -> float:
    """Instructions, those beside the entry too."""
    return sample.took.instructions + sample.beside.instructions


def _kernel(sample: Sample, name: str, loop: Mapping[str, float]) -> float:
    """What the kernel itself took of a quantity."""
    return max(0.0, getattr(sample.took, name) - _around(sample, loop))
