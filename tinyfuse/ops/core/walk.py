"""Finds the loops (extents and strides) that copy a numpy view out of its array."""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.ir import Array


@dataclass(frozen=True)
class Walk:
    """Loops that copy a source into an output in order: pieces of `run` bytes, from byte `start`.

    `dims` and `steps` (in bytes) are the loops' counts and source strides, outermost first.
    """

    start: int
    dims: tuple[int, ...]
    steps: tuple[int, ...]
    run: int

    @property
    def in_order(self) -> bool:
        """Tell whether the output is one contiguous piece of the source."""
        return not self.dims


def walk_of(view: Array, data: Array) -> Walk:
    """Walk that copies `view`, a numpy view of the contiguous array `data`, with the fewest loops and the longest
    pieces."""
    start = view.__array_interface__["data"][0] - data.__array_interface__["data"][0]
    run = view.itemsize
    loops: list[tuple[int, int]] = []
    for dim, step in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if dim == 1:
            continue
        if not loops and step == run:
            run *= dim
        elif loops and step == loops[-1][0] * loops[-1][1]:
            loops[-1] = (loops[-1][0] * dim, loops[-1][1])
        else:
            loops.append((dim, step))
    loops.reverse()
    return Walk(start, tuple(e for e, _ in loops), tuple(s for _, s in loops), run)
