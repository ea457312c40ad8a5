"""Cases that CI runs on one core each, by turns, and a campaign on all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest


def by_turns(names: Iterable[str], cores: Sequence[str]) -> Iterator:
    """(name, core) for pytest.mark.parametrize."""
    for turn, name in enumerate(names):
        for number, core in enumerate(cores):
            later = number != turn % len(cores)
            yield pytest.param(name, core, marks=[pytest.mark.campaign] if later else [])
