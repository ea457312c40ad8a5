"""How long `tinyfuse.estimate` takes beside `tinyfuse.compile`, and how far from it its figures are.

python benchmarks/estimates.py [MODEL.tflite ...] [--targets cortex-m0plus cortex-m4 cortex-m55] [--generated 100]

Each call is made in a process of its own, so that nothing is remembered from other models: a fork of one that has
imported all and read the cores' tables for another network, which it plans again before what is timed. Times are the
least processor time of some calls that take rounds; --generated 0 leaves the generated networks out.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests" / "support"))

from families import FAMILIES, mobilenet_v2  # noqa: E402
from random_graphs import networks  # noqa: E402
from sequence_networks import sequence_networks  # noqa: E402

import tinyfuse  # noqa: E402

FIGURES = "ram_bytes", "predicted_instructions", "weight_bytes", "code_bytes", "macs"

#: shares of the generated networks beside the families: drawn from, of a hundred
DRAWN = (networks(), 70), (networks(most_layers=20), 15), (sequence_networks(), 10)

#: none of those that are measured
WARM_UP = mobilenet_v2(seed=1)

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


def measured(function: Callable, data: bytes, target: str) -> tuple[float, dict[str, int | None]]:
    """Processor seconds of one call and its figures, in a process of its own."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(_call, (function, data, target))


def _call(function: Callable, data: bytes, target: str) -> tuple[float, dict[str, int | None]]:
    warm_up([target])  # a fork copies the pages that it touches first
    begun = time.process_time()
    found = function(data, target)
    seconds = time.process_time() - begun
    return seconds, {name: getattr(found, name) for name in FIGURES}


def case_of(name: str, data: bytes, target: str, repeats: int) -> Case:
    rounds = [
        [measured(function, data, target) for function in (tinyfuse.compile, tinyfuse.estimate)] for _ in range(repeats)
    ]
    (compile_seconds, planned), (estimate_seconds, estimated) = (
        min(calls, key=lambda call: call[0]) for calls in zip(*rounds, strict=True)
    )
    return Case(name, target, planned, estimated, compile_seconds, estimate_seconds)


def warm_up(targets: Sequence[str]) -> None:
    """Imports what calls import, and reads the cores' tables."""
    for target in targets:
        for function in (tinyfuse.estimate, tinyfuse.compile):
            function(WARM_UP, target)
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
    warm_up(arguments.targets)
    head = "| model | target | compile s | estimate s | ratio | " + " | ".join(FIGURES) + " |"
    print(head + "\n|" + "---|" * (5 + len(FIGURES)), flush=True)
    cases = []
    for path in arguments.models:
        for target in arguments.targets:
            cases.append(case_of(path.stem, path.read_bytes(), target, arguments.repeats))
            print(line(cases[-1]), flush=True)
    others = []
    if arguments.generated:
        for number, (name, data) in enumerate(generated(arguments.generated)):
            target = arguments.targets[number % len(arguments.targets)]
            others.append(case_of(name, data, target, min(2, arguments.repeats)))
            if max(abs(others[-1].error(figure)) for figure in FIGURES[:2]) > FAR:
                print(line(others[-1]), flush=True)
    for part in (cases, others):
        if part:
            print("", *summary(part), sep="\n")


if __name__ == "__main__":
    main()
