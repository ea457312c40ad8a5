"""Distributes cases and tests over cores: CI runs each on one core, in rotation; a campaign runs all on every core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from zlib import crc32

import pytest

CORES = ("cortex-m4", "cortex-m55")
#: of each instruction set
EVERY_CORE = ("cortex-m0plus", *CORES)


def on_one_core(*cores: str, host: bool = False) -> Callable[[Callable], Callable]:
    """Parametrizes a test's `target` with one of the cores (default: EVERY_CORE), chosen by the test's name, and the
    host if asked for. For tests that differ little between cores: kernels have their own tests."""

    def mark(test: Callable) -> Callable:
        every = cores or EVERY_CORE
        chosen = every[crc32(test.__name__.encode()) % len(every)]
        targets = [pytest.param(core, marks=pytest.mark.campaign) if core != chosen else core for core in every]
        return pytest.mark.parametrize("target", ["host", *targets] if host else targets)(test)

    return mark


def share_of_core(core: str, cases: Sequence, config: pytest.Config) -> Sequence:
    """Cases of one program that `core`, one of CORES, runs; any other target runs all."""
    if core not in CORES or config.getoption("--campaign"):
        return cases
    return cases[CORES.index(core) :: len(CORES)]


def rotate_cores(names: Iterable[str], cores: Sequence[str] = CORES) -> Iterator:
    """Yields (name, core) for pytest.mark.parametrize; a name may be a pytest.param."""
    for turn, name in enumerate(names):
        given = name if isinstance(name, type(pytest.param())) else pytest.param(name)
        for number, core in enumerate(cores):
            later = [pytest.mark.campaign] if number != turn % len(cores) else []
            known_as = f"{given.id}-{core}" if given.id else None
            yield pytest.param(*given.values, core, id=known_as, marks=[*given.marks, *later])
