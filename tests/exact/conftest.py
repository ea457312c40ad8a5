"""The tests of this folder look at what modules compute, not at how little RAM they take."""

from set_limits import brief_placements

__all__ = ["brief_placements"]
