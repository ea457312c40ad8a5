"""Sets limits of searches (tinyfuse/limits.py) for a test, to reach them or to save time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tinyfuse import limits


def set_limits(monkeypatch: pytest.MonkeyPatch, **most: int) -> None:
    """Sets limits by name for a test."""
    for name, number in most.items():
        monkeypatch.setattr(limits, name, replace(getattr(limits, name), most=number))


@pytest.fixture(scope="module", autouse=True)
def brief_placements(pytestconfig: pytest.Config) -> Iterator[None]:
    """Limits the search for a placement to a tenth, for folders whose tests check only computed values: it took half of
    their planning, and the result rarely needs a byte more. A campaign searches as users do."""
    with pytest.MonkeyPatch.context() as patch:
        if not pytestconfig.getoption("--campaign"):
            set_limits(patch, PLACEMENT=limits.PLACEMENT.most // 10)
        yield
