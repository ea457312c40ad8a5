"""How long `tinyfuse.estimate` takes beside `tinyfuse.compile`, and how far from it its figures are.

python benchmarks/estimates.py [MODEL.tflite ...] [--targets cortex-m0plus cortex-m4 cortex-m55] [--generated 100]

Calls are made as a search's worker makes them: a process estimates or compiles the networks one after the other, each
once, and a few others first. So it has the core's tables, and its memory and the interpreter have settled, but it never
saw the model before. Times are the least processor time of several workers' calls, which take rounds; --generated 0
leaves the generated networks out.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests" / "support"))

from known_architectures import FAMILIES  # noqa: E402
from random_graphs import networks  # noqa: E402
from sequence_networks import sequence_networks  # noqa: E402

import tinyfuse  # noqa: E402

FIGURES = "ram_bytes", "predicted_instructions", "weight_bytes", "code_bytes", "macs"

#: shares of the generated networks beside the families: drawn from, of a hundred
DRAWN = (networks(), 70), (networks(most_layers=20), 15), (sequence_networks(), 10)

#: what a worker begins with, none of those that are measured
OTHERS = [family(seed=1) for family in FAMILIES.values()]

#: errors beyond this share are counted
FAR = 0.05


@dataclass(frozen=True)
class Case:
    """A model on a core: figures of its plan and of its estimate, processor seconds of both."""

    name: str
    target: str
    planned: dict[str, int | None]
    estimated: dict[str, int | None]
    compile_seconds: float
    estimate_seconds: float

    def error(self, figure: str) -> float:
        planned, estimated = self.planned[figure], self.estimated[figure]
        return 0.0 if planned == estimated else estimated / planned - 1

    @property
    def ratio(self) -> float:
        return self.compile_seconds / self.estimate_seconds


class Call(NamedTuple):
    """Processor seconds, and what the figures were."""

    seconds: float
    figures: dict[str, int | None]


def measured(function: Callable, models: Sequence[bytes], target: str) -> list[Call]:
    """A call for each model, by a worker of its own."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(_calls, (function, models, target))


def _calls(function: Callable, models: Sequence[bytes], target: str) -> list[Call]:
    warm_up(function, target)
    return [_call(function, model, target) for model in models]


def _call(function: Callable, model: bytes, target: str) -> Call:
    begun = time.process_time()
    found = function(model, target)
    seconds = time.process_time() - begun
    return Call(seconds, {name: getattr(found, name) for name in FIGURES})


def cases_of(models: Mapping[str, Sequence[tuple[str, bytes]]], repeats: int) -> list[Case]:
    """Of each target's (name, model). Rounds go through all of them, for a machine is slow for seconds at a time."""
    best: dict[tuple[str, Callable], list[Call]] = {}
    functions = tinyfuse.compile, tinyfuse.estimate
    for number, target, function in itertools.product(range(repeats), models, functions):
        print(f"round {number + 1} of {repeats}: {function.__name__}, {target}", file=sys.stderr)
        calls = measured(function, [data for _, data in models[target]], target)
        known = best.get((target, function), calls)
        best[target, function] = [min(pair, key=lambda call: call.seconds) for pair in zip(known, calls, strict=True)]
    return [
        Case(name, target, planned.figures, estimated.figures, planned.seconds, estimated.seconds)
        for target, of_target in models.items()
        for (name, _), planned, estimated in zip(of_target, *(best[target, each] for each in functions), strict=True)
    ]


def warm_up(function: Callable, target: str) -> None:
    """Imports what calls import, reads the core's tables, and copies the pages of a fork that calls touch."""
    for network in OTHERS:
        function(network, target)
    gc.collect()
    gc.freeze()


def drawn(strategy: SearchStrategy[bytes], count: int, number: int) -> Iterator[bytes]:
    """So many networks of a strategy, the same ones at each call."""
    found: list[bytes] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(data: bytes) -> None:
        found.append(data)

    draw()
    yield from found[:count]


def generated(count: int) -> Iterator[tuple[str, bytes]]:
    """Networks of DRAWN and the tests' families."""
    for number, (strategy, share) in enumerate(DRAWN):
        for k, data in enumerate(drawn(strategy, -(-count * share // 100), number)):
            yield f"drawn_{number}_{k}", data
    yield from ((name, family()) for name, family in FAMILIES.items())


def line(case: Case) -> str:
    errors = (f"{100 * case.error(figure):+.2f} %" for figure in FIGURES)
    times = f"{case.compile_seconds:.3f} | {case.estimate_seconds:.3f} | {case.ratio:.1f}"
    return f"| {case.name} | {case.target} | {times} | {' | '.join(errors)} |"


def summary(cases: Sequence[Case]) -> Iterator[str]:
    compiled, estimated = (
        sum(getattr(case, name) for case in cases) for name in ("compile_seconds", "estimate_seconds")
    )
    ratios = [case.ratio for case in cases]
    yield (
        f"{len(cases)} cases: an estimate takes {estimated / len(cases):.3f} s on average, compile "
        f"{compiled / estimated:.1f} times as long in all, {min(ratios):.1f} to {max(ratios):.1f} times"
    )
    for figure in FIGURES:
        errors = [abs(case.error(figure)) for case in cases]
        yield (
            f"{figure}: {errors.count(0)} equal, {100 * fmean(errors):.2f} % off in the mean, {100 * max(errors):.1f}"
            f" % at most, {sum(error > FAR for error in errors)} by more than {100 * FAR:.0f} %"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--targets", nargs="+", default=["cortex-m0plus", "cortex-m4", "cortex-m55"])
    parser.add_argument("--generated", type=int, default=100, help="about so many networks, for the cores in turn")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    for target in arguments.targets:
        warm_up(tinyfuse.estimate, target)
    models = [(path.stem, path.read_bytes()) for path in arguments.models]
    cases = cases_of(dict.fromkeys(arguments.targets, models), arguments.repeats)
    drawn_ones, count = list(generated(arguments.generated)) if arguments.generated else [], len(arguments.targets)
    in_turns = {target: drawn_ones[number::count] for number, target in enumerate(arguments.targets)}
    drawn_cases = cases_of(in_turns, min(2, arguments.repeats))
    print("| model | target | compile s | estimate s | ratio | " + " | ".join(FIGURES) + " |")
    print("|" + "---|" * (5 + len(FIGURES)))
    far = [case for case in drawn_cases if max(abs(case.error(figure)) for figure in FIGURES[:2]) > FAR]
    print(*map(line, cases + far), sep="\n")
    for part in (cases, drawn_cases):
        if part:
            print("", *summary(part), sep="\n")


if __name__ == "__main__":
    main()
