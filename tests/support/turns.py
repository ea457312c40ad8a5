"""Cases that CI runs on one core each, by turns, and a campaign on all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest

CORES = ("cortex-m4", "cortex-m55")


def turn_of(core: str, cases: Sequence, config: pytest.Config) -> Sequence:
    """Of cases that are one program, those that `core`, one of CORES, runs; all for any other target."""
    if core not in CORES or config.getoption("--campaign"):
        return cases
    return cases[CORES.index(core) :: len(CORES)]


def by_turns(names: Iterable[str], cores: Sequence[str] = CORES) -> Iterator:
    """(name, core) for pytest.mark.parametrize."""
    for turn, name in enumerate(names):
        for number, core in enumerate(cores):
            later = number != turn % len(cores)
            yield pytest.param(name, core, marks=[pytest.mark.campaign] if later else [])
