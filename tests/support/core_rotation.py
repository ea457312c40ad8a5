"""Cases and tests that CI runs on one core each, by turns, and a campaign on all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from zlib import crc32

import pytest

CORES = ("cortex-m4", "cortex-m55")
#: of each instruction set
EVERY_CORE = ("cortex-m0plus", *CORES)


def on_one_core(*cores: str, host: bool = False) -> Callable[[Callable], Callable]:
    """Parametrizes a test's `target`: one of the cores (none named: of EVERY_CORE), which the test's name chooses, and the
    host if asked for. For what is much the same on all of them: kernels have tests of their own."""

    def mark(test: Callable) -> Callable:
        every = cores or EVERY_CORE
        chosen = every[crc32(test.__name__.encode()) % len(every)]
        targets = [pytest.param(core, marks=pytest.mark.campaign) if core != chosen else core for core in every]
        return pytest.mark.parametrize("target", ["host", *targets] if host else targets)(test)

    return mark


def share_of_core(core: str, cases: Sequence, config: pytest.Config) -> Sequence:
    """Of cases that are one program, those that `core`, one of CORES, runs; all for any other target."""
    if core not in CORES or config.getoption("--campaign"):
        return cases
    return cases[CORES.index(core) :: len(CORES)]


def rotate_cores(names: Iterable[str], cores: Sequence[str] = CORES) -> Iterator:
    """(name, core) for pytest.mark.parametrize; a name may be a pytest.param of its own."""
    for turn, name in enumerate(names):
        given = name if isinstance(name, type(pytest.param())) else pytest.param(name)
        for number, core in enumerate(cores):
            later = [pytest.mark.campaign] if number != turn % len(cores) else []
            known_as = f"{given.id}-{core}" if given.id else None
            yield pytest.param(*given.values, core, id=known_as, marks=[*given.marks, *later])
