"""Limits of searches (tinyfuse/limits.py) that a test sets, so that they are reached, or so that it takes less time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tinyfuse import limits


def set_limits(monkeypatch: pytest.MonkeyPatch, **most: int) -> None:
    """Sets limits, by their names, for a test."""
    for name, number in most.items():
        monkeypatch.setattr(limits, name, replace(getattr(limits, name), most=number))


@pytest.fixture(scope="module", autouse=True)
def brief_placements(pytestconfig: pytest.Config) -> Iterator[None]:
    """For folders whose tests hold what is computed, whatever the plan: a placement is searched for a tenth as long,
    which half of their planning went to, and rarely takes a byte more. A campaign searches as users do."""
    with pytest.MonkeyPatch.context() as patch:
        if not pytestconfig.getoption("--campaign"):
            set_limits(patch, PLACEMENT=limits.PLACEMENT.most // 10)
        yield
