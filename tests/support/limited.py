"""Limits of searches (tinyfuse/limits.py) that a test sets, so that they are reached."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tinyfuse import limits


def limited(monkeypatch: pytest.MonkeyPatch, **most: int) -> None:
    """Sets limits, by their names, for a test."""
    for name, number in most.items():
        monkeypatch.setattr(limits, name, replace(getattr(limits, name), most=number))
