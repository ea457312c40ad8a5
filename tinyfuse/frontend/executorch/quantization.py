"""Finds scales and zero points of values. Calls contain only a part of them.

Calls have zero points, and multipliers instead of scales. A layer's multipliers allow any scales of its input and
output, because the scales of its weights are chosen to fit (`scales_of_multipliers`). Other calls give equations: a
product of some scales, divided by a product of others, is a known number. Scales are known where the program quantizes
and dequantizes; the others are solved from the equations, or are 1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tinyfuse.frontend.executorch.program import Value
from tinyfuse.ir import Quant


class _Fact(Protocol):
    """Fact about the scales of some values that follows from a call."""

    @property
    def values(self) -> tuple[Value, ...]: ...

    def follows(self, scales: dict[Value, float]) -> tuple[Value, float] | None:
        """The only unknown value, and its scale; None if several values are unknown, or none."""


@dataclass(frozen=True)
class _Ratio:
    """Equation: the product of the scales of `above`, divided by that of `below`, is `number`."""

    above: tuple[Value, ...]
    below: tuple[Value, ...]
    number: float

    @property
    def values(self) -> tuple[Value, ...]:
        return (*self.above, *self.below)

    def follows(self, scales: dict[Value, float]) -> tuple[Value, float] | None:
        unknown = [value for value in self.values if value not in scales]
        if len(unknown) != 1:
            return None
        number = self.number
        for value in self.below:
            number *= scales.get(value, 1.0)
        for value in self.above:
            number /= scales.get(value, 1.0)
        return unknown[0], number if unknown[0] in self.above else 1 / number


@dataclass(frozen=True)
class _Computed:
    """Equation that computes a scale from others."""

    result: Value
    sources: tuple[Value, ...]
    scale: Callable[..., float]

    @property
    def values(self) -> tuple[Value, ...]:
        return (*self.sources, self.result)

    def follows(self, scales: dict[Value, float]) -> tuple[Value, float] | None:
        if self.result in scales or any(source not in scales for source in self.sources):
            return None
        return self.result, self.scale(*(scales[source] for source in self.sources))


#: least and greatest scale that facts may give: products and quotients of two such scales are finite, too
_LEAST, _MOST = 2.0**-60, 2.0**60


class Quantizations:
    """Scales and zero points of values. Calls record what their arguments imply; `solve` computes the others."""

    def __init__(self) -> None:
        self._scales: dict[Value, float] = {}
        self._zero_points: dict[Value, int] = {}
        self._facts: list[_Fact] = []
        self._alike: dict[Value, list[Value]] = {}

    def has(self, value: Value, zero_point: int, scale: float | None = None) -> None:
        """State the zero point of a value, and its scale where that is known. The first statement holds."""
        self._zero_points.setdefault(value, zero_point)
        if scale is not None:
            self._scales.setdefault(value, scale)

    def alike(self, first: Value, second: Value) -> None:
        """State that two values have the same scale and the same zero point."""
        self._alike.setdefault(first, []).append(second)
        self._alike.setdefault(second, []).append(first)
        self.relate((first,), (second,), 1.0)

    def relate(self, above: Sequence[Value], below: Sequence[Value], number: float) -> None:
        """State a product of scales over a product of others."""
        if _LEAST < number < _MOST:
            self._facts.append(_Ratio(tuple(above), tuple(below), number))

    def compute(self, result: Value, sources: Sequence[Value], scale: Callable[..., float]) -> None:
        """Record that a scale is a function of other scales."""
        self._facts.append(_Computed(result, tuple(sources), scale))

    def solve(self) -> None:
        """Find a scale for every value that a fact names, and the zero points of values that `alike` relates to
        others."""
        self._spread_zero_points()
        facts_of: dict[Value, list[_Fact]] = {}
        for fact in self._facts:
            for value in fact.values:
                facts_of.setdefault(value, []).append(fact)
        self._follow(self._facts, facts_of)
        for value, facts in facts_of.items():
            if value not in self._scales:
                self._scales[value] = 1.0
                self._follow(facts, facts_of)

    def quant(self, value: Value) -> Quant:
        """Return the quantization of an int8 value."""
        return Quant((self._scales.get(value, 1.0),), (self._zero_points.get(value, 0),))

    def _follow(self, facts: Iterable[_Fact], facts_of: dict[Value, list[_Fact]]) -> None:
        """Find all scales that follow from the facts, repeatedly."""
        waiting = deque(facts)
        while waiting:
            found = waiting.popleft().follows(self._scales)
            if found is not None:
                value, scale = found
                self._scales[value] = scale if _LEAST < scale < _MOST else 1.0
                waiting.extend(facts_of[value])

    def _spread_zero_points(self) -> None:
        waiting = deque(self._zero_points)
        while waiting:
            value = waiting.popleft()
            for other in self._alike.get(value, ()):
                if other not in self._zero_points:
                    self._zero_points[other] = self._zero_points[value]
                    waiting.append(other)
