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
    """(name, core) for pytest.mark.parametrize; a name may be a pytest.param of its own."""
    for turn, name in enumerate(names):
        given = name if isinstance(name, type(pytest.param())) else pytest.param(name)
        for number, core in enumerate(cores):
            later = [pytest.mark.campaign] if number != turn % len(cores) else []
            known_as = f"{given.id}-{core}" if given.id else None
            yield pytest.param(*given.values, core, id=known_as, marks=[*given.marks, *later])
